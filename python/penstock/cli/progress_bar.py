"""What a command shows while it works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from penstock.callbacks import Progress as Report

STEPS = {"prepare": "preparing the graph", "verify": "checking"}


@contextmanager
def progress_bar() -> Iterator[Report | None]:
    """A bar on stderr; None where that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def update(what: str, done: int, total: int) -> None:
            bar.update(task, description=escape(STEPS.get(what, what)), completed=done, total=total)

        yield update

"""What `penstock report --quick` runs: commands of small sizes, by executor, as data."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator
from importlib import resources
from pathlib import Path

from penstock.callbacks import Progress
from penstock.report.running import Limits, Outcome, executor_here, run_commands, source_tree

LIMITS = Limits(begin_s=420.0, end_s=530.0)


def quick_commands(executor: str) -> list[str]:
    """In their order: what answers most first."""
    text = (resources.files("penstock.report") / "quick.json").read_text(encoding="utf-8")
    return [str(command) for command in json.loads(text)[executor]]


def run_quick(results: Path, progress: Progress | None = None) -> Generator[Outcome, None, None]:
    """Runs them as `run_commands` does; graphs and other data that they make are gone in the end."""
    with tempfile.TemporaryDirectory(prefix="penstock-quick-") as scratch:
        yield from run_commands(
            quick_commands(executor_here()),
            results,
            source_tree(),
            progress,
            limits=LIMITS,
            scratch=Path(scratch),
        )

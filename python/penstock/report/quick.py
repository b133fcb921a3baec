"""What `penstock report --quick` runs: topics of `penstock bench`, by executor, as data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from penstock import bench
from penstock.bench.measurement import append_lines
from penstock.callbacks import Progress
from penstock.errors import Error
from penstock.native import load_native

LIMIT_S, END_S = 420.0, 570.0
"""After so long no step begins; and a step that still runs ends at its next report of progress."""


@dataclass(frozen=True)
class Step:
    """A topic and its options."""

    topic: str
    options: dict[str, str]

    @property
    def command(self) -> str:
        words = (f"--{name} {value}" for name, value in self.options.items())
        return " ".join(("penstock bench", self.topic, *words))


@dataclass(frozen=True)
class Outcome:
    """Of a command that ran."""

    command: str
    seconds: float
    measurements: int
    problem: str = ""
    """Why it has none, or not all; empty where it has."""


def executor_here() -> str:
    """ "cuda" where a GPU can be used, else "cpu"."""
    return "cuda" if load_native().cuda_usable()[0] else "cpu"


def steps_of(executor: str) -> list[Step]:
    """In their order: what answers most first."""
    text = (resources.files("penstock.report") / "quick.json").read_text(encoding="utf-8")
    return [
        Step(each["topic"], {"executor": executor, **each["options"]}) for each in json.loads(text)[executor]
    ]


def run_steps(
    steps: list[Step],
    results: Path,
    *,
    limit_s: float = LIMIT_S,
    end_s: float = END_S,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Outcome]:
    """Run each step and append what it measures to `results` at once; after limit_s none begins, and after
    end_s the one that runs is stopped.

    A step that the machine refuses, or that reads something wrong, is an outcome with its problem. One whose
    results cannot be written is the last.
    """
    begin = clock()
    unwritten = ""

    def watched(what: str, done: int, total: int) -> None:
        if clock() - begin > end_s:
            raise Error(f"stopped: {end_s:.0f} s were over")
        if progress is not None:
            progress(what, done, total)

    for step in steps:
        start = clock()
        if start - begin > limit_s:
            yield Outcome(step.command, 0.0, 0, f"not begun: {limit_s:.0f} s were over")
            continue
        found: list[bench.Measurement] = []

        def keep(measurement: bench.Measurement, found: list[bench.Measurement] = found) -> None:
            nonlocal unwritten
            try:
                append_lines([measurement], results)
            except Error as error:
                unwritten = str(error)
                raise
            found.append(measurement)

        problem = ""
        try:
            bench.run(step.topic, step.options, progress=watched, found=keep)
        except (ValueError, OSError, MemoryError) as error:
            problem = str(error) or "out of memory"
        yield Outcome(step.command, clock() - start, len(found), unwritten or problem)
        if unwritten:
            return

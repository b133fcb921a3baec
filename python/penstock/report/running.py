"""Runs commands that measure, and keeps their lines: what `penstock report --run` and `--quick` share."""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock
from penstock.bench.measurement import Measurement, append_lines
from penstock.callbacks import Progress
from penstock.errors import Error
from penstock.machine import DriverMissing, read_driver
from penstock.native import load_native
from penstock.report.measuring_process import MeasuringProcess, interrupts_deferred
from penstock.report.papers.listing import Listed
from penstock.report.papers.run_files import RUN

PACKAGE_MISSING = "ModuleNotFoundError: "
"""Begins the last line of a program that imports a package that is not here."""


@dataclass(frozen=True)
class Limits:
    """Seconds since the first command began."""

    begin_s: float = math.inf
    """None begins later."""
    end_s: float = math.inf
    """One that still runs is ended; what it has written is kept."""


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Outcome:
    """What became of a command."""

    command: str
    seconds: float
    measurements: int
    problem: str = ""
    """Why it has none, or not all; empty where it has."""
    failed: bool = False
    """With a problem that is not a lack of the machine's, of a package, or of time."""


def executor_here() -> str:
    """ "cuda" where a GPU can be used, else "cpu"."""
    return "cuda" if load_native().cuda_usable()[0] else "cpu"


def source_tree() -> Path | None:
    """Where the programs of some commands are; None where they are not here."""
    folders = (Path(penstock.__file__).parents[2], Path())
    return next((each.resolve() for each in folders if (each / "benchmarks/harness").is_dir()), None)


def commands_of(listed: Iterable[Listed]) -> list[str]:
    """Each once, in the figures' order."""
    return list(dict.fromkeys(part for each in listed if each.command for part in each.command.split(" && ")))


def run_commands(
    commands: Sequence[str],
    results: Path,
    tree: Path | None,
    progress: Progress | None = None,
    *,
    limits: Limits = NO_LIMITS,
    scratch: Path | None = None,
) -> Generator[Outcome, None, None]:
    """Run each, and append what it measures to `results` as it comes, also where it fails or is interrupted.

    Each line has its `command`, too. After a command that has measured all there is a line `report.run` with
    its seconds. An outcome whose results could not be written is the last.

    Args:
        commands: As `commands_of` has them.
        tree: The source tree, the working folder of its programs; they are left out where it is None.
        scratch: Where commands keep graphs and other data that they make; None: where they do by themselves.
    """
    begin = time.monotonic()
    end = begin + limits.end_s
    environment = _environment(scratch, tree)
    for number, command in enumerate(commands):
        if progress is not None:
            progress(command, number, len(commands))
        start = time.monotonic()
        if start - begin > limits.begin_s:
            yield Outcome(command, 0.0, 0, f"not begun: {limits.begin_s:.0f} s were over")
            continue
        if lacks := _lacks(command, tree):
            yield Outcome(command, 0.0, 0, lacks)
            continue
        kept = _Kept(command, results)
        where = tree if scratch is None or _program(command) else scratch
        problem = _run(kept, where, environment, end)
        seconds = time.monotonic() - start
        if kept.stopped:
            problem = f"stopped: {limits.end_s:.0f} s were over"
        package = problem.startswith(PACKAGE_MISSING)
        failed = bool(problem) and not kept.stopped and not package
        yield Outcome(command, seconds, kept.count, problem.removeprefix(PACKAGE_MISSING), failed)
        if kept.unwritten:
            return


def _program(command: str) -> str:
    """Of the source tree, that the command runs; empty: none."""
    return next((word for word in command.split() if word.startswith(("benchmarks/", "scripts/"))), "")


def _lacks(command: str, tree: Path | None) -> str:
    """What is not here that it needs; empty: nothing."""
    if tree is None and (program := _program(command)):
        return f"{program} is not here: it is in Penstock's source tree"
    if "--executor cuda" in command and executor_here() != "cuda":
        return "it needs a GPU"
    return ""


def _environment(scratch: Path | None, tree: Path | None) -> dict[str, str]:
    """Of the commands: this package, and one name of this machine and one commit in the lines of all."""
    paths = [str(Path(penstock.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {} if scratch is None else {"PENSTOCK_CACHE": str(scratch), "TMPDIR": str(scratch)}
    named = {"PENSTOCK_MACHINE": _machine_name()}
    if commit := _commit_of(tree):
        named["PENSTOCK_COMMIT"] = commit
    return {**named, **os.environ, "PYTHONPATH": os.pathsep.join(paths), **kept}


def _commit_of(tree: Path | None) -> str:
    """What git says of the source tree; empty: nothing."""
    if tree is None:
        return ""
    asked = ["git", "-C", str(tree), "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _machine_name() -> str:
    with suppress(DriverMissing):
        if gpus := read_driver().gpus:
            return gpus[0].name
    return f"{os.cpu_count()} CPU threads"


class _Kept:
    """What of a command is in the results."""

    def __init__(self, command: str, results: Path) -> None:
        self.command = command
        self.count = 0
        self.stopped = False
        """It had no time to measure all."""
        self.unwritten = False
        """The results could not be written."""
        self._results = results
        self._last: Mapping[str, Any] = {}

    def add(self, measurement: Measurement) -> None:
        self._append({**measurement.line, "command": self.command})
        self._last = measurement.line
        self.count += 1

    def add_seconds(self, seconds: float) -> None:
        """Of the whole command, on the machine of its last line."""
        same = {name: self._last[name] for name in ("machine", "commit", "date") if name in self._last}
        self._append({"id": RUN, "value": seconds, "unit": "s", "params": {"command": self.command}, **same})

    def _append(self, line: dict[str, Any]) -> None:
        try:
            append_lines([Measurement.of(line)], self._results)
        except Error:
            self.unwritten = True
            raise


def _run(kept: _Kept, where: Path | None, environment: Mapping[str, str], end: float) -> str:
    """Why it has not measured all, as its last line has it; empty: it has."""
    begin = time.monotonic()
    with ExitStack() as stack:
        try:
            with interrupts_deferred():
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-report-"))
                process = MeasuringProcess(kept.command, Path(folder), where, environment)
                stack.enter_context(process)
        except OSError as missing:
            return f"{kept.command.split()[0]}: {missing.strerror}"
        try:
            for measurement in process.measurements(end):
                kept.add(measurement)
            kept.stopped = process.stopped
            problem = process.problem or ("" if kept.count else "it wrote no result line")
            if not problem and not process.stopped:
                kept.add_seconds(time.monotonic() - begin)
        except (Error, ValueError) as unusable:
            return str(unusable)
        finally:
            process.end()
            if not kept.unwritten:
                with suppress(Error, ValueError):
                    for measurement in process.written():
                        kept.add(measurement)
        return problem

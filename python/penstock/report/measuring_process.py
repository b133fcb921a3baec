"""A command that measures, as a process, and the result lines that it writes while it runs."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from penstock.bench.measurement import Measurement, parse_line

PROGRAMS = {
    "python": [sys.executable],
    "penstock": [sys.executable, "-m", "penstock"],
    "torchrun": [sys.executable, "-m", "torch.distributed.run"],
}
OUTPUTS = ("--results", "--output")
FOLDER = "OUT"
"""What a command writes a folder of results to."""
POLL_S = 0.2
"""Between two looks at what it has written."""
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDINGS = ((signal.SIGINT, 3.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, None))
"""What ends it, and the seconds that it has for that."""


class MeasuringProcess:
    """Runs in a group of its own: an interrupt of a terminal reaches it through `end` alone.

    Args:
        command: As `penstock report --list` prints it; what it would write goes to `folder`.
        folder: Empty; results and what it prints lie there.
        where: Its working folder.
    """

    def __init__(
        self, command: str, folder: Path, where: Path | None, environment: Mapping[str, str]
    ) -> None:
        """Raises OSError where its program does not start."""
        self._folder = folder
        self._taken: dict[Path, int] = {}
        self.stopped = False
        """It had no time to end by itself."""
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            self._child = subprocess.Popen(
                words_of(command, folder),
                cwd=where,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def __enter__(self) -> MeasuringProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self.end()

    def measurements(self, end: float) -> Iterator[Measurement]:
        """Each as it writes it, until it ends, or is ended: when time.monotonic() is `end`.

        Raises ValueError for a line that is no result.
        """
        while self._child.poll() is None and (left := end - time.monotonic()) > 0:
            yield from self.written()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(min(POLL_S, left))
        self.stopped = self._child.poll() is None
        self.end()
        yield from self.written()

    def written(self) -> Iterator[Measurement]:
        """Whole lines since the last call. Raises ValueError for one that is no result."""
        for path in sorted(self._folder.rglob("*.jsonl")):
            *lines, _ = path.read_bytes().split(b"\n")
            for line in lines[self._taken.get(path, 0) :]:
                self._taken[path] = self._taken.get(path, 0) + 1
                try:
                    yield parse_line(line)
                except ValueError as problem:
                    where = f"line {self._taken[path]} of {path.name}"
                    raise ValueError(f"{where} is no result: {problem}") from None

    def end(self) -> None:
        """Ends all of its processes. At once where it has ended by itself."""
        try:
            for number, seconds in ENDINGS:
                if self._child.poll() is not None:
                    break
                self._signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(seconds)
        finally:
            self._signal(signal.SIGKILL)

    @property
    def problem(self) -> str:
        """Why it failed, as its last line has it; empty: it has not. REQUIRES: it has ended."""
        if self._child.returncode == 0:
            return ""
        for name in ("stderr", "stdout"):
            text = (self._folder / name).read_text(errors="replace")
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                return lines[-1]
        return f"it ended with {self._child.returncode}"

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """What handlers of signals raise is raised at the end: a process that is being started, whose number is
    not known yet, could not be ended."""
    handled = [number for number in INTERRUPTS if callable(signal.getsignal(number))]
    if threading.current_thread() is not threading.main_thread():
        handled = []  # handlers run in the main thread alone
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def words_of(command: str, folder: Path) -> list[str]:
    """Of the command, its results in a folder."""
    words = shlex.split(command)
    for at, word in enumerate(words):
        if word == FOLDER:
            words[at] = str(folder)
        elif at > 0 and words[at - 1] in OUTPUTS:
            words[at] = str(folder / word)
    return [*PROGRAMS.get(words[0], words[:1]), *words[1:]]

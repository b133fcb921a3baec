"""What `penstock report --run` runs: the commands of figures, as `--list` prints them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import penstock
from penstock.bench.measurement import append_lines
from penstock.callbacks import Progress
from penstock.errors import Error
from penstock.report.papers.listing import Listed
from penstock.report.papers.run_files import read_run_files
from penstock.report.quick import Outcome, executor_here

PROGRAMS = {
    "python": [sys.executable],
    "penstock": [sys.executable, "-m", "penstock"],
    "torchrun": [sys.executable, "-m", "torch.distributed.run"],
}
OUTPUTS = ("--results", "--output")
FOLDER = "OUT"
"""What a command writes a folder of results to."""


def source_tree() -> Path:
    """Where commands find their programs. Raises Error where there are none."""
    for folder in (Path(penstock.__file__).parents[2], Path()):
        if (folder / "benchmarks/graph_algorithms.py").is_file():
            return folder.resolve()
    raise Error("report --run: the programs of the commands are not here: run it in Penstock's source tree")


def commands_of(listed: Iterable[Listed]) -> list[str]:
    """Each once, in the figures' order."""
    return list(dict.fromkeys(part for each in listed if each.command for part in each.command.split(" && ")))


def run_commands(
    commands: Sequence[str], results: Path, tree: Path, progress: Progress | None = None
) -> Iterator[Outcome]:
    """Run each and append what it measures to `results` when it ends, also where it fails or is interrupted.

    Args:
        commands: As `commands_of` has them.
        tree: Their working folder.

    Raises Error where the results cannot be written.
    """
    for number, command in enumerate(commands):
        if progress is not None:
            progress(command, number, len(commands))
        if "--executor cuda" in command and executor_here() != "cuda":
            yield Outcome(command, 0.0, 0, "it needs a GPU")
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="penstock-report-") as folder:
            try:
                problem = _run(_words(command, folder), tree)
            finally:
                count = _keep(Path(folder), results)
        if not problem and count == 0:
            problem = "it wrote no result line"
        yield Outcome(command, time.monotonic() - begin, count, problem)


def _words(command: str, folder: str) -> list[str]:
    """Of the command, its results in a folder."""
    words = shlex.split(command)
    for at, word in enumerate(words):
        if word == FOLDER:
            words[at] = folder
        elif at > 0 and words[at - 1] in OUTPUTS:
            words[at] = os.path.join(folder, word)  # noqa: PTH118
    return [*PROGRAMS.get(words[0], words[:1]), *words[1:]]


def _run(words: list[str], tree: Path) -> str:
    """Why it failed, as its last line says; empty: it has not."""
    own = str(Path(penstock.__file__).parents[1])
    paths = [own, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        done = subprocess.run(
            words, cwd=tree, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as missing:
        return f"{words[0]}: {missing.strerror}"
    if done.returncode == 0:
        return ""
    said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return said[-1] if said else f"it ended with {done.returncode}"


def _keep(folder: Path, results: Path) -> int:
    files = sorted(file for file in folder.rglob("*.jsonl") if file.stat().st_size)
    measurements = [line.measurement for line in (read_run_files(files) if files else [])]
    append_lines(measurements, results)
    return len(measurements)

"""Result lines with the file and the line number that each was read from."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.bench.measurement import Measurement, numbered_lines
from penstock.sizes import format_bytes

RUN = "report.run"
"""The id of a line with the seconds of a whole command, which is its parameter `command`."""
UNNAMED = "unnamed"
"""What benchmarks write where PENSTOCK_MACHINE is not set."""
GPU = re.compile(r"NVIDIA (\w+)")
CPU = re.compile(r"CPU|\d+ CPU threads?")
SPELLINGS = re.compile(r"^\d+ ?x |NVIDIA | \d+GB HBM\w*| \(.*SMs\)")
"""Of one name by different benchmarks."""
SAMPLES = ("values", "trial_seconds")
"""Fields, of a line or of its details, that hold the value of each repeat."""


@dataclass(frozen=True, eq=False)
class RunLine:
    """A measurement and where it stands."""

    measurement: Measurement
    file: str
    """As the report names it: below the folder that was given, or the file's own name."""
    number: int
    """Of the line, from 1."""

    def field(self, path: str) -> Any:
        """What stands at a dotted path of the JSON line; None where nothing does."""
        if path == "value":
            return self.measurement.value
        if path == "baseline_value":
            return self.measurement.baseline_value
        found: Any = self.measurement.line
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        # Code of a CPU has no count of a GPU's registers.
        return None if path == "registers" and found == 0 else found

    def condition(self, name: str) -> str | None:
        """A parameter as text, the file's name, or what stands at a dotted path."""
        given = self.measurement.params.get(name) or (self.file if name == "file" else None)
        if given is None:
            found = self.field(name)
            given = None if found is None else str(found)
        return given

    @property
    def machine(self) -> str:
        """The machine's name, or its device's: the same for one kind of machine, of one GPU or several."""
        given = self.measurement.machine
        name, device = given.get("name", "").replace(UNNAMED, ""), given.get("device", "")
        if gpu := GPU.search(device):
            name = name if gpu[1] in name else ", ".join(filter(None, (gpu[1], name)))
        found = SPELLINGS.sub("", name or device or self.measurement.ran_on.replace(UNNAMED, ""))
        return found or "a machine without a name"

    @property
    def executor(self) -> str:
        """ "cpu" or "cuda"; "" where the line does not say."""
        given = self.measurement.machine
        threads = any(CPU.fullmatch(given.get(name, "")) for name in ("device", "name"))
        return self.measurement.params.get("executor") or ("cpu" if threads else "")

    @property
    def host(self) -> str:
        """Its processor, cores and memory; "" where the line does not say."""
        given = self.measurement.machine
        parts = [given.get("device", ""), given.get("cpu", "")]
        if not parts[1]:
            return ""
        if cores := given.get("cores"):
            parts.append(f"{cores} cores")
        if (memory := given.get("memory", "").partition(" ")[0]).isdecimal():
            parts.append(f"{format_bytes(1024 * int(memory))} of memory")
        return ", ".join(part for part in parts if part)

    @property
    def verified(self) -> bool | None:
        """Whether the run compared its output; None where the line does not say."""
        stated = self.field("verified")
        return None if stated is None else bool(stated)

    def samples(self) -> list[float]:
        """The numbers of the repeats in the line's unit; empty where it has only their median."""
        for name in SAMPLES:
            for path in (name, f"details.{name}"):
                found = self.field(path)
                if isinstance(found, list) and found:
                    return [float(value) for value in found if math.isfinite(float(value))]
        return []


def read_run_files(paths: Sequence[Path]) -> list[RunLine]:
    """All lines of files and of folders' .jsonl files, oldest first; of one date in the files' order.

    Raises ValueError for a path without result lines and for a line that is none.
    """
    found: list[RunLine] = []
    for path in paths:
        lines = [line for file, name in _files(path) for line in _lines(file, name)]
        if not lines:
            raise ValueError(f"read {path}: there is no result line in it: give .jsonl files or their folder")
        found += lines
    return sorted(found, key=lambda line: line.measurement.date)


def _files(path: Path) -> list[tuple[Path, str]]:
    if path.is_dir():
        return [(file, file.relative_to(path).as_posix()) for file in sorted(path.rglob("*.jsonl"))]
    if not path.exists():
        raise ValueError(f"read {path}: there is no such file or folder: give result files")
    return [(path, path.name)]


def _lines(file: Path, name: str) -> Iterable[RunLine]:
    for number, measurement in numbered_lines(file):
        line = RunLine(measurement, name, number)
        if wrong := _wrong_field(line):
            raise ValueError(f"read {file}, line {number}: {wrong}: give JSON lines of results")
        yield line


def _wrong_field(line: RunLine) -> str:
    """Of a line that no benchmark writes; else empty."""
    tiers = (line.field("bytes") or {}).values()
    if not all(isinstance(count, (int, float)) for count in tiers):
        return "its bytes are no numbers"
    try:
        line.samples()
    except (TypeError, ValueError):
        return "the values of its repeats are no numbers"
    return ""

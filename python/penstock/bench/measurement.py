"""One measurement, and the files that hold one as JSON on each line."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import Error

MUST_HAVE = ("id", "value", "unit")
NUMBER = (int, float)
KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("value", "median", "baseline_value", "ratio", "spread", "repeats"), NUMBER),
    **dict.fromkeys(("sms", "warps", "registers"), NUMBER),
    **dict.fromkeys(("params", "details", "bytes"), dict),
    "baseline": (str, *NUMBER),
    "machine": (str, dict),
}
"""What the fields of a line are, where it has them."""


@dataclass(frozen=True)
class Measurement:
    """What a line says of it; `value` is the median of the repeats."""

    id: str
    value: float
    unit: str
    params: dict[str, str]
    baseline: str | None
    """Its name; None where there is none."""
    baseline_value: float | None
    ratio: float | None
    """Ours over the baseline's."""
    spread: float | None
    """(Largest - smallest) / median of the repeats."""
    sms: int
    warps: int
    registers: int
    details: dict[str, float | None]
    machine: dict[str, str]
    commit: str
    date: str
    line: Mapping[str, Any] = field(repr=False, compare=False)
    """All of it, also what has no name here."""

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Measurement:
        """Raises ValueError for what is no measurement.

        Lines with all values of the repeats have `median` instead of `value`, and a number as `baseline`.
        """
        for name, kind in KINDS.items():
            if line.get(name) is not None and not isinstance(line[name], kind):
                raise ValueError(f"its field {name} is {line[name]!r:.40}")
        value = line.get("value", line.get("median"))
        missing = [name for name in MUST_HAVE if (value if name == "value" else line.get(name)) is None]
        if missing:
            raise ValueError(f"it has no {' and no '.join(missing)}")
        if not math.isfinite(float(value)):
            raise ValueError(f"its value is {value}")
        params = {name: str(value) for name, value in (line.get("params") or {}).items()}
        baseline = line.get("baseline")
        named = isinstance(baseline, str)
        machine = line.get("machine") or {}
        return cls(
            id=str(line["id"]),
            value=float(value),
            unit=str(line["unit"]),
            params=params,
            baseline=baseline if named else None,
            baseline_value=line.get("baseline_value") if named else baseline,
            ratio=line.get("ratio"),
            spread=line.get("spread"),
            sms=line.get("sms") or 0,
            warps=line.get("warps") or 0,
            registers=line.get("registers") or 0,
            details=dict(line.get("details") or {}),
            machine={"name": machine} if isinstance(machine, str) else dict(machine),
            commit=str(line.get("commit") or ""),
            date=str(line.get("date") or ""),
            line=line,
        )

    @property
    def local_bytes(self) -> int:
        """Of a thread of the kernel: what its registers do not hold."""
        return int(self.details.get("local_bytes") or 0)

    @property
    def directory_bytes_per_tib(self) -> int:
        """Of data; 0 where it was not counted."""
        return int(self.details.get("directory_bytes_per_tib") or 0)

    @property
    def metadata_bytes(self) -> int:
        return int(self.details.get("metadata_bytes") or 0)

    @property
    def ran_on(self) -> str:
        """The machine as a reader knows it; empty where the line does not say."""
        names = [self.machine.get(name) or "" for name in ("name", "device")]
        return ", ".join(n for n in names if n) or self.machine.get("cpu") or ""


def read_lines(path: Path) -> list[Measurement]:
    """The measurements of a file, in its order. Raises ValueError for a line that is none."""
    return [measurement for _, measurement in numbered_lines(path)]


def numbered_lines(path: Path) -> Iterator[tuple[int, Measurement]]:
    """Each measurement of a file after the number of its line.

    Raises ValueError for a line that is none, Error for a file that cannot be read.
    """
    try:
        texts = path.read_bytes().splitlines()
    except OSError as problem:
        raise Error(
            f"read {path}: {problem.strerror}: give a file of JSON lines", problem.errno or 0
        ) from None
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            measurement = parse_line(text)
        except ValueError as problem:
            raise ValueError(f"read {path}, line {number}: {problem}: give JSON lines of results") from None
        yield number, measurement


def parse_line(text: bytes) -> Measurement:
    """The measurement of a line. Raises ValueError for one that is none."""
    try:
        line = json.loads(text)
    except ValueError:
        raise ValueError("it is no JSON") from None
    if not isinstance(line, dict):
        raise ValueError("it is no JSON object")
    return Measurement.of(line)


def append_lines(measurements: Iterable[Measurement], path: Path) -> None:
    """One JSON line each at the end of the file, all or none; its folders are made.

    Raises Error where they cannot be written.
    """
    lines = "".join(json_line(m) + "\n" for m in measurements).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            end = file.tell() if file.seekable() else None
            try:
                _write(file, lines)
            except OSError:
                if end is not None:
                    file.truncate(end)
                raise
    except OSError as problem:
        reason = f"{problem.strerror}: make room, or choose another file"
        raise Error(f"write {path}: {reason}", problem.errno or 0) from None


def _write(file: io.FileIO, data: bytes) -> None:
    """All of it: a system call may take a part."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) or 0 :]


def json_line(measurement: Measurement) -> str:
    return json.dumps(measurement.line, allow_nan=False)


def newest(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Without those that were measured again later: the same id and parameters on the same machine."""
    latest = {(m.id, m.ran_on, *sorted(m.params.items())): m for m in measurements}
    return list(latest.values())

"""Files of columns: values packed while they come, and packed again where later ones need more bits.

Integers, days, ticks, decimals and codes of texts are packed: the least value is subtracted, and each takes
as many bits as the largest needs (frame of reference), where that is at most three quarters of what it took.
So are floating-point numbers that have few digits behind the point, all of them (as ALP does: Afroozeh, Kuffo
and Boncz, SIGMOD 2024): they come out as they were, bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock.columns.types import ColumnType
from penstock.native import load_native

if TYPE_CHECKING:
    from penstock._native import ColumnPacker

PACK_ROWS = 1 << 18
"""At once: what a thread works on stays near its cache."""
PACKED_SHARE = 0.75
MAX_BITS = 57
"""A packed value is read as two words at most."""
DIVISORS = [1.0, 10.0, 100.0, 1000.0, 10000.0]


def packed_bytes(rows: int, bits: int) -> int:
    """Whole words, and one more: a value may be read as two."""
    return (rows * bits + 63) // 64 * 8 + 8


@dataclass(frozen=True)
class Form:
    """How packed values lie: times the divisor if that is not 0, less the base, in so many bits."""

    bits: int
    base: int
    divisor: float = 0.0

    @property
    def native(self) -> tuple[int, int, float]:
        return self.bits, self.base & (1 << 64) - 1, self.divisor

    def packer(self) -> ColumnPacker:
        packer: ColumnPacker = load_native().ColumnPacker(*self.native)
        return packer


VALIDITY = Form(1, 0)


@dataclass
class Run:
    """Rows that lie one after another in one form; None: as they are."""

    form: Form | None
    first: int
    """Byte in the file."""
    rows: int = 0


class ValuesFile:
    """Values in a file, in one run after another. Those of a run continue each other's bits."""

    def __init__(self, path: Path, stored: np.dtype[Any]) -> None:
        self.path, self.stored = path, stored
        self.file = path.open("w+b")
        self.runs: list[Run] = []
        self._packer: ColumnPacker | None = None

    def append(self, values: npt.NDArray[Any], form: Form | None) -> None:
        if not self.runs or self.runs[-1].form != form:
            self._end_run()
            self.runs.append(Run(form, self.file.tell()))
            self._packer = None if form is None else form.packer()
        self.runs[-1].rows += len(values)
        self.file.write((values if self._packer is None else self._packer.append(values)).data)

    def _end_run(self) -> None:
        if self._packer is not None:
            self.file.write(self._packer.finish().data)

    def finish(self, form: Form | None) -> None:
        """Closes the file with all values in one form; those of another are stored anew."""
        self._end_run()
        rows = sum(run.rows for run in self.runs)
        if any(run.form != form for run in self.runs):
            whole = ValuesFile(self.path.with_suffix(".packed"), self.stored)
            try:
                for values in self._values():
                    whole.append(values, form)
                whole.finish(form)
            finally:
                whole.file.close()
            whole.path.replace(self.path)
        elif form is not None:
            self.file.write(bytes(packed_bytes(rows, form.bits) - self.file.tell()))
        self.file.close()

    def _values(self) -> Iterator[npt.NDArray[Any]]:
        for run in self.runs:
            for first in range(0, run.rows, PACK_ROWS):
                values = np.empty(min(PACK_ROWS, run.rows - first), self.stored)
                if run.form is None:
                    self._read(run.first + first * values.itemsize, values)
                else:
                    words = np.zeros(packed_bytes(len(values), run.form.bits) // 8, np.uint64)
                    self._read(run.first + first * run.form.bits // 8, words)
                    load_native().column_unpack(words, *run.form.native, values)
                yield values

    def _read(self, first: int, into: npt.NDArray[Any]) -> None:
        self.file.seek(first)
        self.file.readinto(into.data)


class ColumnWriter:
    """One column of a folder that is being written."""

    def __init__(self, folder: Path, number: int, name: str, kind: ColumnType, packs: bool) -> None:
        self.folder, self.name, self.type, self.packs = folder, name, kind, packs
        self.divisors = DIVISORS if kind.kind == "float" and kind.width == 64 else []
        self.values = ValuesFile(folder / f"{number:04d}.values", self.stored)
        self.valid: ValuesFile | None = None
        self.rows = 0
        self.low: Any = None
        self.high: Any = None
        self.words: list[str] = []
        """Texts, in the order of their codes."""

    @property
    def stored(self) -> np.dtype[Any]:
        """What values are before they are packed."""
        if self.type.kind == "float":
            return np.dtype(f"f{self.type.width // 8}")
        if self.type.kind == "integer":
            return np.dtype(f"{'i' if self.type.signed else 'u'}{self.type.width // 8}")
        return np.dtype("u1") if self.type.kind == "boolean" else np.dtype("i8")

    def add(
        self, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None, filler: Any = None
    ) -> None:
        """More rows. What a null has for a value is not looked at: it is stored as the filler, if there is
        one, or the first value.
        """
        if valid is not None and valid.all():
            valid = None
        self._add_validity(len(values), valid)
        values = np.ascontiguousarray(values, self.stored)
        if valid is not None:
            if filler is None and valid.any():
                filler = values[valid.argmax()]
            values = np.where(valid, values, self.stored.type(0 if filler is None else filler))
        if len(values):
            self._append(values, valid is None or filler is not None)
        self.rows += len(values)

    def _add_validity(self, rows: int, valid: npt.NDArray[np.bool_] | None) -> None:
        if valid is not None and self.valid is None:
            self.valid = ValuesFile(self.values.path.with_suffix(".valid"), np.dtype("u1"))
            for first in range(0, self.rows, PACK_ROWS):
                self.valid.append(np.ones(min(PACK_ROWS, self.rows - first), np.uint8), VALIDITY)
        if self.valid is not None:
            self.valid.append(np.ones(rows, np.uint8) if valid is None else valid.view(np.uint8), VALIDITY)

    def _append(self, values: npt.NDArray[Any], known: bool) -> None:
        """Packs what can be, as far as it is known now. Not known: all are nulls."""
        if self.type.kind == "float":
            self._measure_divisors(values)
        elif self.packs and known:
            self._measure(values)
        form = self._form()
        if form is None:
            self.packs = False  # what is too wide stays so
        elif not known and self.type.kind != "float":
            form = Form(0, 0)  # whatever the base will be
        self.values.append(values, form)

    def _measure_divisors(self, values: npt.NDArray[Any]) -> None:
        if self.packs and self.divisors:
            self.divisors = load_native().column_divisors(values, self.divisors)
            if self.divisors:
                self._measure(values)

    def _measure(self, values: npt.NDArray[Any]) -> None:
        low, high = load_native().column_range(values)
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)

    def _form(self) -> Form | None:
        """In which all values so far fit; None: as they are."""
        if not self.packs or (self.type.kind == "float" and not self.divisors):
            return None
        divisor = self.divisors[0] if self.divisors else 0.0
        low, high = self.low or 0, self.high or 0
        if divisor:  # a product rounds to no less than that of a lesser value
            low, high = round(low * divisor), round(high * divisor)
        bits = (high - low).bit_length()
        if bits > MAX_BITS or bits > PACKED_SHARE * 8 * self.stored.itemsize:
            return None
        return Form(bits, low, divisor)

    def close(self) -> dict[str, Any]:
        """Stores all values in one form, and returns the facts of the column."""
        form = self._form() if self.rows else None
        self.values.finish(form)
        if self.valid is not None:
            self.valid.finish(VALIDITY)
        kind = asdict(self.type)
        kind.pop("words")
        facts: dict[str, Any] = {
            "name": self.name,
            "type": kind,
            "encoding": self.stored.name if form is None else "packed",
            "bits": 0 if form is None else form.bits,
            "base": 0 if form is None else form.base,
            "divisor": 0.0 if form is None else form.divisor,
            "file": self.values.path.name,
            "validity": None if self.valid is None else self.valid.path.name,
        }
        if self.type.kind == "string":
            words = self.values.path.with_suffix(".words.json")
            words.write_text(json.dumps(self.words, ensure_ascii=False))
            facts["words"] = words.name
        return facts

    def abandon(self) -> None:
        """Closes the files, complete or not."""
        for file in (self.values, self.valid):
            if file is not None:
                file.file.close()

    def discard(self) -> None:
        """Removes the files."""
        self.abandon()
        for file in (self.values, self.valid):
            if file is not None:
                file.path.unlink()

"""Tables in folders of their own: a file for each column, and `table.json` that says what they are.

Integers, days, ticks, decimals and codes of texts are packed: the least value is subtracted, and each takes
as many bits as the largest needs (frame of reference), where that is at most three quarters of what it took.
So are floating-point numbers that have few digits behind the point, all of them (as ALP does: Afroozeh, Kuffo
and Boncz, SIGMOD 2024): they come out as they were, bit for bit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock.columns.layout import ColumnPlace, Piece, TableLayout
from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from typing_extensions import Self

FACTS = "table.json"
FORMAT = 1
PACK_ROWS = 1 << 20
"""At once."""
PACKED_SHARE = 0.75
DIVISORS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
EXACT = float(1 << 52)


def is_folder(path: Path) -> bool:
    return (path / FACTS).is_file()


def open_folder(path: Path) -> TableLayout:
    """The table of a folder.

    Raises:
        ValueError: It is damaged, with what to do.
    """
    try:
        facts = json.loads((path / FACTS).read_text())
        if facts["format"] != FORMAT:
            raise ValueError(f"its format is {facts['format']}, and {FORMAT} is known")
        rows = int(facts["rows"])
        columns = [_column(path, each, rows) for each in facts["columns"]]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"open {path}: {FACTS} is damaged: {problem}: write the table anew") from None
    return TableLayout(str(path), [rows], columns, dict(facts.get("refused", {})))


def _column(path: Path, facts: Mapping[str, Any], rows: int) -> ColumnPlace:
    kind = dict(facts["type"])
    words = facts.get("words")
    if words is not None:
        kind["words"] = tuple(json.loads((path / words).read_text()))
    column = ColumnPlace(
        str(facts["name"]), ColumnType(**kind), str(facts["encoding"]), [], int(facts["bits"]),
        int(facts["base"]), float(facts["divisor"]),
    )  # fmt: skip
    nbytes = (
        packed_bytes(rows, column.bits) if column.encoding in ("packed", "bits") else rows * column.bits // 8
    )
    validity = None
    if facts.get("validity") is not None:
        validity = Piece(str(path / facts["validity"]), 0, packed_bytes(rows, 1))
    column.pieces.append(Piece(str(path / facts["file"]), 0, nbytes, 0, validity))
    return column


def packed_bytes(rows: int, bits: int) -> int:
    """Whole words, and one more: a value may be read as two."""
    return (rows * bits + 63) // 64 * 8 + 8


def pack(values: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint8]:
    """Values of `bits` bits, one behind the other, the first in the lowest bits."""
    if bits == 0:
        return np.zeros(0, np.uint8)
    wide = values[:, None] >> np.arange(bits, dtype=np.uint64) & np.uint64(1)
    return np.packbits(wide.astype(np.uint8).ravel(), bitorder="little")


class BitWriter:
    """Appends values of some bits to a file, in any number at once."""

    def __init__(self, path: Path, bits: int) -> None:
        self.file = path.open("wb")
        self.bits = bits
        self.left: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)

    def add(self, values: npt.NDArray[np.uint64]) -> None:
        values = np.concatenate([self.left, values])
        whole = len(values) // 8 * 8
        for first in range(0, whole, PACK_ROWS):
            self.file.write(pack(values[first : min(first + PACK_ROWS, whole)], self.bits).tobytes())
        self.left = values[whole:]

    def close(self, rows: int) -> None:
        self.file.write(pack(self.left, self.bits).tobytes())
        self.file.write(bytes(max(0, packed_bytes(rows, self.bits) - self.file.tell())))
        self.file.close()


class ColumnWriter:
    """One column of a folder that is being written."""

    def __init__(self, folder: Path, number: int, name: str, kind: ColumnType, packs: bool) -> None:
        self.folder, self.name, self.type, self.packs = folder, name, kind, packs
        self.divisors = list(DIVISORS) if packs and kind.kind == "float" and kind.width == 64 else []
        self.file_name = f"{number:04d}.values"
        self.valid_name = f"{number:04d}.valid"
        self.file = (folder / self.file_name).open("wb")
        self.valid: BitWriter | None = None
        self.rows = 0
        self.low: int | None = None
        self.high = 0
        self.words: dict[str, int] = {}

    @property
    def stored(self) -> np.dtype[Any]:
        """What values are while they are written."""
        if self.type.kind == "float":
            return np.dtype(f"f{self.type.width // 8}")
        if self.type.kind == "integer":
            return np.dtype(f"{'i' if self.type.signed else 'u'}{self.type.width // 8}")
        return np.dtype("u1") if self.type.kind == "boolean" else np.dtype("i8")

    def add(self, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None) -> None:
        """More rows. What a null has for a value is not looked at."""
        if valid is not None and valid.all():
            valid = None
        if valid is not None and self.valid is None:
            self.valid = BitWriter(self.folder / self.valid_name, 1)
            self.valid.add(np.ones(self.rows, np.uint64))
        if self.valid is not None:
            given = np.ones(len(values), bool) if valid is None else valid
            self.valid.add(given.astype(np.uint64))
        values = np.ascontiguousarray(values, self.stored)
        if valid is not None:
            values = np.where(
                valid, values, values[valid][:1].sum(dtype=values.dtype) if valid.any() else 0
            ).astype(self.stored)
        if self.type.kind == "float":
            self.divisors = [
                divisor for divisor in self.divisors if _as_integers(values, divisor) is not None
            ]
        whole = _as_integers(values, self.divisors[0]) if self.divisors else values
        packs = self.type.kind != "float" or self.divisors
        if packs and whole is not None and len(values) and (valid is None or valid.any()):
            low, high = int(whole.min()), int(whole.max())
            self.low, self.high = (
                (low, high) if self.low is None else (min(low, self.low), max(high, self.high))
            )
        values.tofile(self.file)
        self.rows += len(values)

    def codes(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """Codes of texts, new ones added."""
        return np.fromiter((self.words.setdefault(word, len(self.words)) for word in words), np.int64)

    def close(self) -> dict[str, Any]:
        """Packs what can be, and says what there is."""
        self.file.close()
        if self.valid is not None:
            self.valid.close(self.rows)
        kind = asdict(self.type)
        kind.pop("words")
        facts: dict[str, Any] = {
            "name": self.name,
            "type": kind,
            "encoding": self._encoding(),
            "bits": 0,
            "base": 0,
            "divisor": 0.0,
            "file": self.file_name,
            "validity": None if self.valid is None else self.valid_name,
        }
        if self.type.kind == "string":
            name = self.file_name.replace(".values", ".words.json")
            (self.folder / name).write_text(json.dumps(list(self.words), ensure_ascii=False))
            facts["words"] = name
        self._pack(facts)
        return facts

    def _encoding(self) -> str:
        return self.stored.name if self.type.kind != "boolean" else "uint8"

    def _pack(self, facts: dict[str, Any]) -> None:
        if not self.packs or self.rows == 0 or (self.type.kind == "float" and not self.divisors):
            return
        if self.type.kind == "float":
            self._measure()
        low = self.low or 0
        bits = (self.high - low).bit_length() if self.low is not None else 0
        if bits > 57 or bits > PACKED_SHARE * 8 * self.stored.itemsize:
            return
        path = self.folder / self.file_name
        packed = path.with_suffix(".packed")
        writer = BitWriter(packed, bits)
        with path.open("rb") as file:
            while len(values := np.fromfile(file, self.stored, PACK_ROWS)):
                wide = self._integers(values)
                nonnegative = np.maximum(wide, low) if self.valid is not None else wide
                writer.add(
                    (nonnegative - np.array(low, nonnegative.dtype)).astype(np.uint64)
                    & np.uint64((1 << bits) - 1)
                )
        writer.close(self.rows)
        packed.replace(path)
        divisor = self.divisors[0] if self.type.kind == "float" else 0.0
        facts.update(encoding="packed", bits=bits, base=low, divisor=divisor)

    def _integers(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.type.kind == "float":
            whole = _as_integers(values, self.divisors[0])
            assert whole is not None  # as when they were added
            return whole
        return values.astype(np.int64 if self.type.signed or self.type.kind != "integer" else np.uint64)

    def _measure(self) -> None:
        """The extremes of what the divisor that is left makes: the first rows may have had a smaller."""
        self.low = None
        with (self.folder / self.file_name).open("rb") as file:
            while len(values := np.fromfile(file, self.stored, PACK_ROWS)):
                whole = self._integers(values)
                low, high = int(whole.min()), int(whole.max())
                self.low, self.high = (
                    (low, high) if self.low is None else (min(low, self.low), max(high, self.high))
                )


def _as_integers(values: npt.NDArray[Any], divisor: float) -> npt.NDArray[np.int64] | None:
    """Numbers times a divisor, if they are whole and come out again, sign of zero and all; else None."""
    with np.errstate(all="ignore"):
        whole = np.rint(values * divisor)
        fits = (np.abs(whole) < EXACT) & (whole / divisor == values) & ~((values == 0) & np.signbit(values))
    return whole.astype(np.int64) if bool(fits.all()) else None


class FolderWriter:
    """Writes a table into a new folder, some rows at a time.

    The folder is whole when it is left without an error; else it is without its facts, and refused.
    """

    def __init__(
        self, folder: str | os.PathLike[str], columns: Mapping[str, ColumnType], pack: bool = True,
        refused: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.folder = Path(folder)
        self.refused = dict(refused or {})
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.iterdir()):
            raise ValueError(f"write {self.folder}: the folder is not empty: name a new one")
        self.columns = {
            name: ColumnWriter(self.folder, number, name, kind, pack)
            for number, (name, kind) in enumerate(columns.items())
        }

    def add(
        self, values: Mapping[str, npt.NDArray[Any]], valid: Mapping[str, npt.NDArray[np.bool_]] | None = None
    ) -> None:
        """Rows, as many of each column."""
        for name, writer in self.columns.items():
            writer.add(values[name], None if valid is None else valid.get(name))

    def close(self) -> None:
        facts = [writer.close() for writer in self.columns.values()]
        rows = {writer.rows for writer in self.columns.values()}
        if len(rows) > 1:
            raise ValueError(f"write {self.folder}: its columns have {sorted(rows)} rows: give all as many")
        whole: dict[str, Any] = {"format": FORMAT, "rows": rows.pop() if rows else 0, "columns": facts}
        whole["refused"] = self.refused
        written = self.folder / (FACTS + ".new")
        written.write_text(json.dumps(whole, indent=1))
        written.replace(self.folder / FACTS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            for writer in self.columns.values():
                writer.file.close()

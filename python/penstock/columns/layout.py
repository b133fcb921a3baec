"""Where the values of a table lie: pieces of columns in files, as the engine reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.columns.file_states import FileState
from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from penstock._native import VolumeFile

ENCODINGS = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "bits",
    "packed",
    "int128",
]  # as libs/columns/column_view.hpp


@dataclass(frozen=True)
class Piece:
    """The values of a column for some rows that lie one after another."""

    path: str
    offset: int
    """Bytes, of value 0."""
    nbytes: int
    first_bit: int = 0
    validity: Piece | None = None
    """A bit each, from `first_bit` on; None: there is a value in each row."""


@dataclass
class ColumnPlace:
    """A column of a table."""

    name: str
    type: ColumnType
    encoding: str
    pieces: list[Piece] = field(default_factory=list)
    packed_bits: int = 0
    base: int = 0
    """Packed: what 0 stands for."""
    divisor: float = 0.0
    """Packed: floating-point numbers are so many times smaller; 0: they are integers."""

    @property
    def nullable(self) -> bool:
        return any(piece.validity is not None for piece in self.pieces)

    @property
    def bits(self) -> int:
        """Of a value, where it lies."""
        match self.encoding:
            case "bits":
                return 1
            case "packed":
                return self.packed_bits
            case other:
                return int("".join(letter for letter in other if letter.isdigit()))


def _folder_now() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:  # it is gone
        return ""


@dataclass
class TableLayout:
    """A table in files."""

    name: str
    rows: list[int]
    """Of each piece."""
    columns: list[ColumnPlace]
    refused: dict[str, str] = field(default_factory=dict)
    """Columns that cannot be used, and why."""
    owner: Any = None
    """Kept as long as the table: what removes temporary files when it goes."""
    stored: dict[str, VolumeFile] = field(default_factory=dict)
    """Of pieces that lie on a volume the files, by their paths."""
    folder: str = field(default_factory=_folder_now)
    """To which paths are relative: files are opened by the first query, wherever the process is then."""
    states: dict[str, FileState | None] = field(default_factory=dict)
    """Of files of pieces that were looked through, before they were."""

    @property
    def total(self) -> int:
        return sum(self.rows)

    def native(self, whole_files: bool) -> tuple[list[Any], list[int], list[Any]]:
        """Extents, rows of pieces, and columns, for the engine.

        Args:
            whole_files: An extent for each file; else one for each piece, so that what is copied next to the
                kernels is what is used.
        """
        extents: dict[tuple[str, int], int] = {}
        sizes: list[int] = []

        def place(piece: Piece) -> tuple[int, int]:
            key = (piece.path, 0 if whole_files else piece.offset)
            number = extents.setdefault(key, len(extents))
            if number == len(sizes):
                sizes.append(0)
            sizes[number] = max(sizes[number], piece.offset + piece.nbytes - key[1])
            return number, piece.offset - key[1]

        columns = []
        for column in self.columns:
            pieces = []
            for piece in column.pieces:
                extent, offset = place(piece)
                valid: tuple[Any, Any, Any] = (None, None, None)
                if piece.validity is not None:
                    valid = (*place(piece.validity), piece.validity.first_bit)
                pieces.append((extent, offset, piece.first_bit, *valid))
            number = ENCODINGS.index(column.encoding)
            columns.append(
                (column.name, number, column.packed_bits, column.base & (1 << 64) - 1, pieces, column.divisor)
            )
        listed = [
            (self._where(path), first, size, self.stored.get(path))
            for ((path, first), size) in zip(extents, sizes, strict=True)
        ]
        return listed, list(self.rows), columns

    def _where(self, path: str) -> str:
        return path if path in self.stored else str(Path(self.folder, path))


def check_names(names: Iterable[str], where: str) -> None:
    """Refuses a name that stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"open {where}: two columns are called {name!r}: rename one")
        seen.add(name)

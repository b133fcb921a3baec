"""Where an array lies in a file, and what all formats check of it."""

from __future__ import annotations

import io
import math
import operator
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.arrays.messages import shown, shown_path
from penstock.sizes import LIMIT
from penstock.volume.names import is_volume, open_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.arrays.converted import Conversion
    from penstock.arrays.dtypes import DType

MAX_DIMENSIONS = 32  # NumPy 1.26 has no more
_MAX_LISTED = 8
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Layout:
    """An array in C order, `offset` bytes into a file."""

    path: str  # as the user gave it
    shape: tuple[int, ...]
    dtype: DType
    offset: int = 0
    name: str | None = None  # of the tensor, column or dataset, where the file has names
    stored: DType | None = None  # what its header calls the elements; None: a raw file, which has no header
    data: str | None = None  # the file that its bytes are in, where that is another: a shard, a chunk, a copy
    fixed: str | None = None  # why nothing may be stored there
    conversion: Conversion | None = field(default=None, compare=False)  # what makes `data`

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def checked_sizes(what: str, shape: Any) -> tuple[int, ...]:
    """A shape of whole numbers from 0, from a sequence or one number. TypeError and ValueError."""
    try:
        sizes = tuple(operator.index(n) for n in (shape if hasattr(shape, "__iter__") else (shape,)))
    except TypeError:
        raise TypeError(f"{what}: shape {shown(shape)}: give whole numbers") from None
    if any(n < 0 for n in sizes):
        raise ValueError(f"{what}: shape {shown(sizes)}: give numbers from 0")
    if len(sizes) > MAX_DIMENSIONS:
        raise ValueError(f"{what}: it has {len(sizes)} dimensions: give {MAX_DIMENSIONS} at most")
    return sizes


def check_shape(what: str, shape: tuple[int, ...], itemsize: int) -> None:
    """ValueError for a shape that has no rows of elements. what: the operation and its object."""
    if not shape:
        raise ValueError(f"{what}: it has no dimensions: an array needs at least one")
    row = math.prod(shape[1:])
    if row == 0:
        raise ValueError(f"{what}: rows of shape {shown(shape[1:])} have no elements: give at least one")
    if row * itemsize >= LIMIT or shape[0] >= LIMIT:
        raise ValueError(
            f"{what}: shape {shown(shape)}: more bytes than can be addressed: give fewer or shorter rows"
        )


def opened(path: str) -> IO[bytes]:
    """The file to read, or the beginning of one on a volume, as much as a header has."""
    return io.BytesIO(open_file(path).read(0, _HEAD_BYTES)) if is_volume(path) else Path(path).open("rb")


def bytes_of(path: str) -> int:
    if is_volume(path):
        return open_file(path).size
    with Path(path).open("rb") as file:  # its end, and not stat: of a block device, too
        return file.seek(0, os.SEEK_END)


def checked(found: Layout) -> Layout:
    """The same. ValueError unless the file has all of it."""
    there = bytes_of(found.data or found.path)
    if found.offset + found.nbytes > there:
        inside = "" if found.data is None else f"{shown(Path(found.data).name)}: "
        remedy = "correct the layout" if found.stored is None else "write it anew, or correct its header"
        raise ValueError(
            f"open {shown_path(found.path)}: {inside}{found.dtype} of shape {shown(found.shape)} from byte "
            f"{shown(found.offset)} needs {shown(found.offset + found.nbytes)} bytes, and the file has "
            f"{there}: {remedy}"
        )
    return found


def chosen(path: str, name: str | None, names: Sequence[str], what: str) -> str:
    """The one of this name, or the only one. ValueError for none, and for one that is there twice."""
    where = f"open {shown_path(path)}"
    if name is None and len(names) == 1:
        return names[0]
    if not names:
        raise ValueError(f"{where}: it has no {what}: name a file that has some")
    if name is None or name not in names:
        listed = ", ".join(shown(n)[:40] for n in names[:_MAX_LISTED])
        listed += ", ..." if len(names) > _MAX_LISTED else ""
        wrong = "" if name is None else f"there is no {shown(name)} in it: "
        has = f"1 {what[:-1]}: name it" if len(names) == 1 else f"{len(names)} {what}: name one of them"
        raise ValueError(f"{where}: {wrong}it has {has} ({listed})")
    if names.count(name) > 1:
        raise ValueError(
            f"{where}: {names.count(name)} of its {what} are called {shown(name)}: rename all but one"
        )
    return str(name)


def needed(module: str, path: str, what: str, extra: str) -> Any:
    """An optional library. ValueError where it is not installed."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ValueError(
            f"open {shown_path(path)}: {package} is needed to read {what}: pip install penstock[{extra}]"
        ) from None

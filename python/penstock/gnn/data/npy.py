"""Headers of .npy files, reads of them in pieces, and files that several threads write at once.

Nothing is mapped: a file that another process cuts short is an error here, and would end the process there.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock.errors import Error

if TYPE_CHECKING:
    from typing_extensions import Self

DATA_OFFSET = 4096  # of a header: rows of 512 bytes or 4 KiB then lie in as few blocks of a drive as can be
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Npy:
    """An array in a file."""

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    """Bytes before the first number."""
    fortran: bool = False
    """Whether columns lie one after another."""

    @property
    def rows(self) -> int:
        return self.shape[0] if self.shape else 1

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def missing(path: Path, remedy: str) -> Error:
    """A FileNotFoundError."""
    return Error(f"open {path}: there is no such file: {remedy}", errno.ENOENT)


def read_npy(path: Path, remedy: str = "write it anew") -> Npy:
    """Facts of a .npy file from its header and its size.

    Raises:
        penstock.Error: It is missing or cannot be read.
        ValueError: It is damaged, or holds what is no array of numbers.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would wait for a writer
            raise ValueError(f"open {path}: it is no file: {remedy}")
        with path.open("rb") as file:
            facts = parse_header(file, path, 0, remedy)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise missing(path, remedy) from None
    except OSError as problem:
        raise unread(path, problem) from problem
    if size < facts.offset + facts.nbytes:
        raise ValueError(
            f"open {path}: it has {size} bytes, not the {facts.offset + facts.nbytes} of its header: {remedy}"
        )
    return facts


def parse_header(file: IO[bytes], path: Path, start: int, remedy: str) -> Npy:
    """Facts of the array whose header `file` stands at; `start` is where that is in `path`.

    Raises:
        ValueError: There is no header of version 1 or 2, or it is of objects.
    """
    begin = file.tell()
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise ValueError(f"its version is {version[0]}.{version[1]}")
        if any(length < 0 for length in shape):
            raise ValueError(f"its shape is {shape}")
    except OSError:
        raise
    except Exception as problem:  # what NumPy raises for damaged headers is anything
        reason = " ".join(str(problem).split())[:120].rstrip(".")
        raise ValueError(f"open {path}: it is no .npy file ({reason}): {remedy}") from None
    if dtype.hasobject or dtype.kind not in "biuf":
        raise ValueError(f"open {path}: it holds {dtype}, which are no numbers: {remedy}")
    return Npy(path, dtype, tuple(shape), start + file.tell() - begin, fortran and len(shape) > 1)


def unread(path: Path, problem: OSError) -> Error:
    code = problem.errno or errno.EIO
    return Error(f"read {path}: {os.strerror(code)}: check the file and its drive", code)


def read_pieces(facts: Npy, rows: int) -> Iterator[tuple[int, Array]]:
    """The array some rows at a time, with the number of the first; at most `rows` of them.

    Raises:
        penstock.Error: It cannot be read, or ends early.
    """
    columns = facts.fortran and math.prod(facts.shape[1:]) > 1
    try:
        with facts.path.open("rb", buffering=0) as file:
            for first in range(0, facts.rows, rows):
                count = min(rows, facts.rows - first)
                if columns:
                    yield first, _read_columns(file.fileno(), facts, first, count)
                else:
                    piece = np.empty((count, *facts.shape[1:]), facts.dtype)
                    read_at(file.fileno(), piece, facts.offset + first * facts.row_bytes, facts.path)
                    yield first, piece
    except FileNotFoundError as problem:
        raise missing(facts.path, "write it anew") from problem


def _read_columns(handle: int, facts: Npy, first: int, count: int) -> Array:
    width = math.prod(facts.shape[1:])
    piece = np.empty((width, count), facts.dtype)
    for column in range(width):
        place = facts.offset + (column * facts.rows + first) * facts.dtype.itemsize
        read_at(handle, piece[column], place, facts.path)
    rows: Array = piece.T
    return rows


def read_at(handle: int, out: Array, offset: int, path: Path) -> None:
    """Fill `out`, which is contiguous, with the bytes from `offset` on.

    Raises:
        penstock.Error: They cannot be read.
    """
    view = out.reshape(-1).view(np.uint8).data
    done = 0
    try:
        while done < len(view):
            got = os.preadv(handle, [view[done : done + (1 << 30)]], offset + done)
            if got == 0:
                raise Error(f"read {path}: it ends early: write it anew", errno.EIO)
            done += got
    except OSError as problem:
        if isinstance(problem, Error):
            raise
        raise unread(path, problem) from problem


class NpyWriter:
    """A new .npy file of known shape. Threads may `put` rows in any order; `add` puts them one after another.

    OSErrors of the system leave it as they are: who made the folder names it in the sentence.
    """

    def __init__(self, path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), shape
        self._row_bytes = math.prod(shape[1:]) * self.dtype.itemsize
        self._added = 0
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        os.pwrite(self._handle, header(self.dtype, shape), 0)

    def put(self, row: int, values: Array) -> None:
        """Write rows from `row` on; values are converted to the file's dtype."""
        view = np.ascontiguousarray(values, self.dtype).reshape(-1).view(np.uint8).data
        place, done = DATA_OFFSET + row * self._row_bytes, 0
        while done < len(view):
            done += os.pwrite(self._handle, view[done : done + (1 << 30)], place + done)

    def add(self, values: Array) -> None:
        self.put(self._added, values)
        self._added += len(values)

    def fill(self) -> None:
        """Make all rows zeros, which takes no room on most file systems."""
        os.ftruncate(self._handle, DATA_OFFSET + self.shape[0] * self._row_bytes)

    def set_rows(self, rows: int) -> None:
        """Write the header anew, for a file whose length was not known before."""
        self.shape = (rows, *self.shape[1:])
        os.pwrite(self._handle, header(self.dtype, self.shape), 0)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Of a .npy file of version 1, padded with spaces to DATA_OFFSET bytes."""
    fields = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    start = b"\x93NUMPY\x01\x00" + (DATA_OFFSET - 10).to_bytes(2, "little")
    return start + fields.ljust(DATA_OFFSET - 11) + b"\n"


def write_npy(path: Path, values: Array) -> None:
    with NpyWriter(path, values.dtype, values.shape) as writer:
        writer.put(0, values)

"""`.npy` files as reordering reads and writes them: mapped, and by threads in any order."""

from __future__ import annotations

import errno
import math
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penstock.arrays.layout import find_layout
from penstock.arrays.messages import naming, shown_path, system_error

if TYPE_CHECKING:
    from typing_extensions import Self

Values = NDArray[Any]

_DATA_OFFSET = 4096  # of a header: rows of 512 bytes or 4 KiB then lie in as few blocks of a drive as can be


def mapped(path: Path) -> Values:
    """The array of a .npy file, read-only."""
    if path.is_symlink() and not path.exists():
        raise system_error(
            f"open {shown_path(str(path))}: it links to {shown_path(str(path.readlink()))}, and there is no "
            "such file: put that file back",
            errno.ENOENT,
        )
    layout = find_layout(path)
    if layout.nbytes == 0:
        return np.empty(layout.shape, layout.dtype.numpy)
    with naming("open", str(path)), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < layout.offset + layout.nbytes:
            raise ValueError(f"it has {size} bytes, and its header needs more: make the dataset anew")
        memory = mmap.mmap(file.fileno(), layout.offset + layout.nbytes, prot=mmap.PROT_READ)
    flat = np.frombuffer(memory, layout.dtype.numpy, math.prod(layout.shape), layout.offset)
    return flat.reshape(layout.shape)


def map_of(values: Values) -> mmap.mmap | None:
    """What `mapped` made an array of."""
    owner: Any = values
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, mmap.mmap) else None


def advise(memory: mmap.mmap, advice: int, first: int, count: int) -> None:
    with suppress(OSError):  # a file system that takes no advice
        memory.madvise(advice, first, count)


class NpyFile:
    """A new .npy file of known shape, whose rows threads write in any order."""

    def __init__(self, path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
        self._dtype = np.dtype(dtype)
        self._row_bytes = math.prod(shape[1:]) * self._dtype.itemsize
        fields = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        head = np.lib.format.magic(1, 0) + (_DATA_OFFSET - 10).to_bytes(2, "little")
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.pwrite(self._handle, head + repr(fields).encode("ascii").ljust(_DATA_OFFSET - 11) + b"\n", 0)
        except BaseException:
            os.close(self._handle)
            raise

    def put(self, row: int, values: Values) -> None:
        """Write rows from `row` on; raw bytes are taken as they are, numbers become the file's type."""
        if values.dtype != np.uint8:
            values = np.ascontiguousarray(values, self._dtype)
        view = values.reshape(-1).view(np.uint8).data
        place, done = _DATA_OFFSET + row * self._row_bytes, 0
        while done < len(view):
            done += os.pwrite(self._handle, view[done : done + (1 << 30)], place + done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

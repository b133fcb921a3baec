"""What an array is, and the native array that it has open, in this process and in one forked from it."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import TYPE_CHECKING, Any

from penstock.arrays.base import ArrayBase
from penstock.arrays.borrower import Borrower
from penstock.arrays.exports import CUDA
from penstock.arrays.size import Size
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    import weakref

    from penstock._native import RowArray
    from penstock.arrays.dtypes import DType
    from penstock.arrays.exports import View
    from penstock.arrays.libraries import Library
    from penstock.arrays.spec import Opened


class ArrayState(Borrower, ArrayBase):
    """The facts of an array, and the way to its native array."""

    _cuda: bool
    _library: Library
    _name: str
    _row_shape: tuple[int, ...]
    _kind: Any
    _written_by_parent = False  # it is a process that was forked
    _views: weakref.WeakSet[View]  # by which its memory is stored into

    @property
    def shape(self) -> tuple[int, ...]:
        return self._opened.shape

    @property
    def dtype(self) -> DType:
        return self._opened.dtype

    @property
    def placement(self) -> str:
        return self._opened.placement

    @property
    def path(self) -> str | None:
        """Of the file that it lies in; None for memory."""
        return self._opened.path

    @property
    def writable(self) -> bool:
        return self._opened.writable

    @property
    def opened(self) -> Opened:
        """All that it takes to open it again."""
        return self._opened

    @property
    def on_gpu(self) -> bool:
        """Whether its kernels run, and its results lie, on a GPU."""
        return self._cuda

    @property
    def device(self) -> Any:
        """Where its results lie: a torch.device where results are tensors, else "cpu" or "cuda:0"."""
        return self._library.device

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def device_name(self) -> str:
        """The CPU or GPU that its kernels run on, in words."""
        return str(self._executor.device)

    @property
    def row_shape(self) -> tuple[int, ...]:
        return self._row_shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        """As of a tensor."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements, as NumPy has it; called, the shape or its element `dim`, as of a tensor."""
        return Size(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        where = f", {self.path!r}" if self.path is not None else ""
        state = "closed" if self._native is None else f"placement={self.placement!r}"
        size = format_bytes(self.nbytes)
        return f"penstock.Array(shape={self.shape}, dtype={self.dtype}, {state}, {size}{where})"

    @property
    def over_read_only_memory(self) -> bool:
        """Of somebody else's, which no store may reach."""
        return self._borrowed is not None and not self.writable

    @property
    def gpu_device(self) -> tuple[int, int]:
        """As DLPack names it."""
        return CUDA, self._executor.gpu

    # Inside

    def _open(self) -> RowArray:
        if self._native is None:
            raise ValueError(f"{self!r}: it is closed: open it again")
        if self._process != os.getpid():
            self._reopen()
        if self._borrowed is not None and self._borrowed.moved:
            self._follow(self._borrowed)
        return self._native

    def _reopen(self) -> None:
        """In a forked process: neither CUDA nor another process's threads live on there."""
        if self._cuda:
            raise ValueError(
                f"{self!r}: this process was forked from the one that opened it, and CUDA does not survive "
                "that: start workers with 'spawn', or open the array in the worker with device='cpu'"
            )
        if self._opened.path is not None and self._opened.writable:
            self._opened, self._written_by_parent = self._as_seen_by_a_reader(), True
        self._executor = self._opened.executor
        self._native, self._ahead = self._opened.make(self._executor), None
        self._left.clear()
        self._process = os.getpid()

    def _as_seen_by_a_reader(self) -> Opened:
        """The writer is the process that this one was forked from."""
        if self.placement != "host":
            raise ValueError(
                f"{self!r}: this process was forked from the one that writes to it, and does not see that "
                "one's cache: flush there, and open it read-only here"
            )
        return dataclasses.replace(self._opened, writable=False)

    def _addresses(self) -> range:
        """Of the memory that its rows are read from, where they are not in a file alone."""
        begin = self._open().kernel_address
        if not begin and self._borrowed is not None:
            begin = self._borrowed.address
        return range(begin, begin + self.nbytes if begin else 0)

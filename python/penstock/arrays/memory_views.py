"""The memory that an array lies in, for others, without a copy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.exports import HOST_DEVICE, View, export_from_gpu, export_from_host
from penstock.arrays.state import ArrayState

if TYPE_CHECKING:
    from penstock import _native


_MAX_DIMENSIONS = 6  # of a descriptor (include/penstock/kernels/descriptor.hpp)


class MemoryViews(ArrayState):
    """The whole array as a tensor, a NumPy array and a DLPack capsule, and for kernels of others."""

    _lent: tuple[_native.RowArray, _native.RowBuffer] | None = None

    def tensor(self) -> Any:
        """The whole array as a torch tensor, without a copy: on the GPU, over its own memory for placement
        hbm and over mapped host memory for placement host, so that any torch operator takes it in place
        (the unified tensor of the zero-copy dissertation, Listing 3.1). It keeps this array's memory.

        What is stored into the tensor of a file that was opened read-only stays in that tensor's memory: the
        file and the rows of this array do not change. (On a GPU it must not be stored into.)

        Errors: ValueError for an array behind a cache, one over read-only memory, for torch knows no such
        tensors, or one whose numbers are not aligned to their size, which kernels cannot take (on the CPU
        they can); penstock.Error for a file that is shorter than the array.
        """
        import torch

        native = self._open()
        if self._cuda and native.kernel_address % self.dtype.itemsize:
            raise ValueError(
                f"{self!r}: its numbers are not aligned to their size, as torch needs them: take rows of it"
            )
        if self._cuda:
            whole = torch.as_tensor(self.mapped(), device=self.device)
        elif self.over_read_only_memory:
            raise ValueError(
                f"{self!r}: its memory is read-only, and no tensor is: take rows of it, or numpy()"
            )
        elif self._borrowed is not None and is_torch(self._borrowed.memory):
            self._check_in_memory(native)
            whole = self._borrowed.memory.detach()  # of its storage: it goes along where torch moves that
        else:
            whole = torch.from_numpy(np.asarray(self.storable(writable=True)))
        kind = getattr(torch, self.dtype.name)
        return whole if whole.dtype == kind else whole.view(kind)

    def check_file(self) -> None:
        """Raises penstock.Error if the file that the array lies in is shorter than the array, or was while it
        was read: what was read of it in place (`tensor()`, `numpy()`) may be zeros. Calls of the array check
        it themselves."""
        self._open().check_file()

    def numpy(self) -> Any:
        """The whole array as a NumPy array over its memory, without a copy; read-only if this array is.
        ValueError unless it lies in host memory; penstock.Error for a file that is shorter than the array. Of
        a file that is cut short later it has zeros there: `check_file`, and the next call of this array,
        raise."""
        native = self._open()
        native.check_file()
        if not native.host_address and self.nbytes:
            raise ValueError(f"{self!r}: its bytes are not in host memory: take rows of it")
        if self._borrowed is not None and is_torch(self._borrowed.memory):
            return self._numpy_of_tensor(self._borrowed.memory)
        # torch.from_numpy takes no heed of what is read-only: stores by way of it end in pages of their own
        address = native.host_address if self.writable else native.storable_address
        return np.asarray(View(self, address, self.writable))

    def _numpy_of_tensor(self, tensor: Any) -> Any:
        """By way of torch, which resizes no storage that it has given to NumPy."""
        import torch

        whole = (
            tensor.detach().reshape(-1).view(torch.uint8).numpy().view(self.dtype.numpy).reshape(self.shape)
        )
        whole.flags.writeable = self.writable
        return whole

    def mapped(self) -> View:
        """Its memory as kernels see it."""
        native = self._open()
        self._check_in_memory(native)
        return View(self, native.kernel_address, self._opened.writable)

    @property
    def device_ptr(self) -> int:
        """Address, in memory that kernels reach, of what a kernel of another library takes this array by:
        the pointer that `penstock_load_f32(ptr, i)` and its like take, or a `penstock::array<T> const*`
        (docs/tasks/PYTHON_KERNELS.md). Valid while the array is open; `check_replays` raises what kernels met
        that others launched.

        Errors: ValueError for an array that is closed, or whose numbers are not aligned to their size.
        """
        native = self._open()
        if self._lent is None or self._lent[0] is not native:
            from penstock import _native

            shape = list(self.shape) if self.ndim <= _MAX_DIMENSIONS else [math.prod(self.shape)]
            descriptor = np.frombuffer(
                native.lend_for_good(self.dtype.itemsize, self.writable, shape), np.uint8
            )
            memory = _native.RowBuffer(self._executor, descriptor.nbytes)
            memory.write(descriptor.ctypes.data, descriptor.nbytes)
            self._lent = (native, memory)
        return int(self._lent[1].address)

    def storable(self, *, writable: bool) -> View:
        """Its memory on the CPU, for those who may store there although it is read-only: no file changes."""
        native = self._open()
        self._check_in_memory(native)
        return View(self, native.storable_address, writable)

    def _check_in_memory(self, native: _native.RowArray) -> None:
        native.check_file()
        if not native.kernel_address and self.nbytes:
            raise ValueError(f"{self!r}: its bytes are behind a cache: choose placement hbm or host")

    def __dlpack__(self, **options: Any) -> Any:
        """For `from_dlpack` of NumPy, torch and others: the memory of placements hbm and host. On the CPU it
        is marked read-only if the array is. Where that cannot be marked, or is not heeded, stores stay out of
        the file, as those into `tensor()` do. (On a GPU there must be none.)

        Errors: ValueError as `tensor`; BufferError for another's memory that is read-only, where the
        consumer knows no such memory, and for what DLPack cannot describe.
        """
        return export_from_gpu(self, options) if self._cuda else export_from_host(self, options)

    def __dlpack_device__(self) -> Any:
        return self.gpu_device if self._cuda else HOST_DEVICE

"""The bytes of an array for others, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays import foreign
from penstock.arrays.dtypes import dlpack_type

if TYPE_CHECKING:
    from penstock.arrays.memory_views import MemoryViews

HOST_DEVICE = (1, 0)  # DLPack's kDLCPU
CUDA = 2  # kDLCUDA
NUMPY_MARKS = tuple(int(n) for n in np.__version__.split(".")[:2]) >= (2, 1)  # what is read-only


class View:
    """The array's bytes for those who take an array interface. Keeps the array alive."""

    def __init__(self, array: MemoryViews, address: int, writable: bool) -> None:
        self._array, self._native = array, array._open()  # the memory stays when the array is closed
        if writable:
            array._views.add(self)
        facts = {"shape": array.shape, "typestr": array.dtype.numpy.str, "version": 3, "strides": None}
        facts["data"] = (address if array.nbytes else 0, not writable)
        if array.on_gpu:
            # torch knows no read-only memory, and stores of a kernel to such pages fail by themselves.
            self.__cuda_array_interface__ = {**facts, "data": (facts["data"][0], False)}
        self.__array_interface__ = facts


def export_from_host(array: MemoryViews, options: dict[str, Any]) -> Any:
    """A DLPack capsule of an array on the CPU executor. options: what the consumer gave to `__dlpack__`.

    One that is read-only says so where the consumer asks for a capsule that can (`max_version`, DLPack 1.0).
    Others get memory that may be stored into, and is not the file's. BufferError where there is none such.
    """
    marks = NUMPY_MARKS and _takes_marks(options)
    _refuse_unmarked(array, marks)
    shared = array.storable(writable=array.writable or not marks)
    if array.dtype.numpy.name == array.dtype.name:
        return np.asarray(shared).__dlpack__(**options)
    facts = shared.__array_interface__
    address, read_only = facts["data"]
    return share(shared, address, array, HOST_DEVICE, read_only=read_only).__dlpack__(**options)


def export_from_gpu(array: MemoryViews, options: dict[str, Any]) -> Any:
    """The same of an array on a GPU. Torch, where it is, knows which of its streams have work there; without
    it nothing is under way once a call of this array has returned. Only another's read-only memory is marked,
    as View has it. BufferError also for numbers that are not aligned to their size."""
    if foreign.has_torch():
        return array.tensor().__dlpack__(**options)
    _refuse_unmarked(array, _takes_marks(options))
    mapped = array.mapped()
    address = mapped.__cuda_array_interface__["data"][0]
    if address % array.dtype.itemsize:
        raise BufferError(f"{array!r}: its numbers are not aligned to their size: take rows of it")
    shared = share(mapped, address, array, array.gpu_device, read_only=array.over_read_only_memory)
    return shared.__dlpack__(**options)


def share(owner: Any, address: int, like: Any, device: tuple[int, int], *, read_only: bool) -> Any:
    """Something with `__dlpack__` over memory of the shape and dtype of `like`, which keeps its owner."""
    from penstock import _native

    code, bits = dlpack_type(like.dtype)
    return _native.dlpack_memory(owner, address, like.shape, code, bits, device, read_only)


def _takes_marks(options: dict[str, Any]) -> bool:
    return (options.get("max_version") or (0, 0)) >= (1, 0)


def _refuse_unmarked(array: MemoryViews, marks: bool) -> None:
    if array.over_read_only_memory and not marks:
        raise BufferError(f"{array!r}: its memory is read-only, which only DLPack 1.0 marks: take rows of it")

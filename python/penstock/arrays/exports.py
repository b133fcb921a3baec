"""The bytes of an array for others, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays import libraries

if TYPE_CHECKING:
    from penstock.arrays.array import Array

HOST_DEVICE = (1, 0)  # DLPack's kDLCPU
NUMPY_MARKS = tuple(int(n) for n in np.__version__.split(".")[:2]) >= (2, 1)  # what is read-only


class View:
    """The array's bytes for those who take an array interface. Keeps the array alive."""

    def __init__(self, array: Array, address: int, writable: bool) -> None:
        self._array, self._native = array, array._open()  # the memory stays when the array is closed
        facts = {"shape": array.shape, "typestr": array.dtype.numpy.str, "version": 3, "strides": None}
        facts["data"] = (address if array.nbytes else 0, not writable)
        if array.on_gpu:
            # torch knows no read-only memory, and stores of a kernel to such pages fail by themselves.
            self.__cuda_array_interface__ = {**facts, "data": (facts["data"][0], False)}
        self.__array_interface__ = facts


def export_from_host(array: Array, options: dict[str, Any]) -> Any:
    """A DLPack capsule of an array on the CPU executor. options: what the consumer gave to `__dlpack__`.

    One that is read-only says so where the consumer asks for a capsule that can (`max_version`, DLPack 1.0).
    Others get memory that may be stored into, and is not the file's. BufferError where there is none such, or
    no such type.
    """
    if array.dtype.numpy.name != array.dtype.name:
        if not libraries.has_torch():
            raise BufferError(f"{array!r}: DLPack tells of {array.dtype} by torch alone: take rows of it")
        return array.tensor().__dlpack__(**options)
    marks = NUMPY_MARKS and (options.get("max_version") or (0, 0)) >= (1, 0)
    if array.over_read_only_memory and not marks:
        raise BufferError(f"{array!r}: its memory is read-only, which only DLPack 1.0 tells: take rows of it")
    return np.asarray(array.storable(writable=array.writable or not marks)).__dlpack__(**options)

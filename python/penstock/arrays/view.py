"""The bytes of an array for others, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.arrays.array import Array


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

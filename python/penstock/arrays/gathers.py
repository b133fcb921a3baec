"""Gathers under way, and several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.arrays.base import is_array
from penstock.arrays.foreign import handle_of
from penstock.arrays.messages import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock import _native
    from penstock.arrays.array import Array
    from penstock.arrays.calls import Calls


class GatherHandle:
    """A gather under way. The result is complete once `wait` has returned."""

    def __init__(self, array: Calls, rows: Any, result: Any, call: _native.RowCall) -> None:
        self._array, self._rows, self._result = array, rows, result
        self._call: _native.RowCall | None = call
        self._bad: int | None = None  # once it was waited for

    def wait(self) -> Any:
        """Waits, and gives the rows. IndexError names the first position that is out of range; penstock.Error
        names what could not be read."""
        call = self._call
        if call is not None:
            self._bad = call.wait()
            self._call = None  # it keeps the array's file
        self._array._check("gather from", self._rows, self._bad)
        return self._result

    def order_before(self, stream: Any) -> Any:
        """Make a CUDA stream wait for the rows, and not this thread. Return them; what failed is raised by
        `wait` alone."""
        handle, call = handle_of(stream), self._call
        if call is not None:
            call.order_before(handle)
        return self._result


def gather_all(wanted: Sequence[tuple[Array, Any]], *, stream: Any = None, sms: int = 0) -> list[Any]:
    """Rows of several arrays at once: for each pair of an array and row numbers what `array.gather(rows)`
    gives. On a GPU those of arrays in memory share one kernel, but for the very many rows that are sorted
    first; all run on one stream, and are waited for together. sms: as for `Array.gather`.

    Errors: TypeError for what are no such pairs; ValueError for arrays of different devices; else as
    `Array.gather`, of the first pair that is at fault.
    """
    try:
        arrays = [array for array, _ in wanted]
    except (TypeError, ValueError):
        raise TypeError("gather_all: give pairs of an array and row numbers") from None
    for array in arrays:
        if not is_array(array):
            raise TypeError(f"gather_all: {shown(array)}: give pairs of an array and row numbers")
    for array in arrays:
        array._open()
    if len({array._executor for array in arrays}) > 1:
        raise ValueError("gather_all: the arrays are on different devices: gather from those of each")
    natives, places, results, numbers = [], [], [], []
    for array, rows in wanted:
        native, at, taken, result = array._asked(rows, stream, None, sms)
        natives.append(native)
        places.append(at)
        numbers.append(taken)
        results.append(result)
    from penstock import _native

    addresses = [array._library.address(result) for array, result in zip(arrays, results, strict=True)]
    calls = _native.RowArray.gather_all(natives, places, addresses)
    bad = [call.wait() for call in calls]
    for array, taken, position in zip(arrays, numbers, bad, strict=True):
        if position is not None:
            array._refuse("gather from", taken, position)
    return results

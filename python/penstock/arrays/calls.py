"""Calls of the native array: the rows that they name, and what was wrong with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.foreign import shown_number
from penstock.arrays.keys import checked_sms
from penstock.arrays.selection import select
from penstock.arrays.state import ArrayState

if TYPE_CHECKING:
    from penstock import _native
    from penstock.arrays.libraries import Library
    from penstock.arrays.selection import Selection

_MOST_LEFT = 4  # calls that nobody waited for


def range_of(library: Library, made: Any) -> range:
    begin = library.address(made)
    return range(begin, begin + library.nbytes(made))


class Calls(ArrayState):
    """What gathers, prefetches and stores of an array have in common. Calls that nobody has waited for are
    left with it."""

    # The rows

    def _numbers(self, rows: Any) -> Any:
        """Row numbers as kernels take them."""
        return self._library.rows(np.arange(len(self))[rows] if isinstance(rows, slice) else rows)

    def _at(self, numbers: Any, stream: int, sms: int, negative_indices: bool = True) -> _native.RowsAt:
        from penstock import _native

        library = self._library
        at, count = library.address(numbers), math.prod(numbers.shape)
        return _native.RowsAt(
            at, count, library.item_bytes(numbers), stream, checked_sms(sms), negative_indices
        )

    def _rows_at(self, rows: Any, stream: int, sms: int) -> tuple[_native.RowsAt, Any]:
        """The same for the native array, of a slice without a list."""
        if isinstance(rows, slice):
            return self._at_selected(select(rows, self), stream, sms)
        numbers = self._library.rows(rows)
        return self._at(numbers, stream, sms), numbers

    def _at_selected(self, chosen: Selection, stream: int, sms: int = 0) -> tuple[_native.RowsAt, Any]:
        """For the native array, and the list of numbers that this has, if any."""
        from penstock import _native

        c, library = chosen, self._library
        if c.numbers is None:
            first = 0 if 0 in c.shape else c.first  # of nothing it may be -1
            return _native.RowsAt.grid(first, list(c.loops), c.pitch, c.piece, stream, sms), None
        numbers = library.rows(c.numbers)
        at, count, size = library.address(numbers), math.prod(numbers.shape), library.item_bytes(numbers)
        return _native.RowsAt.parts(at, count, size, stream, sms, c.pitch, c.offset, c.piece), numbers

    # What came of them

    def check_errors(self) -> None:
        """Wait for the gathers and scatters that were made with `wait=False`, and raise what was wrong with
        the first of them that failed. A call that waits raises it, too, and so do `flush` and `close`;
        a few of these calls may be under way, and one more waits for the oldest.

        Errors: IndexError and penstock.Error as those calls.
        """
        self._open()
        self._tell_left()

    def check_replays(self, *, stream: Any = None) -> None:
        """Raise what replays of CUDA graphs have met that captured calls of this array. Waits for the stream
        that they went to, the current one of torch unless one is given.

        Errors: IndexError names the lowest position out of range in any of those calls since this was last
        asked; penstock.Error names what could not be read; ValueError while the stream is being captured.
        """
        native = self._open()
        with self._library.on(stream) as handle:
            bad = native.check_replays(handle)
        native.check_file()
        if bad is not None:
            raise IndexError(
                f"a replayed call on {self!r}: the index at position {bad} was out of range: "
                f"it has {len(self)} rows"
            )

    def _leave(self, what: str, numbers: Any, call: _native.RowCall, memory: Any, stream: Any) -> None:
        """Leave the outcome of a call to be raised later. memory: that it reads or fills, kept where another
        owner might have it before."""
        if not self._cuda:  # it is over
            self._finish(what, numbers, call)
            return
        kept = None if stream is None and self._library.reuses_in_order else memory
        self._left.append((what, numbers, call, kept))
        self._tell_left(_MOST_LEFT)

    def _tell_left(self, most: int = 0) -> None:
        left = self._left
        while len(left) > most:
            try:
                what, numbers, call, _ = left.popleft()
            except IndexError:  # another thread had it
                return
            self._finish(what, numbers, call)

    def _settle(self) -> None:
        """Wait for the last prefetch, and raise what was wrong with it."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._finish("prefetch from", *ahead)

    def _finish(self, what: str, numbers: Any, call: _native.RowCall) -> None:
        self._check(what, numbers, call.wait())

    def _check(self, what: str, numbers: Any, bad: int | None) -> None:
        if bad is not None:
            self._refuse(what, numbers, bad)

    def _refuse(self, what: str, numbers: Any, bad: int) -> None:
        if numbers is None:  # of a kernel, which names elements
            elements = math.prod(self.shape)
            named = "a negative element" if bad >= 2**63 else f"element {bad}"
            raise IndexError(f"{what} {self!r}: {named} is out of range: it has {elements} elements")
        shape = tuple(numbers.shape)
        position = tuple(int(k) for k in np.unravel_index(bad, shape))
        shown = position[0] if len(position) == 1 else position
        index = shown_number(self._library.item(numbers, bad))
        raise IndexError(
            f"{what} {self!r}: index {index} at position {shown} is out of range: it has {len(self)} rows"
        )

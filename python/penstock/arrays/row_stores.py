"""Stores into rows of an array: scatters, sums, and values by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from penstock.arguments import is_torch, reading
from penstock.arrays.adding import add_by_copies
from penstock.arrays.calls import Calls, range_of
from penstock.arrays.selection import select
from penstock.arrays.values import cast_values, values_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.arrays.array import Array

_STORED_BYTES = 64 << 20  # made at once of values that repeat


class RowStores(Calls):
    """Writing of an array."""

    before_store: Callable[[], None] | None  # what a table numbers its changes by

    def scatter(
        self,
        rows: Any,
        values: Any,
        *,
        reduce: str | None = None,
        stream: Any = None,
        sms: int = 0,
        wait: bool = True,
    ) -> None:
        """Stores `values[k]` in row `rows[k]`; with reduce="add" adds it, and repeats add up (4- and 8-byte
        numbers). Of rows named twice without reduce one value or the other is kept. Numbers that do not lie
        aligned, as in some raw files, are added to by way of copies: slower, and not in a CUDA graph. wait:
        as for `gather`; whatever reads rows on the same stream finds them stored.

        Errors: ValueError for an array that was opened read-only, or values of another shape; TypeError for
        another dtype; IndexError as `gather`, after which the rows in range have been stored.
        """
        native = self._open()
        if reduce not in (None, "add"):
            raise ValueError(f"reduce {reduce!r}: choose None or 'add'")
        self._check_writable()
        library = self._library
        with library.on(stream) as handle, reading("scatter to an array", rows, values):
            numbers = self._numbers(rows)
            if not hasattr(values, "dtype"):
                values = cast_values(values, self.dtype)
            stored = self._stored(values, (*numbers.shape, *self._row_shape))
            if self.before_store is not None:
                self.before_store()
            if reduce == "add" and not native.adds_in_place(self.dtype.name):
                self._check(
                    "scatter to",
                    numbers,
                    add_by_copies(cast("Array", self), numbers, stored, stream=stream, sms=sms),
                )
                return
        at, address = self._at(numbers, handle, sms), library.address(stored)
        call = native.scatter(at, address) if reduce is None else native.add(at, self.dtype.name, address)
        if not wait:
            self._leave("scatter to", numbers, call, stored, stream)
            return
        self._finish("scatter to", numbers, call)
        self._tell_left()

    def __setitem__(self, key: Any, values: Any) -> None:
        """Stores values, repeated to the shape that the key selects as NumPy does it. Arrays and tensors are
        cast as by `casting="same_kind"`, Python's numbers where they fit. Of what a key names twice one value
        or the other is kept.

        Errors: IndexError as `array[key]`; TypeError for values of another kind, ValueError for those that do
        not fit; else as `scatter`.
        """
        native = self._open()
        self._check_writable()
        with reading("scatter to an array", key, values):
            self._store(key, values, native)
        self._tell_left()

    def _store(self, key: Any, values: Any, native: Any) -> None:
        library = self._library
        values = cast_values(values, self.dtype)
        if isinstance(key, slice) and self._repeats_much(key, values):
            begin, stop, step = key.indices(len(self))
            rows = range(begin, stop, step)
            at_once = max(1, _STORED_BYTES * len(self) // self.nbytes)
            for first in range(0, len(rows), at_once):
                part = rows[first : first + at_once]
                self[part.start : part.stop if part.stop >= 0 else None : step] = values
            return
        chosen = select(key, self, "scatter to")
        values = values_for(values, chosen.shape, self.dtype)
        if 0 in chosen.shape:
            return
        with library.on(None) as handle:
            stored = self._stored(values, chosen.shape)
            if self.before_store is not None:
                self.before_store()
            at, numbers = self._at_selected(chosen, handle)
        self._finish("scatter to", numbers, native.scatter(at, library.address(stored)))

    def _repeats_much(self, key: slice, values: Any) -> bool:
        """Whether the same values go to each of so many rows that they should not all be made."""
        rows = len(range(*key.indices(len(self))))
        each = values.shape[0] != 1 if len(values.shape) >= self.ndim else False
        return not each and rows > 1 and rows * self.nbytes > _STORED_BYTES * len(self)

    def _check_writable(self) -> None:
        if self.writable:
            return
        remedy = "it was opened read-only: open it with writable=True"
        if self._written_by_parent:
            remedy = "this process was forked from the one that writes to it: store there"
        elif self.path is None:
            remedy = "its memory is read-only: make the array over a copy of it"
        raise ValueError(f"store into {self!r}: {remedy}")

    def _stored(self, values: Any, shape: tuple[int, ...]) -> Any:
        """Values as kernels take them, in memory that the call does not store into."""
        library = self._library
        stored = library.values(values, shape, self.dtype)
        there, mine = range_of(library, stored), self._addresses()
        if max(there.start, mine.start) >= min(there.stop, mine.stop):
            return stored
        return stored.clone() if is_torch(stored) else stored.copy()

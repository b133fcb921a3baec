"""Rows of an array as results: indexing, gathers, and prefetches ahead of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from penstock.arguments import reading
from penstock.arrays.calls import Calls, range_of
from penstock.arrays.gathers import GatherHandle
from penstock.arrays.keys import check_apart, checked_out, checked_sms
from penstock.arrays.messages import shown
from penstock.arrays.selection import select

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMS_ASKING_AHEAD = 32
_ITERATED_BYTES = 1 << 20


class RowReads(Calls):
    """Reading of an array."""

    def __getitem__(self, key: Any) -> Any:
        """Rows, or parts of them, by NumPy's rules: integers, slices, `...`, None, boolean masks, and arrays
        of integers of any shape (on the CPU or on the GPU), negative ones from the end, in a tuple for
        several dimensions. What the key names is read and nothing else, and is a copy.

        key: integers alone give a tensor of shape `key.shape + row_shape`. Slices are read as ranges, without
        a list of rows.

        Returns: a tensor of the array's dtype, of the shape that NumPy gives.

        Raises: IndexError for an index out of range, one that is no index, too many of them, and for `True`
        and `False`; penstock.Error for what cannot be read.
        """
        library = self._library
        if library.takes_at_once(key):
            return self._gather_at_once(key)
        if library.traces(key):
            return library.traced_gather(key, self._name, len(self))
        return self._take(key)

    def _take(self, key: Any) -> Any:
        native, library = self._open(), self._library
        library.check_not_recorded("a part of an array")
        with library.on(None) as handle, reading("gather from an array", key):
            chosen = select(key, self)
            result = library.empty(chosen.shape, self.dtype)
            if 0 in chosen.shape:
                return result
            at, numbers = self._at_selected(chosen, handle)
        bad = native.gather_rows(at, library.address(result), "auto")
        self._check("gather from", numbers, bad)
        self._tell_left()
        return result

    def __iter__(self) -> Iterator[Any]:
        """The rows in turn, each a part of a batch that is taken at once."""
        row_bytes = self.nbytes // max(1, len(self))
        rows = max(1, _ITERATED_BYTES // row_bytes) if self._library.iterates else 1
        for first in range(0, len(self), rows):
            if rows == 1:
                yield self[first]
            else:
                yield from self[first : first + rows]

    def __getitems__(self, keys: list[int]) -> Any:
        """For torch.utils.data: a whole batch at once."""
        return list(self.gather(keys))

    def gather(
        self,
        rows: Any,
        *,
        out: Any = None,
        stream: Any = None,
        sms: int = 0,
        order: str = "auto",
        negative_indices: bool = True,
        wait: bool = True,
    ) -> Any:
        """The rows with these numbers, in this order; repeats are read once where that is faster.

        out: a contiguous result to fill, of the right shape and dtype, on the right device, which shares no
        memory with `rows` or the array. stream: a CUDA
        stream (or its handle) to run on; the current one of torch otherwise. sms: at most so many
        multiprocessors; 0: as many as pay (six saturate a PCIe Gen5 link, all for HBM). order: "by-address"
        sorts first, "as-asked" does not, "copy-engine" makes a transfer of the copy engines for each row
        (wide rows in memory; no multiprocessor is taken), "auto" chooses. negative_indices: negative numbers
        count from the end; without it they are out of range, as torch.nn has it. wait: until they are there.
        Without it a GPU fills the result in the order of the stream, and what was wrong is raised by
        `check_errors`, or by a later call.

        `stream`, `sms` and `order` say how a GPU goes about it, and change no result: the CPU executor takes
        and ignores them, so that one program runs on both, but refuses "copy-engine", which names hardware.

        A CUDA graph may capture all of these but "copy-engine": nothing is waited for, each replay reads
        `rows` anew, rows out of range are left as they were, and `check_replays` raises for them. The
        graph keeps what the calls read until it is destroyed, also after `close`.

        Errors: IndexError names the position of the first index out of range; penstock.Error names what
        could not be read. Source of the sorted order and of aligned loads: the zero-copy dissertation, 3.2
        and 3.3.
        """
        library = self._library
        if isinstance(rows, slice) and out is None and stream is None and wait:
            return self[rows]
        plain = out is None and stream is None and sms == 0 and order == "auto" and wait
        if plain and library.traces(rows):
            return library.traced_gather(rows, self._name, None, negative_indices)
        return self._gather(rows, out, stream, sms, order, negative_indices=negative_indices, wait=wait)

    def _gather(
        self,
        rows: Any,
        out: Any,
        stream: Any,
        sms: int,
        order: str,
        *,
        negative_indices: bool = True,
        wait: bool = True,
    ) -> Any:
        native, library = self._open(), self._library
        if not isinstance(negative_indices, bool):
            raise TypeError(f"negative_indices {shown(negative_indices)}: give True or False")
        if not isinstance(wait, bool):
            raise TypeError(f"wait {shown(wait)}: give True or False")
        shape = rows.shape + self._row_shape if stream is None and library.takes_at_once(rows) else None
        if shape is not None and (out is None or library.fills_at_once(out, shape, self._kind)):
            numbers, handle = rows, library.current_stream()
            result = library.new(shape, self._kind) if out is None else self._apart(out, rows)
        else:
            with library.on(stream) as handle, reading("gather from an array", rows):
                numbers = self._numbers(rows)
                result = self._result(out, (*numbers.shape, *self.row_shape), numbers)
        to = library.address(result)
        if not wait:
            call = native.gather(self._at(numbers, handle, sms, negative_indices), to, order)
            self._leave("gather from", numbers, call, result, stream)
            return result
        at, count, size = library.address(numbers), math.prod(numbers.shape), library.item_bytes(numbers)
        bad = native.gather_now(at, count, size, handle, checked_sms(sms), to, order, negative_indices)
        self._check("gather from", numbers, bad)
        self._tell_left()
        return result

    def _gather_at_once(self, rows: Any) -> Any:
        """The same for what needs no conversion, and few steps: of a gather of few rows they are most."""
        native, library = self._open(), self._library
        result = library.new(rows.shape + self._row_shape, self._kind)
        bad = native.gather_now(
            rows.data_ptr(), rows.numel(), 8, library.current_stream(), 0, result.data_ptr(), "auto"
        )
        if bad is not None:
            self._refuse("gather from", rows, bad)
        if self._left:
            self._tell_left()
        return result

    def gather_async(
        self, rows: Any, *, out: Any = None, stream: Any = None, sms: int = 0, order: str = "auto"
    ) -> GatherHandle:
        """The same, not waited for: the handle's `wait` gives the rows."""
        native, at, numbers, result = self._asked(rows, stream, out, sms)
        call = native.gather(at, self._library.address(result), order)
        return GatherHandle(self, numbers, result, call)

    def _asked(self, rows: Any, stream: Any, out: Any = None, sms: int = 0) -> tuple[Any, Any, Any, Any]:
        """The native array, its view of the rows, the rows, and the result to fill."""
        native, library = self._open(), self._library
        with library.on(stream) as handle, reading("gather from an array", rows):
            numbers = self._numbers(rows)
            shape = (*numbers.shape, *self.row_shape)
            result = self._result(out, shape, numbers)
        return native, self._at(numbers, handle, sms), numbers, result

    def prefetch(self, rows: Any, *, stream: Any = None, wait: bool = True) -> None:
        """Brings the lines of these rows into the cache ahead of a gather; nothing without a cache.

        rows: integers, or a slice.

        wait: until all are asked for; on a GPU until they are there. Without it a GPU brings them in on a
        few multiprocessors beside what comes next, on a stream of Penstock's own unless one is given, and an
        index out of range is raised by the next prefetch.

        Errors: IndexError as `gather`.
        """
        native = self._open()
        self._settle()
        sms = 0 if wait else _SMS_ASKING_AHEAD
        if stream is None and not wait and self._cuda:
            at, numbers = self._rows_at(rows, self._executor.stream, sms)
            self._library.order_after_current(self._executor.stream)
        else:
            with self._library.on(stream) as handle, reading("prefetch from an array", rows):
                at, numbers = self._rows_at(rows, handle, sms)
        call = native.prefetch(at)
        if wait:
            self._finish("prefetch from", numbers, call)
        else:
            self._ahead = numbers, call

    def _result(self, out: Any, shape: tuple[int, ...], numbers: Any) -> Any:
        library = self._library
        if out is None:
            return library.empty(shape, self.dtype)
        return self._apart(checked_out(out, shape, self.dtype, library), numbers)

    def _apart(self, out: Any, numbers: Any) -> Any:
        library = self._library
        reads = {"the array": self._addresses(), "the row numbers": range_of(library, numbers)}
        check_apart(range_of(library, out), reads)
        return out

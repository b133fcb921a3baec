"""`penstock.Array`: an array whose bytes stay where they are, and whose rows are taken by number."""

from __future__ import annotations

import atexit
import dataclasses
import math
import os
import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.adding import add_by_copies
from penstock.arrays.base import ArrayBase
from penstock.arrays.borrower import Borrower
from penstock.arrays.exports import CUDA, HOST_DEVICE, View, export_from_gpu, export_from_host
from penstock.arrays.foreign import PAST_ALL_ROWS, is_torch
from penstock.arrays.gathers import GatherHandle
from penstock.arrays.keys import check_apart, checked_out, checked_sms
from penstock.arrays.libraries import library_for
from penstock.arrays.selection import select
from penstock.arrays.size import Size
from penstock.arrays.values import cast_values, values_for
from penstock.arrays.whole import Whole
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from penstock import _native
    from penstock.arrays.dtypes import DType
    from penstock.arrays.libraries import Library
    from penstock.arrays.opening import Opened
    from penstock.arrays.selection import Selection
    from penstock.callbacks import Progress


def _range_of(library: Library, made: Any) -> range:
    begin = library.address(made)
    return range(begin, begin + library.nbytes(made))


_OPEN: weakref.WeakSet[Array] = weakref.WeakSet()
_SMS_ASKING_AHEAD = 32
_MOST_LEFT = 4  # calls that nobody waited for
_ITERATED_BYTES = 1 << 20
_STORED_BYTES = 64 << 20  # made at once of values that repeat


@atexit.register
def _close_all() -> None:
    """What was stored and not flushed is not lost because a program ends."""
    for array in list(_OPEN):
        try:
            array.close()
        except Exception as problem:
            sys.stderr.write(f"penstock: {array!r} was not closed, and could not be flushed: {problem}\n")
        array._executor = None


class Array(Whole, Borrower, ArrayBase):
    """Made by `penstock.open`, `penstock.from_tensor` and `penstock.empty`.

    shape: of the whole array; a row is `array[k]`, of shape `shape[1:]`. dtype: its name. placement: where
    the bytes lie. Rows are taken by number: `array[rows]`, `gather`; results are torch tensors where torch
    is installed, else NumPy arrays (CPU) or objects with `__cuda_array_interface__`. Where it lies in memory
    it is an operand, too: `array * 2`.

    Not thread-safe for writes; reads may come from many threads. A closed array raises ValueError.
    """

    def __init__(self, opened: Opened, progress: Progress | None = None) -> None:
        self._opened = opened
        self._executor: Any = opened.executor
        self._native: _native.RowArray | None = opened.make(self._executor, progress)
        if opened.placement == "hbm":  # a copy
            self._opened = opened = dataclasses.replace(opened, memory=None)
        self._borrow(opened.memory)
        self._cuda = self._executor.cuda
        self._library: Library = library_for(self._executor)
        self._process = os.getpid()
        self._ahead: tuple[Any, _native.RowCall] | None = None  # a prefetch that was not waited for
        self._left: deque[tuple[str, Any, _native.RowCall, Any]] = deque()  # other calls, and what they read
        self._name = self._library.name_of(self)
        self.before_store: Callable[[], None] | None = None  # what a table numbers its changes by
        self._row_shape, self._kind = opened.shape[1:], self._library.kind_of(opened.dtype)
        _OPEN.add(self)

    # What it is

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

    # Reading

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
        chosen = select(key, self)
        with library.on(None) as handle:
            result = library.empty(chosen.shape, self.dtype)
            if 0 in chosen.shape:
                return result
            at, numbers = self._at_selected(chosen, handle)
        bad = native.gather_rows(at, library.address(result), "auto")
        self._check("gather from", numbers, bad)
        self._tell_left()
        return result

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

    def _numbers(self, rows: Any) -> Any:
        """Row numbers as kernels take them."""
        return self._library.rows(np.arange(len(self))[rows] if isinstance(rows, slice) else rows)

    def _rows_at(self, rows: Any, stream: int, sms: int) -> tuple[_native.RowsAt, Any]:
        """The same for the native array, of a slice without a list."""
        if isinstance(rows, slice):
            return self._at_selected(select(rows, self), stream, sms)
        numbers = self._library.rows(rows)
        return self._at(numbers, stream, sms), numbers

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
        if stream is None and out is None and library.takes_at_once(rows):
            numbers, handle = rows, library.current_stream()
            result = library.new(rows.shape + self._row_shape, self._kind)
        else:
            with library.on(stream) as handle:
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
        with library.on(stream) as handle:
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
            with self._library.on(stream) as handle:
                at, numbers = self._rows_at(rows, handle, sms)
        call = native.prefetch(at)
        if wait:
            self._finish("prefetch from", numbers, call)
        else:
            self._ahead = numbers, call

    def _settle(self) -> None:
        """Wait for the last prefetch, and raise what was wrong with it."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._finish("prefetch from", *ahead)

    def check_errors(self) -> None:
        """Wait for the gathers and scatters that were made with `wait=False`, and raise what was wrong with
        the first of them that failed. A call that waits raises it, too, and so do `flush` and `close`;
        a few of these calls may be under way, and one more waits for the oldest.

        Errors: IndexError and penstock.Error as those calls.
        """
        self._open()
        self._tell_left()

    def _tell_left(self, most: int = 0) -> None:
        left = self._left
        while len(left) > most:
            try:
                what, numbers, call, _ = left.popleft()
            except IndexError:  # another thread had it
                return
            self._finish(what, numbers, call)

    def _leave(self, what: str, numbers: Any, call: _native.RowCall, memory: Any, stream: Any) -> None:
        """Leave the outcome of a call to be raised later. memory: that it reads or fills, kept where another
        owner might have it before."""
        if not self._cuda:  # it is over
            self._finish(what, numbers, call)
            return
        kept = None if stream is None and self._library.reuses_in_order else memory
        self._left.append((what, numbers, call, kept))
        self._tell_left(_MOST_LEFT)

    def check_replays(self, *, stream: Any = None) -> None:
        """Raise what replays of CUDA graphs have met that captured calls of this array. Waits for the stream
        that they went to, the current one of torch unless one is given.

        Errors: IndexError names the lowest position out of range in any of those calls since this was last
        asked; penstock.Error names what could not be read; ValueError while the stream is being captured.
        """
        native = self._open()
        with self._library.on(stream) as handle:
            bad = native.check_replays(handle)
        if bad is not None:
            raise IndexError(
                f"a replayed call on {self!r}: the index at position {bad} was out of range: "
                f"it has {len(self)} rows"
            )

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
        # torch.from_numpy takes no heed of what is read-only: stores by way of it end in pages of their own
        address = native.host_address if self.writable else native.storable_address
        return np.asarray(View(self, address, self.writable))

    def mapped(self) -> View:
        """Its memory as kernels see it."""
        native = self._open()
        self._check_in_memory(native)
        return View(self, native.kernel_address, self._opened.writable)

    def storable(self, *, writable: bool) -> View:
        """Its memory on the CPU, for those who may store there although it is read-only: no file changes."""
        native = self._open()
        self._check_in_memory(native)
        return View(self, native.storable_address, writable)

    def _check_in_memory(self, native: _native.RowArray) -> None:
        native.check_file()
        if not native.kernel_address and self.nbytes:
            raise ValueError(f"{self!r}: its bytes are behind a cache: choose placement hbm or host")

    @property
    def over_read_only_memory(self) -> bool:
        """Of somebody else's, which no store may reach."""
        return self._borrowed is not None and not self.writable

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
        """torch.index_select, F.embedding and F.embedding_bag take an array for their weight; all others take
        it as `tensor()`, where it lies in memory."""
        from penstock.arrays import functions

        return functions.call(function, args, keywords or {})

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

    @property
    def gpu_device(self) -> tuple[int, int]:
        """As DLPack names it."""
        return CUDA, self._executor.gpu

    # Writing

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
        with library.on(stream) as handle:
            numbers = self._numbers(rows)
            if not hasattr(values, "dtype"):
                values = cast_values(values, self.dtype)
            stored = self._stored(values, (*numbers.shape, *self._row_shape))
            if self.before_store is not None:
                self.before_store()
            if reduce == "add" and not native.adds_in_place(self.dtype.name):
                self._check(
                    "scatter to", numbers, add_by_copies(self, numbers, stored, stream=stream, sms=sms)
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
        native, library = self._open(), self._library
        self._check_writable()
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
        self._tell_left()

    def _repeats_much(self, key: slice, values: Any) -> bool:
        """Whether the same values go to each of so many rows that they should not all be made."""
        rows = len(range(*key.indices(len(self))))
        each = values.shape[0] != 1 if len(values.shape) >= self.ndim else False
        return not each and rows > 1 and rows * self.nbytes > _STORED_BYTES * len(self)

    def _check_writable(self) -> None:
        if self.writable:
            return
        remedy = (
            "its memory is read-only: make the array over a copy of it"
            if self.path is None
            else "it was opened read-only: open it with writable=True"
        )
        raise ValueError(f"store into {self!r}: {remedy}")

    def _stored(self, values: Any, shape: tuple[int, ...]) -> Any:
        """Values as kernels take them, in memory that the call does not store into."""
        library = self._library
        stored = library.values(values, shape, self.dtype)
        there, mine = _range_of(library, stored), self._addresses()
        if max(there.start, mine.start) >= min(there.stop, mine.stop):
            return stored
        return stored.clone() if is_torch(stored) else stored.copy()

    def flush(self) -> None:
        """Returns when everything that was stored is on the device for good (docs/DURABILITY.md)."""
        native = self._open()
        try:
            self._settle()
            self._tell_left()
        finally:  # what was wrong with a call keeps nothing else from the device
            native.flush()

    # Managing

    def stats(self) -> dict[str, int]:
        """Counts since it was opened.

        Returns:
            `bytes_requested`, of what gathers took; behind a cache also its counters: `bytes_moved` from
            storage, `fills`, `prefetches`, `evictions`, `writes`, `bytes_written`, `retries`, `errors` and
            others (docs/ARRAYS.md).
        """
        return dict(self._open().stats())

    def close(self) -> None:
        """Flushes what was stored, and gives everything back. Again: nothing."""
        self._follow_to_write_back()
        native, self._native = self._native, None
        ahead, self._ahead = self._ahead, None
        if native is None or self._process != os.getpid():
            return
        try:
            if ahead is not None:
                ahead[1].wait()
            self._tell_left()
        finally:
            self._left.clear()
            if self._opened.writable:
                native.flush()

    def rewrite(self, change: Callable[[], int]) -> None:
        """Closes the file, lets `change` write to it from outside, and opens it again: the array stays the
        same object for all who hold it.

        Args:
            change: returns how many rows the file has now. What it raises is raised, and the array is open
                again with the rows that it had.
        """
        self._open()
        self.close()
        try:
            rows = change()
            if rows != len(self):
                self._opened = dataclasses.replace(self._opened, shape=(rows, *self._row_shape))
                self._name = self._library.name_of(self)  # which has the shape in it
        finally:
            self._native = self._opened.make(self._executor)

    def __enter__(self) -> Array:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Array], tuple[dict[str, Any], str, bool]]:
        """By reference: path and placement, never the bytes. Loading reads the file's header again, and
        refuses another shape, type or place. ValueError for memory, which has no path."""
        return self._opened.reduced()

    # Inside

    def _open(self) -> _native.RowArray:
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
            self._opened = self._as_seen_by_a_reader()
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

    def _at(self, numbers: Any, stream: int, sms: int, negative_indices: bool = True) -> _native.RowsAt:
        from penstock import _native

        library = self._library
        at, count = library.address(numbers), math.prod(numbers.shape)
        return _native.RowsAt(
            at, count, library.item_bytes(numbers), stream, checked_sms(sms), negative_indices
        )

    def _result(self, out: Any, shape: tuple[int, ...], numbers: Any) -> Any:
        library = self._library
        if out is None:
            return library.empty(shape, self.dtype)
        checked_out(out, shape, self.dtype, library)
        reads = {"the array": self._addresses(), "the row numbers": _range_of(library, numbers)}
        check_apart(_range_of(library, out), reads)
        return out

    def _addresses(self) -> range:
        """Of the memory that its rows are read from, where they are not in a file alone."""
        begin = self._open().kernel_address
        if not begin and self._borrowed is not None:
            begin = self._borrowed.address
        return range(begin, begin + self.nbytes if begin else 0)

    def _finish(self, what: str, numbers: Any, call: _native.RowCall) -> None:
        self._check(what, numbers, call.wait())

    def _check(self, what: str, numbers: Any, bad: int | None) -> None:
        if bad is not None:
            self._refuse(what, numbers, bad)

    def _refuse(self, what: str, numbers: Any, bad: int) -> None:
        shape = tuple(numbers.shape)
        position = tuple(int(k) for k in np.unravel_index(bad, shape))
        shown = position[0] if len(position) == 1 else position
        number = self._library.item(numbers, bad)
        index = f"{number} or more" if number == PAST_ALL_ROWS else str(number)
        raise IndexError(
            f"{what} {self!r}: index {index} at position {shown} is out of range: it has {len(self)} rows"
        )

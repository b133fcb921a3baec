"""`penstock.Array`: an array whose bytes stay where they are, and whose rows are taken by number."""

from __future__ import annotations

import atexit
import dataclasses
import os
import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.keeping import KeptRows
from penstock.arrays.libraries import library_for
from penstock.arrays.memory_views import MemoryViews
from penstock.arrays.references import referred
from penstock.arrays.row_reads import RowReads
from penstock.arrays.row_stores import RowStores
from penstock.arrays.whole import Whole
from penstock.living import Living
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from penstock import _native
    from penstock.arrays.peers import Peers
    from penstock.arrays.spec import Opened
    from penstock.callbacks import Progress

_OPEN: Living[Array] = Living()


@atexit.register
def _close_all() -> None:
    """What was stored and not flushed is not lost because a program ends."""
    for array in _OPEN.all():
        try:
            array.close()
        except Exception as problem:
            sys.stderr.write(f"penstock: {array!r} was not closed, and could not be flushed: {problem}\n")
        array._executor = None


class Array(Whole, RowReads, RowStores, MemoryViews):
    """Made by `penstock.open`, `penstock.from_tensor` and `penstock.empty`.

    shape: of the whole array; a row is `array[k]`, of shape `shape[1:]`. dtype: its name. placement: where
    the bytes lie. Rows are taken by number: `array[rows]`, `gather`; results are torch tensors where torch
    is installed, else NumPy arrays (CPU) or objects with `__cuda_array_interface__`. Where it lies in memory
    it is an operand, too: `array * 2`.

    Not thread-safe for writes; reads may come from many threads. A closed array raises ValueError.
    """

    def __init__(self, opened: Opened, progress: Progress | None = None) -> None:
        self._executor: Any = opened.executor
        self._native: _native.RowArray | None
        opened, self._native = opened.open(self._executor, progress)
        self._opened = opened
        if opened.kept is not None:
            keeping = (opened.kept, self._native, self._executor, progress)
            self._opened = opened = opened.keep(*keeping, drop=lambda: None)  # nobody has this array yet
        if opened.placement == "hbm":  # a copy
            self._opened = opened = dataclasses.replace(opened, memory=None)
        self._borrow(opened.memory)
        self._cuda = self._executor.cuda
        self._library = library_for(self._executor)
        self._process = os.getpid()
        self._ahead: tuple[Any, _native.RowCall] | None = None  # a prefetch that was not waited for
        self._left: deque[tuple[str, Any, _native.RowCall, Any]] = deque()  # other calls, and what they read
        self._name = self._library.name_of(self)
        self._views = weakref.WeakSet()
        self.before_store = None
        # By the cache, before the first gather of the user's.
        self._moved_to_keep = self._native.stats().get("bytes_moved", 0) if opened.kept is not None else 0
        self._row_shape, self._kind = opened.shape[1:], self._library.kind_of(opened.dtype)
        _OPEN.add(self)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
        """torch.index_select, F.embedding and F.embedding_bag take an array for their weight; all others take
        it as `tensor()`, where it lies in memory."""
        from penstock.arrays import functions

        return functions.call(function, args, keywords or {})

    def flush(self) -> None:
        """Returns when everything that was stored is on the device for good (docs/DURABILITY.md)."""
        native = self._open()
        try:
            self._settle()
            self._tell_left()
        finally:  # what was wrong with a call keeps nothing else from the device
            native.flush()

    def stats(self) -> dict[str, int]:
        """Counts since it was opened.

        Returns:
            `bytes_requested`, of what gathers took; behind a cache also its counters: `bytes_moved` from
            storage, `fills`, `prefetches`, `evictions`, `writes`, `bytes_written`, `retries`, `errors` and
            others (docs/ARRAYS.md).
        """
        return dict(self._open().stats())

    def bytes_by_tier(self) -> dict[str, int]:
        """Bytes that gathers took since it was opened, by where they came from.

        Returns:
            By "hbm" (GPU memory: the array's own copy, rows that are kept there, or lines of the cache),
            "host" (memory, or the page cache), "peers" (rows that other processes keep) and "storage" (a
            file by commands), as far as the array has them. What a cache brought in counts by its lines,
            which may be more than the rows.
        """
        native, counts, placement = self._open(), self.stats(), self.placement
        requested = counts["bytes_requested"]
        near = "hbm" if self._cuda else "host"
        if placement == "hbm":
            return {near: requested}
        with self._library.on(None) as stream:
            own, peers = (rows * self._opened.row_bytes for rows in native.kept_rows_taken(stream))
        requested -= peers
        others = {"peers": peers} if self._opened.kept is not None and self._opened.kept.peers else {}
        if placement == "host":
            far, moved = "host", requested - own
        else:
            far = "storage" if placement == "storage" else "host"
            moved = counts.get("bytes_moved", 0) - self._moved_to_keep  # of no rows there is no cache
        if near == far:
            return {near: requested, **others}
        return {near: own + max(requested - own - moved, 0), **others, far: moved}

    def keep_rows(
        self,
        rows: Any,
        *,
        peers: Peers | None = None,
        everywhere: int = 0,
        progress: Progress | None = None,
    ) -> None:
        """Keep copies of some rows in memory next to the kernels: in GPU memory, or before a file's cache.

        Gathers by a list of rows read those from there and the others from where they lie; all else reads the
        array as it did. `penstock.tiering` chooses the rows. They stay until the array is closed; pickles do
        not have them.

        Args:
            rows: Integers, shape (kept,): each named once.
            peers: Processes that keep them together, each an equal share, and read those of the others over
                the link between their GPUs; all call this, with the same rows. Where a link is no faster
                than that to the host each keeps its share of the first rows alone, and `opened.notes` says
                so.
            everywhere: With peers: the first so many rows are kept by each of them.
            progress: Called with "copy", the bytes done and the bytes in all.

        Raises:
            ValueError: An array that is written to or lies in GPU memory as a whole, rows that it does not
                have, or that it keeps some already.
            penstock.Error: No room for them. Where a peer fails while the rows are copied, the array is
                closed: not all of them are there.

        Source: the zero-copy dissertation, 4.3.1.
        """
        native = self._open()
        numbers = np.ascontiguousarray(rows.cpu() if is_torch(rows) else rows)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            raise TypeError(
                f"keep rows of {self!r}: {numbers.dtype} of shape {numbers.shape}: give a list of integers"
            )
        kept = numbers.astype(np.int64, copy=False)
        whole = whole_number(everywhere)
        if whole is None or not 0 <= whole <= len(kept):
            raise ValueError(f"keep rows: everywhere {everywhere!r}: give a whole number up to {len(kept)}")
        if peers is None and everywhere:
            raise ValueError(
                f"keep rows of {self!r}: everywhere {everywhere}: there are no peers: leave it out"
            )
        own = 0 if peers is None else everywhere + -(-(len(kept) - everywhere) // peers.size)
        wanted = KeptRows(kept, peers, everywhere, own)
        self._opened = self._opened.keep(wanted, native, self._executor, progress, drop=self.close)
        self._moved_to_keep = self.stats().get("bytes_moved", 0)

    @property
    def kept_rows(self) -> int:
        """How many rows are kept next to the kernels (`keep_rows`)."""
        return 0 if self._opened.kept is None else len(self._opened.kept)

    def close(self) -> None:
        """Flushes what was stored, and gives everything back. Again: nothing."""
        self._follow_to_write_back()
        native, self._native = self._native, None
        self._lent = None
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
                if not self._views:  # whatever keeps it, such as the traceback of an error, stores nothing
                    native.give_up_writing()

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
        return unpickled, (self._opened.reference(), self._opened.device, self._opened.writable)


def unpickled(reference: dict[str, Any], device: str, writable: bool) -> Array:
    """What pickles of arrays call: its name and its arguments stay."""
    return Array(referred(reference, device=device, writable=writable))


unpickled.__module__ = "penstock.arrays.opening"  # where pickles look for it

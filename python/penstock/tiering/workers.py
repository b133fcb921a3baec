"""Threads that work on ranges of nodes and edges."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from penstock.callbacks import Progress

_Result = TypeVar("_Result")

_ITEM_BYTES = 128  # of temporary arrays, for an edge or a node of a block
_MAX_BLOCK = 1 << 17  # edges or nodes: temporary arrays stay in the caches of a core
_MAX_COPY = 1 << 20  # bytes of rows that one write takes


class Workers:
    """Threads that work on ranges, each within its share of the memory."""

    def __init__(self, threads: int, memory: int, progress: Progress | None) -> None:
        self.threads, self._progress = threads, progress
        self._share = memory // threads
        self.block = max(1, min(_MAX_BLOCK, self._share // _ITEM_BYTES))

    def rows(self, row_bytes: int) -> int:
        """How many rows one block has."""
        return max(1, min(self.block, _MAX_COPY // row_bytes, self._share // 2 // row_bytes))

    def ranges(self, what: str, total: int, step: int, work: Callable[[int, int], object]) -> None:
        """Run work(first, end) for ranges of `step` up to `total`."""

        def work_on(number: int) -> int:
            end = min((number + 1) * step, total)
            work(number * step, end)
            return end

        self.each(-(-total // step), work_on, lambda end: self.report(what, end, total))

    def each(self, count: int, work: Callable[[int], _Result], take: Callable[[_Result], None]) -> None:
        """Run work(0) to work(count - 1), and pass their results to `take` in order, on this thread.

        An exception, also Ctrl-C, cancels the pending calls and waits for the running ones.
        """
        pool = ThreadPoolExecutor(self.threads)
        pending: deque[Future[_Result]] = deque()
        try:
            for number in range(count):
                if len(pending) >= 2 * self.threads:
                    take(pending.popleft().result())
                pending.append(pool.submit(work, number))
            while pending:
                take(pending.popleft().result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def report(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

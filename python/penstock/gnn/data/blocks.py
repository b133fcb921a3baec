"""Work in blocks on several threads, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def in_order(work: Callable[[int], Result], blocks: int, threads: int) -> Iterator[Result]:
    """Results of work(0) to work(blocks - 1). No more than 2 * threads are begun and not taken.

    An exception, also Ctrl-C, ends the blocks that run and starts no others.
    """
    pool = ThreadPoolExecutor(threads)
    pending: deque[Future[Result]] = deque()
    try:
        for number in range(blocks):
            if len(pending) >= 2 * threads:
                yield pending.popleft().result()
            pending.append(pool.submit(work, number))
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

"""What a statement takes beside the engine's calls: planning, and results put together in Python."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from penstock.columns import Table
from penstock.columns.prepared import prepared_plans


class Watched:
    """A native table whose calls are timed."""

    def __init__(self, native: Any, spent: list[float]) -> None:
        self._native, self._spent = native, spent

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._native, name)
        if not callable(found):
            return found

        def call(*given: Any) -> Any:
            begun = time.perf_counter()
            try:
                return found(*given)
            finally:
                self._spent.append(time.perf_counter() - begun)

        return call


@contextmanager
def native_seconds() -> Iterator[list[float]]:
    """Of each call of the engine."""
    spent: list[float] = []
    native = Table.native.fget  # type: ignore[attr-defined]
    with mock.patch.object(Table, "native", property(lambda table: Watched(native(table), spent))):
        yield spent


def planning_ms(call: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Of a statement that has not been planned, the best, and of one that has, the best and the median."""
    again, first = [], []
    with native_seconds() as spent:

        def beside() -> float:
            spent.clear()
            begun = time.perf_counter()
            call()
            return 1e3 * (time.perf_counter() - begun - sum(spent))

        call()
        again = [beside() for _ in range(repeats)]
        for _ in range(repeats):
            prepared_plans.clear()
            first.append(beside())
    return {
        "planning_ms": statistics.median(again),
        "planning_best_ms": min(again),
        "first_planning_best_ms": min(first),
    }

"""Objects that are still there, for those who do something with all of them."""

from __future__ import annotations

import threading
import weakref
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Living(Generic[_T]):
    """A set that keeps nothing alive. Thread-safe: a WeakSet that grows while it is listed raises."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # what is collected inside may add
        self._kept: weakref.WeakSet[_T] = weakref.WeakSet()

    def add(self, one: _T) -> None:
        with self._lock:
            self._kept.add(one)

    def all(self) -> list[_T]:
        with self._lock:
            return list(self._kept)

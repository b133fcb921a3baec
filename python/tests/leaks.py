"""What calls that fail leave behind: nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

CALLS = 10_000
ROOM = 4 << 20  # bytes: what allocators keep
ROUNDS = 3  # allocators may grow once more for what tests before have left; a leak grows in each


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def check_leaves_nothing(calls: Iterable[Callable[[], Any]]) -> None:
    """Makes calls that all raise, ten thousand in turn, and watches memory and descriptors."""
    turns = list(calls)

    def make(count: int) -> None:
        for k in range(count):
            with pytest.raises((ValueError, IndexError, KeyError, OSError)):
                turns[k % len(turns)]()

    make(CALLS // 5)
    gc.collect()  # what tests before this one have left in cycles is not to go while these calls are counted
    files = _open_files()
    grown: list[int] = []
    while len(grown) < ROUNDS and (not grown or grown[-1] >= ROOM):
        memory = _resident()
        make(CALLS - CALLS // 5)
        assert _open_files() == files
        grown.append(_resident() - memory)
    assert grown[-1] < ROOM, grown

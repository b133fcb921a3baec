"""Arrays over memory that others own, and move."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.foreign import address_of
from penstock.errors import Error
from penstock.living import Living

if TYPE_CHECKING:
    from collections import deque

    from penstock._native import RowArray, RowCall
    from penstock.arrays.memory import BorrowedMemory
    from penstock.arrays.spec import Opened

_BORROWERS: Living[Borrower] = Living()


def follow_moved() -> None:
    """Lets every open array over memory that has moved follow it. A GPU has the pages pinned that were read
    until then: other memory may have their addresses by now, and would be taken for them."""
    for array in _BORROWERS.all():
        borrowed = array._borrowed
        if borrowed is not None and array._native is not None and borrowed.moved:
            with contextlib.suppress(ValueError, Error):  # reported by its next call
                array._open()


class Borrower:
    """What an array does when the memory that it lies over has moved. Its state is the array's."""

    _borrowed: BorrowedMemory | None
    _native: RowArray | None
    _opened: Opened
    _executor: Any
    _process: int
    _ahead: tuple[Any, RowCall] | None
    _left: deque[tuple[str, Any, RowCall, Any]]
    _nowhere: Any

    def _borrow(self, memory: BorrowedMemory | None) -> None:
        self._borrowed = memory
        if memory is not None:
            _BORROWERS.add(self)

    def _open(self) -> RowArray:
        raise NotImplementedError

    @property
    def _writes_back(self) -> bool:
        """Whether lines of its cache go to borrowed memory."""
        return (
            self._borrowed is not None and self._opened.placement == "host-cached" and self._opened.writable
        )

    def _follow_to_write_back(self) -> None:
        moved = self._borrowed is not None and self._writes_back and self._borrowed.moved
        if self._native is not None and self._process == os.getpid() and moved:
            self._open()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # also what never came to be
            self._follow_to_write_back()

    def _follow(self, borrowed: BorrowedMemory) -> None:
        """The owner of the memory has moved it. What was stored through a cache and not written back goes to
        where it lies now. ValueError, and the array is closed, where the owner has given it up."""
        with borrowed.lock:
            native = self._native
            if native is None or not borrowed.moved:  # another thread was first
                return
            self._await_left()
            if borrowed.follow():
                if self._writes_back:
                    native.move_memory(borrowed.address)
                else:
                    self._native = self._opened.make(self._executor)
                return
            if self._writes_back:  # lines still to be written back have nowhere to go but here
                self._nowhere = np.empty(borrowed.nbytes, np.uint8)
                native.move_memory(address_of(self._nowhere))
            self._native = None
        raise ValueError(
            f"{self!r}: its memory was resized by its owner, and has fewer bytes than the array: make the "
            "array again, over the memory that there is"
        )

    def _await_left(self) -> None:
        """Waits for what is under way in memory that is about to be given up. What came of it is reported
        later, as it would have been."""
        calls = [call for _, _, call, _ in self._left]
        if self._ahead is not None:
            calls.append(self._ahead[1])
        for call in calls:
            with contextlib.suppress(Error):
                call.wait()

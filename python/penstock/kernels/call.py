"""A call of a kernel, as its folders see it."""

from __future__ import annotations

import threading

from penstock.errors import Error
from penstock.fs.folder import forget_ended


class Call:
    """A call of a kernel, which has its folders before it has a launch: on the CPU until the kernel's end."""

    def __init__(self, kernel: str) -> None:
        self._kernel, self._thread = kernel, threading.get_ident()
        self._over = threading.Event()

    @property
    def done(self) -> bool:
        return self._over.is_set()

    def settle(self, what: str) -> None:
        """Wait for the end. penstock.Error: the call is this thread's, as below a signal's handler."""
        if self._thread == threading.get_ident():
            raise Error(f"{what}: this thread runs the kernel {self._kernel}: do it when that has ended")
        self._over.wait()

    def end(self) -> None:
        self._over.set()
        forget_ended()

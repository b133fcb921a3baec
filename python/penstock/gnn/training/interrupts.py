"""Ctrl-C between two steps of a training instead of within one."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """Keeps the first Ctrl-C as `pending`, read between steps; the second raises KeyboardInterrupt at once.

    Outside the main thread, and where the program ignores Ctrl-C, it changes nothing.
    """

    def __init__(self) -> None:
        self.pending = False
        self._before: signal._HANDLER = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if before is not signal.SIG_IGN and before is not None:
                self._before = before
                signal.signal(signal.SIGINT, self._keep)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _keep(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True

"""Batches made ahead, by a thread of the loader's own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from penstock.gnn.loading.batch import Batch

_POLL_SECONDS = 0.1
_PRIORITY = -1


class Ahead:
    """Makes the batches first, first + 1, ... below last, `depth` of them before they are asked for.

    On a GPU its work goes to a stream of its own beside the training's. A batch has ended on the GPU when it
    is given.
    """

    def __init__(
        self, make: Callable[[int], Batch], first: int, last: int, depth: int, device: torch.device
    ) -> None:
        self._make, self._device = make, device
        self._made: queue.Queue[Any] = queue.Queue(maxsize=depth)
        self._stopped = threading.Event()
        self._first, self._last = first, last
        self._thread = threading.Thread(target=self._run, name="penstock loader", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._device.type == "cuda":
                torch.cuda.set_device(self._device)
                stream = torch.cuda.Stream(self._device, priority=_PRIORITY)
                with torch.cuda.stream(stream):
                    self._make_all(stream.synchronize)
            else:
                self._make_all(lambda: None)
        except BaseException as problem:
            self._put(problem)

    def _make_all(self, wait: Callable[[], None]) -> None:
        for number in range(self._first, self._last):
            made = self._make(number)
            wait()
            if not self._put(made):
                return
        self._put(None)

    def _put(self, one: Any) -> bool:
        while not self._stopped.is_set():
            try:
                self._made.put(one, timeout=_POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[Batch]:
        while True:
            one = self._taken()
            if one is None:
                return
            if isinstance(one, BaseException):
                raise one
            if self._device.type == "cuda":
                one.follow(torch.cuda.current_stream(self._device))
            yield one

    def _taken(self) -> Any:
        while True:
            try:
                return self._made.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if self._stopped.is_set():
                    raise ValueError(
                        "loader: it was closed, or began another epoch, while its batches were taken: "
                        "iterate anew"
                    ) from None

    def stop(self) -> None:
        """Waits for the batch that is being made, and leaves the rest."""
        self._stopped.set()
        self._thread.join()

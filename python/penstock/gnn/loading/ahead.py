"""Batches made ahead, by two threads of the loader's own: one samples, the other gathers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from penstock.gnn.loading.batch import Batch
    from penstock.gnn.loading.draft import Draft

_POLL_SECONDS = 0.1
_GATHER_PRIORITY = -1
_SAMPLING_PRIORITY = -2  # many short kernels, which would wait for the long one of a gather


class Ahead:
    """Makes the batches first, first + 1, ... below last, `depth` of them before they are asked for.

    A batch is sampled while the rows of the one before are gathered. On a GPU each of both has a stream of
    its own beside the training's, and has ended there when it is passed on.
    """

    def __init__(
        self,
        drawn: Callable[[int], Draft],
        filled: Callable[[Draft], Batch],
        first: int,
        last: int,
        depth: int,
        device: torch.device,
    ) -> None:
        self._device = device
        self._drafts: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._batches: queue.Queue[Any] = queue.Queue(maxsize=depth)
        self._stopped = threading.Event()
        self._threads = [
            self._started("sampling", self._drafts, drawn, iter(range(first, last)), _SAMPLING_PRIORITY),
            self._started("gather", self._batches, filled, self._taken(self._drafts), _GATHER_PRIORITY),
        ]

    def _started(
        self,
        name: str,
        out: queue.Queue[Any],
        make: Callable[[Any], Any],
        given: Iterator[Any],
        priority: int,
    ) -> threading.Thread:
        """A thread that makes something of everything given and puts it out, after the last one None, or the
        exception that ended it."""

        def run() -> None:
            last: BaseException | None = None
            try:
                if self._device.type == "cuda":
                    torch.cuda.set_device(self._device)
                    stream = torch.cuda.Stream(self._device, priority=priority)
                    with torch.cuda.stream(stream):
                        self._make_all(out, make, given, stream.synchronize)
                else:
                    self._make_all(out, make, given, lambda: None)
            except BaseException as problem:
                last = problem
            self._put(out, last)

        thread = threading.Thread(target=run, name=f"penstock {name}", daemon=True)
        thread.start()
        return thread

    def _make_all(
        self,
        out: queue.Queue[Any],
        make: Callable[[Any], Any],
        given: Iterator[Any],
        wait: Callable[[], None],
    ) -> None:
        for each in given:
            try:
                made = make(each)
            finally:
                wait()
            if not self._put(out, made):
                return

    def _put(self, out: queue.Queue[Any], one: Any) -> bool:
        while not self._stopped.is_set():
            try:
                out.put(one, timeout=_POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[Batch]:
        for one in self._taken(self._batches):
            if self._device.type == "cuda":
                one.follow(torch.cuda.current_stream(self._device))
            yield one

    def _taken(self, source: queue.Queue[Any]) -> Iterator[Any]:
        while True:
            try:
                one = source.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if self._stopped.is_set():
                    raise ValueError(
                        "loader: it was closed, or began another epoch, while its batches were taken: "
                        "iterate anew"
                    ) from None
                continue
            if one is None:
                return
            if isinstance(one, BaseException):
                raise one
            yield one

    def stop(self) -> None:
        """Waits for the batches that are being made, and leaves the rest."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

"""Batches made ahead, by two threads of the loader's own: one samples, the other gathers."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from penstock.living import Living

if TYPE_CHECKING:
    from penstock.gnn.loading.batch import Batch
    from penstock.gnn.loading.draft import Draft
    from penstock.gnn.loading.partition import Partition

_POLL_SECONDS = 0.1
_GATHER_PRIORITY = -1
_SAMPLING_PRIORITY = -2  # many short kernels, which would wait for the long one of a gather


class Ahead:
    """Makes the batches first, first + 1, ... below last, `depth` of them before they are asked for.

    A batch is sampled while the rows of the one before are gathered. On a GPU each of both has a stream of
    its own beside the training's, of a partition of the GPU if there is one, and has ended there when it is
    passed on.

    An iteration ends where it is collected: in any thread, its own among them, whatever locks that holds. So
    `leave` takes none and waits for nothing, and what says that it has ended is no threading.Event.
    """

    def __init__(
        self,
        drawn: Callable[[int], Draft],
        filled: Callable[[Draft], Batch],
        first: int,
        last: int,
        depth: int,
        device: torch.device,
        partition: Partition | None = None,
    ) -> None:
        self._device, self._partition = device, partition
        self._drafts: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._batches: queue.Queue[Any] = queue.Queue(maxsize=depth)
        self._left = False
        self._process = os.getpid()
        self._threads = [
            self._thread("sampling", self._drafts, drawn, iter(range(first, last)), _SAMPLING_PRIORITY),
            self._thread("gather", self._batches, filled, self._taken(self._drafts), _GATHER_PRIORITY),
        ]

    def _thread(
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
                    with self._stream(priority) as stream, torch.cuda.stream(stream):
                        self._make_all(out, make, given, stream.synchronize)
                else:
                    self._make_all(out, make, given, lambda: None)
            except BaseException as problem:
                last = problem
            self._put(out, last)

        return threading.Thread(target=run, name=f"penstock {name}", daemon=True)

    def _stream(self, priority: int) -> AbstractContextManager[torch.cuda.Stream]:
        if self._partition is not None:
            return self._partition.borrowed(priority)
        return nullcontext(torch.cuda.Stream(self._device, priority=priority))

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
        while not self._left:
            try:
                out.put(one, timeout=_POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False

    def start(self) -> None:
        _RUNNING.add(self)
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.leave()
            raise

    def __iter__(self) -> Iterator[Batch]:
        for one in self._taken(self._batches):
            if self._device.type == "cuda":
                one.follow(torch.cuda.current_stream(self._device))
            yield one

    def _taken(self, source: queue.Queue[Any]) -> Iterator[Any]:
        while True:
            self.check()
            try:
                one = source.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if one is None:
                return
            if isinstance(one, BaseException):
                raise one
            yield one

    def check(self) -> None:
        """ValueError where its batches are no longer those to be taken."""
        if self._left:
            raise ValueError(
                "loader: it was closed, or began another epoch, while its batches were taken: iterate anew"
            )
        if os.getpid() != self._process:  # which has no threads, and may have the locks of those left behind
            raise ValueError("loader: this process was forked while batches were taken: iterate anew")

    def leave(self) -> None:
        """Lets the threads end after the batches that they are at."""
        self._left = True

    def stop(self) -> None:
        """Waits for the batches that are being made, and leaves the rest."""
        self.leave()
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join()


_RUNNING: Living[Ahead] = Living()


@atexit.register
def _stop_all() -> None:
    """A thread that is sampling while the interpreter ends would end the process."""
    for each in _RUNNING.all():
        each.stop()

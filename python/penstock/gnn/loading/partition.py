"""Multiprocessors of a GPU that are the loaders' alone."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from penstock import _native


class Partition:
    """Streams on some multiprocessors of a GPU, and one on the others (two green contexts).

    They last as long as the process, as torch's own do: its allocator keeps memory by the stream that it was
    made for. What makes batches ahead borrows them, so that the next epoch finds that memory again.
    """

    def __init__(self, share: Any, device: torch.device) -> None:
        """
        Args:
            share: A _native.SmShare.
            device: Its GPU.
        """
        self._share, self._device = share, device
        self.sms: int = share.sms
        """Multiprocessors that it got: whole groups, no more than asked for."""
        self._free: defaultdict[int, list[Any]] = defaultdict(list)
        self.training_stream = self._external(share.open_stream_in_rest(0))
        """On the multiprocessors that it leaves."""

    @classmethod
    def of(cls, device: torch.device, sms: int) -> Partition:
        """The same for all loaders of this size.

        Raises:
            ValueError: Too few or too many multiprocessors.
            penstock.Error: The driver has no green contexts.
        """
        index = torch.cuda.current_device() if device.index is None else device.index
        return _partition(index, sms)

    def _external(self, handle: int) -> torch.cuda.Stream:
        return torch.cuda.ExternalStream(handle, device=self._device)

    @contextmanager
    def borrowed(self, priority: int) -> Iterator[torch.cuda.Stream]:
        """A stream that nobody else uses meanwhile. REQUIRES: its work has ended when it is given back."""
        free = self._free[priority]
        try:
            stream = free.pop()
        except IndexError:
            stream = self._external(self._share.open_stream(priority))
        try:
            yield stream
        finally:
            free.append(stream)


@functools.cache
def _partition(gpu: int, sms: int) -> Partition:
    return Partition(_native.SmShare.of(gpu, sms), torch.device("cuda", gpu))

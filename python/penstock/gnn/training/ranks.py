"""The processes of a training: one, or those that torchrun started.

Each holds the whole model and takes its share of the seeds; DistributedDataParallel averages the gradients.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import distributed

from penstock.tiering import Peers

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ranks:
    """This process among all."""

    rank: int
    size: int
    device: Any
    """torch.device that this process trains on."""

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def share(self, ids: Ids, equal: bool) -> Ids:
        """Every size-th, so that step k of all ranks has the seeds of step k of one process with all of them.

        Args:
            ids: (n,), the same in all processes.
            equal: Give each process as many, for gradients are averaged step by step: where n is no multiple
                of `size`, the first ids are in two shares.

        Raises:
            ValueError: There are fewer ids than processes, and `equal`.
        """
        if equal and (missing := -len(ids) % self.size):
            if len(ids) < self.size:
                raise ValueError(f"train: {len(ids)} seeds for {self.size} processes: start fewer")
            ids = np.concatenate([ids, ids[:missing]])
        return np.ascontiguousarray(ids[self.rank :: self.size])

    def mean(self, values: Any) -> Any:
        """Of a tensor over the processes, in each."""
        if self.size > 1:
            distributed.all_reduce(values)
            values = values / self.size
        return values

    def gather(self, value: Any) -> list[Any]:
        """A value that pickle takes, of each process, in each."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value)
        return found

    def peers(self) -> AbstractContextManager[Peers | None]:
        """The processes as peers; None of one, and of those on several machines."""
        here = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        return Peers.from_torch() if 1 < self.size == here else nullcontext()

    def align(self, tensors: Iterable[Any]) -> None:
        """Gives all processes the first one's values."""
        for each in tensors if self.size > 1 else ():
            distributed.broadcast(each, 0)

    def parallel(self, model: Any) -> Any:
        """The model whose backward pass averages gradients over the processes."""
        return model if self.size == 1 else torch.nn.parallel.DistributedDataParallel(model)


@contextmanager
def ranks_for(device: str) -> Iterator[Ranks]:
    """The process group that torchrun's environment describes, or one that the caller has begun; else this
    process alone.

    Args:
        device: "auto", "cpu", "cuda" or "cuda:1". A process of several takes the GPU of its local rank.

    Raises:
        ValueError: There is no such device.
    """
    begun = distributed.is_available() and distributed.is_initialized()
    size = distributed.get_world_size() if begun else int(os.environ.get("WORLD_SIZE", "1"))
    chosen = _device(device, size)
    if size == 1:
        yield Ranks(0, 1, chosen)
        return
    if not begun:
        distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield Ranks(distributed.get_rank(), size, chosen)
        # Together: a process that leaves early takes the store of the group with it.
        distributed.barrier()
    finally:
        if not begun:
            distributed.destroy_process_group()


def _device(device: str, size: int) -> Any:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "cpu" or (device == "auto" and count == 0):
        return torch.device("cpu")
    _, given, index = device.partition(":")
    number = int(index) if given else None
    if size > 1:
        if number is not None:
            raise ValueError(f"device {device}: each process has a GPU of its own: give cuda")
        number = int(os.environ.get("LOCAL_RANK", "0"))
    number = number if number is not None else torch.cuda.current_device() if count else 0
    if number >= count:
        raise ValueError(f"device cuda:{number}: torch finds {count} GPUs: choose another one, or cpu")
    torch.cuda.set_device(number)
    return torch.device("cuda", number)

"""What loaders of nodes and of links have in common: the order of an epoch, batches ahead, counts."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np
import torch

from penstock.arrays.messages import shown
from penstock.checks import checked_count
from penstock.effects import refuse_without_effect
from penstock.gnn.effects import MULTIPROCESSORS
from penstock.gnn.loading.ahead import Ahead
from penstock.gnn.loading.draft import Draft
from penstock.gnn.loading.partition import Partition
from penstock.gnn.loading.tables import Tables
from penstock.living import Living
from penstock.sizes import whole_number

_MAX_BATCHES = _MAX_EPOCHS = 2**32


class Loader(ABC):
    """Batches of an epoch in an order drawn by the seed, sampled and gathered ahead of the training.

    What items are (nodes, links) and what batches are (of one type, of several) is its subclasses'.
    """

    def __init__(self, sampler: Any, batch_size: int, options: dict[str, Any], items: int) -> None:
        """
        Args:
            sampler: A NeighborSampler or a HeteroNeighborSampler.
            batch_size: Items of a batch.
            options: All of LoaderOptions, checked.
            items: Of an epoch.
        """
        self._sampler = sampler
        self.device = torch.device(sampler.device)
        device = options["device"]
        if device != "auto" and torch.device(device).type != self.device.type:
            raise ValueError(f"loader: device {device}, and the graph is on {self.device}: open both alike")
        self._tables = Tables(self.device)
        self._items, self._size = items, checked_count("batch_size", batch_size, 1)
        self._shuffle, self._seed, self._depth = options["shuffle"], options["seed"], options["prefetch"]
        self._drop_last = options["drop_last"]
        refuse_without_effect(MULTIPROCESSORS, {**options, "device": self.device.type}, "loader")
        self._partition = Partition.of(self.device, options["sms"]) if options["sm_partition"] else None
        self.sms: int = options["sms"] if self._partition is None else self._partition.sms
        """Multiprocessors that sampling and gathering take at most: of a partition those that it got."""
        half = self.sms // 2  # both run at the same time
        self._sampling_sms, self._gather_sms = (half or self.sms), self.sms - half
        self._epoch = 0
        self._begin = 0  # where the next iteration begins: behind a state that was loaded
        self._given = 0  # batches of this epoch
        self.timeline: Any = None
        """Where spans of sampling and gathering are recorded: an object with `span(lane, batch=number)`."""
        self._counts = {"sampling": 0.0, "gather": 0.0, "waiting": 0.0}
        self._numbers = {"batches": 0, "nodes": 0, "edges": 0}
        self._counting = threading.Lock()
        self._beginning = threading.RLock()  # lest an iteration begins in one epoch and goes on in another
        self._ahead: Living[Ahead] = Living()
        self._order: tuple[int, torch.Tensor] | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("loader: it has threads and streams of this process: make one in each process")

    @property
    def training_stream(self) -> torch.cuda.Stream | None:
        """On the multiprocessors that `sm_partition` leaves; None without it."""
        return None if self._partition is None else self._partition.training_stream

    # The epoch

    def __len__(self) -> int:
        """Batches of an epoch."""
        whole, rest = divmod(self._items, self._size)
        return whole + (rest > 0 and not self._drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch: another one has another order and draws other neighbours."""
        number = _checked_epoch(epoch)
        self._begin_epoch(number, 0)

    def _begin_epoch(self, number: int, batch: int) -> None:
        with self._beginning:
            self.close()
            with self._counting:
                self._epoch, self._begin, self._given = number, batch, batch

    def state_dict(self) -> dict[str, Any]:
        """Where the epoch stands: batches that were given count, not those that are made ahead."""
        return {"epoch": self._epoch, "batch": self._given, **self._identity()}

    def _identity(self) -> dict[str, Any]:
        """What batches depend on beside the epoch and their number."""
        return {
            "seed": self._seed,
            "batch_size": self._size,
            "items": self._items,
            "shuffle": self._shuffle,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken: the next iteration begins there.

        Raises:
            ValueError: A state of a loader with another seed, batch size, number of seeds, `shuffle` or
                `negatives`.
        """
        known = {"epoch", "batch", *self._identity()}
        if not isinstance(state, Mapping) or not known <= set(state):
            raise ValueError(f"loader: state {shown(state)}: give what state_dict returned")
        for name, own in self._identity().items():
            if state[name] != own:
                raise ValueError(
                    f"loader: a state of {name} {state[name]}, and this loader has {own}: load it where it "
                    "was taken"
                )
        batch = whole_number(state["batch"])
        if batch is None or not 0 <= batch <= len(self):
            raise ValueError(f"loader: a state of batch {shown(state['batch'])}: there are {len(self)}")
        self._begin_epoch(_checked_epoch(state["epoch"]), batch)

    def __iter__(self) -> Iterator[Any]:
        begin, ahead = self._begun()
        try:
            batches = iter(ahead)
            for number in range(begin, len(self) + 1):
                began = time.perf_counter()
                with self._span("waiting", number):
                    batch = next(batches, None)
                with self._counting:
                    self._counts["waiting"] += time.perf_counter() - began
                    if batch is None:
                        break
                    ahead.check()  # here, lest a batch of the epoch before counts for one begun meanwhile
                    self._given = batch.number + 1
                yield batch
        finally:
            ahead.leave()

    def _begun(self) -> tuple[int, Ahead]:
        """The number of the first batch, and what makes it and those behind it."""
        with self._beginning:
            begin, self._begin = self._begin, 0
            if begin == len(self):
                begin = 0
            ahead = Ahead(
                self._drawn, self._filled, begin, len(self), self._depth, self.device, self._partition
            )
            self._ahead.add(ahead)
            ahead.start()
        return begin, ahead

    def close(self) -> None:
        """Ends what is made ahead, also of iterations that were left, and waits until it has ended.
        Iterations under way raise ValueError; others can begin."""
        with self._beginning:
            for ahead in self._ahead.all():
                ahead.stop()

    def stats(self) -> dict[str, Any]:
        """Since it was made.

        Returns:
            `batches`, `nodes` and `edges` that were sampled; seconds of `sampling` and `gather`, and of
            `waiting` for a batch; `bytes` of the features by where they came from.
        """
        moved = self._tables.bytes_by_tier()
        with self._counting:
            return {**self._numbers, **self._counts, "bytes": moved}

    # One batch

    def _places(self, number: int) -> torch.Tensor:
        """Of the items of a batch."""
        begin = number * self._size
        end = min(begin + self._size, self._items)
        if not self._shuffle:
            return torch.arange(begin, end)
        if self._order is None or self._order[0] != self._epoch:
            self._order = (self._epoch, torch.randperm(self._items, generator=self._generator(0)))
        return self._order[1][begin:end]

    def _generator(self, use: int) -> torch.Generator:
        """Of one use in this epoch: 0 is its order, from 1 on its batches."""
        state = np.random.SeedSequence([self._seed, self._epoch, use]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))

    def _call(self, number: int) -> int:
        return self._epoch * _MAX_BATCHES + number

    @abstractmethod
    def _drawn(self, number: int) -> Draft:
        """Batch `number` of the epoch, sampled. Called in the thread that samples."""

    def _filled(self, draft: Draft) -> Any:
        """The batch with its rows. Called in the thread that gathers."""
        began = time.perf_counter()
        with self._span("gather", draft.number):
            rows = self._tables.gather(draft.wanted, self._gather_sms)
        with self._counting:
            self._counts["gather"] += time.perf_counter() - began
        return draft.finished(rows)

    def _span(self, lane: str, number: int) -> AbstractContextManager[Any]:
        timeline = self.timeline
        return nullcontext() if timeline is None else timeline.span(lane, batch=number)

    def _sampled(self, number: int, seeds: Any, times: Any = None) -> Any:
        began = time.perf_counter()
        with self._span("sampling", number):
            made = self._sampler.sample(
                seeds, call=self._call(number), seed_times=times, sms=self._sampling_sms
            )
        with self._counting:
            self._counts["sampling"] += time.perf_counter() - began
            self._numbers["batches"] += 1
            self._numbers["nodes"] += _total(made.nodes_per_hop)
            self._numbers["edges"] += _total(made.edges_per_hop)
        return made


def _checked_epoch(given: Any) -> int:
    number = whole_number(given)
    if number is None or not 0 <= number < _MAX_EPOCHS:
        raise ValueError(f"loader: epoch {shown(given)}: give a whole number from 0 on")
    return number


def _total(per_hop: Any) -> int:
    """Of hops, or of hops by type."""
    lists = per_hop.values() if isinstance(per_hop, dict) else [per_hop]
    return sum(map(sum, lists))

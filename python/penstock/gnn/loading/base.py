"""What loaders of nodes and of links have in common: the order of an epoch, batches ahead, counts."""

from __future__ import annotations

import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from penstock.arguments import is_torch
from penstock.arrays import Array, from_tensor, gather_all
from penstock.arrays.messages import shown
from penstock.gnn.loading.ahead import Ahead
from penstock.gnn.loading.batch import Batch
from penstock.sampling import Graph, NeighborSampler
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from penstock.sampling import Sample

_MAX_BATCHES = _MAX_EPOCHS = 2**32


def checked_graph(given: Any) -> Graph:
    if not isinstance(given, Graph):
        raise TypeError(f"loader: {shown(given)}: give a penstock.sampling.Graph")
    return given


class Loader(ABC):
    """Batches of an epoch in an order drawn by the seed, sampled and gathered ahead of the training."""

    def __init__(
        self,
        graph: Graph,
        features: Any,
        fanout: Sequence[int],
        batch_size: int,
        items: int,
        *,
        labels: Any,
        edge_features: Any,
        shuffle: bool,
        seed: int,
        device: Any,
        replace: bool,
        disjoint: bool,
        temporal: str,
        prefetch: int,
        drop_last: bool,
        sms: int,
    ) -> None:
        for name, given, least in (("batch_size", batch_size, 1), ("prefetch", prefetch, 1), ("sms", sms, 0)):
            number = whole_number(given)
            if number is None or number < least:
                raise ValueError(f"loader: {name} {shown(given)}: give a whole number from {least} on")
        self._sampler = NeighborSampler(
            graph, fanout, replace=replace, disjoint=disjoint, temporal=temporal, seed=seed
        )
        self.device = torch.device(self._sampler.device)
        if device != "auto" and torch.device(device).type != self.device.type:
            raise ValueError(f"loader: device {device}, and the graph is on {self.device}: open both alike")
        self._features = {
            name: self._array(f"features {name}", given, graph.nodes)
            for name, given in (features if isinstance(features, Mapping) else {"x": features}).items()
        }
        if "x" not in self._features:
            raise ValueError(f"loader: features {', '.join(self._features)}: name one of them x")
        self._edge_features = (
            None if edge_features is None else self._array("edge_features", edge_features, graph.edges)
        )
        self._labels = labels
        self._items, self._size = items, batch_size
        self._shuffle, self._seed, self._depth = bool(shuffle), seed, prefetch
        self._drop_last, self._sms = bool(drop_last), sms
        self._epoch = 0
        self._begin = 0  # where the next iteration begins: behind a state that was loaded
        self._given = 0  # batches of this epoch
        self.timeline: Any = None
        """Where spans of sampling and gathering are recorded: an object with `span(lane, batch=number)`."""
        self._counts = {"sampling": 0.0, "gather": 0.0, "waiting": 0.0}
        self._numbers = {"batches": 0, "nodes": 0, "edges": 0}
        self._counting = threading.Lock()
        self._ahead: weakref.WeakSet[Ahead] = weakref.WeakSet()
        self._order: tuple[int, torch.Tensor] | None = None

    def _array(self, what: str, given: Any, rows: int) -> Array:
        array: Array = given
        if not isinstance(given, Array):
            if not is_torch(given) and not hasattr(given, "__array__"):
                raise TypeError(f"loader: {what}: {shown(given)}: give a penstock.Array or a tensor")
            array = from_tensor(
                given, "hbm" if is_torch(given) and given.is_cuda else "host", device=self._name()
            )
        if len(array) != rows:
            raise ValueError(f"loader: {what} of {len(array)} rows: the graph has {rows}: give one for each")
        if array.device != self.device:
            raise ValueError(
                f"loader: {what} on {array.device}, and the graph on {self.device}: open both alike"
            )
        return array

    def _name(self) -> str:
        return "cpu" if self.device.type == "cpu" else str(self.device)

    # The epoch

    def __len__(self) -> int:
        """Batches of an epoch."""
        whole, rest = divmod(self._items, self._size)
        return whole + (rest > 0 and not self._drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch: another one has another order and draws other neighbours."""
        number = whole_number(epoch)
        if number is None or not 0 <= number < _MAX_EPOCHS:
            raise ValueError(f"loader: epoch {shown(epoch)}: give a whole number from 0 on")
        self.close()
        self._epoch, self._begin, self._given = number, 0, 0

    def state_dict(self) -> dict[str, int]:
        """Where the epoch stands: batches that were given count, not those that are made ahead."""
        return {"epoch": self._epoch, "batch": self._given, **self._identity()}

    def _identity(self) -> dict[str, int]:
        return {"seed": self._seed, "batch_size": self._size, "items": self._items}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on where a state was taken: the next iteration begins there.

        Raises:
            ValueError: A state of a loader with another seed, batch size or number of seeds.
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
        self.set_epoch(state["epoch"])
        self._begin = self._given = batch

    def __iter__(self) -> Iterator[Batch]:
        begin, self._begin = self._begin, 0
        if begin == len(self):
            begin = 0
        return self._batches(begin)

    def _batches(self, begin: int) -> Iterator[Batch]:
        ahead = Ahead(self._make, begin, len(self), self._depth, self.device)
        self._ahead.add(ahead)
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
                self._given = batch.number + 1
                yield batch
        finally:
            ahead.stop()

    def close(self) -> None:
        """Ends what is made ahead. Iterations under way raise ValueError; others can begin."""
        for ahead in list(self._ahead):
            ahead.stop()

    def stats(self) -> dict[str, Any]:
        """Since it was made.

        Returns:
            `batches`, `nodes` and `edges` that were sampled; seconds of `sampling` and `gather`, and of
            `waiting` for a batch; `bytes` of the features by where they came from.
        """
        tables = [*self._features.values(), *([self._edge_features] if self._edge_features else [])]
        moved: dict[str, int] = {}
        for array in tables:
            for tier, count in array.bytes_by_tier().items():
                moved[tier] = moved.get(tier, 0) + count
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
    def _make(self, number: int) -> Batch:
        """Batch `number` of the epoch. Called in the loader's thread."""

    def _span(self, lane: str, number: int) -> AbstractContextManager[Any]:
        timeline = self.timeline
        return nullcontext() if timeline is None else timeline.span(lane, batch=number)

    def _sampled(self, number: int, seeds: torch.Tensor, times: Any = None) -> Sample:
        began = time.perf_counter()
        with self._span("sampling", number):
            made = self._sampler.sample(seeds, call=self._call(number), seed_times=times, sms=self._sms)
        with self._counting:
            self._counts["sampling"] += time.perf_counter() - began
            self._numbers["batches"] += 1
            self._numbers["nodes"] += sum(made.nodes_per_hop)
            self._numbers["edges"] += sum(made.edges_per_hop)
        return made

    def _gathered(self, number: int, made: Sample, **more: Any) -> Batch:
        began = time.perf_counter()
        wanted = [(array, made.nodes) for array in self._features.values()]
        if self._edge_features is not None:
            wanted.append((self._edge_features, made.edges))
        with self._span("gather", number):
            rows = gather_all(wanted, sms=self._sms)
        with self._counting:
            self._counts["gather"] += time.perf_counter() - began
        edge_attr = rows.pop() if self._edge_features is not None else None
        features = dict(zip(self._features, rows, strict=True))
        return Batch(
            x=features.pop("x"),
            edge_index=torch.stack([made.rows, made.columns]),
            n_id=made.nodes,
            e_id=made.edges,
            batch_size=made.nodes_per_hop[0],
            nodes_per_hop=made.nodes_per_hop,
            edges_per_hop=made.edges_per_hop,
            edge_attr=edge_attr,
            features=features,
            batch=made.trees,
            number=number,
            **more,
        )

    def _labels_of(self, nodes: torch.Tensor) -> torch.Tensor | None:
        labels = self._labels
        if labels is None:
            return None
        if isinstance(labels, Array):
            taken: torch.Tensor = labels.gather(nodes)
        elif is_torch(labels):
            taken = labels[nodes.to(labels.device)]
        else:
            numbers: np.ndarray[Any, Any] = nodes.cpu().numpy()
            taken = torch.as_tensor(labels[numbers])
        return taken.to(self.device)

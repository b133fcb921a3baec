"""A process that samples and gathers into buffers which the training process has shared with it.

As in the zero-copy dissertation (3.3.3) there are two buffers, of which one is filled while the other is
trained on; a GPU's are mapped in both processes by CUDA IPC, a CPU's lie in shared memory. What goes through
the queues are numbers.
"""

from __future__ import annotations

import os
import queue
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gnn_bench import FANOUT, alone, open_features, synchronize
from gnn_variants import Batches
from penstock.gnn import data
from penstock.gnn.loading.batch import Batch
from penstock.sampling import Graph, NeighborSampler

START_SECONDS, BATCH_SECONDS = 120.0, 60.0
_SLOTS = 2


@dataclass
class Slot:
    """Room for a batch."""

    x: torch.Tensor
    edges: torch.Tensor
    n_id: torch.Tensor
    y: torch.Tensor

    @classmethod
    def of(cls, dataset: data.Dataset, batch_size: int, device: torch.device) -> Slot:
        found, new = batch_size, batch_size
        for count in FANOUT:
            new *= count
            found += new
        # Seeds that are given twice stay two nodes.
        nodes, edges = min(found, dataset.nodes + batch_size), found - batch_size
        integers = {"dtype": torch.int64, "device": device}
        return cls(
            torch.empty(nodes, dataset.width, dtype=getattr(torch, dataset.dtype), device=device),
            torch.empty(2 * edges, **integers),
            torch.empty(nodes, **integers),
            torch.empty(batch_size, **integers),
        )

    def batch(self, nodes_per_hop: list[int], edges_per_hop: list[int]) -> Batch:
        nodes, edges = sum(nodes_per_hop), sum(edges_per_hop)
        return Batch(
            x=self.x[:nodes],
            edge_index=self.edges[: 2 * edges].view(2, edges),
            n_id=self.n_id[:nodes],
            e_id=self.n_id[:0],
            batch_size=nodes_per_hop[0],
            nodes_per_hop=nodes_per_hop,
            edges_per_hop=edges_per_hop,
            y=self.y[: nodes_per_hop[0]],
        )


class ProcessBatches:
    """Epochs of `Batches` that another process makes. It ends with the block, and with this process."""

    def __init__(self, dataset: data.Dataset, place: str, batches: int, batch_size: int) -> None:
        """
        Args:
            place: Of the features, without scores.
            batches: Of an epoch.
        """
        context = torch.multiprocessing.get_context("spawn")
        device = alone().device
        self._slots = [Slot.of(dataset, batch_size, device) for _ in range(_SLOTS)]
        self._free, self._filled = context.Queue(), context.Queue()
        self._batches = batches
        given = (dataset.folder, place, batch_size, self._slots, self._free, self._filled, os.getpid())
        self._process = context.Process(target=produce, args=given, daemon=True)

    def __enter__(self) -> ProcessBatches:
        self._process.start()
        self._taken(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._free.put(None)
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def epoch(self) -> Iterator[Batch]:
        for number in range(min(_SLOTS, self._batches)):
            self._free.put((number, number))
        for number in range(self._batches):
            slot, *sizes = self._taken(BATCH_SECONDS)
            yield self._slots[slot].batch(*sizes)
            synchronize()
            if number + _SLOTS < self._batches:
                self._free.put((slot, number + _SLOTS))

    def _taken(self, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                found = self._filled.get(timeout=0.5)
            except queue.Empty:
                if not self._process.is_alive():
                    raise SystemExit(f"sms.process: it ended with {self._process.exitcode}") from None
                continue
            if isinstance(found, str):
                raise SystemExit(f"sms.process: {found}")
            return found
        raise SystemExit(f"sms.process: it gave nothing for {seconds:.0f} s")


def produce(
    folder: Any, place: str, batch_size: int, slots: list[Slot], free: Any, filled: Any, parent: int
) -> None:
    """Fills the slots that are free, until None comes or the parent has ended."""
    try:
        dataset = data.open(folder)
        with Graph.open(dataset) as graph, open_features(dataset, place) as features:
            sampler = NeighborSampler(graph, FANOUT, seed=7)
            labels = torch.from_numpy(np.load(dataset.labels)).to(sampler.device)
            room: list[torch.Tensor] = []
            made = Batches(
                sampler,
                lambda rows: features.gather(rows, out=room[0][: len(rows)]),
                np.load(dataset.train),
                labels,
                batch_size,
            )
            filled.put(True)
            while os.getppid() == parent:
                try:
                    wanted = free.get(timeout=0.5)
                except queue.Empty:
                    continue
                if wanted is None:
                    return
                slot, number = wanted
                room[:] = [slots[slot].x]
                batch = made.make(number)
                edges = slots[slot].edges[: batch.edge_index.numel()]
                edges.view(batch.edge_index.shape).copy_(batch.edge_index)
                slots[slot].n_id[: len(batch.n_id)].copy_(batch.n_id)
                slots[slot].y[: batch.batch_size].copy_(batch.y)
                synchronize()
                filled.put((slot, batch.nodes_per_hop, batch.edges_per_hop))
    except BaseException:
        filled.put(traceback.format_exc())
        raise

"""The baseline: PyG's NodeLoader over features in memory, with Penstock's sampler on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from gnn_bench import CUDA
from penstock.gnn import data
from penstock.gnn.loading.batch import Batch
from penstock.pyg import NeighborSampler
from penstock.sampling import Graph
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader


class PygLoader:
    """Batches that PyG samples, gathers on the CPU and copies to a device, as a loader of Penstock gives
    them."""

    def __init__(
        self,
        dataset: data.Dataset,
        graph: Graph,
        ids: Any,
        fanout: Sequence[int],
        batch_size: int,
        device: Any,
        *,
        workers: int = 0,
        seed: int = 0,
    ) -> None:
        """
        Args:
            graph: On the CPU.
            workers: Processes that sample and gather; 0: this one does.
        """
        table = torch.from_numpy(np.load(dataset.features, mmap_mode="r+"))
        whole = Data(x=table, num_nodes=dataset.nodes)
        whole.edge_index = torch.empty(2, 0, dtype=torch.int64)
        self._labels = np.load(dataset.labels, mmap_mode="r")
        self._device = device
        self._loader = NodeLoader(
            whole,
            NeighborSampler(graph, list(fanout), seed=seed),
            input_nodes=torch.from_numpy(ids),
            batch_size=batch_size,
            shuffle=True,
            num_workers=workers,
            filter_per_worker=workers > 0,
            pin_memory=CUDA and workers > 0,
        )

    def __iter__(self) -> Iterator[Batch]:
        for made in self._loader:
            seeds = made.n_id[: made.batch_size]
            yield Batch(
                x=made.x.to(self._device, non_blocking=True),
                edge_index=made.edge_index.to(self._device, non_blocking=True),
                n_id=made.n_id,
                e_id=made.e_id,
                batch_size=made.batch_size,
                nodes_per_hop=made.num_sampled_nodes,
                edges_per_hop=made.num_sampled_edges,
                y=torch.from_numpy(self._labels[seeds.numpy()]).to(self._device),
            )

"""Batches of edges that are to be predicted, with the neighbourhoods of their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from penstock.arrays.messages import shown
from penstock.gnn.loading.base import Loader, checked_graph
from penstock.gnn.loading.neighbors import node_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.gnn.loading.batch import Batch
    from penstock.sampling import Graph


class LinkLoader(Loader):
    """Batches of links: pairs of nodes that an edge joins, and pairs drawn at random, with the neighbourhoods
    of both ends. Each node of a batch is sampled once. Otherwise as NeighborLoader."""

    def __init__(
        self,
        graph: Graph,
        features: Any,
        edges: Any,
        fanout: Sequence[int],
        batch_size: int = 1024,
        *,
        negatives: float = 1.0,
        edge_features: Any = None,
        shuffle: bool = True,
        seed: int = 0,
        device: Any = "auto",
        replace: bool = False,
        prefetch: int = 2,
        drop_last: bool = False,
        sms: int = 0,
    ) -> None:
        """
        Args:
            graph, features, fanout, edge_features, shuffle, seed, device, replace, prefetch, drop_last, sms:
                As for NeighborLoader.
            edges: Integers, shape (2, links): sources and targets.
            batch_size: Edges of a batch, without those that are drawn.
            negatives: Pairs drawn at random for each edge: both ends uniformly, so that now and then one is
                an edge.

        Raises:
            TypeError, ValueError, IndexError: What cannot be.
        """
        if not isinstance(negatives, (int, float)) or not 0 <= negatives < 2**10:
            raise ValueError(
                f"loader: negatives {shown(negatives)}: give how many pairs to draw for each edge"
            )
        nodes = checked_graph(graph).nodes
        if graph.edge_times is not None or graph.node_times is not None:
            raise ValueError(
                "loader: links of a graph with times: use PyG's LinkLoader with penstock.pyg.NeighborSampler"
            )
        if len(edges) != 2 or len(edges[0]) != len(edges[1]):
            raise ValueError("loader: edges: give sources and targets, as many of both")
        ends = torch.stack([node_numbers("edges", side, nodes) for side in edges])
        self._ends, self._negatives, self._nodes = ends, float(negatives), graph.nodes
        super().__init__(
            graph,
            features,
            fanout,
            batch_size,
            ends.shape[1],
            labels=None,
            edge_features=edge_features,
            shuffle=shuffle,
            seed=seed,
            device=device,
            replace=replace,
            disjoint=False,
            temporal="uniform",
            prefetch=prefetch,
            drop_last=drop_last,
            sms=sms,
        )

    def _make(self, number: int) -> Batch:
        ends = self._ends[:, self._places(number)]
        drawn = self._generator(number + 1)
        count = round(ends.shape[1] * self._negatives)
        others = torch.randint(self._nodes, (2, count), generator=drawn)
        pairs = torch.cat([ends, others], dim=1)
        seeds, places = pairs.reshape(-1).unique(return_inverse=True)
        made = self._sampled(number, seeds)
        labels = torch.zeros(pairs.shape[1])
        labels[: ends.shape[1]] = 1
        return self._gathered(
            number,
            made,
            edge_label_index=places.reshape(2, -1).to(self.device),
            edge_label=labels.to(self.device),
        )

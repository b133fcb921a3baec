"""Loaders over a graph of one type."""

from __future__ import annotations

from typing import Any

import torch

from penstock.arrays.messages import shown
from penstock.gnn.loading.base import Loader
from penstock.gnn.loading.batch import Batch
from penstock.gnn.loading.draft import Draft
from penstock.sampling import Graph, NeighborSampler
from penstock.sampling.sample import Sample

_NODES, _EDGES = "nodes", "edges"
_TYPES = ("uint8", "int8", "int16", "int32", "int64")


def checked_graph(given: Any) -> Graph:
    if not isinstance(given, Graph):
        raise TypeError(f"loader: {shown(given)}: give a penstock.sampling.Graph")
    return given


class OneTypeLoader(Loader):
    """Batches of a NeighborSampler's samples."""

    def __init__(
        self,
        sampler: NeighborSampler,
        features: Any,
        edge_features: Any,
        edge_type: Any,
        batch_size: int,
        options: dict[str, Any],
        items: int,
    ) -> None:
        super().__init__(sampler, batch_size, options, items)
        if features is not None:
            self._tables.add_features(_NODES, "features", features, sampler.graph.nodes)
        if edge_features is not None:
            self._tables.add(_EDGES, "edge_attr", "edge_features", edge_features, sampler.graph.edges)
        if edge_type is not None:
            array = self._tables.add(_EDGES, "edge_type", "edge_type", edge_type, sampler.graph.edges)
            if len(array.shape) != 1 or array.dtype.name not in _TYPES:
                raise TypeError(
                    f"loader: edge_type: {array.dtype} of shape {array.shape}: give a list of integers"
                )

    def _draft(self, number: int, made: Sample, **more: Any) -> Draft:
        known: dict[str, Any] = {
            "edge_index": torch.stack([made.rows, made.columns]),
            "n_id": made.nodes,
            "e_id": made.edges,
            "batch_size": made.nodes_per_hop[0],
            "nodes_per_hop": made.nodes_per_hop,
            "edges_per_hop": made.edges_per_hop,
            "batch": made.trees,
            "number": number,
        }

        def finished(rows: dict[Any, dict[str, Any]]) -> Batch:
            features, of_edges = rows.get(_NODES, {}), rows.get(_EDGES, {})
            if "edge_type" in of_edges:
                of_edges["edge_type"] = of_edges["edge_type"].long()
            return Batch(x=features.pop("x", None), features=features, **of_edges, **known, **more)

        return Draft(number, {_NODES: made.nodes, _EDGES: made.edges}, finished)

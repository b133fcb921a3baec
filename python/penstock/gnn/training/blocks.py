"""Sampled blocks: what a layer needs of them, and blocks without the edges that are to be predicted.

A block's nodes stand in the order of their hops, the seeds first, and so do its edges: those of hop k end at
nodes of hop k - 1 or before. So each layer but the first needs only a prefix of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Layer:
    """What one layer reads and computes of a block."""

    sources: int
    """Nodes whose values it reads: the first of the block."""
    targets: int
    """Nodes whose values it computes: the first of those."""
    edges: int
    """Edges that it reads: the first of the block."""


def layers_of(nodes_per_hop: list[int], edges_per_hop: list[int]) -> Iterator[Layer]:
    """One for each hop, in the order in which a model applies its layers: from the outermost hop inwards."""
    hops = len(edges_per_hop)
    for outer in range(hops, 0, -1):
        sources, targets = sum(nodes_per_hop[: outer + 1]), sum(nodes_per_hop[:outer])
        yield Layer(sources, targets, sum(edges_per_hop[:outer]))


@dataclass(frozen=True)
class Edges:
    """Of a block."""

    index: Any
    per_hop: list[int]
    types: Any = None
    """int64, (edges,); None where there is one type."""


def edges_of(batch: Any) -> Edges:
    """All edges of a `penstock.gnn.Batch`, with their types where it has `edge_type`."""
    return Edges(batch.edge_index, list(batch.edges_per_hop), getattr(batch, "edge_type", None))


def edges_without_positives(batch: Any) -> Edges:
    """The edges of a block of links but for the pairs that are edges, in both directions: a model that sees
    an edge need not predict it."""
    pairs = batch.edge_label_index[:, batch.edge_label > 0]
    nodes = batch.n_id.numel()
    hidden = torch.cat([pairs[0] * nodes + pairs[1], pairs[1] * nodes + pairs[0]])
    index = batch.edge_index
    kept = ~torch.isin(index[0] * nodes + index[1], hidden)
    per_hop = [int(part.sum()) for part in kept.split(list(batch.edges_per_hop))]
    types = getattr(batch, "edge_type", None)
    return Edges(index[:, kept], per_hop, None if types is None else types[kept])

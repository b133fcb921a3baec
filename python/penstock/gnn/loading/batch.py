"""What the loaders give."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass
class Batch:
    """A sampled block with what the training needs of it. Tensors lie on the loader's device.

    Attributes:
        x: Features of the nodes, shape (nodes, ...).
        edge_index: int64, shape (2, edges): local numbers of sources and targets.
        n_id: int64, shape (nodes,): numbers in the graph; the seeds first, then what each hop found.
        e_id: int64, shape (edges,): edge ids.
        batch_size: How many seeds there are.
        y: Labels of the seeds, shape (batch_size, ...), or None.
        nodes_per_hop: Of the seeds, and of each hop, how many nodes are new.
        edges_per_hop: Of each hop, how many edges were drawn.
        edge_attr: Features of the edges, shape (edges, ...), or None.
        features: Further features of the nodes by name.
        batch: int64, shape (nodes,): of a disjoint sample the seed that each node belongs to, else None.
        edge_label_index: Of links, int64, shape (2, pairs): local numbers of their ends, else None.
        edge_label: Of links, float32, shape (pairs,): 1 for those of the graph, 0 for others.
        number: Which batch of the epoch it is, from 0.
    """

    x: Any
    edge_index: Tensor
    n_id: Tensor
    e_id: Tensor
    batch_size: int
    nodes_per_hop: list[int]
    edges_per_hop: list[int]
    y: Any = None
    edge_attr: Tensor | None = None
    features: dict[str, Tensor] = field(default_factory=dict)
    batch: Tensor | None = None
    edge_label_index: Tensor | None = None
    edge_label: Tensor | None = None
    number: int = 0

    def tensors(self) -> list[Tensor]:
        """All that it has."""
        own = [getattr(self, each.name) for each in dataclasses.fields(self)]
        return [each for each in (*own, *self.features.values()) if isinstance(each, Tensor)]

    def to(self, device: Any) -> Batch:
        """The same with its tensors on another device."""
        moved = {
            each.name: getattr(self, each.name).to(device)
            for each in dataclasses.fields(self)
            if isinstance(getattr(self, each.name), Tensor)
        }
        features = {name: each.to(device) for name, each in self.features.items()}
        return dataclasses.replace(self, **moved, features=features)

    def follow(self, stream: torch.cuda.Stream) -> None:
        """Keeps the memory from others until what is on this stream has ended."""
        for each in self.tensors():
            if each.is_cuda:
                each.record_stream(stream)

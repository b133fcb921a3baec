"""What samplers return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EdgeType = tuple[str, str, str]


@dataclass(frozen=True)
class Sample:
    """A sample of a graph of one type. Tensors where torch is installed, else NumPy arrays; int64.

    Attributes:
        nodes: Shape (nodes,): numbers in the graph; the seeds first, then what each hop found.
        rows, columns: Shape (edges,): local numbers of each edge's neighbour, and of the node whose list it
            stands in.
        edges: Shape (edges,): edge ids.
        trees: Shape (nodes,): of a disjoint sample, the seed whose tree a node is in; else None.
        nodes_per_hop: Of the seeds, and of each hop, how many nodes are new.
        edges_per_hop: Of each hop, how many edges were drawn.
    """

    nodes: Any
    rows: Any
    columns: Any
    edges: Any
    trees: Any
    nodes_per_hop: list[int]
    edges_per_hop: list[int]


@dataclass(frozen=True)
class HeteroSample:
    """The same of several types: each field by node type or by edge type."""

    nodes: dict[str, Any]
    rows: dict[EdgeType, Any]
    columns: dict[EdgeType, Any]
    edges: dict[EdgeType, Any]
    trees: dict[str, Any] | None
    nodes_per_hop: dict[str, list[int]]
    edges_per_hop: dict[EdgeType, list[int]]

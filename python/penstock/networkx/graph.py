"""Graphs of the backend: of NetworkX, converted once to a temporary folder; or opened where they lie."""

from __future__ import annotations

import numbers
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.graph import GraphFolder, resolve, write_folder

if TYPE_CHECKING:
    import networkx as nx

    from penstock.graph import Graph as PenstockGraph

Array = NDArray[Any]
LARGEST = 2**31 - 1
"""Of integer weights."""


class Graph:
    """What NetworkX hands to the functions of this backend. It does not change.

    Attributes:
        folder: The graph as Penstock reads it.
        nodes: Of each vertex its node, in NetworkX's order.
        weight: The name of the edges' attribute that is their weight; None: they have none.
    """

    __networkx_backend__ = "penstock"

    def __init__(
        self, folder: GraphFolder, nodes: Sequence[Any], weight: str | None, *, multigraph: bool = True
    ) -> None:
        self.folder = folder
        self.nodes = nodes
        self.weight = weight
        self._multigraph = multigraph

    def is_directed(self) -> bool:
        return self.folder.directed

    def is_multigraph(self) -> bool:
        return self._multigraph

    def is_weighted_by(self, attribute: str | None) -> bool:
        """Whether edges have this attribute; where they do not, it counts 1 in NetworkX, as edges do here."""
        return attribute is not None and attribute == self.weight

    def __len__(self) -> int:
        return self.folder.vertices

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        return self.vertex(node) is not None

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        kind = self.weight, self.is_directed(), self._multigraph
        return _rebuilt, (*self.edges(), list(self.nodes), *kind)

    def vertex(self, node: object) -> int | None:
        """The number of a node; None of what is no node."""
        try:
            return self._vertices.get(node)
        except TypeError:  # cannot be hashed
            return None

    @cached_property
    def _vertices(self) -> dict[Any, int]:
        return {node: vertex for vertex, node in enumerate(self.nodes)}

    @cached_property
    def incoming(self) -> GraphFolder:
        """The graph with its edges turned round; an undirected one is its own."""
        return self.folder.write_incoming()

    def edges(self) -> tuple[Array, Array, Array | None]:
        """Ends of all stored edges and their weights: int64, shape (edges,), as they lie in the folder."""
        degrees = np.diff(self.folder.offsets().astype(np.int64))
        from_ = np.repeat(np.arange(len(self)), degrees.tolist())
        to = np.array(self.folder.edge_array(), np.int64)
        weights = self.folder.weight_array()
        return from_, to, None if weights is None else np.array(weights)


def _rebuilt(
    from_: Array,
    to: Array,
    weights: Array | None,
    nodes: list[Any],
    weight: str | None,
    directed: bool,
    multigraph: bool,
) -> Graph:
    place = tempfile.mkdtemp(prefix="penstock-networkx-")
    try:
        folder = _written(Path(place), len(nodes), from_, to, weights, directed)
        made = Graph(folder, nodes, weight, multigraph=multigraph)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(made, shutil.rmtree, place, ignore_errors=True)
    return made


def _written(
    place: Path, nodes: int, from_: Array, to: Array, weights: Array | None, directed: bool
) -> GraphFolder:
    target = place / "graph"
    try:
        return write_folder(target, nodes, from_, to, weights=weights, directed=directed, source="NetworkX")
    except ValueError as problem:
        if directed:
            raise
        # An undirected view of a directed multigraph, whose functions in NetworkX differ in what they take.
        reason = "edges have other weights the other way round: copy the view"
        raise NotImplementedError(reason) from problem


def open_graph(graph: str | os.PathLike[str] | PenstockGraph, **options: Any) -> Graph:
    """Open a graph for NetworkX where it lies, without a node or an edge of it as a Python object.

    `nx.pagerank(penstock.networkx.open_graph("volume:web@/data/a,/data/b"))` goes to this backend.

    Args:
        graph: What `penstock.graph.resolve` takes.
        **options: Those of `penstock.graph.resolve`.

    Returns:
        A graph whose nodes are the names of its vertices, or where they have none their numbers; its weights,
        where it has some, are the attribute "weight".

    Raises:
        ValueError, penstock.Error: As `penstock.graph.resolve`; ValueError also where two vertices have one
            name.
    """
    folder = resolve(graph, **options)
    names = folder.ids
    if names is not None and len(set(names)) != len(names):
        raise ValueError(f"open {folder.path}: vertices share names: give each its own for NetworkX")
    weight = None if folder.weights_place is None else "weight"
    nodes = range(folder.vertices) if names is None else names
    return Graph(folder, nodes, weight)


def from_networkx(graph: nx.Graph, attribute: str | None, default: Any = 1) -> Graph:
    """Convert a graph to a temporary folder, which is removed with the result.

    Args:
        graph: Of NetworkX.
        attribute: Of edges, that becomes their weight; None: they have none.
        default: The weight of an edge without it.

    Returns:
        The graph, with its nodes in their order.

    Raises:
        NotImplementedError: A weight is none that Penstock holds exactly, or another one the other way
            round; or the graph is of a class with an adjacency of its own.
    """
    nodes = list(graph)
    vertex_of = {node: vertex for vertex, node in enumerate(nodes)}
    weights = None if attribute is None else weights_of(graph, attribute, default)
    ends = np.array([(vertex_of[a], vertex_of[b]) for a, b, _ in _edges(graph)], np.int64).reshape(-1, 2)
    from_, to = ends[:, 0].copy(), ends[:, 1].copy()
    return _rebuilt(from_, to, weights, nodes, attribute, graph.is_directed(), graph.is_multigraph())


def _edges(graph: nx.Graph) -> Iterator[tuple[Any, Any, Mapping[str, Any]]]:
    """Ends and attributes of all edges, of undirected ones both ways and loops once.

    Raises:
        NotImplementedError: The class makes up edges that some functions of NetworkX see, and others do not.
    """
    if not type(graph).adjacency.__module__.startswith("networkx.classes."):
        name = type(graph).__name__
        raise NotImplementedError(f"{name} has an adjacency of its own: copy it to a graph")
    parallel = graph.is_multigraph()
    for node, neighbours in graph.adjacency():
        for other, found in neighbours.items():
            for attributes in found.values() if parallel else (found,):
                yield node, other, attributes


def weights_of(graph: nx.Graph, attribute: str, default: Any = 1) -> Array:
    """Weights in the order of `_edges`: int32, or float32 where one is no integer; shape (edges,).

    Raises:
        NotImplementedError: One is no number, negative, infinite, or not exact in these types.
    """
    values: list[Any] = [attributes.get(attribute, default) for _, _, attributes in _edges(graph)]
    for value in values:
        if not isinstance(value, (numbers.Real, np.bool_)) or not bool(value >= 0):  # type: ignore[operator]
            raise NotImplementedError(f"a weight is {value!r}: Penstock takes numbers of 0 or more")
    if all(isinstance(value, (numbers.Integral, np.bool_)) for value in values):
        if any(value > LARGEST for value in values):
            raise NotImplementedError(f"a weight is above {LARGEST}: Penstock has integers of 32 bits")
        return np.array(values, np.int32)
    exact = [float(min(value, sys.float_info.max)) for value in values]
    with np.errstate(over="ignore"):
        stored = np.array(exact, np.float64).astype(np.float32)
    for value, given, kept in zip(values, exact, stored.tolist(), strict=True):
        if kept != given or given != value or kept == float("inf"):
            raise NotImplementedError(f"a weight is {value!r}, which is no float32: Penstock has no others")
    return stored


def to_networkx(graph: Graph) -> nx.Graph:
    """As a graph of NetworkX, with the attribute of edges that is their weight."""
    import networkx as nx

    kinds = {(False, False): nx.Graph, (True, False): nx.DiGraph, (False, True): nx.MultiGraph}
    made = kinds.get((graph.is_directed(), graph.is_multigraph()), nx.MultiDiGraph)()
    made.add_nodes_from(graph.nodes)
    from_, to, weights = graph.edges()
    if not graph.is_directed():  # each is stored both ways
        once = from_ <= to
        from_, to, weights = from_[once], to[once], None if weights is None else weights[once]
    nodes = graph.nodes
    pairs = zip(from_.tolist(), to.tolist(), strict=True)
    if weights is None:
        made.add_edges_from((nodes[a], nodes[b]) for a, b in pairs)
    else:
        weighted = zip(pairs, weights.tolist(), strict=True)
        edges = ((nodes[a], nodes[b], value) for (a, b), value in weighted)
        made.add_weighted_edges_from(edges, weight=graph.weight or "weight")
    return made

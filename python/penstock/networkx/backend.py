# ruff: noqa: N803  (NetworkX calls a graph G, also by keyword)
"""The functions of NetworkX that Penstock has, with NetworkX's arguments, results and exceptions."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from penstock import graph as graphs
from penstock.graph.results import BfsResult, path_back

from .graph import Graph, from_networkx, to_networkx, weights_of
from .info import CONFIG, FUNCTIONS

Array = NDArray[Any]
NULL_GRAPH = "Connectivity is undefined for the null graph."


def _options() -> dict[str, Any]:
    """How runs read edges, by `nx.config.backends.penstock`."""
    chosen = getattr(nx.config.backends, "penstock", CONFIG)
    return {name: value for name in CONFIG if (value := chosen[name]) is not None}


def _arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(getattr(Interface, name)).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def _refusal(name: str, given: dict[str, Any]) -> str:
    """Why these arguments cannot be taken as NetworkX takes them; empty where they can."""
    graph, weight = given["G"], given.get("weight")
    if weight is not None and not isinstance(weight, str):
        return "weights by a function: Penstock takes the name of an attribute"
    if weight is not None and not isinstance(graph, Graph):
        try:
            weights_of(graph, weight)
        except NotImplementedError as problem:
            return str(problem)
    cutoff = given.get("cutoff")
    if cutoff is not None and (not isinstance(cutoff, numbers.Real) or math.isnan(cutoff)):
        return f"cutoff {cutoff!r} is no number"
    return _refusal_of_ranks(given) if name == "pagerank" else ""


def _refusal_of_ranks(given: dict[str, Any]) -> str:
    alpha, tol, most = given["alpha"], given["tol"], given["max_iter"]
    if not 0 <= alpha < 1:
        return f"alpha {alpha}: Penstock takes numbers from 0 to below 1"
    if not tol >= 0 or isinstance(most, bool) or not isinstance(most, numbers.Integral):
        return f"tol {tol}, max_iter {most}: Penstock takes a number of 0 or more, and an integer"
    for name in ("personalization", "nstart", "dangling"):
        values = given[name]
        if values is None:
            continue
        if not isinstance(values, Mapping):
            return f"{name}: Penstock takes a mapping"
        if not all(isinstance(v, numbers.Real) and 0 <= float(v) < math.inf for v in values.values()):
            return f"{name}: Penstock takes finite numbers of 0 or more"
        if name != "personalization" and sum(values.get(node, 0) for node in given["G"]) == 0:
            return f"{name}: all values are 0"
    return ""


def _depths(graph: Graph, source: int, *, incoming: bool = False) -> Array:
    """int64, shape (nodes,): edges on a shortest path from the source, -1 where there is none."""
    folder = graph.incoming if incoming else graph.folder
    found: BfsResult = graphs.bfs(folder, source=source, **_options())
    above = np.asarray(found.parents).copy()
    reached = above >= 0
    above[~reached] = source
    depths = (above != np.arange(len(above))).astype(np.int64)
    while (above != source).any():  # twice as far with each pass
        depths += depths[above]
        above = above[above]
    return np.where(reached, depths, -1)


def _by_depth(graph: Graph, depths: Array, cutoff: float | None) -> dict[Any, int]:
    """From the nearest node on. NetworkX finishes a level that begins before the cutoff."""
    kept = (depths == 0) | ((depths > 0) & (depths - 1 < (math.inf if cutoff is None else cutoff)))
    chosen = np.flatnonzero(kept)
    chosen = chosen[np.argsort(depths[chosen], kind="stable")]
    nodes = graph.nodes
    return {nodes[v]: d for v, d in zip(chosen.tolist(), depths[chosen].tolist(), strict=True)}


def _labels(graph: Graph) -> Array:
    return np.asarray(graphs.cc(graph.folder, **_options()).labels)


def _components(graph: Graph) -> Iterator[set[Any]]:
    if not len(graph):
        return
    labels = _labels(graph)
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    nodes = graph.nodes
    for members in np.split(order, ends):
        yield {nodes[v] for v in members.tolist()}


def _number_of_components(graph: Graph) -> int:
    return graphs.cc(graph.folder, **_options()).components if len(graph) else 0


def _is_one_component(graph: Graph) -> bool:
    if not len(graph):
        raise nx.NetworkXPointlessConcept(NULL_GRAPH)
    return _number_of_components(graph) == 1


def _vertex(graph: Graph, node: Any, kind: type[Exception], sentence: str) -> int:
    vertex = graph.vertex(node)
    if vertex is None:
        raise kind(sentence)
    return vertex


def _others(graph: Graph, source: Any, *, incoming: bool) -> set[Any]:
    """Those that are reached, without the source."""
    name = "digraph" if graph.is_directed() else "graph"
    vertex = _vertex(graph, source, nx.NetworkXError, f"The node {source} is not in the {name}.")
    depths = _depths(graph, vertex, incoming=incoming)
    return {graph.nodes[v] for v in np.flatnonzero(depths > 0).tolist()}


class _Paths:
    """Shortest paths from a node, by weights or, without any, by edges."""

    def __init__(self, graph: Graph, source: Any, weight: str | None, *, parents: bool = False) -> None:
        vertex = _vertex(graph, source, nx.NodeNotFound, f"Node {source} not found in graph")
        self.graph, self.source = graph, vertex
        if not graph.is_weighted_by(weight):
            self.lengths = _depths(graph, vertex)
            self.reached = self.lengths >= 0
            if parents:
                self.before = np.asarray(graphs.bfs(graph.folder, source=vertex, **_options()).parents)
            return
        found = graphs.sssp(graph.folder, source=vertex, parents=parents, **_options())
        self.lengths = np.asarray(found.distances)
        self.reached = np.isfinite(self.lengths) & (self.lengths >= 0)
        if parents:
            self.before = np.asarray(found.predecessors)

    def nearest(self, cutoff: float | None) -> list[int]:
        """Vertices from the nearest on; the source is among them whatever the cutoff is."""
        kept = self.reached if cutoff is None else self.reached & (self.lengths <= cutoff)
        kept[self.source] = True
        chosen = np.flatnonzero(kept)
        ordered: list[int] = chosen[np.argsort(self.lengths[chosen], kind="stable")].tolist()
        return ordered

    def lengths_to(self, vertices: list[int]) -> dict[Any, Any]:
        nodes = self.graph.nodes
        return {nodes[v]: d for v, d in zip(vertices, self.lengths[vertices].tolist(), strict=True)}

    def path_to(self, vertex: int) -> list[Any]:
        return [self.graph.nodes[v] for v in path_back(self.before, vertex)]

    def target(self, node: Any, sentence: str) -> int:
        vertex = self.graph.vertex(node)
        if vertex is None or not self.reached[vertex]:
            raise nx.NetworkXNoPath(sentence)
        return vertex


class Interface:
    """The entry point `networkx.backends`: functions by NetworkX's names, which get `Graph`s."""

    @staticmethod
    def convert_from_nx(
        graph: Any, *, edge_attrs: dict[str, Any] | None = None, preserve_edge_attrs: bool = False, **_: Any
    ) -> Graph:
        if isinstance(graph, Graph):
            return graph
        if preserve_edge_attrs or len(edge_attrs or ()) > 1:
            raise NotImplementedError("edges have one attribute in Penstock, their weight")
        attribute, default = next(iter(edge_attrs.items())) if edge_attrs else (None, 1)
        return from_networkx(graph, attribute, 1 if default is None else default)

    @staticmethod
    def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
        return to_networkx(result) if isinstance(result, Graph) else result

    @staticmethod
    def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        if name not in FUNCTIONS:
            return f"Penstock has no {name}"
        try:
            given = _arguments(name, args, kwargs)
        except TypeError as problem:
            return str(problem)
        return _refusal(name, given) or True

    @staticmethod
    def single_source_shortest_path_length(G: Any, source: Any, cutoff: Any = None) -> dict[Any, int]:
        vertex = _vertex(G, source, nx.NodeNotFound, f"Source {source} is not in G")
        return _by_depth(G, _depths(G, vertex), cutoff)

    @staticmethod
    def single_target_shortest_path_length(G: Any, target: Any, cutoff: Any = None) -> dict[Any, int]:
        vertex = _vertex(G, target, nx.NodeNotFound, f"Target {target} is not in G")
        return _by_depth(G, _depths(G, vertex, incoming=True), cutoff)

    @staticmethod
    def has_path(G: Any, source: Any, target: Any) -> bool:
        vertex = _vertex(G, source, nx.NodeNotFound, f"Source {source} is not in G")
        goal = _vertex(G, target, nx.NodeNotFound, f"Target {target} is not in G")
        return bool(_depths(G, vertex)[goal] >= 0)

    @staticmethod
    def descendants(G: Any, source: Any) -> set[Any]:
        return _others(G, source, incoming=False)

    @staticmethod
    def ancestors(G: Any, source: Any) -> set[Any]:
        return _others(G, source, incoming=True)

    @staticmethod
    def connected_components(G: Any) -> Iterator[set[Any]]:
        return _components(G)

    @staticmethod
    def number_connected_components(G: Any) -> int:
        return _number_of_components(G)

    @staticmethod
    def is_connected(G: Any) -> bool:
        return _is_one_component(G)

    @staticmethod
    def node_connected_component(G: Any, n: Any) -> set[Any]:
        vertex = _vertex(G, n, KeyError, n)
        labels = _labels(G)
        return {G.nodes[v] for v in np.flatnonzero(labels == labels[vertex]).tolist()}

    @staticmethod
    def weakly_connected_components(G: Any) -> Iterator[set[Any]]:
        return _components(G)

    @staticmethod
    def number_weakly_connected_components(G: Any) -> int:
        return _number_of_components(G)

    @staticmethod
    def is_weakly_connected(G: Any) -> bool:
        return _is_one_component(G)

    @staticmethod
    def pagerank(
        G: Any,
        alpha: float = 0.85,
        personalization: Mapping[Any, float] | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        nstart: Mapping[Any, float] | None = None,
        weight: str | None = "weight",
        dangling: Mapping[Any, float] | None = None,
    ) -> dict[Any, float]:
        n = len(G)
        if n == 0:
            return {}
        if max_iter < 1:
            raise nx.PowerIterationFailedConvergence(max_iter)

        def values(given: Mapping[Any, float] | None) -> Array | None:
            if given is None:
                return None
            return np.array([given.get(node, 0) for node in G.nodes], np.float64)

        begin_anew, goes = values(personalization), values(dangling)
        if begin_anew is not None and not begin_anew.any():
            raise ZeroDivisionError
        found = graphs.pagerank(
            G.folder,
            damping=alpha,
            tolerance=n * tol,
            iterations=max_iter,
            dtype="float64",
            weighted=G.is_weighted_by(weight),
            personalization=begin_anew,
            nstart=values(nstart),
            dangling=True if goes is None else goes,
            **_options(),
        )
        if not found.converged:
            raise nx.PowerIterationFailedConvergence(max_iter)
        return dict(zip(G.nodes, np.asarray(found.ranks).tolist(), strict=True))

    @staticmethod
    def dijkstra_path(G: Any, source: Any, target: Any, weight: str | None = "weight") -> list[Any]:
        _, path = Interface.single_source_dijkstra(G, source, target, weight=weight)
        return list(path)

    @staticmethod
    def dijkstra_path_length(G: Any, source: Any, target: Any, weight: str | None = "weight") -> Any:
        if source == target and source in G:
            return 0
        paths = _Paths(G, source, weight)
        return paths.lengths[paths.target(target, f"Node {target} not reachable from {source}")].item()

    @staticmethod
    def single_source_dijkstra_path(
        G: Any,
        source: Any,
        cutoff: Any = None,
        weight: str | None = "weight",
    ) -> dict[Any, list[Any]]:
        found = Interface.single_source_dijkstra(G, source, cutoff=cutoff, weight=weight)
        return dict(found[1])

    @staticmethod
    def single_source_dijkstra_path_length(
        G: Any,
        source: Any,
        cutoff: Any = None,
        weight: str | None = "weight",
    ) -> dict[Any, Any]:
        paths = _Paths(G, source, weight)
        return paths.lengths_to(paths.nearest(cutoff))

    @staticmethod
    def single_source_dijkstra(
        G: Any,
        source: Any,
        target: Any = None,
        cutoff: Any = None,
        weight: str | None = "weight",
    ) -> tuple[Any, Any]:
        if target is not None and target == source and source in G:
            return 0, [target]
        paths = _Paths(G, source, weight, parents=True)
        if target is None:
            near = paths.nearest(cutoff)
            return paths.lengths_to(near), {G.nodes[v]: paths.path_to(v) for v in near}
        sentence = f"No path to {target}."
        goal = paths.target(target, sentence)
        length = paths.lengths[goal].item()
        if cutoff is not None and length > cutoff:
            raise nx.NetworkXNoPath(sentence)
        return length, paths.path_to(goal)


interface = Interface()

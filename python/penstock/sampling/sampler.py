"""Samplers of neighbours."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.dtypes import dtype_named
from penstock.arrays.libraries import library_for
from penstock.arrays.messages import shown
from penstock.sampling.host import on_host
from penstock.sampling.sample import EdgeType, HeteroSample, Sample
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from penstock.arrays import Array
    from penstock.sampling.graph import Graph

_TEMPORAL = ("uniform", "latest")
_NODE = "node"
_EDGE: EdgeType = (_NODE, "to", _NODE)
_MAX_FANOUT = 2**31 - 1
_PAST_TIMES = 2**63


class _Sampler:
    """What samplers of one type and of several have in common: node types and edge types by number."""

    def __init__(
        self,
        graphs: dict[EdgeType, Graph],
        nodes: dict[str, int],
        fanout: dict[EdgeType, list[int]],
        replace: bool,
        disjoint: bool,
        temporal: str,
        induced: bool,
        seed: int,
    ) -> None:
        if temporal not in _TEMPORAL:
            raise ValueError(f"sampler: temporal {shown(temporal)}: choose uniform or latest")
        number = whole_number(seed)
        if number is None or not 0 <= number < 2**64:
            raise ValueError(f"sampler: seed {shown(seed)}: give a whole number from 0 to 2^64 - 1")
        self._graphs, self.nodes, self._fanouts = graphs, nodes, fanout
        self.has_times = any(
            each.edge_times is not None or each.node_times is not None for each in graphs.values()
        )
        if self.has_times and induced:
            raise ValueError("sampler: induced with times: an induced sample has edges of any time")
        self.replace, self.induced, self.seed = bool(replace), bool(induced), number
        self.disjoint = bool(disjoint) or self.has_times
        self.temporal = temporal
        self._order = list(nodes)
        self._arrays = [array for each in graphs.values() for array in each.arrays()]
        if not self._arrays:
            raise ValueError("sampler: there are no edges: give a graph")
        first: Array = self._arrays[0]
        if any(array._executor is not first._executor for array in self._arrays):
            raise ValueError("sampler: its graphs are of several devices: open all for one")
        self._natives: list[Any] = []
        self._make()

    def _make(self) -> None:
        """The native sampler, of the arrays as they are open now."""
        from penstock import _native

        natives = [array._open() for array in self._arrays]  # kept as long as the native sampler
        executor = self._arrays[0]._executor
        order = self._order
        types = [each.lent(order.index(kind[2]), order.index(kind[0])) for kind, each in self._graphs.items()]
        self._native = _native.NeighborSampler(executor, list(self.nodes.values()), types)
        self._natives = natives
        self._library = library_for(executor)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Of its graphs by reference, or by value where they lie in memory."""
        kept = dict(self.__dict__)
        for name in ("_native", "_natives", "_library", "_lock", "_arrays"):
            kept.pop(name)
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._arrays = [array for each in self._graphs.values() for array in each.arrays()]
        self._make()

    @property
    def device(self) -> Any:
        """Where samples lie."""
        return self._library.device

    def _int64(self, what: str, given: Any) -> Any:
        """Contiguous int64 numbers on the device."""
        if is_torch(given):
            import torch

            if given.dtype.is_floating_point or given.dtype.is_complex or given.dtype == torch.bool:
                raise TypeError(f"sample: {what} of type {given.dtype}: give integers")
            return given.detach().reshape(-1).to(device=self.device, dtype=torch.int64).contiguous()
        values = np.asarray(given)
        if values.size and values.dtype.kind not in "iu":
            raise TypeError(f"sample: {what} of type {values.dtype}: give integers")
        if values.dtype == np.uint64 and values.size and int(values.max()) >= _PAST_TIMES:
            raise ValueError(f"sample: {what}: {values.max()}: give numbers below {_PAST_TIMES}")
        return self._library.rows(np.ascontiguousarray(values, np.int64).reshape(-1))

    def _sample(
        self,
        seeds: dict[str, Any],
        call: int,
        seed_times: dict[str, Any] | None,
        stream: Any,
        sms: int,
    ) -> HeteroSample:
        if [array._open() for array in self._arrays] != self._natives:  # a forked process, or opened anew
            self._make()
        number = whole_number(call)
        if number is None or not 0 <= number < 2**64:
            raise ValueError(f"sample: call {shown(call)}: give a whole number from 0 to 2^64 - 1")
        if whole_number(sms) is None or not 0 <= sms < 2**31:
            raise ValueError(f"sample: sms {shown(sms)}: give a number of multiprocessors, or 0 for all")
        with self._lock, self._library.on(stream) as handle:
            numbers = {kind: self._int64("seeds", each) for kind, each in seeds.items()}
            unknown = [kind for kind in numbers if kind not in self.nodes]
            if unknown:
                raise ValueError(f"sample: seeds of {unknown[0]!r}: there is no such type of nodes")
            times = self._times(numbers, seed_times)
            at = [self._span(numbers[kind]) if kind in numbers else (0, 0) for kind in self._order]
            options = {
                "seed_times": self._library.address(times) if times is not None else 0,
                "fanouts": list(self._fanouts.values()),
                "replace": self.replace,
                "disjoint": self.disjoint,
                "latest": self.temporal == "latest",
                "induced": self.induced,
                "seed": self.seed,
                "call": number,
                "stream": handle,
                "sms": sms,
            }
            try:
                nodes, edges = self._native.sample(at, options)
            except ValueError as problem:
                raise _with_number(
                    problem, [numbers[kind] for kind in self._order if kind in numbers]
                ) from None
            return self._taken(nodes, edges)

    def _span(self, numbers: Any) -> tuple[int, int]:
        count = int(numbers.shape[0])
        return (self._library.address(numbers) if count else 0, count)

    def _times(self, numbers: dict[str, Any], given: dict[str, Any] | None) -> Any:
        """Of all seeds, type by type."""
        if not self.has_times:
            if given is not None:
                raise ValueError("sample: seed_times for a graph without times: leave them out")
            return None
        if given is None:
            raise ValueError("sample: the graph has times: give seed_times, one for each seed")
        parts = []
        for kind in self._order:
            if kind not in numbers:
                continue
            times = given.get(kind)
            if times is None or len(times) != numbers[kind].shape[0]:
                raise ValueError(
                    f"sample: {0 if times is None else len(times)} seed_times for "
                    f"{numbers[kind].shape[0]} seeds: give one for each"
                )
            values = on_host(times)
            if values.dtype.kind not in "iu":
                raise TypeError(f"sample: seed_times of type {values.dtype}: give integers")
            if values.dtype == np.uint64 and (values >= _PAST_TIMES).any():
                raise ValueError(f"sample: seed_times: {values.max()}: give numbers below {_PAST_TIMES}")
            parts.append(values.astype(np.int64))
        return self._int64("seed_times", np.concatenate(parts) if parts else [])

    def _empty(self, count: int) -> Any:
        return self._library.empty((count,), dtype_named("int64"))

    def _taken(self, nodes: list[list[int]], edges: list[list[int]]) -> HeteroSample:
        address = self._library.address
        node_of: dict[str, Any] = {}
        tree_of: dict[str, Any] = {}
        for k, kind in enumerate(self._order):
            node_of[kind] = self._empty(sum(nodes[k]))
            if self.disjoint:
                tree_of[kind] = self._empty(sum(nodes[k]))
            trees = address(tree_of[kind]) if self.disjoint else 0
            self._native.take_nodes(k, address(node_of[kind]), trees)
        rows, columns, ids = {}, {}, {}
        for k, (edge_type, graph) in enumerate(self._graphs.items()):
            made = [self._empty(sum(edges[k])) for _ in range(3)]
            self._native.take_edges(k, *(address(each) for each in made))
            rows[edge_type], columns[edge_type] = made[0], made[1]
            ids[edge_type] = self._named(graph.edge_ids, made[2])
        return HeteroSample(
            node_of,
            rows,
            columns,
            ids,
            tree_of if self.disjoint else None,
            dict(zip(self._order, nodes, strict=True)),
            dict(zip(self._graphs, edges, strict=True)),
        )

    def _named(self, names: Any, edges: Any) -> Any:
        """Edge ids of positions: of these alone, for the list may be a mapped file."""
        if names is None:
            return edges
        taken = names[edges.to(names.device)] if is_torch(names) else names[on_host(edges)]
        return self._int64("edge ids", taken)


def _with_number(problem: ValueError, seeds: list[Any]) -> ValueError:
    """The kernels know a seed by its position: its number, too."""
    found = re.fullmatch(r"(.*\bseed )(\d+)(: it is no node.*)", str(problem))
    if found is None:
        return problem
    place = int(found[2])
    for numbers in seeds:
        if place < len(numbers):
            return ValueError(f"{found[1]}{found[2]} is {int(on_host(numbers)[place])}{found[3]}")
        place -= len(numbers)
    return problem


def _checked_graph(given: Any) -> Graph:
    if not hasattr(given, "lent"):
        raise TypeError(f"sampler: {shown(given)}: give a penstock.sampling.Graph")
    graph: Graph = given
    return graph


def _checked_fanout(what: str, given: Any, zero: bool) -> list[int]:
    if is_torch(given) or isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, Sequence) or isinstance(given, str) or not len(given):
        raise TypeError(f"sampler: {what} {shown(given)}: give a list with a number for each hop")
    for each in given:
        number = whole_number(each)
        if number is None or number < -1 or number > _MAX_FANOUT or (number == 0 and not zero):
            least = 0 if zero else 1
            raise ValueError(
                f"sampler: {what} {shown(each)}: give {least} to {_MAX_FANOUT} neighbours, or -1 for all"
            )
    return [int(each) for each in given]


class NeighborSampler(_Sampler):
    """Samples the neighbourhood of seeds, hop by hop, over a graph in any placement.

    Sampling runs on the threads of the graph's device. The same seeds, `seed` and `call` give the same sample
    on every device, with any number of threads.
    """

    def __init__(
        self,
        graph: Graph,
        fanout: Sequence[int],
        *,
        replace: bool = False,
        disjoint: bool = False,
        temporal: str = "uniform",
        induced: bool = False,
        seed: int = 0,
    ) -> None:
        """
        Args:
            graph: The lists to draw from; it stays open as long as samples are taken.
            fanout: Neighbours of each node that a hop begins at, hop by hop; -1: all.
            replace: Draw with replacement.
            disjoint: Each seed grows a tree of its own, which shares no node with the others. So it is for a
                graph with times.
            temporal: Of a graph with times "uniform" draws from the neighbours that are not later than the
                seed, "latest" takes the latest of them.
            induced: All edges among the nodes that were found, in place of those that were drawn.
            seed: Of the random numbers.

        Raises:
            TypeError, ValueError: What cannot be.
        """
        if _checked_graph(graph).sources != graph.nodes:
            raise ValueError(
                f"sampler: lists of {graph.nodes} nodes with neighbours among {graph.sources}: use a "
                "HeteroNeighborSampler for nodes of several types"
            )
        self.graph = graph
        self.fanout = _checked_fanout("fan-out", fanout, zero=False)
        super().__init__(
            {_EDGE: graph},
            {_NODE: graph.nodes},
            {_EDGE: self.fanout},
            replace,
            disjoint,
            temporal,
            induced,
            seed,
        )

    def sample(
        self, seeds: Any, *, call: int = 0, seed_times: Any = None, stream: Any = None, sms: int = 0
    ) -> Sample:
        """Draw one sample.

        Args:
            seeds: Integers, shape (seeds,): numbers of nodes. Those given twice stay two nodes.
            call: Which sample of these seeds: another one is another draw.
            seed_times: int64, shape (seeds,), for a graph with times: nothing later is drawn.
            stream: A torch.cuda.Stream or a cudaStream_t; torch's current one by default.
            sms: Multiprocessors at most; 0: all.

        Returns:
            The sample, on the graph's device. Sampling has ended when it is there.

        Raises:
            TypeError, ValueError: Seeds that are no nodes, a graph that is damaged.
            penstock.Error: What cannot be read.
        """
        times = None if seed_times is None else {_NODE: seed_times}
        made = self._sample({_NODE: seeds}, call, times, stream, sms)
        return Sample(
            made.nodes[_NODE],
            made.rows[_EDGE],
            made.columns[_EDGE],
            made.edges[_EDGE],
            made.trees[_NODE] if made.trees is not None else None,
            made.nodes_per_hop[_NODE],
            made.edges_per_hop[_EDGE],
        )


class HeteroNeighborSampler(_Sampler):
    """The same over nodes and edges of several types."""

    def __init__(
        self,
        graphs: Mapping[EdgeType, Graph],
        fanout: Sequence[int] | Mapping[EdgeType, Sequence[int]],
        *,
        nodes: Mapping[str, int] | None = None,
        replace: bool = False,
        disjoint: bool = False,
        temporal: str = "uniform",
        induced: bool = False,
        seed: int = 0,
    ) -> None:
        """
        Args:
            graphs: By edge type (source type, name, target type) the lists of the targets.
            fanout: Of each hop, for all edge types or by type; 0: none.
            nodes: How many nodes the types have that no graph says it of.
            replace, disjoint, temporal, induced, seed: As for NeighborSampler.

        Raises:
            TypeError, ValueError: What cannot be; graphs that disagree about the nodes of a type.
        """
        counts = dict(nodes or {})
        if not isinstance(graphs, Mapping):
            raise TypeError(f"sampler: {shown(graphs)}: give graphs by edge type")
        for edge_type, each in graphs.items():
            if not isinstance(edge_type, tuple) or len(edge_type) != 3:
                raise TypeError(
                    f"sampler: edge type {shown(edge_type)}: give source type, name and target type"
                )
            source, _, target = edge_type
            _checked_graph(each)
            for kind, count in ((source, each.sources), (target, each.nodes)):
                if counts.setdefault(kind, count) != count:
                    raise ValueError(
                        f"sampler: {counts[kind]} and {count} nodes of {kind!r}: give graphs of the same "
                        "nodes"
                    )
        fanouts = {}
        for edge_type in fanout if isinstance(fanout, Mapping) else ():
            if edge_type not in graphs:
                raise ValueError(
                    f"sampler: a fan-out of {edge_type}: there is no such edge type: choose one of "
                    f"{', '.join(map(str, graphs))}"
                )
        for edge_type in graphs:
            given = fanout.get(edge_type) if isinstance(fanout, Mapping) else fanout
            if given is None:
                raise ValueError(f"sampler: no fan-out for {edge_type}: give one for each edge type")
            fanouts[edge_type] = _checked_fanout(f"fan-out of {edge_type}", given, zero=True)
        if len({len(each) for each in fanouts.values()}) > 1:
            raise ValueError("sampler: fan-outs of different lengths: give as many hops for each edge type")
        self.graphs, self.fanout = dict(graphs), fanouts
        super().__init__(self.graphs, counts, fanouts, replace, disjoint, temporal, induced, seed)

    def sample(
        self,
        seeds: Mapping[str, Any],
        *,
        call: int = 0,
        seed_times: Mapping[str, Any] | None = None,
        stream: Any = None,
        sms: int = 0,
    ) -> HeteroSample:
        """Draw one sample: seeds and seed_times by node type, the rest as NeighborSampler.sample."""
        if not isinstance(seeds, Mapping):
            raise TypeError("sample: seeds: give them by node type")
        times = None if seed_times is None else dict(seed_times)
        return self._sample(dict(seeds), call, times, stream, sms)

"""PyG's interface of samplers over penstock.sampling: its loaders need no other package then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.graph_store import EdgeLayout
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
    NodeSamplerInput,
    NumNeighbors,
    SamplerOutput,
)
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample
from torch_geometric.sampler.utils import to_csc

from penstock.arrays import Array
from penstock.pyg.stores import GraphStore
from penstock.pyg.times import as_list, times_in
from penstock.sampling import Graph, HeteroNeighborSampler
from penstock.sampling import NeighborSampler as _NeighborSampler

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    EdgeType = tuple[str, str, str]

_STRATEGIES = {"uniform": "uniform", "last": "latest"}
_MAX_CALL = 2**62


class NeighborSampler(BaseSampler):
    """Samples neighbourhoods for `NodeLoader` and `LinkLoader`, on the CPU or the GPU, over edges in memory,
    files or behind a cache.

    Each sample draws a number from torch's generator, so `torch.manual_seed` repeats a run.
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: Sequence[int] | Mapping[EdgeType, Sequence[int]] | NumNeighbors,
        *,
        subgraph_type: str = "directional",
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        sample_direction: str = "forward",
        placement: str = "auto",
        device: Any = "auto",
        cache: int | str | None = None,
        seed: int = 0,
    ) -> None:
        """
        Args:
            data: A Data or HeteroData, a pair (FeatureStore, GraphStore), a penstock.sampling.Graph, or a
                dictionary of graphs by edge type. Arrays of a GraphStore in CSC are read where they lie.
            num_neighbors: Of each hop, for all edge types or by type, also as PyG's NumNeighbors; -1: all.
            subgraph_type: "directional", "bidirectional" or "induced", as in PyG.
            replace, disjoint: As for penstock.sampling.NeighborSampler.
            temporal_strategy: "uniform" or "last"; lists need not be sorted by time.
            time_attr: Name of the times of nodes or of edges in `data`. Samples are disjoint then.
            weight_attr: Name of the edges' weights in `data`.
            sample_direction: "forward" goes against the edges, as PyG calls it, "backward" along them.
            placement, device, cache: Where edges that lie in tensors go, and where samples are drawn.
            seed: Of the random numbers, beside torch's.

        Raises:
            TypeError, ValueError: What cannot be.
        """
        if temporal_strategy not in _STRATEGIES:
            raise ValueError(f"sampler: temporal_strategy {temporal_strategy!r}: choose uniform or last")
        if sample_direction not in ("forward", "backward"):
            raise ValueError(f"sampler: sample_direction {sample_direction!r}: choose forward or backward")
        self.subgraph_type = SubgraphType(subgraph_type)
        self._backward = sample_direction == "backward"
        self._place = {"placement": placement, "device": device, "cache": cache}
        options: dict[str, Any] = {
            "replace": replace,
            "disjoint": disjoint,
            "temporal": _STRATEGIES[temporal_strategy],
            "induced": self.subgraph_type == SubgraphType.induced,
            "seed": seed,
        }
        graphs, nodes, self.node_time = self._graphs_of(data, time_attr, weight_attr)
        self._one = isinstance(graphs, Graph)
        self._sampler: Any
        if isinstance(graphs, Graph):
            self.num_nodes: Any = graphs.nodes
            self._sampler = _NeighborSampler(graphs, _fanout_of(num_neighbors, None), **options)
        else:
            fanout = _fanout_of(num_neighbors, [k[::-1] if self._backward else k for k in graphs])
            if self._backward and hasattr(fanout, "items"):
                fanout = {kind[::-1]: hops for kind, hops in fanout.items()}
            self._sampler = HeteroNeighborSampler(graphs, fanout, nodes=nodes, **options)
            self.num_nodes = dict(self._sampler.nodes)
        self.disjoint = self._sampler.disjoint
        self.num_neighbors = num_neighbors

    @property
    def edge_permutation(self) -> None:
        """Samples have the numbers that edges have in `data`."""
        return

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput | HeteroSamplerOutput:
        return self._both_ways(node_sample(NodeSamplerInput.cast(index), self._sample))

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None, **_: Any
    ) -> SamplerOutput | HeteroSamplerOutput:
        made = edge_sample(
            EdgeSamplerInput.cast(index),
            self._sample,
            self.num_nodes,
            self.disjoint,
            self.node_time,
            None if neg_sampling is None else NegativeSampling.cast(neg_sampling),
        )
        return self._both_ways(made)

    def _both_ways(self, made: Any) -> Any:
        if self.subgraph_type != SubgraphType.bidirectional:
            return made
        return made.to_bidirectional(keep_orig_edges=False)

    def _sample(self, seed: Any, seed_time: Any = None, **_: Any) -> SamplerOutput | HeteroSamplerOutput:
        call = int(torch.randint(_MAX_CALL, ()))
        seed_time = self._times_of(seed, seed_time)
        if self._one:
            one = self._sampler.sample(seed, call=call, seed_times=seed_time)
            row, column = (one.columns, one.rows) if self._backward else (one.rows, one.columns)
            return SamplerOutput(
                node=one.nodes,
                row=row,
                col=column,
                edge=one.edges,
                batch=one.trees,
                num_sampled_nodes=one.nodes_per_hop,
                num_sampled_edges=one.edges_per_hop,
            )
        made = self._sampler.sample(seed, call=call, seed_times=seed_time)
        row, column = (made.columns, made.rows) if self._backward else (made.rows, made.columns)
        return HeteroSamplerOutput(
            node=made.nodes,
            row=self._named(row),
            col=self._named(column),
            edge=self._named(made.edges),
            batch=made.trees,
            num_sampled_nodes=made.nodes_per_hop,
            num_sampled_edges=self._named(made.edges_per_hop),
        )

    def _times_of(self, seed: Any, given: Any) -> Any:
        """Of seeds without a time: their nodes' own, as in PyG."""
        if given is not None or not self._sampler.has_times:
            return given
        if self.node_time is None:
            raise ValueError("sampler: edges have times, and seeds have none: give input_time to the loader")
        if self._one:
            return self.node_time[seed.to(self.node_time.device)]
        without = [kind for kind in seed if kind not in self.node_time]
        if without:
            raise ValueError(f"sampler: nodes of {without[0]!r} have no times: give input_time to the loader")
        return {kind: self.node_time[kind][each.cpu()] for kind, each in seed.items()}

    def _named(self, of_types: dict[EdgeType, Any]) -> dict[EdgeType, Any]:
        if not self._backward:
            return of_types
        return {(kind[2], kind[1], kind[0]): value for kind, value in of_types.items()}

    # What there is to sample from

    def _graphs_of(self, data: Any, time_attr: str | None, weight_attr: str | None) -> tuple[Any, Any, Any]:
        """A graph, or several by type with the numbers of nodes, and the times of nodes."""
        if isinstance(data, Graph) or (
            isinstance(data, dict) and all(isinstance(each, Graph) for each in data.values())
        ):
            if time_attr is not None or weight_attr is not None or self._backward:
                raise ValueError(
                    "sampler: time_attr, weight_attr and sample_direction are of a Data: a Graph has its own"
                )
            return data, None, None
        if isinstance(data, Data):
            return self._of_data(data, time_attr, weight_attr)
        if isinstance(data, HeteroData):
            return self._of_hetero(data, time_attr, weight_attr)
        if isinstance(data, tuple) and len(data) == 2:
            if weight_attr is not None:
                raise ValueError("sampler: weight_attr of a pair of stores: give a Graph with weights")
            return self._of_stores(*data, time_attr)
        raise TypeError(
            f"sampler: {type(data).__name__}: give a Data, a HeteroData, a pair of stores, or a Graph"
        )

    def _list_graph(
        self, store: Any, sources: int, targets: int, node_times: Any, edge_times: Any, weights: Any
    ) -> Graph:
        ends = getattr(store, "edge_index", None)
        if ends is not None and ends.dtype.is_floating_point:
            raise TypeError(f"sampler: edge_index of type {ends.dtype}: give integers")
        counts = (sources, targets)[:: -1 if self._backward else 1]
        for side, count in zip(ends if ends is not None and ends.numel() else (), counts, strict=False):
            least, most = (int(each) for each in torch.aminmax(side))
            if least < 0 or most >= count:
                raise ValueError(
                    f"sampler: edge_index has node {least if least < 0 else most}: there are {count} nodes: "
                    f"give numbers from 0 to {count - 1}"
                )
        pointers, neighbors, order = to_csc(store, device="cpu", to_transpose=self._backward)

        def ordered(values: Any) -> Any:
            if values is not None and len(values) != len(neighbors):
                raise ValueError(
                    f"sampler: {len(values)} weights or times of {len(neighbors)} edges: give one for each"
                )
            return values if values is None or order is None else values[order]

        return Graph(
            pointers,
            neighbors,
            sources=sources,
            weights=ordered(weights),
            edge_times=ordered(edge_times),
            node_times=node_times,
            edge_ids=order,
            **self._place,
        )

    def _of_data(self, data: Data, time_attr: str | None, weight_attr: str | None) -> tuple[Any, Any, Any]:
        node_times = edge_times = None
        for name, given in (("time_attr", time_attr), ("weight_attr", weight_attr)):
            if given is not None and given not in data:
                raise ValueError(f"sampler: {name} {given!r}: data has it for neither nodes nor edges")
        if time_attr is not None:
            if data.is_node_attr(time_attr):
                node_times = data[time_attr]
            else:
                edge_times = data[time_attr]
        weights = None if weight_attr is None else data[weight_attr]
        nodes = int(data.num_nodes or 0)
        graph = self._list_graph(data, nodes, nodes, node_times, edge_times, weights)
        return graph, None, node_times

    def _of_hetero(
        self, data: HeteroData, time_attr: str | None, weight_attr: str | None
    ) -> tuple[Any, Any, Any]:
        nodes = {kind: int(data[kind].num_nodes or 0) for kind in data.node_types}
        node_times: dict[str, Tensor] = {}
        edge_times: dict[EdgeType, Tensor] = {}
        if time_attr is not None:
            node_times = data.collect(time_attr) if any(time_attr in s for s in data.node_stores) else {}
            edge_times = {s._key: s[time_attr] for s in data.edge_stores if time_attr in s}
            node_times = {kind: times for kind, times in node_times.items() if isinstance(kind, str)}
            if bool(node_times) == bool(edge_times):
                which = "both nodes and edges" if node_times else "neither nodes nor edges"
                raise ValueError(f"sampler: time_attr {time_attr!r}: data has it for {which}")
        graphs = {}
        for store in data.edge_stores:
            kind = store._key
            far, near = (kind[2], kind[0]) if self._backward else (kind[0], kind[2])
            weights = None if weight_attr is None or weight_attr not in store else store[weight_attr]
            graphs[kind[::-1] if self._backward else kind] = self._list_graph(
                store, nodes[far], nodes[near], node_times.get(far), edge_times.get(kind), weights
            )
        return graphs, nodes, node_times or None

    def _of_stores(self, features: Any, store: Any, time_attr: str | None) -> tuple[Any, Any, Any]:
        attrs = store.get_all_edge_attrs()
        kinds = list(dict.fromkeys(attr.edge_type for attr in attrs))
        sizes: dict[Any, int] = {}
        for attr in attrs:
            if attr.size is not None and attr.edge_type is not None:
                sizes[attr.edge_type[0]], sizes[attr.edge_type[2]] = attr.size
        times = self._stored_times(features, time_attr)
        graphs: dict[Any, Graph] = {}
        for kind in kinds:
            pointers, neighbors, order = self._stored_lists(store, kind)
            size = next((attr.size for attr in attrs if attr.edge_type == kind and attr.size), None)
            far = None if kind is None else kind[2] if self._backward else kind[0]
            sources = len(pointers) - 1 if size is None else int(size[1 if self._backward else 0])
            place = dict(self._place)
            opened = [side for side in (pointers, neighbors) if isinstance(side, Array)]
            if opened:
                place["device"] = opened[0].opened.device
            graph = Graph(
                pointers,
                neighbors,
                sources=sources if kind is not None else None,
                node_times=as_list(times.get(far), place["device"]),
                edge_times=as_list(times.get(kind), place["device"]) if kind is not None else None,
                edge_ids=order,
                **place,
            )
            graphs[kind[::-1] if self._backward and kind is not None else kind] = graph
        if kinds == [None]:
            return graphs[None], None, times.get(None)
        node_times = {kind: each for kind, each in times.items() if isinstance(kind, str)}
        return graphs, sizes, node_times or None

    def _stored_times(self, features: Any, time_attr: str | None) -> dict[Any, Any]:
        if time_attr is None:
            return {}
        found = {}
        for attr in features.get_all_tensor_attrs():
            if attr.attr_name == time_attr:
                found[attr.group_name] = times_in(features, attr.group_name, time_attr)
        if not found:
            raise ValueError(f"sampler: time_attr {time_attr!r}: there are no such features")
        return found

    def _stored_lists(self, store: Any, kind: Any) -> tuple[Any, Any, Any]:
        """Pointers, neighbours and edge ids: of our own store as they were put, where they are lists."""
        layout = EdgeLayout.CSR if self._backward else EdgeLayout.CSC
        if isinstance(store, GraphStore):
            pair = store.sides(kind, layout)
            if pair is not None:
                return (pair[0], pair[1], None) if self._backward else (pair[1], pair[0], None)
        if self._backward:
            pointers, neighbors, order = store.csr([kind]) if kind is not None else store.csr()
        else:
            neighbors, pointers, order = store.csc([kind]) if kind is not None else store.csc()
        if kind is not None:
            pointers, neighbors = pointers[kind], neighbors[kind]
            order = None if order is None else order.get(kind)
        return pointers, neighbors, order


def _fanout_of(given: Any, kinds: list[EdgeType] | None) -> Any:
    """Of the edge types; None: of a graph without types."""
    if not isinstance(given, NumNeighbors):
        return given
    # Anew: one that has answered for other edge types repeats its answer.
    return NumNeighbors(given.values, given.default).get_values(kinds)

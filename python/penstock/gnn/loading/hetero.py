"""Batches over graphs of several node and edge types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from penstock.arrays.messages import shown
from penstock.gnn.loading.base import Loader
from penstock.gnn.loading.batch import HeteroBatch
from penstock.gnn.loading.draft import Draft
from penstock.gnn.loading.options import LoaderOptions, of_sampler
from penstock.gnn.loading.pairs import Links
from penstock.gnn.loading.seeds import Seeds
from penstock.options import checked, show_options
from penstock.sampling import HeteroNeighborSampler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock.sampling import Graph
    from penstock.sampling.sample import EdgeType, HeteroSample


class _HeteroLoader(Loader):
    """Batches of a HeteroNeighborSampler's samples."""

    def __init__(
        self,
        sampler: HeteroNeighborSampler,
        features: Any,
        edge_features: Any,
        batch_size: int,
        options: dict[str, Any],
        items: int,
    ) -> None:
        super().__init__(sampler, batch_size, options, items)
        nodes = sampler.nodes
        for what, given, known in (
            ("features", features, nodes),
            ("edge_features", edge_features, sampler.graphs),
        ):
            if given is not None and not isinstance(given, Mapping):
                raise TypeError(f"loader: {what}: {shown(given)}: give them by type")
            unknown = [kind for kind in given or {} if kind not in known]
            if unknown:
                raise ValueError(
                    f"loader: {what} of {unknown[0]!r}: there is no such type: choose one of "
                    f"{', '.join(map(repr, known))}"
                )
        for kind, table in (features or {}).items():
            self._tables.add_features(kind, f"features of {kind!r}", table, nodes[kind])
        for edge_type, table in (edge_features or {}).items():
            edges = sampler.graphs[edge_type].edges
            self._tables.add(edge_type, "edge_attr", f"edge_features of {edge_type}", table, edges)

    def _draft(self, number: int, made: HeteroSample, **more: Any) -> Draft:
        known: dict[str, Any] = {
            "edge_index_dict": {
                kind: torch.stack([made.rows[kind], made.columns[kind]]) for kind in made.edges
            },
            "n_id_dict": made.nodes,
            "e_id_dict": made.edges,
            "nodes_per_hop_dict": made.nodes_per_hop,
            "edges_per_hop_dict": made.edges_per_hop,
            "batch_dict": made.trees,
            "number": number,
        }

        def finished(rows: dict[Any, dict[str, Any]]) -> HeteroBatch:
            of_nodes = {kind: rows[kind] for kind in made.nodes if kind in rows}
            return HeteroBatch(
                x_dict={kind: tables.pop("x") for kind, tables in of_nodes.items()},
                edge_attr_dict={kind: rows[kind]["edge_attr"] for kind in made.edges if kind in rows},
                features_dict={kind: tables for kind, tables in of_nodes.items() if tables},
                **known,
                **more,
            )

        return Draft(number, {**made.nodes, **made.edges}, finished)


class HeteroNeighborLoader(_HeteroLoader):
    """NeighborLoader over nodes and edges of several types: batches of seeds of one type with their
    neighbourhoods in all types."""

    @show_options(LoaderOptions)
    def __init__(
        self,
        graphs: Mapping[EdgeType, Graph],
        features: Mapping[str, Any] | None,
        seeds: tuple[str, Any] | str,
        fanout: Sequence[int] | Mapping[EdgeType, Sequence[int]],
        batch_size: int = 1024,
        *,
        nodes: Mapping[str, int] | None = None,
        labels: Any = None,
        edge_features: Mapping[EdgeType, Any] | None = None,
        seed_times: Any = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        Args:
            graphs, fanout, nodes: As for penstock.sampling.HeteroNeighborSampler.
            features: By node type what NeighborLoader takes; types may be left out.
            seeds: A node type, and which of its nodes: integers or a mask; a type alone: all.
            labels: A value for each node of the seeds' type.
            edge_features: By edge type a table with a row for each edge, by edge ids.
            seed_times: int64, shape (seeds,), where a graph has times.
            batch_size, options: As for NeighborLoader.

        Raises:
            TypeError, ValueError, IndexError: What cannot be.
        """
        given = checked(LoaderOptions, options)
        sampler = HeteroNeighborSampler(graphs, fanout, nodes=nodes, **of_sampler(given))
        self._kind, numbers = _typed("seeds", seeds, str)
        count = _nodes_of(sampler, "seeds", self._kind)
        self._seeds = Seeds(numbers, count, labels, seed_times, sampler.has_times)
        super().__init__(sampler, features, edge_features, batch_size, given, len(self._seeds))

    def _drawn(self, number: int) -> Draft:
        places = self._places(number)
        seeds, times = self._seeds.numbers[places], self._seeds.times(places)
        made = self._sampled(number, {self._kind: seeds}, None if times is None else {self._kind: times})
        return self._draft(
            number,
            made,
            input_type=self._kind,
            batch_size=len(seeds),
            y=self._seeds.labels(seeds, self.device),
        )


class HeteroLinkLoader(_HeteroLoader):
    """LinkLoader over nodes and edges of several types: batches of links of one edge type."""

    @show_options(LoaderOptions)
    def __init__(
        self,
        graphs: Mapping[EdgeType, Graph],
        features: Mapping[str, Any] | None,
        edges: tuple[EdgeType, Any],
        fanout: Sequence[int] | Mapping[EdgeType, Sequence[int]],
        batch_size: int = 1024,
        *,
        nodes: Mapping[str, int] | None = None,
        negatives: float = 1.0,
        edge_label: Any = None,
        edge_label_time: Any = None,
        edge_features: Mapping[EdgeType, Any] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        Args:
            edges: An edge type, whose edges need be in no graph, and integers, shape (2, links): sources and
                targets, each numbered in its type.
            graphs, features, fanout, nodes, edge_features: As for HeteroNeighborLoader.
            batch_size, negatives, edge_label, edge_label_time, options: As for LinkLoader.

        Raises:
            TypeError, ValueError, IndexError: What cannot be.
        """
        given = checked(LoaderOptions, options)
        sampler = HeteroNeighborSampler(graphs, fanout, nodes=nodes, **of_sampler(given))
        self._edge_type, ends = _typed("edges", edges, tuple)
        if len(self._edge_type) != 3:
            raise TypeError(
                f"loader: edges of {shown(self._edge_type)}: give source type, name and target type"
            )
        source, _, target = self._edge_type
        self._links = Links(
            ends,
            (_nodes_of(sampler, "edges", source), _nodes_of(sampler, "edges", target)),
            negatives,
            edge_label,
            edge_label_time,
            has_times=sampler.has_times,
            node_times=(_times_of(sampler, source), _times_of(sampler, target)),
        )
        super().__init__(sampler, features, edge_features, batch_size, given, len(self._links))

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "negatives": self._links.negatives}

    def _drawn(self, number: int) -> Draft:
        pairs = self._links.pairs(self._places(number), self._generator(number + 1))
        source, _, target = self._edge_type
        seeds, times, index = pairs.seeds((source, target), self._sampler.disjoint)
        made = self._sampled(number, seeds, times)
        if made.trees is not None:
            made = replace(made, trees={kind: pairs.links_of(each) for kind, each in made.trees.items()})
        return self._draft(
            number,
            made,
            input_type=self._edge_type,
            batch_size=pairs.ends.shape[1],
            **pairs.fields(index, self.device),
        )


def _typed(what: str, given: Any, kind: type) -> tuple[Any, Any]:
    """A type, and what is given of it; None: all."""
    if kind is str and isinstance(given, str):
        return given, None
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], kind):
        raise TypeError(f"loader: {what}: {shown(given)}: give a pair of their type and their numbers")
    return given


def _nodes_of(sampler: HeteroNeighborSampler, what: str, kind: str) -> int:
    if kind not in sampler.nodes:
        raise ValueError(
            f"loader: {what} of {kind!r}: there is no such type of nodes: choose one of "
            f"{', '.join(map(repr, sampler.nodes))}"
        )
    return sampler.nodes[kind]


def _times_of(sampler: HeteroNeighborSampler, kind: str) -> Any:
    """Of the nodes of a type, where a graph has them."""
    times = (graph.node_times for edge_type, graph in sampler.graphs.items() if edge_type[0] == kind)
    return next((each for each in times if each is not None), None)

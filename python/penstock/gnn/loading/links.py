"""Batches of edges that are to be predicted, with the neighbourhoods of their ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.gnn.loading.one_type import OneTypeLoader, checked_graph
from penstock.gnn.loading.options import LoaderOptions, of_sampler
from penstock.gnn.loading.pairs import Links
from penstock.options import checked, show_options
from penstock.sampling import NeighborSampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from penstock.gnn.loading.draft import Draft
    from penstock.sampling import Graph

_KIND = "nodes"


class LinkLoader(OneTypeLoader):
    """Batches of links: pairs of nodes that an edge joins, and pairs drawn at random, with the neighbourhoods
    of both ends. Each node of a batch is sampled once; each end of each pair for itself in a graph with times
    and with `disjoint`. Otherwise as NeighborLoader."""

    @show_options(LoaderOptions)
    def __init__(
        self,
        graph: Graph,
        features: Any,
        edges: Any,
        fanout: Sequence[int],
        batch_size: int = 1024,
        *,
        negatives: float = 1.0,
        edge_label: Any = None,
        edge_label_time: Any = None,
        edge_features: Any = None,
        edge_type: Any = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        Args:
            graph, features, fanout, edge_features, edge_type, options: As for NeighborLoader.
            edges: Integers, shape (2, links): sources and targets.
            batch_size: Edges of a batch, without those that are drawn.
            negatives: Pairs drawn at random for each edge: both ends uniformly, so that now and then one is
                an edge. In a graph with times they have the time of the edge that they are drawn for, and
                nodes that have times are not later.
            edge_label: A value for each edge, shape (links, ...), in place of 1. With negatives whole numbers
                from 0 on, and batches have one more: 0 is the label of what is drawn, as in PyG.
            edge_label_time: int64, shape (links,), for a graph with times: the neighbourhoods of an edge's
                ends have nothing later.
            disjoint: Each end of each pair grows a tree of its own. So it is for a graph with times.

        Raises:
            TypeError, ValueError, IndexError: What cannot be.
        """
        given = checked(LoaderOptions, options)
        sampler = NeighborSampler(checked_graph(graph), fanout, **of_sampler(given))
        self._links = Links(
            edges,
            (graph.nodes, graph.nodes),
            negatives,
            edge_label,
            edge_label_time,
            has_times=sampler.has_times,
            node_times=(graph.node_times, graph.node_times),
        )
        super().__init__(sampler, features, edge_features, edge_type, batch_size, given, len(self._links))

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "negatives": self._links.negatives}

    def _drawn(self, number: int) -> Draft:
        pairs = self._links.pairs(self._places(number), self._generator(number + 1))
        seeds, times, index = pairs.seeds((_KIND, _KIND), self._sampler.disjoint)
        made = self._sampled(number, seeds[_KIND], None if times is None else times[_KIND])
        if made.trees is not None:
            made = replace(made, trees=pairs.links_of(made.trees))
        return self._draft(number, made, **pairs.fields(index, self.device))

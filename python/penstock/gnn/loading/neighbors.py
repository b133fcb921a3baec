"""Batches of nodes with their neighbourhoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.gnn.loading.one_type import OneTypeLoader, checked_graph
from penstock.gnn.loading.options import LoaderOptions, of_sampler
from penstock.gnn.loading.seeds import Seeds
from penstock.options import checked, show_options
from penstock.sampling import NeighborSampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from penstock.gnn.loading.draft import Draft
    from penstock.sampling import Graph


class NeighborLoader(OneTypeLoader):
    """Batches of seeds with sampled neighbourhoods, their features and labels, made ahead of the training.

    Sampling and gathering run on the device of the graph and the features, each in a thread of its own, so
    that a batch is sampled while the rows of the one before are gathered; on a GPU on streams beside the
    training's. All tables of a batch are gathered in one launch where they lie in memory. With the
    same seed an epoch is the same on every device, and from a state (`state_dict`) it goes on where it was.
    """

    @show_options(LoaderOptions)
    def __init__(
        self,
        graph: Graph,
        features: Any,
        seeds: Any,
        fanout: Sequence[int],
        batch_size: int = 1024,
        *,
        labels: Any = None,
        edge_features: Any = None,
        edge_type: Any = None,
        seed_times: Any = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        Args:
            graph: The edges; node v lists the sources of those that lead to it.
            features: A table with a row for each node: a penstock.Array in any placement or a tensor; or
                several by name, one of them "x"; None: batches have none.
            seeds: Nodes that batches are made of: integers or a mask, shape (seeds,) or (nodes,); None: all.
            fanout: Neighbours of each node, hop by hop; -1: all.
            batch_size: Seeds of a batch.
            labels: A value for each node: an Array, a tensor, or a NumPy array, which may be mapped.
            edge_features: A table with a row for each edge, by edge ids.
            edge_type: The relation of each edge, by edge ids: an Array, a tensor or a NumPy array of
                integers, shape (edges,). Batches have it as PyG's RGCNConv takes it.
            seed_times: int64, shape (seeds,), for a graph with times.
            shuffle: Another order in each epoch.
            seed: Of the order and the draws.
            device: Where batches lie; by default where the graph is. It is an error if that is another.
            replace, disjoint, temporal: As for penstock.sampling.NeighborSampler.
            prefetch: Whole batches that are made ahead at most; beyond them one is gathered and two are
                sampled.
            drop_last: Leave out a last batch that is smaller.
            sms: Multiprocessors that sampling and gathering take at most, half of them each, the rest is the
                training's; 0: all. It limits the grids of their kernels, which may run on any. On a CPU it is
                an error, as is the next.
            sm_partition: Sampling and gathering run on `sms` multiprocessors that are theirs (a green
                context), rounded down to what the GPU gives away: from 8 on by 8 on Hopper; `loader.sms` is
                what they got. What runs on `loader.training_stream` has the others alone.

        Raises:
            TypeError, ValueError, IndexError: What cannot be.
            penstock.Error: `sm_partition`, and a driver before CUDA 12.5.
        """
        given = checked(LoaderOptions, options)
        sampler = NeighborSampler(checked_graph(graph), fanout, **of_sampler(given))
        self._seeds = Seeds(seeds, graph.nodes, labels, seed_times, sampler.has_times)
        super().__init__(sampler, features, edge_features, edge_type, batch_size, given, len(self._seeds))

    def _drawn(self, number: int) -> Draft:
        places = self._places(number)
        seeds = self._seeds.numbers[places]
        made = self._sampled(number, seeds, self._seeds.times(places))
        return self._draft(number, made, y=self._seeds.labels(seeds, self.device))

"""Batches of nodes with their neighbourhoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from penstock.arguments import is_torch
from penstock.arrays import Array
from penstock.arrays.messages import shown
from penstock.gnn.loading.base import Loader, checked_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.gnn.loading.batch import Batch
    from penstock.sampling import Graph


def node_numbers(what: str, given: Any, nodes: int) -> torch.Tensor:
    """int64, in host memory; a mask as the numbers where it is true; None: all."""
    if given is None:
        return torch.arange(nodes)
    if not is_torch(given) and np.asarray(given).dtype.kind not in "iubf":
        raise TypeError(f"loader: {what}: {shown(given)}: give integers, or a mask")
    numbers = given.detach().cpu() if is_torch(given) else torch.as_tensor(given)
    if numbers.dtype == torch.bool:
        if numbers.dim() != 1 or len(numbers) != nodes:
            raise ValueError(
                f"loader: {what}: a mask of shape {tuple(numbers.shape)}: there are {nodes} nodes"
            )
        return numbers.nonzero().reshape(-1)
    if numbers.numel() and (numbers.dtype.is_floating_point or numbers.dtype.is_complex):
        raise TypeError(f"loader: {what} of type {numbers.dtype}: give integers")
    if numbers.dtype == torch.uint8 and len(numbers.reshape(-1)) == nodes > 2 and int(numbers.max()) <= 1:
        raise TypeError(f"loader: {what}: a mask of uint8 would be numbers: give it as bool")
    numbers = numbers.to(torch.int64).reshape(-1)
    if numbers.numel():
        least, most = (int(each) for each in torch.aminmax(numbers))
        if least < 0 or most >= nodes:
            wrong = least if least < 0 else most
            raise IndexError(f"loader: {what}: {wrong} is no node: give numbers from 0 to {nodes - 1}")
    return numbers


class NeighborLoader(Loader):
    """Batches of seeds with sampled neighbourhoods, their features and labels, made ahead of the training.

    Sampling and gathering run on the device of the graph and the features, on a GPU beside the training on a
    stream of their own. All tables of a batch are gathered in one launch where they lie in memory. With the
    same seed an epoch is the same on every device, and from a state (`state_dict`) it goes on where it was.
    """

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
        seed_times: Any = None,
        shuffle: bool = True,
        seed: int = 0,
        device: Any = "auto",
        replace: bool = False,
        disjoint: bool = False,
        temporal: str = "uniform",
        prefetch: int = 2,
        drop_last: bool = False,
        sms: int = 0,
    ) -> None:
        """
        Args:
            graph: The edges; node v lists the sources of those that lead to it.
            features: A table with a row for each node: a penstock.Array in any placement or a tensor; or
                several by name, one of them "x".
            seeds: Nodes that batches are made of: integers or a mask, shape (seeds,) or (nodes,); None: all.
            fanout: Neighbours of each node, hop by hop; -1: all.
            batch_size: Seeds of a batch.
            labels: A value for each node: an Array, a tensor, or a NumPy array, which may be mapped.
            edge_features: A table with a row for each edge, by edge ids.
            seed_times: int64, shape (seeds,), for a graph with times.
            shuffle: Another order in each epoch.
            seed: Of the order and the draws.
            device: Where batches lie; by default where the graph is. It is an error if that is another.
            replace, disjoint, temporal: As for penstock.sampling.NeighborSampler.
            prefetch: Batches that are made ahead at most.
            drop_last: Leave out a last batch that is smaller.
            sms: Multiprocessors that sampling and gathering take at most, the rest is the training's; 0: all.

        Raises:
            TypeError, ValueError, IndexError: What cannot be.
        """
        if isinstance(labels, (list, tuple)):
            labels = np.asarray(labels)
        if isinstance(labels, np.ndarray) and labels.dtype.kind not in "iubf":
            raise TypeError(f"loader: labels of type {labels.dtype}: give numbers")
        self._seeds = node_numbers("seeds", seeds, checked_graph(graph).nodes)
        super().__init__(
            graph,
            features,
            fanout,
            batch_size,
            len(self._seeds),
            labels=labels,
            edge_features=edge_features,
            shuffle=shuffle,
            seed=seed,
            device=device,
            replace=replace,
            disjoint=disjoint,
            temporal=temporal,
            prefetch=prefetch,
            drop_last=drop_last,
            sms=sms,
        )
        if labels is not None and not (isinstance(labels, Array) or hasattr(labels, "__getitem__")):
            raise TypeError(f"loader: labels: {shown(labels)}: give an array or a tensor")
        if labels is not None and len(labels) != graph.nodes:
            raise ValueError(
                f"loader: {len(labels)} labels: the graph has {graph.nodes} nodes: give one for each"
            )
        self._times = None if seed_times is None else torch.as_tensor(seed_times).cpu()
        if self._times is not None and len(self._times) != len(self._seeds):
            raise ValueError(
                f"loader: {len(self._times)} seed_times for {len(self._seeds)} seeds: give one for each"
            )

    def _make(self, number: int) -> Batch:
        places = self._places(number)
        seeds = self._seeds[places]
        times = None if self._times is None else self._times[places]
        made = self._sampled(number, seeds, times)
        return self._gathered(number, made, y=self._labels_of(seeds))

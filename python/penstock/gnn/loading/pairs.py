"""Pairs of nodes that batches are made of, and those that are drawn beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from penstock.arguments import is_torch
from penstock.arrays.messages import shown
from penstock.checks import checked_number
from penstock.gnn.loading.seeds import check_nodes, checked_times, integers
from penstock.sampling.host import on_host

_MAX_NEGATIVES = 2**10


@dataclass(frozen=True)
class Pairs:
    """Of a batch: first those that were given, then those that were drawn."""

    ends: torch.Tensor
    """int64, (2, pairs)."""
    given: int
    labels: torch.Tensor
    times: torch.Tensor | None
    """int64, (pairs,)."""

    def seeds(
        self, kinds: tuple[str, str], disjoint: bool
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor] | None, torch.Tensor]:
        """What is sampled.

        Args:
            kinds: The types of sources and targets.
            disjoint: Sample each end of each pair for itself; else each node once.

        Returns:
            Seeds and their times by node type, and the places of the ends among them, (2, pairs).
        """
        parts = [self.ends.reshape(-1)] if kinds[0] == kinds[1] else list(self.ends)
        sides = dict(zip(dict.fromkeys(kinds), parts, strict=True))
        if not disjoint:
            found = {kind: side.unique(return_inverse=True) for kind, side in sides.items()}
            index = torch.cat([inverse for _, inverse in found.values()]).reshape(2, -1)
            return {kind: nodes for kind, (nodes, _) in found.items()}, None, index
        index = torch.cat([torch.arange(len(side)) for side in parts]).reshape(2, -1)
        times = self.times
        if times is None:
            return sides, None, index
        return sides, dict.fromkeys(sides, times.repeat(2 // len(parts))), index

    def links_of(self, trees: torch.Tensor) -> torch.Tensor:
        """The link that each tree is sampled for, be it for an end of its own or of a pair drawn for it."""
        return trees % self.ends.shape[1] % self.given

    def fields(self, index: torch.Tensor, device: torch.device) -> dict[str, Any]:
        """Of a batch."""
        return {
            "edge_label_index": index.to(device),
            "edge_label": self.labels.to(device),
            "edge_label_time": None if self.times is None else self.times.to(device),
        }


class Links:
    """Links of an epoch."""

    def __init__(
        self,
        edges: Any,
        nodes: tuple[int, int],
        negatives: float,
        labels: Any,
        times: Any,
        *,
        has_times: bool,
        node_times: Sequence[Any] = (None, None),
    ) -> None:
        """
        Args:
            edges: Integers, (2, links).
            nodes: Sources and targets that there are.
            negatives: Pairs drawn for each link.
            labels: One for each link, or None.
            times: One for each link, where the graph has times.
            node_times: Of sources and targets, or None: no node is drawn that is later than its link.
        """
        self.negatives = checked_number("negatives", negatives)
        if not 0 <= self.negatives < _MAX_NEGATIVES:
            raise ValueError(
                f"loader: negatives {shown(negatives)}: give pairs to draw for each edge, from 0 below "
                f"{_MAX_NEGATIVES}"
            )
        if not hasattr(edges, "__len__") or len(edges) != 2:
            raise ValueError("loader: edges: give sources and targets, as many of both")
        ends = [integers("edges", side) for side in edges]
        if ends[0].dim() != 1 or ends[0].shape != ends[1].shape:
            raise ValueError(
                f"loader: edges: sources of shape {tuple(ends[0].shape)} and targets of "
                f"{tuple(ends[1].shape)}: give lists, as many of both"
            )
        for side, count in zip(ends, nodes, strict=True):
            check_nodes("edges", side, count)
        self._ends = torch.stack(ends)
        self._labels = _checked_labels(labels, len(self), self.negatives)
        self._times = checked_times("edge_label_time", times, len(self), "links", has_times)
        times_of = node_times if self.negatives else (None, None)
        first = _Drawn(nodes[0], times_of[0])
        same = nodes[0] == nodes[1] and times_of[0] is times_of[1]
        self._drawn = (first, first if same else _Drawn(nodes[1], times_of[1]))

    def __len__(self) -> int:
        return len(self._ends[0])

    def pairs(self, places: torch.Tensor, generator: torch.Generator) -> Pairs:
        ends = self._ends[:, places]
        count = round(len(places) * self.negatives)
        rounds = 1 + -(-count // len(places))
        times = None if self._times is None else self._times[places].repeat(rounds)[: len(places) + count]
        late = None if times is None else times[len(places) :]
        others = torch.stack([side.draw(count, late, generator) for side in self._drawn])
        known = torch.ones(len(places)) if self._labels is None else self._labels[places]
        labels = torch.cat([known, known.new_zeros((count, *known.shape[1:]))])
        return Pairs(torch.cat([ends, others], dim=1), len(places), labels, times)


class _Drawn:
    """Nodes drawn uniformly, of those that are not later than a time where they have times."""

    def __init__(self, nodes: int, times: Any) -> None:
        self._nodes = nodes
        self._order = self._times = None
        if times is not None:
            self._times, self._order = torch.as_tensor(on_host(times[:])).to(torch.int64).sort(stable=True)

    def draw(self, count: int, times: torch.Tensor | None, generator: torch.Generator) -> torch.Tensor:
        """int64, (count,). Where all nodes are later, the earliest."""
        if self._order is None or self._times is None or times is None:
            return torch.randint(self._nodes, (count,), generator=generator)
        known = torch.searchsorted(self._times, times, right=True)
        ranks = (torch.rand(count, dtype=torch.float64, generator=generator) * known).long()
        return self._order[ranks]


def _checked_labels(given: Any, links: int, negatives: float) -> torch.Tensor | None:
    """With negatives one more than given, so that theirs is 0."""
    if given is None:
        return None
    if not is_torch(given) and np.asarray(given).dtype.kind not in "iubf":
        raise TypeError(f"loader: edge_label: {shown(given)}: give numbers")
    labels = given.detach().cpu() if is_torch(given) else torch.as_tensor(np.asarray(given))
    if len(labels) != links:
        raise ValueError(f"loader: {len(labels)} edge_label for {links} links: give one for each")
    if not negatives:
        return labels
    labels = integers("edge_label with negatives", labels)
    if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < 2**63 - 1:
        raise ValueError(
            "loader: edge_label with negatives, whose label is 0: give whole numbers from 0 on, or "
            "negatives=0"
        )
    return labels.to(torch.int64) + 1

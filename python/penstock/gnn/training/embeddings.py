"""Rows that are learned, for nodes of the types that have no features."""

from __future__ import annotations

import os
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from penstock.gnn.training.objectives import features_of
from penstock.gnn.training.options import Options
from penstock.nn import Embedding
from penstock.optim import SparseAdam


class Embeddings:
    """What a model reads of a batch: its features, and for nodes without them rows of a table that trains.

    The table lies in a file, with a row for each of these nodes in the order of their numbers.
    """

    def __init__(self, options: Options, source: Any, ranks: Any) -> None:
        """Opens the table of a training that goes on, or draws one from torch's random numbers.

        Raises:
            ValueError: All nodes have features, or there are several processes.
        """
        path = Path(os.fspath(options.embeddings or ""))
        ranges = [each for each in source.unfeatured if len(each)]
        _check(options, path, ranges, ranks.size)
        lengths = [len(each) for each in ranges]
        places = list(accumulate(lengths, initial=0))
        self._starts, self._ends, self._places = (
            torch.tensor(numbers, device=ranks.device)
            for numbers in ([each.start for each in ranges], [each.stop for each in ranges], places[:-1])
        )
        self.table = Embedding(
            places[-1],
            source.width,
            path=path,
            placement=options.embeddings_placement or "storage",
            device=str(ranks.device),
            cache=options.embeddings_cache,
        )
        self.optimizer = SparseAdam(self.table, lr=options.lr)

    @property
    def parameters(self) -> int:
        """Numbers that are trained."""
        return self.table.num_embeddings * self.table.embedding_dim

    def __call__(self, batch: Any) -> Any:
        """float32, (nodes, width)."""
        nodes = batch.n_id
        kinds = (torch.searchsorted(self._starts, nodes, right=True) - 1).clamp(min=0)
        learned = ((nodes >= self._starts[kinds]) & (nodes < self._ends[kinds])).nonzero().squeeze(1)
        nodes, kinds = nodes[learned], kinds[learned]
        rows = nodes - self._starts[kinds] + self._places[kinds]
        return features_of(batch).index_copy(0, learned, self.table(rows))

    def saved(self) -> dict[str, Any]:
        """What `penstock.checkpoint` saves and restores."""
        return {"model": self.table, "optimizers": self.optimizer}

    def close(self) -> None:
        """Writes the table to its file."""
        self.optimizer.close()
        self.table.array.close()


def _check(options: Options, path: Path, ranges: list[range], processes: int) -> None:
    if not ranges:
        raise ValueError(
            f"embeddings {path}: {options.dataset} names no type of nodes without features (a reordered one "
            "names none): leave them out"
        )
    if processes > 1:
        raise ValueError(
            f"embeddings {path}: {processes} processes, and a table has one writer: start one process"
        )

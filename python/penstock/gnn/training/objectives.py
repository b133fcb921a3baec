"""What is learned: the loss of a batch, and how a model is measured on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn import functional

from penstock.gnn.training.blocks import edges_of, edges_without_positives
from penstock.gnn.training.metrics import auc, reciprocal_ranks
from penstock.gnn.training.options import NODES
from penstock.gnn.training.ranks import Ranks

Check = Callable[[], None]
"""Called between batches; ends the work by raising."""


@dataclass(frozen=True)
class Answer:
    """Of a batch."""

    loss: Any
    """Scalar: mean over the seeds."""
    right: Any
    """int64 scalar: how many answers were right, of `count`. Read only where it is shown."""
    count: int


Read = Callable[[Any], Any]
"""What a model reads of the nodes of a batch: float32, (nodes, width)."""


def features_of(batch: Any) -> Any:
    return batch.x.float()


class Objective(Protocol):
    def answer(self, model: Any, batch: Any) -> Answer:
        """Applies the model to a batch."""

    def measure(
        self, model: Any, loader: Iterable[Any], ranks: Ranks, check: Check
    ) -> dict[str, float] | None:
        """Of all processes together, in each. None where there are no seeds. REQUIRES: the model is in its
        evaluating mode."""


def objective_for(task: str, read: Read) -> Objective:
    return NodeLabels(read) if task == NODES else Links(read)


class NodeLabels:
    """Cross-entropy of the seeds' labels; measured by the accuracy."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def answer(self, model: Any, batch: Any) -> Answer:
        logits = model(self._read(batch), edges_of(batch), batch.nodes_per_hop)
        loss = functional.cross_entropy(logits, batch.y)
        return Answer(loss, (logits.detach().argmax(1) == batch.y).sum(), batch.batch_size)

    def measure(
        self, model: Any, loader: Iterable[Any], ranks: Ranks, check: Check
    ) -> dict[str, float] | None:
        count, rights, losses = 0, [], []
        for batch in loader:
            check()
            with torch.no_grad():
                answer = self.answer(model, batch)
            count += answer.count
            rights.append(answer.right)
            losses.append(answer.loss)
        right = int(torch.stack(rights).sum()) if rights else 0
        # Logits that are no numbers count as the first class: no loss of theirs is a number.
        finite = not losses or bool(torch.stack(losses).isfinite().all())
        rights_of, counts, finites = zip(*ranks.gather((right, count, finite)), strict=True)
        _refuse_unless(all(finites))
        return {"accuracy": sum(rights_of) / sum(counts)} if sum(counts) else None


class Links:
    """Binary cross-entropy of the dot products of two nodes' embeddings.

    Measured by the area under the ROC curve over all pairs, and by the mean reciprocal rank of each edge
    among the pairs of its batch that are none.
    """

    def __init__(self, read: Read) -> None:
        self._read = read

    def answer(self, model: Any, batch: Any) -> Answer:
        scores = self._scores(model, batch)
        labels = batch.edge_label.to(scores.dtype)
        loss = functional.binary_cross_entropy_with_logits(scores, labels)
        return Answer(loss, ((scores.detach() > 0) == (labels > 0)).sum(), len(labels))

    def measure(
        self, model: Any, loader: Iterable[Any], ranks: Ranks, check: Check
    ) -> dict[str, float] | None:
        positive, negative, reciprocal = ([np.empty(0)] for _ in range(3))
        for batch in loader:
            check()
            with torch.no_grad():
                scores = self._scores(model, batch).cpu().double().numpy()
            is_edge = batch.edge_label.cpu().numpy() > 0
            positive.append(scores[is_edge])
            negative.append(scores[~is_edge])
            if is_edge.any() and not is_edge.all():
                reciprocal.append(reciprocal_ranks(positive[-1], negative[-1]))
        found = ranks.gather(tuple(np.concatenate(each) for each in (positive, negative, reciprocal)))
        edges, others, inverse = (np.concatenate(each) for each in zip(*found, strict=True))
        _refuse_unless(bool(np.isfinite(edges).all() and np.isfinite(others).all()))
        if not len(inverse):
            return None
        return {"auc": auc(edges, others), "mrr": float(inverse.mean())}

    def _scores(self, model: Any, batch: Any) -> Any:
        embedded = model(self._read(batch), edges_without_positives(batch), batch.nodes_per_hop)
        first, second = batch.edge_label_index
        return (embedded[first] * embedded[second]).sum(1)


def _refuse_unless(finite: bool) -> None:
    if not finite:
        raise ValueError(
            "measure: scores of a model that are no finite numbers: look for features that are none, or give "
            "a smaller lr"
        )

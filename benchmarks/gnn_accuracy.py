"""What a model learns must not depend on where the features lie: five seeds of each placement, and PyG."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gnn_bench import Results, Training, alone, drawn, open_features, place_needs
from gnn_pyg import PygLoader
from penstock.gnn import NeighborLoader, data
from penstock.sampling import Graph
from penstock.tiering import score
from scipy.stats import t as student

FANOUT = (10, 10)
BATCH = 512
SEEDS, EPOCHS = 5, 5
BELOW = ("hbm", "tiered.10", "host", "host-cached.8th", "storage.8th", "storage.10.tiered")


def interval(values: list[float]) -> tuple[float, float]:
    """Mean, and half of the 95 % interval of it by Student's t."""
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), float(student.ppf(0.975, len(values) - 1)) * spread


def accuracies(folder: Path, results: Results, nodes: int) -> None:
    """Validation accuracy after EPOCHS epochs over a graph whose labels are planted.

    PyG trains on features in memory that the CPU gathers. `agrees`: the 95 % interval of the mean overlaps
    that of PyG.
    """
    dataset = drawn(
        folder / f"accuracy-{nodes}",
        "papers100M",
        nodes,
        classes=40,
        splits=(0.1, 0.05, 0.05),
        accuracy=0.2,
        homophily=0.5,
    )
    results.about(nodes=dataset.nodes, edges=dataset.edges, batch=BATCH, seeds=SEEDS, epochs=EPOCHS)
    ids, valid = np.load(dataset.train), np.load(dataset.valid)
    baseline = in_pyg(dataset, ids, valid)
    record(results, "pyg", baseline, baseline)
    with Graph.open(dataset) as graph:
        scores = score(graph, "weighted_reverse_pagerank", train_ids=ids)
        for place in BELOW:
            if lacks := place_needs(place):
                results.skip(f"accuracy.{place}", lacks)
                continue
            with open_features(dataset, place, scores) as features:
                labels = np.load(dataset.labels)

                def loader(part: Any, seed: int, table: Any = features, of: Any = labels) -> Any:
                    return NeighborLoader(graph, table, part, FANOUT, BATCH, labels=of, seed=seed)

                record(results, place, trained(dataset, ids, valid, loader), baseline)


def in_pyg(dataset: data.Dataset, ids: Any, valid: Any) -> list[tuple[float, float]]:
    with Graph.open(dataset, placement="host", device="cpu") as graph:

        def loader(part: Any, seed: int) -> Any:
            return PygLoader(dataset, graph, part, FANOUT, BATCH, alone().device, seed=seed)

        return trained(dataset, ids, valid, loader)


def trained(
    dataset: data.Dataset, ids: Any, valid: Any, loader: Callable[[Any, int], Any]
) -> list[tuple[float, float]]:
    """Accuracy and last loss of each seed."""
    found = []
    for seed in range(SEEDS):
        training = Training(dataset, alone(), seed, FANOUT)
        batches = loader(ids, seed)
        loss = math.nan
        for epoch in range(EPOCHS):
            if hasattr(batches, "set_epoch"):
                batches.set_epoch(epoch)
            _, loss = training.epoch(batches)
        found.append((training.accuracy(loader(valid, seed)), loss))
    return found


def record(
    results: Results, name: str, found: list[tuple[float, float]], baseline: list[tuple[float, float]]
) -> None:
    accuracy, within = interval([each for each, _ in found])
    theirs, their_within = interval([each for each, _ in baseline])
    loss, loss_within = interval([each for _, each in found])
    their_loss, their_loss_within = interval([each for _, each in baseline])
    results.add(
        f"accuracy.{name}",
        accuracy,
        "share",
        within=within,
        loss=loss,
        loss_within=loss_within,
        agrees=abs(accuracy - theirs) <= within + their_within,
        loss_agrees=abs(loss - their_loss) <= loss_within + their_loss_within,
    )

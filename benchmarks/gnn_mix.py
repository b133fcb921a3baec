"""Epochs under load: a busy host, small caches, skewed seeds, and two loaders over one table at once."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

import numpy as np
import torch
from busy_host import busy_host
from gather import zipf_rows
from gnn_bench import (
    FANOUT,
    Results,
    Training,
    alone,
    bytes_since,
    open_features,
    place_needs,
    synchronize,
)
from penstock.gnn import NeighborLoader, data
from penstock.sampling import Graph
from penstock.tiering import score

JOIN_SECONDS = 300
ZIPF = 1.1


def mixed_loads(dataset: data.Dataset, results: Results, batch_size: int, repeats: int) -> None:
    """`over_quiet`, `over_8th`, `over_drawn`: seconds beside those of the same epoch without the load."""
    train = np.load(dataset.train)
    skewed = train[zipf_rows(len(train), len(train), ZIPF, device="cpu").numpy()]
    with Graph.open(dataset) as graph:
        scores = score(graph, "weighted_reverse_pagerank", train_ids=train)
        bench = _Bench(dataset, graph, scores, results, batch_size, repeats)
        quiet = {
            place: bench.epoch(f"mix.quiet.{place}", place, train)
            for place in ("hbm", "host", "tiered.10", "host-cached.8th", "storage.8th", "storage.10.tiered")
        }
        with busy_host():
            for place in ("host", "tiered.10", "storage.8th"):
                bench.epoch(f"mix.busy.{place}", place, train, over_quiet=quiet[place])
        for place in ("host-cached", "storage"):
            bench.epoch(f"mix.cache.{place}", f"{place}.32nd", train, over_8th=quiet[f"{place}.8th"])
        for place in ("host", "tiered.10", "storage.8th"):
            bench.epoch(f"mix.skewed.{place}", place, skewed, over_drawn=quiet[place])
        for place in ("host", "tiered.10", "storage.8th"):
            bench.two_loaders(f"mix.two.{place}", place, train)


class _Bench:
    def __init__(
        self,
        dataset: data.Dataset,
        graph: Graph,
        scores: Any,
        results: Results,
        batch_size: int,
        repeats: int,
    ) -> None:
        self._dataset, self._graph, self._scores = dataset, graph, scores
        self._results, self._batch, self._repeats = results, batch_size, repeats
        self._labels = np.load(dataset.labels)
        self._rows = np.load(dataset.features, mmap_mode="r")

    def epoch(self, figure: str, place: str, seeds: Any, **beside: float | None) -> float | None:
        """Seconds of an epoch. beside: seconds that they are divided by, of a figure that may be missing."""
        if lacks := place_needs(place):
            self._results.skip(figure, lacks)
            return None
        with open_features(self._dataset, place, self._scores) as features:
            loader = self._loader(features, seeds, 0)
            self._check(figure, loader)
            before = features.bytes_by_tier()
            runs = [Training(self._dataset, alone(), seed).epoch(loader) for seed in range(self._repeats)]
            stats, moved = loader.stats(), bytes_since(features, before)
        took = statistics.median(each for each, _ in runs)
        self._results.add(
            figure,
            took,
            "s",
            loss=statistics.mean(each for _, each in runs),
            gather=stats["gather"] / (self._repeats + 1),
            verified=True,
            **{f"{tier}_GB": count / self._repeats / 1e9 for tier, count in moved.items()},
            **{name: took / value for name, value in beside.items() if value},
        )
        return took

    def _loader(self, features: Any, seeds: Any, seed: int) -> NeighborLoader:
        return NeighborLoader(
            self._graph, features, seeds, FANOUT, self._batch, labels=self._labels, seed=seed
        )

    def _check(self, figure: str, loader: NeighborLoader) -> None:
        """The rows of every 16th batch of an epoch, which also warms what is measured."""
        for batch in loader:
            if batch.number % 16 == 0:
                wanted = torch.from_numpy(self._rows[batch.n_id.cpu().numpy()])
                if not torch.equal(batch.x.cpu(), wanted):
                    raise SystemExit(f"{figure}: batch {batch.number} has other rows than the table")

    def two_loaders(self, figure: str, place: str, seeds: Any) -> None:
        """Two loaders take their batches, one after the other, then at once. Sums of rows are compared."""
        if lacks := place_needs(place):
            self._results.skip(figure, lacks)
            return
        with open_features(self._dataset, place, self._scores) as features:
            loaders = [self._loader(features, seeds, seed) for seed in (0, 1)]
            wanted = [sums_of(loader) for loader in loaders]  # not timed: it warms
            began = time.perf_counter()
            apart = [sums_of(loader) for loader in loaders]
            alone_took = time.perf_counter() - began
            began = time.perf_counter()
            together = at_once(figure, loaders)
            took = time.perf_counter() - began
        if not wanted == apart == together:
            raise SystemExit(f"{figure}: two loaders at once gave other rows than each alone")
        self._results.add(figure, took, "s", one_by_one=alone_took, gain=alone_took / took, verified=True)


def sums_of(loader: NeighborLoader) -> list[int]:
    """Of the rows of each batch, as integers, so that their order in a sum has no effect."""
    sums = [batch.x.view(torch.int32).sum(dtype=torch.int64) for batch in loader]
    synchronize()
    return [int(each) for each in sums]


def at_once(figure: str, loaders: list[NeighborLoader]) -> list[list[int]]:
    found: dict[int, list[int]] = {}

    def take(number: int) -> None:
        found[number] = sums_of(loaders[number])

    threads = [threading.Thread(target=take, args=(k,), daemon=True) for k in range(len(loaders))]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + JOIN_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if len(found) < len(loaders):
        raise SystemExit(f"{figure}: {len(found)} of {len(loaders)} loaders ended within {JOIN_SECONDS} s")
    return [found[k] for k in range(len(loaders))]

"""Gathers and epochs over a dataset whose nodes are numbered by score, and over the one as it was drawn."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from gnn_bench import FANOUT, Results, Training, alone, bytes_since, open_features, place_needs, seconds_of
from penstock.gnn import NeighborLoader, data
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import reorder, score

PLACES = ("host", "tiered.10", "storage.8th")
GATHERED = 16  # batches
GATHERS = 2  # of each, that are timed


def reordered_rates(dataset: data.Dataset, results: Results, batch_size: int, repeats: int) -> None:
    """Writes the dataset in the order of weighted reverse PageRank, and measures both.

    `gain`: of the order over as drawn. The reordering must have paid after `epochs_to_pay` of them.
    """
    to = dataset.folder.with_name(dataset.folder.name + "-ordered")
    if to.exists():
        shutil.rmtree(to)
    train = np.load(dataset.train)
    with Graph.open(dataset) as graph:
        began = time.perf_counter()
        scores = score(graph, "weighted_reverse_pagerank", train_ids=train)
        scoring = time.perf_counter() - began
    began = time.perf_counter()
    made = reorder(dataset, scores, to, memory="16GiB")
    writing = time.perf_counter() - began
    order = np.load(made.order)
    ordered = data.open(to)
    check_order(dataset, ordered, order)
    written = sum(file.stat().st_size for file in to.iterdir())
    results.add("reorder.write", writing, "s", GB_s=written / writing / 1e9, scoring=scoring, verified=True)
    both = {"drawn": (dataset, scores), "ordered": (ordered, scores[order])}
    for place in PLACES:
        if lacks := place_needs(place):
            results.skip(f"reorder.{place}", lacks)
            continue
        seconds = {}
        for name, (each, of_nodes) in both.items():
            seconds[name] = measured(each, of_nodes, place, name, results, batch_size, repeats)
        gain = seconds["drawn"] / seconds["ordered"]
        saved = seconds["drawn"] - seconds["ordered"]
        more = {"epochs_to_pay": writing / saved} if saved > 0 else {}
        results.add(f"reorder.{place}.gain", gain, "x", **more)
    shutil.rmtree(to)


def check_order(dataset: data.Dataset, ordered: data.Dataset, order: Any) -> None:
    some = np.random.default_rng(3).integers(0, dataset.nodes, 1000)
    for name in ("features", "labels"):
        before, after = (np.load(getattr(each, name), mmap_mode="r") for each in (dataset, ordered))
        if not np.array_equal(after[some], before[order[some]]):
            raise SystemExit(f"reorder: {name} of some nodes are not those that they had")


def measured(
    dataset: data.Dataset,
    scores: Any,
    place: str,
    order: str,
    results: Results,
    batch_size: int,
    repeats: int,
) -> float:
    """Seconds of an epoch. `host_read` and the like: bytes from there over those of the rows requested."""
    train, labels = np.load(dataset.train), np.load(dataset.labels)
    with Graph.open(dataset) as graph, open_features(dataset, place, scores) as features:
        loader = NeighborLoader(graph, features, train, FANOUT, batch_size, labels=labels)
        lists = sampled_lists(graph, train, batch_size)
        rows = torch.from_numpy(np.load(dataset.features, mmap_mode="r")[lists[0].cpu().numpy()])
        if not torch.equal(features.gather(lists[0]).cpu(), rows):
            raise SystemExit(f"reorder.gather.{place}.{order}: other rows than the table has")
        nbytes = sum(len(nodes) for nodes in lists) * rows[0].nbytes
        before = features.bytes_by_tier()
        rate = nbytes / seconds_of(lambda: gather_each(features, lists), GATHERS)
        moved = bytes_since(features, before)
        results.add(
            f"reorder.gather.{place}.{order}",
            rate / 1e9,
            "GB/s",
            verified=True,
            **{f"{tier}_read": count / (GATHERS + 1) / nbytes for tier, count in moved.items()},
        )
        before = features.bytes_by_tier()
        runs = [Training(dataset, alone(), seed).epoch(loader) for seed in range(repeats)]
        moved = bytes_since(features, before)
        took = statistics.median(each for each, _ in runs)
        results.add(
            f"reorder.epoch.{place}.{order}",
            took,
            "s",
            loss=statistics.mean(each for _, each in runs),
            **{f"{tier}_GB": count / repeats / 1e9 for tier, count in moved.items()},
        )
    return took


def sampled_lists(graph: Graph, train: Any, batch_size: int) -> list[torch.Tensor]:
    sampler = NeighborSampler(graph, FANOUT, seed=5)
    count = min(GATHERED, -(-len(train) // batch_size))
    return [
        sampler.sample(torch.as_tensor(train[k * batch_size : (k + 1) * batch_size]), call=k).nodes
        for k in range(count)
    ]


def gather_each(features: Any, lists: Iterable[torch.Tensor]) -> None:
    for nodes in lists:
        features.gather(nodes)

"""Loading and training on one GPU: multiprocessors of the loader, and a process of its own.

The zero-copy dissertation (3.3.2) gathers in a process of its own, which MPS keeps to a tenth of the GPU.
Here the loader is a thread that takes `sms` multiprocessors at most: by the grids of its kernels, or by a
green context. Beside it stand such a process, which fills buffers that the training maps (CUDA IPC), but
without MPS, so that the GPU runs either process at a time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from gnn_bench import CUDA, FANOUT, Results, Training, alone, open_features
from gnn_mix import sums_of
from gnn_process import ProcessBatches
from gnn_variants import Batches
from penstock.gnn import NeighborLoader, data
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import score

PLACES = ("host", "tiered.10")
SMS = (8, 16, 32, 66, 0)
PARTITIONS = (8, 16, 32)


def loaders_of(dataset: data.Dataset, batch_size: int) -> Iterator[tuple[str, Callable[..., NeighborLoader]]]:
    """Where the features lie, and what makes a loader over them with options of its own."""
    train, labels = np.load(dataset.train), np.load(dataset.labels)
    with Graph.open(dataset) as graph:
        scores = score(graph, "weighted_reverse_pagerank", train_ids=train)
        for place in PLACES:
            with open_features(dataset, place, scores) as features:
                yield (
                    place,
                    partial(NeighborLoader, graph, features, train, FANOUT, batch_size, labels=labels),
                )


def loader_shares(dataset: data.Dataset, results: Results, batch_size: int, repeats: int) -> None:
    """Epochs of NeighborLoader by `sms`; 0: all."""
    if not CUDA:
        results.skip("sms.loader", "a CPU has no multiprocessors")
        return
    for place, made in loaders_of(dataset, batch_size):
        for sms in SMS:
            loader = made(sms=sms)
            took, loss = epochs_of(dataset, lambda each=loader: each, repeats)
            stats = loader.stats()
            each = {name: stats[name] / (repeats + 1) for name in ("waiting", "gather", "sampling")}
            results.add(f"sms.loader.{place}.{sms or 'all'}", took, "s", loss=loss, **each)


def loader_partitions(dataset: data.Dataset, results: Results, batch_size: int, repeats: int) -> None:
    """Epochs by how the loader is kept to some multiprocessors, one way after the other in each repeat.

    none: it is not; grid: by the grids of its kernels; green: by a green context, while the training's
    kernels may run on all; split: likewise, and the training on the others alone.
    """
    if not CUDA:
        results.skip("sms.partition", "a CPU has no multiprocessors")
        return
    for place, made in loaders_of(dataset, batch_size):
        ways = {"none": made()}
        for sms in PARTITIONS:
            ways[f"grid.{sms}"] = made(sms=sms)
            ways[f"green.{sms}"] = ways[f"split.{sms}"] = made(sms=sms, sm_partition=True)
        record_ways(dataset, results, place, ways, repeats)


def record_ways(
    dataset: data.Dataset, results: Results, place: str, ways: dict[str, NeighborLoader], repeats: int
) -> None:
    wanted = sums_of(ways["none"])
    for way, loader in ways.items():
        if sums_of(loader) != wanted:  # which warms it, too
            raise SystemExit(f"sms.partition.{place}.{way}: other rows than the loader that has all")
    runs: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, loader in ways.items():
            stream = loader.training_stream if way.startswith("split") else None
            with torch.cuda.stream(stream):
                runs[way].append(Training(dataset, alone(), 0).epoch(loader))
    seconds = {way: [took for took, _ in found] for way, found in runs.items()}
    shortest = statistics.median(seconds["none"])
    for way, loader in ways.items():
        took = statistics.median(seconds[way])
        results.add(
            f"sms.partition.{place}.{way}",
            took,
            "s",
            sms=loader.sms,
            over_none=took / shortest,
            spread=(max(seconds[way]) - min(seconds[way])) / took,
            loss=runs[way][0][1],
            repeats=repeats,
            verified=True,
        )


def process_beside_thread(dataset: data.Dataset, results: Results, batch_size: int, repeats: int) -> None:
    """The same batches, of a thread and of a process."""
    with in_thread(dataset, batch_size) as thread:
        took, loss = epochs_of(dataset, thread, repeats)
        results.add("sms.thread.host", took, "s", loss=loss, batches=len(thread()))
        with ProcessBatches(dataset, "host", len(thread()), batch_size) as process:
            for made, wanted in zip(process.epoch(), thread(), strict=True):
                if not torch.equal(made.x, wanted.x):
                    raise SystemExit(f"sms.process.host: batch {wanted.number}: not the thread's rows")
            by_process, its_loss = epochs_of(dataset, process.epoch, repeats)
    record("sms.process.host", (by_process, its_loss), (took, loss), results)


@contextmanager
def in_thread(dataset: data.Dataset, batch_size: int) -> Iterator[Callable[..., Batches]]:
    """Makes epochs of a thread, over features in host memory."""
    with Graph.open(dataset) as graph, open_features(dataset, "host") as features:
        sampler = NeighborSampler(graph, FANOUT, seed=7)
        labels = torch.from_numpy(np.load(dataset.labels)).to(sampler.device)
        train = np.load(dataset.train)

        def epoch() -> Batches:
            return Batches(sampler, features.gather, train, labels, batch_size)

        yield epoch


def epochs_of(dataset: data.Dataset, epoch: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median of the seconds of an epoch, after one that is not counted, and the loss."""
    runs = [Training(dataset, alone(), 0).epoch(epoch()) for _ in range(repeats + 1)][1:]
    return statistics.median(took for took, _ in runs), runs[0][1]


def record(figure: str, found: tuple[float, float], beside: tuple[float, float], results: Results) -> None:
    """Seconds and loss, beside those of the thread."""
    (took, loss), (of_thread, wanted) = found, beside
    if abs(loss - wanted) > 0.05 * abs(wanted):
        raise SystemExit(f"{figure}: a loss of {loss:.4g}, and {wanted:.4g} of the thread")
    results.add(figure, took, "s", loss=loss, over_thread=took / of_thread, verified=True)

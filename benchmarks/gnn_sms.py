"""Loading and training on one GPU: multiprocessors of the loader, a process of its own, green contexts.

The zero-copy dissertation (3.3.2) gathers in a process of its own, which MPS keeps to a tenth of the GPU.
Here the loader is a thread that takes `sms` multiprocessors at most; beside it stand such a process, which
fills buffers that the training maps (CUDA IPC), without MPS, so that the GPU runs one process or the other;
and the thread on a stream of a green context, whose multiprocessors the driver sets.
"""

from __future__ import annotations

import statistics
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gnn_bench import CUDA, FANOUT, Results, Training, alone, open_features, place_needs
from gnn_process import ProcessBatches
from gnn_variants import Batches
from penstock.gnn import NeighborLoader, data
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import score

PLACES = ("host", "tiered.10")
SMS = (8, 16, 32, 66, 0)
GREEN_SMS = (8, 16, 32, 66)


def shares_of_gpu(dataset: data.Dataset, results: Results, batch_size: int, repeats: int) -> None:
    train = np.load(dataset.train)
    with Graph.open(dataset) as graph:
        scores = score(graph, "weighted_reverse_pagerank", train_ids=train)
        if CUDA:
            of_loader(dataset, graph, train, scores, results, batch_size, repeats)
        else:
            results.skip("sms.loader", "a CPU has no multiprocessors")
        with open_features(dataset, "host") as features:
            of_thread(dataset, graph, train, features, results, batch_size, repeats)


def epochs_of(dataset: data.Dataset, batches: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median of the seconds of an epoch, after one that is not counted, and the loss."""
    runs = [Training(dataset, alone(), 0).epoch(batches()) for _ in range(repeats + 1)][1:]
    return statistics.median(took for took, _ in runs), runs[0][1]


def of_loader(
    dataset: data.Dataset,
    graph: Graph,
    train: Any,
    scores: Any,
    results: Results,
    batch_size: int,
    repeats: int,
) -> None:
    labels = np.load(dataset.labels)
    for place in PLACES:
        with open_features(dataset, place, scores) as features:
            for sms in SMS:
                loader = NeighborLoader(graph, features, train, FANOUT, batch_size, labels=labels, sms=sms)
                took, loss = epochs_of(dataset, lambda batches=loader: batches, repeats)
                stats = loader.stats()
                results.add(
                    f"sms.loader.{place}.{sms or 'all'}",
                    took,
                    "s",
                    loss=loss,
                    waiting=stats["waiting"] / (repeats + 1),
                    gather=stats["gather"] / (repeats + 1),
                    sampling=stats["sampling"] / (repeats + 1),
                )


def of_thread(
    dataset: data.Dataset,
    graph: Graph,
    train: Any,
    features: Any,
    results: Results,
    batch_size: int,
    repeats: int,
) -> None:
    """The same samples of a thread, of a process, and of the thread in green contexts."""
    sampler = NeighborSampler(graph, FANOUT, seed=7)
    labels = torch.from_numpy(np.load(dataset.labels)).to(sampler.device)

    def thread(stream: Any = None) -> Batches:
        return Batches(sampler, features.gather, train, labels, batch_size, stream=stream)

    took, loss = epochs_of(dataset, thread, repeats)
    results.add("sms.thread.host", took, "s", loss=loss, batches=len(thread()))
    with ProcessBatches(dataset, "host", len(thread()), batch_size) as process:
        for made, wanted in zip(process.epoch(), thread(), strict=True):
            if not torch.equal(made.x, wanted.x):
                raise SystemExit(f"sms.process.host: batch {wanted.number} has other rows than the thread's")
        by_process, its_loss = epochs_of(dataset, process.epoch, repeats)
    compared("sms.process.host", loss, its_loss)
    results.add(
        "sms.process.host", by_process, "s", loss=its_loss, over_thread=by_process / took, verified=True
    )
    for sms in GREEN_SMS:
        in_green_context(dataset, thread, sms, (took, loss), results, repeats)


def compared(figure: str, wanted: float, loss: float) -> None:
    if abs(loss - wanted) > 0.05 * abs(wanted):
        raise SystemExit(f"{figure}: a loss of {loss:.4g}, and {wanted:.4g} of the thread")


def in_green_context(
    dataset: data.Dataset,
    thread: Callable[[Any], Batches],
    sms: int,
    beside: tuple[float, float],
    results: Results,
    repeats: int,
) -> None:
    figure = f"sms.green.host.{sms}"
    if lacks := place_needs("hbm"):
        results.skip(figure, lacks)
        return
    try:
        from torch.cuda.green_contexts import GreenContext

        context = GreenContext.create(num_sms=sms, device_id=torch.cuda.current_device())
        stream = context.Stream()
    except (ImportError, AttributeError, TypeError, RuntimeError) as problem:
        results.skip(figure, f"not available: {traceback.format_exception_only(problem)[-1].strip()}")
        return
    took, loss = epochs_of(dataset, lambda: thread(stream), repeats)
    compared(figure, beside[1], loss)
    results.add(figure, took, "s", loss=loss, over_thread=took / beside[0], verified=True)

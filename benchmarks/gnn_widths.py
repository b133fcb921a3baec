"""Epochs by the width of the features: the zero-copy dissertation's figure 3.15.

The graph has the shape of products. Its features are the numbers of one buffer of `--gib` in host memory, as
rows of each width; where those of all nodes are more, a graph of fewer nodes is drawn: the lines have `nodes`
beside `of_nodes`. An epoch is as many batches as bring EPOCH_BYTES, but no fewer than LEAST_BATCHES, and a
batch has MOST_SEEDS seeds at most: of the widest rows each brings 2 GB, and some are made ahead.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gnn_bench import FANOUT, Results, drawn
from gnn_variants import EpochBench, by_variant, start_epochs
from penstock.arrays import from_tensor
from penstock.gnn import data
from penstock.gnn.data import SHAPES
from penstock.gnn.training.ranks import Ranks
from penstock.sampling import Graph, NeighborSampler

LIKE = "products"
EPOCH_BYTES = 4 << 30
LEAST_BATCHES, MOST_SEEDS = 8, 256
CLAIMS = {(2, 128): "1.5 to 1.6", (2, 4096): "2.7"}
"""Of the dissertation, by GPUs and width: DMA over the optimised variant."""
_FILLED = 1 << 26


def width_epochs(results: Results, ranks: Ranks, given: argparse.Namespace) -> None:
    """Each process has the table in memory of its own."""
    link = start_epochs(ranks)
    batch_size = min(given.batch, MOST_SEEDS)
    most = min(given.nodes, SHAPES[LIKE].nodes)
    numbers = int(given.gib * (1 << 30)) // 4
    nodes = {width: min(most, numbers // width) for width in given.widths}
    whole = scattered(max(count * width for width, count in nodes.items()))
    # What the arrays over its parts register is registered once.
    with from_tensor(whole, "host", device=str(ranks.device)):
        for width, count in nodes.items():
            dataset = replace(drawn_together(given.folder, count, ranks), width=width)
            with Graph.open(dataset, device=str(ranks.device)) as graph:
                ids = seeds_of(dataset, graph, ranks, batch_size)
                table = whole[: count * width].view(count, width)
                bench = EpochBench(dataset, graph, ranks, batch_size, table, ids)
                results.about(
                    nodes=count,
                    of_nodes=SHAPES[LIKE].nodes,
                    edges=dataset.edges,
                    width=width,
                    batch=batch_size,
                    batches=math.ceil(len(ids) / ranks.size / batch_size),
                )
                beside(results, bench, ranks, width, given.repeats, link)


def drawn_together(folder: Path, nodes: int, ranks: Ranks) -> data.Dataset:
    """By the first process, whose features nobody reads."""

    def draw() -> data.Dataset:
        return drawn(folder / f"{LIKE}-{nodes}-1", LIKE, nodes, width=1)

    if ranks.first:
        draw()
    ranks.gather(0)
    return draw()


def scattered(count: int) -> torch.Tensor:
    """float32 numbers from -1 to 1 that repeat after 2^32."""
    made = torch.from_numpy(np.empty(count, np.float32))
    for first in range(0, count, _FILLED):
        last = min(first + _FILLED, count)
        made[first:last] = (torch.arange(first, last) * 2654435761 % 2**32).float() / 2**31 - 1
    return made


def seeds_of(dataset: data.Dataset, graph: Graph, ranks: Ranks, batch_size: int) -> Any:
    """Of an epoch of all processes."""
    train = np.random.default_rng(1).permutation(np.load(dataset.train))
    some = torch.as_tensor(train[:batch_size]).to(str(ranks.device))
    nodes = len(NeighborSampler(graph, FANOUT, seed=7).sample(some).nodes)
    batches = max(LEAST_BATCHES, EPOCH_BYTES // (nodes * dataset.width * 4))
    return train[: batches * batch_size * ranks.size]


def beside(results: Results, bench: EpochBench, ranks: Ranks, width: int, repeats: int, link: float) -> None:
    """Each variant, and those that read in place beside the copies."""
    gpus = f"{ranks.size}gpu"
    seconds = by_variant(bench, results, lambda name: f"variants.width.{name}.{width}.{gpus}", repeats, link)
    for name in ("optimised", "naive", "hbm"):
        if "dma" not in seconds:
            break
        claim = CLAIMS.get((ranks.size, width)) if name == "optimised" else None
        results.add(
            f"variants.width.{name}_over_dma.{width}.{gpus}",
            seconds["dma"] / seconds[name],
            "x",
            **({} if claim is None else {"dissertation": claim}),
        )

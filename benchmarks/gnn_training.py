"""Sampling, tiers and epochs of GraphSAGE over a graph of papers100M's shape.

    python benchmarks/gnn_training.py --results gnn.jsonl [--nodes 40000000] [--folder /tmp] [--only sample]
        [--places hbm,host]

`sample.*`: edges per second of samples with fan-out (15,10,5) of 1024 seeds, and of 8192, for lists in GPU
memory, in host memory, behind a cache and on the CPU; samples of all placements are compared. `tiering`: of
the reads of an epoch, the share that rows of the highest score have, by method and share of the rows, and the
bytes that the link moves. `gnn.epoch.*`: seconds of an epoch, by placement of the features, beside PyG's
NodeLoader with the same sampler on the CPU, which gathers there and copies; losses are compared. Default
options, but for what the placement needs.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from gnn_bench import (
    CUDA,
    FANOUT,
    Results,
    Training,
    alone,
    bytes_since,
    drawn,
    end_after,
    machine_name,
    open_features,
    parser_of,
    parts_of,
    place_needs,
    synchronize,
)
from gnn_pyg import PygLoader
from penstock.gnn import NeighborLoader, data
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import hottest, score

PARTS = ("sample", "tiering", "epochs")
PLACES = (
    "hbm",
    "tiered.25",
    "tiered.10",
    "host",
    "host-cached.8th",
    "storage.8th",
    "storage.10.tiered",
    "pyg",
)


# Sampling


def sampling_rates(dataset: data.Dataset, results: Results, batch_size: int) -> None:
    draw = np.random.default_rng(1)
    cache = int(dataset.edges * 4 / 8)
    places: list[tuple[str, dict[str, Any]]] = [("cpu", {"device": "cpu", "placement": "host"})]
    if CUDA:
        places = [
            ("hbm", {"placement": "hbm"}),
            ("host", {"placement": "host"}),
            ("host-cached.8th", {"placement": "host-cached", "cache": cache}),
            ("storage.8th", {"placement": "storage", "cache": cache}),
            *places,
        ]
    wanted: Any = None
    for name, options in places:
        with Graph.open(dataset, **options) as graph:
            sampler = NeighborSampler(graph, FANOUT, seed=7)
            for batch, repeats in ((batch_size, 30), (8 * batch_size, 6)):
                seeds = [
                    torch.as_tensor(draw.integers(0, dataset.nodes, batch)).to(sampler.device)
                    for _ in range(repeats)
                ]
                for k in range(2):
                    sampler.sample(seeds[k], call=k)
                synchronize()
                took, edges = [], 0
                for k in range(repeats):
                    began = time.perf_counter()
                    edges += len(sampler.sample(seeds[k], call=k).rows)
                    synchronize()
                    took.append(time.perf_counter() - began)
                results.add(
                    f"sample.{name}.{batch}",
                    edges / sum(took) / 1e6,
                    "M edges/s",
                    milliseconds=statistics.median(took) * 1e3,
                )
            made = sampler.sample(torch.arange(500) * 7 % dataset.nodes, call=3)
            fields = [getattr(made, each).cpu() for each in ("nodes", "rows", "columns", "edges")]
            if wanted is None:
                wanted = fields
            same = all(torch.equal(one, other) for one, other in zip(wanted, fields, strict=True))
            if not same:
                raise SystemExit(f"sample.{name}: another sample than the first placement's")


# Tiers


def tiering_rates(dataset: data.Dataset, results: Results, batch_size: int) -> None:
    train = np.load(dataset.train)
    with Graph.open(dataset) as graph:
        for fanout in (FANOUT, (12, 12, 12), (10,) * 5):
            deep = len(fanout) == 5
            some = train[: 20 * batch_size] if deep else train
            reads = score(graph, "frequency", train_ids=some, fanout=fanout, seed=99)
            for method in ("degree", "reverse_pagerank", "weighted_reverse_pagerank", "counted"):
                began = time.perf_counter()
                # What no method can exceed: the reads themselves.
                scores = reads if method == "counted" else score(graph, method, train_ids=train)
                took = time.perf_counter() - began
                hits = {
                    f"hits_{int(share * 100)}": float(
                        reads[hottest(scores, int(share * dataset.nodes))].sum() / reads.sum()
                    )
                    for share in (0.05, 0.1, 0.25)
                }
                name = "x".join(map(str, fanout))
                results.add(f"tiering.{name}.{method}", hits["hits_10"], "of reads", seconds=took, **hits)


# Epochs


def epochs(dataset: data.Dataset, results: Results, seeds: int, batch_size: int, places: list[str]) -> None:
    fits = CUDA and dataset.feature_bytes < torch.cuda.mem_get_info()[0] // 2
    ranks = alone()
    train = np.load(dataset.train)
    labels = np.load(dataset.labels, mmap_mode="r")
    torch.set_float32_matmul_precision("high")
    with ExitStack() as stack:
        graph = stack.enter_context(Graph.open(dataset))
        scores = score(graph, "weighted_reverse_pagerank", train_ids=train)
        warm = open_features(dataset, "host")
        Training(dataset, ranks, 0).epoch(
            NeighborLoader(graph, warm, train[: 8 * batch_size], FANOUT, labels=labels)
        )
        warm.close()
        for name in places:
            if name == "pyg":
                in_pyg(dataset, results, batch_size)
                continue
            lacks = "the features do not fit" if name == "hbm" and CUDA and not fits else place_needs(name)
            if lacks:
                results.skip(f"gnn.epoch.{name}", lacks)
                continue
            features = open_features(dataset, name, scores)
            took, last = [], []
            for seed in range(seeds):
                loader = NeighborLoader(graph, features, train, FANOUT, batch_size, labels=labels, seed=seed)
                before = features.bytes_by_tier()
                seconds, loss = Training(dataset, ranks, seed).epoch(loader)
                took.append(seconds)
                last.append(loss)
            stats = loader.stats()
            moved = {f"{tier}_GB": count / 1e9 for tier, count in bytes_since(features, before).items()}
            results.add(
                f"gnn.epoch.{name}",
                statistics.median(took),
                "s",
                loss=statistics.mean(last),
                waiting=stats["waiting"],
                sampling=stats["sampling"],
                gather=stats["gather"],
                batches=len(loader),
                **moved,
            )
            features.close()


def in_pyg(dataset: data.Dataset, results: Results, batch_size: int) -> None:
    ranks, train = alone(), np.load(dataset.train)
    quarter = train[: len(train) // 4]
    with Graph.open(dataset, placement="host", device="cpu") as graph:
        for workers in (0, 8) if CUDA else (0,):
            loader = PygLoader(dataset, graph, quarter, FANOUT, batch_size, ranks.device, workers=workers)
            seconds, loss = Training(dataset, ranks, 0).epoch(loader)
            results.add(f"gnn.epoch.pyg.{workers}", seconds * 4, "s", loss=loss, of="a quarter of an epoch")


def main() -> None:
    parser = parser_of(__doc__, nodes=40_000_000, parts=PARTS, limit=3600)
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each placement")
    parser.add_argument("--places", default=",".join(PLACES), help="of the features of epochs")
    given = parser.parse_args()
    only = parts_of("--only", given.only, PARTS)
    end_after(given.limit)
    dataset = drawn(given.folder / f"{given.like}-{given.nodes}", given.like, given.nodes)
    results = Results(given.results, {"machine": machine_name(), "commit": given.commit})
    results.about(nodes=dataset.nodes, edges=dataset.edges)
    if "sample" in only:
        sampling_rates(dataset, results, given.batch)
    if "tiering" in only:
        tiering_rates(dataset, results, given.batch)
    if "epochs" in only:
        places = parts_of("--places", given.places, PLACES)
        epochs(dataset, results, given.seeds, given.batch, places)
    results.show()


if __name__ == "__main__":
    main()

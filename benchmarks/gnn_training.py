"""Sampling, tiers and epochs of GraphSAGE over a graph of papers100M's shape.

    python benchmarks/gnn_training.py --results gnn.jsonl [--nodes 40000000] [--folder /tmp] [--only sample]

`sample.*`: edges per second of samples with fan-out (15,10,5) of 1024 seeds, and of 8192, for lists in GPU
memory, in host memory, behind a cache and on the CPU; samples of all placements are compared. `tiering`: of
the reads of an epoch, the share that rows of the highest score have, by method and share of the rows, and the
bytes that the link moves. `gnn.epoch.*`: seconds of an epoch, by placement of the features, beside PyG's
NodeLoader with the same sampler on the CPU, which gathers there and copies; losses are compared. Default
options, but for what the placement needs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from penstock import _native
from penstock.arrays import open_array
from penstock.gnn import NeighborLoader, data
from penstock.gnn.training.models import SampledModel, Shape
from penstock.gnn.training.objectives import NodeLabels
from penstock.gnn.training.options import Options
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import hottest, score, tiered
from rich.console import Console
from rich.table import Table

FANOUT = (15, 10, 5)
BATCH = 1024
CUDA = _native.cuda_usable()[0]


class Results:
    """Lines of JSON, and a table of them."""

    def __init__(self, path: Path | None, common: dict[str, Any]) -> None:
        self._path, self._common = path, common
        self.table = Table("figure", "value", "more", title="GNN training")

    def add(self, name: str, value: float, unit: str, **more: Any) -> None:
        line = {"id": name, "value": value, "unit": unit, **more, **self._common}
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        shown = ", ".join(f"{key} {_short(each)}" for key, each in more.items())
        self.table.add_row(name, f"{_short(value)} {unit}", shown)
        print(f"{name:34} {_short(value):>10} {unit:10} {shown}", flush=True)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


# Sampling


def sampling_rates(dataset: data.Dataset, results: Results) -> None:
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
            for batch, repeats in ((BATCH, 30), (8 * BATCH, 6)):
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


def tiering_rates(dataset: data.Dataset, results: Results) -> None:
    train = np.load(dataset.train)
    with Graph.open(dataset) as graph:
        for fanout in (FANOUT, (12, 12, 12), (10,) * 5):
            deep = len(fanout) == 5
            some = train[: 20 * BATCH] if deep else train
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


def feature_places(dataset: data.Dataset, scores: Any, fits: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    path = dataset.features
    eighth = dataset.feature_bytes // 8
    if CUDA and fits:
        yield "hbm", lambda: open_array(path, placement="hbm")
    if CUDA:
        yield "tiered.25", lambda: tiered(path, scores, 0.25)
        yield "tiered.10", lambda: tiered(path, scores, 0.1)
    yield "host", lambda: open_array(path, placement="host")
    if CUDA:
        yield "host-cached.8th", lambda: open_array(path, placement="host-cached", cache=eighth)
    yield "storage.8th", lambda: open_array(path, placement="storage", cache=eighth)
    yield "storage.10.tiered", lambda: tiered(path, scores, 0.1, below="storage", cache=eighth)


class Training:
    """GraphSAGE as `penstock gnn train` has it, over batches of any loader."""

    def __init__(self, dataset: data.Dataset, device: torch.device, seed: int) -> None:
        self.options = Options(fanout=FANOUT, seed=seed)
        torch.manual_seed(seed)
        self.model = SampledModel(self.options, Shape(dataset.width, dataset.classes, 1)).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.options.lr, fused=CUDA)
        self.objective = NodeLabels()

    def epoch(self, batches: Any) -> tuple[float, float]:
        """Seconds, and the mean loss of the last tenth."""
        losses = []
        synchronize()
        began = time.perf_counter()
        for batch in batches:
            loss = self.objective.answer(self.model, batch).loss
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        synchronize()
        took = time.perf_counter() - began
        return took, float(torch.stack(losses[-max(1, len(losses) // 10) :]).mean())


def epochs(dataset: data.Dataset, results: Results, seeds: int, fits: bool) -> None:
    device = torch.device("cuda" if CUDA else "cpu")
    train = np.load(dataset.train)
    labels = np.load(dataset.labels, mmap_mode="r")
    torch.set_float32_matmul_precision("high")
    with ExitStack() as stack:
        graph = stack.enter_context(Graph.open(dataset))
        scores = score(graph, "weighted_reverse_pagerank", train_ids=train)
        warm = open_array(dataset.features, placement="host")
        Training(dataset, device, 0).epoch(
            NeighborLoader(graph, warm, train[: 8 * BATCH], FANOUT, labels=labels)
        )
        warm.close()
        for name, opened in feature_places(dataset, scores, fits):
            features = opened()
            took, last = [], []
            for seed in range(seeds):
                loader = NeighborLoader(graph, features, train, FANOUT, BATCH, labels=labels, seed=seed)
                before = features.bytes_by_tier()
                seconds, loss = Training(dataset, device, seed).epoch(loader)
                took.append(seconds)
                last.append(loss)
            after, stats = features.bytes_by_tier(), loader.stats()
            moved = {f"{tier}_GB": (count - before.get(tier, 0)) / 1e9 for tier, count in after.items()}
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
    whole_in_pyg(dataset, results, train, labels, device)


def whole_in_pyg(
    dataset: data.Dataset, results: Results, train: Any, labels: Any, device: torch.device
) -> None:
    """PyG's NodeLoader: workers sample by our sampler on the CPU, gather there, and the batch is copied."""
    from penstock.gnn.loading.batch import Batch
    from penstock.pyg import NeighborSampler as PygSampler
    from torch_geometric.data import Data
    from torch_geometric.loader import NodeLoader

    graph = Graph.open(dataset, placement="host", device="cpu")
    table = torch.from_numpy(np.load(dataset.features, mmap_mode="r+"))
    whole = Data(x=table, num_nodes=dataset.nodes)
    whole.edge_index = torch.empty(2, 0, dtype=torch.int64)
    sampler = PygSampler(graph, list(FANOUT), seed=0)

    def batches(loader: Any) -> Iterator[Any]:
        for made in loader:
            seeds = made.n_id[: made.batch_size]
            yield Batch(
                x=made.x.to(device, non_blocking=True),
                edge_index=made.edge_index.to(device, non_blocking=True),
                n_id=made.n_id,
                e_id=made.e_id,
                batch_size=made.batch_size,
                nodes_per_hop=made.num_sampled_nodes,
                edges_per_hop=made.num_sampled_edges,
                y=torch.from_numpy(labels[seeds.numpy()]).to(device),
            )

    for workers in (0, 8) if CUDA else (0,):
        loader = NodeLoader(
            whole,
            sampler,
            input_nodes=torch.from_numpy(train[: len(train) // 4]),
            batch_size=BATCH,
            shuffle=True,
            num_workers=workers,
            filter_per_worker=workers > 0,
            pin_memory=CUDA and workers > 0,
        )
        seconds, loss = Training(dataset, device, 0).epoch(batches(loader))
        results.add(f"gnn.epoch.pyg.{workers}", seconds * 4, "s", loss=loss, of="a quarter of an epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=40_000_000)
    parser.add_argument("--like", default="papers100M")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--results", type=Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each placement")
    parser.add_argument("--only", default="sample,tiering,epochs")
    given = parser.parse_args()
    folder = given.folder / f"{given.like}-{given.nodes}"
    if not folder.exists():
        began = time.perf_counter()
        data.generate(folder, given.like, nodes=given.nodes, memory="16GiB")
        print(f"drawn in {time.perf_counter() - began:.1f} s", flush=True)
    dataset = data.open(folder)
    name = torch.cuda.get_device_name() if CUDA else "CPU"
    machine = f"{name}, PCIe Gen5 x16, CUDA 13.0" if CUDA else name
    common = {"nodes": dataset.nodes, "edges": dataset.edges, "machine": machine, "commit": given.commit}
    results = Results(given.results, common)
    fits = CUDA and dataset.feature_bytes < torch.cuda.mem_get_info()[0] // 2
    only = given.only.split(",")
    if "sample" in only:
        sampling_rates(dataset, results)
    if "tiering" in only:
        tiering_rates(dataset, results)
    if "epochs" in only:
        epochs(dataset, results, given.seeds, fits)
    Console().print(results.table)


if __name__ == "__main__":
    main()

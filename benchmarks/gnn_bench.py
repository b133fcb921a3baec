"""What the benchmarks of graph neural networks share: figures, datasets, placements, and the training."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from penstock import _native
from penstock.arrays import Array, open_array
from penstock.gnn import data
from penstock.gnn.training.models import SampledModel, Shape
from penstock.gnn.training.objectives import NodeLabels, features_of
from penstock.gnn.training.options import Options
from penstock.gnn.training.ranks import Ranks
from rich.console import Console
from rich.table import Table

FANOUT = (15, 10, 5)
CUDA = _native.cuda_usable()[0]

PLACES: dict[str, dict[str, Any]] = {
    "hbm": {"placement": "hbm"},
    "tiered.25": {"placement": "tiered", "hot": 0.25},
    "tiered.10": {"placement": "tiered", "hot": 0.1},
    "host": {"placement": "host"},
    "host-cached.8th": {"placement": "host-cached", "cache": 8},
    "host-cached.32nd": {"placement": "host-cached", "cache": 32},
    "storage.8th": {"placement": "storage", "cache": 8},
    "storage.32nd": {"placement": "storage", "cache": 32},
    "storage.10.tiered": {"placement": "tiered", "hot": 0.1, "below": "storage", "cache": 8},
}
"""Options of `penstock.open` by name; `cache` is the part of the features that it holds."""


class Results:
    """Figures: each is printed when it is there, and is a line of JSON; in the end there is a table."""

    def __init__(self, path: Path | None, common: dict[str, Any], *, shown: bool = True) -> None:
        self._path, self._common, self._shown = path, common, shown
        self._facts: dict[str, Any] = {}
        self._table = Table("figure", "value", "more", title="graph neural networks")

    def about(self, **facts: Any) -> None:
        """What the lines of the figures that follow have, too."""
        self._facts = facts

    def add(self, name: str, value: float, unit: str, **more: Any) -> None:
        if not self._shown:
            return
        line = {"id": name, "value": value, "unit": unit, **more, **self._facts, **self._common}
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        details = ", ".join(f"{key} {_short(each)}" for key, each in more.items())
        self._table.add_row(name, f"{_short(value)} {unit}", details)
        print(f"{name:34} {_short(value):>10} {unit:10} {details}", flush=True)

    def skip(self, name: str, why: str) -> None:
        if self._shown:
            print(f"{name:34} skipped: {why}", flush=True)

    def show(self) -> None:
        if self._shown:
            Console().print(self._table)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def parser_of(
    description: str | None, *, nodes: int, parts: Iterable[str], limit: int
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=nodes)
    parser.add_argument("--like", default="papers100M")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="where datasets are drawn and kept"
    )
    parser.add_argument("--results", type=Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--batch", type=int, default=1024, help="seeds of a batch")
    parser.add_argument("--limit", type=int, default=limit, help="seconds after which it ends")
    parser.add_argument("--only", default=",".join(parts))
    return parser


def parts_of(option: str, given: str, parts: Iterable[str]) -> list[str]:
    chosen = given.split(",")
    for name in chosen:
        if name not in parts:
            raise SystemExit(f"{option} {name}: choose of {','.join(parts)}")
    return chosen


def end_after(seconds: float) -> None:
    """Ends the process after this time, whatever it waits for, with what each thread does then."""
    faulthandler.dump_traceback_later(seconds, exit=True)


def machine_name(gpus: int = 1) -> str:
    if named := os.environ.get("PENSTOCK_MACHINE"):
        return named if gpus == 1 else f"{gpus}x {named}"
    if not CUDA:
        return "CPU"
    several = f"{gpus}x " if gpus > 1 else ""
    return f"{several}{torch.cuda.get_device_name()}, PCIe Gen5 x16, CUDA {torch.version.cuda}"


def drawn(folder: Path, like: str, nodes: int, **options: Any) -> data.Dataset:
    """A dataset that was drawn before, or is now."""
    if not folder.exists():
        began = time.perf_counter()
        data.generate(folder, like, nodes=nodes, memory="16GiB", **options)
        print(f"{folder} drawn in {time.perf_counter() - began:.1f} s", flush=True)
    return data.open(folder)


def place_needs(place: str) -> str:
    """What this machine lacks for a placement; empty: nothing."""
    needs_gpu = PLACES[place]["placement"] in ("hbm", "host-cached") or place.startswith("tiered")
    return "it needs a GPU" if needs_gpu and not CUDA else ""


def open_features(dataset: data.Dataset, place: str, scores: Any = None, device: Any = "auto") -> Array:
    options = dict(PLACES[place])
    if "cache" in options:
        options["cache"] = dataset.feature_bytes // options["cache"]
    if options["placement"] == "tiered":
        options["scores"] = scores
    return open_array(dataset.features, device=device, **options)


def bytes_since(features: Array, before: dict[str, int]) -> dict[str, int]:
    """What came from each tier since `bytes_by_tier` was `before`."""
    return {tier: count - before.get(tier, 0) for tier, count in features.bytes_by_tier().items()}


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def seconds_of(call: Callable[[], Any], repeats: int = 3) -> float:
    """Median, after one call that is not counted."""
    taken = []
    for _ in range(repeats + 1):
        synchronize()
        began = time.perf_counter()
        call()
        synchronize()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def link_rate() -> float:
    """Bytes per second that the copy engine brings from pinned memory."""
    source = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    target = torch.empty_like(source, device="cuda")
    return source.nbytes / seconds_of(lambda: target.copy_(source, non_blocking=True), 5)


class Training:
    """GraphSAGE as `penstock gnn train` has it, over batches of any loader."""

    def __init__(
        self, dataset: data.Dataset, ranks: Ranks, seed: int, fanout: tuple[int, ...] = FANOUT
    ) -> None:
        self.options = Options(fanout=fanout, seed=seed)
        self.ranks = ranks
        torch.manual_seed(seed)
        self.model = SampledModel(self.options, Shape(dataset.width, dataset.classes, 1)).to(ranks.device)
        self.parallel = ranks.parallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.options.lr, fused=CUDA)
        self.objective = NodeLabels(features_of)

    def epoch(self, batches: Any) -> tuple[float, float]:
        """Seconds of the slowest process, and the mean loss of the last tenth."""
        losses = []
        self.parallel.train()
        synchronize()
        self.ranks.gather(0)
        began = time.perf_counter()
        for batch in batches:
            loss = self.objective.answer(self.parallel, batch).loss
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        synchronize()
        took = max(self.ranks.gather(time.perf_counter() - began))
        last = torch.stack(losses[-max(1, len(losses) // 10) :]).mean()
        return took, float(self.ranks.mean(last))

    def accuracy(self, batches: Any) -> float:
        """Share of the seeds whose label the model finds."""
        self.parallel.eval()
        found = self.objective.measure(self.model, batches, self.ranks, lambda: None)
        return float("nan") if found is None else found["accuracy"]


def alone() -> Ranks:
    """This process, without others."""
    return Ranks(0, 1, torch.device("cuda" if CUDA else "cpu"))


def cores() -> int:
    return len(os.sched_getaffinity(0))

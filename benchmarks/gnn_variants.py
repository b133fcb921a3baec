"""The ways to bring rows to a GPU that chapter 3 of the zero-copy dissertation compares, and their epochs.

cpu         the cores gather into plain memory, then the rows are copied
dma         the cores gather into one of two pinned buffers while the copy engine empties the other; the best
            of three sizes of the buffers
naive       torch.index_select over mapped host memory (`array.tensor()`): a thread for each element, rows in
            the order of the request, loads where the row begins
as-asked    Penstock's kernel, whose loads are aligned, with the rows in the order of the request
optimised   Penstock's gather as it is: aligned, and sorted by address where that pays
hbm         Penstock's gather, all rows in GPU memory
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gather import expected, filled_host, random_rows, table_of, zipf_rows
from gnn_bench import CUDA, FANOUT, Results, Training, cores, link_rate, seconds_of
from penstock.arrays import from_tensor
from penstock.gnn import data
from penstock.gnn.loading.ahead import Ahead
from penstock.gnn.loading.batch import Batch
from penstock.gnn.loading.draft import Draft
from penstock.gnn.training.ranks import Ranks
from penstock.sampling import Graph, NeighborSampler

VARIANTS = ("hbm", "optimised", "as-asked", "naive", "dma", "cpu")
WIDTHS = (128, 256, 512, 1024, 2048, 4096, 315, 578)
CHUNKS = (4 << 20, 16 << 20, 64 << 20)
ZIPF = 1.2
GatherRows = Callable[[torch.Tensor], torch.Tensor]


class CpuGather:
    def __init__(self, table: torch.Tensor, device: torch.device) -> None:
        self._table, self._device = table, device
        self._gathered = table.new_empty(0, table.shape[1])

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        if len(rows) > len(self._gathered):
            self._gathered = self._table.new_empty(len(rows), self._table.shape[1])
        gathered = self._gathered[: len(rows)]
        torch.index_select(self._table, 0, rows.cpu(), out=gathered)
        return gathered.clone() if self._device.type == "cpu" else gathered.to(self._device)


class DmaGather:
    def __init__(self, table: torch.Tensor, device: torch.device, chunk: int) -> None:
        self._table, self._device = table, device
        self._step = max(1, chunk // (table.shape[1] * table.element_size()))
        shape = (self._step, table.shape[1])
        self._buffers = [torch.empty(shape, dtype=table.dtype, pin_memory=True) for _ in range(2)]
        self._emptied = [torch.cuda.Event() for _ in range(2)]

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        wanted = rows.cpu()
        shape = (len(rows), self._table.shape[1])
        out = torch.empty(shape, dtype=self._table.dtype, device=self._device)
        for k, first in enumerate(range(0, len(rows), self._step)):
            part = wanted[first : first + self._step]
            emptied = self._emptied[k % 2]
            emptied.synchronize()
            buffer = self._buffers[k % 2][: len(part)]
            torch.index_select(self._table, 0, part, out=buffer)
            out[first : first + len(part)].copy_(buffer, non_blocking=True)
            emptied.record()
        return out


def variant_needs(name: str) -> str:
    return "it needs a GPU" if not CUDA and name not in ("cpu", "optimised") else ""


def opened_variant(stack: ExitStack, name: str, table: torch.Tensor, device: torch.device) -> GatherRows:
    """A function that gathers rows of a table in host memory; `stack` closes what it opens."""
    if name == "cpu":
        return CpuGather(table, device)
    if name == "dma":
        return DmaGather(table, device, CHUNKS[1])
    place = "hbm" if name == "hbm" else "host"
    array = stack.enter_context(from_tensor(table, place, device=str(device)))
    if name == "naive":
        mapped = array.tensor()
        return lambda rows: torch.index_select(mapped, 0, rows)
    order = "as-asked" if name == "as-asked" else "auto"
    return lambda rows: array.gather(rows, order=order)


# Gathers alone


def gather_rates(results: Results, device: torch.device, gib: float, rows: int) -> None:
    """GB/s of `rows` random rows, of as many of a skewed list, and of a small batch, by width.

    `of_link`: over the bandwidth of the copy engine, which no variant but hbm can exceed by more than the
    rows that a list repeats.
    """
    results.about(table_GiB=gib)
    whole = filled_host(int(gib * (1 << 30)), "numpy")
    link = link_rate() if CUDA else 0.0
    if CUDA:
        results.add("variants.link", link / 1e9, "GB/s")
    # What the arrays over its parts register is registered once.
    with from_tensor(whole, "host"):
        for width in WIDTHS:
            table = table_of(whole, width)
            for name in VARIANTS:
                if lacks := variant_needs(name):
                    results.skip(f"variants.gather.{name}.{width}", lacks)
                else:
                    gather_lists(results, name, table, rows, device, link)


def gather_lists(
    results: Results, name: str, table: torch.Tensor, rows: int, device: torch.device, link: float
) -> None:
    lists = {
        "random": random_rows(rows, len(table), device=device.type),
        "zipf": zipf_rows(rows, len(table), ZIPF, device=device.type),
        "small": random_rows(min(rows, 4096), len(table), device=device.type),
    }
    with ExitStack() as stack:
        if name == "dma":
            gathers: dict[int, GatherRows] = {chunk: DmaGather(table, device, chunk) for chunk in CHUNKS}
        else:
            gathers = {0: opened_variant(stack, name, table, device)}
        for kind, wanted in lists.items():
            figure = f"variants.gather.{name}.{table.shape[1]}.{kind}"
            rate, chunk = best_rate(figure, gathers, wanted, table, on_cpu=name in ("cpu", "dma"))
            details: dict[str, Any] = {"buffer_MiB": chunk >> 20} if chunk else {}
            if link and name != "hbm":
                details["of_link"] = rate * 1e9 / link
            results.add(figure, rate, "GB/s", rows=len(wanted), verified=True, **details)


def best_rate(
    figure: str,
    gathers: dict[int, GatherRows],
    rows: torch.Tensor,
    table: torch.Tensor,
    *,
    on_cpu: bool,
) -> tuple[float, int]:
    """GB/s of the fastest of some settings, and which one it is. on_cpu: the row numbers lie there."""
    right = expected(rows, table.shape[1])
    given = rows.cpu() if on_cpu else rows
    repeats = min(30, max(3, (2 << 30) // right.nbytes))
    rates = {}
    for setting, gather in gathers.items():
        if not torch.equal(gather(given), right):
            raise SystemExit(f"{figure}: other rows than the table has")
        rates[setting] = right.nbytes / seconds_of(lambda call=gather: call(given), repeats) / 1e9
    best = max(rates, key=lambda setting: rates[setting])
    return rates[best], best


# Epochs


class Batches:
    """An epoch of samples whose rows a variant brings, made ahead in a thread as NeighborLoader does."""

    def __init__(
        self,
        sampler: NeighborSampler,
        gather: GatherRows,
        ids: Any,
        labels: torch.Tensor,
        batch_size: int,
    ) -> None:
        """
        Args:
            sampler: Draws the same samples for each variant.
            gather: Rows of the features by number.
            labels: On the sampler's device.
        """
        self._sampler, self._gather, self._labels = sampler, gather, labels
        self._seeds = torch.as_tensor(ids)[
            torch.randperm(len(ids), generator=torch.Generator().manual_seed(1))
        ]
        self._size = batch_size
        self._device = torch.device(sampler.device)

    def __len__(self) -> int:
        return math.ceil(len(self._seeds) / self._size)

    def __iter__(self) -> Iterator[Batch]:
        ahead = Ahead(self._drawn, self._filled, 0, len(self), 2, self._device)
        ahead.start()
        try:
            yield from ahead
        finally:
            ahead.stop()

    def make(self, number: int) -> Batch:
        return self._filled(self._drawn(number))

    def _drawn(self, number: int) -> Draft:
        seeds = self._seeds[number * self._size : (number + 1) * self._size].to(self._device)
        made = self._sampler.sample(seeds, call=number)
        known: dict[str, Any] = {
            "edge_index": torch.stack([made.rows, made.columns]),
            "n_id": made.nodes,
            "e_id": made.edges,
            "batch_size": len(seeds),
            "nodes_per_hop": made.nodes_per_hop,
            "edges_per_hop": made.edges_per_hop,
            "y": self._labels[seeds],
            "number": number,
        }
        return Draft(number, {"nodes": made.nodes}, lambda rows: Batch(x=rows["nodes"]["x"], **known))

    def _filled(self, draft: Draft) -> Batch:
        finished: Batch = draft.finished({"nodes": {"x": self._gather(draft.wanted["nodes"])}})
        return finished


@dataclass(frozen=True)
class Epoch:
    """What a variant took."""

    seconds: float
    spread: float
    loss: float
    nbytes: int
    rate: float
    """Bytes per second of one batch that is gathered alone."""
    rows: torch.Tensor
    """Of the first batch."""


class EpochBench:
    """Epochs of one process over one table in host memory."""

    def __init__(
        self,
        dataset: data.Dataset,
        graph: Graph,
        ranks: Ranks,
        batch_size: int,
        table: torch.Tensor,
        ids: Any,
    ) -> None:
        """
        Args:
            table: A row for each node, of the dataset's width.
            ids: Seeds of all processes.
        """
        self._dataset, self._ranks, self._batch_size, self._table = dataset, ranks, batch_size, table
        self._labels = torch.from_numpy(np.load(dataset.labels)).to(ranks.device)
        self._ids = ranks.share(ids, equal=True)
        self._sampler = NeighborSampler(graph, FANOUT, seed=7 + ranks.rank)

    def epoch(self, name: str, repeats: int) -> Epoch:
        with ExitStack() as stack:
            gather = opened_variant(stack, name, self._table, self._ranks.device)
            if name == "dma":
                gather = self._fastest_dma(self._batches(gather).make(0).n_id)
            batches = self._batches(gather)
            first = batches.make(0)
            rate = first.x.nbytes / seconds_of(lambda: gather(first.n_id))
            # This warms everything, too.
            nbytes = sum(batch.x.nbytes for batch in batches)
            runs = [Training(self._dataset, self._ranks, 0).epoch(batches) for _ in range(repeats)]
        seconds = [took for took, _ in runs]
        median = statistics.median(seconds)
        return Epoch(median, (max(seconds) - min(seconds)) / median, runs[0][1], nbytes, rate, first.x)

    def _batches(self, gather: GatherRows) -> Batches:
        return Batches(self._sampler, gather, self._ids, self._labels, self._batch_size)

    def _fastest_dma(self, nodes: torch.Tensor) -> GatherRows:
        gathers = [DmaGather(self._table, self._ranks.device, chunk) for chunk in CHUNKS]
        return min(gathers, key=lambda gather: seconds_of(lambda: gather(nodes)))


def variant_epochs(
    dataset: data.Dataset, results: Results, ranks: Ranks, batch_size: int, repeats: int
) -> None:
    """Seconds of an epoch by variant, over the same samples, each process its share of the seeds."""
    link = start_epochs(ranks)
    table = torch.from_numpy(np.load(dataset.features))
    with Graph.open(dataset, device=str(ranks.device)) as graph:
        bench = EpochBench(dataset, graph, ranks, batch_size, table, np.load(dataset.train))
        seconds = by_variant(
            bench, results, lambda name: f"variants.epoch.{name}.{ranks.size}gpu", repeats, link
        )
    compared(results, seconds, ranks.size)


def start_epochs(ranks: Ranks) -> float:
    """Bytes per second of the slowest process's link; 0 without a GPU."""
    # torchrun starts each process with one thread.
    torch.set_num_threads(max(1, cores() // ranks.size))
    return min(ranks.gather(link_rate())) if CUDA else 0.0


def by_variant(
    bench: EpochBench, results: Results, figure_of: Callable[[str], str], repeats: int, link: float
) -> dict[str, float]:
    """Seconds of an epoch.

    `predicted`: the longer of the epoch with all rows in GPU memory and the epoch's bytes over the rate at
    which the variant gathers one batch alone. `of_link`: what the epoch's bytes take at the bandwidth of the
    copy engine, as a share of the epoch.
    """
    first: Epoch | None = None
    seconds: dict[str, float] = {}
    for name in VARIANTS:
        figure = figure_of(name)
        if lacks := variant_needs(name):
            results.skip(figure, lacks)
            continue
        one = bench.epoch(name, repeats)
        first = first or one
        check_alike(figure, first, one)
        seconds[name] = one.seconds
        results.add(
            figure,
            one.seconds,
            "s",
            predicted=max(seconds.get("hbm", 0.0), one.nbytes / one.rate),
            loss=one.loss,
            GB=one.nbytes / 1e9,
            gather_GB_s=one.rate / 1e9,
            spread=one.spread,
            repeats=repeats,
            verified=True,
            **({"of_link": one.nbytes / link / one.seconds} if link and name != "hbm" else {}),
        )
    return seconds


def check_alike(figure: str, first: Epoch, one: Epoch) -> None:
    if not torch.equal(one.rows, first.rows):
        raise SystemExit(f"{figure}: other rows than the first variant's")
    if abs(one.loss - first.loss) > 0.05 * abs(first.loss):
        raise SystemExit(f"{figure}: a loss of {one.loss:.4g}, and {first.loss:.4g} of the first variant")


def compared(results: Results, seconds: dict[str, float], gpus: int) -> None:
    """Beside the dissertation's figure 3.14."""
    claims = {1: "1.16 to 1.44", 2: "1.65 to 1.92"}
    if "dma" in seconds:
        for name in ("optimised", "naive", "hbm"):
            more = {"dissertation": claims[gpus]} if name == "optimised" and gpus in claims else {}
            results.add(f"variants.{name}_over_dma.{gpus}gpu", seconds["dma"] / seconds[name], "x", **more)

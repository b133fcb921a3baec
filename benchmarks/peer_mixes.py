"""Gathers of rows that peers keep, beside the clean case: what programs have that benchmarks leave out.

A quarter of the rows is kept by each of two GPUs, and the others lie in `below`: in host memory, there behind
a cache, or in a file behind a cache of an eighth. Lists are drawn anew for each gather, which both GPUs make
at once.

uniform      the clean case: all rows alike
zipf         few rows are most of the list, and they are kept
interleaved  in turn a row that this GPU keeps, one that the other keeps, and one that neither does, gathered
             as asked: each warp has rows of all tiers
small-cache  uniform, with a cache of a 64th
busy         uniform, beside a busy process for each core
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import penstock
import torch
from busy_host import busy_host
from gnn_bench import Results
from peer_bench import (
    CUDA,
    GPUS,
    MEET_SECONDS,
    check_rows,
    device_of,
    kept_by,
    lists_of,
    on_gpus,
    open_together,
    seconds_of,
    shares_of,
    synchronize,
)

BELOW = ("host", "host-cached", "storage") if CUDA else ("storage",)
LISTS = 6  # of which two warm up
WARM = 2


def mixed_gathers(path: str, folder: str, table: Any, results: Results, count: int) -> None:
    """`over_uniform`: the rate beside that of the clean case; shares of the bytes by tier are GPU 0's."""
    for below in BELOW:
        bench = _Bench(table, results, f"peers.mixed.{below}", count)
        with opened(path, folder, table, below, 8) as arrays:
            clean = bench.gathers("uniform", arrays)
            bench.gathers("zipf", arrays, over=clean)
            bench.gathers("interleaved", arrays, over=clean)
            with busy_host():
                bench.gathers("busy", arrays, over=clean)
        if below != "host":
            with opened(path, folder, table, below, 64) as arrays:
                bench.gathers("small-cache", arrays, over=clean)


@contextmanager
def opened(path: str, folder: str, table: Any, below: str, part: int) -> Iterator[list[penstock.Array]]:
    """part: Of the table, that a cache holds."""
    options: dict[str, Any] = {"placement": below}
    if below != "host":
        options["cache"] = max(1 << 20, table.nbytes // part)
    arrays = open_together(path, folder, len(table) // 2, True, **options)
    try:
        yield arrays
    finally:
        for array in arrays:
            array.close()


class _Bench:
    def __init__(self, table: Any, results: Results, figure: str, count: int) -> None:
        self._table, self._results, self._figure, self._count = table, results, figure, count

    def gathers(self, pattern: str, arrays: list[penstock.Array], *, over: float | None = None) -> float:
        """GB/s of both GPUs together."""
        gate = threading.Barrier(GPUS, timeout=MEET_SECONDS)
        before = arrays[0].bytes_by_tier()

        def run(gpu: int) -> float:
            return self._rate(pattern, arrays[gpu], gpu, gate)

        found = sum(on_gpus(run))
        moved = {tier: count - before.get(tier, 0) for tier, count in arrays[0].bytes_by_tier().items()}
        beside = {} if over is None else {"over_uniform": found / over}
        self._results.add(
            f"{self._figure}.{pattern}",
            found,
            "GB/s",
            **beside,
            repeats=LISTS - WARM,
            verified=True,
            **shares_of(moved),
        )
        return found

    def _rate(self, pattern: str, array: penstock.Array, gpu: int, gate: threading.Barrier) -> float:
        order = "as-asked" if pattern == "interleaved" else "auto"
        lists = [self._list(pattern, gpu, seed) for seed in range(LISTS)]
        given = [torch.as_tensor(rows, device=device_of(gpu)) for rows in lists]
        out = torch.empty((len(lists[0]), self._table.shape[1]), device=device_of(gpu))
        took = []
        for rows, numbers in zip(lists, given, strict=True):
            synchronize(gpu)
            gate.wait()
            took.append(seconds_of(gpu, lambda n=numbers: array.gather(n, out=out, order=order)))
            check_rows(out, self._table, rows)
        return out.nbytes / statistics.median(took[WARM:]) / 1e9

    def _list(self, pattern: str, gpu: int, seed: int) -> np.ndarray[Any, Any]:
        rows = len(self._table)
        seed = seed * GPUS + gpu
        if pattern != "interleaved":
            return lists_of(np.arange(rows), pattern == "zipf", seed, self._count)
        kept = rows // 2
        tiers = (kept_by(kept, gpu), kept_by(kept, 1 - gpu), np.arange(kept, rows))
        drawn = [lists_of(each, False, seed + k, self._count // len(tiers)) for k, each in enumerate(tiers)]
        return np.stack(drawn, axis=1).reshape(-1)

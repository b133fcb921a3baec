"""What the benchmarks of rows that peers keep share: devices, lists, arrays that are opened together."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import penstock
import torch
from penstock import _native
from penstock.tiering import Peers

GPUS = 2
REPEATS = 12
MEET_SECONDS = 120
CUDA = _native.cuda_usable()[0] and torch.cuda.device_count() >= GPUS
# On the CPU rows are kept before a file's cache alone, and a table of its own is in memory as it is.
BELOW: dict[str, Any] = {"placement": "host"} if CUDA else {"placement": "storage", "cache": "1MiB"}


def device_of(gpu: int) -> str:
    return f"cuda:{gpu}" if CUDA else "cpu"


def synchronize(gpu: int) -> None:
    if CUDA:
        torch.cuda.synchronize(gpu)


def seconds_of(gpu: int, call: Callable[[], Any]) -> float:
    if not CUDA:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began
    stream = torch.cuda.current_stream(gpu)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record(stream)
    call()
    end.record(stream)
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def rate(gpu: int, row_bytes: int, count: int, call: Callable[[], Any]) -> float:
    """GB/s, the median of some calls."""
    for _ in range(2):
        call()
    synchronize(gpu)
    took = [seconds_of(gpu, call) for _ in range(REPEATS)]
    return count * row_bytes / statistics.median(took) / 1e9


def on_gpus(action: Callable[[int], Any]) -> list[Any]:
    """Calls it for each GPU, in threads of their own."""
    results: list[Any] = [None] * GPUS
    problems: list[BaseException] = []

    def run(gpu: int) -> None:
        try:
            if CUDA:
                torch.cuda.set_device(gpu)
            results[gpu] = action(gpu)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(gpu,)) for gpu in range(GPUS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if problems:
        raise problems[0]
    return results


def lists_of(rows: Any, skewed: bool, seed: int, count: int) -> np.ndarray[Any, Any]:
    draw = np.random.default_rng(seed)
    if not skewed:
        return rows[draw.integers(0, len(rows), count)]
    return rows[np.minimum(draw.zipf(1.2, count) - 1, len(rows) - 1)]


def kept_by(kept: int, gpu: int) -> Any:
    return np.arange(gpu, kept, GPUS)


def open_together(path: str, folder: str, kept: int, together: bool, **below: Any) -> list[penstock.Array]:
    """below: Options of `penstock.open` for the rows that nobody keeps."""

    def run(gpu: int) -> penstock.Array:
        array = penstock.open(path, device=device_of(gpu), **(below or BELOW))
        if not together:
            array.keep_rows(np.arange(kept // GPUS))
            return array
        with Peers(gpu, GPUS, f"{folder}/meet", timeout=MEET_SECONDS) as peers:
            array.keep_rows(np.arange(kept), peers=peers)
            if array.opened.notes:
                raise SystemExit(array.opened.notes[0])
        return array

    return on_gpus(run)


def check_rows(out: torch.Tensor, table: Any, rows: Any) -> None:
    some = np.random.default_rng(3).integers(0, len(rows), 4096)
    if not np.array_equal(out[torch.as_tensor(some)].cpu().numpy(), table[rows[some]]):
        raise SystemExit("a gather has other rows than the table")


def shares_of(moved: dict[str, int]) -> dict[str, float]:
    """Of bytes by tier."""
    whole = sum(moved.values())
    return {tier: count / whole for tier, count in moved.items()}

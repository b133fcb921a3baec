"""Gathers of narrow rows from a large file in host memory, shared with threads of the CPU or not.

    python benchmarks/shared_gathers.py --results shared.jsonl [--gib 20] [--only far,near,zipf,kept,busy]

far     uniform over the whole file: few rows to a page
near    as many, of a tenth of it
zipf    by a power law, exponent 1.05
kept    far, and a quarter of the rows are kept next to the kernels (placement tiered)
busy    far, beside a busy process for each core

Needs a GPU and torch. The baselines are the same call with gather_threads=0, and PyTorch's gather by all
cores with copies beside it. The first and the last rows of each result are compared with the file's.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch
from array_bench import Bench, check, timed
from busy_host import busy_host
from gather import overlapped_copy, random_rows, zipf_rows

SHAPES = ((64, 800_000), (128, 200_000), (128, 1_600_000), (256, 400_000), (512, 100_000), (512, 400_000))
MIXED = ((128, 400_000), (512, 400_000))  # of the other patterns
COMPARED = 4096
LISTS = 6  # of which two warm up


def filled(path: Path, nbytes: int) -> Path:
    """int32 numbers that follow each other, from 0 on."""
    with path.open("wb") as out:
        step = 1 << 26
        for first in range(0, nbytes // 4, step):
            np.arange(first, min(first + step, nbytes // 4), dtype=np.int64).astype(np.int32).tofile(out)
    return path


Draw = Callable[[int, int, int], torch.Tensor]  # of a count, the rows there are, a seed


class Shared:
    def __init__(self, bench: Bench, path: Path) -> None:
        self.bench, self.path = bench, path
        self.numbers = np.memmap(path, np.int32, mode="r")

    def measure(
        self, pattern: str, shapes: Any, draw: Callable[[int, int, int], torch.Tensor], **how: Any
    ) -> None:
        for nbytes, count in shapes:
            words = nbytes // 4
            rows = self.numbers.size // words
            lists = [draw(count, rows, seed) for seed in range(LISTS)]
            options = {name: value(rows) if callable(value) else value for name, value in how.items()}
            rates = {
                threads: self.seconds(words, rows, lists, gather_threads=threads, **options)
                for threads in (0, None)
            }
            by_cores = self.by_cores(words, rows, lists)
            nbytes_in_all = count * nbytes
            self.bench.tell(
                f"gather.shared.{pattern}.{nbytes}.{count // 1000}k",
                nbytes_in_all,
                rates[None],
                "without threads of the CPU",
                rates[0],
                {"rows": count, "cores_and_copies_gb_per_s": nbytes_in_all / by_cores / 1e9},
            )

    def by_cores(self, words: int, rows: int, lists: list[torch.Tensor]) -> float:
        table = torch.from_numpy(self.numbers[: rows * words].reshape(rows, words))
        gathered = torch.empty((len(lists[0]), words), dtype=torch.int32, pin_memory=True)
        out = torch.empty_like(gathered, device="cuda")
        on_cpu = [each.cpu() for each in lists]
        return statistics.median(timed(lambda k: overlapped_copy(table, on_cpu[k], gathered, out)(), 1, 3))

    def seconds(self, words: int, rows: int, lists: list[torch.Tensor], **how: Any) -> list[float]:
        how = {"placement": "host", **how}
        with penstock.open(self.path, dtype="int32", shape=(rows, words), device="cuda", **how) as array:
            out = torch.empty((len(lists[0]), words), dtype=torch.int32, device="cuda")
            taken = timed(lambda k: array.gather(lists[k], out=out), 2, LISTS - 2)
            for part in (slice(COMPARED), slice(-COMPARED, None)):
                asked = lists[-1][part].cpu().numpy()
                wanted = self.numbers[: rows * words].reshape(rows, words)[asked]
                check(bool((out[part].cpu().numpy() == wanted).all()), f"{self.path}, {how}")
        return taken


def run(pattern: str, shared: Shared) -> None:
    def far(count: int, rows: int, seed: int) -> torch.Tensor:
        return random_rows(count, rows, seed)

    match pattern:
        case "far":
            shared.measure(pattern, SHAPES, far)
        case "near":
            shared.measure(pattern, MIXED, lambda count, rows, seed: random_rows(count, rows // 10, seed))
        case "zipf":
            shared.measure(pattern, MIXED, lambda count, rows, seed: zipf_rows(count, rows, 1.05, seed))
        case "kept":
            scores = np.random.default_rng(1).random
            shared.measure(pattern, MIXED, far, placement="tiered", hot=0.25, scores=scores)
        case "busy":
            with busy_host():
                shared.measure(pattern, MIXED, far)


PATTERNS = ("far", "near", "zipf", "kept", "busy")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--only", default=",".join(PATTERNS))
    parser.add_argument("--gib", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="where the file is written")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("shared_gathers.py needs a GPU: on the CPU executor there is no link to share")
    bench = Bench(options)
    path = options.folder / "penstock_shared.bin"
    try:
        shared = Shared(bench, filled(path, options.gib << 30))
        bench.facts["gib"] = options.gib
        for pattern in options.only.split(","):
            run(pattern, shared)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

"""Kernels whose threads go from line to line in the ways that programs do: together, or each with a part.

    python benchmarks/kernel_readers.py --results miss.jsonl [--executor cuda] [--mib 2048]

`readers.order`: neighbouring threads read neighbouring elements, all of them, or as few as half a
multiprocessor has for each; `readers.warps`: each warp has a part of the file, all warps or an eighth;
`readers.blocks`: each block of 256 threads has, and reads 16 elements of a thread at once, as sums by CUB do,
as many blocks as run at once or five times that; `readers.lists`: warps read runs of 1 to 2000 elements that
begin anywhere. Each with lines of 512 B, 4 KiB and 32 KiB and caches of a half and a 32nd of the file, with
the default options. The baseline is the same kernel over the mapped file in place (placement host), which for
`lists` reads less: no line, but what is asked for. Sums are compared with NumPy's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock

SOURCE = """
using u64 = unsigned long long;
using elements = penstock::array<const u64>;
__device__ u64 thread() { return blockIdx.x * u64(blockDim.x) + threadIdx.x; }
__device__ u64 threads() { return gridDim.x * u64(blockDim.x); }
__device__ u64 mix(u64 x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

extern "C" __global__ void order(elements a, u64* sum) {
  u64 mine = 0;
  for (u64 i = thread(); i < a.size(); i += threads()) mine += a[i];
  atomicAdd(sum, mine);
}

extern "C" __global__ void warps(elements a, u64* sum) {
  const u64 each = (a.size() / 512 + threads() / 32 - 1) / (threads() / 32) * 512;
  const u64 first = thread() / 32 * each, last = first + each < a.size() ? first + each : a.size();
  u64 mine = 0;
  for (u64 i = first + threadIdx.x % 32; i < last; i += 32) mine += a[i];
  atomicAdd(sum, mine);
}

extern "C" __global__ void blocks(elements a, u64* sum) {
  const u64 tile = 16 * blockDim.x, tiles = a.size() / tile, each = (tiles + gridDim.x - 1) / gridDim.x;
  const u64 first = blockIdx.x * each, last = first + each < tiles ? first + each : tiles;
  u64 mine = 0;
  for (u64 t = first; t < last; ++t) {
    u64 few[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) few[k] = a[t * tile + k * blockDim.x + threadIdx.x];
#pragma unroll
    for (int k = 0; k < 16; ++k) mine += few[k];
  }
  atomicAdd(sum, mine);
}

extern "C" __global__ void lists(elements a, u64* sum) {
  u64 mine = 0;
  for (u64 k = thread() / 32; k < a.size() / 1000; k += threads() / 32) {
    const u64 first = mix(k) % (a.size() - 2000), last = first + 1 + mix(~k) % 2000;
    for (u64 i = first + threadIdx.x % 32; i < last; i += 32) mine += a[i];
  }
  atomicAdd(sum, mine);
}
"""
BLOCK = 256


class Sum:
    """A word where the kernels run."""

    def __init__(self, executor: str) -> None:
        if executor == "cuda":
            import torch

            self._signed: Any = torch.zeros(1, dtype=torch.int64, device="cuda")
            self.word: Any = self._signed.view(torch.uint64)
        else:
            self._signed = np.zeros(1, np.int64)
            self.word = self._signed.view(np.uint64)

    def clear(self) -> None:
        self._signed[0] = 0

    def value(self) -> int:
        return int(self._signed[0]) % 2**64


class Readers:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.executor, self.path = options, options.executor, folder / "elements.npy"
        self.count = options.mib << 17
        values = np.random.default_rng(1).integers(0, 2**63, self.count, dtype=np.uint64)
        np.save(self.path, values)
        ends = np.concatenate([[np.uint64(0)], np.cumsum(values)])
        runs = np.arange(self.count // 1000, dtype=np.uint64)
        first = _mixed(runs) % np.uint64(self.count - 2000)
        last = first + np.uint64(1) + _mixed(~runs) % np.uint64(2000)
        self.sums = {"order": int(ends[-1]), "lists": int((ends[last] - ends[first]).sum())}
        self.elements = {"order": self.count, "lists": int((last - first).sum())}
        self.kernels = {
            name: penstock.kernel(SOURCE, name, device=self.executor)
            for name in ("order", "warps", "blocks", "lists")
        }
        self.sum = Sum(self.executor)

    def shapes(self) -> Iterator[tuple[str, str, int]]:
        """Pattern, how many, blocks."""
        for name, kernel in self.kernels.items():
            facts = kernel.report(BLOCK)
            all_blocks = facts["units"] * (facts["blocks_per_unit"] or 1)
            few = {"order": facts["units"], "blocks": 5 * all_blocks}.get(name, max(1, all_blocks // 8))
            yield name, "all", all_blocks
            yield name, "five times" if name == "blocks" else "few", few

    def seconds(self, array: penstock.Array, name: str, grid: int) -> list[float]:
        taken = []
        for _ in range(1 + self.options.repeats):
            self.sum.clear()
            begun = time.perf_counter()
            self.kernels[name](array, self.sum.word, grid=grid, block=BLOCK).wait()
            taken.append(time.perf_counter() - begun)
            if self.sum.value() != self.sums.get(name, self.sums["order"]) % 2**64:
                raise SystemExit(f"readers.{name}: the sum is wrong")
        return taken[1:]

    def run(self) -> None:
        shapes = list(self.shapes())
        with penstock.open(self.path, placement="host", device=self.executor) as array:
            in_place = [self.seconds(array, name, grid) for name, _, grid in shapes]
        for line in (512, 4096, 32768):
            for share in (2, 32):
                how = {"line": line, "cache": self.count * 8 // share}
                with penstock.open(self.path, placement="storage", device=self.executor, **how) as array:
                    for (name, many, grid), beside in zip(shapes, in_place, strict=True):
                        before = array.stats()
                        taken = self.seconds(array, name, grid)
                        after = array.stats()
                        moved = {key: after[key] - before[key] for key in ("misses", "joins", "prefetches")}
                        self.note(name, many, how, taken, beside, moved)

    def note(
        self, name: str, many: str, how: dict[str, int], taken: list[float], beside: list[float],
        moved: dict[str, int],
    ) -> None:  # fmt: skip
        nbytes = 8 * self.elements.get(name, self.count)
        value, base = (nbytes / statistics.median(each) / 1e9 for each in (taken, beside))
        passes = len(taken) + 1
        line = {
            "id": f"readers.{name}", "value": value, "unit": "GB/s", "repeats": len(taken),
            "baseline": "in place", "baseline_value": base, "ratio": value / base,
            "spread": (max(taken) - min(taken)) / statistics.median(taken), "verified": True,
            "params": {**how, "readers": many, "executor": self.executor, "mib": self.options.mib},
            "details": {key: count // passes for key, count in moved.items()}
            | {"registers": self.kernels[name].report()["registers"]},
            "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
            "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        }  # fmt: skip
        with Path(self.options.results).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        print(
            f"readers.{name} ({many}), lines of {how['line']} B, cache {how['cache'] >> 10} KiB: "
            f"{value:.2f} GB/s, {value / base:.2f}x in place",
            flush=True,
        )


def _mixed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As the kernels' mix."""
    half = np.uint64(33)
    x = (x ^ (x >> half)) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> half)) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> half)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--executor", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="for the file, which is removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        Readers(options, Path(folder)).run()


if __name__ == "__main__":
    main()

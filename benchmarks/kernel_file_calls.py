"""File calls of kernels that are compiled when the program runs, beside those of kernels compiled into it.

    python benchmarks/kernel_file_calls.py --results files.jsonl [--executor cuda] [--mib 1024]

`file.kernel.hit` and `file.kernel.miss`: reads of 4 KiB of one file by penstock::files, in a cache that has
all of it and in one of an eighth; `file.kernel.open`: an open and a close of a file that is open. By threads
alone and, on a GPU, by warps (`group`). Baselines are `read4k.warm`, `read4k.cold` and `open.known` of
`penstock bench files` with the same sizes, before and after: warps on a GPU, threads on the CPU. Of each
piece 32 words are compared with what the file has, as there, and every error counts: one ends the run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import penstock.bench
import penstock.fs

PIECE, WORDS = 4096, 512
MASK = 0x5BD1E9955BD1E995
BLOCK = 128

SOURCE = """
using u64 = unsigned long long;
__device__ u64 mix(u64 x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}
__device__ auto calls_of(penstock::files const& fs) {
#if WARPS
  return fs.warp();
#else
  return fs;
#endif
}
constexpr unsigned width = WARPS ? 32 : 1;
__device__ u64 group() { return (blockIdx.x * u64(blockDim.x) + threadIdx.x) / width; }
__device__ u64 groups() { return gridDim.x * u64(blockDim.x) / width; }

extern "C" __global__ void read_pieces(penstock::files fs, u64* rooms, u64 pieces, u64 reads, u64 seed,
                                       u64* wrong) {
  const auto calls = calls_of(fs);
  const unsigned lane = threadIdx.x % width;
  u64* const room = rooms + group() * 512;
  const auto file = calls.open("large");
  u64 bad = file.ok() ? 0 : 1;
  for (u64 k = group(); k < reads; k += groups()) {
    const u64 piece = mix(k ^ seed) % pieces;
    bad += calls.pread(file, room, 4096, piece * 4096).value != 4096;
    for (unsigned w = lane * 16; w < 512; w += width * 16) bad += room[w] != ((piece * 512 + w) ^ FILE_MASK);
#if WARPS
    __syncwarp();
#endif
  }
  bad += calls.close(file) != 0;
  if (bad != 0) atomicAdd(wrong, bad);
}

extern "C" __global__ void open_and_close(penstock::files fs, u64 files, u64 opens, u64 seed, u64* wrong) {
  const auto calls = calls_of(fs);
  u64 bad = 0;
  for (u64 k = group(); k < opens; k += groups()) {
    u64 number = mix(k ^ seed) % files;
    char name[] = "s00000";
    for (int d = 5; d != 0; --d, number /= 10) name[d] = char('0' + number % 10);
    const auto file = calls.open(name);
    bad += !file.ok() || calls.close(file) != 0;
  }
  if (bad != 0) atomicAdd(wrong, bad);
}
"""


class Memory:
    """Zeros where the kernels run: `words` of 8 bytes."""

    def __init__(self, executor: str, words: int) -> None:
        if executor == "cuda":
            import torch

            self._signed: Any = torch.zeros(words, dtype=torch.int64, device="cuda")
            self.words: Any = self._signed.view(torch.uint64)
        else:
            self._signed = np.zeros(words, np.int64)
            self.words = self._signed.view(np.uint64)

    def first(self) -> int:
        return int(self._signed[0])


class Calls:
    """The files, and kernels that call them."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder, self.executor = options, folder, options.executor
        self.mib = options.mib or (1024 if self.executor == "cuda" else 64)
        self.pieces = (self.mib << 20) // PIECE
        self.wrong = Memory(self.executor, 1)
        step = 1 << 22
        with (folder / "large").open("wb") as file:
            for first in range(0, self.pieces * WORDS, step):
                words = np.arange(first, min(first + step, self.pieces * WORDS), dtype=np.uint64)
                (words ^ np.uint64(MASK)).tofile(file)
        for k in range(options.files):
            (folder / f"s{k:05}").write_text(str(k))

    def kernel(self, name: str, warps: bool) -> penstock.Kernel:
        return penstock.kernel(
            SOURCE, name, device=self.executor, defines={"WARPS": warps, "FILE_MASK": f"{MASK}ull"}
        )

    def mount(self, small: bool) -> penstock.fs.Folder:
        cache = (self.mib << 20) // 8 if small else (self.mib << 20) * 5 // 4
        return penstock.fs.mount(self.folder, executor=self.executor, cache=cache)

    def rates(self, kernel: penstock.Kernel, count: int, *arguments: Any) -> list[float]:
        """Calls a second of each repeat, after one that is not counted. `arguments`: before the seed."""
        block = BLOCK if self.executor == "cuda" else 1
        facts = kernel.report(block)
        grid = facts["units"] * (facts["blocks_per_unit"] or 16)
        rooms = (Memory(self.executor, grid * block * WORDS).words,) if kernel.name == "read_pieces" else ()
        folder, *numbers = arguments
        taken = []
        for k in range(1 + self.options.repeats):
            begun = time.perf_counter()
            kernel(folder, *rooms, *numbers, count, 977 * k, self.wrong.words, grid=grid, block=block).wait()
            taken.append(time.perf_counter() - begun)
        if self.wrong.first() != 0:
            raise SystemExit(f"{kernel.name}: {self.wrong.first()} calls or words went wrong")
        return [count / seconds for seconds in taken[1:]]

    def reads(self, small: bool, warps: bool) -> tuple[list[float], dict[str, Any]]:
        count = self.pieces * (1 if small else 16 if self.executor == "cuda" else 4)
        kernel = self.kernel("read_pieces", warps)
        with self.mount(small) as folder, folder.open("large"):
            rates = self.rates(kernel, count, folder, self.pieces)
            found = folder.inspect()
        return rates, {"registers": kernel.report()["registers"], "misses": found["misses"]}

    def opens(self, warps: bool) -> tuple[list[float], dict[str, Any]]:
        kernel = self.kernel("open_and_close", warps)
        with self.mount(small=True) as folder:
            held = [folder.open(f"s{k:05}") for k in range(self.options.files)]
            before = folder.inspect()["host_calls"]
            rates = self.rates(
                kernel, 2_000_000 if self.executor == "cuda" else 200_000, folder, self.options.files
            )
            calls = folder.inspect()["host_calls"] - before
            for file in held:
                file.close()
        return rates, {"registers": kernel.report()["registers"], "host_calls": calls}

    def built_in(self, pattern: str) -> dict[str, Any]:
        """A line of `penstock bench files`, its value in calls a second."""
        options = {
            "executor": self.executor,
            "patterns": pattern,
            "mib": str(self.mib),
            "files": str(self.options.files),
            "repeats": str(self.options.repeats),
            "folder": str(self.folder),
        }
        (found,) = penstock.bench.run("files", options)
        line = found.line
        return {**line, "value": line["value"] * (1e6 if line["unit"] == "M/s" else 1e9 / PIECE)}

    def measure(self, name: str, pattern: str, run: Any) -> None:
        for warps in (False, True) if self.executor == "cuda" else (False,):
            before = self.built_in(pattern)
            rates, details = run(warps)
            beside = [before["value"], self.built_in(pattern)["value"]]
            value, base = statistics.median(rates), statistics.mean(beside)
            line = {
                **before,
                "id": f"file.kernel.{name}",
                "params": {**before["params"], "group": "warp" if warps else "thread"},
                "value": value,
                "unit": "calls/s",
                "baseline": f"{pattern} of penstock bench files",
                "baseline_value": base,
                "ratio": value / base,
                "spread": (max(rates) - min(rates)) / value,
                "registers": details.pop("registers"),
                "bytes": {},
                "details": {**details, "baseline_before": beside[0], "baseline_after": beside[1]},
            }
            with Path(self.options.results).open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
            print(
                f"{line['id']} by a {line['params']['group']}: {value / 1e6:.3f} M/s, {line['ratio']:.2f}x "
                f"{line['baseline']} ({base / 1e6:.3f})",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--executor", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--mib", type=int, default=0, help="of the file; 0: 64, on a GPU 1024")
    parser.add_argument("--files", type=int, default=500, help="small ones, that are open")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--folder", default=tempfile.gettempdir(), help="where the files are made, and removed"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        calls = Calls(options, Path(folder))
        calls.measure("hit", "read4k.warm", lambda warps: calls.reads(small=False, warps=warps))
        calls.measure("miss", "read4k.cold", lambda warps: calls.reads(small=True, warps=warps))
        calls.measure("open", "open.known", calls.opens)


if __name__ == "__main__":
    main()

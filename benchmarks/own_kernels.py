"""Kernels that are compiled when the program runs, beside the same ones compiled into it.

    python benchmarks/own_kernels.py --results own_kernels.jsonl [--built-in own.cubin] [--folder /tmp]

`kernel.compile`: seconds from the source to a kernel that can be launched, cold (compile, link, load) and
from the cache. `kernel.launch`: host time of a launch over an array and a tensor, and over a tensor alone,
beside cuLaunchKernel with packed parameters; `added_us` is what Python adds, which is to stay within
`most_added_us`. `kernel.hits`, `kernel.half`, `kernel.mixed`, `kernel.lines`: random 8-byte reads that hit;
with a cache of three quarters and of an eighth of the file; whole 4 KiB lines that miss. `kernel.compute`:
GB/s of cuda.compute's `reduce_into` over a file twice the cache, where cuda-cccl is installed, beside the
best of `penstock reduce`, a[i] by each thread (naive) or lines by groups. Other baselines are
kernels of kernels/own_kernels_built_in.cu, compiled ahead of time and launched over the same array; built, in
the checkout, by

    nvcc="nvcc -std=c++20 -O3 --expt-relaxed-constexpr -arch=sm_90 -Iinclude -I. -rdc=true -cubin"
    $nvcc -o /tmp/a.cubin benchmarks/kernels/own_kernels_built_in.cu
    $nvcc -maxrregcount=28 -o /tmp/b.cubin src/device/read_slowly.cu
    nvlink -arch=sm_90 -o own.cubin /tmp/a.cubin /tmp/b.cubin

Sums are compared. Default options but for the cache's size.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import penstock.regular
import torch
from penstock import _native
from rich.console import Console
from rich.table import Table

EXAMPLE = Path(__file__).parents[1] / "examples" / "kernels" / "with_cuda_compute.py"
SOURCE = """
__device__ unsigned long long mix(unsigned long long x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}
extern "C" __global__ void __launch_bounds__(256, 8)
    random_elements(penstock::array<const unsigned long long> a, unsigned long long* out,
                    unsigned long long count) {
  const unsigned long long mask = a.size() - 1;
  unsigned long long sum = 0;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    sum += a[mix(i) & mask];
  }
  atomicAdd(out, sum);
}
extern "C" __global__ void __launch_bounds__(256, 4)
    random_lines(penstock::array<const unsigned long long> a, unsigned long long* out,
                 unsigned long long count) {
  const unsigned long long lines = a.size() / 512, lane = threadIdx.x % 32;
  unsigned long long sum = 0;
  for (unsigned long long i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < count;
       i += gridDim.x * blockDim.x / 32) {
    const unsigned long long first = mix(i) % lines * 512;
    for (unsigned long long k = lane; k < 512; k += 32) sum += a[first + k];
  }
  atomicAdd(out, sum);
}
"""


class BuiltIn:
    """A kernel of an image, launched as penstock.Kernel launches its own."""

    def __init__(self, like: penstock.Kernel, image: bytes) -> None:
        self._like = like
        self._native = _native.UserKernel.load_cuda(like._executor, like.name, image)

    def __call__(self, *arguments: Any, grid: int, block: int) -> Any:
        packed = _native.KernelArguments()
        self._like._packer.pack(arguments, packed)
        stream = torch.cuda.current_stream().cuda_stream
        return self._native.launch(packed, (grid, 1, 1), (block, 1, 1), 0, stream, 0, ()), packed

    def registers(self) -> int:
        return int(self._native.facts(256, 0)["registers"])


def seconds_of(run: Any) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    kept = run()
    end.record()
    end.synchronize()
    del kept
    return begin.elapsed_time(end) / 1000


def host_seconds(run: Any, times: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        run()
    taken = (time.perf_counter() - begin) / times
    torch.cuda.synchronize()
    return taken


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.lines: list[dict[str, Any]] = []

    def note(self, name: str, unit: str, values: list[float], baseline: list[float], **facts: Any) -> None:
        line = {
            "id": name,
            "unit": unit,
            "median": statistics.median(values),
            "values": values,
            "baseline": statistics.median(baseline) if baseline else None,
            "baseline_values": baseline,
            "device": torch.cuda.get_device_name(),
            "machine": f"{os.cpu_count()} cores, PCIe Gen5 x16, CUDA {torch.version.cuda}",
            "commit": self.options.commit,
            **facts,
        }
        self.lines.append(line)
        print(json.dumps(line), flush=True)

    def compile(self) -> None:
        cold, cached = [], []
        for round_ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["PENSTOCK_CACHE"] = folder
                for into in (cold, cached):
                    begin = time.perf_counter()
                    penstock.kernel(SOURCE + f"// {round_}", "random_elements")
                    into.append(time.perf_counter() - begin)
        self.note("kernel.compile.cold", "s", cold[1:], [], first=cold[0])
        self.note("kernel.compile.cached", "s", cached, [])

    def launch(self, array: penstock.Array) -> None:
        empty = penstock.kernel(
            'extern "C" __global__ void nothing(penstock::array<const unsigned long long> a, '
            "unsigned long long* out, unsigned long long n) {}"
        )
        out = torch.zeros(1, dtype=torch.int64, device="cuda").view(torch.uint64)
        no_array = penstock.kernel(
            'extern "C" __global__ void bare(unsigned long long* out, unsigned long long n) {}'
        )
        with_array = [host_seconds(lambda: empty(array, out, 1, threads=32), 2000) for _ in range(5)]
        without = [host_seconds(lambda: no_array(out, 1, threads=32), 2000) for _ in range(5)]
        bare = [self.bare_launch(no_array, out) for _ in range(5)]
        for name, taken in (("array", with_array), ("tensor", without)):
            added_us = 1e6 * (statistics.median(taken) - statistics.median(bare))
            self.note(
                f"kernel.launch.{name}", "us", [1e6 * s for s in taken], [1e6 * s for s in bare],
                added_us=added_us, most_added_us=10,
            )  # fmt: skip

    def bare_launch(self, kernel: penstock.Kernel, out: torch.Tensor) -> float:
        import ctypes

        from cuda.bindings import driver

        _, module = driver.cuModuleLoadData(kernel.cubin)
        _, function = driver.cuModuleGetFunction(module, b"bare")
        values = ((out.data_ptr(), 1), (ctypes.c_uint64, ctypes.c_uint64))
        stream = torch.cuda.current_stream().cuda_stream
        return host_seconds(
            lambda: driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, values, 0), 2000
        )

    def rates(
        self, name: str, kernel_name: str, path: Path, cache: str, count: int, source: str = SOURCE
    ) -> None:
        kernel = penstock.kernel(source, kernel_name)
        built_in = BuiltIn(kernel, Path(self.options.built_in).read_bytes())
        out = torch.zeros(1, dtype=torch.int64, device="cuda").view(torch.uint64)
        grid = kernel.report()["blocks_per_unit"] * kernel.report()["units"]
        with penstock.open(path, placement="storage", cache=cache, line="4KiB") as array:
            sums, rates = {}, {"ours": [], "built in": []}
            for turn in range(2 * self.options.repeats + 2):
                who = ("ours", "built in")[turn % 2]
                run = (kernel, built_in)[turn % 2]
                out.zero_()
                taken = seconds_of(lambda run=run: run(array, out, count, grid=grid, block=256))
                sums.setdefault(who, int(out.view(torch.int64).item()))
                assert sums[who] == sums["ours"], "the sums differ"
                if turn >= 2:
                    rates[who].append(count / taken)
            stats = array.stats()
        self.note(
            name, "1/s", rates["ours"], rates["built in"], registers=kernel.report()["registers"],
            baseline_registers=built_in.registers(), local_bytes=kernel.report()["local_bytes"], cache=cache,
            hits=stats["hits"], misses=stats["misses"], joins=stats["joins"],
        )  # fmt: skip

    def compute(self, path: Path, repeats: int) -> None:
        try:
            import cuda.compute
        except ImportError:
            print("kernel.compute is left out: cuda-cccl is not installed", flush=True)
            return
        elements_of = runpy.run_path(str(EXAMPLE))["elements_of"]
        cache = "1GiB"
        out, none = torch.zeros(1, dtype=torch.uint64, device="cuda"), np.zeros(1, np.uint64)
        with penstock.open(path, placement="storage", cache=cache) as array:
            elements = elements_of(array, "unsigned long long", cuda.compute.types.uint64)
            wanted = {"d_in": elements, "d_out": out, "op": cuda.compute.OpKind.PLUS, "h_init": none}
            begin = time.perf_counter()
            summed = cuda.compute.make_reduce_into(**wanted)
            compile_s = time.perf_counter() - begin
            count = array.nbytes // 8
            room = summed(**wanted, temp_storage=None, num_items=count)
            scratch = torch.empty(room, dtype=torch.uint8, device="cuda")
            seconds = [
                seconds_of(lambda: summed(**wanted, temp_storage=scratch, num_items=count))
                for _ in range(repeats + 1)
            ][1:]
            array.check_replays()
            stats, nbytes = array.stats(), array.nbytes
        beside = penstock.regular.reduce(
            path, access=("naive", "line"), cache=cache, repeats=repeats, executor="cuda"
        )
        assert int(out.view(torch.int64).item()) % 2**64 == int(beside.sum) % 2**64, "the sums differ"
        rates = {m.line["params"]["access"]: m.line["value"] for m in beside.measurements}
        best = max(("naive", "line"), key=rates.__getitem__)
        self.note(
            "kernel.compute", "GB/s", [nbytes / s / 1e9 for s in seconds], [rates[best]],
            baseline_access=best, compile_s=compile_s, cache=cache, hits=stats["hits"],
            misses=stats["misses"], joins=stats["joins"],
        )  # fmt: skip

    def run(self) -> None:
        folder = Path(tempfile.mkdtemp(dir=self.options.folder))
        try:
            small, large = folder / "small.npy", folder / "large.npy"
            generator = np.random.default_rng(1)
            np.save(small, generator.integers(0, 2**63, 1 << 26, dtype=np.uint64))  # 512 MiB
            np.save(large, generator.integers(0, 2**63, 1 << 28, dtype=np.uint64))  # 2 GiB
            self.compile()
            os.environ["PENSTOCK_CACHE"] = str(folder / "cache")
            with penstock.open(small, placement="storage", cache="768MiB") as array:
                self.launch(array)
            if self.options.built_in:
                self.rates("kernel.hits", "random_elements", small, "768MiB", 1 << 30)
                self.rates("kernel.mixed", "random_elements", small, "64MiB", 1 << 22)
                self.rates("kernel.half", "random_elements", small, "384MiB", 1 << 23)
                self.rates("kernel.lines", "random_lines", large, "64MiB", 1 << 20)
            self.compute(large, self.options.repeats)
        finally:
            shutil.rmtree(folder)
        with Path(self.options.results).open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in self.lines)
        table = Table("figure", "ours", "beside", "unit", "registers", box=None)
        for line in self.lines:
            beside = "" if line["baseline"] is None else f"{line['baseline']:.4g}"
            registers = f"{line.get('registers', '')} / {line.get('baseline_registers', '')}"
            table.add_row(line["id"], f"{line['median']:.4g}", beside, line["unit"], registers.strip(" /"))
        Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", default="own_kernels.jsonl")
    parser.add_argument("--built-in", help="image of the baselines; without it they are left out")
    parser.add_argument("--folder", help="for some 3 GiB of files")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    if not options.commit:
        options.commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip()
    Bench(options).run()


if __name__ == "__main__":
    main()

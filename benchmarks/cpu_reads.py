"""Random blocks of a file by CPU threads, with the best of many settings, beside Penstock's gather.

    python benchmarks/cpu_reads.py --results files.jsonl [--gib 1] [--blocks 512,4096,65536] [--folder DIR]

The strongest that a CPU-centric program can do: io_uring with a ring for each thread, registered files and
buffers, over the page cache and bypassing it (O_DIRECT), by every number of threads (--threads) and every
depth (--depths); and the file mapped, copied from by as many threads. With a GPU each thread reads into
pinned memory, and copies a batch to the GPU while it reads the next; without one the blocks stay in host
memory. Penstock gathers the same blocks as rows on the GPU, or by the CPU executor, behind a cache of an
eighth of the file. SPDK is no setting: it takes an NVMe drive away from the kernel. Every byte is compared.
Needs a compiler and liburing; --limit: no setting begins after so many seconds.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import itertools
import json
import mmap
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch

SOURCE = Path(__file__).parent / "kernels/uring_blocks.cpp"
MASK = 0x5BD1E9955BD1E995
BATCH_BYTES = 4 << 20
"""What a thread reads before it copies it to the GPU."""
GPU = torch.cuda.is_available()
Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Setting:
    how: str
    """"uring" or "mmap"."""
    direct: bool
    threads: int
    depth: int
    """Of each thread's ring; 0 without one."""

    @property
    def name(self) -> str:
        return f"{self.threads} threads" + (f", depth {self.depth}" if self.depth else "")


def compiled(folder: Path) -> ctypes.CDLL:
    target = folder / "uring_blocks.so"
    flags = ("-O2", "-std=c++17", "-shared", "-fPIC")
    try:
        subprocess.run(["c++", *flags, str(SOURCE), "-o", str(target), "-luring"], check=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        raise SystemExit(f"cpu_reads.py needs a C++ compiler and liburing: {problem}") from None
    return ctypes.CDLL(str(target))


def make_file(path: Path, nbytes: int) -> None:
    """Word w is w ^ MASK, so that no two blocks are alike. In the page cache, and clean."""
    step = 1 << 22
    with path.open("wb") as file:
        for first in range(0, nbytes // 8, step):
            words = np.arange(first, min(first + step, nbytes // 8), dtype=np.int64)
            (words ^ MASK).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def right(read: torch.Tensor, blocks: Numbers, block_bytes: int) -> bool:
    """Whether `read` has those blocks, in pieces that need little memory."""
    words, step = block_bytes // 8, max(1, (32 << 20) // block_bytes)
    word = torch.arange(words, device=read.device)
    rows = read.view(torch.int64).reshape(len(blocks), words)
    numbers = torch.as_tensor(blocks.astype(np.int64), device=read.device)
    pieces = range(0, len(blocks), step)
    return all(
        torch.equal(rows[k : k + step], (numbers[k : k + step, None] * words + word) ^ MASK) for k in pieces
    )


class Worker:
    """A thread's ring and part of the target. With a GPU: batches to pinned memory, each copied on."""

    def __init__(
        self, source: Source, setting: Setting, block_bytes: int, to: torch.Tensor, stack: ExitStack
    ) -> None:
        self.source, self.setting, self.block_bytes, self.to = source, setting, block_bytes, to
        self.ring = ctypes.c_void_p()
        memory = to
        if GPU:
            self.halves = in_pages(2 * BATCH_BYTES).view(2, BATCH_BYTES)
            memory = self.halves
            check_cuda(torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), memory.nbytes, 0))
            stack.callback(torch.cuda.cudart().cudaHostUnregister, memory.data_ptr())
            self.stream = torch.cuda.Stream()
            self.copied = [torch.cuda.Event() for _ in range(2)]
        if setting.how == "uring":
            address, size = ctypes.c_void_p(memory.data_ptr()), ctypes.c_uint64(memory.nbytes)
            file, ring = source.files[setting.direct], ctypes.byref(self.ring)
            source.check("io_uring", source.library.uring_open(file, setting.depth, address, size, ring))
            stack.callback(source.library.uring_close, self.ring)

    def read(self, blocks: Numbers) -> None:
        if not GPU:
            return self._fetch(blocks, self.to)
        batch = max(1, BATCH_BYTES // self.block_bytes)
        for number, first in enumerate(range(0, len(blocks), batch)):
            some = np.ascontiguousarray(blocks[first : first + batch])
            half = self.halves[number % 2][: len(some) * self.block_bytes]
            if number >= 2:
                self.copied[number % 2].synchronize()
            self._fetch(some, half)
            with torch.cuda.stream(self.stream):
                self.to[first * self.block_bytes :][: len(half)].copy_(half, non_blocking=True)
                self.copied[number % 2].record(self.stream)
        return self.stream.synchronize()

    def _fetch(self, some: Numbers, to: torch.Tensor) -> None:
        if self.setting.how == "mmap":
            rows = to.numpy().reshape(len(some), self.block_bytes)
            np.take(self.source.mapped(self.block_bytes), some, axis=0, out=rows, mode="clip")
            return
        blocks = ctypes.c_void_p(some.ctypes.data)
        count, size = ctypes.c_uint64(len(some)), ctypes.c_uint32(self.block_bytes)
        address = ctypes.c_void_p(to.data_ptr())
        self.source.check("read", self.source.library.uring_read(self.ring, blocks, count, size, address))


def in_pages(nbytes: int) -> torch.Tensor:
    """Zeros in host memory that begins on a page, as O_DIRECT wants it."""
    return torch.frombuffer(mmap.mmap(-1, nbytes), dtype=torch.uint8)


def check_cuda(code: Any) -> None:
    if int(code) != 0:
        raise SystemExit(f"cpu_reads.py: pinned memory: CUDA error {int(code)}")


class Source:
    """The file, and the compiled reads."""

    def __init__(self, path: Path, library: ctypes.CDLL, stack: ExitStack) -> None:
        self.path, self.library = path, library
        self.files = {}
        for direct in (False, True):
            try:
                self.files[direct] = os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
            except OSError as problem:
                print(f"cpu_reads.py: {path}: no O_DIRECT here: {problem.strerror}", flush=True)
            else:
                stack.callback(os.close, self.files[direct])
        self.words = np.memmap(path, np.uint8, "r")

    def mapped(self, block_bytes: int) -> Numbers:
        return self.words.reshape(-1, block_bytes)

    def check(self, what: str, code: int) -> None:
        if code != 0:
            raise SystemExit(f"cpu_reads.py: {what} {self.path}: {os.strerror(-code)}")


class Sweep:
    def __init__(self, options: argparse.Namespace, source: Source, nbytes: int) -> None:
        self.options, self.source, self.nbytes = options, source, nbytes
        self.begun = self.last = time.monotonic()

    def settings(self, how: str, direct: bool) -> Iterator[Setting]:
        for threads in self.options.threads:
            for depth in self.options.depths if how == "uring" else [0]:
                yield Setting(how, direct, threads, depth)

    def parts_of(self, block_bytes: int) -> list[Numbers]:
        """Blocks of each repeat and of a warm-up before: none is read twice."""
        blocks = np.random.default_rng(block_bytes).permutation(self.nbytes // block_bytes).astype(np.uint64)
        count = self.options.mib * (1 << 20) // block_bytes
        return [blocks[k * count : (k + 1) * count] for k in range(1 + self.options.repeats)]

    def rates(self, setting: Setting, parts: list[Numbers], block_bytes: int) -> list[float]:
        count = len(parts[0])
        nbytes = count * block_bytes
        to = torch.zeros(nbytes, dtype=torch.uint8, device="cuda") if GPU else in_pages(nbytes)
        bounds = np.linspace(0, count, setting.threads + 1).astype(int)
        ranges = list(itertools.pairwise(bounds))
        with ExitStack() as stack, ThreadPoolExecutor(setting.threads) as pool:
            workers = [
                Worker(self.source, setting, block_bytes, to[a * block_bytes : b * block_bytes], stack)
                for a, b in ranges
            ]

            def call(k: int) -> None:
                jobs = zip(workers, ranges, strict=True)
                for job in [pool.submit(worker.read, parts[k][a:b]) for worker, (a, b) in jobs]:
                    job.result()

            seconds = timed(call, self.options.repeats)
            if not right(to, parts[-1], block_bytes):
                raise SystemExit(f"cpu_reads.py: {setting}: what was read is not in the file")
        return [nbytes / each / 1e9 for each in seconds]

    def measure(self, how: str, direct: bool, block_bytes: int) -> None:
        name = f"cpu.{how}.{block_bytes}.{'direct' if direct else 'page_cache'}"
        if direct not in self.source.files:
            return
        parts = self.parts_of(block_bytes)
        rates: dict[str, list[float]] = {}
        left_out = 0
        for setting in self.settings(how, direct):
            if time.monotonic() - self.begun > self.options.limit:
                left_out += 1
                continue
            rates[setting.name] = self.rates(setting, parts, block_bytes)
        if not rates:
            print(f"{name}: not begun: {self.options.limit:.0f} s were over", flush=True)
            return
        best = max(rates, key=lambda each: statistics.median(rates[each]))
        ours, moved = self.gather(parts, block_bytes, direct)
        theirs = statistics.median(rates[best])
        line = {
            "id": name,
            "value": theirs,
            "unit": "GB/s",
            "baseline": "Penstock: gather behind a cache of an eighth",
            "baseline_value": ours,
            "ratio": theirs / ours,
            "repeats": self.options.repeats,
            "spread": (max(rates[best]) - min(rates[best])) / theirs,
            "verified": True,
            "params": {"block_bytes": str(block_bytes), "to": "gpu" if GPU else "host memory"},
            "details": {
                "best": best,
                "settings": len(rates),
                "settings_left_out": left_out,
                "penstock_over_it": ours / theirs,
                "reads_per_s": theirs * 1e9 / block_bytes,
                "file_bytes": self.nbytes,
                "penstock_moved_bytes": moved,
                "wall_seconds": time.monotonic() - self.last,
                "sweep": {each: statistics.median(values) for each, values in rates.items()},
            },
        }
        self.last = time.monotonic()
        self.write(line)

    def gather(self, parts: list[Numbers], block_bytes: int, direct: bool) -> tuple[float, int]:
        """Penstock's GB/s over the same blocks, and the bytes that it moved for them."""
        device = "cuda" if GPU else "cpu"
        rows = [torch.as_tensor(part.astype(np.int64), device=device) for part in parts]
        how = {"placement": "storage", "cache": self.nbytes // 8, "line": max(512, min(block_bytes, 1 << 16))}
        shape = (self.nbytes // block_bytes, block_bytes // 8)
        with penstock.open(
            self.source.path, dtype="int64", shape=shape, device=device, direct=direct, **how
        ) as array:
            out = torch.empty((len(rows[0]), shape[1]), dtype=torch.int64, device=device)
            seconds = timed(lambda k: array.gather(rows[k], out=out), self.options.repeats)
            if not right(out.view(torch.uint8).reshape(-1), parts[-1], block_bytes):
                raise SystemExit("cpu_reads.py: what Penstock gathered is not in the file")
            moved = int(array.stats()["bytes_moved"])
        return len(rows[0]) * block_bytes / statistics.median(seconds) / 1e9, moved

    def write(self, line: dict[str, Any]) -> None:
        device = torch.cuda.get_device_name() if GPU else f"{len(os.sched_getaffinity(0))} CPU threads"
        line |= {
            "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed"), "device": device},
            "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        }
        with Path(self.options.results).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        details = line["details"]
        print(
            f"{line['id']}: {line['value']:.3g} GB/s by {details['best']}, best of {details['settings']}; "
            f"Penstock {line['baseline_value']:.3g}, {details['penstock_over_it']:.2f} times that",
            flush=True,
        )


def timed(call: Callable[[int], Any], repeats: int) -> list[float]:
    """Seconds of call(1) to call(repeats), after call(0)."""
    taken = []
    for k in range(1 + repeats):
        begun = time.perf_counter()
        call(k)
        if GPU:
            torch.cuda.synchronize()
        if k:
            taken.append(time.perf_counter() - begun)
    return taken


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    threads = sorted({1, cores, 2 * cores, *(2**k for k in range(1, 7) if 2**k < cores)})
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--gib", type=float, default=1, help="of the file")
    parser.add_argument("--mib", type=int, default=256, help="that are read in a repeat")
    parser.add_argument("--blocks", type=numbers, default=[512, 4096, 65536], help="bytes")
    parser.add_argument("--threads", type=numbers, default=threads)
    parser.add_argument("--depths", type=numbers, default=[1, 16, 64, 256])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300, help="seconds")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    nbytes = int(options.gib * (1 << 10)) << 20
    if nbytes < (1 + options.repeats) * options.mib << 20:
        parser.error(f"--gib {options.gib}: too small for --mib {options.mib} in each repeat and one before")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, ExitStack() as stack:
        path = Path(folder) / "blocks.bin"
        make_file(path, nbytes)
        sweep = Sweep(options, Source(path, compiled(Path(folder)), stack), nbytes)
        for block_bytes in options.blocks:
            for how, direct in (("uring", False), ("mmap", False), ("uring", True)):
                sweep.measure(how, direct, block_bytes)


if __name__ == "__main__":
    main()

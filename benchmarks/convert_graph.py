"""Converts a text file of edges to a graph folder: edges/s, the memory it takes, and what the disk allows.

    python benchmarks/convert_graph.py --results convert.jsonl --folder DIR [--scale 25] [--memory 2GiB]

The edges are those of R-MAT with Graph500's parameters, drawn by NumPy; the file is written first, once, and
its time does not count. cold: the file is read from the disk; cached: from memory. The result is checked
against what was drawn: lists are sorted, and the sum of a hash of each edge is the same. Floor: bytes read
once and written once, each at the bandwidth of DIR's disk, which a file of 1 GiB tells (cached: bytes
written). Needs 18 bytes of disk for each edge (23 with weights), and 4 (8) more.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import shutil
import statistics
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

STEP = 1 << 18
"""Edges that a process draws at once: its arrays stay in the cache of a core."""

DIGITS = np.array([f"{n:04}" for n in range(10000)], dtype="S4").view(np.uint32)
"""Numbers of four digits as text."""

QUADRANTS = (0.57, 0.57 + 0.19, 0.57 + 0.38)


@dataclass(frozen=True)
class Drawn:
    """What the file holds, and how: every line has as many bytes as every other."""

    scale: int
    degree: int
    weighted: bool

    @property
    def edges(self) -> int:
        return self.degree << self.scale

    @property
    def line_bytes(self) -> int:
        return 23 if self.weighted else 18

    @property
    def name(self) -> str:
        return f"kron-{self.scale}-{self.degree}.{'wel' if self.weighted else 'el'}"


def mixed(a: Any, b: Any, weights: Any) -> int:
    """Sum of a hash of each edge, modulo 2^64: it does not depend on their order."""
    key = (a.astype(np.uint64) << np.uint64(32) | b.astype(np.uint64)) + weights * np.uint64(
        0xD6E8FEB86659FD93
    )
    for shift, factor in ((32, 0x9E3779B97F4A7C15), (29, 0xBF58476D1CE4E5B9)):
        key = (key ^ key >> np.uint64(shift)) * np.uint64(factor)
    return int((key ^ key >> np.uint64(32)).sum(dtype=np.uint64))


def scattered(ids: Any, scale: int) -> Any:
    """A bijection of [0, 2^scale): R-MAT gives small ids the high degrees."""
    mask = np.uint32((1 << scale) - 1)
    for factor in (0x9E3779B1, 0x85EBCA6B):
        ids = (ids * np.uint32(factor)) & mask
        ids ^= ids >> np.uint32(scale // 2)
    return ids


def draw(drawn: Drawn, part: int, count: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng((7, part))
    ends = np.zeros((2, count), np.uint32)
    for _ in range(drawn.scale):
        chance = random.random(count, dtype=np.float32)
        b, c, d = (chance >= np.float32(q) for q in QUADRANTS)
        ends <<= np.uint32(1)
        ends[0] |= c
        ends[1] |= b ^ c ^ d
    weights = (
        random.integers(1, 256, count, dtype=np.uint64) if drawn.weighted else np.zeros(count, np.uint64)
    )
    return scattered(ends[0], drawn.scale), scattered(ends[1], drawn.scale), weights


def text(drawn: Drawn, from_: Any, to: Any, weights: Any) -> bytes:
    lines = np.full((len(from_), drawn.line_bytes), ord(" "), np.uint8)
    for column, values in ((0, from_), (9, to)):
        lines[:, column : column + 4] = DIGITS[values // 10000].view(np.uint8).reshape(-1, 4)
        lines[:, column + 4 : column + 8] = DIGITS[values % 10000].view(np.uint8).reshape(-1, 4)
    if drawn.weighted:
        lines[:, 18:22] = DIGITS[weights].view(np.uint8).reshape(-1, 4)
    lines[:, -1] = ord("\n")
    return lines.tobytes()


def write_part(drawn: Drawn, path: Path, part: int) -> int:
    count = min(STEP, drawn.edges - part * STEP)
    edges = draw(drawn, part, count)
    with path.open("r+b") as file:
        file.seek(part * STEP * drawn.line_bytes)
        file.write(text(drawn, *edges))
    return mixed(*edges)


def edge_file(drawn: Drawn, folder: Path, pool: Executor) -> tuple[Path, int]:
    """The file, made unless it is there, and the hash of its edges."""
    path, note = folder / drawn.name, folder / (drawn.name + ".json")
    if not note.exists():
        path.touch()
        parts = range((drawn.edges + STEP - 1) // STEP)
        total = sum(pool.map(partial(write_part, drawn, path), parts, chunksize=4)) % (1 << 64)
        with path.open("r+b") as file:
            os.fsync(file.fileno())
        note.write_text(json.dumps(total))
    return path, int(json.loads(note.read_text()))


def forget(path: Path) -> None:
    """Takes a file that is on the disk out of the page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_bandwidth(folder: Path) -> tuple[float, float]:
    """Bytes/s read and written."""
    path, piece, pieces = folder / "bandwidth", os.urandom(1 << 24), 64
    begun = time.perf_counter()
    with path.open("wb") as out:
        for _ in range(pieces):
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
    written = time.perf_counter()
    forget(path)
    begun_reading = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(len(piece)):
            pass
    read = time.perf_counter() - begun_reading
    path.unlink()
    return pieces * len(piece) / read, pieces * len(piece) / (written - begun)


def memory_line(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    raise SystemExit(f"/proc/self/status has no {name}")


def convert(path: Path, cache: Path, threads: int, memory: str | None) -> dict[str, Any]:
    """In a process of its own, which tells how much it grew."""
    from penstock import graph

    before = memory_line("VmRSS")
    begun = time.perf_counter()
    made = graph.resolve(path, cache_dir=cache, threads=threads, memory=memory)
    seconds = time.perf_counter() - begun
    return {
        "seconds": seconds,
        "peak": memory_line("VmHWM") - before,
        "folder": made.path,
        "edges": made.edges,
    }


def examine(folder: Path, vertices: tuple[int, int]) -> int:
    """The hash of the edges of some vertices, whose lists must be sorted."""
    first, last = vertices
    offsets = np.load(folder / "offsets.npy", mmap_mode="r")[first : last + 1].astype(np.int64)
    edges = np.load(folder / "edges.npy", mmap_mode="r")[offsets[0] : offsets[-1]]
    from_ = np.repeat(np.arange(first, last, dtype=np.uint64), np.diff(offsets))
    weights = np.zeros(len(edges), np.uint64)
    if (folder / "weights.npy").exists():
        weights = np.load(folder / "weights.npy", mmap_mode="r")[offsets[0] : offsets[-1]].astype(np.uint64)
    places = from_ << np.uint64(32) | edges.astype(np.uint64)
    if not (places[:-1] <= places[1:]).all():
        raise SystemExit(f"{folder}: a list of the vertices {first} to {last} is not sorted")
    return mixed(from_, edges, weights)


def verify(folder: Path, edges: int, total: int, drawn: Drawn, pool: Executor) -> None:
    vertices = len(np.load(folder / "offsets.npy", mmap_mode="r")) - 1
    step = max(1, (1 << 21) // drawn.degree)
    slices = [(first, min(first + step, vertices)) for first in range(0, vertices, step)]
    found = sum(pool.map(partial(examine, folder), slices, chunksize=4)) % (1 << 64)
    if edges != drawn.edges or found != total:
        raise SystemExit(f"{folder}: its edges are not those of the file")


def measure(how: str, drawn: Drawn, path: Path, total: int, pool: Executor, options: Any) -> dict[str, Any]:
    runs = []
    for _ in range(options.repeats):
        cache = options.folder / "converted"
        shutil.rmtree(cache, ignore_errors=True)
        if how == "cold":
            forget(path)
        else:
            with path.open("rb", buffering=0) as file:
                while file.read(1 << 24):
                    pass
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            run = alone.submit(convert, path, cache, options.threads, options.memory).result()
        verify(run["folder"], run["edges"], total, drawn, pool)
        run["written"] = sum(file.stat().st_size for file in run["folder"].iterdir())
        shutil.rmtree(cache)
        runs.append(run)
    seconds = [run["seconds"] for run in runs]
    return {"seconds": seconds, "peak": max(run["peak"] for run in runs), "written": runs[0]["written"]}


def tell(
    how: str, drawn: Drawn, path: Path, found: dict[str, Any], disk: tuple[float, float], options: Any
) -> None:
    read, written = path.stat().st_size if how == "cold" else 0, found["written"]
    floor = read / disk[0] + written / disk[1]
    rates = [drawn.edges / s / 1e6 for s in found["seconds"]]
    value = statistics.median(rates)
    line = {
        "id": f"convert.{drawn.name}.{how}",
        "params": {"threads": options.threads, "memory": options.memory},
        "value": value,
        "unit": "M edges/s",
        "baseline": "bytes at the disk's bandwidth",
        "baseline_value": drawn.edges / floor / 1e6,
        "ratio": value * 1e6 * floor / drawn.edges,
        "repeats": len(rates),
        "spread": (max(rates) - min(rates)) / value,
        "verified": True,
        "bytes": {"read": read, "written": written},
        "details": {
            "seconds": found["seconds"],
            "peak_memory": found["peak"],
            "disk_read_gb_per_s": disk[0] / 1e9,
            "disk_write_gb_per_s": disk[1] / 1e9,
        },
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed"), "cores": os.cpu_count()},
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    with Path(options.results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print(
        f"{line['id']} {value:.1f} M edges/s, {statistics.median(found['seconds']):.1f} s, "
        f"{options.threads} threads, {found['peak'] / 2**20:.0f} MiB; floor {floor:.1f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument(
        "--folder", type=Path, required=True, help="for the file and the graph, on the disk in question"
    )
    parser.add_argument("--scale", type=int, default=25, choices=range(2, 27), metavar="2..26")
    parser.add_argument("--degree", type=int, default=16)
    parser.add_argument("--weighted", action="store_true")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--memory", help="limit of the conversion, such as 2GiB")
    parser.add_argument("--only", default="cold,cached", help="cold, cached or both")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    drawn = Drawn(options.scale, options.degree, options.weighted)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn")) as pool:
        path, total = edge_file(drawn, options.folder, pool)
        disk = disk_bandwidth(options.folder)
        for how in options.only.split(","):
            tell(how, drawn, path, measure(how, drawn, path, total, pool, options), disk, options)


if __name__ == "__main__":
    main()

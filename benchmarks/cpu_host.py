"""The CPU executor: rows behind a cache beside memmap, and searches beside busy processes.

    python benchmarks/cpu_host.py RESULTS.jsonl [--only rows,busy] [--mib 512]

Default options throughout. Rows (`cpu.rows.*`): batches of 4096 rows of 512 bytes, uniform and Zipf 1.2, out
of a file in the page cache; baseline: the same rows of `numpy.memmap`. Busy (`cpu.busy.*`): a breadth-first
search with a cache of 1 MiB beside 0, 2 and 4 processes that compute; the ratio is the time over that of an
idle machine, after the share of the cores that is left. Results are compared in each run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from busy_host import busy_host

ROWS_EACH = 4096
WIDTH = 128  # float32: rows of 512 bytes


class Report:
    """Prints each figure and appends it to a file as a JSON line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(
        self, name: str, values: list[float], unit: str, baseline: str, theirs: float, **params: Any
    ) -> None:
        value = statistics.median(values)
        line = {
            "id": name,
            "params": params,
            "value": value,
            "unit": unit,
            "baseline": baseline,
            "baseline_value": theirs,
            "ratio": value / theirs,
            "repeats": len(values),
            "spread": (max(values) - min(values)) / value,
            "verified": True,
            "machine": os.environ.get("PENSTOCK_MACHINE", f"{os.cpu_count()} CPU threads"),
            "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        }
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        print(f"{name}: {value:.4g} {unit}, {value / theirs:.3g} of {baseline} ({theirs:.4g})", flush=True)


def drawn(pattern: str, rows: int, batches: int) -> list[Any]:
    rng = np.random.default_rng(1)
    if pattern == "uniform":
        return [rng.integers(0, rows, ROWS_EACH) for _ in range(batches)]
    order = rng.permutation(rows)
    return [order[np.minimum(rng.zipf(1.2, ROWS_EACH), rows) - 1] for _ in range(batches)]


def rates(read: Any, batches: list[Any]) -> list[float]:
    """Of the second half, in rows/s: the first warms the cache."""
    found = []
    for k, batch in enumerate(batches):
        begun = time.perf_counter()
        read(batch)
        if k >= len(batches) // 2:
            found.append(ROWS_EACH / (time.perf_counter() - begun))
    return found


def measure_rows(report: Report, folder: Path, mib: int) -> None:
    path = folder / "rows.npy"
    rows = mib << 11
    np.save(path, np.random.default_rng(0).random((rows, WIDTH), dtype=np.float32))
    mapped = np.load(path, mmap_mode="r")
    for pattern in ("uniform", "zipf"):
        batches = drawn(pattern, rows, 40)
        memmap = statistics.median(rates(lambda batch: mapped[batch], batches))
        for placement, cache in (("storage", "16MiB"), ("storage", "64MiB"), ("host", None)):
            with penstock.open(path, placement=placement, **({"cache": cache} if cache else {})) as array:
                ours = rates(lambda batch, array=array: array[batch], batches)
                if not np.array_equal(np.asarray(array[batches[-1]]), mapped[batches[-1]]):
                    raise SystemExit(f"{placement}: wrong rows")
            name = f"cpu.rows.{pattern}.{placement}{'.' + cache.lower() if cache else ''}"
            report.add(
                name, ours, "rows/s", "numpy.memmap", memmap, row_bytes=4 * WIDTH, mib=mib, cache=cache
            )


def search_seconds(graph: str, repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        result = penstock.bfs(graph, cache="1MiB", executor="cpu", verify=True)
        if not result.verified:
            raise SystemExit(f"a search beside busy processes: {result.violation}")
        found.append(result.seconds)
    return found


def measure_busy(report: Report) -> None:
    graph = "kron:16"
    cores = len(os.sched_getaffinity(0))
    idle = 0.0
    for busy in (0, 2, 4):
        with busy_host(busy):
            taken = search_seconds(graph, 9)
        idle = idle or statistics.median(taken)
        # Each of our threads has a core's fair share.
        share = min(1.0, cores / (cores + busy))
        report.add(
            f"cpu.busy.{busy}", taken, "s", "idle time over the share of cores", idle / share, graph=graph
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="rows,busy")
    parser.add_argument("--mib", type=int, default=512)
    options = parser.parse_args()
    report = Report(options.results)
    if "rows" in options.only:
        with tempfile.TemporaryDirectory() as folder:
            measure_rows(report, Path(folder), options.mib)
    if "busy" in options.only:
        measure_busy(report)


if __name__ == "__main__":
    main()

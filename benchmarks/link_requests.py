"""Requests that cross the link in a search: their sizes and counts, by how threads share out edges.

    python benchmarks/link_requests.py --results link.jsonl [--graph kron:22] [--executor cuda]

link.scan.*: an array of 64 MiB that is read by threads (each a line of its own), by warps, and by warps that
begin a sector behind a line (EMOGI's Figure 2.4). link.bfs.*: a search, by the naive walk, merged, and merged
and aligned lists (Figures 2.6 and 2.8), by tiles and by auto, of ids of 4 bytes and of 8 as in the paper.
The counts follow from the lists; each search is verified, and of all but the first two the bytes are compared
with the sectors that the GPU's warps counted while they read. Where the GPU counts what its link brings,
details has that, too: the difference of a run of nine trials from the same source and one of a single trial,
over eight.
link.managed.*: what the driver moves for a search in managed memory, by that counter.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from penstock import graph as graphs
from penstock.graph import link
from penstock.graph.link_counters import CountersMissing, LinkCounters

STRATEGIES = ("thread", "merged", "merged_aligned", "tiled", "auto")
UNCOUNTED = ("thread", "merged")
"""Whose sectors warps do not count as requests are made."""
SCAN_BYTES = 64 << 20
TRIALS = 9


def write(options: argparse.Namespace, line: dict[str, Any]) -> None:
    line["details"]["wall_seconds"] = time.monotonic() - options.begun
    options.begun = time.monotonic()
    line |= {
        "baseline": "",
        "baseline_value": None,
        "ratio": None,
        "repeats": 1,
        "spread": None,
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    with Path(options.results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def write_requests(options: argparse.Namespace, line: dict[str, Any], found: link.LinkRequests) -> None:
    line |= {"value": found.requests, "unit": "requests", "bytes": {"host": found.bytes}}
    line["details"] |= {
        **{f"share_{size}": found.share(size) for size in link.SIZES},
        "counts": {str(size): count for size, count in found.counts.items()},
        "edge_bytes": found.edge_bytes,
        "amplification": found.bytes / max(found.edge_bytes, 1),
    }
    write(options, line)
    shares = ", ".join(f"{size} B {found.share(size):.1%}" for size in link.SIZES)
    print(f"{line['id']}: {found.requests:,} requests: {shares}", flush=True)


def scans(options: argparse.Namespace) -> None:
    """4-byte items, a line for each list, or 32 items for each step of a warp."""
    per_line, sector = link.LINE // 4, link.SECTOR // 4
    lines = np.arange(SCAN_BYTES // link.LINE) * per_line
    together = np.zeros_like(lines)
    of_threads = link.requests_of_threads(lines, lines + per_line, together, np.arange(len(lines)), item=4)
    one = np.array([0]), np.array([SCAN_BYTES // 4])
    aligned = link.requests_of_warps(*one, 4, aligned=True)
    shifted = link.requests_of_warps(lines + sector, lines + sector + per_line, 4, aligned=False)
    cases = {"strided": of_threads, "merged_aligned": aligned, "misaligned": shifted}
    for name, counts in cases.items():
        found = link.LinkRequests(name, counts, SCAN_BYTES)
        # Each byte once, whatever the sizes.
        line = {"id": f"link.scan.{name}", "verified": found.bytes == SCAN_BYTES, "params": {}, "details": {}}
        write_requests(options, line, found)


def received_in_a_trial(folder: graphs.GraphFolder, **how: Any) -> tuple[int, float] | None:
    """Bytes by the GPU's own counter, and seconds; None where it has none."""
    received, seconds = [], 0.0
    for trials in (1, TRIALS):
        try:
            counters = LinkCounters()
        except CountersMissing as missing:
            print(f"no counters here: {missing}", flush=True)
            return None
        seconds = statistics.median(graphs.bfs(folder, trials=trials, **how).trial_seconds)
        received.append(counters.received())
    return (received[1] - received[0]) // (TRIALS - 1), seconds


def searches(options: argparse.Namespace) -> None:
    folder = graphs.resolve(options.graph, cache_dir=options.folder)
    source, on_gpu = None, False
    for strategy in STRATEGIES:
        how = {"placement": options.placement, "executor": options.executor, "strategy": strategy}
        result = graphs.bfs(folder, source=source, verify=True, **how)
        source, on_gpu = result.source, result.executor == "cuda"
        read = graphs.link_requests(result)
        agrees = strategy in UNCOUNTED or result.sector_bytes in (0, read.bytes)
        # Where a round pulls, a group of a CPU stops at the edge itself.
        if on_gpu or strategy != "auto":
            agrees = agrees and read.edge_bytes == result.edges_traversed * folder.edge_dtype.itemsize
        for id_bytes in (4, 8):
            details: dict[str, Any] = {"device": result.device, "seconds": result.seconds}
            if id_bytes == folder.edge_dtype.itemsize:
                details["sector_bytes"] = result.sector_bytes
                counted = received_in_a_trial(folder, source=source, **how) if on_gpu else None
                details["received_bytes"] = counted and counted[0]
            line = {
                "id": f"link.bfs.{options.graph}.{strategy}",
                "verified": bool(result.verified) and agrees,
                "params": {"id_bytes": str(id_bytes), "executor": result.executor},
                "details": details,
            }
            write_requests(options, line, graphs.link_requests(result, id_bytes))
            if not line["verified"]:
                raise SystemExit(f"wrong: {line['id']}: {result.violation or 'the sectors differ'}")
    if on_gpu:
        pages(options, folder, source)


def pages(options: argparse.Namespace, folder: graphs.GraphFolder, source: int | None) -> None:
    """What the driver moves for a search in managed memory, anew in each trial."""
    how = {"placement": "managed", "executor": options.executor, "strategy": "merged_aligned"}
    result = graphs.bfs(folder, source=source, verify=True, **how)
    counted = received_in_a_trial(folder, source=source, **how)
    if counted is None:
        return
    received, seconds = counted
    line = {
        "id": f"link.managed.bfs.{options.graph}",
        "value": received / seconds / 1e9,
        "unit": "GB/s",
        "verified": bool(result.verified),
        "params": {"executor": result.executor},
        "bytes": {"host": received},
        "details": {"device": result.device, "seconds": seconds, "edge_bytes": result.edge_bytes},
    }
    write(options, line)
    print(f"{line['id']}: {line['value']:.1f} GB/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--graph", default="kron:20")
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--placement", default="host", choices=["host", "pinned"])
    parser.add_argument("--folder", default=None, help="where graphs are kept")
    options = parser.parse_args()
    options.begun = time.monotonic()
    scans(options)
    searches(options)


if __name__ == "__main__":
    main()

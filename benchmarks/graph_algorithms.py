"""Algorithms over a generated graph, wherever its edges lie, beside the same with the edges in HBM.

    python benchmarks/graph_algorithms.py --results graph.jsonl [--graph kron:22] [--executor cuda]

On the CPU the baseline is the mapped file, read in place and warm. Every result is verified once. Times are
of the algorithm alone, with the file in the page cache.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock import graph as graphs

ALGORITHMS: dict[str, Callable[..., Any]] = {
    "bfs": graphs.bfs,
    "cc": graphs.cc,
    "pagerank": graphs.pagerank,
    "sssp": graphs.sssp,
}


def tell(path: str, line: dict[str, Any]) -> None:
    line |= {
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed"), "device": line.pop("device")},
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    with Path(path).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    ratio = f" {line['ratio']:.2f}x {line['baseline']}" if line["baseline"] else ""
    print(
        f"{line['id']}: {line['value'] * 1e3:.2f} ms{ratio}, {line['details']['teps'] / 1e9:.3f} GTEPS, "
        f"moved {line['details']['bytes_moved'] / 1e6:.0f} MB, verified {line['verified']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--graph", default="kron:20")
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--cache", default="256MiB")
    parser.add_argument("--line", default="4KiB")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default=",".join(ALGORITHMS))
    parser.add_argument("--folder", default=None, help="where graphs are kept")
    options = parser.parse_args()
    # With weights for all: the algorithms that need none do not read them.
    graph = graphs.resolve(options.graph, cache_dir=options.folder, weighted=True)
    for name in options.only.split(","):
        how = {"executor": options.executor, "cache": options.cache, "line": options.line}
        first = ALGORITHMS[name](graph, placement="host", verify=True, **how)
        places = ["hbm", "host", "storage"] if first.executor == "cuda" else ["host", "storage"]
        baseline, best = "", 0.0
        for placement in places:
            checked = ALGORITHMS[name](graph, placement=placement, verify=True, **how)
            runs = [ALGORITHMS[name](graph, placement=placement, **how) for _ in range(options.repeats)]
            seconds = [run.seconds for run in runs]
            value, last = statistics.median(seconds), runs[-1]
            details = {
                "graph": options.graph,
                "vertices": last.vertices,
                "edges": last.edges,
                "edge_bytes": last.edge_bytes,
                "cache_bytes": last.cache_bytes,
                "line_bytes": last.line_bytes,
                "rounds": len(last.level_sizes),
                "teps": last.edges_traversed / value,
                "edges_traversed": last.edges_traversed,
                "bytes_moved": last.bytes_moved,
                "amplification": last.amplification,
            }
            line = {
                "id": f"graph.{placement}.{name}.{options.graph}",
                "value": value,
                "unit": "s",
                "baseline": baseline,
                "baseline_value": best or None,
                "ratio": value / best if best else None,
                "repeats": len(seconds),
                "spread": (max(seconds) - min(seconds)) / value,
                "verified": bool(checked.verified),
                "details": details,
                "device": last.device,
            }
            tell(options.results, line)
            if not baseline:
                baseline, best = f"edges in {placement}", value
            if not checked.verified:
                raise SystemExit(f"{line['id']}: {checked.violation}")


if __name__ == "__main__":
    main()

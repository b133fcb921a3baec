"""Algorithms over a generated graph: every strategy at every placement, beside EMOGI's merged, aligned lists.

    python benchmarks/graph_algorithms.py --results graph.jsonl [--graph kron:22] [--executor cuda]
        [--only bfs,cc] [--placements host,hbm] [--strategies auto,merged_aligned] [--trials 5]

Each line is the median of some trials (searches from other sources) over an open graph, its file in the
page cache; the last result is verified. Its baseline is merged_aligned at the same placement, which comes
first. `cold`: one trial each time, through a cache that is empty. `warm`: later ones, through one that has
all edges. `--media p5800x --drives 4`: storage is modelled drives; floor: what moved, at their rated speed;
target: all edges read to host memory at that speed first, then merged_aligned there (BaM section 5.2).
`--variant int64`: ids of 8 bytes; `reordered`: vertices in the order of a search, as HALO has them for UVM.
link: what a GPU reads of the same file in place, or of pinned memory, by rows of 4 KiB one after another.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from graph_variants import VARIANTS, variant
from penstock import graph as graphs

ALGORITHMS: dict[str, Callable[..., Any]] = {
    "bfs": graphs.bfs,
    "cc": graphs.cc,
    "pagerank": graphs.pagerank,
    "sssp": graphs.sssp,
}
BASELINE = "merged_aligned"
STRATEGIES = "merged_aligned,thread,merged,transposed(128),coarsened(8),tiled,frontier,tiled_frontier,auto"


def tell(path: str, line: dict[str, Any]) -> None:
    line |= {
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed"), "device": line.pop("device")},
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    with Path(path).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    details = line["details"]
    moved = details["bytes_moved"] or details["sector_bytes"]
    ratio = f", {line['ratio']:.2f}x of {line['baseline']}" if line["baseline"] else ""
    for key in ("hbm", "floor", "target"):
        if f"{key}_ratio" in details:
            ratio += f", {key} {details[f'{key}_ratio']:.2f}x"
    if "link_share" in details:
        ratio += (
            f", link {details['link_share'] * 100:.0f} % of {details['link_bytes_per_second'] / 1e9:.1f} GB/s"
        )
    rounds = " ".join(f"{name}:{count}" for name, count in details["strategies"].items())
    print(
        f"{line['id']}: {line['value'] * 1e3:.2f} ms{ratio}, {details['teps'] / 1e9:.2f} GTEPS, "
        f"{moved / 1e6:.0f} MB = {moved / details['edge_bytes']:.2f} of the edges, "
        f"{moved / details['seconds'] / 1e9:.1f} GB/s, "
        f"{rounds}{'' if line['verified'] else ', WRONG'} ({details['wall_seconds']:.1f} s)",
        flush=True,
    )


def measure(name: str, graph: Any, options: argparse.Namespace, **how: Any) -> dict[str, Any]:
    begun = time.monotonic()
    runs = []
    if how["placement"] == "cold":
        how["placement"], trials = "storage", 1
        runs = [
            ALGORITHMS[name](graph, trials=1, verify=k + 1 == options.trials, **how)
            for k in range(options.trials)
        ]
        seconds = [run.seconds for run in runs]
    else:
        trials = options.trials
        if how["placement"] == "warm":
            how["placement"], how["cache"], trials = "storage", options.warm_cache, trials + 1
        runs = [ALGORITHMS[name](graph, trials=trials, verify=True, **how)]
        seconds = runs[0].trial_seconds[trials - options.trials :]
    last = runs[-1]
    value = statistics.median(seconds)
    modelled = {
        "server_sms": options.server_sms,
        "media_place": options.media_place,
        "layout": options.layout,
    }
    return {
        "value": value,
        "unit": "s",
        "repeats": len(seconds),
        "spread": (max(seconds) - min(seconds)) / value,
        "verified": bool(last.verified),
        "device": last.device,
        "details": {
            "graph": options.graph,
            "vertices": last.vertices,
            "edges": last.edges,
            "edge_bytes": last.edge_bytes,
            "cache_bytes": last.cache_bytes,
            "line_bytes": last.line_bytes,
            "rounds": len(last.level_sizes),
            "strategies": dict(Counter(last.level_strategies)),
            "seconds": last.seconds,
            "teps": last.teps,
            "edges_traversed": last.edges_traversed,
            "bytes_moved": last.bytes_moved,
            "sector_bytes": last.sector_bytes,
            "amplification": last.amplification,
            "media": last.media,
            "drives": last.drives,
            "media_bytes_per_second": last.media_bytes_per_second,
            **(modelled if last.drives else {}),
            "hit_rate": last.hits / max(last.hits + last.misses + last.joins, 1),
            "tile_seconds": last.tile_seconds,
            "load_seconds": last.load_seconds,
            "level_sizes": last.level_sizes[:64],
            "level_seconds": last.level_seconds[:64],
            "trial_seconds": seconds,
            "wall_seconds": time.monotonic() - begun,
        },
    }


def rate_in_place(graph: Any, pinned: bool) -> float:
    """Bytes/s of edges.npy by rows of 4 KiB, each read once, in order: a warp each, 16 bytes a lane."""
    import torch

    place = graph.edges_place
    rows = place["count"] * graph.edge_dtype.itemsize // 4096
    with tempfile.TemporaryDirectory(dir=Path(place["path"]).parent) as folder:
        link = Path(folder) / "edges.bin"  # a name that says nothing: it is raw
        link.symlink_to(Path(place["path"]).resolve())
        whole = {"dtype": "int32", "shape": (rows, 1024), "offset": place["data_offset"]}
        with penstock.open(link, placement="host", device="cuda", **whole) as table:
            order = torch.arange(min(rows, 1 << 20), device="cuda")
            expected = table.gather(order)
            if pinned:
                table = penstock.from_tensor(expected.cpu().pin_memory(), placement="host")
            out, seconds = torch.empty_like(expected), []
            for _ in range(6):
                torch.cuda.synchronize()
                begun = time.perf_counter()
                table.gather(order, out=out)
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - begun)
            if not torch.equal(out, expected):
                raise SystemExit("wrong: rows of the edges, read in place")
    return out.nbytes / statistics.median(seconds[1:])


def compare(line: dict[str, Any], in_hbm: float | None, in_host: float | None, link: float | None) -> None:
    """With the same in HBM, by the best strategy so far, and with the most that drives or a link can do."""
    details, rate = line["details"], line["details"]["media_bytes_per_second"]
    if link:
        details["link_bytes_per_second"] = link
        details["link_share"] = details["sector_bytes"] / details["seconds"] / link
    if in_hbm:
        details["hbm_ratio"] = line["value"] / in_hbm
    if rate:
        details["floor_seconds"] = details["bytes_moved"] / rate
        details["floor_ratio"] = line["value"] / max(details["floor_seconds"], 1e-9)
        details["iops"] = details["bytes_moved"] / details["line_bytes"] / line["value"]
    if rate and in_host:
        details["target_seconds"] = details["edge_bytes"] / rate + in_host
        details["target_ratio"] = details["target_seconds"] / line["value"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--graph", default="kron:20")
    parser.add_argument("--variant", choices=VARIANTS, help="another folder of the graph's edges")
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--cache", default="256MiB")
    parser.add_argument("--warm-cache", default="8GiB")
    parser.add_argument("--line", default="4KiB")
    parser.add_argument("--media", default="file")
    parser.add_argument("--drives", type=int, default=1)
    parser.add_argument("--media-place", default="hbm")
    parser.add_argument("--layout", default="striped")
    parser.add_argument("--server-sms", type=int, default=0)
    parser.add_argument("--ablate", default="nothing")
    parser.add_argument("--queues", type=int, default=0)
    parser.add_argument("--queue-depth", type=int, default=256)
    parser.add_argument("--note", default="", help="added to each id")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--only", default=",".join(ALGORITHMS))
    parser.add_argument("--placements", default="hbm,host,storage")
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--folder", default=None, help="where graphs are kept")
    parser.add_argument("--weighted", action="store_true", help="also where no algorithm reads weights")
    options = parser.parse_args()
    # With weights for all: the algorithms that need none do not read them.
    weighted = options.weighted or "sssp" in options.only
    graph = graphs.resolve(options.graph, cache_dir=options.folder, weighted=weighted)
    called = options.graph
    if options.variant:
        graph, called = variant(graph, options.variant), f"{called}:{options.variant}"
    wrong = []
    in_hbm: dict[str, float] = {}
    in_host: dict[str, float] = {}
    links: dict[str, float] = {}
    for name in options.only.split(","):
        for placement in options.placements.split(","):
            best = None
            if placement in ("host", "pinned") and options.executor != "cpu":
                links.setdefault(placement, rate_in_place(graph, placement == "pinned"))
            # A comma within brackets is a strategy's own.
            strategies = re.split(r",(?![^(]*\))", options.strategies)
            for strategy in ["auto"] if placement == "subgraph" else strategies:
                how = {"executor": options.executor}
                if placement not in ("host", "pinned", "hbm", "managed"):
                    how |= {"cache": options.cache}
                if placement in ("storage", "cold", "warm", "host-cached"):
                    how |= {"line": options.line}
                if placement in ("storage", "cold", "warm"):
                    how |= {"media": options.media, "drives": options.drives, "queues": options.queues}
                    how |= {"queue_depth": options.queue_depth, "media_place": options.media_place}
                    how |= {"layout": options.layout}
                    how |= {"ablate": options.ablate}
                    how |= {"server_sms": options.server_sms}
                line = measure(name, graph, options, placement=placement, strategy=strategy, **how)
                line |= {
                    "id": f"graph.{placement}.{name}.{called}.{strategy}{options.note}",
                    "baseline": BASELINE if best else "",
                    "baseline_value": best,
                    "ratio": best / line["value"] if best else None,
                }
                compare(line, in_hbm.get(name), in_host.get(name), links.get(placement))
                tell(options.results, line)
                if placement == "hbm":
                    in_hbm[name] = min(in_hbm.get(name, line["value"]), line["value"])
                if strategy == BASELINE and placement == "host":
                    in_host[name] = line["value"]
                if strategy == BASELINE:
                    best = line["value"]
                if not line["verified"]:
                    wrong.append(line["id"])
    if wrong:
        raise SystemExit(f"wrong: {', '.join(wrong)}")


if __name__ == "__main__":
    main()

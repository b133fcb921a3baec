"""Pipelines of graph neural networks: variants of the gather, placements, orders, loads, shares of the GPU.

    python benchmarks/gnn_pipelines.py --results gnn.jsonl [--nodes 5000000] [--only gather,epochs]
    torchrun --nproc-per-node 2 benchmarks/gnn_pipelines.py --results gnn.jsonl --only epochs,widths

gather      GB/s of the variants of the zero-copy dissertation's chapter 3 (gnn_variants.py), by width
epochs      an epoch of GraphSAGE with each of them; under torchrun each process has its share of the seeds
widths      the same by the width of the features, over a graph of products' shape (gnn_widths.py)
accuracy    five seeds of each placement, and of PyG with features in memory
reorder     gathers and epochs after `penstock.tiering.reorder`, and what it takes
mix         epochs beside a busy host, with a small cache, of skewed seeds; two loaders over one table
sms         epochs by the multiprocessors that the loader takes
partition   epochs of a loader that is kept to some of them by its grids, by a green context, or not
process     epochs of another process that samples and gathers, in place of the loader's thread
wholegraph  WholeGraph's gather from host memory beside Penstock's, where pylibwholegraph is installed

Rows are compared with those of the table, losses with each other. A part that fails ends no other one. The
process ends after `--limit` seconds, whatever it waits for.
"""

from __future__ import annotations

import time
import traceback
from typing import Any

import torch
from gnn_accuracy import accuracies
from gnn_bench import Results, cores, drawn, end_after, machine_name, parser_of, parts_of
from gnn_mix import mixed_loads
from gnn_reordering import reordered_rates
from gnn_sms import loader_partitions, loader_shares, process_beside_thread
from gnn_variants import WIDTHS, gather_rates, variant_epochs
from gnn_wholegraph import wholegraph_rates
from gnn_widths import width_epochs
from penstock.gnn import data
from penstock.gnn.training.ranks import Ranks, ranks_for

PARTS = (
    "gather",
    "epochs",
    "widths",
    "accuracy",
    "reorder",
    "mix",
    "sms",
    "partition",
    "process",
    "wholegraph",
)
OF_SEVERAL = {"epochs", "widths"}
"""Parts that several processes run together."""


def drawn_as(given: Any) -> data.Dataset:
    name = f"{given.like}-{given.nodes}"
    if given.width is None:
        return drawn(given.folder / name, given.like, given.nodes)
    return drawn(given.folder / f"{name}-{given.width}", given.like, given.nodes, width=given.width)


def run(part: str, given: Any, results: Results, ranks: Ranks) -> None:
    def graph() -> Any:
        dataset = drawn_as(given)
        results.about(nodes=dataset.nodes, edges=dataset.edges, width=dataset.width, batch=given.batch)
        return dataset

    match part:
        case "gather":
            gather_rates(results, ranks.device, given.gib, given.rows)
        case "epochs":
            variant_epochs(graph(), results, ranks, given.batch, given.repeats)
        case "widths":
            width_epochs(results, ranks, given)
        case "accuracy":
            accuracies(given.folder, results, given.accuracy_nodes)
        case "reorder":
            reordered_rates(graph(), results, given.batch, given.repeats)
        case "mix":
            mixed_loads(graph(), results, given.batch, given.repeats)
        case "sms":
            loader_shares(graph(), results, given.batch, given.repeats)
        case "partition":
            loader_partitions(graph(), results, given.batch, given.repeats)
        case "process":
            process_beside_thread(graph(), results, given.batch, given.repeats)
        case "wholegraph":
            wholegraph_rates(results, given.gib, given.rows)


def succeeds(part: str, given: Any, results: Results, ranks: Ranks) -> bool:
    """Runs a part. What ends it is printed, and ends no other one."""
    began = time.perf_counter()
    try:
        run(part, given, results, ranks)
    except (Exception, SystemExit):
        if ranks.size > 1:
            raise  # or the other processes would wait for this one
        traceback.print_exc()
        return False
    if ranks.first:
        print(f"{part}: {time.perf_counter() - began:.1f} s", flush=True)
    return True


def main() -> None:
    parser = parser_of(__doc__, nodes=5_000_000, parts=PARTS, limit=540)
    parser.add_argument("--width", type=int, help="numbers of a node's features; else those of --like")
    parser.add_argument("--gib", type=float, default=8, help="of the tables of gather and widths")
    parser.add_argument("--rows", type=int, default=200_000, help="of a gather")
    parser.add_argument(
        "--widths",
        type=lambda text: [int(each) for each in text.split(",")],
        default=WIDTHS,
        help="numbers of a node's features, of widths",
    )
    parser.add_argument("--accuracy-nodes", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3, help="epochs, of which the median is given")
    given = parser.parse_args()
    only = parts_of("--only", given.only, PARTS)
    end_after(given.limit)
    torch.set_float32_matmul_precision("high")
    with ranks_for("auto") as ranks:
        if ranks.size > 1 and not set(only) <= OF_SEVERAL:
            raise SystemExit(
                f"--only {given.only}: {ranks.size} processes run {','.join(sorted(OF_SEVERAL))}: give those"
            )
        if ranks.first and "epochs" in only:
            drawn_as(given)
        ranks.gather(0)
        common = {"machine": machine_name(ranks.size), "cores": cores(), "commit": given.commit}
        results = Results(given.results, common, shown=ranks.first)
        failed = [part for part in only if not succeeds(part, given, results, ranks)]
        results.show()
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()

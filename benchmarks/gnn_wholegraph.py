"""WholeGraph's gather from pinned host memory ("continuous", "cpu") beside Penstock's.

Needs the wheels pylibwholegraph_cu13, libwholegraph_cu13, librmm_cu13 and rapids_logger, installed with
--no-deps, and torch's NCCL.
"""

from __future__ import annotations

from typing import Any

import torch
from gather import expected, filled_host, random_rows, table_of, zipf_rows
from gnn_bench import CUDA, Results, cores, seconds_of
from penstock.arrays import from_tensor

WIDTHS = (128, 256, 1024, 315)


def wholegraph_rates(results: Results, gib: float, rows: int) -> None:
    if not CUDA:
        results.skip("wholegraph", "it needs a GPU")
        return
    try:
        # The loader of libwholegraph finds these only once they are loaded.
        import librmm

        librmm.load_library()
        import pylibwholegraph.torch as wholegraph
    except (ImportError, OSError, RuntimeError) as problem:
        results.skip("wholegraph", f"pylibwholegraph cannot be imported: {problem}")
        return
    results.about(table_GiB=gib)
    _, comm = wholegraph.init_torch_env_and_create_wm_comm(0, 1, torch.cuda.current_device(), 1)
    torch.set_num_threads(cores())  # it has set one
    try:
        whole = filled_host(int(gib * (1 << 30)), "numpy")
        # What the arrays over its parts register is registered once.
        with from_tensor(whole, "host"):
            for width in WIDTHS:
                beside(wholegraph, comm, table_of(whole, width), results, rows)
    finally:
        wholegraph.finalize()


def beside(wholegraph: Any, comm: Any, table: torch.Tensor, results: Results, rows: int) -> None:
    width = table.shape[1]
    theirs = wholegraph.create_wholememory_tensor(
        comm, "continuous", "cpu", list(table.shape), table.dtype, [width, 1]
    )
    memory, _ = theirs.get_local_tensor(host_view=True)
    memory.copy_(table)
    lists = {
        "random": random_rows(rows, len(table)),
        "zipf": zipf_rows(rows, len(table), 1.2),
        "small": random_rows(min(rows, 4096), len(table)),
    }
    try:
        with from_tensor(table, "host") as array:
            for kind, wanted in lists.items():
                figure = f"wholegraph.gather.{width}.{kind}"
                right = expected(wanted, width)
                for gather in (array.gather, theirs.gather):
                    if not torch.equal(gather(wanted), right):
                        raise SystemExit(f"{figure}: other rows than the table has")
                repeats = min(30, max(3, (2 << 30) // right.nbytes))
                ours = right.nbytes / seconds_of(lambda r=wanted: array.gather(r), repeats) / 1e9
                rate = right.nbytes / seconds_of(lambda r=wanted: theirs.gather(r), repeats) / 1e9
                results.add(figure, ours, "GB/s", wholegraph=rate, ratio=ours / rate, verified=True)
    finally:
        del memory
        wholegraph.destroy_wholememory_tensor(theirs)

"""Rows that several GPUs keep together: gathers from a peer's memory over the link between them.

    python benchmarks/peer_rows.py --results peers.jsonl [--rows 16000000] [--width 128] [--only mixed]

Two GPUs of one host; where there are none the CPU executor, for small sizes (--rows 20000 --list 5000 --nodes
5000), with rows in a file. `peers.gather.*`: GB/s of one GPU that gathers rows which the other keeps, and of
both at once, uniform and Zipf; beside it a kernel that reads the same rows by a peer pointer, a warp to a row
and four of them in flight, which is what the link gives. `peers.mix.*`: half of the rows kept, each GPU a
quarter, with and without peers. `peers.copy.*`: the whole table in the memory of both. `peers.mixed.*`: what
peer_mixes.py has beside the clean case. `peers.sample.*`: M edges/s of samples (fan-out 15,10,5 of 1024
seeds) over lists in the GPU's own memory and in that of both. All rows are compared with the table's, and
samples with each other.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch
from gnn_bench import Results, machine_name, parts_of
from peer_bench import (
    CUDA,
    GPUS,
    MEET_SECONDS,
    REPEATS,
    check_rows,
    device_of,
    kept_by,
    lists_of,
    on_gpus,
    open_together,
    rate,
    shares_of,
    synchronize,
)
from peer_mixes import mixed_gathers
from penstock.gnn import data
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import Peers

PARTS = ("gathers", "mixed", "raw", "sample")

# What the link gives: the same reads without a look-up table, a cache or a report.
RAW = r"""
extern "C" __global__ void read_rows(float4 const* from, long long const* rows, long long count, int units,
                                     float4* out) {
  const int lanes = 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / lanes, lane = threadIdx.x % lanes;
  const int warps = gridDim.x * blockDim.x / lanes;
  for (long long first = (long long)warp * 4; first < count; first += (long long)warps * 4) {
    for (int u = lane; u < units; u += lanes) {
      float4 held[4];
      for (int k = 0; k < 4; ++k) if (first + k < count) held[k] = from[rows[first + k] * units + u];
      for (int k = 0; k < 4; ++k) if (first + k < count) out[(first + k) * units + u] = held[k];
    }
  }
}
"""


def open_shared(path: str, folder: str, gpu: int) -> penstock.Array:
    with Peers(gpu, GPUS, f"{folder}/meet", timeout=MEET_SECONDS) as peers:
        return penstock.open(path, placement="hbm", device=device_of(gpu), peers=peers)


def measure(arrays: list[penstock.Array], table: Any, lists: list[Any], at_once: bool) -> list[float]:
    row_bytes = table[0].nbytes
    gate = threading.Barrier(GPUS if at_once else 1, timeout=MEET_SECONDS)

    def run(gpu: int) -> float:
        if not at_once and gpu != 0:
            return 0.0
        rows = torch.as_tensor(lists[gpu], device=device_of(gpu))
        out = torch.empty((len(rows), table.shape[1]), device=device_of(gpu))
        gate.wait()
        found = rate(gpu, row_bytes, len(rows), lambda: arrays[gpu].gather(rows, out=out))
        check_rows(out, table, lists[gpu])
        return found

    return on_gpus(run)


def raw_rate(table: Any, rows: Any) -> tuple[float, float]:
    """Of a kernel on GPU 0 that reads GPU 1's memory by rows, and of a copy of all of it."""
    import cupy

    count, width = len(rows), table.shape[1]
    with cupy.cuda.Device(0):
        cupy.cuda.runtime.deviceEnablePeerAccess(1)
    with cupy.cuda.Device(1):
        far = cupy.asarray(table)
    with cupy.cuda.Device(0):
        kernel = cupy.RawKernel(RAW, "read_rows")
        numbers, out = cupy.asarray(rows), cupy.empty((count, width), cupy.float32)
        whole = cupy.empty(far.shape, cupy.float32)
        best = 0.0
        for blocks in (132, 264, 528, 1056):
            for _ in range(2):
                took = []
                for _ in range(REPEATS):
                    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
                    begin.record()
                    kernel((blocks,), (256,), (far.data.ptr, numbers, count, width // 4, out))
                    end.record()
                    end.synchronize()
                    took.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
            best = max(best, count * width * 4 / statistics.median(took) / 1e9)
        if not np.array_equal(cupy.asnumpy(out[:4096]), table[rows[:4096]]):
            raise SystemExit("the raw kernel has other rows than the table")
        cupy.cuda.Device(0).synchronize()
        began = time.perf_counter()
        whole.data.copy_from_device(far.data, far.nbytes)
        cupy.cuda.Device(0).synchronize()
        return best, far.nbytes / (time.perf_counter() - began) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--list", type=int, default=1 << 20, help="rows of a gather")
    parser.add_argument("--nodes", type=int, default=10_000_000, help="of the graph that is sampled")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--results", type=Path)
    parser.add_argument("--commit", default="")
    given = parser.parse_args()
    only = parts_of("--only", given.only, PARTS)
    machine = machine_name(GPUS) if CUDA else "CPU"
    results = Results(
        given.results,
        {"rows": given.rows, "row_bytes": given.width * 4, "machine": machine, "commit": given.commit},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.npy"
        table = np.lib.format.open_memmap(path, "w+", np.float32, (given.rows, given.width))
        for first in range(0, given.rows, 1 << 20):
            part = table[first : first + (1 << 20)]
            part[:] = (np.arange(first, first + len(part), dtype=np.float32) % 65521)[:, None] + np.arange(
                given.width
            )
        from_peer = gathers(path, folder, table, results, given.list) if "gathers" in only else None
        if "mixed" in only:
            mixed_gathers(path, folder, table, results, given.list)
        if "raw" in only:
            read_by_pointer(table[: given.rows // GPUS], results, given.list, from_peer)
        if "sample" in only:
            graph = data.generate(f"{folder}/graph", "papers100M", nodes=given.nodes, memory="16GiB")
            sample(graph, folder, results)


def sample(dataset: data.Dataset, folder: str, results: Results) -> None:
    pointers, neighbors = (dataset.folder / f"{name}.npy" for name in ("pointers", "neighbors"))
    found: dict[bool, Any] = {}
    for together in (False, True):

        def run(gpu: int, together: bool = together) -> tuple[float, Any]:
            place: dict[str, Any] = {"placement": "hbm", "device": device_of(gpu)}
            if not together and not CUDA:
                place["placement"] = "host"  # which is the CPU's own
            if together:
                with Peers(gpu, GPUS, f"{folder}/meet", timeout=MEET_SECONDS) as peers:
                    lists = penstock.open(neighbors, peers=peers, **place)
            else:
                lists = penstock.open(neighbors, **place)
            sampler = NeighborSampler(Graph(pointers, lists, device=place["device"]), (15, 10, 5), seed=7)
            seeds = torch.as_tensor(np.random.default_rng(gpu).integers(0, dataset.nodes, (40, 1024)))
            seeds = seeds.to(place["device"])
            for k in range(4):
                sampler.sample(seeds[k], call=k)
            edges, began = 0, time.perf_counter()
            for k in range(4, len(seeds)):
                edges += len(sampler.sample(seeds[k], call=k).rows)
            synchronize(gpu)
            took = time.perf_counter() - began
            return edges / took / 1e6, sampler.sample(seeds[0], call=0).nodes.cpu()

        rates = on_gpus(run)
        found[together] = rates[0][1]
        name = "both" if together else "own"
        results.add(f"peers.sample.{name}", rates[0][0], "M edges/s", sum=sum(each for each, _ in rates))
    if not torch.equal(found[False], found[True]):
        raise SystemExit("samples over lists in the memory of both GPUs are others")


def gathers(path: str, folder: str, table: Any, results: Results, count: int) -> float:
    """Uniform and Zipf. Returns the rate of one GPU that reads the other's rows."""
    rows = len(table)
    far = [kept_by(rows, 1 - gpu) for gpu in range(GPUS)]
    near = [kept_by(rows, gpu) for gpu in range(GPUS)]
    arrays = open_together(path, folder, rows, True)
    from_peer = 0.0
    for skewed in (False, True):
        kind = "zipf" if skewed else "uniform"
        for name, lists in (("near", near), ("far", far), ("both", [np.arange(rows)] * GPUS)):
            drawn = [lists_of(lists[gpu], skewed, gpu, count) for gpu in range(GPUS)]
            alone = measure(arrays, table, drawn, at_once=False)[0]
            at_once = measure(arrays, table, drawn, at_once=True)
            if name == "far" and not skewed:
                from_peer = alone
            results.add(f"peers.gather.{name}.{kind}", alone, "GB/s", at_once=sum(at_once))
    for array in arrays:
        array.close()
    arrays = on_gpus(lambda gpu: open_shared(path, folder, gpu))
    for skewed in (False, True):
        drawn = [lists_of(np.arange(rows), skewed, gpu, count) for gpu in range(GPUS)]
        at_once = measure(arrays, table, drawn, at_once=True)
        results.add(f"peers.copy.{'zipf' if skewed else 'uniform'}", sum(at_once), "GB/s")
    for array in arrays:
        array.close()
    for together in (True, False):
        arrays = open_together(path, folder, rows // 2, together)
        for skewed in (False, True):
            # The hottest rows are the first: those that are kept.
            drawn = [lists_of(np.arange(rows), skewed, gpu, count) for gpu in range(GPUS)]
            at_once = measure(arrays, table, drawn, at_once=True)
            results.add(
                f"peers.mix.{'zipf' if skewed else 'uniform'}.{'together' if together else 'alone'}",
                sum(at_once),
                "GB/s",
                **shares_of(arrays[0].bytes_by_tier()),
            )
        for array in arrays:
            array.close()
    return from_peer


def read_by_pointer(part: Any, results: Results, count: int, from_peer: float | None) -> None:
    if not CUDA:
        results.skip("peers.raw", "it needs two GPUs")
        return
    raw, copy = raw_rate(part, np.random.default_rng(1).integers(0, len(part), count))
    over = {} if from_peer is None else {"penstock_over_it": from_peer / raw}
    results.add("peers.raw.uniform", raw, "GB/s", copy_GB_s=copy, **over)


if __name__ == "__main__":
    main()

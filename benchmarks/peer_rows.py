"""Rows that several GPUs keep together: gathers from a peer's memory over the link between them.

    python benchmarks/peer_rows.py --results peers.jsonl [--rows 16000000] [--width 128]

Two GPUs of one host. `peers.gather.*`: GB/s of one GPU that gathers rows which the other keeps, and of both
at once, uniform and Zipf; beside it a kernel that reads the same rows by a peer pointer, a warp to a row and
four of them in flight, which is what the link gives. `peers.mix.*`: half of the rows kept, each GPU a
quarter, with and without peers. `peers.copy.*`: the whole table in the memory of both. `peers.sample.*`: M
edges/s of samples (fan-out 15,10,5 of 1024 seeds) over lists in the GPU's own memory and in that of both. All
rows are compared with the table's, and samples with each other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch
from penstock.gnn import data
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import Peers

GPUS = 2
LIST = 1 << 20
REPEATS = 12

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


class Results:
    def __init__(self, path: Path | None, common: dict[str, Any]) -> None:
        self._path, self._common = path, common

    def add(self, name: str, value: float, unit: str = "GB/s", **more: Any) -> None:
        line = {"id": name, "value": value, "unit": unit, **more, **self._common}
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        shown = ", ".join(
            f"{key} {each:.4g}" if isinstance(each, float) else f"{key} {each}" for key, each in more.items()
        )
        print(f"{name:34} {value:8.1f} {unit}  {shown}", flush=True)


def rate(gpu: int, row_bytes: int, count: int, call: Callable[[], Any]) -> float:
    """GB/s, the median of some calls."""
    stream = torch.cuda.current_stream(gpu)
    for _ in range(2):
        call()
    stream.synchronize()
    took = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(stream)
        call()
        end.record(stream)
        end.synchronize()
        took.append(begin.elapsed_time(end) / 1e3)
    return count * row_bytes / statistics.median(took) / 1e9


def on_gpus(action: Callable[[int], Any]) -> list[Any]:
    """Calls it for each GPU, in threads of their own."""
    results: list[Any] = [None] * GPUS
    problems: list[BaseException] = []

    def run(gpu: int) -> None:
        try:
            torch.cuda.set_device(gpu)
            results[gpu] = action(gpu)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(gpu,)) for gpu in range(GPUS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if problems:
        raise problems[0]
    return results


def lists_of(rows: Any, skewed: bool, seed: int) -> np.ndarray[Any, Any]:
    draw = np.random.default_rng(seed)
    if not skewed:
        return rows[draw.integers(0, len(rows), LIST)]
    return rows[np.minimum(draw.zipf(1.2, LIST) - 1, len(rows) - 1)]


def kept_by(kept: int, gpu: int) -> Any:
    return np.arange(gpu, kept, GPUS)


def open_together(path: str, folder: str, kept: int, together: bool) -> list[penstock.Array]:
    def run(gpu: int) -> penstock.Array:
        array = penstock.open(path, placement="host", device=f"cuda:{gpu}")
        if not together:
            array.keep_rows(np.arange(kept // GPUS))
            return array
        with Peers(gpu, GPUS, f"{folder}/meet", timeout=120) as peers:
            array.keep_rows(np.arange(kept), peers=peers)
            if array.opened.notes:
                raise SystemExit(array.opened.notes[0])
        return array

    return on_gpus(run)


def open_shared(path: str, folder: str, gpu: int) -> penstock.Array:
    with Peers(gpu, GPUS, f"{folder}/meet", timeout=120) as peers:
        return penstock.open(path, placement="hbm", device=f"cuda:{gpu}", peers=peers)


def measure(arrays: list[penstock.Array], table: Any, lists: list[Any], at_once: bool) -> list[float]:
    row_bytes = table[0].nbytes
    gate = threading.Barrier(GPUS if at_once else 1)

    def run(gpu: int) -> float:
        if not at_once and gpu != 0:
            return 0.0
        rows = torch.as_tensor(lists[gpu], device=f"cuda:{gpu}")
        out = torch.empty((len(rows), table.shape[1]), device=f"cuda:{gpu}")
        gate.wait()
        found = rate(gpu, row_bytes, len(rows), lambda: arrays[gpu].gather(rows, out=out))
        some = np.random.default_rng(3).integers(0, len(rows), 4096)
        if not np.array_equal(out[torch.as_tensor(some)].cpu().numpy(), table[lists[gpu][some]]):
            raise SystemExit("a gather has other rows than the table")
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--nodes", type=int, default=10_000_000, help="of the graph that is sampled")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--commit", default="")
    given = parser.parse_args()
    if torch.cuda.device_count() < GPUS:
        raise SystemExit(
            f"peer_rows: it takes {GPUS} GPUs of one host, and there are {torch.cuda.device_count()}"
        )
    machine = f"2 x {torch.cuda.get_device_name()}, PCIe Gen5 x16, CUDA 13.0"
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
        run(path, folder, table, results)
        sample(
            data.generate(f"{folder}/graph", "papers100M", nodes=given.nodes, memory="16GiB"), folder, results
        )


def sample(dataset: data.Dataset, folder: str, results: Results) -> None:
    pointers, neighbors = (dataset.folder / f"{name}.npy" for name in ("pointers", "neighbors"))
    found: dict[bool, Any] = {}
    for together in (False, True):

        def run(gpu: int, together: bool = together) -> tuple[float, Any]:
            place: dict[str, Any] = {"placement": "hbm", "device": f"cuda:{gpu}"}
            if together:
                with Peers(gpu, GPUS, f"{folder}/meet", timeout=120) as peers:
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
            torch.cuda.synchronize(gpu)
            took = time.perf_counter() - began
            return edges / took / 1e6, sampler.sample(seeds[0], call=0).nodes.cpu()

        rates = on_gpus(run)
        found[together] = rates[0][1]
        name = "both" if together else "own"
        results.add(f"peers.sample.{name}", rates[0][0], "M edges/s", sum=sum(each for each, _ in rates))
    if not torch.equal(found[False], found[True]):
        raise SystemExit("samples over lists in the memory of both GPUs are others")


def run(path: str, folder: str, table: Any, results: Results) -> None:
    rows = len(table)
    far = [kept_by(rows, 1 - gpu) for gpu in range(GPUS)]
    near = [kept_by(rows, gpu) for gpu in range(GPUS)]
    part = rows // GPUS
    arrays = open_together(path, folder, rows, True)
    from_peer = 0.0
    for skewed in (False, True):
        kind = "zipf" if skewed else "uniform"
        for name, lists in (("near", near), ("far", far), ("both", [np.arange(rows)] * GPUS)):
            drawn = [lists_of(lists[gpu], skewed, gpu) for gpu in range(GPUS)]
            alone = measure(arrays, table, drawn, at_once=False)[0]
            at_once = measure(arrays, table, drawn, at_once=True)
            if name == "far" and not skewed:
                from_peer = alone
            results.add(f"peers.gather.{name}.{kind}", alone, at_once=sum(at_once))
    for array in arrays:
        array.close()
    arrays = on_gpus(lambda gpu: open_shared(path, folder, gpu))
    for skewed in (False, True):
        drawn = [lists_of(np.arange(rows), skewed, gpu) for gpu in range(GPUS)]
        at_once = measure(arrays, table, drawn, at_once=True)
        results.add(f"peers.copy.{'zipf' if skewed else 'uniform'}", sum(at_once))
    for array in arrays:
        array.close()
    for together in (True, False):
        arrays = open_together(path, folder, rows // 2, together)
        for skewed in (False, True):
            # The hottest rows are the first: those that are kept.
            drawn = [lists_of(np.arange(rows), skewed, gpu) for gpu in range(GPUS)]
            at_once = measure(arrays, table, drawn, at_once=True)
            moved = arrays[0].bytes_by_tier()
            whole = sum(moved.values())
            results.add(
                f"peers.mix.{'zipf' if skewed else 'uniform'}.{'together' if together else 'alone'}",
                sum(at_once),
                **{tier: count / whole for tier, count in moved.items()},
            )
        for array in arrays:
            array.close()
    raw, copy = raw_rate(table[:part], np.random.default_rng(1).integers(0, part, LIST))
    results.add("peers.raw.uniform", raw, copy_GB_s=copy, penstock_over_it=from_peer / raw)


if __name__ == "__main__":
    main()

"""Gathers of rows by the GPU against what else there is: torch over mapped memory, torch on the CPU and a
copy, copies.

    python benchmarks/gather.py --results gather.jsonl [--only host,cpu,...] [--gib 16] [--rows 8388608]

Needs a GPU and torch. Every result is compared bit for bit with the baseline's, or with the rows
themselves. Floor of a gather from host memory: its bytes over the bandwidth of the link (what the copy
engine does is measured first).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch
from array_bench import Bench, check

HOST_WIDTHS = (32, 64, 128, 256, 512, 1024)


def random_rows(count: int, rows: int, seed: int = 7, device: str = "cuda") -> torch.Tensor:
    generator = torch.Generator(device=device).manual_seed(seed)
    return torch.randint(0, rows, (count,), device=device, generator=generator)


def zipf_rows(count: int, rows: int, exponent: float, seed: int = 7, device: str = "cuda") -> torch.Tensor:
    """Ranks by inversion of a bounded power law, spread over the table by a multiplication."""
    generator = torch.Generator(device=device).manual_seed(seed)
    uniform = torch.rand(count, device=device, dtype=torch.float64, generator=generator)
    past = 1 - exponent
    ranks = ((uniform * (float(rows + 1) ** past - 1) + 1) ** (1 / past)).to(torch.int64) - 1
    return ranks.clamp_(0, rows - 1) * 2654435761 % rows


def expected(rows: torch.Tensor, words: int) -> torch.Tensor:
    """Row k of the table holds k * words, k * words + 1, ... modulo 2^32, as int32."""
    base = rows.to(torch.int64)[:, None] * words + torch.arange(words, device=rows.device)[None, :]
    return base.to(torch.int32)


def filled_host(nbytes: int, memory: str) -> torch.Tensor:
    """int32 numbers in host memory: torch's (pages of 4 KiB), NumPy's (huge pages where the system grants
    them), both of which Penstock registers in place, or pinned."""
    if memory == "numpy":
        whole = torch.from_numpy(np.empty(nbytes // 4, np.int32))
    else:
        whole = torch.empty(nbytes // 4, dtype=torch.int32, pin_memory=memory == "pinned")
    step = 1 << 28
    for first in range(0, whole.numel(), step):
        last = min(first + step, whole.numel())
        whole[first:last] = torch.arange(first, last, dtype=torch.int64).to(torch.int32)
    return whole


def bench_copy(bench: Bench, whole: torch.Tensor) -> None:
    part = whole[: 1 << 28]
    target = torch.empty_like(part, device="cuda")
    bench.facts["copy_engine_gb_per_s"] = (
        part.nbytes / statistics.median(bench.seconds(lambda: target.copy_(part, non_blocking=True))) / 1e9
    )


def table_of(whole: torch.Tensor, words: int) -> torch.Tensor:
    rows = whole.numel() // words
    return whole[: rows * words].view(rows, words)


def bench_host(bench: Bench, whole: torch.Tensor) -> None:
    for nbytes in HOST_WIDTHS:
        table = table_of(whole, nbytes // 4)
        with penstock.from_tensor(table, "host") as array:
            rows = random_rows(bench.options.rows, len(array))
            out = torch.empty((len(rows), nbytes // 4), dtype=torch.int32, device="cuda")
            array.gather(rows, out=out)
            check(bool((out == expected(rows, nbytes // 4)).all()), f"gather.host.{nbytes}")
            ours = bench.seconds(lambda a=array, r=rows, o=out: a.gather(r, out=o))
            unified = array.tensor()
            theirs = bench.seconds(lambda u=unified, r=rows, o=out: torch.index_select(u, 0, r, out=o), 2)
            plain = bench.seconds(lambda a=array, r=rows, o=out: a.gather(r, out=o, order="as-asked"), 2)
            details = {"as_asked_gb_per_s": out.nbytes / statistics.median(plain) / 1e9, "rows": len(rows)}
            bench.tell(
                f"gather.host.{nbytes}",
                out.nbytes,
                ours,
                "torch.index_select on mapped memory",
                theirs,
                details,
            )
            del unified, out


def bench_cpu(bench: Bench, whole: torch.Tensor) -> None:
    """Against 16 cores that gather and a copy, one after the other, and side by side."""
    for nbytes in (128, 512, 4096):
        table = table_of(whole, nbytes // 4)
        with penstock.from_tensor(table, "host") as array:
            rows = random_rows(bench.options.rows * 128 // nbytes * 4, len(array))
            on_cpu = rows.cpu()
            gathered = torch.empty((len(rows), nbytes // 4), dtype=torch.int32, pin_memory=True)
            out = torch.empty_like(gathered, device="cuda")

            def by_cpu(t: Any = table, c: Any = on_cpu, g: Any = gathered, o: Any = out) -> None:
                torch.index_select(t, 0, c, out=g)
                o.copy_(g, non_blocking=True)

            theirs = bench.seconds(by_cpu, 3)
            by_them = out.clone()
            overlapped = bench.seconds(overlapped_copy(table, on_cpu, gathered, out), 3)
            check(torch.equal(out, by_them), f"gather.vs_cpu.{nbytes}")
            ours = bench.seconds(lambda a=array, r=rows, o=out: a.gather(r, out=o))
            check(torch.equal(out, by_them), f"gather.vs_cpu.{nbytes}")
            bench.tell(
                f"gather.vs_cpu.{nbytes}",
                out.nbytes,
                ours,
                "16 cores and a copy",
                theirs,
                {"rows": len(rows)},
            )
            name = f"gather.vs_cpu_overlapped.{nbytes}"
            bench.tell(
                name, out.nbytes, ours, "16 cores and copies beside them", overlapped, {"rows": len(rows)}
            )
            del out, by_them, gathered


def overlapped_copy(
    table: torch.Tensor, rows: torch.Tensor, gathered: torch.Tensor, out: torch.Tensor
) -> Callable[[], None]:
    """The cores gather a part while the part before is copied."""
    parts = 16
    step = -(-len(rows) // parts)

    def call() -> None:
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            torch.index_select(table, 0, rows[part], out=gathered[part])
            out[part].copy_(gathered[part], non_blocking=True)

    return call


def bench_wide(bench: Bench, whole: torch.Tensor) -> None:
    """Wide rows by kernels, and by the copy engines."""
    for nbytes in (16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20):
        table = table_of(whole, nbytes // 4)
        with penstock.from_tensor(table, "host") as array:
            rows = random_rows((1 << 30) // nbytes, len(array))
            out = array.gather(rows)
            check(bool((out == expected(rows, nbytes // 4)).all()), f"gather.wide.{nbytes}")
            ours = bench.seconds(lambda a=array, r=rows, o=out: a.gather(r, out=o))
            out.zero_()
            stream = torch.cuda.Stream()
            by_engine = bench.seconds(
                lambda a=array, r=rows, o=out, s=stream: a.gather(r, out=o, order="copy-engine", stream=s)
            )
            check(bool((out == expected(rows, nbytes // 4)).all()), f"gather.wide.{nbytes}")
            bench.tell(
                f"gather.wide.{nbytes}", out.nbytes, ours, "copy engines", by_engine, {"rows": len(rows)}
            )
            del out


def bench_misaligned(bench: Bench, whole: torch.Tensor) -> None:
    worst = 1.0
    for nbytes in range(1024, 1045, 4):
        table = table_of(whole, nbytes // 4)
        with penstock.from_tensor(table, "host") as array:
            rows = random_rows(bench.options.rows // 2, len(array))
            out = array.gather(rows)
            check(bool((out == expected(rows, nbytes // 4)).all()), f"gather.misaligned.{nbytes}")
            ours = bench.seconds(lambda a=array, r=rows, o=out: a.gather(r, out=o))
            share = out.nbytes / statistics.median(ours) / 1e9 / bench.facts["copy_engine_gb_per_s"]
            worst = min(worst, share)
            bench.tell(f"gather.misaligned.{nbytes}", out.nbytes, ours, "", [], {"of_copy_engine": share})
            del out
    print(f"gather.misaligned: at least {worst:.3f} of the copy engine")


def bench_sms(bench: Bench, whole: torch.Tensor) -> None:
    for nbytes in (32, 128, 256, 512, 1024, 4096):
        table = table_of(whole, nbytes // 4)
        with penstock.from_tensor(table, "host") as array:
            rows = random_rows(min(bench.options.rows, (2 << 30) // nbytes), len(array))
            out = array.gather(rows)
            rates = {}
            for sms in (1, 2, 4, 6, 8, 12, 16, 32, 64, 132):
                taken = bench.seconds(lambda a=array, r=rows, o=out, s=sms: a.gather(r, out=o, sms=s), 3)
                rates[sms] = out.nbytes / statistics.median(taken) / 1e9
            best = max(rates.values())
            needed = next(sms for sms, rate in rates.items() if rate >= 0.95 * best)
            check(bool((out == expected(rows, nbytes // 4)).all()), f"gather.sms.{nbytes}")
            details = {"sms_for_95_percent": needed, **{f"sms_{s}": r for s, r in rates.items()}}
            bench.tell(f"gather.sms.{nbytes}", out.nbytes, [out.nbytes / best / 1e9], "", [], details)
            del out


def bench_grid(bench: Bench, whole: torch.Tensor) -> None:
    """Never slower than torch over mapped memory: working sets, widths (aligned and not), numbers of rows,
    uniform and skewed."""
    worst: list[tuple[float, str]] = []
    for working_set in (16 << 20, 256 << 20, 1 << 30, whole.nbytes):
        for nbytes in (4, 20, 32, 128, 512, 1000, 4096, 65536):
            table = table_of(whole[: working_set // 4], nbytes // 4)
            with penstock.from_tensor(table, "host") as array:
                unified = array.tensor()
                for count in (1, 1000, 30_000, 1_000_000, 10_000_000):
                    if count * nbytes > 1 << 30:
                        continue
                    out = torch.empty((count, nbytes // 4), dtype=torch.int32, device="cuda")
                    for exponent in (0, 1.05, 1.2, 1.5):
                        size = len(array)
                        rows = zipf_rows(count, size, exponent) if exponent else random_rows(count, size)
                        theirs = bench.seconds(
                            lambda u=unified, r=rows, o=out: torch.index_select(u, 0, r, out=o), 5
                        )
                        by_them = out.clone()
                        ours = bench.seconds(lambda a=array, r=rows, o=out: a.gather(r, out=o), 5)
                        check(torch.equal(out, by_them), "gather.grid")
                        which = f"zipf{exponent}" if exponent else "uniform"
                        name = f"gather.grid.{working_set >> 20}m.{nbytes}.{count}.{which}"
                        bench.tell(name, out.nbytes, ours, "torch.index_select on mapped memory", theirs, {})
                        worst.append((statistics.median(theirs) / statistics.median(ours), name))
    worst.sort()
    below = sum(ratio < 0.95 for ratio, _ in worst)
    print(f"gather.grid: {below} of {len(worst)} below 0.95 of torch.index_select; the slowest:")
    for ratio, name in worst[:20]:
        print(f"  {ratio:.2f}  {name}")


def bench_small(bench: Bench, whole: torch.Tensor) -> None:
    """What a call costs beside its bytes: 1024 rows of 512 bytes in HBM."""
    table = table_of(whole[: 1 << 27], 128)
    near = table.cuda()
    with penstock.from_tensor(table, "hbm") as array:
        rows = random_rows(1024, len(array))
        check(torch.equal(array[rows], near[rows]), "gather.small")
        ours = bench.seconds(lambda: array[rows], 300)
        theirs = bench.seconds(lambda: torch.index_select(near, 0, rows), 300)
        extra = (statistics.median(ours) - statistics.median(theirs)) * 1e6
        bench.tell("gather.small", 1024 * 512, ours, "torch.index_select", theirs, {"extra_us": extra})


def bench_file(bench: Bench, whole: torch.Tensor) -> None:
    """A .npy file in the page cache, mapped and registered."""
    path = Path(bench.options.folder) / "penstock_gather.npy"
    try:
        np.save(path, whole.numpy().view(np.float32))
        for nbytes in (4096, 128):
            words = nbytes // 4
            begun = time.perf_counter()
            array = penstock.open(path, placement="host", dtype="int32")
            opening = time.perf_counter() - begun
            array.close()
            rows_in_file = whole.numel() // words
            raw = {"dtype": "int32", "shape": (rows_in_file, words), "offset": 128}
            link = path.with_suffix(".bin")
            link.unlink(missing_ok=True)
            os.link(path, link)
            with penstock.open(link, placement="host", **raw) as table:
                rows = random_rows(min(bench.options.rows, (4 << 30) // nbytes), len(table))
                out = table.gather(rows)
                check(bool((out == expected(rows, words)).all()), f"gather.file.{nbytes}")
                busy = time.process_time()
                ours = bench.seconds(lambda t=table, r=rows, o=out: t.gather(r, out=o))
                cores = (time.process_time() - busy) / (sum(ours) * 1.2)
                details = {"open_seconds": opening, "cores_busy": cores}
                bench.tell(f"gather.file.{nbytes}", out.nbytes, ours, "", [], details)
                del out
            link.unlink()
    finally:
        path.unlink(missing_ok=True)


TOPICS = {
    "host": bench_host,
    "small": bench_small,
    "misaligned": bench_misaligned,
    "sms": bench_sms,
    "cpu": bench_cpu,
    "file": bench_file,
    "grid": bench_grid,
    "wide": bench_wide,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--only", default=",".join(TOPICS))
    parser.add_argument("--gib", type=int, default=16)
    parser.add_argument("--rows", type=int, default=1 << 23)
    parser.add_argument("--memory", choices=["torch", "numpy", "pinned"], default="numpy")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", default="/tmp")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("gather.py needs a GPU: on the CPU executor there is no link to measure")
    bench = Bench(options)
    bench.facts["memory"] = options.memory
    begun = time.perf_counter()
    whole = filled_host(options.gib << 30, options.memory)
    print(f"{options.gib} GiB filled in {time.perf_counter() - begun:.1f} s", flush=True)
    begun = time.perf_counter()
    with penstock.from_tensor(whole, "host") as registered:
        print(
            f"registered in {time.perf_counter() - begun:.2f} s, {registered!r} on {registered.device}",
            flush=True,
        )
        bench_copy(bench, whole)
        print(f"copy engine {bench.facts['copy_engine_gb_per_s']:.1f} GB/s", flush=True)
        for name in options.only.split(","):
            TOPICS[name](bench, whole)
    sys.stdout.flush()


if __name__ == "__main__":
    main()

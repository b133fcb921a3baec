"""Groups of many keys by penstock, and beside it by DuckDB and Polars in the same process.

    python benchmarks/group_queries.py --results columns.jsonl [--rows 200000000] [--groups 1e6,1e7,1e8]
        [--keys uniform,zipf] [--executor cuda] [--threads 16] [--placements host,hbm] [--budget-s 180]
        [--folder /tmp]

A table of int64 keys and values: keys are drawn uniformly, or as ranks of Zipf's law with exponent 1 (the
greatest has 5 % of the rows), and spread over 60 bits. Asked for are the sum of the values and the number of
rows of each key; every engine has the columns in its own format, runs warm (what takes more than three
seconds is not repeated) and keeps the result in memory. What would not end within the budget is left out.
Answers are compared with DuckDB's: all keys, sums and counts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from penstock.columns import col, count, open_table

LONG_S = 3.0
SPREAD = 0x9E3779B97F4A7C15


def drawn(kind: str, rows: int, groups: int, seed: int = 1) -> np.ndarray:
    """Keys."""
    draw = np.random.default_rng(seed)
    if kind == "uniform":
        rank = draw.integers(0, groups, rows, dtype=np.uint64)
    else:  # the inverse of Zipf's distribution function, about: log(rank) over log(groups)
        rank = draw.random(rows)
        np.multiply(rank, np.log(groups), out=rank)
        rank = np.minimum(np.exp(rank, out=rank).astype(np.uint64), np.uint64(groups - 1))
    np.multiply(rank, np.uint64(SPREAD), out=rank)
    return (rank >> np.uint64(4)).view(np.int64)


def timed(call: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    """Seconds of calls after a first one, and what the last gave."""
    taken: list[float] = []
    result = None
    for number in range(repeats + 1):
        result = None  # before the next: two would take twice the memory
        begun = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - begun
        if number or seconds > LONG_S:
            taken.append(seconds)
        if seconds > LONG_S:
            break
    return taken, result


def sums(keys: Any, totals: Any, counts: Any) -> tuple[int, int, int, int]:
    """Of a result, whatever order its rows have: groups, and words that change with any of them."""
    key, total, number = (
        np.asarray(each).astype(np.int64).view(np.uint64) for each in (keys, totals, counts)
    )
    mixed = key * np.uint64(SPREAD)
    mixed ^= mixed >> np.uint64(29)
    with np.errstate(over="ignore"):
        return len(key), int(key.sum()), int((mixed * total).sum()), int((mixed * number).sum())


def of_arrow(table: Any) -> tuple[int, int, int, int]:
    return sums(*(table.column(k).to_numpy() for k in range(3)))


def others(frame: Any, threads: int) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Engines, and how their results are summed up."""
    base = duckdb.connect()
    base.execute(f"set threads = {threads}")
    base.register("given", frame)
    base.execute("create table t as select * from given")
    statement = "select k, cast(sum(v) as bigint), count(*) from t group by k"
    found: dict[str, Any] = {"duckdb": (lambda: base.sql(statement).to_arrow_table(), of_arrow)}
    os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
    try:
        import polars as pl
    except ImportError:
        return found
    whole = pl.from_arrow(frame)
    found["polars"] = (
        lambda: whole.lazy().group_by("k").agg(s=pl.col("v").sum(), n=pl.len()).collect(),
        lambda result: sums(*(result.get_column(name).to_numpy() for name in ("k", "s", "n"))),
    )
    return found


def run(options: argparse.Namespace, folder: str, values: Any, kind: str, groups: int) -> None:
    keys = drawn(kind, options.rows, groups)
    engines = others(pa.table({"k": keys, "v": values}), options.threads)
    seconds: dict[str, list[float]] = {}
    expected: Any = None
    for name, (ask, of) in engines.items():
        seconds[name], result = timed(ask, options.repeats)
        found = of(result)
        expected = expected or found
        if found != expected:
            raise SystemExit(f"{kind} {groups}: {name} answers otherwise")
        del result
    engines.clear()
    files = {"k": f"{folder}/k.npy", "v": f"{folder}/v.npy"}
    np.save(files["k"], keys)
    for place in options.placements.split(","):
        threads = 0 if options.executor == "cuda" else options.threads
        with open_table(files, executor=options.executor, placement=place, threads=threads) as table:
            query = table.group_by("k").agg(col("v").sum(), n=count())
            taken, result = timed(query.collect, options.repeats)
            if sums(result["k"], result["v"], result["n"]) != expected:
                raise SystemExit(f"{kind} {groups}: {place}: other answers than DuckDB's")
            report(options, kind, groups, place, taken, seconds, result.account)


def report(
    options: argparse.Namespace, kind: str, groups: int, place: str, taken: list[float],
    seconds: dict[str, list[float]], account: Any,
) -> None:  # fmt: skip
    mine = statistics.median(taken)
    base = {name: statistics.median(each) for name, each in seconds.items()}
    best = min(base, key=lambda name: base[name])
    line = {
        "id": f"groups.{kind}", "value": mine * 1e3, "unit": "ms", "repeats": len(taken),
        "baseline": f"the fastest of {', '.join(base)}: {best}", "baseline_value": base[best] * 1e3,
        "ratio": base[best] / mine, "spread": (max(taken) - min(taken)) / mine, "verified": True,
        "params": {"rows": options.rows, "groups": groups, "placement": place,
                   "executor": options.executor, "threads": options.threads},
        "details": {f"over_{name}": each / mine for name, each in base.items()}
        | {f"{name}_ms": each * 1e3 for name, each in base.items()}
        | {"engine_ms": account.seconds * 1e3, "kernel_ms": account.run_seconds * 1e3,
           "groups_found": account.groups, "slots": account.slots,
           "rows_per_s": options.rows / mine},
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }  # fmt: skip
    with Path(options.results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    shown = " ".join(f"{name} {each * 1e3:.0f} ms ({each / mine:.2f}x)" for name, each in base.items())
    print(
        f"{kind} {groups} {place}: {mine * 1e3:.0f} ms, kernels {account.run_seconds * 1e3:.0f}, engine "
        f"{account.seconds * 1e3:.0f}, {account.groups} groups in {account.slots} slots; {shown}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=200_000_000)
    parser.add_argument("--groups", default="1e6,1e7,1e8")
    parser.add_argument("--keys", default="uniform,zipf")
    parser.add_argument("--budget-s", type=float, default=0, help="seconds; 0: as many as it takes")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--executor", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--placements", default="host,hbm")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where columns are written")
    options = parser.parse_args()
    begun = time.monotonic()
    longest = 0.0
    values = np.random.default_rng(2).integers(-1000, 1000, options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        np.save(f"{folder}/v.npy", values)
        for groups in options.groups.split(","):
            for kind in options.keys.split(","):
                before = time.monotonic()
                if options.budget_s and before - begun + longest > options.budget_s:
                    print(f"{kind} {groups}: left out, {before - begun:.0f} s have gone")
                    continue
                run(options, folder, values, kind, int(float(groups)))
                longest = max(longest, time.monotonic() - before)


if __name__ == "__main__":
    main()

"""TPC-H and SSB queries by penstock.sql, and beside it the same statements by DuckDB, Polars and DataFusion.

    python benchmarks/tpch_queries.py --results columns.jsonl [--scale 10] [--executor cuda] [--threads 16]
        [--placements host,hbm] [--only tpch.q3,tpch.q10,tpch.q18] [--folder /tmp]
    python benchmarks/tpch_queries.py --results columns.jsonl --compiled [--scale 10] [--placements host,hbm]
    python benchmarks/tpch_queries.py --results columns.jsonl --busy [--executor cuda] [--scale 10]

tpchgen-cli draws TPC-H's tables; SSB's are made of them by DuckDB. The columns that the
queries name are converted, packed, and every statement runs warm, from the page cache. The others have the
same columns in their own formats, in memory, and the same number of threads. All answers are compared with
DuckDB's: counts, integers and decimals exactly, floating-point numbers to 1e-12. Beside them stands what a
statement takes in Python alone, the first time and again (planning_time.py).

--compiled has no other engines: the lines `tpch.q1.compiled` and the like are the same statements on the GPU
with kernels of their own, beside interpreted ones, in turn. --busy neither: `tpch.q1.busy` and the like are
statements beside a busy process for each core, and their baseline is an idle host.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
from busy_host import busy_host
from penstock.columns import Table, convert, open_table, sql
from planning_time import planning_ms
from tpch_statements import COLUMNS, CROSS_PRODUCTS, FOR_POLARS, SSB, STATEMENTS

FEW = ("tpch.q1", "tpch.q3", "tpch.q6")
"""Statements that are asked unless others are chosen, where not all are."""


def drawn(folder: Path, scale: float, statements: Iterable[str]) -> dict[str, Path]:
    """Parquet files of the tables that statements name."""
    words = {word for statement in statements for word in re.findall(r"\w+", statement)}
    ssb = [name for name in SSB if name in words]
    words |= {word for name in ssb for word in re.findall(r"\w+", SSB[name])}
    names = [name for name in COLUMNS if name in words]
    subprocess.run(
        [
            "tpchgen-cli",
            "parquet",
            "-s",
            str(scale),
            "--output-dir",
            str(folder),
            "--tables",
            ",".join(names),
        ],
        check=True,
    )
    paths = {name: folder / f"{name}.parquet" for name in names}
    base = duckdb.connect()
    for name, path in paths.items():
        base.execute(f"create view {name} as select * from '{path}'")
    for name in ssb:
        paths[name] = folder / f"{name}.parquet"
        base.execute(f"copy ({SSB[name]}) to '{paths[name]}'")
    return paths


def columns_of(name: str, path: Path) -> list[str]:
    """Of a table, that the queries name."""
    return COLUMNS[name].split() if name in COLUMNS else ds.dataset(path).schema.names


class Others:
    """Engines that run the same statements over the same columns."""

    def __init__(self, folder: Path, paths: dict[str, Path], threads: int) -> None:
        self.engines: dict[str, Callable[[str], list[Any]]] = {}
        frames = {name: ds.dataset(path).to_table(columns_of(name, path)) for name, path in paths.items()}
        base = duckdb.connect(str(folder / "tables.duckdb"))
        base.execute(f"set threads = {threads}")
        for name, frame in frames.items():
            base.register("given", frame)
            base.execute(f"create table {name} as select * from given")
        self.engines["duckdb"] = lambda statement: base.execute(statement).fetchall()
        self._add_polars(frames, threads)
        self._add_datafusion(frames, threads)

    def _add_polars(self, frames: dict[str, Any], threads: int) -> None:
        os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
        try:
            import polars as pl
        except ImportError:
            return
        context = pl.SQLContext({name: pl.from_arrow(frame) for name, frame in frames.items()})
        self.engines["polars"] = lambda statement: context.execute(statement, eager=True).rows()

    def _add_datafusion(self, frames: dict[str, Any], threads: int) -> None:
        try:
            import datafusion
        except ImportError:
            return
        context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
        for name, frame in frames.items():
            rows = -(-frame.num_rows // threads)
            parts = [frame.slice(k * rows, rows).to_batches(1 << 16) for k in range(threads)]
            context.register_record_batches(name, [part for part in parts if part])

        def ask(statement: str) -> list[Any]:
            found = context.sql(statement).to_arrow_table()
            return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

        self.engines["datafusion"] = ask


def same(mine: list[Any], theirs: list[Any]) -> bool:
    """The same rows: integers and decimals exactly, floating-point numbers to 1e-12, or to the digits that an
    engine gives of a mean of decimals."""

    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, float) or isinstance(b, float):
            digits = [-int(v.as_tuple().exponent) for v in (a, b) if isinstance(v, Decimal)]
            near = max([1e-12 * max(abs(float(a)), abs(float(b))), *(10.0**-n for n in digits)])
            return abs(float(a) - float(b)) <= near
        return Decimal(a) == Decimal(b) if isinstance(a, (int, Decimal)) else a == b

    return len(mine) == len(theirs) and all(
        len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(mine, theirs, strict=True)
    )


def timed(call: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    """Seconds of calls after a first one, and what the last gave."""
    result = call()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        result = call()
        taken.append(time.perf_counter() - begun)
    return taken, result


def converted(options: argparse.Namespace, folder: Path, statements: Iterable[str]) -> dict[str, Path]:
    """Folders of the tables that statements name, beside the Parquet files that this returns."""
    paths = drawn(folder, options.scale, statements)
    for name, path in paths.items():
        begun = time.perf_counter()
        convert(ds.dataset(path).scanner(columns=columns_of(name, path)).to_reader(), folder / name)
        print(f"converted {name}: {time.perf_counter() - begun:.1f} s", flush=True)
    return paths


def run_compiled(options: argparse.Namespace, folder: Path) -> None:
    only = chosen(options, FEW)
    names = converted(options, folder, [STATEMENTS[number] for number in only])
    for place in options.placements.split(","):
        ways = {
            way: {
                name: open_table(folder / name, executor="cuda", placement=place, compiled=way)
                for name in names
            }
            for way in ("never", "always")
        }
        for number in only:
            ask = {way: partial(sql, STATEMENTS[number], **tables) for way, tables in ways.items()}
            first, begun = ask["never"](), time.perf_counter()
            ask["always"]()
            compiling = time.perf_counter() - begun
            ask["always"]()  # with zone maps, which is another kernel
            taken: dict[str, list[float]] = {"never": [], "always": []}
            for way in ("never", "always") * options.repeats:
                begun = time.perf_counter()
                result = ask[way]()
                taken[way].append(time.perf_counter() - begun)
                if not same(result.rows(), first.rows()):
                    raise SystemExit(f"{number}: {place}: {result.rows()[:3]} beside {first.rows()[:3]}")
            report_compiled(options, number, place, taken, compiling, result.account.passes)


def report_compiled(
    options: argparse.Namespace, number: str, place: str, taken: dict[str, list[float]], compiling: float,
    passes: tuple[tuple[str, bool, float], ...],
) -> None:  # fmt: skip
    if not any(compiled for _, compiled, _ in passes):
        raise SystemExit(f"{number}: {place}: no pass was compiled: {passes}")
    mine, baseline = (statistics.median(taken[way]) for way in ("always", "never"))
    line = {
        "id": f"{number}.compiled", "value": mine * 1e3, "unit": "ms", "repeats": options.repeats,
        "baseline": "interpreted", "baseline_value": baseline * 1e3, "ratio": baseline / mine,
        "spread": (max(taken["always"]) - min(taken["always"])) / mine, "verified": True,
        "params": {"scale": options.scale, "placement": place, "executor": "cuda"},
        "details": {"first_run_ms": compiling * 1e3}
        | {f"{what}_ms": seconds * 1e3 for what, _, seconds in passes},
    }  # fmt: skip
    write(options, line)
    print(f"{number} {place}: compiled {mine * 1e3:.2f} ms, interpreted {baseline * 1e3:.2f}", flush=True)


def run_busy(options: argparse.Namespace, folder: Path) -> None:
    asked = {number: STATEMENTS[number] for number in chosen(options, FEW)}
    paths = converted(options, folder, asked.values())
    ask_duckdb = Others(folder, paths, options.threads).engines["duckdb"]
    wanted = {number: ask_duckdb(statement) for number, statement in asked.items()}
    for place in options.placements.split(","):
        tables = placed(options, folder, paths, place)
        idle = measured(options, tables, asked, wanted)
        with busy_host():
            busy = measured(options, tables, asked, wanted)
        for number, taken in busy.items():
            report_busy(options, number, place, taken, statistics.median(idle[number]))


def measured(
    options: argparse.Namespace, tables: dict[str, Table], asked: dict[str, str], wanted: dict[str, list[Any]]
) -> dict[str, list[float]]:
    """Seconds of statements, whose answers are those that are wanted."""
    seconds = {}
    for number, statement in asked.items():
        seconds[number], result = timed(partial(sql, statement, **tables), options.repeats)
        if not same(result.rows(), wanted[number]):
            raise SystemExit(f"{number}: {result.rows()[:3]} beside {wanted[number][:3]}")
    return seconds


def report_busy(
    options: argparse.Namespace, number: str, place: str, taken: list[float], idle: float
) -> None:  # fmt: skip
    mine = statistics.median(taken)
    line = {
        "id": f"{number}.busy", "value": mine * 1e3, "unit": "ms", "repeats": len(taken),
        "baseline": "an idle host", "baseline_value": idle * 1e3, "ratio": idle / mine,
        "spread": (max(taken) - min(taken)) / mine, "verified": True,
        "params": {"scale": options.scale, "placement": place, "executor": options.executor,
                   "threads": options.threads},
    }  # fmt: skip
    write(options, line)
    print(f"{number} {place}: beside busy processes {mine * 1e3:.2f} ms, idle {idle * 1e3:.2f}", flush=True)


def write(options: argparse.Namespace, line: dict[str, Any]) -> None:
    line |= {
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    with Path(options.results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def chosen(options: argparse.Namespace, otherwise: Iterable[str]) -> list[str]:
    return options.only.split(",") if options.only else list(otherwise)


def placed(
    options: argparse.Namespace, folder: Path, names: Iterable[str], place: str
) -> dict[str, Table]:  # fmt: skip
    threads = 0 if options.executor == "cuda" else options.threads
    return {
        name: open_table(
            folder / name, executor=options.executor, placement=place, threads=threads, compiled="never"
        )
        for name in names
    }


def run(options: argparse.Namespace, folder: Path) -> None:
    asked = {number: STATEMENTS[number] for number in chosen(options, STATEMENTS)}
    paths = converted(options, folder, asked.values())
    others = Others(folder, paths, options.threads).engines
    tables = {place: placed(options, folder, paths, place) for place in options.placements.split(",")}
    for number, statement in asked.items():
        seconds: dict[str, list[float]] = {}
        expected: list[Any] = []
        for name, ask in others.items():
            if name == "polars" and number in CROSS_PRODUCTS:
                continue
            asked = statement
            for mine, theirs in FOR_POLARS.get(number, ()) if name == "polars" else ():
                asked = asked.replace(mine, theirs)
            try:
                seconds[name], answer = timed(partial(ask, asked), options.repeats)
            except Exception as problem:
                print(f"{number}: {name} does not run it: {str(problem).splitlines()[0][:120]}")
                continue
            expected = expected or answer
            if not same(answer, expected):
                print(f"{number}: {name} answers otherwise: {answer[:2]} beside {expected[:2]}")
        for place, given in tables.items():
            taken, result = timed(partial(sql, statement, **given), options.repeats)
            if not same(result.rows(), expected):
                raise SystemExit(f"{number}: {place}: {result.rows()[:3]} beside {expected[:3]}")
            planning = planning_ms(partial(sql, statement, **given), options.repeats)
            report(options, number, place, taken, seconds, result.account, planning)


def report(
    options: argparse.Namespace, number: str, place: str, taken: list[float], seconds: dict[str, list[float]],
    account: Any, planning: dict[str, float],
) -> None:  # fmt: skip
    mine = statistics.median(taken)
    base = {name: statistics.median(each) for name, each in seconds.items()}
    best = min(base, key=lambda name: base[name])
    line = {
        "id": number, "value": mine * 1e3, "unit": "ms", "repeats": len(taken),
        "baseline": f"the fastest of {', '.join(base)}: {best}", "baseline_value": base[best] * 1e3,
        "ratio": base[best] / mine, "spread": (max(taken) - min(taken)) / mine, "verified": True,
        "params": {"scale": options.scale, "placement": place, "executor": options.executor,
                   "threads": options.threads},
        "details": {f"over_{name}": each / mine for name, each in base.items()}
        | {f"{name}_ms": each * 1e3 for name, each in base.items()}
        | {"engine_ms": account.seconds * 1e3, "rows_met": account.rows_met,
           "effective_gb_per_s": account.bytes_named / mine / 1e9}
        | planning,
    }  # fmt: skip
    write(options, line)
    shown = " ".join(f"{name} {each * 1e3:.1f} ({each / mine:.2f}x)" for name, each in base.items())
    again, first = planning["planning_best_ms"], planning["first_planning_best_ms"]
    beside = f"{again:.2f} of it planning, {first:.2f} the first time"
    print(f"{number} {place}: {mine * 1e3:.2f} ms, {beside}; {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--scale", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--executor", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--placements", default="host")
    parser.add_argument("--only", default="", help="some statements: tpch.q3,tpch.q18")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--compiled", action="store_true", help="interpreted and compiled, on a GPU")
    some.add_argument("--busy", action="store_true", help="beside busy processes")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where tables are made, and removed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        (run_busy if options.busy else run_compiled if options.compiled else run)(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

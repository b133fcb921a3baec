"""The taxi queries Q0 to Q5 by Penstock and beside it by DuckDB, Polars, and whole columns copied to the GPU.

    python benchmarks/taxi_queries.py --results columns.jsonl [--rows 200000000] [--folder /tmp]
        [--executor cuda] [--threads 16] [--compiled | --busy]

Draws the table (8-byte doubles, only the columns of the queries; and once more packed), and runs each query
warm, from the page cache, with trips of at least 30 and 20 miles. DuckDB and Polars take part where they are
installed, with the same number of threads, from their own formats. torch computes over whole columns: KvikIO
brings them to a GPU, or where it is not installed, and to the CPU, a read and a copy. All answers are
compared: counts exactly, averages to 1e-12.

--compiled has no other engines: the lines `taxi.q1.compiled` and the like are Q1 to Q5 on the GPU with
kernels of their own, beside interpreted ones, in turn.

--busy has Q0 and Q5 of 30 miles, without zone maps, on an idle host and beside a busy process for each
core (`taxi.q5.busy`), where the files are mapped and behind caches of all their bytes and of an eighth; that
beside the other on an idle host is `taxi.q5.small_cache`. All answers are compared with NumPy's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from busy_host import busy_host
from penstock.columns import Table, open_table, taxi

LONG = 30.0
"""Miles, of the queries beside busy processes."""
BUSY_QUERIES = (0, 5)
Answer = tuple[int, float]
WholeColumns = tuple[str, Callable[[], Any], Callable[[Path, Any], None], Callable[[], None]]
"""How whole columns come: its name, room for one, a read of a file into it, and what frees the rooms."""


def timed(call: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    """Seconds of calls after a first one, and what the last gave."""
    result = call()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        result = call()
        taken.append(time.perf_counter() - begun)
    return taken, result


class Baselines:
    """Other engines over the same columns."""

    def __init__(self, folder: Path, rows: int, threads: int, gpu: bool) -> None:
        self.threads, self.rows = threads, rows
        self.files = {name: folder / f"{k:04d}.values" for k, name in enumerate(taxi.COLUMNS_OF["needed"])}
        self.engines: dict[str, Callable[[int, float], Answer]] = {}
        self.parts: dict[str, float | str] = {}
        self._add_duckdb(folder)
        self._add_polars()
        self._add_whole_columns("cuda" if gpu else "cpu")

    def _column(self, name: str) -> np.ndarray[Any, Any]:
        return np.fromfile(self.files[name], np.float64, self.rows)

    def _add_duckdb(self, folder: Path) -> None:
        try:
            import duckdb
        except ImportError:
            return
        path = folder.parent / "trips.duckdb"
        columns = {name: self._column(name) for name in self.files}  # noqa: F841 - DuckDB reads it by its name
        base = duckdb.connect(str(path))
        base.execute("create table trips as select * from columns")
        base.execute(f"set threads = {self.threads}")

        def ask(number: int, miles: float) -> Answer:
            made = "-".join(f"sum({name})" for name in taxi.METRICS[:number])
            value = "avg(trip_distance)" if number == 0 else f"({made}) / sum(trip_distance)"
            found = base.execute(
                f"select count(*), {value} from trips where trip_distance >= {miles}"
            ).fetchone()
            assert found is not None
            return int(found[0]), float(found[1])

        self.engines["duckdb"] = ask

    def _add_polars(self) -> None:
        os.environ.setdefault("POLARS_MAX_THREADS", str(self.threads))
        try:
            import polars as pl
        except ImportError:
            return
        frame = pl.DataFrame({name: self._column(name) for name in self.files})

        def ask(number: int, miles: float) -> Answer:
            distance = pl.col("trip_distance")
            value = distance.mean()
            if number:
                made = pl.col(taxi.METRICS[0]).sum()
                for name in taxi.METRICS[1:number]:
                    made = made - pl.col(name).sum()
                value = made / distance.sum()
            found = frame.lazy().filter(distance >= miles).select(pl.len(), value.alias("v")).collect()
            return int(found.item(0, 0)), float(found.item(0, 1))

        self.engines["polars"] = ask

    def _add_whole_columns(self, device: str) -> None:
        try:
            import torch
        except ImportError:
            return
        by, empty, read, clean_up = (device == "cuda" and self._by_kvikio()) or self._by_torch(device)

        def ask(number: int, miles: float) -> Answer:
            begun = time.perf_counter()
            names = ["trip_distance", *taxi.METRICS[:number]]
            room = {name: empty() for name in names}
            made = time.perf_counter()
            for name in names:
                read(self.files[name], room[name])
            copied = time.perf_counter()
            columns = {name: torch.as_tensor(each, device=device) for name, each in room.items()}
            met = torch.nonzero(columns["trip_distance"] >= miles)[:, 0]
            sums = [columns[name][met].sum() for name in names]
            value = sums[0] / len(met) if number == 0 else (sums[1] - sum(sums[2:])) / sums[0]
            answer = len(met), float(value)
            queried = time.perf_counter()
            del columns, room, sums, met
            clean_up()
            ended = time.perf_counter()
            whole = ended - begun
            self.parts = {
                "whole_columns_by": by,
                "whole_init_share": (made - begun) / whole,
                "whole_copy_share": (copied - made) / whole,
                "whole_query_share": (queried - copied) / whole,
                "whole_clean_up_share": (ended - queried) / whole,
            }
            return answer

        self.engines["whole_columns"] = ask

    def _by_kvikio(self) -> WholeColumns | None:
        """None where it is not installed."""
        try:
            import cupy
            import kvikio
            import kvikio.defaults
        except ImportError:
            return None
        kvikio.defaults.set({"compat_mode": kvikio.CompatMode.ON, "num_threads": self.threads})

        def read(path: Path, room: Any) -> None:
            with kvikio.CuFile(path, "r") as file:
                file.read(room)

        clean_up = cupy.get_default_memory_pool().free_all_blocks
        return "KvikIO", lambda: cupy.empty(self.rows, cupy.float64), read, clean_up

    def _by_torch(self, device: str) -> WholeColumns:
        """A read into host memory, and to a GPU a copy of that."""
        import torch

        def read(path: Path, room: Any) -> None:
            host = room if device == "cpu" else torch.empty_like(room, device="cpu")
            with path.open("rb") as file:
                file.readinto(memoryview(host.numpy()).cast("B"))
            if host is not room:
                room.copy_(host)

        def empty() -> Any:
            return torch.empty(self.rows, dtype=torch.float64, device=device)

        return "a read and a copy", empty, read, torch.cuda.empty_cache


def run(options: argparse.Namespace, folder: Path) -> None:
    plain, packed = folder / "plain", folder / "packed"
    for target, pack in ((plain, False), (packed, True)):
        begun = time.perf_counter()
        taxi.make(target, options.rows, columns="needed", pack=pack)
        print(f"drew {options.rows} trips, pack={pack}: {time.perf_counter() - begun:.1f} s", flush=True)
    gpu = options.executor == "cuda"
    others = Baselines(plain, options.rows, options.threads, gpu)
    places = [(plain, "host", True), (plain, "host", False), (packed, "host", True), (packed, "host", False)]
    if gpu:
        places.append((plain, "hbm", False))
    tables = {
        f"{where.name}.{place}{'' if maps else '.no_zone_maps'}": open_table(
            where,
            executor=options.executor,
            placement=place,
            threads=0 if gpu else options.threads,
            zone_maps=maps,
            compiled="never",
        )
        for where, place, maps in places
    }
    for miles in (30.0, 20.0):
        for number in range(len(taxi.QUERIES)):
            answers: dict[str, Answer] = {}
            seconds: dict[str, list[float]] = {}
            for name, ask in others.engines.items():
                seconds[name], answers[name] = timed(partial(ask, number, miles), options.repeats)
            accounts = {}
            for name, table in tables.items():
                query = taxi.query(table, number, miles)
                seconds[name], result = timed(query.collect, options.repeats)
                average, count = result.rows()[0]
                answers[name], accounts[name] = (count, average), result.account
            check(answers, f"Q{number} of {miles:g} miles")
            report(options, number, miles, seconds, accounts, others.parts)


def run_compiled(options: argparse.Namespace, folder: Path) -> None:
    for target, pack in ((folder / "plain", False), (folder / "packed", True)):
        taxi.make(target, options.rows, columns="needed", pack=pack)
        for place in ("host", "hbm"):
            tables = {
                way: open_table(target, executor="cuda", placement=place, zone_maps=False, compiled=way)
                for way in ("never", "always")
            }
            for number in range(1, len(taxi.QUERIES)):
                queries = {way: taxi.query(table, number, 30.0) for way, table in tables.items()}
                taken: dict[str, list[float]] = {"never": [], "always": []}
                answers: dict[str, Answer] = {}
                for way in ("never", "always") * (1 + options.repeats):
                    begun = time.perf_counter()
                    result = queries[way].collect()
                    taken[way].append(time.perf_counter() - begun)
                    average, count = result.rows()[0]
                    answers[way] = (count, average)
                    check(answers, f"Q{number}")
                report_compiled(options, number, f"{target.name}.{place}", taken, result.account.passes)
            for table in tables.values():
                table.close()


def report_compiled(
    options: argparse.Namespace, number: int, lies: str, taken: dict[str, list[float]],
    passes: tuple[tuple[str, bool, float], ...],
) -> None:  # fmt: skip
    """The first run of each way is no repeat: it compiles."""
    if not any(compiled for _, compiled, _ in passes):
        raise SystemExit(f"Q{number} {lies}: no pass was compiled: {passes}")
    nbytes = options.rows * 8 * (1 + number)
    mine, baseline = (statistics.median(taken[way][1:]) for way in ("always", "never"))
    line = {
        "id": f"taxi.q{number}.compiled", "value": nbytes / mine / 1e9, "unit": "GB/s",
        "repeats": options.repeats, "baseline": "interpreted", "baseline_value": nbytes / baseline / 1e9,
        "ratio": baseline / mine,
        "spread": (max(taken["always"][1:]) - min(taken["always"][1:])) / mine, "verified": True,
        "params": {"rows": options.rows, "miles": 30.0, "lies": lies, "executor": "cuda"},
        "details": {"seconds": mine, "interpreted_seconds": baseline, "first_seconds": taken["always"][0]}
        | {f"{what}_seconds": seconds for what, _, seconds in passes},
    }  # fmt: skip
    write(options, line)
    print(f"Q{number} {lies}: compiled {mine * 1e3:.2f} ms, interpreted {baseline * 1e3:.2f}", flush=True)


def run_busy(options: argparse.Namespace, folder: Path) -> None:
    plain, packed = folder / "plain", folder / "packed"
    for target, pack in ((plain, False), (packed, True)):
        taxi.make(target, options.rows, columns="needed", pack=pack)
    tables = {
        f"{where.name}.{place}": placed(options, where, place)
        for where in (plain, packed)
        for place in ("host", "storage", "storage.8th", *(("hbm",) if options.executor == "cuda" else ()))
    }
    for number in BUSY_QUERIES:
        wanted = numpys(plain, options.rows, number, LONG)
        idle = measured(options, tables, number, wanted)
        with busy_host():
            busy = measured(options, tables, number, wanted)
        for lies, taken in busy.items():
            report_mix(options, f"taxi.q{number}.busy", lies, taken, "an idle host", idle[lies])
            if lies.endswith(".8th"):
                whole = idle[lies.removesuffix(".8th")]
                cached = "a cache of all bytes"
                report_mix(options, f"taxi.q{number}.small_cache", lies, idle[lies], cached, whole)


def placed(options: argparse.Namespace, folder: Path, place: str) -> Table:
    """storage.8th: with a cache of an eighth of the columns' bytes; storage: of all and some more."""
    nbytes = sum(file.stat().st_size for file in folder.glob("*.values"))
    cache = nbytes // 8 if place.endswith(".8th") else nbytes + nbytes // 8
    threads = 0 if options.executor == "cuda" else options.threads
    return open_table(
        folder, executor=options.executor, placement=place.removesuffix(".8th"),
        cache=cache if place.startswith("storage") else None, threads=threads, zone_maps=False,
        compiled="never",
    )  # fmt: skip


def measured(
    options: argparse.Namespace, tables: dict[str, Table], number: int, wanted: Answer
) -> dict[str, list[float]]:
    seconds = {}
    for lies, table in tables.items():
        seconds[lies], result = timed(taxi.query(table, number, LONG).collect, options.repeats)
        average, count = result.rows()[0]
        check({"numpy": wanted, lies: (count, average)}, f"Q{number} {lies}")
    return seconds


def numpys(folder: Path, rows: int, number: int, miles: float) -> Answer:
    places = {name: folder / f"{k:04d}.values" for k, name in enumerate(taxi.COLUMNS_OF["needed"])}
    met = np.fromfile(places[taxi.DISTANCE], np.float64, rows) >= miles
    sums = {
        name: math.fsum(np.fromfile(places[name], np.float64, rows)[met])
        for name in (taxi.DISTANCE, *taxi.METRICS[:number])
    }
    made = sums[taxi.METRICS[0]] - sum(sums[name] for name in taxi.METRICS[1:number]) if number else 0
    return int(met.sum()), made / sums[taxi.DISTANCE] if number else sums[taxi.DISTANCE] / int(met.sum())


def report_mix(
    options: argparse.Namespace, figure: str, lies: str, taken: list[float], baseline: str, other: list[float]
) -> None:  # fmt: skip
    nbytes = options.rows * 8 * (1 + int(figure[len("taxi.q")]))
    mine, theirs = statistics.median(taken), statistics.median(other)
    line = {
        "id": figure, "value": nbytes / mine / 1e9, "unit": "GB/s", "repeats": len(taken),
        "baseline": baseline, "baseline_value": nbytes / theirs / 1e9, "ratio": theirs / mine,
        "spread": (max(taken) - min(taken)) / mine, "verified": True,
        "params": {"rows": options.rows, "miles": LONG, "lies": lies, "executor": options.executor,
                   "threads": options.threads},
        "details": {"seconds": mine, "baseline_seconds": theirs},
    }  # fmt: skip
    write(options, line)
    print(f"{figure} {lies}: {mine * 1e3:.2f} ms, {baseline}: {theirs * 1e3:.2f}", flush=True)


def write(options: argparse.Namespace, line: dict[str, Any]) -> None:
    line |= {
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    with Path(options.results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def check(answers: dict[str, Answer], what: str) -> None:
    counts = {count for count, _ in answers.values()}
    averages = [value for _, value in answers.values()]
    if len(counts) > 1 or not all(math.isclose(v, averages[0], rel_tol=1e-12) for v in averages):
        raise SystemExit(f"{what}: the answers differ: {answers}")


def report(
    options: argparse.Namespace,
    number: int,
    miles: float,
    seconds: dict[str, list[float]],
    accounts: dict[str, Any],
    parts: dict[str, float | str],
) -> None:
    """A line for each way that a table lies."""
    base = {name: statistics.median(taken) for name, taken in seconds.items() if name not in accounts}
    nbytes = options.rows * 8 * (1 + number)
    for name, account in accounts.items():
        taken = seconds[name]
        value = nbytes / statistics.median(taken) / 1e9
        best = min(base.values(), default=None)
        details = {f"over_{other}": s / statistics.median(taken) for other, s in base.items()}
        details |= {f"{other}_seconds": s for other, s in base.items()}
        details |= {
            "seconds": statistics.median(taken), "rows_met": account.rows_met,
            "set_up_seconds": account.set_up_seconds,
            "run_seconds": account.run_seconds, "bytes_stored": account.bytes_stored, **parts,
        }  # fmt: skip
        line = {
            "id": f"taxi.q{number}.effective", "value": value, "unit": "GB/s", "repeats": len(taken),
            "baseline": "the fastest of " + ", ".join(base),
            "baseline_value": nbytes / best / 1e9 if best else None,
            "ratio": best / statistics.median(taken) if best else None,
            "spread": (max(taken) - min(taken)) / statistics.median(taken), "verified": True,
            "params": {"rows": options.rows, "miles": miles, "lies": name, "executor": options.executor,
                       "threads": options.threads},
            "details": details,
        }  # fmt: skip
        write(options, line)
        shown = " ".join(f"{k} {v:.3g}" for k, v in details.items() if k.startswith("over") or k == "seconds")
        print(f"Q{number} {miles:g} {name}: {value:.1f} GB/s {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--rows", type=int, default=200_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--executor", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--compiled", action="store_true", help="interpreted and compiled, on a GPU")
    some.add_argument("--busy", action="store_true", help="beside busy processes, and with a small cache")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where tables are made, and removed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        (run_busy if options.busy else run_compiled if options.compiled else run)(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

"""Conversion of a Parquet file to a folder of columns, beside what DuckDB, PyArrow and Polars convert it to.

    python benchmarks/convert_table.py --results convert.jsonl [--rows 100000000] [--columns all]
        [--compression zstd] [--threads 16] [--input trips.parquet] [--folder /tmp]

Draws taxi trips as Parquet, unless a file is given, and converts it by each engine in turn, warm, from the
page cache to files that nobody syncs: Penstock to packed columns, DuckDB to a table in a database of its own,
PyArrow and Polars to uncompressed Arrow IPC. Rates are bytes of the values in memory, as Arrow has them, over
seconds. Peaks are resident memory of the process above that before the conversion; what an engine keeps from
the conversion before is not in them. Every output is read back and compared with the Parquet file, column by
column, bit by bit.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq
from penstock.columns import convert, open_table, taxi
from rich.console import Console
from rich.table import Table

MIB = 1 << 20
BATCH_ROWS = 1 << 18


@dataclass
class Engine:
    """A way to convert, and to read a column of what came of it."""

    name: str
    run: Callable[[Path, Path], None]
    column: Callable[[Path, str], Any]
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    stored: int = 0


def penstock_engine(options: argparse.Namespace) -> Engine:
    def run(source: Path, target: Path) -> None:
        convert(source, target, memory=options.memory * MIB, threads=options.threads)

    def column(target: Path, name: str) -> Any:
        with open_table(target, executor="cpu") as table:
            return table.select(name).collect().to_arrow()[name]

    return Engine("penstock", run, column)


def duckdb_engine(options: argparse.Namespace) -> Engine | None:
    try:
        import duckdb
    except ImportError:
        return None

    def run(source: Path, target: Path) -> None:
        with duckdb.connect(str(target)) as base:
            base.execute(f"set threads = {options.threads}")
            base.execute(f"create table trips as select * from read_parquet('{source}')")

    def column(target: Path, name: str) -> Any:
        with duckdb.connect(str(target), read_only=True) as base:
            return base.sql(f'select "{name}" from trips').to_arrow_table()[name]

    return Engine("duckdb", run, column)


def pyarrow_engine() -> Engine:
    def run(source: Path, target: Path) -> None:
        file = pq.ParquetFile(source)
        with pa.ipc.new_file(str(target), file.schema_arrow) as out:
            for batch in file.iter_batches(BATCH_ROWS):
                out.write_batch(batch)

    def column(target: Path, name: str) -> Any:
        with pa.memory_map(str(target)) as source:
            return pa.ipc.open_file(source).read_all()[name]

    return Engine("pyarrow", run, column)


def polars_engine(options: argparse.Namespace) -> Engine | None:
    os.environ.setdefault("POLARS_MAX_THREADS", str(options.threads))
    try:
        import polars as pl
    except ImportError:
        return None

    def run(source: Path, target: Path) -> None:
        pl.scan_parquet(source).sink_ipc(target, compression="uncompressed")

    def column(target: Path, name: str) -> Any:
        return pl.scan_ipc(target).select(name).collect().to_arrow()[name]

    return Engine("polars", run, column)


def draw_parquet(path: Path, options: argparse.Namespace) -> None:
    kinds = {name: taxi.COLUMNS[name] for name in taxi.COLUMNS_OF[options.columns]}
    writer = None
    for drawn in taxi.chunks(options.rows, kinds, threads=options.threads):
        columns = {}
        for name, kind in kinds.items():
            values = pa.array(drawn[name])
            if kind.kind == "timestamp":
                values = values.cast(pa.timestamp(kind.unit))
            elif kind.kind == "string":
                values = pa.array(taxi.texts_of(name)).take(values)
            columns[name] = values
        batch = pa.record_batch(columns)
        writer = writer or pq.ParquetWriter(path, batch.schema, compression=options.compression)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()


def resident(what: str) -> int:
    """Bytes of the process: VmRSS, or its peak VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))


def measure(engine: Engine, source: Path, target: Path) -> None:
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts over
    before = resident("VmRSS")
    begun = time.perf_counter()
    engine.run(source, target)
    engine.seconds.append(time.perf_counter() - begun)
    engine.peaks.append(resident("VmHWM") - before)
    files = [target] if target.is_file() else [*target.iterdir()]
    engine.stored = sum(path.stat().st_size for path in files)


def remove(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()


def check(engine: Engine, source: Path, target: Path) -> None:
    """Whether the values are those of the source, by their bits.

    Raises:
        SystemExit: They are not.
    """
    for name in pq.read_schema(source).names:
        wanted = pq.read_table(source, columns=[name])[name].combine_chunks()
        found = engine.column(target, name).combine_chunks()
        if not same_bits(found.cast(wanted.type), wanted):
            raise SystemExit(f"{engine.name}: column {name} differs from the Parquet file")


def same_bits(found: Any, wanted: Any) -> bool:
    if not pa.types.is_floating(wanted.type):
        return bool(found.equals(wanted))
    valid = pc.is_valid(wanted)
    if not valid.equals(pc.is_valid(found)):
        return False
    mine, other = (each.filter(valid).to_numpy() for each in (found, wanted))
    return bool(np.array_equal(mine.view(f"u{mine.itemsize}"), other.view(f"u{other.itemsize}")))


def arrow_bytes(source: Path) -> int:
    file = pq.ParquetFile(source, pre_buffer=False)
    return sum(batch.nbytes for batch in file.iter_batches(BATCH_ROWS))


def run(options: argparse.Namespace, folder: Path) -> None:
    source = Path(options.input) if options.input else folder / "trips.parquet"
    if not options.input:
        draw_parquet(source, options)
    pa.set_cpu_count(options.threads)
    nbytes = arrow_bytes(source)
    made = [penstock_engine(options), duckdb_engine(options), pyarrow_engine(), polars_engine(options)]
    engines = [engine for engine in made if engine is not None]
    for turn in range(options.repeats + 1):
        for engine in engines:
            target = folder / f"{engine.name}.out"
            measure(engine, source, target)
            if turn == 0:
                check(engine, source, target)
                engine.seconds.clear()  # what is loaded and set up the first time
            remove(target)
    report(options, source, nbytes, engines)


def report(options: argparse.Namespace, source: Path, nbytes: int, engines: list[Engine]) -> None:
    facts = pq.ParquetFile(source).metadata
    read = source.stat().st_size
    taken = {engine.name: statistics.median(engine.seconds) for engine in engines}
    show(source, nbytes, facts.num_rows, engines)
    ours, others = engines[0], engines[1:]
    best = min(others, key=lambda engine: taken[engine.name])
    details: dict[str, Any] = {f"{name}_seconds": seconds for name, seconds in taken.items()}
    details |= {f"over_{engine.name}": taken[engine.name] / taken["penstock"] for engine in others}
    details |= {f"{engine.name}_peak_bytes": max(engine.peaks) for engine in engines}
    details |= {f"{engine.name}_stored_bytes": engine.stored for engine in engines}
    details |= {
        "arrow_bytes": nbytes, "parquet_bytes": read, "parquet_gb_per_s": read / taken["penstock"] / 1e9,
        "rows_per_s": facts.num_rows / taken["penstock"],
    }  # fmt: skip
    line = {
        "id": "convert.parquet", "value": nbytes / taken["penstock"] / 1e9, "unit": "GB/s",
        "repeats": len(ours.seconds), "baseline": f"the fastest of others: {best.name}",
        "baseline_value": nbytes / taken[best.name] / 1e9, "ratio": taken[best.name] / taken["penstock"],
        "spread": (max(ours.seconds) - min(ours.seconds)) / taken["penstock"], "verified": True,
        "params": {"rows": facts.num_rows, "columns": facts.num_columns, "threads": options.threads,
                   "memory": options.memory * MIB,
                   "compression": facts.row_group(0).column(0).compression.lower() if facts.num_rows else "",
                   "input": options.input or f"taxi, {options.columns}"},
        "details": details, "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }  # fmt: skip
    with Path(options.results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def show(source: Path, nbytes: int, rows: int, engines: list[Engine]) -> None:
    read = source.stat().st_size
    title = f"{rows} rows: {nbytes / 1e6:.0f} MB as Arrow, {read / 1e6:.0f} MB as Parquet"
    table = Table("engine", "s", "GB/s of Arrow", "GB/s of Parquet", "M rows/s", "peak MiB", "MB written")
    table.title = title
    for engine in engines:
        seconds = statistics.median(engine.seconds)
        figures = [nbytes / seconds / 1e9, read / seconds / 1e9, rows / seconds / 1e6]
        sizes = [f"{max(engine.peaks) / MIB:.0f}", f"{engine.stored / 1e6:.0f}"]
        table.add_row(engine.name, f"{seconds:.3f}", *(f"{each:.3g}" for each in figures), *sizes)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--input", help="a Parquet file; else one is drawn")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", choices=tuple(taxi.COLUMNS_OF), default="needed")
    parser.add_argument("--compression", choices=("snappy", "zstd", "none"), default="zstd")
    parser.add_argument("--memory", type=int, default=1024, help="MiB that a conversion of ours may take")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where files are made, and removed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        run(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

"""`penstock sql`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from penstock.cli.declared_options import option_of
from penstock.cli.inputs import names_refused, refuse_inputs
from penstock.cli.output import cannot_be_written
from penstock.cli.progress_bar import progress_bar
from penstock.columns import Result, Table, TableOptions, open_table
from penstock.columns.opening import files_named
from penstock.columns.statements import prepared
from penstock.report.whole_files import written_whole
from penstock.sizes import format_seconds
from penstock.volume.names import entry_of, is_volume

SHOWN = 40
"""Rows."""
LEAST_WIDTH = 20
"""Of a column whose texts are wider: an integer of 64 bits is whole."""
BETWEEN = 3
"""Cells between two columns."""
SUFFIXES = (".parquet", ".csv", ".arrow")
_of_table = partial(option_of, TableOptions)


class ResultFile(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if path.suffix not in SUFFIXES:
            self.fail(f"'{path}': results are written as {', '.join(SUFFIXES)}", param, ctx)
        if problem := cannot_be_written(path):
            self.fail(problem, param, ctx)
        return path


@click.command("sql", short_help="Run a SELECT over tables in files.")
@click.argument("statement")
@click.argument("sources", nargs=-1, metavar="[NAME=]SOURCE...")
@click.option("-o", "--output", type=ResultFile(), help="Write the result: .parquet, .csv or .arrow.")
@click.option("--explain", is_flag=True, help="Say what would be read, and stop.")
@click.option(
    "--analyze", is_flag=True, help="The same, with the bytes, sectors and lines of the rows that are met."
)
@_of_table("executor")
@_of_table("placement")
@_of_table("cache", "Of placements that have one.")
@_of_table("line", "Of the cache.")
@_of_table("threads", "Of the CPU executor.  [default: one per core]")
@_of_table("media", "Of the placement storage: file, or the preset of an emulated SSD.")
@_of_table("drives", "Emulated SSDs.")
@names_refused()
def sql_command(
    statement: str,
    sources: tuple[str, ...],
    output: Path | None,
    explain: bool,
    analyze: bool,
    **options: Any,
) -> None:
    """Runs one SELECT, in DuckDB's dialect. Each SOURCE is a folder or file that `penstock.open_table` takes,
    or a pattern of names of Parquet files; the statement calls it NAME, or by its file's name without the
    ending, or by its name on a volume. It may name files itself, too.

    \b
    penstock sql "SELECT zone, avg(total) FROM trips GROUP BY zone" trips.parquet
    penstock sql "SELECT zone, avg(total) FROM 'trips.parquet' GROUP BY zone"
    penstock sql "SELECT zone, avg(total) FROM '2024/*.parquet' GROUP BY zone"
    penstock sql "SELECT count(*) FROM t JOIN z ON t.zone = z.id" t=trips.parquet z=zones.csv
    """
    paths: dict[str, str] = {}
    for each in sources:
        name, equals, path = each.partition("=")
        if not equals:
            name, path = entry_of(each) if is_volume(each) else Path(each).stem, each
        if name in paths:
            raise click.BadParameter(
                f"'{name}': two tables have this name: say NAME=FILE", param_hint="SOURCE"
            )
        paths[name] = path
    with progress_bar() as progress:

        def opened(source: Any) -> Table:
            refuse_inputs("-o", output, files_named(source))
            table = open_table(source, progress=progress, **options)
            click.get_current_context().call_on_close(table.close)
            return table

        plan = prepared(statement, {name: opened(path) for name, path in paths.items()}, opened)
    if explain or analyze:
        Console().print(escape(plan.explain(analyze)), soft_wrap=True)
        return
    result = plan.plan.collect()
    if output is not None:
        _write(result, output)
    else:
        Console().print(_shown(result, Console().width))
    account = result.account
    moved = f", {account.bytes_moved / 1e6:.1f} MB into the cache" if account.bytes_moved else ""
    rows = "1 row" if result.row_count == 1 else f"{result.row_count:,} rows"
    Console().print(
        f"{rows} in {format_seconds(account.seconds)}: {account.rows_met:,} of "
        f"{account.rows:,} rows met{moved}",
        highlight=False,
    )


def _shown(result: Result, width: int) -> Shown:
    shown = Shown(box=box.SIMPLE_HEAD)
    rows = [
        [_text(value) for value in row]
        for row in result.rows_at(np.arange(min(SHOWN, result.row_count))).rows()
    ]
    texts = [[column.name, *(row[k] for row in rows)] for k, column in enumerate(result.columns)]
    fitting = _fitting(texts, width)
    for column in result.columns[:fitting]:
        shown.add_column(escape(column.name), justify="left" if column.type.kind == "string" else "right")
    for row in rows:
        shown.add_row(*map(escape, row[:fitting]))
    parts = [f"{SHOWN} of {result.row_count:,} rows"] if result.row_count > SHOWN else []
    parts += [f"{fitting} of {len(result.columns)} columns"] if fitting < len(result.columns) else []
    if parts:
        shown.caption = f"the first {' and '.join(parts)}: write all with -o"
    return shown


def _fitting(columns: list[list[str]], width: int) -> int:
    """How many columns, given by their texts, have room beside each other, a long one in several lines."""
    left = width
    for number, texts in enumerate(columns):
        left -= min(LEAST_WIDTH, max(cell_len(text) for text in texts)) + BETWEEN
        if left < 0:
            return max(1, number)
    return len(columns)


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _write(result: Result, path: Path) -> None:
    import pyarrow as pa

    table = result.to_arrow()
    with written_whole("write", path) as beside:
        match path.suffix:
            case ".parquet":
                import pyarrow.parquet as pq

                pq.write_table(table, beside)
            case ".csv":
                from pyarrow import csv

                plain = [
                    c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns
                ]
                csv.write_csv(pa.table(plain, names=table.column_names), beside)
            case _:
                with pa.OSFile(str(beside), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                    writer.write_table(table)

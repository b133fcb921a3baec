"""`penstock taxi`."""

from __future__ import annotations

import glob
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from penstock.cli.declared_options import option_of
from penstock.cli.inputs import names_refused
from penstock.cli.progress_bar import progress_bar
from penstock.columns import Table, TableOptions, open_table, taxi
from penstock.sizes import format_seconds

_of_table = partial(option_of, TableOptions)


@click.command("taxi", short_help="Average dollars a mile of long taxi trips: six selective queries.")
@click.argument("source")
@click.option(
    "--rows", type=click.IntRange(0), default=1_000_000, show_default=True, help="Of a table that is drawn."
)
@click.option(
    "--limit",
    type=click.FloatRange(0, 1e6),
    default=30.0,
    show_default=True,
    help="Miles of a trip at least.",
)
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Of each query.")
@click.option(
    "--columns",
    type=click.Choice(["all", "needed"]),
    default="all",
    show_default=True,
    help="Drawn: 49, or the queries' six.",
)
@click.option(
    "--pack/--no-pack", default=True, show_default=True, help="Drawn: integers and amounts in few bits."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of what is drawn.")
@_of_table("executor")
@_of_table("placement")
@_of_table("cache", "Of placements that have one.")
@_of_table("line", "Of the cache.")
@_of_table("threads", "Of the CPU executor.  [default: one per core]")
@_of_table("media", "Of the placement storage: file, or the preset of an emulated SSD.")
@_of_table("drives", "Emulated SSDs.")
@names_refused()
def taxi_command(
    source: str,
    rows: int,
    limit: float,
    repeats: int,
    columns: str,
    pack: bool,
    seed: int,
    **options: Any,
) -> None:
    """Runs the queries Q0 to Q5 over SOURCE: a folder, which is drawn where there is none, or a file of real
    trips (Parquet, Arrow, CSV) with the commission's column names, or a pattern of Parquet files.

    \b
    penstock taxi trips --rows 10000000
    penstock taxi yellow_tripdata_2024-01.parquet --limit 20
    penstock taxi 'yellow_tripdata_2024-*.parquet'
    """
    with progress_bar() as progress:
        is_pattern = any(each in source for each in "*?") or glob.glob(source)  # noqa: PTH207, of any root
        if not Path(source).exists() and not is_pattern:
            if Path(source).suffix:
                raise click.BadParameter(f"'{source}': there is no such file", param_hint="SOURCE")
            taxi.make(source, rows, columns=columns, pack=pack, seed=seed, progress=progress)
        with open_table(source, progress=progress, **options) as whole:
            present = [name for name in taxi.COLUMNS_OF["needed"] if name in whole.columns]
        if taxi.DISTANCE not in present or (taxi.METRICS[0] not in present):
            raise click.BadParameter(
                f"'{source}' has no {taxi.DISTANCE} and {taxi.METRICS[0]}: name a file of taxi trips",
                param_hint="SOURCE",
            )
        with open_table(source, progress=progress, columns=present, **options) as table:
            Console().print(_answers(table, limit, repeats))
    missing = [name for name in taxi.METRICS[1:] if name not in present]
    if missing:
        Console().print(f"without {', '.join(missing)}: there are no such columns in {escape(source)}")


def _answers(table: Table, limit: float, repeats: int) -> Shown:
    where = f"{table.placement}, {table.executor} ({escape(table.device)})"
    title = f"{escape(table.name)}: {table.rows:,} trips, {where}"
    shown = Shown(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("query", "trips", "average", "first", "then", "effective", "skipped"):
        shown.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
    words = ("miles", "total", "- surcharges", "- hail fees", "- tolls", "- taxes")
    for number, (query, word) in enumerate(zip(taxi.QUERIES, words, strict=True)):
        results = [taxi.query(table, number, limit).collect() for _ in range(repeats)]
        average, trips = results[-1].rows()[0]
        seconds = statistics.median(result.account.seconds for result in results[1:] or results)
        account = results[-1].account
        shown.add_row(
            f"{query} {word}", f"{trips:,}", "none" if not trips else f"{average:.6f}",
            format_seconds(results[0].account.seconds), format_seconds(seconds),
            f"{account.bytes_named / seconds / 1e9:.1f} GB/s",
            f"{account.zones_skipped / max(account.zones, 1):.0%}",
        )  # fmt: skip
    return shown

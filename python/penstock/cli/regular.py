"""`penstock reduce` and `penstock vectoradd`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from penstock.bench.measurement import Measurement, append_lines
from penstock.cli import regular_report
from penstock.cli.bench import RESULTS, WIDE
from penstock.cli.declared_options import option_of
from penstock.cli.inputs import refuse_inputs
from penstock.cli.progress_bar import progress_bar
from penstock.cli.size_option import Size
from penstock.cli.write_figures import tells_of_writes, write_figures_table
from penstock.regular.generate import DTYPES, WIDTH, generate_array
from penstock.regular.run import ACCESS, ReduceResult, RunOptions, reduce, vectoradd

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SHOWN_MEANS = 6


_option = partial(option_of, RunOptions)

OPTIONS: tuple[Decorator, ...] = (
    click.option(
        "--access",
        type=click.Choice(ACCESS),
        multiple=True,
        help="Only this one beside tiles; repeatable.  [default: all]",
    ),
    _option("cache", "Memory for lines.  [default: an eighth of the data]"),
    _option("line", "How much a miss brings in."),
    _option("directory"),
    _option("tile", "An explicit tile, 64KiB at most."),
    _option("in_flight", "Tiles of a worker.  [default: 8, on a GPU 4]"),
    _option("media", "The file, or the modelled drive that it is copied to first."),
    _option("drives", "Modelled ones to stripe the data over."),
    _option("place", "Where the bytes of modelled drives lie."),
    _option("executor"),
    _option("engine"),
    _option("direct", "Past the page cache."),
    _option("threads", "Of the CPU executor.  [default: one per core]"),
    _option("server_sms", "SMs that serve modelled drives.  [default: a third]"),
    _option("repeats", "Of each way of access."),
    click.option(
        "--generate", type=Size(), default=None, metavar="SIZE", help="Make so much random data first."
    ),
    click.option(
        "--dtype",
        type=click.Choice(DTYPES),
        default="float64",
        show_default=True,
        help="Of generated data, and with --raw of what is in the file.",
    ),
    click.option("--raw", is_flag=True, help="Elements without a header instead of .npy."),
    click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout instead of a table."),
    click.option("--output", "results_file", type=RESULTS, metavar="FILE", help="Append JSON lines to it."),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command("reduce", short_help="Add up an array larger than the cache, beside explicit tiles.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--columns", is_flag=True, help="The mean of each column of a matrix instead of one sum.")
@click.option("--width", type=int, default=WIDTH, show_default=True, help="Columns of a generated matrix.")
@run_options
def reduce_command(
    file: Path,
    columns: bool,
    width: int,
    generate: int | None,
    dtype: str,
    raw: bool,
    as_json: bool,
    results_file: Path | None,
    **options: Any,
) -> None:
    """Adds up the elements of FILE, a .npy array that may be far larger than memory.

    It is done three ways: by a[i] in every thread, by whole lines, both through the cache, and by explicit
    tiles without one. Each result is compared with a plain loop.

    \b
    penstock reduce a.npy --generate 1GiB           make a file first, then add it up
    penstock reduce a.npy --columns --cache 64MiB   means of columns
    penstock reduce a.npy --media p5800x --drives 4 from modelled drives
    """
    refuse_inputs("--output", results_file, [file])
    if results_file is not None:
        append_lines([], results_file)  # what would lose the results is refused before the run
    with progress_bar() as progress:
        if generate is not None:
            matrix = width if columns else None
            generate_array(file, generate, dtype=dtype, width=matrix, raw=raw, progress=progress)
        access = options.pop("access") or ACCESS
        result = reduce(
            file, columns=columns, access=access, raw=dtype if raw else "", progress=progress, **options
        )
    found = {"sum": result.sum} if result.means is None else {"means": result.means}
    show(title_of(result), result_of(result), result.measurements, found, as_json, results_file)


@click.command("vectoradd", short_help="Add two arrays larger than the cache, beside explicit tiles.")
@click.argument("a", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("b", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Where OUT exists, remove it first.")
@run_options
def vectoradd_command(
    a: Path,
    b: Path,
    out: Path,
    replace: bool,
    generate: int | None,
    dtype: str,
    raw: bool,
    as_json: bool,
    results_file: Path | None,
    **options: Any,
) -> None:
    """Writes A + B to OUT, element by element; A and B are .npy arrays of one dtype and one shape.

    It is done three ways, each until OUT is on storage for good: by a[i], b[i] and a write in every thread,
    by whole lines, both through the cache, and by explicit tiles without one. Each result is compared with a
    plain loop.

    \b
    penstock vectoradd a.npy b.npy c.npy --generate 512MiB   make a.npy and b.npy first
    penstock vectoradd a.npy b.npy c.npy --direct --replace  bypassing the page cache
    """
    refuse_inputs("--output", results_file, [a, b, out])
    if results_file is not None:
        append_lines([], results_file)
    with progress_bar() as progress:
        if generate is not None:
            for seed, path in enumerate((a, b), 1):
                generate_array(path, generate, dtype=dtype, raw=raw, seed=seed, progress=progress)
        access = options.pop("access") or ACCESS
        result = vectoradd(
            a, b, out, replace=replace, access=access, raw=dtype if raw else "", progress=progress, **options
        )
    title = f"Sum of two arrays of {shape_of(result.shape)} {result.dtype}"
    show(title, f"written to {result.out}", result.measurements, {"out": result.out}, as_json, results_file)


def show(
    title: str,
    result: str,
    measurements: list[Measurement],
    found: dict[str, Any],
    as_json: bool,
    results_file: Path | None,
) -> None:
    if results_file is not None:
        append_lines(measurements, results_file)
    if as_json:
        for m in measurements:
            click.echo(json.dumps({**m.line, "result": found}))
        return
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDE)  # nothing is folded that goes to a file
    console.print(regular_report.access_table(title, measurements))
    if any(map(tells_of_writes, measurements)):
        console.print(write_figures_table(measurements, lambda m: regular_report.NAMES[m.params["access"]]))
    for note in [result, *regular_report.notes(measurements)]:
        console.print(note, highlight=False, markup=False)


def title_of(result: ReduceResult) -> str:
    what = "Sum" if result.means is None else "Means of the columns"
    return f"{what} of {shape_of(result.shape)} {result.dtype}, {result.path}"


def shape_of(shape: Sequence[int]) -> str:
    return " x ".join(f"{extent:,}" for extent in shape) or "1"


def result_of(result: ReduceResult) -> str:
    if result.means is None:
        return f"sum {result.sum}"
    shown = ", ".join(f"{mean:.6g}" for mean in result.means[:SHOWN_MEANS])
    return f"means {shown}" + (
        f" ... ({len(result.means):,} columns)" if len(result.means) > SHOWN_MEANS else ""
    )

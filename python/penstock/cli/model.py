"""`penstock model`: what hardware can do from first principles, beside what was measured."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from penstock import model
from penstock.cli.graph_options import print_json
from penstock.cli.size_option import Size
from penstock.report import papers
from penstock.report.figures import number
from penstock.report.predictions import Predicted, predictions
from penstock.sizes import format_bytes

SOURCE = click.Path(path_type=Path)
WIDE = 120


@click.command("model", short_help="What hardware can do from first principles, beside what was measured.")
@click.argument("results", nargs=-1, type=SOURCE)
@click.option("--gpu", "gpu_name", type=click.Choice(model.names("gpus")), default="a100", show_default=True)
@click.option(
    "--link", "link_name", default="gen4x16", show_default=True, type=click.Choice(model.names("links"))
)
@click.option(
    "--drive", "drive_name", default="p5800x", show_default=True, type=click.Choice(model.names("drives"))
)
@click.option("--drives", default=4, show_default=True, help="How many.")
@click.option("--line", type=Size(), default="4KiB", show_default=True, help="How much a miss brings in.")
@click.option("--element", type=Size(), default="8", show_default=True, help="What a thread reads of it.")
@click.option(
    "--stack",
    default=10.0,
    show_default=True,
    metavar="US",
    help="What the software adds to the drive's latency.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of tables.")
def model_command(
    results: tuple[Path, ...],
    gpu_name: str,
    link_name: str,
    drive_name: str,
    drives: int,
    line: int,
    element: int,
    stack: float,
    as_json: bool,
) -> None:
    """Predicts random reads of lines by a GPU's threads: what bounds them, and what other hardware gives.

    With RESULTS, files or folders of result lines, predictions for them stand beside what was measured.
    """
    if not 512 <= line <= 65536 or line & (line - 1):
        raise ValueError(f"model --line {line}: a line has a power of two of bytes, 512 to 65536: choose one")
    parts = model.gpu(gpu_name), model.link(link_name), model.drive(drive_name)
    system = model.System(*parts, drives, line, element, stack)
    found = [(name, model.predict(each)) for name, each in model.alternatives(system)]
    beside = predictions(papers.read_run_files(results)) if results else []
    if as_json:
        print_json(_as_json(found, beside))
        return
    console = Console()
    console.width = max(console.width, WIDE)
    console.print(system_table(system, found[0][1]))
    console.print(alternatives_table(found))
    console.print(cost_table())
    console.print(model.cost.dated(), highlight=False)
    if beside:
        console.print(predictions_table(beside))
    elif results:
        click.echo("No result line is of what the model predicts.")


def _as_json(found: list[tuple[str, model.Prediction]], beside: list[Predicted]) -> dict[str, Any]:
    return {
        "media": [{**dataclasses.asdict(each), "gain": each.gain} for each in model.cost.all_media()],
        "systems": [{"system": name, **prediction.as_dict()} for name, prediction in found],
        "measured": [each.as_dict() for each in beside],
    }


def system_table(system: model.System, found: model.Prediction) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    latency = system.drive.latency_us + system.stack_us
    rows = [
        ("system", f"{system.gpu.title}, {system.link.title}, {system.drives} {system.drive.title}"),
        ("drives", f"{number(found.drives_gb_per_s)} GB/s of lines of {format_bytes(system.line_bytes)}"),
        (
            "link",
            f"{number(found.link_gb_per_s)} of {number(system.link.gb_per_s)} GB/s are data; "
            f"{number(found.drives_to_fill_link)} drives fill it",
        ),
        (
            "lines in flight",
            f"{number(found.needed)} for that with {number(latency)} us; a full GPU has "
            f"{number(found.by_elements)} by elements of {system.element_bytes} bytes, "
            f"{number(found.by_warps)} by warps",
        ),
        ("by elements", f"{number(found.gb_per_s_by_elements)} GB/s, bound by {found.bound_by_elements}"),
        ("by warps", f"{number(found.gb_per_s_by_warps)} GB/s, bound by {found.bound_by_warps}"),
        ("least cache", f"{format_bytes(found.least_cache_bytes)}: a line for each warp"),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def alternatives_table(found: list[tuple[str, model.Prediction]]) -> Table:
    table = _table("What if", "GB/s", "times", "bound by", "lines in flight", "GB/s by elements")
    base = found[0][1].gb_per_s_by_warps
    for name, each in found:
        table.add_row(
            name,
            number(each.gb_per_s_by_warps),
            number(each.gb_per_s_by_warps / base),
            each.bound_by_warps,
            number(each.needed),
            number(each.gb_per_s_by_elements),
        )
    return table


def cost_table() -> Table:
    table = _table("Cost", "dollars per GB", "times cheaper than DRAM", "writes of all a day")
    for each in model.cost.all_media():
        row = (f"{each.dollars_per_gb:.2f}", number(each.gain), number(each.writes_per_day))
        table.add_row(each.title, *row)
    return table


def predictions_table(found: list[Predicted]) -> Table:
    table = _table("Predicted and measured", "by", "predicted", "measured", "ratio", "machine")
    for each in found:
        table.add_row(
            each.what,
            each.law,
            f"{number(each.predicted)} {each.unit}",
            f"{number(each.measured)} {each.unit}",
            number(each.ratio),
            f"{each.line.machine.split(',')[0]} {each.line.measurement.commit}",
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, title="", title_justify="left")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="left" if name in ("by", "bound by", "machine") else "right")
    return table

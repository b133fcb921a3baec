"""`penstock collage` and `penstock collage-dataset`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.cli.declared_options import option_of
from penstock.cli.output import cannot_be_written
from penstock.cli.progress_bar import progress_bar
from penstock.collages.collage import Collage, CollageOptions, collage
from penstock.collages.dataset import DatasetOptions, make_dataset, make_synthetic_dataset
from penstock.collages.pictures import printable
from penstock.sizes import format_bytes, format_seconds

_of_collage = partial(option_of, CollageOptions)
_of_dataset = partial(option_of, DatasetOptions)


class OutputPicture(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if path.suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
            self.fail(f"'{path}': pictures are written as .png, .jpg or .webp", param, ctx)
        if problem := cannot_be_written(path):
            self.fail(problem, param, ctx)
        return path


@click.command("collage", short_help="Make a picture of small ones that look like its parts.")
@click.argument("picture")
@click.option("--dataset", required=True, metavar="FOLDER", help="That penstock collage-dataset has made.")
@click.option("-o", "--output", required=True, type=OutputPicture(), help="The collage: .png, .jpg or .webp.")
@_of_collage("executor")
@_of_collage("cache", "Memory for records and buckets.  [default: 256MiB, on a GPU 2GiB]")
@_of_collage("line", "How much of a file comes at once.")
@_of_collage("threads", "Of the CPU executor.  [default: one per core]")
@_of_collage("max_candidates", "Records that a block is compared with at most.")
def collage_command(picture: str, dataset: str, output: Path, **options: Any) -> None:
    """Replaces each block of 32 x 32 pixels of PICTURE by the picture of a dataset whose colours are nearest.

    Candidates are found by locality-sensitive hashing and read by the threads that compare them.

    \b
    penstock collage-dataset ~/Pictures tiles
    penstock collage portrait.jpg --dataset tiles -o collage.png
    """
    with progress_bar() as progress:
        made = collage(picture, dataset, progress=progress, **options)
        made.save(output)
    Console().print(_table(made, output))


def _table(made: Collage, output: Path) -> Table:
    table = Table(title=escape(str(output)), title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    accesses = made.hits + made.misses
    rows = {
        "blocks": f"{made.ids.size:,} ({made.ids.shape[1]} x {made.ids.shape[0]})",
        "different pictures": f"{len(np.unique(made.ids)):,}",
        "compared": f"{made.candidates:,} records, {made.candidates / made.ids.size:.0f} a block",
        "read": f"{format_bytes(made.bytes_moved)}, {made.misses / accesses:.0%} misses"
        if accesses
        else format_bytes(made.bytes_moved),
        "search": f"{format_seconds(made.seconds)} on {made.executor} ({made.device})",
    }
    if made.cut:
        rows["cut"] = f"{made.cut:,} blocks had more candidates: raise --max-candidates"
    for name, text in rows.items():
        table.add_row(name, escape(text))
    return table


@click.command("collage-dataset", short_help="Make a dataset for collages of a folder of pictures.")
@click.argument("folders", nargs=-1, metavar="[PICTURES] FOLDER")
@click.option("--synthetic", type=int, metavar="N", help="N drawn histograms instead of PICTURES.")
@click.option(
    "--scale",
    "scales",
    type=int,
    multiple=True,
    default=(1, 2, 4),
    show_default=True,
    help="Blocks along the shorter side of each picture; once for each.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of --synthetic.")
@_of_dataset("tables", "Hash tables of the index.")
@_of_dataset("executor")
@_of_dataset("memory", "Of the host, for tables that are built at once.")
@_of_dataset("threads", "Of the host.  [default: one per core]")
def collage_dataset_command(
    folders: tuple[str, ...],
    synthetic: int | None,
    scales: tuple[int, ...],
    seed: int,
    **options: Any,
) -> None:
    """Cuts the pictures below PICTURES into blocks of 32 x 32 pixels for penstock collage.

    FOLDER gets the blocks, their colour histograms and the index over these. A dataset that is there is
    replaced.

    \b
    penstock collage-dataset ~/Pictures tiles
    penstock collage-dataset --synthetic 1000000 drawn     a dataset for measurements, 4 GB
    """
    if len(folders) != (2 if synthetic is None else 1):
        raise click.UsageError("give PICTURES and FOLDER, or --synthetic N and FOLDER")
    with progress_bar() as progress:
        if synthetic is not None:
            made = make_synthetic_dataset(folders[0], synthetic, seed=seed, progress=progress, **options)
        else:
            made = make_dataset(folders[0], folders[1], scales=scales, progress=progress, **options)
    for reason in made.skipped:
        click.echo(f"penstock: {' '.join(reason.split())}", err=True)
    of = "drawn" if made.synthetic else f"of {made.pictures:,} pictures"
    click.echo(f"{printable(made.folder)}: {made.records:,} records, {of}")

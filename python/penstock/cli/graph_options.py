"""Options that the commands over graphs share, and how they answer."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.cli.bench import Image
from penstock.cli.declared_options import option_of
from penstock.cli.help_groups import group_of
from penstock.cli.output import Output
from penstock.graph.options import CACHE, GraphOptions

Command = TypeVar("Command", bound=Callable[..., Any])


class Folder(click.Path):
    """A folder to make or to use; nothing is no name of one, where Path takes it for the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("'': it has no name: name a folder", param, ctx)
        return super().convert(value, param, ctx)


def cache_dir_option(command: Command) -> Command:
    return click.option(
        "--cache-dir",
        type=Folder(file_okay=False, path_type=Path),
        default=None,
        metavar="DIR",
        help="Where converted graphs are kept.  [default: PENSTOCK_CACHE, or ~/.cache/penstock/graphs]",
    )(command)


_option = partial(option_of, GraphOptions)

input_options = group_of(
    "How a file is read",
    _option("undirected", "Files: take each edge both ways, equal ones once."),
    click.option(
        "--format",
        metavar="NAME",
        help="Files: el, wel, gr, graph, mtx, npz, sg, wsg, bel, bcsr, bwcsr, parquet, csv, tsv.  "
        "[default: as the name ends]",
    ),
    click.option(
        "--columns",
        metavar="SRC,DST[,WEIGHT]",
        help="Text and tables: which columns these are, by name or number from 0.  "
        "[default: by their names, else place]",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        help="Text: between fields.  [default: .csv comma, .tsv tab, else blanks]",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Text: whether the first line names columns.  [default: as it looks]",
    ),
    click.option(
        "--first-id", type=click.IntRange(0, 1), default=None, help="Text and tables: the id of vertex 0."
    ),
    click.option(
        "--renumber/--no-renumber",
        default=None,
        help="Text and tables: number ids anew, keep them as names.  "
        "[default: tables, and text with wide gaps]",
    ),
    _option("memory", "Files: what converting may take."),
)
_placement_options = group_of(
    "Where edges lie, and whose threads walk them",
    _option(
        "placement",
        "Where edges lie: behind a cache (storage, host-cached), in host memory and read in place (host, "
        "pinned), or copied to the GPU (hbm). Baselines: managed (UVM), subgraph (Subway).",
    ),
    _option(
        "strategy",
        "How threads share out edges: thread, merged, merged_aligned, transposed(STRIDE), coarsened(N), "
        "tiled(EDGES), frontier, tiled_frontier(EDGES).",
    ),
    _option("cache", f"Memory for edges behind a cache.  [default: {CACHE}]"),
    _option("line", "How much a miss brings in."),
    _option(
        "directory",
        "How the cache finds a line: an entry for each line of the edges, or for each of its own.",
    ),
    _option("executor", "Whose threads walk the edges; auto: a GPU's where there is one."),
    _option("engine", "How files are read."),
    _option("ablate", "Disable one feature of the cache, to measure what it is worth."),
    _option("direct", "Bypass the page cache (O_DIRECT)."),
    _option("threads", "Of the CPU.  [default: one per core]"),
)
_storage_options = group_of(
    "Queues, and drives that are modelled",
    _option("queues", "Queue pairs of storage.  [default: one per thread or SM]"),
    _option("queue_depth", "Entries of each."),
    _option("media", "Storage: the files, or drives that are modelled: p5800x, pm1735, 980pro, gen5."),
    _option("drives", "How many modelled ones."),
    _option("layout", "Modelled drives have parts of the graph, or each has all of it."),
    _option("media_place", "Where the bytes of modelled drives lie."),
    _option("server_sms", "SMs that serve modelled drives.  [default: a third]"),
)
_run_options = group_of(
    "Runs, and what is done with the result",
    _option("trials", "Runs over the open graph, each from the next source; the last one is reported."),
    _option("verify", "Check the result by GAP's rules, with all cores."),
    click.option(
        "--output",
        type=Output(),
        metavar="FILE",
        help="Write what was found for each vertex: .npy, or .csv, by name where vertices have names.",
    ),
    click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a table."),
    click.option(
        "--breakdown",
        is_flag=True,
        help="Time apart: computing, the cache, storage. Runs three times.",
    ),
    click.option(
        "--plot", "image", type=Image(), metavar="IMAGE", help="Draw its rounds: .png, .svg or .pdf."
    ),
    cache_dir_option,
)


def graph_options(command: Command) -> Command:
    """What all algorithms over graphs take."""
    for options in (_run_options, _storage_options, _placement_options, input_options):
        command = options(command)
    return command


incoming_option = _option(
    "incoming",
    "Directed graphs: make lists of incoming edges too, and use them (bfs: where lists are in place).",
)
sources_option = _option(
    "sources", "Sources are vertices that have edges (gap, emogi), or more than two (bam)."
)
source_option = click.option(
    "--source", default=None, metavar="V", help="Vertex to start from, by name or number.  [default: drawn]"
)


def print_json(data: Any) -> None:
    """Numbers that JSON does not have are null: a threshold that is infinite."""
    click.echo(json.dumps(_in_json(data), allow_nan=False))


def _in_json(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _in_json(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_in_json(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data

"""`penstock graph`: graphs as folders, made and looked at."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.callbacks import preparing
from penstock.cli.graph_options import Folder, cache_dir_option, input_options, print_json
from penstock.cli.progress_bar import progress_bar
from penstock.native import load_native
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from penstock.graph import GraphFolder


@click.group("graph", short_help="Convert graphs to folders, and look at them.")
def graph_group() -> None:
    """Graphs on disk: a folder of NumPy files and a graph.json, which docs/GRAPHS.md describes."""


@graph_group.command("convert", short_help="Make a graph folder of a file, a generator or another folder.")
@click.argument("graph")
@click.argument("folder", type=Folder(path_type=Path))
@input_options
@click.option("--simple", is_flag=True, help="Drop loops, and of equal edges all but the lightest.")
@click.option("--weighted", is_flag=True, help="Draw weights, too, of a generated graph.")
@click.option("--threads", type=int, default=None, help="[default: one per core]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a table.")
def convert_command(graph: str, folder: Path, as_json: bool, **options: Any) -> None:
    """Converts GRAPH, which is what `penstock bfs` takes, to the graph folder FOLDER."""
    load_native()
    from penstock.graph import convert

    with progress_bar() as progress:
        made = convert(graph, folder, progress=preparing(progress), **options)
    print_graph(made, as_json)


@graph_group.command("info", short_help="How large a graph is, and what is in it.")
@click.argument("graph")
@input_options
@cache_dir_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of a table.")
def info_command(graph: str, as_json: bool, **options: Any) -> None:
    """Opens GRAPH, which is what `penstock bfs` takes (converts it first, where it must be), describes it."""
    load_native()
    from penstock.graph import resolve

    with progress_bar() as progress:
        found = resolve(graph, progress=preparing(progress), **options)
    print_graph(found, as_json)


@dataclasses.dataclass(frozen=True)
class GraphFacts:
    """What `penstock graph info` prints."""

    path: str
    source: str
    reading: str
    """Which columns of the source were taken as what, and how many rows; empty where not known."""
    vertices: int
    edges: int
    directed: bool
    edge_dtype: str
    weight_dtype: str | None
    names: bool
    edge_bytes: int
    """With weights."""
    offset_bytes: int
    mean_degree: float
    largest_degree: int | None
    """This and the next are None of a graph on a volume."""
    without_edges: int | None
    """Vertices that no edge leaves."""


def facts_of(graph: GraphFolder) -> GraphFacts:
    weights = graph.weights_place
    degrees = None if graph.on_volume else np.diff(graph.offsets())
    return GraphFacts(
        path=str(graph.path),
        source=graph.source,
        reading=graph.reading,
        vertices=graph.vertices,
        edges=graph.edges,
        directed=graph.directed,
        edge_dtype=str(graph.edge_dtype),
        weight_dtype=None if weights is None else weights["dtype"],
        names=graph.has_names,
        edge_bytes=graph.edges * (graph.edge_dtype.itemsize + (0 if weights is None else 4)),
        offset_bytes=8 * (graph.vertices + 1),
        mean_degree=graph.edges / max(graph.vertices, 1),
        largest_degree=None if degrees is None else int(degrees.max(initial=0)),
        without_edges=None if degrees is None else int(np.count_nonzero(degrees == 0)),
    )


def print_graph(graph: GraphFolder, as_json: bool) -> None:
    facts = facts_of(graph)
    if as_json:
        print_json(dataclasses.asdict(facts))
        return
    both = "directed" if facts.directed else "undirected, stored both ways"
    weights = f", weights {facts.weight_dtype}" if facts.weight_dtype else ""
    rows = [
        ("made of", facts.source),
        *([("read as", facts.reading)] if facts.reading else []),
        ("vertices", f"{facts.vertices:,}{', which have names' if facts.names else ''}"),
        ("edges", f"{facts.edges:,} ({both})"),
        ("stored as", f"{facts.edge_dtype}{weights}: {format_bytes(facts.edge_bytes)}"),
        ("offsets", format_bytes(facts.offset_bytes)),
        ("mean degree", f"{facts.mean_degree:.2f}"),
    ]
    if facts.largest_degree is not None:
        rows += [
            ("largest degree", f"{facts.largest_degree:,}"),
            ("vertices without edges", f"{facts.without_edges:,}"),
        ]
    table = Table(title=escape(facts.path), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, escape(value))
    Console().print(table)

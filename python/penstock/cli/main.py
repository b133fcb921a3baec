"""The command `penstock`.

Exit status: 0; 1 when a result was checked and is wrong; 2 with one sentence on stderr for bad input and for
what the machine refuses; 3 with one when ranks have not converged; 130 after Ctrl-C, 129 and 143 after SIGHUP
and SIGTERM.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console

from penstock import __version__, doctor
from penstock import graph as graphs
from penstock.cli import graph_report, vertex_names
from penstock.cli.bench import bench_command, plot_command
from penstock.cli.collage import collage_command, collage_dataset_command
from penstock.cli.ended import EndedError
from penstock.cli.files import grep_command
from penstock.cli.gnn import gnn_group
from penstock.cli.graph import graph_group
from penstock.cli.graph_options import (
    cache_dir_option,
    graph_options,
    incoming_option,
    print_json,
    source_option,
    sources_option,
)
from penstock.cli.help_groups import GroupedProgram
from penstock.cli.inputs import refuse_files_of
from penstock.cli.link_trace import LinkTrace, trace_option, with_defaults
from penstock.cli.model import model_command
from penstock.cli.nvme import nvme_group
from penstock.cli.output import cannot_be_written, write_result
from penstock.cli.progress_bar import progress_bar
from penstock.cli.regular import reduce_command, vectoradd_command
from penstock.cli.report import report_command
from penstock.cli.sql import sql_command
from penstock.cli.taxi import taxi_command
from penstock.cli.volume import volume_group
from penstock.errors import Error
from penstock.graph.effects import CACHED
from penstock.graph.results import BfsResult, GraphCost
from penstock.machine import Machine, default_cache_dir
from penstock.native import load_native
from penstock.report.plot import need_matplotlib

WRONG_RESULT, REFUSED, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130
PACKAGE_GRAPH, INSTEAD_OF_PACKAGES, GENERATED_GRAPH = "debian", "urand:16", "kron:20"


def print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """For --version: prints it, and ends."""
    if wanted and not context.resilient_parsing:
        click.echo(version_text())
        context.exit()


@click.group(
    cls=GroupedProgram,
    headings={
        "Graphs": ("bfs", "sssp", "cc", "pagerank", "graph", "gnn"),
        "Files": ("grep", "collage", "collage-dataset"),
        "Tables": ("sql", "taxi"),
        "Drives": ("nvme", "volume"),
        "Measurements": ("bench", "plot", "report", "model", "reduce", "vectoradd"),
        "This machine": ("doctor", "demo", "version"),
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version.",
)
def penstock() -> None:
    """Data where it lives, fetched by the threads that turn out to need it.

    Exit status: 0; 1 when a result was checked and is wrong; 2, with one sentence, for bad input and for what
    the machine refuses; 3 when ranks have not converged; 128 + N when signal N ended it.
    """


@penstock.command("bfs", short_help="Search a graph, wherever its edges lie.")
@click.argument("graph")
@source_option
@sources_option
@incoming_option
@trace_option
@graph_options
def bfs_command(graph: str, **options: Any) -> None:
    """Breadth-first search of GRAPH.

    GRAPH is a graph folder; volume:NAME@MEMBER,MEMBER, a graph on a volume; a file (.el, .txt, .wel, .gr,
    .graph, .mtx, .npz, .sg, .bel, .bcsr, .parquet, .csv, or packed as .el.gz), or a folder or a pattern of
    parts of a table, that is converted once; a generator (kron:SCALE[:DEGREE], urand:SCALE[:DEGREE],
    social:SCALE[:DEGREE]); or debian: this machine's packages and what they depend on.
    """
    run("bfs", graph, **options)


@penstock.command("cc", short_help="Connected components of a graph.")
@click.argument("graph")
@trace_option
@graph_options
def cc_command(graph: str, **options: Any) -> None:
    """Weakly connected components of GRAPH, in one pass over its edges. GRAPH: as for bfs."""
    run("cc", graph, **options)


@penstock.command("pagerank", short_help="PageRank of a graph.")
@click.argument("graph")
@click.option("--damping", type=float, default=0.85, show_default=True)
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="Of all changes together.")
@click.option("--iterations", type=int, default=20, show_default=True, help="At most.")
@click.option("--dangling", is_flag=True, help="What vertices without edges have goes to all.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option("--weighted", is_flag=True, help="Edges pass ranks on by their weights, not in equal parts.")
@click.option(
    "--personalize",
    multiple=True,
    metavar="V[=X]",
    help="Ranks begin anew at this vertex, by name or number, and others that are given, in proportion to X "
    "(1); once for each.  [default: at all]",
)
@incoming_option
@trace_option
@graph_options
def pagerank_command(graph: str, **options: Any) -> None:
    """PageRank of GRAPH, as GAP defines it; with --weighted, --personalize and --dangling as NetworkX does.

    GRAPH: as for bfs. Weights of generated graphs are drawn with --weighted. Exit status 3: not converged.
    """
    options["personalization"] = personalization_of(options.pop("personalize"))
    run("pagerank", graph, **options)


def personalization_of(values: tuple[str, ...]) -> dict[str, float] | None:
    """V or V=X each; a name may have an equals sign in it, too."""
    found: dict[str, float] = {}
    for value in values:
        vertex, equals, number = value.rpartition("=")
        try:
            name, share = (vertex, float(number)) if equals else (value, 1.0)
        except ValueError:
            name, share = value, 1.0
        if name in found:
            raise ValueError(f"--personalize {value}: vertex {name} is given twice: give each vertex once")
        found[name] = share
    return found or None


@penstock.command("sssp", short_help="Shortest paths in a graph.")
@click.argument("graph")
@source_option
@sources_option
@click.option("--delta", type=float, default=0.0, help="How far the threshold rises.  [default: chosen]")
@click.option("--parents", is_flag=True, help="Find the vertex before each on a shortest path, too.")
@trace_option
@graph_options
def sssp_command(graph: str, **options: Any) -> None:
    """Shortest paths in GRAPH from a vertex, by its weights. GRAPH: as for bfs; weights are drawn if made."""
    if options["trace"] is not None and options["parents"]:
        raise ValueError("--trace link: --parents reads more lists than a trace has: leave it out")
    if options["trace"] is not None:
        options["round_vertices"] = True
    run("sssp", graph, **options)


penstock.add_command(graph_group)
penstock.add_command(bench_command)
penstock.add_command(plot_command)
penstock.add_command(report_command)
penstock.add_command(model_command)
penstock.add_command(reduce_command)
penstock.add_command(vectoradd_command)
penstock.add_command(grep_command)
penstock.add_command(collage_command)
penstock.add_command(collage_dataset_command)
penstock.add_command(sql_command)
penstock.add_command(taxi_command)
penstock.add_command(nvme_group)
penstock.add_command(volume_group)
penstock.add_command(gnn_group)


@penstock.command("doctor", short_help="What this machine has, and what each missing thing would give.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list on stdout instead of a table.")
@cache_dir_option
def doctor_command(as_json: bool, cache_dir: Path | None) -> None:
    """Looks at GPUs, io_uring, pages, limits, drives; changes nothing."""
    rows = doctor.examine(Machine(cache_dir=cache_dir or default_cache_dir()))
    if as_json:
        print_json([dataclasses.asdict(row) for row in rows])
    else:
        Console().print(graph_report.doctor_table(rows))


@penstock.command("demo", short_help="See it work: two searches, verified.")
@click.option("--quick", is_flag=True, help="Smaller graphs.")
@cache_dir_option
def demo_command(quick: bool, cache_dir: Path | None) -> None:
    """Searches the graph of this machine's packages and a generated one; checks both by GAP's rules."""
    console = Console()
    rows = doctor.examine(Machine(cache_dir=cache_dir or default_cache_dir()))
    console.print(graph_report.doctor_summary(rows), highlight=False)
    first = PACKAGE_GRAPH
    if next(row.state for row in rows if row.what == "package lists") == "missing":
        first = INSTEAD_OF_PACKAGES
        console.print(f"There are no package lists here: {first} stands in for {PACKAGE_GRAPH}.")
    generated = "kron:14" if quick else GENERATED_GRAPH
    # A cache well below the edges, so that lines come and go.
    for graph, cache in ((first, "256KiB"), (generated, "256KiB" if quick else "16MiB")):
        console.print(f"\n$ penstock bfs {graph} --cache {cache} --verify", style="bold", highlight=False)
        result = search(graph, cache=cache, verify=True, cache_dir=cache_dir)
        print_result(result)
        check_verdict(result)
    console.print("\nTry next:")
    for line in ("penstock doctor", "penstock bfs kron:22 --cache 64MiB --direct", "penstock bfs --help"):
        console.print(f"  {line}", highlight=False)


@penstock.command("version", short_help="The version.")
def version_command() -> None:
    """Prints Penstock's version, and the CUDA version that it was built with."""
    click.echo(version_text())


def version_text() -> str:
    try:
        cuda = load_native().cuda_version
        build = f"CUDA {cuda}" if cuda else "CPU only"
    except Error:
        build = "its compiled part is missing"
    return f"penstock {__version__} ({build})"


def search(graph: str, **options: Any) -> BfsResult:
    """penstock.bfs with a progress bar on stderr, where that is a terminal."""
    with progress_bar() as progress:
        return graphs.bfs(graph, progress=progress, **options)


def run(
    algorithm: str,
    graph: str,
    *,
    as_json: bool,
    breakdown: bool,
    image: Path | None,
    output: Path | None,
    trace: str | None = None,
    **options: Any,
) -> None:
    """Run an algorithm by name, and print its result."""
    function = algorithm_named(algorithm)
    if trace is not None:
        options = with_defaults(click.get_current_context(), options)
    link = None if trace is None else LinkTrace(**options)
    if breakdown:
        if image is not None or output is not None or link is not None:
            raise ValueError(
                "--plot, --output and --trace are of one run, and --breakdown has three: leave it out"
            )
        return print_breakdown(function, graph, as_json, **options)
    for option, path in (("--output", output), ("--plot", image)):
        refuse_files_of(option, path, graph, options["format"])
    if image is not None:
        need_matplotlib()
        if problem := cannot_be_written(image):
            raise ValueError(f"plot {problem}")
        options["level_traffic"] = moves_bytes(**options)
    with progress_bar() as progress:
        result = function(graph, progress=progress, **options)
    more = {} if link is None else {"link": link.of(result)}
    print_json(result.as_dict() | more) if as_json else print_result(result)
    if link is not None and not as_json:
        Console().print(link.table(result))
    if output is not None:
        write_result(result, output)
    if image is not None:
        from penstock.report.level_plot import draw_levels

        draw_levels(result, image)
    check_verdict(result)
    return None


def moves_bytes(*, placement: str, executor: str, **_: Any) -> bool:
    """Whether rounds move bytes that are worth a line in a plot: not where a CPU reads in place."""
    gpu = executor == "cuda" or (executor == "auto" and load_native().cuda_usable()[0])
    return gpu or placement in (*CACHED, "subgraph")


def algorithm_named(name: str) -> Callable[..., GraphCost]:
    """bfs, cc, pagerank or sssp. Raises Error where the compiled module is missing."""
    function: Callable[..., GraphCost] = getattr(graphs, name)
    return function


def print_breakdown(function: Callable[..., GraphCost], graph: str, as_json: bool, **options: Any) -> None:
    from penstock.graph import breakdown

    if options.pop("placement") != "storage" or options.pop("trials") != 1:
        raise ValueError(
            "--breakdown runs placements of its own, each once: leave --placement and --trials out"
        )
    with progress_bar() as progress:
        parts = breakdown(function, graph, progress=progress, **options)
    print_json(parts.as_dict()) if as_json else Console().print(graph_report.breakdown_table(parts))
    if parts.verified is False:
        click.echo(f"penstock: verify {graph}: a result is wrong: run it without --breakdown", err=True)
        sys.exit(WRONG_RESULT)


def print_result(result: GraphCost) -> None:
    Console().print(graph_report.graph_table(result, vertex_names.named_places(result)))


def check_verdict(result: GraphCost) -> None:
    if result.verified is False:
        violation = result.violation or "the result differs from the reference"
        click.echo(f"penstock: verify {result.graph}: {violation}", err=True)
        sys.exit(WRONG_RESULT)
    if shortcoming := result.shortcoming():
        click.echo(f"penstock: {shortcoming}", err=True)
        sys.exit(NOT_CONVERGED)


def _end(number: int, frame: FrameType | None) -> None:
    raise EndedError(number)


def _remark(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any, **more: Any
) -> None:
    click.echo("penstock: " + " ".join(str(message).split()), err=True)


class _Notices(logging.Handler):
    """What the library logs, as sentences on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo("penstock: " + " ".join(record.getMessage().split()), err=True)


def program() -> int:
    """The command as a process of its own, which signals end in order."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    warnings.showwarning = _remark
    return main()


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns the exit status."""
    output = sys.stdout
    handler = _Notices(logging.INFO)
    logger = logging.getLogger("penstock")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        # click gives the exit code of --help and the like, and None after a command.
        return penstock.main(args=arguments, prog_name="penstock", standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        return REFUSED
    except click.ClickException as problem:
        return refuse(problem.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("penstock: interrupted", err=True)
        return INTERRUPTED
    except EndedError as ended:
        with contextlib.suppress(OSError):  # its terminal may have gone
            click.echo(f"penstock: ended by {signal.Signals(ended.number).name}", err=True)
        return 128 + ended.number
    except SystemExit as ended:
        # Where the reader of stdout has gone, click puts a stand-in there, and click and rich exit with 1.
        if sys.stdout is not output or isinstance(ended.__context__, BrokenPipeError):
            return 128 + signal.SIGPIPE
        raise
    except (ValueError, TypeError, OSError, MemoryError, OverflowError) as problem:
        return refuse(sentence_of(problem))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def sentence_of(problem: BaseException) -> str:
    if isinstance(problem, OSError) and not isinstance(problem, Error) and problem.strerror:
        where = f"{problem.filename}: " if problem.filename else ""
        return f"{where}{problem.strerror}"
    if isinstance(problem, MemoryError):
        return f"out of memory{f': {problem}' if str(problem) else ''}: ask for a smaller cache or graph"
    return str(problem)


def refuse(sentence: str) -> int:
    click.echo("penstock: " + " ".join(sentence.split()), err=True)
    return REFUSED

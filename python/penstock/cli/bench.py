"""`penstock bench` and `penstock plot`. Topics and their options are those of the compiled part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from penstock.bench.measurement import Measurement, append_lines, json_line, newest, read_lines
from penstock.bench.topics import Topic, run, topics
from penstock.cli import bench_report
from penstock.cli.inputs import refuse_inputs
from penstock.cli.progress_bar import progress_bar
from penstock.cli.write_figures import tells_of_writes, write_figures_table
from penstock.report import plot

RESULTS = click.Path(dir_okay=False, path_type=Path)
WIDE = 200


class Image(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "image"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            return plot.check_image(Path(value))
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


class TopicGroup(click.Group):
    """A command for each topic; they are looked up when one is asked for, so that the rest works without."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [topic.name for topic in topics()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return next((topic_command(topic) for topic in topics() if topic.name == cmd_name), None)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            known = ", ".join(self.list_commands(ctx))
            raise click.UsageError(f"bench {args[0]}: there is no such topic: choose one of {known}", ctx)
        return super().resolve_command(ctx, args)


@click.group("bench", cls=TopicGroup, invoke_without_command=True, short_help="Measure, beside a baseline.")
@click.option("--list", "wants_list", is_flag=True, help="The topics and their options.")
@click.pass_context
def bench_command(context: click.Context, wants_list: bool) -> None:
    """Measures one topic beside a baseline from the same run; without a topic, lists them.

    Everything that is read is checked: what was read wrong is an error and no result.
    """
    if wants_list or context.invoked_subcommand is None:
        Console().print(bench_report.topics_table(topics()))
        context.exit()


def topic_command(topic: Topic) -> click.Command:
    """`penstock bench TOPIC`, with an option for each of the topic's and those that all have."""
    options = [
        click.Option([f"--{bench_report.dashed(name)}", parameter_of(name)], metavar="VALUE", help=what)
        for name, what in topic.options.items()
    ]

    def measure(as_json: bool, results_file: Path | None, image: Path | None, **given: str | None) -> None:
        texts = {name: given[parameter_of(name)] for name in topic.options}
        measure_topic(topic, {k: v for k, v in texts.items() if v is not None}, as_json, results_file, image)

    return click.Command(
        topic.name,
        params=[*options, *common_options()],
        callback=measure,
        help=f"Measures {topic.what}.",
        short_help=topic.what,
    )


def parameter_of(option: str) -> str:
    """An identifier, which click takes for a parameter's name."""
    return "topic_" + option.replace("-", "_")


def common_options() -> list[click.Parameter]:
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="JSON lines on stdout instead of a table."),
        click.Option(
            ["--output", "results_file"], type=RESULTS, metavar="FILE", help="Append JSON lines to it."
        ),
        click.Option(
            ["--plot", "image"], type=Image(), metavar="IMAGE", help="Draw the results: .png, .svg or .pdf."
        ),
    ]


def measure_topic(
    topic: Topic, options: dict[str, str], as_json: bool, results_file: Path | None, image: Path | None
) -> None:
    for option, path in (("--output", results_file), ("--plot", image)):
        refuse_inputs(option, path, options.values())
    # A run may take minutes: what would lose its results is refused before it.
    if image is not None:
        plot.need_matplotlib()
    if results_file is not None:
        append_lines([], results_file)

    def keep(measurement: Measurement) -> None:
        if results_file is not None:
            append_lines([measurement], results_file)

    with progress_bar() as progress:
        found = run(topic.name, options, progress=progress, found=keep)
    if as_json:
        for measurement in found:
            click.echo(json_line(measurement))
    else:
        print_table(found)
    if image is not None:
        plot.draw(found, image)


def print_table(found: list[Measurement]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDE)  # nothing is folded that goes to a file
    console.print(bench_report.results_table(found))
    if any(map(tells_of_writes, found)):
        console.print(write_figures_table(found, lambda m: m.id))
    for note in bench_report.notes(found):
        console.print(note, highlight=False, markup=False)


@click.command("plot", short_help="Draw results from files.")
@click.argument("results", nargs=-1, required=True, type=RESULTS)
@click.argument("image", type=Image())
@click.option("--only", metavar="TEXT", default="", help="Measurements with TEXT in their id.")
def plot_command(results: tuple[Path, ...], image: Path, only: str) -> None:
    """Draws the measurements of RESULTS, files of JSON lines, as IMAGE (.png, .svg or .pdf).

    Where one was taken again, the newest counts: the last line of the last file.
    """
    refuse_inputs("plot", image, results)
    plot.need_matplotlib()
    measured = newest(m for file in results for m in read_lines(file) if only in m.id)
    if not measured:
        what = f"measurement with '{only}' in its id" if only else "measurement"
        raise ValueError(f"plot {', '.join(str(file) for file in results)}: there is no {what} in it")
    plot.draw(measured, image)
    click.echo(f"{len(measured)} measurement{'' if len(measured) == 1 else 's'}: {image}")

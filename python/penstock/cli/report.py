"""`penstock report`: the papers' figures and tables beside result lines, as a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.callbacks import Progress
from penstock.cli.ended import EndedError
from penstock.cli.graph_options import print_json
from penstock.cli.inputs import refuse_inputs
from penstock.cli.output import cannot_be_written
from penstock.cli.progress_bar import progress_bar
from penstock.errors import Error
from penstock.report import papers
from penstock.report.comparing import CHANGED, Difference, compare
from penstock.report.figures import number
from penstock.report.quick import run_quick
from penstock.report.running import Outcome, commands_of, run_commands, source_tree
from penstock.report.whole_files import written_whole

RESULTS = Path("benchmarks/results")
SOURCE = click.Path(path_type=Path)
WIDE = 150


class ReportGroup(click.Group):
    """Its first command runs where no other is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first, *_ = self.commands
        return super().parse_args(ctx, args if args and args[0] in self.commands else [first, *args])


@click.group("report", cls=ReportGroup, short_help="The papers' figures and tables beside what was measured.")
def report_command() -> None:
    """The papers' figures and tables beside what was measured."""


@report_command.command("page", short_help="Write the page.")
@click.argument("results", nargs=-1, type=SOURCE)
@click.option("--only", multiple=True, metavar="TEXT", help="Figures with TEXT in their name; repeatable.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page; the same as JSON lies beside it.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of files.")
@click.option("--quick", is_flag=True, help="Measure first, 10 minutes at most, and report on that.")
@click.option("--run", "runs", is_flag=True, help="Run the figures' commands first, and report on that.")
@click.option("--list", "wants_list", is_flag=True, help="The figures: commands, output, time, disk.")
def page_command(
    results: tuple[Path, ...],
    only: tuple[str, ...],
    output: Path,
    as_json: bool,
    quick: bool,
    runs: bool,
    wants_list: bool,
) -> None:
    """Writes a page: each figure and table of the papers beside RESULTS, files or folders of result lines.

    RESULTS: benchmarks/results if there are none. A figure has the paper's value, ours with its machine and
    commit, their ratio, the repeats, whether the run was verified, and the command that measures it again.

    --list prints for each figure what measures it again, the lines that this writes, and what the lines of
    RESULTS took and read, where they record it.

    --quick runs small sizes of what this machine allows, adds the result lines to a file beside the page
    (report.jsonl), and reports on it. So does --run with the commands that --list prints; of all figures they
    take hours: --only chooses. penstock report diff A B compares two sets of results.
    """
    option = "--quick" if quick else "--run" if runs else ""
    if wants_list:
        if option:
            raise ValueError(f"report --list {option}: --list measures nothing: give one of them")
        print_listing(results, only, as_json)
        return
    known = papers.load_papers()
    check_only(known, only)
    if quick and runs:
        raise ValueError("report --quick --run: each measures its own: give one of them")
    if option and results:
        raise ValueError(f"report {option}: it makes its results: leave RESULTS out")
    if option:
        results = (output.with_suffix(".jsonl"),)
    if not as_json or option:
        check_output(output, results)
    measured = Measured(option)
    if option:
        measured.take(outcomes_of(option, results[0], only))
    evaluated = evaluate(known, results, only)
    if as_json:
        print_json(evaluated)
    else:
        write_report(evaluated, output)
    measured.check()


Outcomes = Callable[[Progress | None], Generator[Outcome, None, None]]


def outcomes_of(option: str, results: Path, only: tuple[str, ...]) -> Outcomes:
    """What runs with an option."""
    if option == "--quick":
        return lambda progress: run_quick(results, progress)
    commands = commands_of(papers.listing(papers.load_papers(), [], only))
    return lambda progress: run_commands(commands, results, source_tree(), progress)


@dataclass
class Measured:
    """What became of the commands that were run first."""

    option: str
    failed: int = 0
    interrupt: KeyboardInterrupt | EndedError | None = None

    def take(self, outcomes: Outcomes) -> None:
        """Runs all until they are interrupted; prints each as it ends.

        Raises Error where nothing was measured, KeyboardInterrupt or EndedError where one came before.
        """
        count = 0
        try:
            with progress_bar() as progress, closing(outcomes(progress)) as ended:
                for outcome in ended:
                    self.failed += outcome.failed
                    count += outcome.measurements
                    what = outcome.problem or f"{outcome.measurements} measurements, each answer checked"
                    click.echo(f"{outcome.seconds:6.1f} s  {outcome.command}: {what}", err=True)
        except (KeyboardInterrupt, EndedError) as interrupt:
            self.interrupt = interrupt
        if count == 0:
            self.check()
            raise Error(f"report {self.option}: nothing could be measured here: see above")

    def check(self) -> None:
        """Raises what is left to report once the page is there."""
        if self.interrupt is not None:
            raise self.interrupt
        if self.failed:
            steps = f"{self.failed} of its steps failed"
            raise Error(f"report {self.option}: {steps}: see above, and run the command of each")


def check_only(known: list[papers.Paper], only: tuple[str, ...]) -> None:
    """Raises ValueError for a text that no figure has."""
    for text in only:
        if not papers.evaluate(known, [], [], [text])["papers"]:
            raise ValueError(f"report --only {text}: no figure has that in its name: see --list")


def check_output(output: Path, results: tuple[Path, ...]) -> None:
    """Raises ValueError, before anything is measured, for a page that cannot be written."""
    beside = output.with_suffix(".json")
    if output.suffix in (".json", ".jsonl"):
        raise ValueError(
            f"report {output}: the JSON beside it has that name: choose one that ends with .html"
        )
    for path in (output, beside):
        refuse_inputs("report -o", path, results)
        if problem := cannot_be_written(path):
            raise ValueError(f"report {problem}")


def evaluate(known: list[papers.Paper], results: tuple[Path, ...], only: tuple[str, ...]) -> dict[str, Any]:
    """Raises ValueError where there are no result lines."""
    if not results and not RESULTS.is_dir():
        raise ValueError(f"report: there is no {RESULTS} here: give files or folders of result lines")
    lines = papers.read_run_files(results or (RESULTS,))
    return papers.evaluate(known, papers.load_answers(known), lines, only)


def write_report(evaluated: dict[str, Any], output: Path) -> None:
    """The page, and the same as JSON beside it; prints what they have."""
    beside = output.with_suffix(".json")
    texts = {output: papers.page(evaluated), beside: json.dumps(evaluated, indent=1, allow_nan=False) + "\n"}
    for path, text in texts.items():
        with written_whole("write", path) as whole:
            whole.write_text(text, encoding="utf-8")
    counts = evaluated["counts"]
    with_ours = counts["measured"] + counts["partly"]
    verdicts = f"{counts['better']} better than the paper's, {counts['level']} level, {counts['worse']} worse"
    click.echo(f"{counts['figures']} figures and tables, {with_ours} with numbers of ours: {verdicts}")
    for path in texts:
        click.echo(path)


@report_command.command("diff", short_help="Compare two sets of results.")
@click.argument("first", type=SOURCE)
@click.argument("second", type=SOURCE)
@click.option("--only", default="", metavar="TEXT", help="Measurements with TEXT in their id.")
@click.option("--limit", type=click.IntRange(1), default=40, show_default=True, help="Rows of the table.")
@click.option("--json", "as_json", is_flag=True, help="All of them as JSON on stdout instead of a table.")
def diff_command(first: Path, second: Path, only: str, limit: int, as_json: bool) -> None:
    """Compares FIRST and SECOND, files or folders of result lines: two machines, or two commits.

    Measurements that both have, those that changed first. Where both have repeats, p is how often chance
    alone makes such a difference, by the rank test of Mann and Whitney; below 0.05 it is called a change.
    """
    chosen = [
        [line for line in papers.read_run_files([path]) if only in line.measurement.id]
        for path in (first, second)
    ]
    comparison = compare(*chosen)
    if not comparison.differences:
        which = f" with '{only}' in its id" if only else ""
        raise ValueError(f"report diff {first} {second}: they have no measurement{which} in common")
    if as_json:
        print_json(comparison.as_dict())
        return
    console = Console()
    console.width = max(console.width, WIDE)
    console.print(differences_table(comparison.differences[:limit]))
    tested = [difference for difference in comparison.differences if difference.p is not None]
    changed = sum(bool(difference.changed) for difference in tested)
    click.echo(
        f"{len(comparison.differences)} in both, {len(tested)} with repeats, {changed} changed "
        f"(by chance: {CHANGED * len(tested):.0f}); ids in one alone: {comparison.only_first} first, "
        f"{comparison.only_second} second"
    )


def differences_table(differences: list[Difference]) -> Table:
    table = Table(box=None, pad_edge=False)
    told = varying_params_of(differences)
    for name in ("id", "parameters"):
        table.add_column(name, overflow="fold")
    for name in ("first", "second", "second / first", "samples", "p"):
        table.add_column(name, justify="right")
    table.add_column("")
    for each in differences:
        params = [f"{name}={text}" for name, text in each.params.items() if name in told]
        params += [f"{name}={one}/{other}" for name, (one, other) in each.differing.items()]
        table.add_row(
            escape(each.id),
            escape(" ".join(params)),
            f"{number(each.first)} {each.unit}",
            f"{number(each.second)} {each.unit}",
            number(each.ratio),
            f"{each.first_samples}, {each.second_samples}",
            "" if each.p is None else f"{each.p:.2g}",
            f"changed{', ' + each.faster + ' faster' if each.faster else ''}" if each.changed else "",
        )
    return table


def varying_params_of(differences: list[Difference]) -> set[str]:
    """Names of parameters in which measurements of one id differ."""
    values: dict[tuple[str, str], set[str]] = {}
    for each in differences:
        for name, text in each.params.items():
            values.setdefault((each.id, name), set()).add(text)
    return {name for (_, name), texts in values.items() if len(texts) > 1}


def print_listing(results: tuple[Path, ...], only: tuple[str, ...], as_json: bool) -> None:
    """Without result lines where there are none here: what they took is then not recorded."""
    lines = papers.read_run_files(results or (RESULTS,)) if results or RESULTS.is_dir() else []
    listed = papers.listing(papers.load_papers(), lines, only)
    if as_json:
        print_json([each.as_dict() for each in listed])
        return
    console = Console(soft_wrap=True)
    for each in listed:
        console.print(f"{each.key}  {each.name}: {each.title}", style="bold", markup=False, highlight=False)
        rows = [("the paper", each.paper)]
        if each.command:
            rows += [
                ("again", each.command),
                ("writes", ", ".join(each.ids)),
                ("took", each.took),
                ("disk", each.disk),
            ]
        else:
            rows.append(("", each.why_not))
        for name, text in rows:
            console.print(f"  {name:<10}{text}", markup=False, highlight=False)

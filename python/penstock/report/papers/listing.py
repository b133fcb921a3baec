"""What measures each figure again, what that writes, and how long it took and how much disk it had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.report.figures import number
from penstock.report.papers.rows import Figure, Paper, Point, Term, is_wanted
from penstock.report.papers.run_files import RUN, RunLine
from penstock.report.papers.terms import RunIndex
from penstock.sizes import format_bytes, format_seconds

SECONDS = "details.wall_seconds"
DISK = ("details.edge_bytes", "params.file_bytes", "details.file_bytes")
"""Where a line says how large the file was that it read."""
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Listed:
    """A figure as --list has it.

    Attributes:
        paper: What the paper states, as text.
        command: Measures it again; "" where `why_not` says why there is none.
        ids: Of the result lines that the command writes.
        lines: Result lines of ours that the figure has now.
        seconds: What the commands took that wrote them, else what those lines took that record it; None where
            neither is known.
        timed: How many lines these are; 0: all, by their commands.
        commands: That wrote the lines, where they say so and each ran to its end.
        machine: What the commands ran on.
        disk_bytes: Of the largest file that they read, where they record it.
    """

    key: str
    name: str
    title: str
    paper: str
    command: str
    why_not: str
    ids: tuple[str, ...]
    lines: int
    seconds: float | None
    timed: int
    commands: tuple[str, ...]
    machine: str
    disk_bytes: int | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def took(self) -> str:
        if self.seconds is None:
            return NOT_RECORDED
        if self.commands:
            return f"{format_seconds(self.seconds)} on {self.machine}: {' && '.join(self.commands)}"
        return f"{format_seconds(self.seconds)} for {self.timed} of its {self.lines} result lines"

    @property
    def disk(self) -> str:
        return NOT_RECORDED if self.disk_bytes is None else format_bytes(self.disk_bytes)


def listing(papers: Sequence[Paper], lines: Iterable[RunLine], only: Sequence[str] = ()) -> list[Listed]:
    """In the papers' order, those that `only` names. Times and sizes are those of the lines that the page
    shows, and of no others."""
    index = RunIndex(lines)
    return [
        _listed(figure, index)
        for paper in papers
        for figure in paper.figures
        if is_wanted(paper, figure, only)
    ]


def _listed(figure: Figure, index: RunIndex) -> Listed:
    found = (index.point_or_smaller(point) for point in figure.points)
    used = list(dict.fromkeys(line for each in found if each is not None for line in each.lines))
    runs = _runs(used, index)
    seconds = [float(value) for line in used if (value := line.field(SECONDS)) is not None]
    if runs:
        seconds = [run.measurement.value for run in runs]
    sizes = [int(value) for line in used if (value := _file_bytes(line)) is not None]
    stated = [_stated(point) for point in figure.points if point.paper is not None]
    why_not = f"not yet: {figure.not_yet}" if figure.not_yet else figure.unmeasured
    if figure.needs:
        why_not = f"needs {figure.needs}"
    return Listed(
        key=figure.key,
        name=figure.name,
        title=figure.title,
        paper=", ".join(stated[:3]) + (", ..." if len(stated) > 3 else "") or "a picture only",
        command=figure.command,
        why_not="" if figure.command else why_not,
        ids=tuple(dict.fromkeys(id for point in figure.points for term in point.ours for id in _ids(term))),
        lines=len(used),
        seconds=sum(seconds) if seconds else None,
        timed=0 if runs else len(seconds),
        commands=tuple(run.measurement.params["command"] for run in runs),
        machine=runs[0].machine if runs else "",
        disk_bytes=max(sizes, default=None),
    )


def _runs(used: Sequence[RunLine], index: RunIndex) -> list[RunLine]:
    """The newest run of each command that wrote the lines, on their machine; none where one is not known."""
    newest = {(run.measurement.params.get("command"), run.machine): run for run in index.by_id.get(RUN, [])}
    wanted = dict.fromkeys((line.field("command"), line.machine) for line in used)
    return [newest[each] for each in wanted] if all(each in newest for each in wanted) else []


def _file_bytes(line: RunLine) -> Any:
    return next((value for path in DISK if (value := line.field(path)) is not None), None)


def _ids(term: Term) -> list[str]:
    parts = (part for part in (term.minus, term.over) if part is not None)
    return [term.id, *(id for part in parts for id in _ids(part))]


def _stated(point: Point) -> str:
    paper = point.paper
    text = f"{number(paper[0])} to {number(paper[1])}" if isinstance(paper, tuple) else number(paper)
    return f"{text} {point.unit}".rstrip()

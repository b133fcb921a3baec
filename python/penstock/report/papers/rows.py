"""The figures and tables of the papers, as data: what each paper states and which result lines answer it.

`data/papers.json` names the papers in their order, `data/PAPER.json` has their figures, `data/answers.json`
the points at the top of the page. A figure can be added without code. It states what the paper has and how
ours is selected; a measured number stands in no data file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

BETTER = ("higher", "lower", "neither")
PICKS = ("newest", "highest", "lowest")


@dataclass(frozen=True)
class Term:
    """Which result line to take a number from."""

    id: str
    where: Mapping[str, str]
    """Parameters of the line, or dotted paths in it, and their texts."""
    take: str = "value"
    """A dotted path in the line."""
    scale: float = 1
    """From the line's unit to the point's."""
    pick: str = "newest"
    """Among lines that match: the newest, or the highest or lowest of the newest one's commit."""
    over: Term | None = None
    """Divides, from the same machine."""
    minus: Term | None = None
    """Is subtracted first, from the same machine."""
    per_dollar: str | None = None
    """Media that takes the place of `instead_of`: the speed is multiplied by how many times cheaper it is."""
    instead_of: str = "dram"

    @classmethod
    def of(cls, facts: Mapping[str, Any], where: str) -> Term:
        if not isinstance(facts, Mapping):
            raise ValueError(f"{where}: ours is a selection of a result line, not {facts!r}")
        _known(facts, cls, where)
        if facts.get("pick", "newest") not in PICKS:
            raise ValueError(f"{where}: pick is one of {', '.join(PICKS)}")
        parts = {name: Term.of(facts[name], where) for name in ("over", "minus") if name in facts}
        return cls(**{"where": {}, **facts, **parts})


@dataclass(frozen=True)
class Point:
    """One value of a figure or table."""

    label: str
    paper: float | tuple[float, float] | None
    """As stated, or a range; None where the paper has it in a picture only."""
    ours: tuple[Term, ...]
    """More than one: their geometric mean. None: not measured."""
    unit: str
    better: str
    x: float | None = None
    """Where the point lies in the figure's plot."""
    why_not: str = ""
    """Why there is none of ours."""


@dataclass(frozen=True)
class Curve:
    """A sweep of ours, drawn beside the paper's points."""

    label: str
    id: str
    where: Mapping[str, str]
    x: str
    """The parameter along the axis."""
    take: str = "value"
    scale: float = 1
    x_scale: float = 1


@dataclass(frozen=True)
class Plot:
    x: str
    """The axis, with its unit."""
    y: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure, a table, or a result that the text alone states."""

    key: str
    """The paper's key and the figure's: bam.fig4."""
    name: str
    where: str
    """The section, for one who wants to read it."""
    title: str
    points: tuple[Point, ...]
    differs: str = ""
    """What is not as in the paper."""
    command: str = ""
    """Runs it again."""
    choice: str = ""
    """Where the paper contradicts itself: what was taken."""
    needs: str = ""
    """What a machine must have that none of the run files' has."""
    not_yet: str = ""
    """The capability that is still to come."""
    unmeasured: str = ""
    """Why there is nothing that a run could measure."""
    plot: Plot | None = None


@dataclass(frozen=True)
class Paper:
    key: str
    title: str
    machine: str
    """What the paper measured on."""
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Answer:
    """A question and the point that answers it."""

    question: str
    figure: str
    point: int
    yes: str = ""
    """Where the value answers with yes: "above" or "below" 1; "" for a question of how much."""


def load_papers() -> list[Paper]:
    """All papers. Raises ValueError where the data files do not fit together."""
    return [
        Paper(**facts, figures=tuple(_figure(facts["key"], figure) for figure in read_data(facts["key"])))
        for facts in read_data("papers")
    ]


def load_answers(papers: list[Paper]) -> list[Answer]:
    """The questions at the top. Raises ValueError for one whose point no paper has."""
    known = {figure.key: figure for paper in papers for figure in paper.figures}
    answers = [Answer(**facts) for facts in read_data("answers")]
    for answer in answers:
        if answer.figure not in known or answer.point >= len(known[answer.figure].points):
            raise ValueError(f"answers: {answer.figure} has no point {answer.point}")
    return answers


def is_wanted(paper: Paper, figure: Figure, only: Sequence[str]) -> bool:
    """Whether the figure's key, name, title or paper has one of the texts; without texts all are wanted."""
    text = f"{figure.key} {figure.name} {figure.title} {paper.title}".lower()
    return not only or any(each.lower() in text for each in only)


def read_data(name: str) -> Any:
    """A data file of this package."""
    return json.loads((resources.files(__package__) / "data" / f"{name}.json").read_text(encoding="utf-8"))


def _figure(paper: str, facts: Mapping[str, Any]) -> Figure:
    key = f"{paper}.{facts['key']}"
    _known(facts, Figure, key, "unit", "better")
    shared = {"unit": facts.get("unit", ""), "better": facts.get("better", "higher")}
    rest = {name: value for name, value in facts.items() if name not in ("unit", "better")}
    return Figure(
        **{
            **rest,
            "key": key,
            "points": tuple(_point({**shared, **point}, key) for point in facts["points"]),
            "plot": _plot(facts["plot"], key) if "plot" in facts else None,
        }
    )


def _point(facts: Mapping[str, Any], where: str) -> Point:
    _known(facts, Point, where)
    if facts["better"] not in BETTER:
        raise ValueError(f"{where}: better is one of {', '.join(BETTER)}")
    paper = facts.get("paper")
    terms = facts.get("ours", [])
    return Point(
        **{
            **facts,
            "paper": (float(paper[0]), float(paper[1])) if isinstance(paper, list) else paper,
            "ours": tuple(Term.of(term, where) for term in (terms if isinstance(terms, list) else [terms])),
        }
    )


def _plot(facts: Mapping[str, Any], where: str) -> Plot:
    _known(facts, Plot, where)
    for curve in facts["curves"]:
        _known(curve, Curve, where)
    return Plot(**{**facts, "curves": tuple(Curve(**curve) for curve in facts["curves"])})


def _known(facts: Mapping[str, Any], kind: type, where: str, *more: str) -> None:
    unknown = set(facts) - set(kind.__dataclass_fields__) - set(more)  # type: ignore[attr-defined]
    if unknown:
        raise ValueError(f"{where}: there is no {', '.join(sorted(unknown))} in a {kind.__name__.lower()}")

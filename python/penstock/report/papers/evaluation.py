"""The report as JSON: each figure's points with the paper's value, ours, and the lines that it is from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.report.papers.rows import Answer, Figure, Paper, Plot, Point, is_wanted
from penstock.report.papers.run_files import RunLine
from penstock.report.papers.terms import Found, RunIndex

LEVEL = 1.05
"""Ratios between 1 / LEVEL and LEVEL are level."""


def evaluate(
    papers: Sequence[Paper], answers: Sequence[Answer], lines: Sequence[RunLine], only: Sequence[str] = ()
) -> dict[str, Any]:
    """A dictionary that json can write, and from which the page is made.

    only: texts, one of which a figure's key, name, title or paper has; all figures where there is none.
    """
    index = RunIndex(lines)
    evaluated: list[dict[str, Any]] = []
    for paper in papers:
        chosen = [figure for figure in paper.figures if is_wanted(paper, figure, only)]
        if chosen:
            figures = [evaluate_figure(figure, index) for figure in chosen]
            evaluated.append(
                {"key": paper.key, "title": paper.title, "machine": paper.machine, "figures": figures}
            )
    by_key = {figure["key"]: figure for paper in evaluated for figure in paper["figures"]}
    used = {
        source["machine"]
        for figure in by_key.values()
        for point in figure["points"]
        for source in point["lines"]
    }
    return {
        "lines": len(lines),
        "machines": machines(line for line in lines if line.machine in used),
        "counts": counts(list(by_key.values())),
        "answers": [
            {
                "question": answer.question,
                "figure": answer.figure,
                "point": answer.point,
                "yes": answer.yes,
            }
            for answer in answers
            if answer.figure in by_key
        ],
        "papers": evaluated,
    }


def machines(lines: Iterable[RunLine]) -> list[dict[str, Any]]:
    """Each machine with what most of its lines say of it, their number, and their first and last date."""
    found: dict[str, dict[str, Any]] = {}
    hosts: dict[str, Counter[str]] = {}
    for line in lines:
        each = found.setdefault(line.machine, {"name": line.machine, "lines": 0, "first": "", "last": ""})
        each["lines"] += 1
        if line.host:
            hosts.setdefault(line.machine, Counter())[line.host] += 1
        date = line.measurement.date
        if date:
            each["first"] = each["first"] or date
            each["last"] = date
    for name, each in found.items():
        each["host"] = hosts[name].most_common(1)[0][0] if name in hosts else ""
    return sorted(found.values(), key=lambda machine: -machine["lines"])


def counts(figures: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Of figures by state and of points by verdict."""
    states = ("measured", "partly", "needs", "not yet", "unmeasured", "no line")
    found = dict.fromkeys(("figures", *states, "better", "level", "worse"), 0)
    for figure in figures:
        found["figures"] += 1
        found[figure["state"]] += 1
        for point in figure["points"]:
            if point["verdict"]:
                found[point["verdict"]] += 1
    return found


def evaluate_figure(figure: Figure, index: RunIndex) -> dict[str, Any]:
    points = [_point(point, index.point_or_smaller(point)) for point in figure.points]
    facts: dict[str, Any] = {
        "key": figure.key,
        "name": figure.name,
        "where": figure.where,
        "title": figure.title,
        "state": _state(figure, points),
        "points": points,
        "command": figure.command,
        "differs": figure.differs,
        "choice": figure.choice,
        "needs": figure.needs,
        "not_yet": figure.not_yet,
        "unmeasured": figure.unmeasured,
    }
    if figure.plot is not None:
        facts["plot"] = _plot(figure.plot, index)
    return facts


def _state(figure: Figure, points: Sequence[dict[str, Any]]) -> str:
    measured = sum(point["ours"] is not None for point in points)
    if measured:
        return "measured" if measured == len(points) else "partly"
    if figure.not_yet:
        return "not yet"
    if figure.unmeasured:
        return "unmeasured"
    return "needs" if figure.needs else "no line"


def _point(point: Point, found: Found | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "label": point.label,
        "x": point.x,
        "unit": point.unit,
        "better": point.better,
        "paper": list(point.paper) if isinstance(point.paper, tuple) else point.paper,
        "ours": None,
        "ratio": None,
        "verdict": "",
        "instead": "",
        "why_not": point.why_not,
        "lines": [],
    }
    if found is None:
        return facts
    first = found.lines[0]
    ratio = _ratio(point, found.value)
    facts |= {
        "ours": found.value,
        "ratio": ratio,
        "verdict": "" if ratio is None else verdict(ratio),
        "instead": found.instead,
        "lowest": found.lowest,
        "highest": found.highest,
        "repeats": first.field("repeats") or (len(first.samples()) or None),
        "spread": first.measurement.spread,
        "verified": found.verified,
        "bytes": _bytes(first),
        "lines": [_source(line) for line in found.lines],
    }
    return facts


def _ratio(point: Point, ours: float) -> float | None:
    """How many times better ours is: above 1 better, whatever the unit. 1 within a range of the paper's."""
    if point.paper is None or point.better == "neither" or ours <= 0:
        return None
    low, high = point.paper if isinstance(point.paper, tuple) else (point.paper, point.paper)
    if low <= ours <= high:
        return 1.0
    paper = high if ours > high else low
    if paper <= 0:
        return None
    return ours / paper if point.better == "higher" else paper / ours


def verdict(ratio: float) -> str:
    if ratio >= LEVEL:
        return "better"
    return "worse" if ratio <= 1 / LEVEL else "level"


def _bytes(line: RunLine) -> dict[str, int]:
    """What moved, by the tier that it came from; of a graph's run, lines of storage or sectors in place."""
    stated = line.field("bytes")
    if stated:
        return dict(stated)
    for path, tier in (("details.bytes_moved", "storage"), ("details.sector_bytes", "")):
        if moved := line.field(path):
            return {tier or line.measurement.id.split(".")[1]: int(moved)}
    return {}


def _source(line: RunLine) -> dict[str, Any]:
    return {
        "file": line.file,
        "line": line.number,
        "id": line.measurement.id,
        "machine": line.machine,
        "commit": line.measurement.commit,
        "date": line.measurement.date,
        "executor": line.executor,
        "command": line.field("command") or "",
    }


def _plot(plot: Plot, index: RunIndex) -> dict[str, Any]:
    curves = [{"label": curve.label, "points": index.curve(curve)} for curve in plot.curves]
    return {
        "x": plot.x,
        "y": plot.y,
        "log_x": plot.log_x,
        "log_y": plot.log_y,
        "curves": [curve for curve in curves if curve["points"]],
    }


def ratios(evaluated: dict[str, Any]) -> list[tuple[float, dict[str, Any], dict[str, Any]]]:
    """Every ratio with its figure and point, worst first."""
    found = [
        (point["ratio"], figure, point)
        for paper in evaluated["papers"]
        for figure in paper["figures"]
        for point in figure["points"]
        if point["ratio"] and math.isfinite(point["ratio"])
    ]
    return sorted(found, key=lambda each: each[0])

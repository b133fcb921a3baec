"""Plots as inline SVG. Colours are classes of the page's style sheet, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from penstock.report.figures import number
from penstock.report.papers.evaluation import LEVEL

WIDTH, HEIGHT = 520, 280
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 44
ROW = 26
WIDE = 16
"""Values that differ by more lie on a logarithmic axis."""
BAR_WIDTH, BAR_HEIGHT, BAR_DECADES = 96, 12, 1.0
SWARM_WIDTH = 960


@dataclass(frozen=True)
class Scale:
    """From values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        place, low, high = (
            (math.log(value), math.log(self.low), math.log(self.high))
            if self.log
            else (value, self.low, self.high)
        )
        return self.begin + (self.end - self.begin) * (place - low) / (high - low or 1)

    def ticks(self) -> list[float]:
        if not self.log:
            step = _round_step((self.high - self.low) / 5)
            first = math.ceil(self.low / step - 1e-9)
            return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]
        powers = range(math.floor(math.log10(self.low)) - 1, math.ceil(math.log10(self.high)) + 1)
        factors = (1, 2, 5) if self.high / self.low < 100 else (1,)
        ticks = [factor * 10.0**power for power in powers for factor in factors]
        return [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]


class BandedScale:
    """Logarithmic, with a wide band in the middle for what is level, where most values may lie."""

    HALF = 70

    def __init__(self, bound: float, width: float) -> None:
        self.middle, self.width = width / 2, width
        self.outer = Scale(LEVEL, bound, self.HALF, width / 2 - 16, True)

    def __call__(self, ratio: float) -> float:
        size = max(ratio, 1 / ratio)
        inside = math.log(size) / math.log(LEVEL) * self.HALF
        distance = inside if size <= LEVEL else self.outer(size)
        return self.middle + math.copysign(distance, ratio - 1)

    def band(self, floor: float) -> list[str]:
        left, tall = self.middle - self.HALF, floor + 2
        parts = [f'<rect class="band" x="{left}" y="0" width="{2 * self.HALF}" height="{tall}"/>']
        for tick in (tick for tick in self.outer.ticks() if tick >= 2):
            for ratio in (tick, 1 / tick):
                at = f"{self(ratio):.1f}"
                parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="{tall}"/>')
                parts.append(_text(at, floor + 18, number(ratio)))
        parts.append(f'<line class="base" x1="0" x2="{self.width}" y1="{tall}" y2="{tall}"/>')
        return [*parts, _text(self.middle, floor + 18, "level")]


def scale_over(values: Sequence[float], begin: float, end: float, log: bool = False) -> Scale:
    """With some room at both ends; from zero where it is linear."""
    low, high = min(values), max(values)
    if log and low > 0:
        return Scale(low / 1.15, high * 1.15, begin, end, True)
    return Scale(min(0.0, low), high * 1.08 or 1.0, begin, end, False)


def line_plot(plot: dict[str, Any], points: Sequence[dict[str, Any]]) -> str:
    """Curves of ours, the paper's points as rings. Empty where there is nothing to draw."""
    marks = [(point["x"], _middle(point["paper"]), point["label"]) for point in points if _is_mark(point)]
    curves = plot["curves"]
    xs = [x for curve in curves for x, _ in curve["points"]] + [mark[0] for mark in marks]
    ys = [y for curve in curves for _, y in curve["points"]] + [mark[1] for mark in marks]
    if not curves or not xs:
        return ""
    across = scale_over(xs, LEFT, WIDTH - RIGHT, plot["log_x"])
    up = scale_over(ys, HEIGHT - BOTTOM, TOP, plot["log_y"])
    parts = [*_axes(across, up, plot["x"], plot["y"])]
    for index, curve in enumerate(curves):
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve["points"])
        parts.append(f'<polyline class="curve c{index}" points="{path}"/>')
        parts += [
            f'<circle class="dot c{index}" cx="{across(x):.1f}" cy="{up(y):.1f}" r="3">'
            f"<title>{escape(curve['label'])}: {number(y)} at {number(x)}</title></circle>"
            for x, y in curve["points"]
        ]
    parts += [
        f'<circle class="ring" cx="{across(x):.1f}" cy="{up(y):.1f}" r="5.5">'
        f"<title>paper, {escape(label)}: {number(y)}</title></circle>"
        for x, y, label in marks
    ]
    return _legend([curve["label"] for curve in curves], bool(marks)) + _plot(HEIGHT, parts, plot["y"])


def pair_plots(points: Sequence[dict[str, Any]]) -> str:
    """A plot for each unit that several points of ours have."""
    measured = [point for point in points if point["ours"] is not None]
    units = dict.fromkeys(point["unit"] for point in measured)
    groups = [[point for point in measured if point["unit"] == unit] for unit in units]
    drawn = [_pair_plot(group) for group in groups if len(group) > 1]
    with_paper = any(point["paper"] is not None for point in measured)
    return _legend(["Penstock"], with_paper) + "".join(drawn) if drawn else ""


def _pair_plot(points: Sequence[dict[str, Any]]) -> str:
    """A row for each point: the paper's ring where it has a value, our dot, a line between them."""
    papers = [None if point["paper"] is None else _middle(point["paper"]) for point in points]
    values = [value for value in (*papers, *(point["ours"] for point in points)) if value is not None]
    height = TOP + ROW * len(points) + BOTTOM - 8
    label_width = 236
    across = scale_over(values, label_width, WIDTH - RIGHT, 0 < WIDE * min(values) < max(values))
    floor = height - BOTTOM + 8
    parts = _ticks_across(across, TOP, floor)
    for index, (point, stated) in enumerate(zip(points, papers, strict=True)):
        y = TOP + ROW * (index + 0.5)
        ours = across(point["ours"])
        name = escape(_short(point["label"]))
        parts.append(f'<text class="name" x="{label_width - 10}" y="{y + 4:.1f}">{name}</text>')
        if stated is not None:
            paper, between = f"{across(stated):.1f}", f"between {point['verdict']}"
            parts += [
                f'<line class="{between}" x1="{paper}" x2="{ours:.1f}" y1="{y}" y2="{y}"/>',
                f'<circle class="ring" cx="{paper}" cy="{y}" r="5.5"><title>paper</title></circle>',
            ]
        parts.append(
            f'<circle class="dot c0" cx="{ours:.1f}" cy="{y}" r="4.5"><title>Penstock</title></circle>'
        )
    parts.append(_text(WIDTH - RIGHT, height - 4, _unit(points[0]["unit"]), "end"))
    return _plot(height, parts, "the paper's values beside ours")


def ratio_bar(ratio: float, verdict: str) -> str:
    """From the middle, which is 1, to the right where ours is better; an arrow where it leaves the scale."""
    middle = BAR_WIDTH / 2
    length = max(-1.0, min(1.0, math.log10(ratio) / BAR_DECADES)) * middle
    x = middle + min(0.0, length)
    return (
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" aria-hidden="true">'
        f'<line class="grid" x1="0" x2="{BAR_WIDTH}" y1="6" y2="6"/>'
        f'<rect class="{verdict}" x="{x:.1f}" y="2" width="{max(abs(length), 1):.1f}" height="8" rx="1"/>'
        f'<line class="one" x1="{middle}" x2="{middle}" y1="0" y2="{BAR_HEIGHT}"/></svg>'
    )


def overview(ratios: Sequence[tuple[float, dict[str, Any], dict[str, Any]]]) -> str:
    """Each ratio as a dot over a logarithmic axis, stacked; a dot is a link to its figure."""
    if not ratios:
        return ""
    radius = 5.0
    values = [ratio for ratio, _, _ in ratios]
    across = BandedScale(max(*values, 1 / min(values), 2.0), SWARM_WIDTH)
    stacks: dict[int, int] = {}
    dots = []
    for ratio, figure, point in ratios:
        column = round(across(ratio) / (2 * radius))
        level = stacks[column] = stacks.get(column, 0) + 1
        dots.append((column * 2 * radius, level, figure, point, ratio))
    floor = 26 + max(stacks.values()) * 2 * radius
    parts = across.band(floor)
    for x, level, figure, point, ratio in dots:
        title = f"{figure['name']}, {point['label']}: {number(ratio)} times"
        y = floor - (level - 0.5) * 2 * radius
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius - 0.7}"'
        dot = f'<circle class="{point["verdict"]}" {place}><title>{escape(title)}</title></circle>'
        parts.append(f'<a href="#{escape(figure["key"])}">{dot}</a>')
    label = "Penstock over the paper, each value a dot"
    return _svg(floor + 30, parts, label, SWARM_WIDTH, "swarm")


def _axes(across: Scale, up: Scale, x: str, y: str) -> list[str]:
    floor = HEIGHT - BOTTOM
    parts = []
    for tick in up.ticks():
        at = up(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(LEFT - 7, round(at + 4, 1), number(tick), "end"))
    parts += [_text(f"{across(tick):.1f}", floor + 16, number(tick)) for tick in across.ticks()]
    parts.append(f'<line class="base" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x))
    turned = f'transform="translate(13 {floor / 2}) rotate(-90)"'
    return [*parts, f'<text class="axis" {turned} text-anchor="middle">{escape(y)}</text>']


def _ticks_across(across: Scale, top: float, floor: float) -> list[str]:
    parts = []
    for tick in across.ticks():
        at = f"{across(tick):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{top}" y2="{floor}"/>')
        parts.append(_text(at, floor + 16, number(tick)))
    return parts


def _text(x: str | float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text class="axis" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _plot(height: float, parts: Sequence[str], label: str) -> str:
    """Scrolls where it is wider than the screen, so that its text stays readable."""
    return f'<div class="scroll">{_svg(height, parts, label)}</div>'


def _svg(height: float, parts: Sequence[str], label: str, width: int = WIDTH, kind: str = "plot") -> str:
    box = f'viewBox="0 0 {width} {height:.0f}"'
    return f'<svg class="{kind}" {box} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _legend(labels: Sequence[str], with_paper: bool) -> str:
    items = [f'<li><i class="c{index}"></i>{escape(label)}</li>' for index, label in enumerate(labels)]
    if with_paper:
        items.append('<li><i class="ring"></i>paper</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def _is_mark(point: dict[str, Any]) -> bool:
    return point["x"] is not None and point["paper"] is not None


def _middle(paper: Any) -> float:
    """Of a range."""
    return float(sum(paper) / len(paper) if isinstance(paper, list) else paper)


def _short(text: str, letters: int = 38) -> str:
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def _unit(unit: str) -> str:
    return {"x": "times"}.get(unit, unit)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least or 1))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= least), 10 * power)

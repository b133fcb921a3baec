"""Which measurements belong on one line of a plot, and over what; the rest are bars."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.bench.measurement import Measurement
from penstock.report.figures import varying_params

SIZES = ("line_bytes", "block_bytes")


@dataclass(frozen=True)
class Point:
    x: float
    measurement: Measurement


@dataclass(frozen=True)
class Series:
    """Measurements that differ in one numeric parameter, in its order."""

    label: str
    axis: str
    unit: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Bar:
    label: str
    measurement: Measurement


def arrange(measurements: list[Measurement]) -> tuple[list[Series], list[Bar]]:
    """All measurements, each in one series or as one bar."""
    families: dict[tuple[str, str], list[Measurement]] = {}
    for m in measurements:
        families.setdefault((family(m), m.unit), []).append(m)
    series: list[Series] = []
    bars: list[Bar] = []
    for (name, _), members in families.items():
        varying = _varying(members)
        axis = _axis(members, varying)
        if axis is not None:
            of_one_id = len({m.id for m in members}) == 1
            others = [other for other in varying if other != axis]
            series += _lines(members, axis, others, members[0].id if of_one_id else name)
            continue
        telling = varying_params(members)  # among equal ids
        bars += [Bar(_label(m.id, m, telling), m) for m in members]
    return series, bars


def family(m: Measurement) -> str:
    """The id without the size of a line or command, which is a parameter: "miss.line" of miss.line4k."""
    for name in SIZES:
        size = m.params.get(name, "")
        if size.isdecimal() and int(size) > 0:
            texts = {size, f"{int(size) // 1024}k"}
            return re.sub(rf"\.?(?<![0-9])({'|'.join(sorted(texts))})(?=\.|$)", "", m.id, count=1)
    return m.id


def _varying(members: list[Measurement]) -> list[str]:
    """Names of the parameters that are not the same in all of a family."""
    names = dict.fromkeys(name for m in members for name in m.params)
    return [name for name in names if len({m.params.get(name) for m in members}) > 1]


def _axis(same_id: list[Measurement], varying: list[str]) -> str | None:
    """The numeric parameter with most values, if lines over it have more than one point."""
    numeric = [name for name in varying if all(_is_number(m.params.get(name)) for m in same_id)]
    if not numeric:
        return None
    axis = max(numeric, key=lambda name: len({m.params[name] for m in same_id}))
    others = [name for name in varying if name != axis and not _follows(name, axis, same_id)]
    lines = {tuple(m.params.get(name) for name in others) for m in same_id}
    return axis if len(lines) < len(same_id) else None


def _lines(same_id: list[Measurement], axis: str, others: list[str], name_of_all: str) -> list[Series]:
    telling = [name for name in others if not _follows(name, axis, same_id)]
    lines: dict[str, list[Measurement]] = {}
    for m in same_id:
        lines.setdefault(_label(name_of_all, m, telling), []).append(m)
    return [
        Series(
            label,
            axis,
            of_line[0].unit,
            tuple(sorted((Point(float(m.params[axis]), m) for m in of_line), key=lambda p: p.x)),
        )
        for label, of_line in lines.items()
    ]


def _follows(name: str, axis: str, same_id: list[Measurement]) -> bool:
    """Whether the axis's value says the other's, so that it distinguishes no lines."""
    pairs = {(m.params.get(axis), m.params.get(name)) for m in same_id}
    return len(pairs) == len({x for x, _ in pairs})


def _label(name_of_all: str, m: Measurement, names: list[str]) -> str:
    return ", ".join(
        [name_of_all, *(f"{name.replace('_', ' ')} {m.params.get(name, '?')}" for name in names)]
    )


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True

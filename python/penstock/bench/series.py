"""Which measurements belong on one line of a plot, and over what; the rest are bars."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.bench.measurement import Measurement
from penstock.bench.table import varying_params


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
    by_id: dict[tuple[str, str], list[Measurement]] = {}
    for m in measurements:
        by_id.setdefault((m.id, m.unit), []).append(m)
    series: list[Series] = []
    bars: list[Bar] = []
    for same_id in by_id.values():
        varying = varying_params(same_id)
        axis = _axis(same_id, varying)
        if axis is None:
            bars += [Bar(_label(m, varying), m) for m in same_id]
        else:
            series += _lines(same_id, axis, [name for name in varying if name != axis])
    return series, bars


def _axis(same_id: list[Measurement], varying: list[str]) -> str | None:
    """The numeric parameter with most values, if lines over it have more than one point."""
    numeric = [name for name in varying if all(_is_number(m.params.get(name)) for m in same_id)]
    if not numeric:
        return None
    axis = max(numeric, key=lambda name: len({m.params[name] for m in same_id}))
    others = [name for name in varying if name != axis and not _follows(name, axis, same_id)]
    lines = {tuple(m.params.get(name) for name in others) for m in same_id}
    return axis if len(lines) < len(same_id) else None


def _lines(same_id: list[Measurement], axis: str, others: list[str]) -> list[Series]:
    telling = [name for name in others if not _follows(name, axis, same_id)]
    lines: dict[str, list[Measurement]] = {}
    for m in same_id:
        lines.setdefault(_label(m, telling), []).append(m)
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
    """Whether the axis's value says the other's, so that it tells no lines apart."""
    pairs = {(m.params.get(axis), m.params.get(name)) for m in same_id}
    return len(pairs) == len({x for x, _ in pairs})


def _label(m: Measurement, names: list[str]) -> str:
    return ", ".join([m.id, *(f"{name.replace('_', ' ')} {m.params.get(name, '?')}" for name in names)])


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True

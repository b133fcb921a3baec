"""Dates and times: days and ticks, and their parts."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from penstock.columns.expressions import Expr
from penstock.columns.graph import Typed
from penstock.columns.shown import mismatch, shown
from penstock.columns.types import DATE, INTEGER, PER_SECOND, ColumnType

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph


def in_own_time(graph: Graph, value: Typed, arg: Expr, name: str) -> Typed:
    """A time as clocks of its zone show it."""
    if value.type.zone is None:
        return value
    ahead = offset_of(value.type.zone)
    if ahead is None:
        raise TypeError(
            f"{name} of {shown(arg)}: the clocks of {value.type.zone} change: convert the column to "
            "UTC or to times without a zone before"
        )
    if ahead == 0:
        return value
    ticks = graph.integer(ahead * PER_SECOND[value.type.unit])
    return Typed(graph.add("add", value.node, ticks), value.type)


def date_part(graph: Graph, name: str, arg: Expr) -> Typed:
    value = graph.lower(arg)
    if value.type.kind == "date":
        if name == "date":
            return value
        if name != "hour":
            return Typed(graph.add(name, value.node), INTEGER)
    if value.type.kind != "timestamp":
        raise TypeError(f"{shown(arg)} is {value.type}: a date or a time is wanted for {name}")
    second = PER_SECOND[value.type.unit]
    value = in_own_time(graph, value, arg, name)
    if name == "hour":
        hours = graph.add("floor_divide", value.node, graph.integer(3600 * second))
        return Typed(graph.add("modulo", hours, graph.integer(24)), INTEGER)
    days = graph.add("floor_divide", value.node, graph.integer(86400 * second))
    return Typed(days, DATE) if name == "date" else Typed(graph.add(name, days), INTEGER)


def date_arithmetic(graph: Graph, name: str, a: Typed, b: Typed, args: tuple[Expr, ...]) -> Typed:
    """Dates and days; the days or ticks between two."""
    if name == "subtract" and a.type.kind == b.type.kind and a.type.unit == b.type.unit:
        return Typed(graph.add(name, a.node, b.node), INTEGER)
    whole = (a.type.kind, b.type.kind)
    if whole == ("date", "integer") and name in ("add", "subtract"):
        return Typed(graph.add(name, a.node, b.node), DATE)
    if whole == ("integer", "date") and name == "add":
        return Typed(graph.add(name, a.node, b.node), DATE)
    raise mismatch(name, args, a, b)


def in_unit(graph: Graph, value: Typed, other: ColumnType) -> Typed:
    """Ticks of the finer of two units."""
    times = PER_SECOND[other.unit] // PER_SECOND[value.type.unit]
    if times <= 1:
        return value
    return Typed(graph.add("multiply", value.node, graph.integer(times)), other)


def as_time(graph: Graph, value: Typed, other: ColumnType) -> Typed:
    if value.type.kind == "timestamp":
        return value
    return Typed(graph.add("multiply", value.node, graph.integer(86400 * PER_SECOND[other.unit])), other)


def offset_of(zone: str) -> int | None:
    """Seconds that a zone is ahead of UTC; None where that changes."""
    if zone.upper() in ("UTC", "ETC/UTC", "Z", "GMT"):
        return 0
    if len(zone) == 6 and zone[0] in "+-" and zone[3] == ":" and (zone[1:3] + zone[4:]).isdigit():
        seconds = int(zone[1:3]) * 3600 + int(zone[4:]) * 60
        return -seconds if zone[0] == "-" else seconds
    return None


def as_date(value: Any, other: Typed) -> Any:
    """A text that stands beside a date is one."""
    if not isinstance(value, str) or other.type.kind not in ("date", "timestamp"):
        return value
    try:
        made = datetime.datetime.fromisoformat(value)
    except ValueError:
        raise TypeError(
            f"{value!r}: it is no date or time: give it as 2024-01-31 or 2024-01-31 12:00"
        ) from None
    return made.date() if other.type.kind == "date" and made.time() == datetime.time() else made

"""Dates and times: days and ticks, and their parts."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

from penstock.columns.expressions import Expr
from penstock.columns.graph import Typed
from penstock.columns.shown import mismatch, shown
from penstock.columns.types import DATE, FLOAT, INTEGER, PER_SECOND, ColumnType

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph

TIME = ColumnType("timestamp", unit="us")
WRITTEN = re.compile(
    r"(\d{1,4})([-/])(\d{1,2})\2(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    r"(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
DATE_PARTS = (
    "year", "quarter", "month", "week", "day", "ordinal_day", "weekday", "hour", "minute", "second", "epoch",
)  # fmt: skip
DAYS_ALONE = "days alone"
"""Of a difference in SQL: that of two times is no number."""
OF_DAY = {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}
"""Seconds of a part, and how many there are."""
OF_UNIT = {"1h": 3600, "1m": 60, "1s": 1}
OF_TIME = {"hour": 3600, "minute": 60, "second": 1}
OF_DATE = {"day": 1, "week": 7, "month": 1, "quarter": 3, "year": 12}
"""Days or months."""


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
    if value.type.kind == "date" and name not in OF_DAY and name != "epoch":
        return Typed(_day_part(graph, name, value.node), INTEGER)
    if value.type.kind not in ("date", "timestamp"):
        raise TypeError(f"{shown(arg)} is {value.type}: a date or a time is wanted for {name}")
    if name == "epoch":
        ticks = graph.add("convert_to_float", value.node, is_number=True)
        if value.type.kind == "date":
            return Typed(graph.add("multiply", ticks, graph.float(86400.0), is_number=True), FLOAT)
        second = graph.float(float(PER_SECOND[value.type.unit]))
        return Typed(graph.add("divide", ticks, second, is_number=True), FLOAT)
    value = in_own_time(graph, as_time(graph, value, TIME), arg, name)
    second = PER_SECOND[value.type.unit]
    if name in OF_DAY:
        seconds, units = OF_DAY[name]
        whole = graph.add("floor_divide", value.node, graph.integer(seconds * second))
        return Typed(graph.add("modulo", whole, graph.integer(units)), INTEGER)
    days = graph.add("floor_divide", value.node, graph.integer(86400 * second))
    return Typed(_day_part(graph, name, days), INTEGER)


def _day_part(graph: Graph, name: str, days: int) -> int:
    """A part of days since 1970."""
    if name == "quarter":
        return _plus(graph, _over(graph, _plus(graph, graph.add("month", days), -1), 3), 1)
    if name == "ordinal_day":
        first = _day_of(graph, graph.add("year", days), graph.integer(1))
        return _plus(graph, graph.add("subtract", days, first), 1)
    if name == "week":  # its Thursday is in the year that the week is of
        thursday = _plus(graph, graph.add("subtract", days, graph.add("weekday", days)), 4)
        of_year = _plus(graph, _day_part(graph, "ordinal_day", thursday), -1)
        return _plus(graph, graph.add("floor_divide", of_year, graph.integer(7)), 1)
    return graph.add(name, days)


def _plus(graph: Graph, node: int, more: int) -> int:
    return graph.add("add", node, graph.integer(more))


def _times(graph: Graph, node: int, by: int) -> int:
    return graph.add("multiply", node, graph.integer(by))


def _over(graph: Graph, node: int, by: int) -> int:
    return graph.add("floor_divide", node, graph.integer(by))


def _day_of(graph: Graph, year: int, month: int) -> int:
    """The first day of a month (Hinnant, "chrono-compatible low-level date algorithms", days_from_civil)."""
    moved = _plus(graph, month, 9)
    shifted = graph.add("modulo", moved, graph.integer(12))
    year = graph.add("add", year, _plus(graph, _over(graph, moved, 12), -1))
    leaps = graph.add("subtract", _over(graph, year, 4), _over(graph, year, 100))
    leaps = graph.add("add", leaps, _over(graph, year, 400))
    of_year = _over(graph, _plus(graph, _times(graph, shifted, 153), 2), 5)
    days = graph.add("add", graph.add("add", _times(graph, year, 365), leaps), of_year)
    return _plus(graph, days, -719468)


def truncated(graph: Graph, value: Typed, arg: Expr, every: str) -> Typed:
    """When a unit of time began: a date for days and more."""
    if value.type.kind not in ("date", "timestamp"):
        raise TypeError(f"{shown(arg)} is {value.type}: a date or a time is wanted for truncate")
    if every in OF_UNIT:
        value = as_time(graph, value, TIME)
        ticks = OF_UNIT[every] * PER_SECOND[value.type.unit]
        return Typed(_times(graph, _over(graph, value.node, ticks), ticks), value.type)
    days = value.node
    if value.type.kind == "timestamp":
        value = in_own_time(graph, value, arg, "truncate")
        days = _over(graph, value.node, 86400 * PER_SECOND[value.type.unit])
    if every == "1d":
        return Typed(days, DATE)
    if every == "1w":
        return Typed(_plus(graph, graph.add("subtract", days, graph.add("weekday", days)), 1), DATE)
    month = graph.add("month", days)
    if every == "1q":
        month = _plus(graph, _times(graph, _over(graph, _plus(graph, month, -1), 3), 3), 1)
    month = graph.integer(1) if every == "1y" else month
    return Typed(_day_of(graph, graph.add("year", days), month), DATE)


def later(graph: Graph, value: Typed, arg: Expr, number: int, unit: str) -> Typed:
    """So many units later: a date, if it was one and the units are no less than days."""
    if value.type.kind not in ("date", "timestamp") or unit not in (*OF_TIME, *OF_DATE):
        units = ", ".join((*OF_DATE, *OF_TIME))
        raise TypeError(f"{shown(arg)} is {value.type}: dates and times are moved by {units}")
    if unit in OF_TIME:
        value = as_time(graph, value, TIME)
        return Typed(
            _plus(graph, value.node, number * OF_TIME[unit] * PER_SECOND[value.type.unit]), value.type
        )
    day = 1 if value.type.kind == "date" else 86400 * PER_SECOND[value.type.unit]
    if unit in ("day", "week"):
        return Typed(_plus(graph, value.node, number * OF_DATE[unit] * day), value.type)
    days = value.node if day == 1 else _over(graph, value.node, day)
    months = _plus(graph, _times(graph, graph.add("year", days), 12), number * OF_DATE[unit] - 1)
    months = graph.add("add", months, graph.add("month", days))
    year, month = _over(graph, months, 12), graph.add("modulo", months, graph.integer(12))
    first = _day_of(graph, year, _plus(graph, month, 1))
    after = _plus(graph, months, 1)
    next_month = _plus(graph, graph.add("modulo", after, graph.integer(12)), 1)
    last = graph.add("subtract", _day_of(graph, _over(graph, after, 12), next_month), first)
    of_month = graph.add("minimum", graph.add("day", days), last)
    moved = _plus(graph, graph.add("add", first, of_month), -1)
    if day == 1:
        return Typed(moved, DATE)
    of_day = graph.add("modulo", value.node, graph.integer(day))
    return Typed(graph.add("add", _times(graph, moved, day), of_day), value.type)


def date_arithmetic(
    graph: Graph, name: str, a: Typed, b: Typed, args: tuple[Expr, ...], times: str | None
) -> Typed:
    """Dates and days; the days or ticks between two.

    Args:
        times: DAYS_ALONE: the difference of two times is refused.
    """
    kinds = {a.type.kind, b.type.kind}
    if times == DAYS_ALONE and name == "subtract" and "timestamp" in kinds and "integer" not in kinds:
        raise TypeError(
            f"{shown(args[0])} - {shown(args[1])}: the difference of two times is an INTERVAL, which no "
            "column has: subtract their EPOCH, or use DATE_DIFF"
        )
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


def time_of(text: str) -> datetime.datetime:
    """A date, or a date and a time, as SQL has them written.

    Raises:
        ValueError: It is none.
    """
    found = WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    year, _, month, day, hour, minute, second, part, zone = found.groups()
    made = datetime.datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
        int((part or "").ljust(6, "0")[:6]),
    )  # fmt: skip
    if zone is None:
        return made
    ahead = 0 if zone == "Z" else int(zone[1:3]) * 60 + int(zone[3:].strip(":") or 0)
    shift = datetime.timedelta(minutes=-ahead if zone[0] == "-" else ahead)
    return made.replace(tzinfo=datetime.timezone(shift))


def as_date(value: Any, other: Typed) -> Any:
    """A text that stands beside a date is one, whatever time it has, and beside a time a time."""
    if not isinstance(value, str) or other.type.kind not in ("date", "timestamp"):
        return value
    try:
        made = time_of(value)
    except ValueError:
        raise TypeError(
            f"{value!r}: it is no date or time: give it as 2024-01-31 or 2024-01-31 12:00"
        ) from None
    return made.date() if other.type.kind == "date" else made

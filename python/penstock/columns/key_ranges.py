"""What values an expression may have, as far as that is known before columns are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.columns.expressions import Alias, Call, Column, Expr, Value
from penstock.columns.lowering import Graph
from penstock.columns.types import PER_SECOND

if TYPE_CHECKING:
    from penstock.columns.query import Query

PARTS = {
    "quarter": range(1, 5), "month": range(1, 13), "week": range(1, 54), "day": range(1, 32),
    "ordinal_day": range(1, 367), "weekday": range(1, 8), "hour": range(24), "minute": range(60),
    "second": range(60),
}  # fmt: skip


def values_of(query: Query, graph: Graph, expression: Expr) -> range | None:
    """All values that an expression of integers may have, from its least to its greatest; None: not known."""
    match expression:
        case Alias(of, _):
            return values_of(query, graph, of)
        case Column(name):
            return _of_column(query, graph, name)
        case Call(name, _) if name in PARTS:
            return PARTS[name]
        case Value(value) if type(value) is int:
            return range(value, value + 1)
        case Call("select", (_, a, b)) if graph.lower(expression).type.kind == "integer":
            return _either(query, graph, a, b)
        case Call("modulo", (_, Value(divisor))) if type(divisor) is int and divisor > 0:
            return range(divisor) if graph.lower(expression).type.kind == "integer" else None
        case Call("year" | "date" as name, (of,)):
            days = _days(query, graph, of)
            if days is None or name == "date":
                return days
            return range(_year(days[0]), _year(days[-1]) + 1) if days else days
    return None


def _either(query: Query, graph: Graph, *given: Expr) -> range | None:
    """Of a choice between integers; a null is none."""
    least, end = [], []
    for each in given:
        if isinstance(each, Value) and each.value is None:
            continue
        values = values_of(query, graph, each)
        if values is None:
            return None
        if values:
            least.append(values.start)
            end.append(values.stop)
    return range(min(least), max(end)) if least else range(0)


def _of_column(query: Query, graph: Graph, name: str) -> range | None:
    for join in query.joins:
        if name in join.names:
            extremes = join.extremes(graph, join.names[name])
            return range(0) if extremes is None else range(extremes[0], extremes[1] + 1)
    place = query.table.place_of(name)
    return range(place.base, place.base + (1 << place.packed_bits)) if place.encoding == "packed" else None


def _days(query: Query, graph: Graph, of: Expr) -> range | None:
    """Days that a date or a time may be on."""
    kind, values = graph.lower(of).type, values_of(query, graph, of)
    if not values or kind.kind == "date":
        return values
    day, beside = 86400 * PER_SECOND[kind.unit], 0 if kind.zone is None else 1
    return range(values[0] // day - beside, values[-1] // day + 1 + beside)


def _year(day: int) -> int:
    return int(np.datetime64(day, "D").astype("datetime64[Y]").astype(int)) + 1970


def has_squares(query: Query, graph: Graph, expression: Expr | None) -> bool:
    """Whether it is of integers or decimals whose squares fit 64 bits; where that is not known, a pass finds
    their extremes."""
    if expression is None or graph.lower(expression).type.kind not in ("integer", "decimal"):
        return False
    values = values_of(query, graph, expression)
    if values is None:
        extremes = (expression.min().alias("low"), expression.max().alias("high"))
        found = replace(query, keys=(), aggregates=extremes, limit=None, having=None).grouped().columns
        low, high = (int(each.bits.view(np.int64)[0]) for each in found)
        values = range(low, high + 1) if found[0].valid[0] else range(0)
    return not values or max(-values[0], values[-1]) < 1 << 31

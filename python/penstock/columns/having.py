"""Conditions of groups: what of them the engine knows before groups leave its memory."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from fractions import Fraction

from penstock.columns.aggregating import AggregatePlan
from penstock.columns.assembling import sortable
from penstock.columns.expressions import Aggregate, Alias, Call, Column, Expr, Value, name_of
from penstock.columns.graph import INT64

MOST_RANGES = 8
"""As libs/columns/group_bodies.hpp has it."""


def ranges_of(
    condition: Expr | None, aggregates: tuple[Expr, ...], plan: AggregatePlan, first: int
) -> list[tuple[int, int, bool, int, int]]:
    """Ranges of words that groups which meet a condition are in, from comparisons of sums, counts and
    extremes with numbers. Groups that do not meet it may be in them, too.

    Args:
        condition: Of the result's columns.
        aggregates: What these are.
        plan: The sums.
        first: The word of the first one.
    """
    by_name = {name_of(each): each.of if isinstance(each, Alias) else each for each in aggregates}
    places = plan.places(first)
    found = []
    for name, value, least, most in _bounds(condition):
        aggregate = by_name.get(name)
        if (
            not isinstance(aggregate, Aggregate)
            or id(aggregate) not in plan.types
            or aggregate.kind == "mean"
        ):
            continue
        kind, number, of = plan.types[id(aggregate)]
        place = places[number]
        if not of.is_numeric:
            continue
        if place.count is not None and not place.values:
            found.append((place.count, 0, False, *_whole(value, 0, least, most)))
        elif not of.is_number:
            upper = place.low + 1 if kind == "integer_sum" else 0
            found.append((place.low, upper, False, *_whole(value, of.scale, least, most)))
        else:  # extremes are sortable in their words
            found.append((place.low, 0, kind == "number_sum", *_sortable(value, least, most)))
    return found[:MOST_RANGES]


def _bounds(condition: Expr | None) -> Iterator[tuple[str, Fraction, bool, bool]]:
    """What columns are compared with: a number, and whether it is their least, and their greatest."""
    match condition:
        case Call("logic_and", (a, b)):
            yield from _bounds(a)
            yield from _bounds(b)
        case Call("less" | "less_equal" | "equal" as name, (a, b)):
            for column, literal, first in ((a, b, True), (b, a, False)):
                value = _number(literal)
                if isinstance(column, Column) and value is not None:
                    yield column.name, value, name == "equal" or not first, name == "equal" or first


def _number(literal: Expr) -> Fraction | None:
    value = literal.value if isinstance(literal, Value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal)):
        return None
    return Fraction(value) if math.isfinite(value) else None


def _whole(value: Fraction, scale: int, least: bool, most: bool) -> tuple[int, int]:
    """Of integers with digits behind the point; by one more than it says: the literal may be rounded."""
    units = value * 10**scale
    low = math.floor(units) - 1 if least else INT64[0]
    high = math.ceil(units) + 1 if most else INT64[-1]
    return min(max(low, INT64[0]), INT64[-1]), min(max(high, INT64[0]), INT64[-1])


def _sortable(value: Fraction, least: bool, most: bool) -> tuple[int, int]:
    number = float(value)
    low = sortable(math.nextafter(number, -math.inf)) if least else INT64[0]
    return low, sortable(math.nextafter(number, math.inf)) if most else INT64[-1]

"""Rounding of numbers, and casts: of numbers, texts and times."""

from __future__ import annotations

import datetime
import decimal
import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.columns.expressions import Call, Expr, when
from penstock.columns.graph import INT64, Typed
from penstock.columns.lowering_texts import text_of_words
from penstock.columns.lowering_times import TIME, as_time, in_own_time, time_of
from penstock.columns.parts import TextFunction
from penstock.columns.shown import shown
from penstock.columns.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    MOST_DIGITS,
    PER_SECOND,
    ColumnType,
    ticks_of,
)

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph


SPLITTER = float((1 << 27) + 1)
MOST_PLACES = 15
BLANKS = " \t\n\v\f\r"
STRAY = re.compile(r"(?<!\d)_|_(?!\d)")
"""Underscores that do not stand between digits."""
TRUTHS = {"true": 1, "t": 1, "1": 1, "yes": 1, "y": 1, "false": 0, "f": 0, "0": 0, "no": 0, "n": 0}


def rounded(graph: Graph, value: Typed, digits: int, arg: Expr) -> Typed:
    """To so many digits behind the point, halves away from zero."""
    if value.type.kind == "integer" and digits >= 0:
        return value
    if value.type.kind in ("integer", "decimal"):
        scale = min(digits, value.type.scale)
        node = _in_units(graph, value.node, 10 ** (value.type.scale - scale))
        if scale < 0:
            return Typed(graph.add("multiply", node, graph.integer(10**-scale)), INTEGER)
        kind = ColumnType("decimal", scale=scale) if value.type.kind == "decimal" else INTEGER
        return Typed(node, kind)
    if not value.type.is_number:
        raise TypeError(f"{shown(arg)} is {value.type}: a number is wanted for round")
    if not 0 <= digits <= MOST_PLACES:
        raise ValueError(f"round({shown(arg)}, {digits}): 0 to {MOST_PLACES} digits are rounded to")
    return Typed(_rounded_number(graph, value.node, 10**digits), FLOAT)


def quotient(graph: Graph, a: Expr, b: Expr) -> Typed:
    """As SQL's // has it: of integers towards zero, of other numbers what / gives."""
    if any(graph.lower(each).type.kind != "integer" for each in (a, b)):
        return graph.lower(a / b)
    down = a // b
    return graph.lower(when((a % b != 0) & ((a < 0) != (b < 0))).then(down + 1).otherwise(down))


def remainder(graph: Graph, a: Expr, b: Expr) -> Typed:
    """As SQL's % has it, with the sign of the dividend; of floating-point numbers exact, too."""
    if any(graph.lower(each).type.is_number for each in (a, b)):
        rest = a.abs() % b.abs()
        return graph.lower(when(a < 0).then(-rest).otherwise(rest))
    rest = a % b
    return graph.lower(when((rest != 0) & ((a < 0) != (b < 0))).then(rest - b).otherwise(rest))


def _in_units(graph: Graph, node: int, unit: int) -> int:
    """An integer over a unit, halves away from zero."""
    if unit == 1:
        return node
    size = graph.add(
        "floor_divide", _plus(graph, graph.add("absolute", node), unit // 2), graph.integer(unit)
    )
    return _with_sign(graph, size, node, graph.integer(0))


def _plus(graph: Graph, node: int, more: int) -> int:
    return graph.add("add", node, graph.integer(more))


def _with_sign(graph: Graph, size: int, node: int, zero: int, is_number: bool = False) -> int:
    below = graph.add("negate", size, is_number=is_number)
    return graph.add("select", graph.add("less", node, zero), below, size, is_number=is_number)


def _rounded_number(graph: Graph, node: int, unit: int) -> int:
    """The value itself is rounded, not its product, which is rounded already: the rest of the product is
    known exactly (Dekker, Numer. Math. 18, 1971)."""

    def op(name: str, *args: int) -> int:
        return graph.add(name, *args, is_number=True)

    scale, half = graph.float(float(unit)), graph.float(0.5)
    size = op("absolute", node)
    product = op("multiply", size, scale)
    whole = op("floor", product)
    part = op("subtract", op("subtract", product, whole), half)
    zero, one = graph.float(0.0), graph.float(1.0)
    if unit == 1:
        up = graph.add("less_equal", zero, part)
        return _with_sign(graph, op("select", up, op("add", whole, one), whole), node, zero, is_number=True)
    upper, lower = _halves(op, size, graph.float(SPLITTER))
    high = float(unit * SPLITTER) - (float(unit * SPLITTER) - float(unit))
    above, below = graph.float(high), graph.float(float(unit) - high)
    rest = op("subtract", op("multiply", upper, above), product)
    for a, b in ((upper, below), (lower, above), (lower, below)):
        rest = op("add", rest, op("multiply", a, b))
    at_half = graph.add("logic_and", graph.add("equal", part, zero), graph.add("less_equal", zero, rest))
    up = graph.add("logic_or", graph.add("less", zero, part), at_half)
    made = op("divide", op("select", up, op("add", whole, one), whole), scale)
    has_places = graph.add("less", product, graph.float(float(1 << 52)))
    size = op("select", has_places, made, size)
    return _with_sign(graph, size, node, zero, is_number=True)


def _halves(op: Callable[..., int], node: int, splitter: int) -> tuple[int, int]:
    """A number as two of 26 bits."""
    more = op("multiply", node, splitter)
    upper = op("subtract", more, op("subtract", more, node))
    return upper, op("subtract", node, upper)


def cast_to_integer(graph: Graph, value: Typed, arg: Expr) -> Typed:
    """As SQL has it: decimals with halves away from zero, floating-point numbers with halves to even."""
    match value.type.kind:
        case "integer" | "boolean":
            return Typed(value.node, INTEGER)
        case "decimal":
            return Typed(rounded(graph, value, 0, arg).node, INTEGER)
        case "float":
            return Typed(graph.add("convert_to_integer", rounded_to_even(graph, value.node)), INTEGER)
        case "string":
            return text_of_words(graph, [value], TO_INTEGER, [arg])
    raise _no_cast(arg, value, "an integer")


def rounded_to_even(graph: Graph, node: int) -> int:
    """A floating-point number as a whole one, halves to the even one."""
    below = graph.add("floor", node, is_number=True)
    part = graph.add("subtract", node, below, is_number=True)
    half, two = graph.float(0.5), graph.float(2.0)
    odd = graph.add("modulo", below, two, is_number=True)
    up = graph.add(
        "logic_or", graph.add("less", half, part),
        graph.add("logic_and", graph.add("equal", part, half), graph.add("equal", odd, graph.float(1.0))),
    )  # fmt: skip
    above = graph.add("add", below, graph.float(1.0), is_number=True)
    return graph.add("select", up, above, below, is_number=True)


def cast_to_float(graph: Graph, value: Typed, arg: Expr) -> Typed:
    if value.type.kind == "string":
        return text_of_words(graph, [value], TO_FLOAT, [arg])
    if value.type.kind == "boolean":
        value = Typed(value.node, INTEGER)
    if not value.type.is_numeric:
        raise _no_cast(arg, value, "a number")
    return Typed(graph.as_float(value), FLOAT)


def cast_to_decimal(graph: Graph, value: Typed, arg: Expr, scale: int) -> Typed:
    kind = ColumnType("decimal", scale=scale)
    if value.type.kind in ("integer", "boolean", "decimal"):
        if value.type.scale <= scale:
            return Typed(graph.scaled(value, scale), kind)
        return rounded(graph, value, scale, arg)
    if value.type.kind == "string":
        return text_of_words(graph, [value], _to_decimal(kind), [arg])
    if not value.type.is_number:
        raise _no_cast(arg, value, "a decimal")
    units = graph.add("multiply", value.node, graph.float(float(10**scale)), is_number=True)
    return Typed(graph.add("convert_to_integer", _rounded_number(graph, units, 1)), kind)


def in_range(graph: Graph, value: Typed, cast: Expr, most: int) -> Typed:
    """What a cast gives; an error from `most` on and, of integers, below -`most`, of decimals from that on.

    What is outside is beyond 64 bits when the rest of these is added, which is one constant in a register.
    """
    of = graph.lower(cast.args[0]).type if isinstance(cast, Call) else value.type
    if of.kind == "boolean" or (of.kind == "integer" and most >= _size(of) * 10**value.type.scale):
        return value
    rest, node = graph.integer(INT64[-1] - (most - 1)), value.node
    if value.type.kind == "integer":
        steps: tuple[str, ...] = ("add", "subtract", "subtract", "add")
    else:
        steps = ("add", "subtract", "negate", "add", "subtract", "negate")
    for step in steps:
        node = graph.add(step, node) if step == "negate" else graph.add(step, node, rest)
    return Typed(node, value.type)


def _size(kind: ColumnType) -> int:
    """An integer type has values from minus this on, and below it."""
    return 1 << kind.width - kind.signed


def cast_to_boolean(graph: Graph, value: Typed, arg: Expr) -> Typed:
    if value.type.kind == "boolean":
        return value
    if value.type.kind == "string":
        return text_of_words(graph, [value], TO_BOOLEAN, [arg])
    if not value.type.is_numeric:
        raise _no_cast(arg, value, "a truth value")
    zero = graph.float(0.0) if value.type.is_number else graph.integer(0)
    return Typed(graph.add("not_equal", value.node, zero), BOOLEAN)


def cast_to_time(graph: Graph, value: Typed, arg: Expr) -> Typed:
    match value.type.kind:
        case "timestamp":
            return Typed(value.node, value.type)
        case "date":
            return as_time(graph, value, TIME)
        case "string":
            return text_of_words(graph, [value], TO_TIME, [arg])
    raise _no_cast(arg, value, "a time")


def cast_to_date(graph: Graph, value: Typed, arg: Expr) -> Typed:
    match value.type.kind:
        case "date":
            return value
        case "timestamp":
            ticks = graph.integer(86400 * PER_SECOND[value.type.unit])
            return Typed(graph.add("floor_divide", in_own_time(graph, value, arg, "date").node, ticks), DATE)
        case "string":
            return text_of_words(graph, [value], TO_DATE, [arg])
    raise TypeError(f"{shown(arg)} is {value.type}: a date or a time is wanted for date")


def _no_cast(arg: Expr, value: Typed, to: str) -> TypeError:
    return TypeError(f"{shown(arg)} is {value.type}: it cannot be cast to {to}: choose another type")


def _parser(name: str, kind: ColumnType, parse: Callable[[str], Any]) -> TextFunction:
    def apply(text: str) -> Any:
        try:
            if not text.isascii():  # Python takes digits of all scripts
                raise ValueError(text)
            return parse(text.strip(BLANKS))
        except (ValueError, KeyError, ArithmeticError):
            raise ValueError(
                f"cast: the column has the text {text[:40]!r}, which is no {kind.kind}: filter before, and "
                "collect(), or leave it a text"
            ) from None

    return TextFunction(name, (str(kind),), kind, apply)


def _decimal(text: str) -> decimal.Decimal:
    if STRAY.search(text) is not None:  # Decimal takes them
        raise ValueError(text)
    return decimal.Decimal(text)


def _whole(text: str) -> int:
    try:
        number = int(text, 0 if text[:2].lower() in ("0x", "0b") else 10)
    except ValueError:
        given = _decimal(text)
        if not given.is_finite() or given.adjusted() > MOST_DIGITS:
            raise
        number = int(given.to_integral_value(decimal.ROUND_HALF_UP))
    if number not in INT64:
        raise ValueError(text)
    return number


@functools.cache
def _to_decimal(kind: ColumnType) -> TextFunction:
    def parse(text: str) -> int:
        number = _decimal(text).quantize(decimal.Decimal(1).scaleb(-kind.scale), decimal.ROUND_HALF_UP)
        digits = int(number.scaleb(kind.scale))
        if digits not in INT64:
            raise ValueError(text)
        return digits

    return _parser("cast", kind, parse)


def _parsed_time(text: str) -> int:
    ticks = ticks_of(time_of(text), "us")
    assert ticks is not None  # Python's times have no parts of a microsecond
    return ticks


def _parsed_date(text: str) -> int:
    return time_of(text).toordinal() - datetime.date(1970, 1, 1).toordinal()


TO_INTEGER = _parser("cast", INTEGER, _whole)
TO_FLOAT = _parser("cast", FLOAT, float)
TO_BOOLEAN = _parser("cast", BOOLEAN, lambda text: TRUTHS[text.lower()])
TO_TIME = _parser("cast", TIME, _parsed_time)
TO_DATE = _parser("cast", DATE, _parsed_date)
PARSERS: Mapping[str, Callable[[int], TextFunction]] = {
    "cast_to_integer": lambda scale: TO_INTEGER,
    "cast_to_float": lambda scale: TO_FLOAT,
    "cast_to_boolean": lambda scale: TO_BOOLEAN,
    "cast_to_time": lambda scale: TO_TIME,
    "date": lambda scale: TO_DATE,
    "cast_to_decimal": lambda scale: _to_decimal(ColumnType("decimal", scale=scale)),
}
"""What parses texts for a cast, with the scale of decimals."""

"""CAST and TRY_CAST of SQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping

from penstock.columns.casting import Target
from penstock.columns.expressions import Call, Expr, Value
from penstock.columns.lowering_times import time_of
from penstock.columns.printing import Printing, as_varchar
from penstock.columns.statement_nodes import Node, kind_of, refuse, sentence
from penstock.columns.types import MOST_DIGITS

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""Bits."""
DATES = ("DATE",)
TIMES = ("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ")
ZONED_TIMES = ("TIMESTAMPTZ",)
TEXTS = ("TEXT", "VARCHAR")
CASTS: Mapping[tuple[str, ...], str] = {
    tuple(INTEGERS): "cast_to_integer",
    ("DOUBLE",): "cast_to_float",
    ("BOOLEAN",): "cast_to_boolean",
    DATES: "date",
    TIMES: "cast_to_time",
}
Translate = Callable[[Node], Expr]


def cast(translate: Translate, node: Node, is_tried: bool = False) -> Expr:
    """One of both; `is_tried`: null where a value does not fit."""
    kind, value = node.args["to"].this.name, translate(node.this)
    if kind in TEXTS:
        return as_text(value, node.this)
    if not is_tried and isinstance(value, Value):
        known = _known(node, kind, value.value)
        if known is not None:
            return known
    if kind == "DECIMAL":
        given = node.args["to"].expressions
        if not all(str(each.this.this).isdigit() for each in given):
            refuse(node, "DECIMAL takes two whole numbers: digits, and those behind the point")
        digits, scale = (*(int(each.this.this) for each in given), 0)[:2] if given else (18, 3)
        if is_tried and digits > MOST_DIGITS:  # what is beyond 64 bits would be no null
            refuse(node, f"TRY_CAST to a DECIMAL of more than {MOST_DIGITS} digits is not covered here")
        if is_tried:
            return Call("try_cast", (value,), Target("cast_to_decimal", scale, 10**digits))
        made = Call("cast_to_decimal", (value,), scale)
        return Call("in_range", (made,), 10**digits) if digits <= MOST_DIGITS else made
    name = next((name for kinds, name in CASTS.items() if kind in kinds), None)
    if name is None:
        refuse(node, f"CAST to {node.args['to'].sql(dialect='duckdb')} is not covered here")
    most = 1 << INTEGERS.get(kind, 64) - 1
    if is_tried:
        return Call("try_cast", (value,), Target(name, 0, most))
    made = Call(name, (value,))
    return Call("in_range", (made,), most) if most < 1 << 63 else made


def as_text(value: Expr, node: Node) -> Expr:
    """A value as DuckDB prints it; a date and an INTERVAL, and what DATE_TRUNC gives, are times there."""
    if isinstance(value, Value) and isinstance(value.value, str):
        return value
    inner = node.unnest()
    is_moved = kind_of(inner) in ("Add", "Sub") and "Interval" in (
        kind_of(inner.this), kind_of(inner.expression)
    )  # fmt: skip
    if is_moved or kind_of(inner) in ("DateTrunc", "TimestampTrunc", "DateAdd", "DateSub"):
        value = value.cast(datetime.datetime)
    return Call("printed", (value,), Printing(as_varchar))


def _known(node: Node, kind: str, value: object) -> Expr | None:
    """What a value that is written down becomes."""
    if isinstance(value, str) and kind in (*DATES, *TIMES, *ZONED_TIMES):
        try:
            made = time_of(value)
        except ValueError:
            refuse(node, "it is no date or time")
        if kind in ZONED_TIMES and made.tzinfo is None:
            refuse(node, f"it has no zone, as '{made}+00' has")
        return Value(made.date() if kind in DATES else made)
    if kind in INTEGERS and type(value) is int:
        most = 1 << INTEGERS[kind] - 1
        if not -most <= value < most:
            raise OverflowError(sentence(node, f"the value does not fit {INTEGERS[kind]} bits"))
        return Value(value)
    return None

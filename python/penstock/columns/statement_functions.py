"""Functions of SQL of numbers and times, in DuckDB's meaning; those of texts stand apart."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.columns.expressions import Call, Expr, Value, as_expr, when
from penstock.columns.printing import Printing
from penstock.columns.statement_nodes import Node, kind_of, refuse
from penstock.columns.statement_texts import TEXT_FUNCTIONS, Function, constant

if TYPE_CHECKING:
    from penstock.columns.statement_expressions import Translator

MORE_ARGUMENTS: Mapping[str, set[str]] = {
    "Substring": {"start", "length"}, "Trim": {"position"}, "Replace": {"replacement"},
    "Concat": {"coalesce"}, "StrPosition": {"substr"}, "Round": {"decimals"},
    "RegexpReplace": {"replacement", "modifiers", "single_replace"},
    "RegexpExtract": {"group", "null_if_pos_overflow"}, "Pad": {"fill_pattern", "is_left"},
    "Repeat": {"times"}, "SplitPart": {"delimiter", "part_index"}, "Translate": {"from_", "to"},
    "ConcatWs": {"coalesce"}, "DateDiff": {"date_part_boundary"},
    "TimeToStr": {"format"}, "Greatest": {"ignore_nulls"}, "Least": {"ignore_nulls"},
}  # fmt: skip
"""Arguments that only these look at."""


# Numbers.

MOST_FACTORS = 8


def _round(translate: Translator, node: Node) -> Expr:
    return translate(node.this).round(constant(translate, node.args.get("decimals"), int, 0))


def _sign(translate: Translator, node: Node) -> Expr:
    of = translate(node.this)
    is_above = (of > 0) & ~of.is_nan()
    return is_above.cast(int) - as_expr(of < 0).cast(int)


def _truncated(translate: Translator, node: Node) -> Expr:
    if node.args.get("decimals") is not None:
        refuse(node, "TRUNC to digits is not covered here")
    of = translate(node.this)
    return when(of < 0).then(of.ceil()).otherwise(of.floor())


def _power(translate: Translator, node: Node) -> Expr:
    """A product; a root of one half."""
    of, exponent = translate(node.this).cast(float), translate(node.expression)
    power = exponent.value if isinstance(exponent, Value) else None
    if power == decimal.Decimal("0.5"):
        return of.sqrt()
    if type(power) is not int or abs(power) > MOST_FACTORS:
        refuse(node, f"a power is a whole number to {MOST_FACTORS}, or 0.5, that is written down")
    made = when(of.is_null()).then(None).otherwise(1.0)
    for _ in range(abs(power)):
        made = made * of
    return 1.0 / made if power < 0 else made


def _is_infinite(translate: Translator, node: Node) -> Expr:
    return as_expr(translate(node.this).cast(float).abs() == math.inf)


def _extreme(is_better: Callable[[Expr, Expr], Expr]) -> Function:
    def made(translate: Translator, node: Node) -> Expr:
        best = translate(node.this)
        for each in node.expressions:
            other = translate(each)
            stays = is_better(best, other) | other.is_null()
            best = when(stays.fill_null(False)).then(best).otherwise(other)
        return best

    return made


# Dates and times.

UNITS = ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "HOUR", "MINUTE", "SECOND")
TRUNCATED = {
    "YEAR": "1y", "QUARTER": "1q", "MONTH": "1mo", "WEEK": "1w", "DAY": "1d", "HOUR": "1h", "MINUTE": "1m",
    "SECOND": "1s",
}  # fmt: skip
FORMATS = ("%%", *(f"%{dash}{c}" for dash in ("", "-") for c in "YymdHMSfjaAbBpIwuGVWU"))
"""Parts of formats that C and DuckDB have alike."""
PARTS: Mapping[str, Callable[[Expr], Expr]] = {
    "YEAR": lambda a: a.dt.year(),
    "QUARTER": lambda a: a.dt.quarter(),
    "MONTH": lambda a: a.dt.month(),
    "WEEK": lambda a: a.dt.week(),
    "DAY": lambda a: a.dt.day(),
    "DOY": lambda a: a.dt.ordinal_day(),
    "DAYOFYEAR": lambda a: a.dt.ordinal_day(),
    "DOW": lambda a: a.dt.weekday() % 7,
    "DAYOFWEEK": lambda a: a.dt.weekday() % 7,
    "ISODOW": lambda a: a.dt.weekday(),
    "HOUR": lambda a: a.dt.hour(),
    "MINUTE": lambda a: a.dt.minute(),
    "SECOND": lambda a: a.dt.second(),
    "EPOCH": lambda a: a.dt.epoch(),
    "DECADE": lambda a: a.dt.year() // 10,
    "CENTURY": lambda a: (a.dt.year() + 99) // 100,
    "MILLENNIUM": lambda a: (a.dt.year() + 999) // 1000,
    "ISOYEAR": lambda a: (a.dt.date() - a.dt.weekday() + 4).dt.year(),
}
DIFFERENCES: Mapping[str, Callable[[Expr], Expr]] = {
    "YEAR": lambda a: a.dt.year(),
    "QUARTER": lambda a: a.dt.year() * 4 + a.dt.quarter(),
    "MONTH": lambda a: a.dt.year() * 12 + a.dt.month(),
    "DAY": lambda a: a.dt.date(),
    "HOUR": lambda a: (a.dt.epoch() / 3600.0).floor().cast(int),
    "MINUTE": lambda a: (a.dt.epoch() / 60.0).floor().cast(int),
    "SECOND": lambda a: a.dt.epoch().floor().cast(int),
}
"""Whole units since some time."""


def part_of_time(node: Node, name: str, of: Expr) -> Expr:
    part = name.upper()
    if part not in PARTS:
        refuse(node, f"the part {part} of a time is not covered here")
    return PARTS[part](of)


def _extract(translate: Translator, node: Node) -> Expr:
    return part_of_time(node, str(node.this.this), translate(node.expression))


def _named_part(part: str) -> Function:
    return lambda translate, node: PARTS[part](translate(node.this))


def _truncate(translate: Translator, node: Node) -> Expr:
    unit = str(node.args["unit"].this).upper()
    if unit not in TRUNCATED:
        refuse(node, f"DATE_TRUNC to a {unit} is not covered here")
    return translate(node.this).dt.truncate(TRUNCATED[unit])


def _last_day(translate: Translator, node: Node) -> Expr:
    if node.args.get("unit") is not None:
        refuse(node, "it takes a date or a time, and no unit")
    return translate(node.this).dt.truncate("1mo").dt.offset_by(1, "month") - 1


def _date_diff(translate: Translator, node: Node) -> Expr:
    """How many times the unit begins between both; of weeks, how many pass."""
    unit = str(node.args["unit"].this).upper()
    later, sooner = translate(node.this), translate(node.expression)
    if unit == "WEEK":
        return Call("quotient", (later.dt.date() - sooner.dt.date(), Value(7)))
    of = DIFFERENCES.get(unit)
    if of is None:
        refuse(node, f"DATE_DIFF in WEEK, {', '.join(DIFFERENCES)} is covered here")
    return of(later) - of(sooner)


def _formatted(translate: Translator, node: Node) -> Expr:
    time, form = node.this, node.args.get("format")
    if kind_of(time) == "Literal":
        time, form = form, time
    form = constant(translate, form, str)
    unknown = [part for part in re.findall("%-?.?", form) if part not in FORMATS]
    if unknown:
        refuse(node, f"{unknown[0]!r} in a format is not covered here")
    return formatted(translate(time), form)


def formatted(time: Expr, form: str) -> Expr:
    return Call("printed", (time,), Printing(lambda kind, value: value.strftime(form), False))


FUNCTIONS: Mapping[str, Function] = {
    **TEXT_FUNCTIONS,
    "Round": _round,
    "Sign": _sign,
    "Trunc": _truncated,
    "Pow": _power,
    "IsInf": _is_infinite,
    "Greatest": _extreme(lambda a, b: a >= b),
    "Least": _extreme(lambda a, b: a <= b),
    "Extract": _extract,
    "TimeToUnix": _named_part("EPOCH"),
    "Year": _named_part("YEAR"),
    "Quarter": _named_part("QUARTER"),
    "Month": _named_part("MONTH"),
    "Week": _named_part("WEEK"),
    "WeekOfYear": _named_part("WEEK"),
    "Day": _named_part("DAY"),
    "DayOfMonth": _named_part("DAY"),
    "DayOfYear": _named_part("DOY"),
    "DayOfWeek": _named_part("DOW"),
    "DayOfWeekIso": _named_part("ISODOW"),
    "Hour": _named_part("HOUR"),
    "Minute": _named_part("MINUTE"),
    "Second": _named_part("SECOND"),
    "TimestampTrunc": _truncate,
    "DateTrunc": _truncate,
    "LastDay": _last_day,
    "DateDiff": _date_diff,
    "TimeToStr": _formatted,
    "Monthname": lambda translate, node: formatted(translate(node.this), "%B"),
    "Dayname": lambda translate, node: formatted(translate(node.this), "%A"),
    "CurrentDate": lambda translate, node: Value(datetime.date.today()),
}

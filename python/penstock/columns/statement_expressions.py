"""Expressions of SQL as those of queries, in DuckDB's meaning; what is not covered is refused by name."""

from __future__ import annotations

import calendar
import datetime
import decimal
import functools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from penstock.columns.expressions import Aggregate, Aggregation, Call, Expr, Value, as_expr, when
from penstock.columns.lowering_times import DAYS_ALONE
from penstock.columns.statement_casts import cast
from penstock.columns.statement_functions import FUNCTIONS, MORE_ARGUMENTS, UNITS, part_of_time
from penstock.columns.statement_nodes import CALLED, Node, check_one_argument, expressions, kind_of, refuse
from penstock.columns.statement_texts import constant, of_text
from penstock.columns.types import INTEGER

Resolve = Callable[[Node], Expr | None]
NUMBERS = (int, float, decimal.Decimal)


BINARY: Mapping[str, Callable[[Expr, Expr], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: Call("subtract", (a, b), DAYS_ALONE),
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "IntDiv": lambda a, b: Call("quotient", (a, b)),
    "Mod": lambda a, b: Call("remainder", (a, b)),
    "EQ": lambda a, b: a == b,
    "NEQ": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LTE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GTE": lambda a, b: a >= b,
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
    "BitwiseAnd": lambda a, b: Call("bit_and", (a, b)),
    "BitwiseOr": lambda a, b: Call("bit_or", (a, b)),
    "BitwiseXor": lambda a, b: Call("bit_xor", (a, b)),
    "BitwiseLeftShift": lambda a, b: Call("shift_left", (a, b)),
    "BitwiseRightShift": lambda a, b: Call("shift_right", (a, b)),
}
UNARY: Mapping[str, Callable[[Expr], Expr]] = {
    "Paren": lambda a: a,
    "Neg": lambda a: -a,
    "Not": lambda a: ~a,
    "BitwiseNot": lambda a: Call("bit_not", (a,)),
    "Abs": lambda a: a.abs(),
    "Floor": lambda a: a.floor(),
    "Ceil": lambda a: a.ceil(),
    "Sqrt": lambda a: a.sqrt(),
    "IsNan": lambda a: a.is_nan(),
}
AGGREGATES: Mapping[str, Aggregation] = {
    "Sum": "sum", "Avg": "mean", "Min": "min", "Max": "max", "Count": "count",
    "Variance": "variance", "VariancePop": "variance", "Stddev": "deviation", "StddevSamp": "deviation",
    "StddevPop": "deviation", "LogicalAnd": "min", "LogicalOr": "max", "AnyValue": "min",
}  # fmt: skip
DISTINCT: Mapping[str, Aggregation] = {
    "Count": "nunique", "Sum": "distinct_sum", "Avg": "distinct_mean", "Min": "min", "Max": "max",
}  # fmt: skip
TAKEN = {
    "this", "expression", "expressions", "unit", "to", "low", "high", "default", "ifs", "true", "false",
    "big_int", "typed", "safe", "is_string", "query", "quoted", "table",
}  # fmt: skip
"""Arguments of nodes that are looked at, or say nothing."""


class Translator:
    """Of the expressions of one SELECT.

    Args:
        resolve: What stands for a node as a whole: a column, a group's key, an aggregate; None: its parts do.
        of_rows: Of what stands in aggregates, where that is another.
    """

    def __init__(self, resolve: Resolve, of_rows: Translator | None = None) -> None:
        self.resolve = resolve
        self.of_rows = of_rows or self

    def __call__(self, node: Node) -> Expr:
        known = self.resolve(node)
        if known is not None:
            return known
        name = kind_of(node)
        made = self._made(node, name)
        if node.args.get("negate"):
            made = ~made
        more = MORE_ARGUMENTS.get(name, ())
        for argument, value in node.args.items():
            if value and argument not in TAKEN and argument not in more and argument != "negate":
                given = (
                    value.sql(dialect="duckdb")
                    if isinstance(value, expressions().Expression)
                    else argument.upper()
                )
                refuse(node, f"{CALLED} with {given} is not covered here")
        return made

    def _made(self, node: Node, name: str) -> Expr:
        if name in ("Add", "Sub", "DateAdd", "DateSub") and kind_of(node.expression) == "Interval":
            return self._moved(node.this, node.expression, -1 if name.endswith("Sub") else 1)
        if name == "Add" and kind_of(node.this) == "Interval":
            return self._moved(node.expression, node.this, 1)
        if name in BINARY:
            a, b = self(node.this), self(node.expression)
            known = folded(name, a, b)
            return known if known is not None else as_expr(BINARY[name](a, b))
        if name in UNARY:
            of = self(node.this)
            if name == "Neg" and isinstance(of, Value) and isinstance(of.value, NUMBERS):
                return Value(-of.value)
            return UNARY[name](of)
        if name in AGGREGATES:
            return self._aggregate(node, name)
        function = FUNCTIONS.get(name)
        if function is not None:
            return function(self, node)
        method = getattr(self, f"_{name.lower()}", None)
        if method is None:
            refuse(node)
        made: Expr = method(node)
        return made

    def _moved(self, of: Node, length: Node, sign: int) -> Expr:
        """A date or time, and an interval: of its parts the longest first, as DuckDB has it."""
        made = self(of)
        for number, unit in interval(length):
            if isinstance(made, Value) and isinstance(made.value, datetime.date):
                made = Value(moved(made.value, sign * number, unit))
            else:
                made = made.dt.offset_by(sign * number, unit)
        return made

    def _anonymous(self, node: Node) -> Expr:
        name, given = str(node.this).lower(), node.expressions
        if name in ("suffix", "ends_with") and len(given) == 2:
            return self(given[0]).str.ends_with(constant(self, given[1], str))
        if name == "isfinite" and len(given) == 1:
            return as_expr(self(given[0]).cast(float).abs() < math.inf)
        if name == "strlen" and len(given) == 1:
            return of_text("strlen", self(given[0]), lambda text: len(text.encode()), kind=INTEGER)
        if name in ("prefix", "starts_with") and len(given) == 2:
            return self(given[0]).str.starts_with(constant(self, given[1], str))
        if name not in ("date_part", "datepart") or len(given) != 2:
            refuse(node)
        return part_of_time(node, constant(self, given[0], str), self(given[1]))

    def _aggregate(self, node: Node, name: str, condition: Expr | None = None) -> Expr:
        """SUM and the like of an expression of one row."""
        of = node.this
        check_one_argument(node)
        if name == "Count" and (of is None or kind_of(of) == "Star"):
            if condition is None:
                return Aggregate("len", None)
            return Aggregate("count", when(condition).then(1).otherwise(None))
        kind = AGGREGATES[name]
        if kind_of(of) == "Distinct":
            if len(of.expressions) != 1 or name not in DISTINCT:
                refuse(
                    node, f"DISTINCT in an aggregate is covered of one value in {', '.join(DISTINCT).upper()}"
                )
            kind, of = DISTINCT[name], of.expressions[0]
        value = self.of_rows(of)
        if name.startswith("Logical"):
            value = value & True  # which truth values alone have
        if condition is not None:
            value = when(condition).then(value).otherwise(None)
        return Aggregate(kind, value, or_null=True, of_all=name.endswith("Pop"))

    def _countif(self, node: Node, condition: Expr | None = None) -> Expr:
        """As DuckDB has it, null of no rows."""
        found = self.of_rows(node.this).cast(int)
        if condition is not None:
            found = when(condition).then(found).otherwise(None)
        return Aggregate("sum", found, or_null=True)

    def _filter(self, node: Node) -> Expr:
        name, condition = kind_of(node.this), self.of_rows(node.expression.this)
        if name == "CountIf":
            return self._countif(node.this, condition)
        if name not in AGGREGATES:
            refuse(node.this, f"{CALLED} with FILTER is not covered here")
        return self._aggregate(node.this, name, condition)

    def _literal(self, node: Node) -> Expr:
        if node.is_string:
            return Value(node.this)
        if re.fullmatch(r"\d+", node.this):
            return Value(int(node.this))
        if "e" in node.this.lower():
            return Value(float(node.this))
        return Value(decimal.Decimal(node.this))

    def _boolean(self, node: Node) -> Expr:
        return Value(bool(node.this))

    def _null(self, node: Node) -> Expr:
        return Value(None)

    def _column(self, node: Node) -> Expr:
        refuse(node, "there is no such column")

    def _is(self, node: Node) -> Expr:
        kind = kind_of(node.expression)
        if kind not in ("Null", "Boolean"):
            refuse(node)
        value = self(node.this)
        if kind == "Null":
            return value.is_null()
        return (value if node.expression.this else ~value).fill_null(False)

    def _nullsafeeq(self, node: Node) -> Expr:
        a, b = self(node.this), self(node.expression)
        return (a == b).fill_null(False) | (a.is_null() & b.is_null())

    def _nullsafeneq(self, node: Node) -> Expr:
        return ~self._nullsafeeq(node)

    def _between(self, node: Node) -> Expr:
        value = self(node.this)
        return (value >= self(node.args["low"])) & (value <= self(node.args["high"]))

    def _in(self, node: Node) -> Expr:
        if node.args.get("query") is not None:
            refuse(node, "a subquery stands behind IN as a whole condition of WHERE alone")
        given = [self(each) for each in node.expressions]
        if not all(isinstance(each, Value) for each in given):
            tests = [as_expr(self(node.this) == each) for each in given]
            return functools.reduce(lambda a, b: a | b, tests)
        values = [each.value for each in given if isinstance(each, Value)]
        found = self(node.this).is_in(values)
        return found | Value(None) if None in values else found

    def _coalesce(self, node: Node) -> Expr:
        whole = self(node.this)
        for each in node.expressions:
            whole = whole.fill_null(self(each))
        return whole

    def _nullif(self, node: Node) -> Expr:
        value = self(node.this)
        return when((value == self(node.expression)).fill_null(False)).then(None).otherwise(value)

    def _if(self, node: Node) -> Expr:
        return (
            when(self(node.this)).then(self(node.args["true"])).otherwise(self._else(node.args.get("false")))
        )

    def _else(self, node: Node | None) -> Expr:
        return Value(None) if node is None else self(node)

    def _case(self, node: Node) -> Expr:
        whole = self._else(node.args.get("default"))
        for each in reversed(node.args["ifs"]):
            condition = self(each.this)
            if node.this is not None:
                condition = as_expr(self(node.this) == condition)
            whole = when(condition).then(self(each.args["true"])).otherwise(whole)
        return whole

    def _ignorenulls(self, node: Node) -> Expr:
        if kind_of(node.this) != "AnyValue":
            refuse(node)
        return self(node.this)

    def _cast(self, node: Node) -> Expr:
        return cast(self, node)

    def _trycast(self, node: Node) -> Expr:
        return cast(self, node, is_tried=True)


MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
DAYS = {"DAY": 1, "WEEK": 7}
SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600}
PART = r"\s*([+-]?\d+)\s*([A-Za-z]+)\s*"


def interval(node: Node) -> list[tuple[int, str]]:
    """How many of which units an INTERVAL is: months, days and seconds, or the only one that it names."""
    inner = node.this.unnest() if node.this is not None else node
    sign = -1 if kind_of(inner) == "Neg" else 1
    text = str((inner.this if sign < 0 else inner).this)
    unit = str(getattr(node.args.get("unit"), "this", ""))
    parts = re.findall(PART, f"{text} {unit}")
    given = [(sign * int(number), each.upper().rstrip("S")) for number, each in parts]
    if not re.fullmatch(f"({PART})+", f"{text} {unit}") or not {each for _, each in given} <= set(UNITS):
        refuse(node, f"intervals are so many of {', '.join(UNITS)}")
    if len(given) == 1:
        return given
    sums = (
        (sum(number * units[unit] for number, unit in given if unit in units), name)
        for units, name in ((MONTHS, "MONTH"), (DAYS, "DAY"), (SECONDS, "SECOND"))
        if any(unit in units for _, unit in given)
    )
    return list(sums)


def moved(start: datetime.date, number: int, unit: str) -> datetime.date:
    """A date or time so many units later, or the last day of a month without such a day; hours make times."""
    if unit in MONTHS:
        months = start.year * 12 + start.month - 1 + number * MONTHS[unit]
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return start.replace(year=year, month=month + 1, day=min(start.day, last))
    step = datetime.timedelta(**{unit.lower() + "s": number})
    if unit in ("HOUR", "MINUTE", "SECOND") and not isinstance(start, datetime.datetime):
        start = datetime.datetime(start.year, start.month, start.day)
    return start + step


def folded(name: str, a: Expr, b: Expr) -> Expr | None:
    """What is made of two numbers that are written down; whole ones and decimals are exact, as DuckDB's."""
    numbers = (int, decimal.Decimal)
    if not (isinstance(a, Value) and isinstance(b, Value)):
        return None
    x, y = a.value, b.value
    if not (isinstance(x, numbers) and isinstance(y, numbers)) or isinstance(x, bool) or isinstance(y, bool):
        return None
    match name:
        case "Add":
            return Value(x + y)
        case "Sub":
            return Value(x - y)
        case "Mul":
            return Value(x * y)
        case "Div" if y != 0:
            return Value(float(x) / float(y))
    return None

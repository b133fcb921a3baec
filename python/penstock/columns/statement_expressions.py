"""Expressions of SQL as those of queries, in DuckDB's meaning; what is not covered is refused by name."""

from __future__ import annotations

import calendar
import datetime
import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from penstock.columns.expressions import Aggregate, Call, Column, Expr, Value, as_expr, when

Node = Any
"""Of sqlglot's syntax tree."""
Resolve = Callable[[Node], Expr | None]


def expressions() -> Any:
    """The classes of sqlglot's tree, which is imported where a statement is read."""
    from sqlglot import expressions as found

    return found


def refuse(node: Node, why: str = "is not covered here") -> NoReturn:
    """One sentence about a part of the statement.

    Raises:
        ValueError: Always.
    """
    text = node.sql(dialect="duckdb")
    shown = text if len(text) <= 80 else text[:77] + "..."
    raise ValueError(
        f"sql: {shown}: {why}: write it another way, or give the tables to DuckDB, which reads columns whole"
    )


def _truncated_remainder(a: Expr, b: Expr) -> Expr:
    """With the sign of the dividend."""
    rest = a % b
    return when((rest != 0) & ((a < 0) != (b < 0))).then(rest - b).otherwise(rest)


def _truncated_quotient(a: Expr, b: Expr) -> Expr:
    down = a // b
    return when((a % b != 0) & ((a < 0) != (b < 0))).then(down + 1).otherwise(down)


BINARY: Mapping[str, Callable[[Expr, Expr], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "IntDiv": _truncated_quotient,
    "Mod": _truncated_remainder,
    "EQ": lambda a, b: a == b,
    "NEQ": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LTE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GTE": lambda a, b: a >= b,
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
}
UNARY: Mapping[str, Callable[[Expr], Expr]] = {
    "Paren": lambda a: a,
    "Neg": lambda a: -a,
    "Not": lambda a: ~a,
    "Abs": lambda a: a.abs(),
    "Floor": lambda a: a.floor(),
    "Ceil": lambda a: a.ceil(),
    "Sqrt": lambda a: a.sqrt(),
    "Year": lambda a: a.dt.year(),
    "Month": lambda a: a.dt.month(),
    "Day": lambda a: a.dt.day(),
    "DayOfMonth": lambda a: a.dt.day(),
    "Hour": lambda a: a.dt.hour(),
    "DayOfWeek": lambda a: a.dt.weekday() % 7,
    "DayOfWeekIso": lambda a: a.dt.weekday(),
    "IsNan": lambda a: a.is_nan(),
}
PARTS = {
    "YEAR": "Year",
    "MONTH": "Month",
    "DAY": "Day",
    "HOUR": "Hour",
    "ISODOW": "DayOfWeekIso",
    "DOW": "DayOfWeek",
}
AGGREGATES = {"Sum": "sum", "Avg": "mean", "Min": "min", "Max": "max", "Count": "count"}
TAKEN = {
    "this", "expression", "expressions", "unit", "to", "low", "high", "default", "ifs", "true", "false",
    "big_int", "typed", "safe", "is_string", "query", "quoted", "table",
}  # fmt: skip
"""Arguments of nodes that are looked at, or say nothing."""


class Translator:
    """Of the expressions of one SELECT."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        """What stands for a node as a whole: a column, a group's key, an aggregate; None: its parts do."""

    def __call__(self, node: Node) -> Expr:
        known = self.resolve(node)
        if known is not None:
            return known
        name = type(node).__name__
        made = self._made(node, name)
        if node.args.get("negate"):
            made = ~made
        for argument, value in node.args.items():
            if value and argument not in TAKEN and argument != "negate":
                refuse(node, f"{name.upper()} with {argument.upper()} is not covered here")
        return made

    def _made(self, node: Node, name: str) -> Expr:
        if name in ("Add", "Sub") and type(node.expression).__name__ == "Interval":
            return self._moved(node, -1 if name == "Sub" else 1)
        if name in BINARY:
            a, b = self(node.this), self(node.expression)
            known = folded(name, a, b)
            return known if known is not None else as_expr(BINARY[name](a, b))
        if name in UNARY:
            of = self(node.this)
            if (
                name == "Neg"
                and isinstance(of, Value)
                and isinstance(of.value, (int, float, decimal.Decimal))
            ):
                return Value(-of.value)
            return UNARY[name](of)
        if name in AGGREGATES:
            return self.aggregate(node, name)
        method = getattr(self, f"_{name.lower()}", None)
        if method is None:
            refuse(node, f"{name.upper()} is not covered here")
        made: Expr = method(node)
        return made

    def _moved(self, node: Node, sign: int) -> Expr:
        """A date or time, and an interval."""
        start, length = self(node.this), node.expression
        number = str(length.this.this if length.this is not None else "")
        unit = str(getattr(length.args.get("unit"), "this", "")).upper().rstrip("S")
        if not isinstance(start, Value) or not isinstance(start.value, datetime.date):
            refuse(node, "an interval stands beside a date that is written down, not beside a column")
        if not number.isdigit() or unit not in UNITS:
            refuse(node, f"intervals are so many of {', '.join(UNITS)}")
        return Value(moved(start.value, sign * int(number), unit))

    def _anonymous(self, node: Node) -> Expr:
        name, given = str(node.this).lower(), node.expressions
        if name in ("suffix", "ends_with") and len(given) == 2 and given[1].is_string:
            return self(given[0]).str.ends_with(given[1].this)
        if name in ("prefix", "starts_with") and len(given) == 2 and given[1].is_string:
            return self(given[0]).str.starts_with(given[1].this)
        refuse(node, f"{name.upper()} is not covered here")

    def _endswith(self, node: Node) -> Expr:
        return self(node.this).str.ends_with(node.expression.this)

    def aggregate(self, node: Node, name: str) -> Expr:
        """SUM and the like of an expression of one row."""
        of = node.this
        if name == "Count" and type(of).__name__ == "Star":
            return Aggregate("len", None)
        if type(of).__name__ == "Distinct":
            if name != "Count" or len(of.expressions) != 1:
                refuse(node, "DISTINCT in an aggregate is covered of one value in COUNT")
            return Aggregate("nunique", self(of.expressions[0]))
        return Aggregate(AGGREGATES[name], self(of), or_null=True)  # type: ignore[arg-type]

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
        if type(node.expression).__name__ != "Null":
            refuse(node)
        return self(node.this).is_null()

    def _between(self, node: Node) -> Expr:
        value = self(node.this)
        return (value >= self(node.args["low"])) & (value <= self(node.args["high"]))

    def _in(self, node: Node) -> Expr:
        if node.args.get("query") is not None:
            refuse(node, "a subquery stands behind IN as a whole condition of WHERE alone")
        given = [self(each) for each in node.expressions]
        if not all(isinstance(each, Value) for each in given):
            refuse(node, "IN takes values, not columns")
        values = [each.value for each in given if isinstance(each, Value)]
        found = self(node.this).is_in(values)
        return found | Value(None) if None in values else found

    def _like(self, node: Node) -> Expr:
        return self._pattern(node, 0)

    def _ilike(self, node: Node) -> Expr:
        return self._pattern(node, re.IGNORECASE)

    def _pattern(self, node: Node, flags: int) -> Expr:
        pattern = self(node.expression)
        if not isinstance(pattern, Value) or not isinstance(pattern.value, str):
            refuse(node, "a pattern is a text")
        parts = {"%": ".*", "_": "."}
        wanted = re.compile("".join(parts.get(c, re.escape(c)) for c in pattern.value), flags | re.DOTALL)
        return Call("text_test", (self(node.this),), lambda text: wanted.fullmatch(text) is not None)

    def _startswith(self, node: Node) -> Expr:
        return self(node.this).str.starts_with(node.expression.this)

    def _contains(self, node: Node) -> Expr:
        return self(node.this).str.contains(node.expression.this)

    def _extract(self, node: Node) -> Expr:
        part = str(node.this.this).upper()
        if part not in PARTS:
            refuse(node, f"the part {part} of a time is not covered here")
        return UNARY[PARTS[part]](self(node.expression))

    def _timestamptrunc(self, node: Node) -> Expr:
        if str(node.args["unit"].this).upper() != "DAY":
            refuse(node, "DATE_TRUNC to days alone is covered here")
        return self(node.this).dt.date()

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

    def _countif(self, node: Node) -> Expr:
        return Aggregate("sum", self(node.this).cast(int), or_null=True)

    def _cast(self, node: Node) -> Expr:
        kind = node.args["to"].this.name
        value = self(node.this)
        if kind == "DATE":
            if isinstance(value, Value) and isinstance(value.value, str):
                return Value(_parsed(node, value.value).date())
            return value.dt.date()
        if (
            kind in ("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ")
            and isinstance(value, Value)
            and isinstance(value.value, str)
        ):
            return Value(_parsed(node, value.value))
        if kind in ("DOUBLE", "FLOAT"):
            return value.cast(float)
        if kind in ("INT", "BIGINT") and isinstance(value, Value) and isinstance(value.value, int):
            return value
        refuse(node, f"CAST to {kind} is not covered here (of numbers that are rounded, say FLOOR or CEIL)")


UNITS = ("DAY", "MONTH", "YEAR", "HOUR", "MINUTE", "SECOND", "WEEK")


def moved(start: datetime.date, number: int, unit: str) -> datetime.date:
    """A date or time so many units later, or the last day of a month without such a day; hours make times."""
    if unit in ("MONTH", "YEAR"):
        months = start.year * 12 + start.month - 1 + number * (12 if unit == "YEAR" else 1)
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


def _parsed(node: Node, text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        refuse(node, "it is no date or time")


def column(name: str) -> Expr:
    return Column(name)

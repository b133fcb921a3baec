"""Expressions over the columns of a table, in the style of Polars and Ibis."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.columns.parts import TEXT, DateParts, TextFunction, Texts
from penstock.columns.types import ColumnType

CASTS = {
    int: "convert_to_integer", float: "convert_to_float", bool: "cast_to_boolean",
    datetime.date: "date", datetime.datetime: "cast_to_time",
}  # fmt: skip
Aggregation = Literal[
    "sum", "mean", "min", "max", "count", "len", "nunique", "variance", "deviation", "distinct_sum",
    "distinct_mean",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Expr:
    """What a query computes of each row, or of many. Made by `col`, `lit`, `when` and operators.

    `==` makes an expression; use `is` to compare two.
    """

    def alias(self, name: str) -> Expr:
        """The same under another name in the result."""
        return Alias(self, name)

    def _called(self, name: str, extra: Any) -> Expr:
        return Call(name, (self,), extra)

    def _with(self, name: str, other: Any) -> Expr:
        return Call(name, (self, as_expr(other)))

    def _behind(self, name: str, other: Any) -> Expr:
        return Call(name, (as_expr(other), self))

    def __add__(self, other: Any) -> Expr:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Expr:
        return self._behind("add", other)

    def __sub__(self, other: Any) -> Expr:
        return self._with("subtract", other)

    def __rsub__(self, other: Any) -> Expr:
        return self._behind("subtract", other)

    def __mul__(self, other: Any) -> Expr:
        return self._with("multiply", other)

    def __rmul__(self, other: Any) -> Expr:
        return self._behind("multiply", other)

    def __truediv__(self, other: Any) -> Expr:
        return self._with("divide", other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self._behind("divide", other)

    def __floordiv__(self, other: Any) -> Expr:
        return self._with("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return self._behind("floor_divide", other)

    def __mod__(self, other: Any) -> Expr:
        return self._with("modulo", other)

    def __rmod__(self, other: Any) -> Expr:
        return self._behind("modulo", other)

    def __neg__(self) -> Expr:
        return Call("negate", (self,))

    def __abs__(self) -> Expr:
        return Call("absolute", (self,))

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._with("equal", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self._with("not_equal", other)

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> Expr:
        return self._with("less", other)

    def __le__(self, other: Any) -> Expr:
        return self._with("less_equal", other)

    def __gt__(self, other: Any) -> Expr:
        return self._behind("less", other)

    def __ge__(self, other: Any) -> Expr:
        return self._behind("less_equal", other)

    def __and__(self, other: Any) -> Expr:
        return self._with("logic_and", other)

    def __rand__(self, other: Any) -> Expr:
        return self._behind("logic_and", other)

    def __or__(self, other: Any) -> Expr:
        return self._with("logic_or", other)

    def __ror__(self, other: Any) -> Expr:
        return self._behind("logic_or", other)

    def __invert__(self) -> Expr:
        return Call("logic_not", (self,))

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression has no truth value: combine conditions with &, | and ~, each in parentheses, and "
            "use is_between for a range"
        )

    def is_between(self, low: Any, high: Any) -> Expr:
        """Whether it is `low`, `high` or between."""
        return Call("logic_and", (self >= low, self <= high))

    def is_in(self, values: Iterable[Any]) -> Expr:
        """Whether it is one of several values; null where it has none. A None among them is left out."""
        return Call("is_in", (self,), tuple(values))

    def is_null(self) -> Expr:
        return Call("is_null", (self,))

    def is_not_null(self) -> Expr:
        return Call("logic_not", (self.is_null(),))

    def is_nan(self) -> Expr:
        return Call("is_nan", (self,))

    def fill_null(self, value: Any) -> Expr:
        """Another value where there is none."""
        return self._with("fill_null", value)

    def abs(self) -> Expr:
        return Call("absolute", (self,))

    def floor(self) -> Expr:
        return Call("floor", (self,))

    def ceil(self) -> Expr:
        return Call("ceil", (self,))

    def sqrt(self) -> Expr:
        return Call("square_root", (self,))

    def round(self, digits: int = 0) -> Expr:
        """To so many digits behind the point, halves away from zero."""
        return Call("round", (self,), operator.index(digits))

    def cast(self, kind: type) -> Expr:
        """As another type.

        Args:
            kind: int (towards zero; an error where it does not fit), float, bool, `datetime.date` or
                `datetime.datetime`.
        """
        if kind not in CASTS:
            raise TypeError(f"cast to {kind!r}: choose int, float, bool, datetime.date or datetime.datetime")
        return Call(CASTS[kind], (self,))

    def sum(self) -> Expr:
        """Of the rows that have a value; 0 where none has."""
        return Aggregate("sum", self)

    def mean(self) -> Expr:
        """Null where no row has a value."""
        return Aggregate("mean", self)

    def min(self) -> Expr:
        return Aggregate("min", self)

    def max(self) -> Expr:
        return Aggregate("max", self)

    def count(self) -> Expr:
        """Rows that have a value."""
        return Aggregate("count", self)

    def nunique(self) -> Expr:
        """Different values; a null is none."""
        return Aggregate("nunique", self)

    def var(self, ddof: int = 1) -> Expr:
        """The variance of a sample (`ddof` 1) or of all there are (0); null of `ddof` values and less."""
        return Aggregate("variance", self, of_all=_of_all(ddof))

    def std(self, ddof: int = 1) -> Expr:
        """The standard deviation, the root of `var`."""
        return Aggregate("deviation", self, of_all=_of_all(ddof))

    @property
    def dt(self) -> DateParts[Expr]:
        """Parts of dates and timestamps."""
        return DateParts(self._called)

    @property
    def str(self) -> Texts[Expr]:
        """What is made of texts."""
        return Texts(self._called)


@dataclass(frozen=True, eq=False)
class Column(Expr):
    name: str


@dataclass(frozen=True, eq=False)
class Value(Expr):
    value: Any


@dataclass(frozen=True, eq=False)
class Stored(Expr):
    """A value as a column of a type stores it: days, ticks, units of the last digit; None: a null."""

    value: int | float | None
    type: ColumnType


@dataclass(frozen=True, eq=False)
class Call(Expr):
    name: str
    args: tuple[Expr, ...]
    extra: Any = None


@dataclass(frozen=True, eq=False)
class Alias(Expr):
    of: Expr
    name: str


@dataclass(frozen=True, eq=False)
class Aggregate(Expr):
    kind: Aggregation
    of: Expr | None
    or_null: bool = False
    """A sum of no rows is null, as SQL has it."""
    of_all: bool = False
    """A variance is that of all there are, not of a sample."""


@dataclass(frozen=True)
class When:
    """`when(condition).then(a).otherwise(b)`."""

    condition: Expr
    chosen: Expr | None = None

    def then(self, value: Any) -> When:
        return When(self.condition, as_expr(value))

    def otherwise(self, value: Any) -> Expr:
        if self.chosen is None:
            raise TypeError("when(...).otherwise(...): say .then(...) before")
        return Call("select", (self.condition, self.chosen, as_expr(value)))


def _of_all(ddof: int) -> bool:
    if ddof not in (0, 1):
        raise ValueError(f"ddof={ddof!r}: 1 for a sample, 0 for all there are")
    return ddof == 0


def as_expr(value: Any) -> Expr:
    """A literal, if it is no expression."""
    return value if isinstance(value, Expr) else Value(value)


def col(name: str) -> Expr:
    """The column of a name."""
    return Column(name)


def lit(value: Any) -> Expr:
    """A value: a number, a text, a date, a time, a truth value or None."""
    return Value(value)


def concat_str(*parts: Expr | str) -> Expr:
    """Texts one behind the other, null where one is."""
    given = tuple(as_expr(part) for part in parts)
    return Call("concat_str", given, TextFunction("concat_str", (), TEXT, lambda *texts: "".join(texts)))


def when(condition: Expr) -> When:
    """Begins a choice between two values for each row."""
    return When(condition)


def count() -> Expr:
    """How many rows."""
    return Aggregate("len", None)


def name_of(expression: Expr) -> str:
    """What a result is called that has no alias: the first column that it names, as in Polars."""
    if isinstance(expression, Alias | Column):
        return expression.name
    if isinstance(expression, Aggregate):
        return "len" if expression.of is None else name_of(expression.of)
    if isinstance(expression, Call):
        names = [name_of(arg) for arg in expression.args if not isinstance(arg, Value)]
        return names[0] if names else "literal"
    return "literal"


def columns_of(expression: Expr) -> Iterable[str]:
    """The names of all columns, in order, some more than once."""
    match expression:
        case Column(name):
            yield name
        case Call(_, args):
            for arg in args:
                yield from columns_of(arg)
        case Alias(of, _):
            yield from columns_of(of)
        case Aggregate(_, of) if of is not None:
            yield from columns_of(of)


def calls_of(expression: Expr) -> Iterable[Call]:
    """The calls in an expression."""
    match expression:
        case Call(_, args):
            yield expression
            for arg in args:
                yield from calls_of(arg)
        case Alias(of, _):
            yield from calls_of(of)
        case Aggregate(_, of) if of is not None:
            yield from calls_of(of)


def aggregates_of(expression: Expr) -> Iterable[Aggregate]:
    """The aggregates in an expression."""
    match expression:
        case Aggregate():
            yield expression
        case Call(_, args):
            for arg in args:
                yield from aggregates_of(arg)
        case Alias(of, _):
            yield from aggregates_of(of)

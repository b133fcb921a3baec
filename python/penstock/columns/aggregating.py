"""Aggregates of a query: the sums that the engine makes, and the results that are computed of them."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.columns.assembling import Program
from penstock.columns.expressions import Aggregate, Alias, Call, Expr, Value, name_of
from penstock.columns.graph import Typed
from penstock.columns.lowering import Graph
from penstock.columns.lowering_texts import in_order
from penstock.columns.results import ResultColumn
from penstock.columns.shown import shown
from penstock.columns.types import FLOAT, INTEGER, ColumnType, numbers_of_sorted

KINDS = (
    "rows",
    "count",
    "integer_sum",
    "number_sum",
    "integer_minimum",
    "integer_maximum",
    "number_minimum",
    "number_maximum",
)

DISTINCT = ("nunique", "distinct_sum", "distinct_mean")
APART = (*DISTINCT, "variance", "deviation")
"""Aggregates that have passes of their own."""
PLAIN = ("add", "subtract", "multiply", "divide", "negate")
CHECKED = 1 << 16
"""Sums that are looked at together, so that what is made of them stays in a cache."""


@dataclass(frozen=True)
class Place:
    """Words of a sum."""

    low: int
    values: int
    """How many from there on."""
    count: int | None
    """Of the values; None: each row has one."""


class Sums:
    """What the engine has summed up for each group: of each sum the lower word, the upper, and the count."""

    def __init__(self, words: Sequence[Sequence[npt.NDArray[np.uint64]]], groups: int) -> None:
        self.words, self.groups = words, groups
        self.apart: dict[int, ResultColumn] = {}
        """Results that are no sums of this pass, by their aggregates."""


class AggregatePlan:
    """The sums that the engine makes for some aggregates, each once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinds: list[tuple[str, int]] = []
        self.number: dict[tuple[str, int], int] = {}
        self.nodes: list[int] = []
        self.types: dict[int, tuple[str, int, ColumnType]] = {}
        self.squares: dict[int, tuple[Aggregate, Aggregate]] = {}
        """Of variances of integers and decimals, the mean and the sum of squares, which are exact."""
        self.with_count: set[int] = set()
        """Numbers of sums whose values are counted, too: not all rows have one, or they are divided by it."""

    def add(self, aggregate: Aggregate) -> None:
        if aggregate.kind in APART:
            return
        kind, value = self._needs(aggregate)
        key = (kind, value.node if value is not None else -1)
        if key not in self.number:
            self.number[key] = len(self.kinds)
            self.kinds.append(key)
            if value is not None and value.node not in self.nodes:
                self.nodes.append(value.node)
        counted = kind in ("rows", "count") or aggregate.kind == "mean"
        if counted or (value is not None and self.graph.nodes[value.node].nullable):
            self.with_count.add(self.number[key])
        self.types[id(aggregate)] = (kind, self.number[key], value.type if value is not None else INTEGER)

    def add_variance(self, aggregate: Aggregate) -> None:
        """Of integers or decimals whose squares fit 64 bits."""
        assert aggregate.of is not None
        parts = aggregate.of.mean(), (aggregate.of * aggregate.of).sum()
        assert isinstance(parts[0], Aggregate)
        assert isinstance(parts[1], Aggregate)
        self.squares[id(aggregate)] = (parts[0], parts[1])
        for part in self.squares[id(aggregate)]:
            self.add(part)

    def _needs(self, aggregate: Aggregate) -> tuple[str, Typed | None]:
        if aggregate.kind == "len" or aggregate.of is None:
            return "rows", None
        value = self.graph.lower(aggregate.of)
        if aggregate.kind == "count":
            return ("count", value) if self.graph.nodes[value.node].nullable else ("rows", None)
        kind = value.type.kind
        if aggregate.kind in ("sum", "mean"):
            if not (value.type.is_numeric or kind == "boolean"):
                raise TypeError(f"{shown(aggregate)}: there is no {aggregate.kind} of values of type {kind}")
            return ("number_sum" if value.type.is_number else "integer_sum"), value
        if kind == "string":
            (value,) = in_order(self.graph, value)
        return f"{'number' if value.type.is_number else 'integer'}_{aggregate.kind}imum", value

    def wanted(self, program: Program) -> list[list[int]]:
        register = dict(zip(self.nodes, program.outputs, strict=False))
        return [[KINDS.index(kind), register.get(node, 0)] for kind, node in self.kinds]

    def counted(self, program: Program) -> list[list[int]]:
        """The same, and whether values are counted, for groups in a hash table."""
        return [[*each, k in self.with_count] for k, each in enumerate(self.wanted(program))]

    def places(self, first: int = 0) -> list[Place]:
        """Which words of a group its sums have, from a first one on."""
        found, at = [], first
        for k, (kind, _) in enumerate(self.kinds):
            values = 0 if kind in ("rows", "count") else 2 if kind == "integer_sum" else 1
            counted = k in self.with_count
            found.append(Place(at, values, at + values if counted else None))
            at += values + counted
        return found

    def sums(self, words: npt.NDArray[np.uint64]) -> Sums:
        """What comes of these, of the first sum on."""
        groups = words.shape[1]
        nothing, one = (np.broadcast_to(np.uint64(each), groups) for each in (0, 1))
        made = []
        for place in self.places():
            low = words[place.low] if place.values else nothing
            high = words[place.low + 1] if place.values == 2 else nothing
            made.append((low, high, one if place.count is None else words[place.count]))
        return Sums(made, groups)

    def finish(self, expression: Expr, found: Sums) -> ResultColumn:
        """The result of an expression of aggregates, for each group."""
        if isinstance(expression, Alias):
            return replace(self.finish(expression.of, found), name=expression.name)
        if isinstance(expression, Aggregate):
            return self._finish(expression, found)
        values, valid, kind = self._combined(expression, found)
        if kind.is_number:
            return ResultColumn(name_of(expression), kind, values.astype(np.float64).view(np.uint64), valid)
        if any(not -(1 << 63) <= value < 1 << 63 for value in values):
            raise OverflowError(f"{shown(expression)}: it is beyond 64 bits: cast to float before")
        return ResultColumn(name_of(expression), kind, values.astype(np.int64).view(np.uint64), valid)

    def _finish(self, aggregate: Aggregate, found: Sums) -> ResultColumn:
        name, everywhere = name_of(aggregate), np.ones(found.groups, bool)
        if id(aggregate) in self.squares:
            return replace(self._variance(aggregate, found), name=name)
        if aggregate.kind in APART:
            return replace(found.apart[id(aggregate)], name=name)
        kind, number, of = self.types[id(aggregate)]
        low, high, counted = found.words[number]
        some = counted != 0
        if aggregate.kind in ("len", "count"):
            return ResultColumn(name, INTEGER, counted, everywhere)
        if kind.startswith("number_m"):
            return ResultColumn(name, of, numbers_of_sorted(low), some)
        if kind.endswith("imum"):
            return ResultColumn(name, of, low, some)
        valid = some if aggregate.or_null or aggregate.kind == "mean" else everywhere
        if kind == "number_sum":
            with np.errstate(all="ignore"):
                sums = low.view(np.float64) + high.view(np.float64)
                made = sums / np.where(some, counted, 1) if aggregate.kind == "mean" else sums
            return ResultColumn(name, FLOAT, made.view(np.uint64), valid)
        if aggregate.kind == "mean":
            means = _means(low, high, np.maximum(counted, 1), 10**of.scale)
            return ResultColumn(name, FLOAT, means.view(np.uint64), valid)
        some = range(0, found.groups, CHECKED)
        if not all(_fits(low[k : k + CHECKED], high[k : k + CHECKED]).all() for k in some):
            raise OverflowError(f"{shown(aggregate)}: it is beyond 64 bits: cast to float before")
        return ResultColumn(name, of if of.kind == "decimal" else INTEGER, low, valid)

    def _variance(self, aggregate: Aggregate, found: Sums) -> ResultColumn:
        """From sums, rounded once."""
        (_, mean, of), (_, square, _) = (self.types[id(part)] for part in self.squares[id(aggregate)])
        low, high, counted = found.words[mean]
        low_of_squares, high_of_squares, _ = found.words[square]
        degrees = counted.view(np.int64) - (not aggregate.of_all)
        made, unit = np.zeros(found.groups), 10 ** (2 * of.scale)
        for k in np.flatnonzero(degrees > 0):
            count, total = int(counted[k]), _signed(int(low[k]), int(high[k]))
            squares = _signed(int(low_of_squares[k]), int(high_of_squares[k]))
            made[k] = (count * squares - total * total) / (count * int(degrees[k]) * unit)
        if aggregate.kind == "deviation":
            made = np.sqrt(made)
        return ResultColumn("", FLOAT, made.view(np.uint64), degrees > 0)

    def is_plain(self, expression: Expr) -> bool:
        """Whether it is an aggregate, or sums, differences, products and ratios of numeric aggregates and
        numbers, which are exact."""
        match expression:
            case Alias(of, _):
                return self.is_plain(of)
            case Call(name, args):
                return name in PLAIN and all(self._is_number(arg) or _is_number(arg) for arg in args)
        return isinstance(expression, Aggregate)

    def _is_number(self, expression: Expr) -> bool:
        of = self.types.get(id(expression))
        is_same = isinstance(expression, Aggregate) and expression.kind in ("min", "max")
        return self.is_plain(expression) and not (is_same and of is not None and not of[2].is_numeric)

    def _combined(self, expression: Expr, found: Sums) -> tuple[Any, Any, ColumnType]:
        """Values of aggregates and what is made of them: floating-point numbers, or Python's integers with
        the type that says where their point is."""
        if isinstance(expression, Value):
            return (*_literal(expression.value, found.groups),)
        if isinstance(expression, Aggregate | Alias):
            column = self.finish(expression, found)
            if not column.type.is_numeric:
                raise TypeError(f"{shown(expression)}: arithmetic takes numbers")
            if column.type.is_number:
                return column.bits.view(np.float64), column.valid, FLOAT
            kind = column.type if column.type.kind == "decimal" else INTEGER
            return column.bits.view(np.int64).astype(object), column.valid, kind
        assert isinstance(expression, Call)  # see is_plain
        parts = [self._combined(arg, found) for arg in expression.args]
        (a, of_a, kind_a), (b, of_b, kind_b) = parts[0], parts[-1]
        valid = of_a & of_b
        if expression.name == "negate":
            return -a, valid, kind_a
        if expression.name == "divide" or kind_a.is_number or kind_b.is_number:
            x, y = _as_floats(a, kind_a), _as_floats(b, kind_b)
            with np.errstate(all="ignore"):
                made = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
                return made[expression.name](x, y), valid, FLOAT
        if expression.name == "multiply":
            scale = kind_a.scale + kind_b.scale
            return a * b, valid, ColumnType("decimal", scale=scale) if scale else INTEGER
        scale = max(kind_a.scale, kind_b.scale)
        a, b = a * 10 ** (scale - kind_a.scale), b * 10 ** (scale - kind_b.scale)
        whole = ColumnType("decimal", scale=scale) if "decimal" in (kind_a.kind, kind_b.kind) else INTEGER
        return (a + b if expression.name == "add" else a - b), valid, whole


def _is_number(expression: Expr) -> bool:
    value = expression.value if isinstance(expression, Value) else None
    return isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)


def _literal(value: Any, count: int) -> tuple[Any, Any, ColumnType]:
    there = np.ones(count, bool)
    if isinstance(value, decimal.Decimal):
        scale = max(0, -int(value.as_tuple().exponent))
        return np.full(count, int(value.scaleb(scale)), object), there, ColumnType("decimal", scale=scale)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} beside an aggregate: give a number")
    if isinstance(value, float):
        return np.full(count, value), there, FLOAT
    return np.full(count, value, object), there, INTEGER


def _as_floats(values: Any, kind: ColumnType) -> npt.NDArray[np.float64]:
    if kind.is_number:
        return np.asarray(values, np.float64)
    unit = 10**kind.scale
    return np.array([value / unit for value in values], np.float64)


def _fits(low: npt.NDArray[np.uint64], high: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Whether sums are no more than their lower word says, as a signed one."""
    fits: npt.NDArray[np.bool_] = high.view(np.int64) == low.view(np.int64) >> 63
    return fits


def _means(
    low: npt.NDArray[np.uint64], high: npt.NDArray[np.uint64], counted: npt.NDArray[np.uint64], unit: int
) -> npt.NDArray[np.float64]:
    """Sums over counts, rounded once: floating-point numbers have both where they are below 2^53."""
    whole = low.view(np.int64)
    exact = _fits(low, high) & (np.abs(whole) < 1 << 53) & (counted < (1 << 53) // unit)
    means: npt.NDArray[np.float64] = whole / (counted * np.uint64(unit)).astype(np.float64)
    for k in np.flatnonzero(~exact):
        means[k] = _signed(int(low[k]), int(high[k])) / (int(counted[k]) * unit)
    return means


def _signed(low: int, high: int) -> int:
    whole = high << 64 | low
    return whole - (1 << 128) if whole >> 127 else whole

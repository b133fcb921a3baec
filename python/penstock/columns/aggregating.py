"""Aggregates of a query: the sums that the engine makes, and the results that are computed of them."""

from __future__ import annotations

import decimal
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.columns.assembling import Program
from penstock.columns.expressions import Aggregate, Alias, Call, Expr, Value, name_of
from penstock.columns.lowering import Graph, Typed, shown
from penstock.columns.results import ResultColumn
from penstock.columns.types import FLOAT, INTEGER, ColumnType

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


class AggregatePlan:
    """The sums that the engine makes for some aggregates, each once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinds: list[tuple[str, int]] = []
        self.number: dict[tuple[str, int], int] = {}
        self.nodes: list[int] = []
        self.types: dict[int, tuple[str, int, ColumnType]] = {}

    def add(self, aggregate: Aggregate) -> None:
        kind, value = self._needs(aggregate)
        key = (kind, value.node if value is not None else -1)
        if key not in self.number:
            self.number[key] = len(self.kinds)
            self.kinds.append(key)
            if value is not None and value.node not in self.nodes:
                self.nodes.append(value.node)
        self.types[id(aggregate)] = (kind, self.number[key], value.type if value is not None else INTEGER)

    def _needs(self, aggregate: Aggregate) -> tuple[str, Typed | None]:
        if aggregate.kind == "len" or aggregate.of is None:
            return "rows", None
        value = self.graph.lower(aggregate.of)
        if aggregate.kind == "count":
            return "count", value
        kind = value.type.kind
        if aggregate.kind in ("sum", "mean"):
            if not (value.type.is_numeric or kind == "boolean"):
                raise TypeError(f"{shown(aggregate)}: there is no {aggregate.kind} of values of type {kind}")
            return ("number_sum" if value.type.is_number else "integer_sum"), value
        if kind == "string":
            raise TypeError(f"{shown(aggregate)}: texts have no order here: group by them, or count them")
        return f"{'number' if value.type.is_number else 'integer'}_{aggregate.kind}imum", value

    def wanted(self, program: Program) -> list[list[int]]:
        register = dict(zip(self.nodes, program.outputs, strict=False))
        return [[KINDS.index(kind), register.get(node, 0)] for kind, node in self.kinds]

    def finish(self, expression: Expr, found: npt.NDArray[np.uint64]) -> ResultColumn:
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

    def _finish(self, aggregate: Aggregate, found: npt.NDArray[np.uint64]) -> ResultColumn:
        kind, number, of = self.types[id(aggregate)]
        low, high, counted = (found[:, number, k] for k in range(3))
        some = counted != 0
        everywhere = some if aggregate.or_null else np.ones(len(low), bool)
        name = name_of(aggregate)
        if aggregate.kind in ("len", "count"):
            return ResultColumn(name, INTEGER, counted, np.ones(len(low), bool))
        if kind.startswith("number_m"):
            return ResultColumn(name, of, _numbers(low), some)
        if kind.endswith("imum"):
            return ResultColumn(name, of, low, some)
        if kind == "number_sum":
            with np.errstate(all="ignore"):
                sums = low.view(np.float64) + high.view(np.float64)
                means = sums / np.where(some, counted, 1)
            chosen = means if aggregate.kind == "mean" else sums
            return ResultColumn(
                name, FLOAT, chosen.view(np.uint64), some if aggregate.kind == "mean" else everywhere
            )
        wide = [_signed(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        if aggregate.kind == "mean":
            unit = 10**of.scale
            means = np.array(
                [w / (max(n, 1) * unit) for w, n in zip(wide, counted.tolist(), strict=True)], np.float64
            )
            return ResultColumn(name, FLOAT, means.view(np.uint64), some)
        if any(not -(1 << 63) <= w < 1 << 63 for w in wide):
            raise OverflowError(f"{shown(aggregate)}: it is beyond 64 bits: cast to float before")
        kept = of if of.kind == "decimal" else INTEGER
        return ResultColumn(name, kept, np.array(wide, np.int64).view(np.uint64), everywhere)

    def _combined(self, expression: Expr, found: npt.NDArray[np.uint64]) -> tuple[Any, Any, ColumnType]:
        """Values of aggregates and what is made of them: floating-point numbers, or Python's integers with
        the type that says where their point is."""
        if isinstance(expression, Value):
            return (*_literal(expression.value, len(found)),)
        if isinstance(expression, Aggregate | Alias):
            column = self.finish(expression, found)
            if not column.type.is_numeric:
                raise TypeError(f"{shown(expression)}: arithmetic takes numbers")
            if column.type.is_number:
                return column.bits.view(np.float64), column.valid, FLOAT
            kind = column.type if column.type.kind == "decimal" else INTEGER
            return column.bits.view(np.int64).astype(object), column.valid, kind
        if not isinstance(expression, Call) or expression.name not in (
            "add",
            "subtract",
            "multiply",
            "divide",
            "negate",
        ):
            raise TypeError(
                f"{shown(expression)}: of aggregates there are sums, differences, products, ratios: do the "
                "rest with the result"
            )
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


def _signed(low: int, high: int) -> int:
    whole = high << 64 | low
    return whole - (1 << 128) if whole >> 127 else whole


def _numbers(sorted_bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """As number_of in libs/columns/column_view.hpp."""
    whole = sorted_bits.view(np.int64)
    most = np.iinfo(np.int64).max
    bits = np.where(whole < 0, whole ^ most, whole)
    return np.where(whole == most, np.array(np.nan).view(np.int64), bits).view(np.uint64)

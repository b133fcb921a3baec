"""Texts of values that are none: CAST to VARCHAR and STRFTIME.

What an expression gives is found once for each table, by groups; each value gets its text on the host,
and rows look it up as they do in a join.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.columns.expressions import Expr, columns_of, count
from penstock.columns.graph import Typed
from penstock.columns.joining import Join
from penstock.columns.lowering_texts import is_literal, literal_text, merged
from penstock.columns.other_tables import ResultColumns
from penstock.columns.results import ResultColumn
from penstock.columns.shown import shown
from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph
    from penstock.columns.table import Table

MOST_VALUES = 1 << 20
TRUTHS = ("false", "true")
BELOW_ZERO = "-0.0"
"""Zero with a sign: equal to the other, and another text."""


@dataclass(frozen=True, eq=False)
class Printing:
    """How values become texts, and those that tables have."""

    text: Callable[[ColumnType, Any], str]
    """Of a type, and a Python value of it."""
    is_cast: bool = True
    """Of texts it is nothing, of truth values their names."""
    kept: dict[int, tuple[Table, Join]] = field(default_factory=dict)
    """By the table, which is kept so that no other has its id."""

    def forget(self) -> None:
        """Lets go of the texts in executors' memory; another run takes them there again."""
        for _, join in self.kept.values():
            join.forget()


def printed(graph: Graph, of: Expr, how: Printing) -> Typed:
    """The texts of an expression's values.

    Raises:
        TypeError: A format of dates and times, and values that are none.
        ValueError: There are too many, or one that has no text.
    """
    value = graph.lower(of)
    node = graph.nodes[value.node]
    if how.is_cast and value.type.kind == "string":
        return value
    if node.op == "null":
        return graph.literal(None, ColumnType("string", words=()))
    if how.is_cast and value.type.kind == "boolean":
        return Typed(value.node, ColumnType("string", words=TRUTHS))
    if not how.is_cast and value.type.kind not in ("date", "timestamp"):
        raise TypeError(f"{shown(of)} is {value.type}: a date or a time is wanted for strftime")
    if is_literal(graph, value):
        bits = np.array([node.bits], np.uint64)
        return literal_text(graph, _texts(ResultColumn("", value.type, bits, np.ones(1, bool)), how)[0])
    table: Table = graph.schema  # type: ignore[assignment]
    if id(table) not in how.kept:
        how.kept[id(table)] = (table, _join(graph, table, of, how))
    text = how.kept[id(table)][1].lower(graph, "text")
    return _with_sign(graph, value, text) if value.type.is_number else text


def _join(graph: Graph, table: Table, of: Expr, how: Printing) -> Join:
    names = set(columns_of(of))
    joins: list[Join] = []
    for join in reversed(graph.joins):
        if names & set(join.names):
            joins.insert(0, join)
            names |= {name for key in join.keys for name in columns_of(key)}
    query = replace(table.filter(), joins=tuple(joins))
    groups = query.group_by(of.alias("value")).agg(n=count()).collect()
    if groups.row_count > MOST_VALUES:
        raise ValueError(
            f"{shown(of)}: it has {groups.row_count} different values, and {MOST_VALUES} at most become "
            "texts: select it as it is"
        )
    values = groups.column("value")
    texts = _texts(values, how)
    there = (text for text, ok in zip(texts, values.valid, strict=True) if ok)
    code_of = {text: code for code, text in enumerate(dict.fromkeys(there))}
    codes = np.array([code_of.get(text, 0) for text in texts], np.uint64)
    kind = ColumnType("string", words=tuple(code_of))
    columns = ResultColumns([values, ResultColumn("text", kind, codes, values.valid)])
    return Join((of,), columns, ("value",), "left", {"text": "text"})


def _texts(values: ResultColumn, how: Printing) -> list[str]:
    given = values.to_arrow().to_pylist() if not values.type.is_number else values.values()
    return ["" if not ok else how.text(values.type, v) for v, ok in zip(given, values.valid, strict=True)]


def _with_sign(graph: Graph, value: Typed, text: Typed) -> Typed:
    zero, one = graph.float(0.0), graph.float(1.0)
    is_zero = graph.add("equal", value.node, zero)
    is_below = graph.add("less", graph.add("divide", one, value.node, is_number=True), zero)
    text, below = merged(graph, text, literal_text(graph, BELOW_ZERO))
    node = graph.add("select", graph.add("logic_and", is_zero, is_below), below.node, text.node)
    return Typed(node, below.type)


def as_varchar(kind: ColumnType, value: Any) -> str:
    """As DuckDB prints it."""
    match kind.kind:
        case "float":
            return repr(float(str(value)))  # the fewest digits that this width needs
        case "timestamp":
            if kind.zone is not None:
                raise ValueError(f"{value}: a time with a zone is no text here: cast it to a date before")
            return _time(value)
        case "date":
            return str(value.isoformat())
    return str(value)


def _time(value: datetime.datetime) -> str:
    whole = value.isoformat(" ")
    return whole.rstrip("0") if "." in whole else whole

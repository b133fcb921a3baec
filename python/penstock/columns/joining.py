"""Joins with a table of few rows in the executor's memory: each row of the large one meets one or none."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from penstock.columns.expressions import Expr
from penstock.columns.lowering import Graph, Typed, shown
from penstock.columns.results import ResultColumn
from penstock.columns.types import ColumnType
from penstock.native import load_native

if TYPE_CHECKING:
    from penstock._native import ColumnKeys
    from penstock.columns.query import Query

How = Literal["inner", "left", "semi", "anti"]
HOWS = ("inner", "left", "semi", "anti")


class Columns(Protocol):
    """The other table, a column at a time."""

    names: list[str]

    def column(self, name: str) -> ResultColumn: ...


class QueryColumns:
    """Columns of a query's result, each read when it is asked for."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.names = query.names()

    def column(self, name: str) -> ResultColumn:
        return self.query.result_column(name)


class ResultColumns:
    """Columns that have been read."""

    def __init__(self, columns: list[ResultColumn]) -> None:
        self.names = [column.name for column in columns]
        self._columns = dict(zip(self.names, columns, strict=True))

    def column(self, name: str) -> ResultColumn:
        return self._columns[name]


@dataclass(eq=False)
class Join:
    """One join of a query."""

    key: Expr
    other: Columns
    other_key: str
    how: How
    names: Mapping[str, str]
    """What the query calls the other table's columns, and what they are called there."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    places: dict[Any, ColumnKeys] = field(default_factory=dict)
    keys: npt.NDArray[np.uint64] | None = None
    """Of the rows that have one."""
    lookups: dict[Any, Any] = field(default_factory=dict)
    columns: dict[str, ResultColumn] = field(default_factory=dict)

    def lower(self, graph: Graph, name: str) -> Typed:
        """The value of a column of the other table that a row meets; null where it meets none."""
        key = graph.lower(self.key)
        column = self.column(name)
        with self.lock:
            places = self._places(key.type)
            node = key.node
            if not places.in_order:
                number = graph.kept(self._lookup(graph, places, None))
                node = graph.add("find", node, number=number, nullable=True)
            number = graph.kept(self._lookup(graph, places, column))
        kind = column.type
        return Typed(
            graph.add(
                "lookup",
                node,
                number=number,
                bits=places.low if places.in_order else 0,
                is_number=kind.is_number,
                nullable=True,
            ),
            kind,
        )

    def condition(self, graph: Graph) -> int | None:
        """Which rows stay; None: all."""
        if self.how == "left":
            return None
        missing = graph.add("is_null", self.lower(graph, self.other_key).node, nullable=False)
        return missing if self.how == "anti" else graph.add("logic_not", missing)

    def column(self, name: str) -> ResultColumn:
        with self.lock:
            if name not in self.columns:
                self.columns[name] = self.other.column(name)
            return self.columns[name]

    def _lookup(self, graph: Graph, places: ColumnKeys, column: ResultColumn | None) -> Any:
        """In the executor's memory; a column, or the keys of the slots."""
        native = graph.schema.native  # type: ignore[attr-defined]
        of = (id(native), id(places), None if column is None else column.name)
        if of not in self.lookups:
            there = self.columns[self.other_key].valid
            values = self.keys if column is None else column.bits if there.all() else column.bits[there]
            valid = np.zeros(0, np.uint8)
            if column is not None and not column.valid.all():
                valid = column.valid[there].astype(np.uint8)
            assert values is not None
            # The table is kept, so that no other has its id.
            self.lookups[of] = (native, native.keep(places, np.ascontiguousarray(values), valid))
        return self.lookups[of][1]

    def _places(self, kind: ColumnType) -> ColumnKeys:
        column = self.columns.get(self.other_key) or self.other.column(self.other_key)
        self.columns[self.other_key] = column
        self._check_types(kind, column.type)
        if self.keys is None:
            self.keys = np.ascontiguousarray(column.bits if column.valid.all() else column.bits[column.valid])
        of = kind.words if kind.kind == "string" else None
        if of not in self.places:
            if kind.kind == "string":
                self.places[of] = self._by_words(self.keys, column.type.words or (), kind.words or ())
            else:
                self.places[of] = self._by_value(self.keys, column.type)
        return self.places[of]

    def _by_value(self, keys: npt.NDArray[np.uint64], kind: ColumnType) -> ColumnKeys:
        placed: ColumnKeys = load_native().ColumnKeys.by_value(keys)
        again = placed.again
        if again is not None and self.how in ("inner", "left"):
            row = ResultColumn("", kind, keys[again : again + 1], np.ones(1, bool))
            raise self._repeated(row.to_arrow().to_pylist()[0])
        return placed

    def _by_words(
        self, keys: npt.NDArray[np.uint64], words: tuple[str, ...], others: tuple[str, ...]
    ) -> ColumnKeys:
        """By the codes of the rows' own dictionary; words that it does not have go to a place behind."""
        codes, counts = np.unique(keys, return_counts=True)
        if self.how in ("inner", "left") and len(counts) and counts.max() > 1:
            raise self._repeated(words[int(codes[counts.argmax()])])
        code_of = {word: code for code, word in enumerate(others)}
        place = np.array([code_of.get(word, len(others)) for word in words], np.int64)
        placed: ColumnKeys = load_native().ColumnKeys.at(place[keys.view(np.int64)].tolist(), len(others) + 1)
        return placed

    def _repeated(self, key: Any) -> ValueError:
        return ValueError(
            f"join on {shown(self.key)}: {key!r} stands more than once in {self.other_key!r} of the other "
            "table, and a row meets one of its rows at most: make its keys unique with group_by(), or join "
            "the other way round"
        )

    def _check_types(self, mine: ColumnType, other: ColumnType) -> None:
        same = mine.kind == other.kind and (mine.scale, mine.unit) == (other.scale, other.unit)
        if not same:
            raise TypeError(
                f"join on {shown(self.key)}: it is {mine} here and {other} there: give both the same type"
            )
        if mine.is_number:
            raise TypeError(
                f"join on {shown(self.key)}: its values are floating-point numbers: cast(int) them"
            )


def columns_of_source(source: Any) -> Columns:
    """The columns of what is joined with: a table, a query, a result, or what open_table takes."""
    from penstock.columns.query import Query
    from penstock.columns.results import Result
    from penstock.columns.table import Table, open_table

    if isinstance(source, Result):
        return ResultColumns(source.columns)
    if isinstance(source, Table):
        return QueryColumns(Query(source))
    if isinstance(source, Query):
        return QueryColumns(source) if source.is_by_row else ResultColumns(source.collect().columns)
    with open_table(source, executor="cpu") as table:
        return ResultColumns(table.collect().columns)

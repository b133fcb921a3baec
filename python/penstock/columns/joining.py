"""Joins with a table of few rows in the executor's memory: each row of the large one meets one or none."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from penstock.columns.expressions import Expr
from penstock.columns.lowering import Graph, Typed, shown
from penstock.columns.results import ResultColumn
from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from penstock._native import ColumnKeys, ColumnLookup, ColumnRows, ColumnTable
    from penstock.columns.query import Query

How = Literal["inner", "left", "semi", "anti"]
HOWS = ("inner", "left", "semi", "anti")
NO_PLACE = np.uint64((1 << 64) - 1)
"""As libs/columns/join_bodies.hpp has it."""


class RepeatedKeyError(ValueError):
    """The other table has a key more than once."""


class Columns(Protocol):
    """The other table, a column at a time."""

    names: list[str]

    def type_of(self, name: str) -> ColumnType: ...

    def rows(self, native: ColumnTable, name: str) -> ColumnRows:
        """Where kernels of a table's executor reach them."""

    def host(self, name: str) -> ResultColumn: ...


class QueryColumns:
    """Columns of a query's result, each read when it is asked for."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.names = query.names()

    def type_of(self, name: str) -> ColumnType:
        return self.query.type_of(name)

    def rows(self, native: ColumnTable, name: str) -> ColumnRows:
        if native.executor != self.query.table.native.executor:
            return _uploaded(native, self.host(name))
        return self.query.kept_column(name)

    def host(self, name: str) -> ResultColumn:
        return self.query.result_column(name)


class ResultColumns:
    """Columns that have been read."""

    def __init__(self, columns: list[ResultColumn]) -> None:
        self.names = [column.name for column in columns]
        self._columns = dict(zip(self.names, columns, strict=True))

    def type_of(self, name: str) -> ColumnType:
        return self._columns[name].type

    def rows(self, native: ColumnTable, name: str) -> ColumnRows:
        return _uploaded(native, self._columns[name])

    def host(self, name: str) -> ResultColumn:
        return self._columns[name]


def _uploaded(native: ColumnTable, column: ResultColumn) -> ColumnRows:
    return native.upload(np.ascontiguousarray(column.bits), column.valid.astype(np.uint8))


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
    placed: dict[Any, Placed] = field(default_factory=dict)
    """By the table, and the texts that its key has."""

    def lower(self, graph: Graph, name: str) -> Typed:
        """The value of a column of the other table that a row meets; null where it meets none."""
        key = graph.lower(self.key)
        kind = self.other.type_of(name)
        with self.lock:
            placed = self._placed(graph.schema.native, key.type)  # type: ignore[attr-defined]
            node, keys = key.node, placed.keys
            if not keys.in_order:
                number = graph.kept(placed.lookup(self.other, self.other_key))
                node = graph.add("find", node, number=number, nullable=True)
            number = graph.kept(placed.lookup(self.other, name))
        found = graph.add(
            "lookup", node, number=number, bits=keys.low, is_number=kind.is_number, nullable=True
        )
        return Typed(found, kind)

    def extremes(self, graph: Graph, name: str) -> tuple[int, int] | None:
        """Of a column of the other table, in rows that have a key; None: no row has a value."""
        native: ColumnTable = graph.schema.native  # type: ignore[attr-defined]
        key = graph.lower(self.key)
        with self.lock:
            placed = self._placed(native, key.type)
            lookup = placed.lookup(self.other, name)
            if name not in placed.extremes:
                placed.extremes[name] = native.extremes(lookup)
            return placed.extremes[name]

    def condition(self, graph: Graph) -> int | None:
        """Which rows stay; None: all."""
        if self.how == "left":
            return None
        missing = graph.add("is_null", self.lower(graph, self.other_key).node, nullable=False)
        return missing if self.how == "anti" else graph.add("logic_not", missing)

    def _placed(self, native: ColumnTable, kind: ColumnType) -> Placed:
        of = (id(native), kind.words if kind.kind == "string" else None)
        if of not in self.placed:
            theirs = self.other.type_of(self.other_key)
            self._check_types(kind, theirs)
            if kind.kind == "string":
                keys = self._by_words(native, kind.words or ())
            else:
                keys = native.place(self.other.rows(native, self.other_key))
                if keys.again is not None and self.how in ("inner", "left"):
                    bits = np.array([keys.again], np.uint64)
                    raise self._repeated(
                        ResultColumn("", theirs, bits, np.ones(1, bool)).to_arrow().to_pylist()[0]
                    )
            self.placed[of] = Placed(native, keys)
        return self.placed[of]

    def _by_words(self, native: ColumnTable, others: tuple[str, ...]) -> ColumnKeys:
        """By the codes of the rows' own dictionary; words that it does not have go to a place behind."""
        column = self.other.host(self.other_key)
        words = column.type.words or ()
        codes, counts = np.unique(column.bits[column.valid], return_counts=True)
        if self.how in ("inner", "left") and len(counts) and counts.max() > 1:
            raise self._repeated(words[int(codes[counts.argmax()])])
        code_of = {word: code for code, word in enumerate(others)}
        place = np.array([code_of.get(word, len(others)) for word in words] or [0], np.uint64)
        code = np.where(column.valid, column.bits, 0).astype(np.int64)
        places = np.where(column.valid, place[code], NO_PLACE)
        return native.place_at(np.ascontiguousarray(places), len(others) + 1)

    def _repeated(self, key: Any) -> RepeatedKeyError:
        return RepeatedKeyError(
            f"join on {shown(self.key)}: {key!r} stands more than once in {self.other_key!r} of the other "
            "table, and a row meets one of its rows at most: make its keys unique with group_by(), or join "
            "the other way round"
        )

    def _check_types(self, mine: ColumnType, other: ColumnType) -> None:
        same = mine.kind == other.kind and (mine.scale, mine.unit) == (other.scale, other.unit)
        if not same or (mine.zone is None) != (other.zone is None):
            raise TypeError(
                f"join on {shown(self.key)}: it is {mine} here and {other} there: give both the same type"
            )
        if mine.is_number:
            raise TypeError(
                f"join on {shown(self.key)}: its values are floating-point numbers: cast(int) them"
            )


@dataclass
class Placed:
    """The other table's rows in the memory of a table's executor, as far as they have been asked for."""

    native: ColumnTable
    """Kept, so that no other has its id."""
    keys: ColumnKeys
    lookups: dict[str, ColumnLookup] = field(default_factory=dict)
    extremes: dict[str, tuple[int, int] | None] = field(default_factory=dict)

    def lookup(self, other: Columns, name: str) -> ColumnLookup:
        if name not in self.lookups:
            self.lookups[name] = self.native.lookup(self.keys, other.rows(self.native, name))
        return self.lookups[name]

"""Joins with a table of few rows in the executor's memory: each row of the large one meets one or none."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from penstock.columns.expressions import Expr, calls_of, columns_of
from penstock.columns.graph import Typed
from penstock.columns.join_keys import is_stored_so, key_type, other_key, own_key
from penstock.columns.key_packing import KeyPacking, RankTable
from penstock.columns.other_tables import Columns, uploaded
from penstock.columns.results import ResultColumn
from penstock.columns.shown import shown
from penstock.columns.types import ColumnType, numbers_of_sorted

if TYPE_CHECKING:
    from penstock._native import ColumnKeys, ColumnLookup, ColumnRows, ColumnTable
    from penstock.columns.lowering import Graph
    from penstock.columns.table import Table

How = Literal["inner", "left", "semi", "anti"]
HOWS = ("inner", "left", "semi", "anti")
NO_PLACE = np.uint64((1 << 64) - 1)
"""As libs/columns/join_bodies.hpp has it."""


PACKED = ""
"""Stands for keys that are no column of the other table among the names of lookups."""


class RepeatedKeyError(ValueError):
    """The other table has a key more than once."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: make its keys unique with group_by(), or join the other way round")
        self.what = what
        self.tables: tuple[set[str], str] | None = None
        """Of a statement: those that the key is of, and the other, as it names them."""


class KeyTypeError(TypeError):
    """Values of the key's types are no keys, or not of each other's."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
        self.what = what


@dataclass(eq=False)
class Join:
    """One join of a query."""

    keys: tuple[Expr, ...]
    other: Columns
    other_keys: tuple[str, ...]
    how: How
    names: Mapping[str, str]
    """What the query calls the other table's columns, and what they are called there."""
    before: Join | None = None
    """One that few rows meet, and that the query has, too: of the others no key is looked up."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    ways: list[Way] = field(default_factory=list)
    """One for each table and types of its keys."""

    def lower(self, graph: Graph, name: str) -> Typed:
        """The value of a column of the other table that a row meets; null where it meets none."""
        kind = self.other.type_of(name)
        with self.lock:
            node, way = self._key(graph)
            keys = way.placed().keys
            if not keys.in_order:
                node = graph.add("find", node, number=graph.kept(JoinTable(way, None)), nullable=True)
            number = graph.kept(JoinTable(way, name))
        found = graph.add(
            "lookup", node, number=number, bits=keys.low, is_number=kind.is_number, nullable=True
        )
        return Typed(found, kind)

    def extremes(self, graph: Graph, name: str) -> tuple[int, int] | None:
        """Of a column of the other table, in rows that have a key; None: no row has a value."""
        with self.lock:
            _, way = self._key(graph)
            if name not in way.extremes:
                way.extremes[name] = way.table.native.extremes(way.lookup(name))
            return way.extremes[name]

    def condition(self, graph: Graph) -> int | None:
        """Which rows stay; None: all."""
        if self.how == "left":
            return None
        missing = graph.add("is_null", self.met(graph), nullable=False)
        return missing if self.how == "anti" else graph.add("logic_not", missing)

    def met(self, graph: Graph) -> int:
        """A value that is null where a row meets none."""
        return self.lower(graph, self.other_keys[0]).node

    def count(self, graph: Graph) -> int:
        """Rows of the other table."""
        with self.lock:
            return self._key(graph)[1].placed().rows

    def shown(self) -> str:
        return ", ".join(shown(key) for key in self.keys)

    @property
    def is_lasting(self) -> bool:
        """See `Query.is_lasting`."""
        calls = (call for key in self.keys for call in calls_of(key))
        return all(call.name != "printed" for call in calls) and self.other.is_lasting

    def forget(self) -> None:
        """Lets go of the other table's rows; another run reads them again."""
        with self.lock:
            for way in self.ways:
                way.let_go()
        self.other.forget()

    def _key(self, graph: Graph) -> tuple[int, Way]:
        """See `Values.keys`."""
        if self not in graph.keys:
            graph.keys[self] = self._find_key(graph)
        return graph.keys[self]

    def _find_key(self, graph: Graph) -> tuple[int, Way]:
        given = [graph.lower(key) for key in self.keys]
        kinds = [self._kind(*each) for each in zip(self.keys, given, self.other_keys, strict=True)]
        keys = [own_key(graph, key, kind) for key, kind in zip(given, kinds, strict=True)]
        table: Table = graph.schema  # type: ignore[assignment]
        way = next((way for way in self.ways if way.table is table and way.kinds == kinds), None)
        if way is None:
            way = Way(self, table, kinds)
            self.ways.append(way)
        packing = way.placed().packing
        node = keys[0].node if packing is None else packing.node(graph, keys, partial(JoinTable, way))
        if self.before is not None:
            missed = graph.add("is_null", self.before.met(graph), nullable=False)
            node = graph.add("select", missed, graph.add("null", nullable=True), node, nullable=True)
        return node, way

    def _kind(self, key: Expr, mine: Typed, name: str) -> ColumnType:
        """What a key is compared as."""
        other = self.other.type_of(name)
        kind = key_type(mine.type, other)
        if kind is None:
            raise KeyTypeError(
                f"join on {shown(key)}: it is {mine.type} here and {other} there", "give both the same type"
            )
        return kind

    def place(self, native: ColumnTable, kinds: Sequence[ColumnType]) -> Placed:
        """Brings the keys into an executor's memory."""
        if len(kinds) > 1:
            packing, rows = self._packed(native, kinds)
            return Placed(self._unique(native.place(rows), None), rows.rows, packing, rows)
        (kind,), (name,) = kinds, self.other_keys
        if kind.kind == "string":
            column = self.other.host(name)
            return Placed(self._by_words(native, column, kind.words or ()), len(column.bits))
        if is_stored_so(kind, self.other.type_of(name)):
            rows = self.other.rows(native, name)
            return Placed(self._unique(native.place(rows), kind), rows.rows)
        rows = uploaded(native, other_key(self.other.host(name), kind))
        return Placed(self._unique(native.place(rows), kind), rows.rows, None, rows)

    def _packed(self, native: ColumnTable, kinds: Sequence[ColumnType]) -> tuple[KeyPacking, ColumnRows]:
        names = list(zip(self.other_keys, kinds, strict=True))
        if all(
            kind.kind == "integer" and is_stored_so(kind, self.other.type_of(name)) for name, kind in names
        ):
            found = self.other.packed(native, self.other_keys)
            if found is not None:
                lows, sizes, rows = found
                return KeyPacking(list(kinds), lows, sizes, [None] * len(kinds)), rows
        columns = [other_key(self.other.host(name), kind) for name, kind in names]
        return KeyPacking.of(native, columns, self.shown())

    def _unique(self, keys: ColumnKeys, kind: ColumnType | None) -> ColumnKeys:
        """`kind`: of a key that is not packed."""
        if keys.again is None or self.how not in ("inner", "left"):
            return keys
        if kind is None:
            raise self._repeated("a key")
        bits = np.array([keys.again], np.uint64)
        bits = numbers_of_sorted(bits) if kind.is_number else bits
        (value,) = ResultColumn("", kind, bits, np.ones(1, bool)).values()
        raise self._repeated(str(value))

    def _by_words(self, native: ColumnTable, column: ResultColumn, others: tuple[str, ...]) -> ColumnKeys:
        """By the codes of the rows' own dictionary; words that it does not have go to a place behind."""
        words = column.type.words or ()
        codes, counts = np.unique(column.bits[column.valid], return_counts=True)
        if self.how in ("inner", "left") and len(counts) and counts.max() > 1:
            raise self._repeated(repr(words[int(codes[counts.argmax()])]))
        code_of = {word: code for code, word in enumerate(others)}
        place = np.array([code_of.get(word, len(others)) for word in words] or [0], np.uint64)
        code = np.where(column.valid, column.bits, 0).astype(np.int64)
        places = np.where(column.valid, place[code], NO_PLACE)
        return native.place_at(np.ascontiguousarray(places), len(others) + 1)

    def _repeated(self, key: str) -> RepeatedKeyError:
        return RepeatedKeyError(
            f"join on {self.shown()}: {key} stands more than once in {', '.join(map(repr, self.other_keys))} "
            "of the other table, and a row meets one of its rows at most"
        )


MOST_OF_FIRST = 0.25


def with_first(joins: Sequence[Join], rows: Mapping[int, int], graph: Graph) -> tuple[Join, ...]:
    """Joins with the one that leaves the fewest rows before all others, where that is known and pays: what
    a row looks up is far from what the row before did.

    Args:
        joins: Of a query.
        rows: Of the tables that joins, by id, have some rows of.
        graph: Of the query.
    """
    left = {
        id(join): join.count(graph) / rows[id(join)]
        for join in joins
        if join.how in ("inner", "semi") and rows.get(id(join), 0)
    }
    first = min((join for join in joins if id(join) in left), key=lambda join: left[id(join)], default=None)
    if first is None or left[id(first)] > MOST_OF_FIRST:
        return tuple(joins)
    stay, names = {id(first)}, {name for key in first.keys for name in columns_of(key)}
    for join in reversed(joins):
        if names & set(join.names):
            stay.add(id(join))
            names |= {name for key in join.keys for name in columns_of(key)}
    return tuple(join if id(join) in stay else replace(join, before=first) for join in joins)


@dataclass
class Placed:
    """The other table's rows in an executor's memory, as far as they have been asked for."""

    keys: ColumnKeys
    rows: int
    packing: KeyPacking | None = None
    packed: ColumnRows | None = None
    """The keys, where they are not one of the other table's columns as it lies."""
    lookups: dict[str, ColumnLookup] = field(default_factory=dict)


@dataclass(eq=False)
class Way:
    """How the rows of a table find those of another by keys of some types. What is known of the other table
    stays; its rows are placed when they are asked for."""

    join: Join
    table: Table
    kinds: list[ColumnType]
    extremes: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    _placed: Placed | None = None

    def placed(self) -> Placed:
        if self._placed is None:
            self._placed = self.join.place(self.table.native, self.kinds)
        return self._placed

    def let_go(self) -> None:
        self._placed = None

    def lookup(self, name: str | RankTable | None) -> ColumnLookup:
        """Of a column, or of ranks; None: of the keys themselves, for those that are found in slots."""
        placed, native = self.placed(), self.table.native
        if isinstance(name, RankTable):
            ranks = placed.packing.ranks[name.key] if placed.packing is not None else None
            assert ranks is not None
            return ranks.slots if name.of_slots else ranks.numbers
        if name is None:
            name = self.join.other_keys[0] if placed.packed is None else PACKED
        if name not in placed.lookups:
            packed = placed.packed if name == PACKED else None
            rows = self.join.other.rows(native, name) if packed is None else packed
            placed.lookups[name] = native.lookup(placed.keys, rows)
        return placed.lookups[name]


@dataclass(frozen=True)
class JoinTable:
    """Stands for a lookup of a join in programs, which outlive it."""

    way: Way
    name: str | RankTable | None

    def lookup(self) -> ColumnLookup:
        with self.way.join.lock:
            return self.way.lookup(self.name)

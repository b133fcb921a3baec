"""Keys of several columns as one integer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from penstock.columns.graph import Typed
from penstock.columns.results import ResultColumn
from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from penstock._native import ColumnKeys, ColumnLookup, ColumnRows, ColumnTable
    from penstock.columns.joining import JoinTable
    from penstock.columns.lowering import Graph
    from penstock.columns.query import Query

MOST_COMBINATIONS = (1 << 63) - 1
"""How many values one of several keys has is an integer, too."""


def combinations(columns: Sequence[ResultColumn]) -> int:
    """How many keys of several columns there may be between their extremes."""
    values = [column.bits.view(np.int64)[column.valid] for column in columns]
    return math.prod(int(each.max()) - int(each.min()) + 1 if len(each) else 1 for each in values)


def packed_in_place(query: Query, names: Sequence[str]) -> tuple[list[int], list[int], ColumnRows] | None:
    """Integers of a query's columns as one, made where its rows lie: the least of each, between how many
    values they are, and the rows. None: no row has all, or there are too many combinations."""
    ends = query.once(("extremes", *names), lambda: _extremes(query, names))
    lows, sizes = [low for low, _ in ends], [high - low + 1 for low, high in ends]
    if not ends or math.prod(sizes) > MOST_COMBINATIONS:
        return None
    digits = query.once(("digits", *names), lambda: _digits(query, names, lows, sizes))
    return lows, sizes, digits.kept_columns(["digits"])[0]


def _extremes(query: Query, names: Sequence[str]) -> list[tuple[int, int]]:
    given = [query.output(name) for name in names]
    ends = {f"{end}{k}": getattr(each, end)() for k, each in enumerate(given) for end in ("min", "max")}
    (row,) = replace(query, outputs=None).agg(**ends).collect().rows()
    return [] if None in row else list(zip(row[::2], row[1::2], strict=True))


def _digits(query: Query, names: Sequence[str], lows: Sequence[int], sizes: Sequence[int]) -> Query:
    digits = [query.output(name).cast(int) - low for name, low in zip(names, lows, strict=True)]
    whole = digits[0]
    for digit, size in zip(digits[1:], sizes[1:], strict=True):
        whole = whole * size + digit
    return replace(query, outputs=(whole.alias("digits"),))


@dataclass(frozen=True)
class RankTable:
    """Names a table of the ranks of one of several keys."""

    key: int
    of_slots: bool


@dataclass
class Ranks:
    """Numbers of the different values of a key, which are near each other where these are not."""

    keys: ColumnKeys
    slots: ColumnLookup
    """The values, for those that are found in slots."""
    numbers: ColumnLookup

    @staticmethod
    def of(native: ColumnTable, values: npt.NDArray[np.int64]) -> Ranks:
        different = np.unique(values)
        there = np.ones(len(different), np.uint8)
        rows = native.upload(different.view(np.uint64), there)
        keys, numbers = native.place(rows), np.arange(len(different), dtype=np.uint64)
        return Ranks(keys, native.lookup(keys, rows), native.lookup(keys, native.upload(numbers, there)))

    def node(self, graph: Graph, node: int, slots: JoinTable, numbers: JoinTable) -> int:
        """The number of a row's value; null where there is none."""
        if not self.keys.in_order:
            node = graph.add("find", node, number=graph.kept(slots), nullable=True)
        number = graph.kept(numbers)
        return graph.add("lookup", node, number=number, bits=self.keys.low, nullable=True)


@dataclass
class KeyPacking:
    """Keys of several columns as one integer: digits, from the least value that the other table has."""

    types: list[ColumnType]
    lows: list[int]
    sizes: list[int]
    ranks: list[Ranks | None]
    """Of columns whose values are far apart."""

    @staticmethod
    def of(native: ColumnTable, columns: list[ResultColumn], names: str) -> tuple[KeyPacking, ColumnRows]:
        """And the other table's rows, packed; those that lack a key have none."""
        valid = np.logical_and.reduce([column.valid for column in columns])
        values = [column.bits.view(np.int64)[valid] for column in columns]
        ranks: list[Ranks | None] = [None] * len(columns)
        if combinations(columns) > MOST_COMBINATIONS:
            for k, column in enumerate(columns):
                if column.type.kind != "string":
                    ranks[k] = Ranks.of(native, values[k])
                    values[k] = np.searchsorted(np.unique(values[k]), values[k])
        lows = [int(each.min()) if len(each) else 0 for each in values]
        highs = [int(each.max()) if len(each) else 0 for each in values]
        sizes = [high - low + 1 for high, low in zip(highs, lows, strict=True)]
        if math.prod(sizes) > MOST_COMBINATIONS:
            raise ValueError(
                f"join on {names}: the keys of the other table have {math.prod(sizes)} combinations, and "
                "fewer than 2^63 can be: join on fewer columns"
            )
        whole = np.zeros(len(values[0]), np.int64)
        for each, low, size in zip(values, lows, sizes, strict=True):
            whole = whole * size + (each - low)
        packed = np.zeros(len(valid), np.uint64)
        packed[valid] = whole.view(np.uint64)
        rows = native.upload(packed, valid.astype(np.uint8))
        return KeyPacking([column.type for column in columns], lows, sizes, ranks), rows

    def node(self, graph: Graph, keys: Sequence[Typed], table: Callable[[RankTable], JoinTable]) -> int:
        """The same of a row; null where the other table cannot have it.

        Args:
            graph: Where it is added.
            keys: The row's.
            table: What stands for tables of ranks in the graph.
        """
        whole: int | None = None
        parts = zip(keys, self.types, self.lows, self.sizes, self.ranks, strict=True)
        for k, (key, kind, low, size, ranks) in enumerate(parts):
            node = key.node if key.type.kind != "string" else _code_there(graph, key, kind)
            if ranks is not None:
                node = ranks.node(graph, node, table(RankTable(k, True)), table(RankTable(k, False)))
            above = graph.add("less_equal", graph.integer(low), node)
            both = graph.add("logic_and", above, graph.add("less_equal", node, graph.integer(low + size - 1)))
            # What is outside is null, so its difference, which may be beyond 64 bits, is none.
            kept = graph.add("select", both, node, graph.add("null", nullable=True), nullable=True)
            digit = graph.add("subtract", kept, graph.integer(low))
            if whole is not None:
                digit = graph.add("add", graph.add("multiply", whole, graph.integer(size)), digit)
            whole = digit
        assert whole is not None
        return whole


def _code_there(graph: Graph, key: Typed, other: ColumnType) -> int:
    """The code that a text has in another dictionary; null: none."""
    code_of = {word: code for code, word in enumerate(other.words or ())}
    codes = [code_of.get(word, -1) for word in key.type.words or ()]
    there = np.array(codes, np.int64)
    number = graph.table(np.maximum(there, 0).view(np.uint64), (there >= 0).astype(np.uint8))
    return graph.add("lookup", key.node, number=number, nullable=True)

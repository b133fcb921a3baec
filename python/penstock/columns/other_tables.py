"""The tables that a query's rows are joined with, a column at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.columns.key_packing import packed_in_place
from penstock.columns.results import ResultColumn
from penstock.columns.types import INTEGER, ColumnType

if TYPE_CHECKING:
    from penstock._native import ColumnRows, ColumnTable
    from penstock.columns.query import Query

ONE_ROW = "the only row"
"""The key of `OneRow`."""


class Columns(ABC):
    """The other table, a column at a time."""

    names: list[str]

    @abstractmethod
    def type_of(self, name: str) -> ColumnType: ...

    @abstractmethod
    def rows(self, native: ColumnTable, name: str) -> ColumnRows:
        """Where kernels of a table's executor reach them."""

    @abstractmethod
    def host(self, name: str) -> ResultColumn: ...

    def packed(
        self, native: ColumnTable, names: Sequence[str]
    ) -> tuple[list[int], list[int], ColumnRows] | None:
        """See `packed_in_place`; None: by `host`."""
        return None

    def expect(self, names: Iterable[str]) -> None:
        """Says which columns a first run will ask for, each as often as it will."""
        return

    @property
    def is_lasting(self) -> bool:
        """See `Query.is_lasting`."""
        return True

    def forget(self) -> None:
        """Lets go of what lies in an executor's memory for joins before this one."""
        return


MOST_BESIDE = 1 << 30
"""Bytes of columns that lie in an executor's memory before they are asked for."""


class QueryColumns(Columns):
    """Columns of a query's result, each read when it is asked for, and those with it that will be."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.names = query.names()
        self.expected: Counter[str] = Counter()
        """How often a run asks for columns in the executor's memory; the one before has."""
        self.asked: Counter[str] = Counter()
        self.ready: dict[str, ColumnRows] = {}

    def type_of(self, name: str) -> ColumnType:
        return self.query.type_of(name)

    def rows(self, native: ColumnTable, name: str) -> ColumnRows:
        if native.executor != self.query.table.native.executor:
            return uploaded(native, self.host(name))
        self.asked[name] += 1
        if name not in self.ready:
            most = max(MOST_BESIDE // (9 * max(self.query.table.rows, 1)), 1)
            later = [each for each in self.expected - self.asked if each != name and each not in self.ready]
            names = [name, *later[: most - 1]]
            self.ready |= zip(names, self.query.kept_columns(names), strict=False)
        found = self.ready[name]
        if self.asked[name] >= self.expected[name]:
            del self.ready[name]
        return found

    def expect(self, names: Iterable[str]) -> None:
        self.expected |= Counter(name for name in names if name in self.names)

    def host(self, name: str) -> ResultColumn:
        return self.query.result_column(name)

    def packed(
        self, native: ColumnTable, names: Sequence[str]
    ) -> tuple[list[int], list[int], ColumnRows] | None:
        if native.executor != self.query.table.native.executor:
            return None
        return packed_in_place(self.query, names)

    @property
    def is_lasting(self) -> bool:
        return self.query.is_lasting

    def forget(self) -> None:
        self.expected, self.asked = self.asked, Counter()
        self.ready.clear()
        self.query.forget()


class ResultColumns(Columns):
    """Columns that have been read."""

    def __init__(self, columns: list[ResultColumn]) -> None:
        self.names = [column.name for column in columns]
        self._columns = dict(zip(self.names, columns, strict=True))

    def type_of(self, name: str) -> ColumnType:
        return self._columns[name].type

    def rows(self, native: ColumnTable, name: str) -> ColumnRows:
        return uploaded(native, self._columns[name])

    def host(self, name: str) -> ResultColumn:
        return self._columns[name]


def uploaded(native: ColumnTable, column: ResultColumn) -> ColumnRows:
    """In the executor's memory."""
    return native.upload(np.ascontiguousarray(column.bits), column.valid.astype(np.uint8))


class OneRow(Columns):
    """Columns of one row, or of none, with a key that all rows meet."""

    def __init__(self, of: Columns) -> None:
        self.of, self.names = of, [*of.names, ONE_ROW]

    def type_of(self, name: str) -> ColumnType:
        return INTEGER if name == ONE_ROW else self.of.type_of(name)

    def rows(self, native: ColumnTable, name: str) -> ColumnRows:
        return ResultColumns([self.host(name)]).rows(native, name)

    def host(self, name: str) -> ResultColumn:
        if name != ONE_ROW:
            return self.of.host(name)
        rows = len(self.of.host(self.of.names[0]).bits)
        return ResultColumn(ONE_ROW, INTEGER, np.zeros(rows, np.uint64), np.ones(rows, bool))

    @property
    def is_lasting(self) -> bool:
        return self.of.is_lasting

    def forget(self) -> None:
        self.of.forget()

"""Queries of a table: a condition, and what is computed of the rows that meet it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.columns.assembling import Program, assemble
from penstock.columns.best import best_rows
from penstock.columns.expressions import (
    Call,
    Column,
    Expr,
    aggregates_of,
    as_expr,
    calls_of,
    columns_of,
    name_of,
)
from penstock.columns.grouping import grouped
from penstock.columns.joining import HOWS, How, Join
from penstock.columns.lowering import Graph
from penstock.columns.other_tables import Columns, QueryColumns, ResultColumns
from penstock.columns.results import Result, ResultColumn
from penstock.columns.selecting import kept_columns, selected
from penstock.columns.shown import shown
from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from penstock._native import ColumnRows
    from penstock.columns.table import Table

Made = TypeVar("Made")


@dataclass(frozen=True)
class Query:
    """What is asked of a table. Nothing is read before `collect`."""

    table: Table
    condition: Expr | None = None
    outputs: tuple[Expr, ...] | None = None
    """Of `select`; None: all columns."""
    aggregates: tuple[Expr, ...] | None = None
    keys: tuple[Expr, ...] = ()
    having: Expr | None = None
    """Of the result of `agg`: a condition of its columns."""
    best: tuple[int, Expr, bool] | None = None
    """Of `top_k`."""
    limit: int | None = None
    joins: tuple[Join, ...] = ()
    made: dict[Hashable, Any] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Programs, and what else another run of it needs again: files do not change while they are open."""

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made for a key before, or is now."""
        if key not in self.made:
            self.made[key] = make()
        found: Made = self.made[key]
        return found

    def forget(self) -> None:
        """Lets go of the rows of tables that are joined, and of texts; another run reads them again."""
        for join in self.joins:
            join.forget()
        for call in self._printed():
            call.extra.forget()

    @property
    def is_lasting(self) -> bool:
        """Whether it has nothing that was found in tables but what lies in `made` and its joins."""
        return next(self._printed(), None) is None and all(join.is_lasting for join in self.joins)

    def _printed(self) -> Iterator[Call]:
        """The calls that make texts of values."""
        given = (
            *self.results(),
            *self.keys,
            *(self.aggregates or ()),
            *_some(self.condition),
            *_some(self.having),
            *(key for join in self.joins for key in join.keys),
        )
        return (call for each in given for call in calls_of(each) if call.name == "printed")

    def join(
        self,
        other: Any,
        on: str | Sequence[str] | None = None,
        how: How = "inner",
        *,
        left_on: Expr | str | Sequence[Expr | str] | None = None,
        right_on: str | Sequence[str] | None = None,
        suffix: str = "_right",
    ) -> Query:
        """Columns of another table beside each row, by a key that the other table has once.

        The other table is read once and kept in the executor's memory, the columns that are asked for; keep
        the query that this returns to use them again.

        Args:
            other: A `Table`, a query, a result, or what `open_table` takes.
            on: The key, by the same name in both, or several names.
            how: inner (rows that meet none go), left (they stay, with nulls), semi (the rows that meet one,
                with no more columns), anti (those that meet none).
            left_on: The key of this table, a column or an expression, where the names differ; or several.
            right_on: The key of the other, a column's name; or as many.
            suffix: Behind names that both have.

        Raises:
            KeyError: A column that is not there.
            ValueError: A key that the other table has twice (inner and left), when the query is run.
            TypeError: Keys of different types, when the query is run.
        """
        self._not_after("join")
        mine, theirs = (on, on) if on is not None else (left_on, right_on)
        if (
            mine is None
            or theirs is None
            or (on is not None and (left_on is not None or right_on is not None))
        ):
            raise TypeError("join: name the keys with on=, or with left_on= and right_on=")
        keys = tuple(_named(each) for each in ([mine] if isinstance(mine, (str, Expr)) else mine))
        others = (theirs,) if isinstance(theirs, str) else tuple(theirs)
        if not keys or len(keys) != len(others) or not all(isinstance(name, str) for name in others):
            raise TypeError(
                "join: give as many keys of the other table as of this one, and of the other columns' names"
            )
        if how not in HOWS:
            raise ValueError(f"join how={how!r}: choose one of {', '.join(HOWS)}")
        columns = self._columns_of(other)
        for name in others:
            if name not in columns.names:
                raise KeyError(
                    f"join: there is no column {name!r} in the other table: it has "
                    f"{', '.join(columns.names[:8])}"
                )
        for key in keys:
            self.graph().lower(key)
        names = {}
        if how in ("inner", "left"):
            here = {*self.table.columns, *(name for join in self.joins for name in join.names)}
            for name in columns.names:
                if name not in others:
                    names[name + suffix if name in here else name] = name
        clash = next((name for name in names if name in here), None) if names else None
        if clash is not None:
            raise ValueError(f"join: a column {clash!r} is there already: choose another suffix")
        return replace(self, joins=(*self.joins, Join(keys, columns, others, how, names)))

    def _columns_of(self, other: Any) -> Columns:
        if isinstance(other, Result):
            return ResultColumns(other.columns)
        made: Columns = (other if hasattr(other, "join_columns") else self.table.opened(other)).join_columns()
        return made

    def join_columns(self) -> Columns:
        """What a join with this query takes."""
        return QueryColumns(self) if self.is_by_row else ResultColumns(self.collect().columns)

    @property
    def is_by_row(self) -> bool:
        """Whether each row of the result is one of the table's, in its order."""
        return self.aggregates is None and self.best is None and self.limit is None

    def names(self) -> list[str]:
        """Of the result's columns, where it is by row."""
        return [name_of(output) for output in self.results()]

    def result_column(self, name: str) -> ResultColumn:
        """One column of the result, where it is by row."""
        alone = self.once(("alone", name), lambda: replace(self, outputs=(self.output(name),)))
        return alone.collect().columns[0]

    def type_of(self, name: str) -> ColumnType:
        """Of a column of the result, where it is by row."""
        return self.once(("type", name), lambda: self.graph().lower(self.output(name)).type)

    def kept_columns(self, names: Sequence[str]) -> list[ColumnRows]:
        """Columns of the result in the executor's memory, the first and as many more as one pass finds."""
        return kept_columns(self, names)

    def output(self, name: str) -> Expr:
        """A column of the result, where it is by row."""
        return next(each for each in self.results() if name_of(each) == name)

    def filter(self, *conditions: Expr) -> Query:
        """The rows that meet all conditions; a null is not met. Behind agg() the groups, by its columns."""
        of_groups = self.aggregates is not None and self.limit is None
        if not of_groups:
            self._not_after("filter")
        whole = self.having if of_groups else self.condition
        for condition in conditions:
            whole = condition if whole is None else whole & condition
        return replace(self, having=whole) if of_groups else replace(self, condition=whole)

    def select(self, *expressions: Expr | str, **named: Expr) -> Query:
        """What each row of the result has: columns by name, and expressions."""
        self._not_after("select")
        return replace(self, outputs=_listed(expressions, named))

    def agg(self, *expressions: Expr, **named: Expr) -> Query:
        """One row: sums and the like of the rows that are left."""
        self._not_after("agg")
        outputs = _listed(expressions, named)
        for expression in outputs:
            if not list(aggregates_of(expression)):
                raise TypeError(
                    f"{shown(expression)}: agg() takes aggregates: say .sum(), .mean(), .min(), .max() or "
                    ".count()"
                )
        return replace(self, aggregates=outputs)

    def group_by(self, *keys: Expr | str) -> GroupBy:
        """Aggregates for each value of the keys."""
        self._not_after("group_by")
        if not keys:
            raise TypeError("group_by() takes at least one column")
        return GroupBy(replace(self, keys=_listed(keys, {})))

    def top_k(self, k: int, by: Expr | str, *, reverse: bool = False) -> Query:
        """The k rows with the largest values, largest first; `reverse`: the smallest. Nulls go last."""
        if k < 0:
            raise ValueError(f"top_k({k}): it must not be negative")
        if self.limit is not None or self.aggregates is not None or self.best is not None or self.keys:
            raise TypeError(
                "top_k() behind head(), agg(), group_by() or top_k(): collect() first, or say it before"
            )
        return replace(self, best=(k, _named(by), reverse))

    def head(self, rows: int) -> Query:
        """The first rows of the result."""
        if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 0:
            raise ValueError(f"head({rows!r}): give how many rows, 0 or more")
        return replace(self, limit=int(rows) if self.limit is None else min(int(rows), self.limit))

    def collect(self) -> Result:
        """Runs it.

        Raises:
            KeyError: A column that the table does not have.
            TypeError: Operands that do not go together.
            OverflowError: An integer that is beyond 64 bits.
            ValueError: More values of a row at once than there may be, or groups that do not fit memory.
            penstock.Error: A file that could not be read, or became shorter.
        """
        self.table.check_files()
        try:
            if self.aggregates is not None:
                return self._limited(self._met(self.grouped()))
            return self._limited(best_rows(self) if self.best is not None else selected(self, self.results()))
        except RecursionError:
            raise ValueError(
                f"query {self.table.name}: its expressions are nested too deep: make it two queries, or use "
                "is_in()"
            ) from None

    def explain(self, analyze: bool = False) -> str:
        """How it runs: columns, what of them is read when, and the bytes that takes.

        Args:
            analyze: Run it where its passes may be compiled, and print how each ran; evaluate the condition,
                and say of each column that is read where it holds how many bytes
                its rows have, and in how many sectors of 32 bytes and lines of the cache they lie.
        """
        from penstock.columns.explaining import explained

        return explained(self, analyze)

    def touched(self, names: Sequence[str]) -> list[tuple[int, int, int]]:
        """Of columns, for the rows that meet the condition: bytes of the values, sectors of 32 bytes of the
        files that these lie in, and lines of the table's cache (4 KiB where it has none)."""
        program = self.assembled(self.graph(), [])
        numbers = [self.table.column(name)[0] for name in names]
        return self.table.native.touched(program.native, numbers, self.table.line_bytes)

    def _not_after(self, what: str) -> None:
        if self.aggregates is not None or self.best is not None or self.keys or self.limit is not None:
            raise TypeError(
                f"{what}() behind agg(), group_by(), top_k() or head(): collect() first, or say it before"
            )
        if self.outputs is not None:
            raise TypeError(f"{what}() behind select(): say it before, with the table's columns")

    def results(self) -> tuple[Expr, ...]:
        """What each row has."""
        if self.outputs is not None:
            return self.outputs
        joined = (name for join in self.joins for name in join.names)
        return self.once("results", lambda: tuple(map(Column, (*self.table.columns, *joined))))

    def _limited(self, result: Result) -> Result:
        if self.limit is None:
            return result
        for column in result.columns:
            column.bits, column.valid = column.bits[: self.limit], column.valid[: self.limit]
        return result

    def graph(self) -> Graph:
        return Graph(self.table, joins=self.joins)

    def of_groups(self) -> list[Expr]:
        """The keys of groups, and what their aggregates are of."""
        aggregates = (each for expression in self.aggregates or () for each in aggregates_of(expression))
        return [*self.keys, *(each.of for each in aggregates if each.of is not None)]

    def stored_columns(self, *expressions: Expr) -> list[str]:
        """The table's own columns that expressions need, and joins; in order, each once."""
        found = [name for join in self.joins for key in join.keys for name in self.stored_columns_of(key)]
        for expression in expressions:
            found += self.stored_columns_of(expression)
        return list(dict.fromkeys(found))

    def stored_columns_of(self, expression: Expr) -> list[str]:
        joined = {name for join in self.joins for name in join.names}
        return [name for name in columns_of(expression) if name not in joined]

    def _condition(self, graph: Graph) -> int | None:
        whole = None if self.condition is None else graph.truth(self.condition)
        for join in self.joins:
            stays = join.condition(graph)
            if stays is not None:
                whole = stays if whole is None else graph.add("logic_and", whole, stays)
        return whole

    def assembled(self, graph: Graph, nodes: Sequence[int]) -> Program:
        """The program of the condition, and of values of the rows that meet it."""
        program = assemble(graph, self._condition(graph), nodes)
        if not self.table.zone_maps:
            program.parts["bounds"], program.parts["notes"] = [], []
        return program

    def named(self, *outputs: Expr) -> list[str]:
        """The table's columns that these name, keys, aggregates and the condition."""
        return self.stored_columns(*outputs, *self.of_groups(), *_some(self.condition))

    def _met(self, groups: Result) -> Result:
        if self.having is None:
            return groups
        with self.table.opened(groups, executor="cpu") as table:
            met = table.filter(self.having).collect()
        return Result(met.columns, groups.account)

    def grouped(self) -> Result:
        """The aggregates, of all rows or by keys."""
        return grouped(self)


@dataclass(frozen=True)
class GroupBy:
    """Waits for what is computed of each group."""

    query: Query

    def agg(self, *expressions: Expr, **named: Expr) -> Query:
        """A row for each value of the keys that rows have, in their order, nulls last."""
        plain = replace(self.query, keys=()).agg(*expressions, **named)
        return replace(plain, keys=self.query.keys)


def _some(condition: Expr | None) -> tuple[Expr, ...]:
    return () if condition is None else (condition,)


def _named(expression: Expr | str) -> Expr:
    return Column(expression) if isinstance(expression, str) else as_expr(expression)


def _listed(expressions: Sequence[Expr | str], named: dict[str, Expr]) -> tuple[Expr, ...]:
    whole = [_named(expression) for expression in expressions]
    whole += [as_expr(expression).alias(name) for name, expression in named.items()]
    names = [name_of(expression) for expression in whole]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two results are called {name!r}: give one another name with alias()")
    return tuple(whole)

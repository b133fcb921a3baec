"""The tables that FROM names, and which of their columns a name behind USING stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from penstock.columns.joining import How
from penstock.columns.other_tables import Columns
from penstock.columns.statement_nodes import Node, expressions, refuse
from penstock.columns.table import Table


@dataclass(frozen=True)
class Membership:
    """The rows whose keys are among those of a subquery, or not."""

    node: Node
    keys: list[Node]
    columns: Columns
    names: list[str]
    """Of the subquery's keys."""
    how: How


Condition: TypeAlias = "Node | Membership"


@dataclass
class Source:
    """A table that FROM names."""

    alias: str
    table: Table | None
    """None: it stands for a subquery."""
    node: Node
    how: How | Literal["right", "full"] = "inner"
    """A right or full join becomes a table of pairs before others are joined."""
    on: list[Node] = field(default_factory=list)
    """Conditions behind ON and of USING."""
    using: set[str] = field(default_factory=set)
    """Columns that are those of a table before, in lower case: by themselves their names are that one's."""
    columns: dict[str, str] = field(default_factory=dict)
    """Of the query, by their names in lower case here; semi and anti joins have none."""
    filters: list[Condition] = field(default_factory=list)
    nested: list[tuple[Source, Node, Node]] = field(default_factory=list)
    """Tables that only leave out rows of this one: each, its key, and what is equal here."""
    given: Columns | None = None
    """Of a subquery."""

    @cached_property
    def names(self) -> dict[str, str]:
        """The table's columns, by their names in lower case."""
        if self.table is not None:
            return {name.lower(): name for name in self.table.columns}
        return {name.lower(): name for name in self.given.names} if self.given is not None else {}

    @property
    def refused(self) -> dict[str, str]:
        """Why columns of the table's file cannot be used, by their names in lower case."""
        refused = self.table.layout.refused if self.table is not None else {}
        return {name.lower(): why for name, why in refused.items()}

    @property
    def rows(self) -> int:
        return 0 if self.table is None else self.table.rows

    def is_meant(self, column: Node) -> bool:
        """Whether the name of a column may stand for one of this table, if it has one of that name."""
        table, name = column.table.lower(), column.name.lower()
        return table == self.alias or (table == "" and name not in self.using)


def check_usable(column: Node, sources: Sequence[Source]) -> None:
    """Raises KeyError for a column that a table's file has, and that cannot be used."""
    meant = [source for source in sources if column.table.lower() in ("", source.alias)]
    reasons = [source.refused.get(column.name.lower()) for source in meant]
    if any(reasons) and not any(column.name.lower() in source.names for source in meant):
        why = next(filter(None, reasons))
        raise KeyError(f"sql: column {column.sql(dialect='duckdb')!r} cannot be used: {why}")


def used(name: Node, source: Source, before: Sequence[Source]) -> Node:
    """The condition of a name behind USING."""
    low = name.name.lower()
    owners = [each for each in before if low in each.names and low not in each.using]
    if low not in source.names or len(owners) != 1:
        refuse(source.node, f"USING takes columns of this table and of one before, and {name.name} is none")
    of = [owners[0], *merged(low, before[before.index(owners[0]) + 1 :])]
    mine = first_there([expressions().column(low, table=each.alias) for each in of])
    return expressions().EQ(this=mine, expression=expressions().column(low, table=source.alias))


def merged(name: str, sources: Sequence[Source]) -> list[Source]:
    """Tables that have rows without one of the tables before, whose column behind USING stands for theirs."""
    return [each for each in sources if name in each.using and each.how in ("right", "full")]


def first_there(columns: Sequence[Node]) -> Node:
    """The first of the columns that is no null."""
    return (
        columns[0] if len(columns) == 1 else expressions().Coalesce(this=columns[0], expressions=columns[1:])
    )

"""The tables of a SELECT: which columns their names stand for, and the query that joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from penstock.columns.expressions import Column, Expr
from penstock.columns.joining import How, Join, RepeatedKeyError, ResultColumns
from penstock.columns.query import Query
from penstock.columns.results import Result
from penstock.columns.statement_expressions import Node, Translator, expressions, refuse
from penstock.columns.table import Table


@dataclass
class Source:
    """A table that FROM names."""

    alias: str
    table: Table
    node: Node
    how: How = "inner"
    on: list[Node] = field(default_factory=list)
    """Conditions behind ON and of USING."""
    using: set[str] = field(default_factory=set)
    """Columns that are those of a table before, in lower case: by themselves their names are that one's."""
    columns: dict[str, str] = field(default_factory=dict)
    """Of the query, by their names in lower case here; semi and anti joins have none."""
    filters: list[Node] = field(default_factory=list)

    @property
    def names(self) -> dict[str, str]:
        """The table's columns, by their names in lower case."""
        return {name.lower(): name for name in self.table.columns}

    def is_meant(self, column: Node) -> bool:
        """Whether the name of a column may stand for one of this table, if it has one of that name."""
        table, name = column.table.lower(), column.name.lower()
        return table == self.alias or (table == "" and name not in self.using)


class Sources:
    """All tables of a SELECT."""

    def __init__(self, sources: list[Source], subquery: Callable[[Node], Result]) -> None:
        self.all = sources
        self.translate = Translator(self.column)
        self._subquery = subquery
        self._answers: dict[int, Result] = {}
        """Of subqueries, by their nodes: each is asked once, whatever is tried."""
        self._by_all_keys = False
        self._more_keys = False

    def column(self, node: Node) -> Expr | None:
        """The query's column that a name stands for; None: it is no name."""
        if type(node).__name__ != "Column":
            return None
        sources = [source for source in self.all if node.table.lower() in ("", source.alias)]
        if not sources:
            refuse(node, f"there is no table {node.table} in FROM")
        name = node.name.lower()
        found = [s.columns[name] for s in sources if name in s.columns and s.is_meant(node)]
        if len(found) > 1:
            refuse(node, "several tables have this column: say which")
        if not found:
            names = ", ".join([name for s in sources for name in s.columns][:8])
            raise KeyError(f"sql: there is no column {node.sql(dialect='duckdb')!r}: there are {names}")
        return Column(found[0])

    def has_column(self, node: Node) -> bool:
        return any(node.name.lower() in source.columns for source in self.all)

    def joined(self, conditions: list[Node]) -> Query:
        """The rows that meet all conditions. The largest table is scanned whose rows meet one of each other
        at most, by one key or, where that stands more than once, by all there are."""
        only_inner = all(source.how == "inner" for source in self.all)
        bases = sorted(self.all, key=lambda s: -s.table.rows) if only_inner else self.all[:1]
        problem: RepeatedKeyError | None = None
        for base in bases:
            for self._by_all_keys in (False, True):
                self._more_keys = False
                try:
                    return self._joined_to(base, list(conditions))
                except RepeatedKeyError as found:
                    problem = problem or found
                    if not self._more_keys:
                        break
        assert problem is not None
        raise problem

    def _joined_to(self, base: Source, conditions: list[Node]) -> Query:
        for source in self.all:
            source.columns, source.filters = {}, []
            if source.how == "inner":
                conditions += source.on
            else:
                source.filters = list(source.on)
        base.columns = base.names
        rest: list[Node] = []
        for condition in conditions:
            of = self._of(condition)
            owner = [s for s in self.all if of == {s.alias} and s is not base and s.how == "inner"]
            mine = owner and (_is_subquery(condition) or not condition.find(expressions().Query))
            (owner[0].filters if mine else rest).append(condition)
        query = Query(base.table)
        waiting = [source for source in self.all if source is not base]
        while waiting:
            ready = next((s for s in waiting if self._keys(s, self._pool(s, rest))), None)
            if ready is None:
                refuse(waiting[0].node, "it has no key that is equal to one of the tables before")
            query = self._join(query, ready, self._pool(ready, rest))
            waiting.remove(ready)
        for condition in rest:
            query = self._filtered(query, condition, self.translate)
        for join in query.joins:
            join.lower(query.graph(), join.other_keys[0])
        return query

    def _of(self, condition: Node) -> set[str]:
        """The tables that an expression names columns of; of IN with a subquery what stands before it."""
        node = condition.this if _is_subquery(condition) else condition
        found: set[str] = set()
        for column in node.find_all(expressions().Column):
            name, table = column.name.lower(), column.table.lower()
            owners = [s.alias for s in self.all if name in s.names and s.is_meant(column)]
            found.update(owners if len(owners) == 1 else {table} if table else owners)
        return found

    @staticmethod
    def _pool(source: Source, rest: list[Node]) -> list[Node]:
        return rest if source.how == "inner" else source.filters

    def _keys(self, source: Source, pool: list[Node]) -> list[tuple[Node, Node, Node]]:
        """Conditions that make a key: each, the source's column, and what the others have."""
        there = {s.alias for s in self.all if s.columns}
        found = []
        for condition in pool:
            if type(condition).__name__ != "EQ":
                continue
            both = (condition.this, condition.expression)
            for mine, other in (both, both[::-1]):
                others = self._of(other)
                is_mine = type(mine).__name__ == "Column" and self._of(mine) == {source.alias}
                if is_mine and others and others <= there:
                    found.append((condition, mine, other))
                    break
        return found

    def _join(self, query: Query, source: Source, pool: list[Node]) -> Query:
        keys = self._keys(source, pool)
        self._more_keys |= len(keys) > 1
        if source.how == "inner" and not self._by_all_keys:
            keys = keys[:1]
        for condition, _, _ in keys:
            pool.remove(condition)
        names = source.names
        own = Translator(lambda n: Column(names[n.name.lower()]) if type(n).__name__ == "Column" else None)
        small = Query(source.table)
        for each in source.filters:
            if self._of(each) != {source.alias}:
                refuse(each, "behind ON of this join there are equal keys, and conditions of its table")
            small = self._filtered(small, each, own)
        taken = {name for s in self.all for name in s.columns.values()}
        left = tuple(self.translate(other) for _, _, other in keys)
        if source.how in ("inner", "left"):
            source.columns = {
                low: name if name not in taken else f"{name} of {source.alias}" for low, name in names.items()
            }
        inside = {source.columns[low]: name for low, name in names.items() if low in source.columns}
        right = tuple(names[mine.name.lower()] for _, mine, _ in keys)
        join = Join(left, small.join_columns(), right, source.how, inside)
        return replace(query, joins=(*query.joins, join))

    def _filtered(self, query: Query, condition: Node, translate: Translator) -> Query:
        if not _is_subquery(condition):
            return query.filter(translate(condition))
        if id(condition) not in self._answers:
            self._answers[id(condition)] = self._subquery(condition.args["query"].this)
        found = self._answers[id(condition)]
        if len(found.columns) != 1:
            refuse(condition, "a subquery behind IN has one column")
        key = (translate(condition.this),)
        join = Join(key, ResultColumns(found.columns), (found.columns[0].name,), "semi", {})
        return replace(query, joins=(*query.joins, join))


def used(name: Node, source: Source, before: Sequence[Source]) -> Node:
    """The condition of a name behind USING."""
    low = name.name.lower()
    owners = [each for each in before if low in each.names and low not in each.using]
    if low not in source.names or len(owners) != 1:
        refuse(source.node, f"USING takes columns of this table and of one before, and {name.name} is none")
    columns = (expressions().column(low, table=each.alias) for each in (owners[0], source))
    return expressions().EQ(this=next(columns), expression=next(columns))


def conjuncts(node: Node) -> list[Node]:
    """Conditions that stand with AND between them."""
    kind = type(node).__name__
    if kind == "Paren":
        return conjuncts(node.this)
    return [*conjuncts(node.this), *conjuncts(node.expression)] if kind == "And" else [node]


def _is_subquery(condition: Node) -> bool:
    """Whether it is IN with a subquery."""
    return type(condition).__name__ == "In" and condition.args.get("query") is not None

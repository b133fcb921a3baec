"""All tables of a SELECT: which columns its names stand for, and the query that joins them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from penstock.columns.expressions import Column, Expr, Stored, Value, columns_of, when
from penstock.columns.joining import Join, RepeatedKeyError, with_first
from penstock.columns.other_tables import ONE_ROW, Columns, OneRow
from penstock.columns.query import Query
from penstock.columns.results import Result
from penstock.columns.statement_expressions import Translator
from penstock.columns.statement_nodes import (
    Node,
    columns_in,
    conjuncts,
    expressions,
    kind_of,
    refuse,
    sentence,
)
from penstock.columns.statement_tables import Condition, Membership, Source, check_usable

UNCONNECTED = "it has no key that is equal to one of the tables before"
MIXED = "behind ON of this join there are equal keys, and conditions of its table"


class UnconnectedError(ValueError):
    """A table has no key that is equal to one of the tables before."""


class MixedConditionError(ValueError):
    """A join has a condition behind ON that is about other tables, too, and no equal key."""

    def __init__(self, what: str, source: Source) -> None:
        super().__init__(what)
        self.source = source


def _no_column(node: Node, sources: Sequence[Source], names: Sequence[str]) -> KeyError:
    """`names`: those that there are."""
    check_usable(node, sources)
    there = ", ".join(names[:8])
    return KeyError(f"sql: there is no column {node.sql(dialect='duckdb')!r}: there are {there}")


class Sources:
    """All tables of a SELECT."""

    def __init__(self, sources: list[Source], subquery: Callable[[Node], Result]) -> None:
        self.all = sources
        self.translate = Translator(self.value)
        self.selected: set[str] = set()
        """Tables whose columns the result is made of."""
        self.named: set[str] = set()
        """Columns that it is made of."""
        self._subquery = subquery
        self._rows: dict[int, int] = {}
        """Of the tables of joins, by these."""
        self._joined_tables: dict[int, tuple[set[str], str]] = {}
        """Those that a join's keys are of, and its own."""
        self._by_all_keys = False
        self._more_keys = False
        self._tables: dict[int, tuple[Condition, frozenset[str]]] = {}
        """Of conditions, by id; each is kept."""

    def column(self, node: Node) -> Expr | None:
        """The query's column that a name stands for; None: it is no name."""
        if kind_of(node) != "Column":
            return None
        sources = [source for source in self.all if node.table.lower() in ("", source.alias)]
        if not sources:
            refuse(node, f"there is no table {node.table} in FROM")
        name = node.name.lower()
        found = [s.columns[name] for s in sources if name in s.columns and s.is_meant(node)]
        if len(found) > 1:
            refuse(node, "several tables have this column: say which")
        if not found:
            raise _no_column(
                node, sources, [name for s in sources if s.table is not None for name in s.columns]
            )
        return Column(found[0])

    def value(self, node: Node) -> Expr | None:
        """The column or the constant that a node stands for."""
        return self.column(node) if kind_of(node) == "Column" else self.constant(node)

    def constant(self, node: Node) -> Expr | None:
        """What a subquery's only row has; without a row a null."""
        if kind_of(node) != "Subquery":
            return None
        result = self._subquery(node.this)
        if len(result.columns) != 1:
            refuse(node, "a subquery that is a value has one column")
        if result.row_count > 1:
            refuse(node, "more than one row returned by a subquery used as an expression")
        (column,) = result.columns
        if not column.valid.any():
            return Value(None)
        if column.type.kind == "string":
            return Value(column.values()[0])
        number = column.bits.view(np.float64 if column.type.is_number else np.int64)[0].item()
        return Stored(number, column.type)

    def has_column(self, node: Node) -> bool:
        return any(node.name.lower() in source.columns for source in self.all)

    def joined(self, conditions: Sequence[Condition]) -> Query:
        """The rows that meet all conditions. The largest table is scanned whose rows meet one of each other
        at most, by one key or, where that stands more than once, by all there are."""
        bases = sorted((s for s in self.all if s.how == "inner"), key=lambda s: -s.rows)
        problem: RepeatedKeyError | UnconnectedError | None = None
        for base in bases:
            for self._by_all_keys in (False, True):
                self._more_keys = False
                try:
                    return self._joined_to(base, list(conditions))
                except UnconnectedError as found:
                    problem = problem or found
                    break
                except RepeatedKeyError as found:
                    problem = found if isinstance(problem, UnconnectedError | None) else problem
                    if not self._more_keys:
                        break
        assert problem is not None
        raise problem

    def _joined_to(self, base: Source, conditions: list[Condition]) -> Query:
        assert base.table is not None
        for source in self.all:
            source.columns, source.filters, source.nested = {}, [], []
            if source.how == "inner":
                conditions += source.on
            else:
                source.filters = list(source.on)
        base.columns = base.names
        rest: list[Condition] = []
        for condition in conditions:
            of = self.tables_of(condition)
            owner = [s for s in self.all if of == {s.alias} and s is not base and s.how == "inner"]
            (owner[0].filters if owner else rest).append(condition)
            if not owner and len(of) > 1 and kind_of(condition) == "Or":
                self._imply(condition, [s for s in self.all if s is not base and s.how == "inner"])
        query = Query(base.table)
        waiting = self._nest([source for source in self.all if source is not base], rest)
        while waiting:
            ready = next((s for s in waiting if self._keys(s, self._pool(s, rest))), None)
            ready = ready or next((s for s in waiting if s.how == "inner" and s.rows <= 1), None)
            if ready is None:
                raise UnconnectedError(sentence(waiting[0].node, UNCONNECTED))
            query = self._join(query, ready, self._pool(ready, rest))
            waiting.remove(ready)
        for condition in rest:
            query = self._filtered(query, condition, self.translate)
        graph = query.graph()
        given = [key for join in query.joins for key in join.keys]
        given += [] if query.condition is None else [query.condition]
        used = {name for each in given for name in columns_of(each)}
        for join in query.joins:
            beside = [n for outer, n in join.names.items() if outer in used or n.lower() in self.named]
            key = join.other_keys[:1]  # whose rows are found by it, and that a row has met one
            join.other.expect([*key, *(key if len(join.other_keys) == 1 else ()), *beside])
            try:
                join.met(graph)
            except RepeatedKeyError as problem:
                problem.tables = self._joined_tables.get(id(join))
                raise
        return replace(query, joins=with_first(query.joins, self._rows, graph))

    def _imply(self, condition: Node, sources: Sequence[Source]) -> None:
        """Conditions of tables alone that one of several tables implies: each of its cases has one."""
        cases = [conjuncts(case) for case in condition.unnest().flatten()]
        for source in sources:
            own = [[each for each in case if self.tables_of(each) == {source.alias}] for case in cases]
            if all(own):
                known = expressions()
                source.filters.append(known.or_(*(known.and_(*case) for case in own)))

    def _nest(self, waiting: list[Source], rest: list[Condition]) -> list[Source]:
        """Tables that the result has no column of, and that have one key, of one table that waits, are joined
        with that one, which has fewer rows then; the others still wait."""
        others = [on for source in self.all if source.how != "inner" for on in source.on]
        stay = self.selected.union(*map(self.tables_of, others))
        plain = {s.alias: s for s in waiting if s.how == "inner" and s.table is not None}
        nested: set[str] = set()
        while True:
            tried = (self._nesting(s, plain, rest) for s in plain.values() if s.alias not in stay)
            found = next(filter(None, tried), None)
            if found is None:
                return [source for source in waiting if source.alias not in nested]
            inner, outer, condition, mine, other = found
            outer.nested.append((inner, mine, other))
            rest.remove(condition)
            nested.add(plain.pop(inner.alias).alias)

    def _nesting(
        self, source: Source, plain: Mapping[str, Source], rest: list[Condition]
    ) -> tuple[Source, Source, Node, Node, Node] | None:
        """The table that a table is joined with, by its only condition beside those of it alone."""
        about = [condition for condition in rest if source.alias in self.tables_of(condition)]
        if len(about) != 1 or isinstance(about[0], Membership) or kind_of(about[0]) != "EQ":
            return None
        sides = (about[0].this, about[0].expression)
        for mine, other in (sides, sides[::-1]):
            of = self.tables_of(other)
            is_key = kind_of(mine) == "Column" and self.tables_of(mine) == {source.alias}
            if is_key and len(of) == 1 and source.alias not in of and of <= set(plain):
                return source, plain[next(iter(of))], about[0], mine, other
        return None

    def tables_of(self, condition: Condition) -> frozenset[str]:
        """The tables that an expression names columns of; of IN with a subquery what stands before it."""
        if id(condition) not in self._tables:
            self._tables[id(condition)] = condition, self._find_tables(condition)
        return self._tables[id(condition)][1]

    def _find_tables(self, condition: Condition) -> frozenset[str]:
        nodes = condition.keys if isinstance(condition, Membership) else [condition]
        found: set[str] = set()
        for column in (each for node in nodes for each in columns_in(node)):
            name, table = column.name.lower(), column.table.lower()
            owners = [s.alias for s in self.all if name in s.names and s.is_meant(column)]
            found.update(owners if len(owners) == 1 else {table} if table else owners)
        return frozenset(found)

    @staticmethod
    def _pool(source: Source, rest: list[Condition]) -> list[Condition]:
        return rest if source.how == "inner" else source.filters

    def _keys(self, source: Source, pool: list[Condition]) -> list[tuple[Node, Node, Node]]:
        """Conditions that make a key: each, the source's column, and what the others have."""
        there = {s.alias for s in self.all if s.columns}
        found = []
        for condition in pool:
            if isinstance(condition, Membership) or kind_of(condition) != "EQ":
                continue
            both = (condition.this, condition.expression)
            for mine, other in (both, both[::-1]):
                others = self.tables_of(other)
                is_column = kind_of(mine) == "Column" or source.table is not None
                is_mine = is_column and self.tables_of(mine) == {source.alias}
                if is_mine and others and others <= there:
                    found.append((condition, mine, other))
                    break
        return found

    def _join(self, query: Query, source: Source, pool: list[Condition]) -> Query:
        keys = self._keys(source, pool)
        self._more_keys |= len(keys) > 1
        if source.how == "inner" and not self._by_all_keys:
            keys = keys[:1]
        for condition, _, _ in keys:
            pool.remove(condition)
        left = [self.translate(other) for _, _, other in keys]
        if source.how != "inner":
            left[0] = self._where_met(source, pool, left[0])
        names = source.names
        made = [mine if kind_of(mine) != "Column" else None for _, mine, _ in keys]
        columns = self._filtered_columns(source, {f"key {k}": each for k, each in enumerate(made) if each})
        right = []
        for k, (_, mine, _) in enumerate(keys):
            if made[k] is None and mine.name.lower() not in names:
                raise _no_column(mine, [source], list(names))
            right.append(names[mine.name.lower()] if made[k] is None else f"key {k}")
        if not keys:
            columns, left, right = OneRow(columns), [Value(0)], [ONE_ROW]
        taken = {name for s in self.all for name in s.columns.values()}
        if source.how in ("inner", "left"):
            source.columns = {
                low: name if name not in taken else f"{name} of {source.alias}" for low, name in names.items()
            }
        inside = {source.columns[low]: name for low, name in names.items() if low in source.columns}
        assert source.how != "right"
        assert source.how != "full"
        join = Join(tuple(left), columns, tuple(right), source.how, inside)
        self._rows[id(join)] = source.rows
        before = set().union(*(self.tables_of(other) for _, _, other in keys))
        self._joined_tables[id(join)] = (before, source.alias)
        return replace(query, joins=(*query.joins, join))

    def _where_met(self, source: Source, pool: list[Condition], key: Expr) -> Expr:
        """A key, null where conditions behind ON are not met that are about the tables before."""
        for each in list(pool):
            if isinstance(each, Membership) or source.alias in self.tables_of(each):
                continue
            pool.remove(each)
            key = when(self.translate(each)).then(key).otherwise(None)
        return key

    def _filtered_columns(self, source: Source, made: Mapping[str, Node]) -> Columns:
        """Of the rows of a table that meet the conditions of it alone, and what is made of them."""
        if source.table is None:
            assert source.given is not None
            return source.given
        names = source.names

        def own(node: Node) -> Expr | None:
            if kind_of(node) != "Column":
                return self.constant(node)
            if node.name.lower() not in names:
                raise _no_column(node, [source], list(names))
            return Column(names[node.name.lower()])

        small = Query(source.table)
        for each in source.filters:
            if self.tables_of(each) != {source.alias}:
                node = each.node if isinstance(each, Membership) else each
                raise MixedConditionError(sentence(node, MIXED), source)
            small = self._filtered(small, each, Translator(own))
        for inner, mine, other in source.nested:
            key = (inner.names[mine.name.lower()],)
            join = Join((Translator(own)(other),), self._filtered_columns(inner, {}), key, "inner", {})
            small = replace(small, joins=(*small.joins, join))
        if made:
            keys = (Translator(own)(node).alias(name) for name, node in made.items())
            small = replace(small, outputs=(*small.results(), *keys))
        return small.join_columns()

    @staticmethod
    def _filtered(query: Query, condition: Condition, translate: Translator) -> Query:
        if not isinstance(condition, Membership):
            return query.filter(translate(condition))
        keys = tuple(map(translate, condition.keys))
        join = Join(keys, condition.columns, tuple(condition.names), condition.how, {})
        return replace(query, joins=(*query.joins, join))

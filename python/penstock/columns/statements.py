"""SQL over tables: one SELECT at a time, in DuckDB's dialect, read by sqlglot, run as a query.

The largest table that is named is scanned; the others are joined with it (`Query.join`), those conditions
that are about one of them alone met before. HAVING, ORDER BY and LIMIT are done with the result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.columns.expressions import Column, Expr, aggregates_of
from penstock.columns.joining import How
from penstock.columns.query import Query
from penstock.columns.results import Result
from penstock.columns.statement_expressions import Node, Translator, expressions, refuse
from penstock.columns.statement_sources import Source, Sources, conjuncts, used
from penstock.columns.table import Table, open_table

PARTS_OF_SELECT = {
    "kind", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "distinct", "with_", "operation_modifiers",
}  # fmt: skip
HOWS: dict[str, How] = {
    "": "inner", "INNER": "inner", "LEFT": "left", "LEFT OUTER": "left",
    "SEMI": "semi", "LEFT SEMI": "semi", "ANTI": "anti", "LEFT ANTI": "anti",
}  # fmt: skip


def sql(statement: str, /, **tables: Any) -> Result:
    """Run one SELECT.

    Covered: expressions of columns (arithmetic, comparisons, AND, OR, NOT, BETWEEN, IN, LIKE, IS NULL,
    CASE, COALESCE, parts of dates), SUM, AVG, MIN, MAX, COUNT, COUNT(DISTINCT), GROUP BY, HAVING, ORDER BY,
    LIMIT, DISTINCT; joins by equal keys that the smaller table has once, ON or USING, LEFT, SEMI and ANTI
    too; subqueries behind FROM, IN and WITH.

    Args:
        statement: In DuckDB's dialect.
        **tables: What the names in it stand for: a `Table`, a result, or what `open_table` takes.

    Returns:
        The result; `print` it, or take it to Arrow, pandas or Polars.

    Raises:
        ValueError: What is not covered, by name; a statement that is none.
        KeyError: A table or column that there is not.
        ImportError: sqlglot is not installed.
    """
    return planned(statement, tables).collect()


def planned(statement: str, tables: dict[str, Any]) -> Plan:
    """What a statement comes to."""
    try:
        import sqlglot
    except ImportError:
        raise ImportError("sql: it needs sqlglot: pip install 'penstock[sql]'") from None
    if not isinstance(statement, str):
        raise TypeError(f"sql: a statement is a text, not {type(statement).__name__}")
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # what it would log is raised below
    try:
        parsed = sqlglot.parse(statement, dialect="duckdb")
        if len(parsed) != 1 or parsed[0] is None:
            count = sum(each is not None for each in parsed)
            raise ValueError(
                f"sql: there {'is no statement' if not count else f'are {count} statements'}: give one"
            )
        return _Planner({name.lower(): each for name, each in tables.items()}).plan(parsed[0])
    except sqlglot.errors.ParseError as problem:
        at = problem.errors[0] if problem.errors else {}
        why = str(at.get("description") or problem).splitlines()[0]
        raise ValueError(f"sql: line {at.get('line', 1)}, column {at.get('col', 1)}: {why}") from None
    except sqlglot.errors.SqlglotError as problem:
        raise ValueError(f"sql: {str(problem).splitlines()[0]}") from None
    except RecursionError:
        raise ValueError("sql: the statement is nested too deep: make it two, or use IN") from None


@dataclass
class Plan:
    """A query, and what is done with its result."""

    query: Query
    shown: list[tuple[str, str]]
    """Columns of the query's result, and what they are called."""
    order: list[tuple[str, bool, bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0

    def collect(self) -> Result:
        result = self._limited().collect()
        account = result.account
        last = None if self.limit is None else self.offset + self.limit
        if self.order:
            result = result.sorted(self.order, last)
        named = {column.name: column for column in result.columns}
        shown = [replace(named[inside], name=name) for inside, name in self.shown]
        for column in shown:
            column.bits, column.valid = column.bits[self.offset : last], column.valid[self.offset : last]
        return Result(shown, account)

    def _limited(self) -> Query:
        """No more rows than are wanted, where that is known before."""
        if self.limit is None or not self.query.is_by_row:
            return self.query
        wanted = self.limit + self.offset
        if not self.order:
            return self.query.head(wanted)
        name, descending, nulls_first = self.order[0]
        by = next(each for each in self.query.outputs or () if getattr(each, "name", None) == name)
        if len(self.order) > 1 or nulls_first or self.query.graph().lower(by).type.kind == "string":
            return self.query
        return self.query.top_k(wanted, by, reverse=not descending)


class _Planner:
    def __init__(self, tables: dict[str, Any]) -> None:
        self.tables = tables
        self.opened: dict[str, Table] = {}

    def plan(self, node: Node) -> Plan:
        if type(node).__name__ != "Select":
            refuse(node, f"{type(node).__name__.upper()} is not covered here, SELECT is")
        _check_parts(node, PARTS_OF_SELECT)
        if node.args.get("with_") is not None:
            _check_parts(node.args["with_"], {"expressions"})
        for each in (node.args.get("with_") and node.args["with_"].expressions) or ():
            _check_parts(each, {"this", "alias"})
            _check_parts(each.args["alias"], {"this"})
            self.tables = {**self.tables, each.alias.lower(): _Planner(self.tables).plan(each.this).collect()}
        return _Select(node, Sources(self._sources(node), self.subquery)).plan()

    def subquery(self, node: Node) -> Result:
        return _Planner(self.tables).plan(node).collect()

    def _sources(self, node: Node) -> list[Source]:
        first = node.args.get("from_")
        if first is None:
            refuse(node, "SELECT without FROM is not covered here")
        found = [Source(*self._table(first.this), first.this)]
        for join in node.args.get("joins") or ():
            how = f"{join.args.get('side') or ''} {join.args.get('kind') or ''}".strip().upper()
            if how not in HOWS or set(join.args) - {"this", "side", "kind", "on", "using"} & {
                part for part, value in join.args.items() if value
            }:
                refuse(join, "joins are INNER, LEFT, SEMI or ANTI, with ON or USING")
            source = Source(*self._table(join.this), join, HOWS[how])
            source.on = conjuncts(join.args["on"]) if join.args.get("on") else []
            for name in join.args.get("using") or ():
                source.on.append(used(name, source, found))
                source.using.add(name.name.lower())
            found.append(source)
        names = [source.alias for source in found]
        for name in names:
            if names.count(name) > 1:
                refuse(node, f"two tables are called {name}")
        return found

    def _table(self, node: Node) -> tuple[str, Table]:
        name = (node.alias or node.name).lower()
        _check_parts(node, {"this", "alias"})
        if node.args.get("alias") is not None:
            _check_parts(node.args["alias"], {"this"})
        if type(node).__name__ == "Subquery":
            return name, open_table(self.subquery(node.this), executor="auto")
        key = node.name.lower()
        if type(node).__name__ != "Table" or key not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise KeyError(f"sql: there is no table {node.sql(dialect='duckdb')!r}: given are {known}")
        given = self.tables[key]
        if isinstance(given, Table):
            return name, given
        if key not in self.opened:
            self.opened[key] = open_table(given)
        return name, self.opened[key]


class _Select:
    """One SELECT over its sources."""

    def __init__(self, node: Node, sources: Sources) -> None:
        self.node, self.sources = node, sources
        self.translate = Translator(sources.column)

    def plan(self) -> Plan:
        where = self.node.args.get("where")
        query = self.sources.joined([] if where is None else conjuncts(where.this))
        items = list(self._items())
        group, distinct = self.node.args.get("group"), self.node.args.get("distinct")
        aggregates = group is not None or any(_has_aggregate(n) for n, _ in items)
        if distinct is not None:
            _check_parts(distinct, set())
            if aggregates:
                refuse(self.node, "DISTINCT beside groups is not covered here")
        plan = self._grouped(query, items, group) if aggregates or distinct else self._rows(query, items)
        plan.shown = _different(plan.shown)
        plan.limit, plan.offset = self._number("limit"), self._number("offset") or 0
        return plan

    # Results.

    def _items(self) -> Iterable[tuple[Node, str]]:
        """What is selected, and what it is called."""
        for node in self.node.expressions:
            kind = type(node).__name__
            if kind == "Star" or (kind == "Column" and type(node.this).__name__ == "Star"):
                if any(node.args.get(part) for part in ("except_", "replace", "rename")):
                    refuse(node)
                for source in self.sources.all:
                    if kind == "Star" or node.table.lower() == source.alias:
                        for low in source.columns:
                            if kind == "Star" and low in source.using:
                                continue
                            yield expressions().column(low, table=source.alias), source.names[low]
            elif kind == "Alias":
                yield node.this, node.alias
            elif kind == "Column":
                yield node, node.name
            else:
                text = node.sql(dialect="duckdb")
                yield node, "count_star()" if text.lower() == "count(*)" else text.lower()

    def _rows(self, query: Query, items: Sequence[tuple[Node, str]]) -> Plan:
        if self.node.args.get("having") is not None:
            refuse(self.node.args["having"], "HAVING without groups is not covered here")
        outputs = [self.translate(node).alias(f"c{k}") for k, (node, _) in enumerate(items)]
        shown = [(f"c{k}", name) for k, (_, name) in enumerate(items)]
        order = []
        for each in self._ordered():
            number = self._item(each.this, items)
            if number is None:
                number = len(outputs)
                outputs.append(self.translate(each.this).alias(f"c{number}"))
            order.append((f"c{number}", *_directions(each)))
        return Plan(query.select(*outputs), shown, order=order)

    def _grouped(self, query: Query, items: Sequence[tuple[Node, str]], group: Node | None) -> Plan:
        keys = self._keys(items, group)
        key_outputs = [self.translate(node).alias(f"k{k}") for k, node in enumerate(keys)]
        names: dict[str, str] = {self._text(node): f"k{k}" for k, node in enumerate(keys)}
        outputs: list[Expr] = []

        def result(node: Node) -> str:
            """The column of the query's result that has a value of each group."""
            text = self._text(node)
            if text not in names:
                made = self.translate(node)
                if not list(aggregates_of(made)):
                    refuse(node, "it stands neither in GROUP BY nor in an aggregate")
                names[text] = f"a{len(outputs)}"
                outputs.append(made.alias(names[text]))
            return names[text]

        shown = [(result(node), name) for node, name in items]
        order = []
        for each in self._ordered():
            number = self._item(each.this, items)
            order.append((result(each.this) if number is None else shown[number][0], *_directions(each)))

        def of_group(node: Node) -> Expr | None:
            """In HAVING: keys, aggregates and what is selected, as columns of the result."""
            number = self._item(node, items) if type(node).__name__ == "Column" else None
            if number is not None:
                return Column(shown[number][0])
            if self._text(node) in names or isinstance(node, expressions().AggFunc):
                return Column(result(node))
            return None

        having = self.node.args.get("having")
        condition = None if having is None else Translator(of_group)(having.this)
        if not outputs:
            result(expressions().Count(this=expressions().Star()))
        made = query.group_by(*key_outputs).agg(*outputs) if keys else query.agg(*outputs)
        return Plan(made if condition is None else made.filter(condition), shown, order)

    def _keys(self, items: Sequence[tuple[Node, str]], group: Node | None) -> list[Node]:
        if group is None:
            return [node for node, _ in items] if self.node.args.get("distinct") else []
        for part, value in group.args.items():
            if value and part != "expressions":
                refuse(group, f"GROUP BY {part.upper()} is not covered here")
        keys = []
        for each in group.expressions:
            number = self._item(each, items, columns=False)
            keys.append(each if number is None else items[number][0])
        return keys

    def _item(self, node: Node, items: Sequence[tuple[Node, str]], columns: bool = True) -> int | None:
        """The number of what is selected that a number, a name or the same expression stands for. Before
        GROUP BY a column of a table comes first."""
        kind = type(node).__name__
        if kind == "Literal" and not node.is_string:
            number = int(node.this) - 1 if str(node.this).isdigit() else -1
            if not 0 <= number < len(items):
                refuse(node, f"{len(items)} columns are selected")
            return number
        if kind == "Column" and not node.table and (columns or not self.sources.has_column(node)):
            for number, (_, name) in enumerate(items):
                if name.lower() == node.name.lower():
                    return number
        texts = [self._text(item) for item, _ in items]
        return texts.index(self._text(node)) if self._text(node) in texts else None

    def _text(self, node: Node) -> str:
        """Alike where expressions are."""

        def resolved(part: Node) -> Node:
            if type(part).__name__ != "Column" or not self.sources.has_column(part):
                return part
            found = self.sources.column(part)
            assert isinstance(found, Column)
            return expressions().column(found.name, quoted=True)

        return str(node.unnest().transform(resolved).sql(dialect="duckdb"))

    def _ordered(self) -> list[Node]:
        order = self.node.args.get("order")
        return [] if order is None else list(order.expressions)

    def _number(self, part: str) -> int | None:
        node = self.node.args.get(part)
        if node is None:
            return None
        _check_parts(node, {"expression"})
        if type(node.expression).__name__ != "Literal" or not str(node.expression.this).isdigit():
            refuse(node, f"{part.upper()} takes a number")
        return int(node.expression.this)


def _check_parts(node: Node, known: set[str]) -> None:
    """Refuses a part of a statement that nothing would look at."""
    for part, value in node.args.items():
        if value and part not in known:
            refuse(node, f"{part.strip('_').upper().replace('_', ' ')} is not covered here")


def _different(shown: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Names that stand twice with a number behind, as DuckDB gives them."""
    taken: set[str] = set()
    made = []
    for inside, name in shown:
        number, free = 0, name
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free)
        made.append((inside, free))
    return made


def _has_aggregate(node: Node) -> bool:
    return node.find(expressions().AggFunc) is not None


def _directions(ordered: Node) -> tuple[bool, bool]:
    """Whether the greatest comes first, and whether nulls do."""
    return bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))

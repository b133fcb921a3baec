"""One SELECT as a query of its tables, and what is done with its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from penstock.columns.expressions import Column, Expr, Stored, name_of
from penstock.columns.query import Query
from penstock.columns.results import Result
from penstock.columns.statement_expressions import Translator
from penstock.columns.statement_nodes import (
    NULL_OF,
    Node,
    aggregates_in,
    check_parts,
    columns_in,
    expressions,
    kind_of,
    refuse,
)
from penstock.columns.statement_rewriting import shown_name
from penstock.columns.statement_rows import first_of_each, without_repeats
from penstock.columns.statement_short_forms import write_order_by_all
from penstock.columns.statement_sources import Sources
from penstock.columns.statement_tables import Condition


@dataclass
class Ordering:
    """ORDER BY and LIMIT of a result."""

    order: list[tuple[str, bool, bool]] = field(default_factory=list)
    """Columns, whether the greatest comes first, and whether nulls do."""
    limit: int | None = None
    offset: int = 0

    @staticmethod
    def of_limits(node: Node, order: list[tuple[str, bool, bool]]) -> Ordering:
        return Ordering(order, _number(node, "limit"), _number(node, "offset") or 0)

    @staticmethod
    def of_names(node: Node) -> Ordering:
        """By the names of a result, or their numbers."""
        return Ordering.of_limits(node, [(each.this.name, *_directions(each)) for each in _ordered(node)])

    @property
    def last(self) -> int | None:
        return None if self.limit is None else self.offset + self.limit

    def applied(self, result: Result) -> Result:
        known = {name.lower(): name for name in result}
        numbered = {str(k + 1): name for k, name in enumerate(result)}
        by = self.order
        if [name.upper() for name, *_ in by] == ["ALL"] and "all" not in known:
            by = [(name, *by[0][1:]) for name in known]
        for name, *_ in by:
            if name.lower() not in {**known, **numbered}:
                raise KeyError(f"sql: there is no column {name!r} to order by: there are {', '.join(known)}")
        named = {**numbered, **known}
        order = [(named[name.lower()], descending, first) for name, descending, first in by]
        return self.cut(result.sorted(order, self.last) if order else result)

    def cut(self, result: Result) -> Result:
        part = slice(self.offset, self.last)
        for column in result.columns:
            column.bits, column.valid = column.bits[part], column.valid[part]
        return result


@dataclass
class Plan:
    """A query, and what is done with its result."""

    query: Query
    shown: list[tuple[str, str]]
    """Columns of the query's result, and what they are called."""
    ordering: Ordering
    distinct: bool = False
    """Of the rows that are shown, each once."""
    of_each: tuple[str, ...] = ()
    """Columns of the query's result: of the rows that are equal in these the first, DISTINCT ON."""

    def collect(self) -> Result:
        result = self._limited.collect()
        if self.distinct:
            result = self._named(without_repeats(self._named(result, inside=True)), inside=True)
        if self.ordering.order:
            result = result.sorted(self.ordering.order, None if self.of_each else self.ordering.last)
        if self.of_each:
            keys = [result.column(name) for name in self.of_each]
            result = result.rows_at(first_of_each(Result(keys, result.account)))
        return self.ordering.cut(self._named(result))

    def forget(self) -> None:
        self.query.forget()

    @property
    def is_lasting(self) -> bool:
        return self.query.is_lasting

    def by_row(self) -> Query | None:
        """The same as a query that gives a row of each of the table's that meets its condition; None: it
        does not."""
        is_whole = self.ordering.limit is None and not self.ordering.offset
        if not self.query.is_by_row or not is_whole or self.distinct or self.of_each:
            return None
        outputs = {name_of(each): each for each in self.query.results()}
        shown = tuple(outputs[inside] for inside, _ in self.shown)
        return replace(self.query, outputs=shown)

    def explain(self, analyze: bool = False) -> str:
        return self.query.explain(analyze)

    def _named(self, result: Result, inside: bool = False) -> Result:
        """What is shown, under its names, or under those of the query's result."""
        named = {column.name: column for column in result.columns}
        shown = [replace(named[name], name=name if inside else to) for name, to in self.shown]
        return Result(shown, result.account)

    @cached_property
    def _limited(self) -> Query:
        """No more rows than are wanted, where that is known before."""
        order, wanted = self.ordering.order, self.ordering.last
        if wanted is None or not self.query.is_by_row or self.of_each:
            return self.query
        if not order:
            return self.query.head(wanted)
        name, descending, nulls_first = order[0]
        by = next(each for each in self.query.outputs or () if getattr(each, "name", None) == name)
        if len(order) > 1 or nulls_first or self.query.graph().lower(by).type.kind == "string":
            return self.query
        return self.query.top_k(wanted, by, reverse=not descending)


class Select:
    """One SELECT over its sources.

    Args:
        node: Its subqueries are constants.
        sources: The tables.
        conditions: Those of WHERE.
    """

    def __init__(self, node: Node, sources: Sources, conditions: Sequence[Condition]) -> None:
        self.node, self.sources, self.conditions = node, sources, conditions
        self.translate = Translator(sources.value)
        self._texts: dict[int, tuple[Node, str]] = {}  # by id of the node, which lives as long

    def plan(self) -> Plan:
        self.sources.selected = self._selected()
        self.sources.named = {column.name.lower() for node in self._parts() for column in columns_in(node)}
        query = self.sources.joined(self.conditions)
        items = list(self._items())
        write_order_by_all(self.node, len(items))
        group, distinct = self.node.args.get("group"), self.node.args.get("distinct")
        aggregates = group is not None or any(any(aggregates_in(n)) for n, _ in items)
        on = None
        if distinct is not None:
            check_parts(distinct, {"on"})
            on = distinct.args.get("on")
        if on is not None and aggregates:
            refuse(self.node, "DISTINCT ON of groups is not covered here")
        if aggregates or (distinct is not None and on is None):
            plan = self._grouped(query, items, group)
        else:
            plan = self._rows(query, items, [] if on is None else on.expressions)
        plan.distinct = distinct is not None and aggregates
        if plan.distinct and not {name for name, *_ in plan.ordering.order} <= {
            name for name, _ in plan.shown
        }:
            refuse(self.node, "what DISTINCT is ordered by is selected, too")
        plan.shown = different(plan.shown)
        return plan

    def _selected(self) -> set[str]:
        """Tables whose columns the result is made of."""
        nodes, known = self._parts(), expressions()
        if any(node.find(known.Star) and not node.find(known.Count) for node in nodes):
            return {source.alias for source in self.sources.all}
        return set().union(*map(self.sources.tables_of, nodes))

    def _parts(self) -> list[Node]:
        """What the result is made of."""
        parts = [self.node.args.get(part) for part in ("group", "having", "order")]
        return [*self.node.expressions, *(part for part in parts if part is not None)]

    # Results.

    def _items(self) -> Iterable[tuple[Node, str]]:
        """What is selected, and what it is called."""
        for node in self.node.expressions:
            kind = kind_of(node)
            if kind == "Star" or (kind == "Column" and kind_of(node.this) == "Star"):
                star = node if kind == "Star" else node.this
                if star.args.get("rename"):
                    refuse(node)
                without = {each.name.lower() for each in star.args.get("except_") or ()}
                instead = {each.alias.lower(): each.this for each in star.args.get("replace") or ()}
                self._check_there(node, without, instead)
                for source in (each for each in self.sources.all if each.table is not None):
                    if kind == "Star" or node.table.lower() == source.alias:
                        for low in source.columns:
                            if low in without or (kind == "Star" and low in source.using):
                                continue
                            column = expressions().column(low, table=source.alias)
                            yield instead.get(low, column), source.names[low]
            else:
                yield node.unalias(), shown_name(node)

    def _check_there(self, node: Node, without: Iterable[str], instead: Iterable[str]) -> None:
        left_out = {name for source in self.sources.all for name in source.refused}
        for name in (*(name for name in without if name not in left_out), *instead):
            if not any(name in source.columns for source in self.sources.all):
                raise KeyError(f"sql: {node.sql(dialect='duckdb')}: there is no column {name!r}")

    def _rows(self, query: Query, items: Sequence[tuple[Node, str]], keys: Sequence[Node]) -> Plan:
        """`keys`: of DISTINCT ON."""
        if self.node.args.get("having") is not None:
            refuse(self.node.args["having"], "HAVING without groups is not covered here")
        outputs = [self.translate(node).alias(f"c{k}") for k, (node, _) in enumerate(items)]
        shown = [(f"c{k}", name) for k, (_, name) in enumerate(items)]

        def result(node: Node) -> str:
            """The column of the query's result that has a value of each row."""
            number = self._item(node, items)
            if number is None:
                number = len(outputs)
                outputs.append(self.translate(node).alias(f"c{number}"))
            return f"c{number}"

        order = [(result(each.this), *_directions(each)) for each in _ordered(self.node)]
        of_each = tuple(map(result, keys))
        ordering = Ordering.of_limits(self.node, order)
        return Plan(query.select(*outputs), shown, ordering, of_each=of_each)

    def _grouped(self, query: Query, items: Sequence[tuple[Node, str]], group: Node | None) -> Plan:
        keys = self._keys(items, group)
        key_outputs = [self.translate(node).alias(f"k{k}") for k, node in enumerate(keys)]
        key_names = {self._text(node): f"k{k}" for k, node in enumerate(keys)}
        names = dict(key_names)
        outputs: list[Expr] = []
        graph = query.graph()

        def constant(node: Node) -> Expr | None:
            if kind_of(node) == "Anonymous" and node.this == NULL_OF:
                (key,) = node.expressions
                return Stored(None, graph.lower(self.translate(key)).type)
            return self.sources.constant(node)

        def of_key(node: Node) -> Expr | None:
            """Beside aggregates there are keys."""
            name = key_names.get(self._text(node))
            if name is None and kind_of(node) == "Column":
                refuse(node, "it stands neither in GROUP BY nor in an aggregate")
            return Column(name) if name is not None else constant(node)

        of_group = Translator(of_key, self.translate)

        def result(node: Node) -> str:
            """The column of the query's result that has a value of each group."""
            text = self._text(node)
            if text not in names:
                names[text] = f"a{len(outputs)}"
                outputs.append(of_group(node).alias(names[text]))
            return names[text]

        shown = [(result(node), name) for node, name in items]
        order = []
        for each in _ordered(self.node):
            number = self._item(each.this, items)
            order.append((result(each.this) if number is None else shown[number][0], *_directions(each)))

        def of_result(node: Node) -> Expr | None:
            """In HAVING: keys, aggregates and what is selected, as columns of the result."""
            number = self._item(node, items) if kind_of(node) == "Column" else None
            if number is not None:
                return Column(shown[number][0])
            if self._text(node) in names or isinstance(node, expressions().AggFunc) or _is_filtered(node):
                return Column(result(node))
            return constant(node)

        having = self.node.args.get("having")
        condition = None if having is None else Translator(of_result)(having.this)
        if not outputs:
            result(expressions().Count(this=expressions().Star()))
        made = replace(query, keys=tuple(key_outputs), aggregates=tuple(outputs))
        ordering = Ordering.of_limits(self.node, order)
        return Plan(made if condition is None else made.filter(condition), shown, ordering)

    def _keys(self, items: Sequence[tuple[Node, str]], group: Node | None) -> list[Node]:
        if group is None:
            if any(any(aggregates_in(node)) for node, _ in items):
                return []
            return [node for node, _ in items] if self.node.args.get("distinct") else []
        for part, value in group.args.items():
            if value and part != "expressions":
                refuse(group, f"GROUP BY with {part.upper()} is not covered here")
        keys = []
        for each in group.expressions:
            number = self._item(each, items, columns=False)
            keys.append(each if number is None else items[number][0])
        return keys

    def _item(self, node: Node, items: Sequence[tuple[Node, str]], columns: bool = True) -> int | None:
        """The number of what is selected that a number, a name or the same expression stands for. Before
        GROUP BY a column of a table comes first."""
        kind = kind_of(node)
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
        if id(node) not in self._texts:
            self._texts[id(node)] = (node, self._written(node))
        return self._texts[id(node)][1]

    def _written(self, node: Node) -> str:
        def name(part: Node) -> str | None:
            """Of the query's column that it is."""
            if kind_of(part) != "Column" or not self.sources.has_column(part):
                return None
            found = self.sources.column(part)
            assert isinstance(found, Column)
            return found.name

        def resolved(part: Node) -> Node:
            found = name(part) if part.find_ancestor(expressions().Query) is None else None
            return part if found is None else expressions().column(found, quoted=True)

        whole = node.unnest()
        alone = name(whole)
        return str(whole.transform(resolved).sql(dialect="duckdb")) if alone is None else f'"{alone}"'


def _ordered(node: Node) -> list[Node]:
    order = node.args.get("order")
    return [] if order is None else list(order.expressions)


def _number(node: Node, part: str) -> int | None:
    given = node.args.get(part)
    if given is None:
        return None
    check_parts(given, {"expression"})
    if kind_of(given.expression) != "Literal" or not str(given.expression.this).isdigit():
        refuse(given, f"{part.upper()} takes a number")
    return int(given.expression.this)


def different(shown: list[tuple[str, str]]) -> list[tuple[str, str]]:
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


def _is_filtered(node: Node) -> bool:
    return kind_of(node) == "Filter"


def _directions(ordered: Node) -> tuple[bool, bool]:
    """Whether the greatest comes first, and whether nulls do."""
    return bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))

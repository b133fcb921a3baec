"""Subqueries of a SELECT: constants, or tables that are joined with its own.

What a subquery compares with the outer query's columns for equality becomes the key of the join and, of an
aggregate, of its groups (Neumann and Kemper, BTW 2015, section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.columns.joining import How
from penstock.columns.other_tables import Columns, ResultColumns
from penstock.columns.results import Result
from penstock.columns.statement_nodes import (
    CALLED,
    Node,
    aggregates_in,
    check_parts,
    columns_in,
    conjuncts,
    expressions,
    kind_of,
    refuse,
)
from penstock.columns.statement_rewriting import shown_name
from penstock.columns.statement_rows import without_repeats
from penstock.columns.statement_tables import Condition, Membership, Source

COMPARED = {"NEQ": "NEQ", "LT": "GT", "LTE": "GTE", "GT": "LT", "GTE": "LTE"}
"""Comparisons, and what they are the other way round."""


class Runner(Protocol):
    """What subqueries need of who plans statements."""

    def names(self, select: Node) -> dict[str, set[str]]:
        """The columns of the tables that FROM names, by these, in lower case."""

    def result(self, node: Node) -> Result:
        """Of a subquery; each is asked once."""

    def columns(self, node: Node) -> Columns:
        """The same, not yet read where it is by row."""


@dataclass
class Correlated:
    """A subquery without its conditions that name the outer query's columns."""

    select: Node
    keys: list[tuple[Node, Node]] = field(default_factory=list)
    """What is equal: of the subquery, of the outer query."""
    others: list[tuple[str, Node, Node]] = field(default_factory=list)
    """What is compared otherwise."""


class Subqueries:
    """The subqueries of one SELECT."""

    def __init__(self, runner: Runner, sources: list[Source]) -> None:
        self.runner = runner
        self.sources = sources
        """Those that stand for subqueries are added."""
        self._made: dict[str, Node] = {}
        """What stands for subqueries, by their texts: one that stands twice, as in GROUP BY, is one."""

    def conditions(self, where: Node | None) -> list[Condition]:
        """Those of WHERE. Of the subqueries those are left that are constants."""
        return [each for node in conjuncts(where) for each in self._condition(node)]

    def replaced(self, node: Node) -> Node:
        """An expression. Of its subqueries those are left that are constants."""
        if not any(subqueries_of(node)):
            return node
        root = expressions().Paren(this=node.copy())
        for each in list(subqueries_of(root)):
            text = each.sql(dialect="duckdb")
            if text not in self._made:
                self._made[text] = self._instead(each)
            each.replace(self._made[text].copy())
        return root.this

    def _instead(self, node: Node) -> Node:
        """What stands for a subquery: itself, if it is a constant."""
        kind = kind_of(node)
        if kind == "Exists":
            return self._exists_value(node)
        if kind == "In":
            return self._in_value(node)
        if kind != "Subquery":
            refuse(node, f"{CALLED} with a subquery is not covered here")
        found = self._correlated(node.this)
        return node if found is None else self._value(found, node)

    def selected(self, node: Node) -> Node:
        """A result, which is called what is written."""
        made = self.replaced(node)
        if made is node or kind_of(node) == "Alias":
            return made
        name = expressions().to_identifier(shown_name(node), quoted=True)
        return expressions().Alias(this=made, alias=name)

    def check_having(self, having: Node | None) -> None:
        """Refuses what only rows can be joined with."""
        for each in subqueries_of(having) if having is not None else ():
            if kind_of(each) != "Subquery" or self._correlated(each.this.copy()) is not None:
                refuse(each, "a subquery in HAVING is a value without columns of the outer query")

    def _condition(self, node: Node) -> Iterator[Condition]:
        is_not = kind_of(node) == "Not"
        inner = node.this.unnest() if is_not else node
        if kind_of(inner) == "Exists":
            found = self._correlated(_select_of(inner).copy())
            if found is not None and not found.others and not _has_one_row(found.select):
                yield self._membership(found, "anti" if is_not else "semi", inner)
                return
        if kind_of(inner) == "In" and inner.args.get("query") is not None:
            yield from self._not_in(inner) if is_not else self._in(inner)
            return
        yield self.replaced(node)

    # IN.

    def _in(self, node: Node) -> Iterator[Condition]:
        found = self._correlated_behind_in(node)
        if found is not None:
            item = _only_item(node, found.select)
            if _has_one_row(found.select):
                yield self._correlated_in(found, node)
                return
            self._check_rows(found, node)
            found.keys.append((item, node.this))
            yield self._membership(found, "semi", node)
            return
        columns = self.runner.columns(_select_of(node))
        _check_one(node, columns.names)
        yield Membership(node, [node.this], columns, columns.names, "semi")

    def _not_in(self, node: Node) -> Iterator[Condition]:
        """Beside a null that the subquery has, no value is known not to be in it."""
        found = self._correlated_behind_in(node)
        if found is not None:
            yield expressions().Not(this=self._correlated_in(found, node))
            return
        result = self._values(node)
        column = result.columns[0]
        if not column.valid.all():
            yield expressions().false()
        elif len(column.valid):
            yield Membership(node, [node.this], ResultColumns(result.columns), [column.name], "anti")
            yield expressions().Not(this=_is_null(node.this))

    def _in_value(self, node: Node) -> Node:
        """IN as a truth value among others."""
        found = self._correlated_behind_in(node)
        if found is not None:
            return self._correlated_in(found, node)
        result, known = self._values(node), expressions()
        valid = result.columns[0].valid
        if not len(valid):
            return known.false()
        (there,) = self._joined(without_repeats(result), [node.this], node)
        cases = ((_is_null(node.this), known.Null()), (known.Not(this=_is_null(there)), known.true()))
        ifs = [known.If(this=condition, true=value) for condition, value in cases]
        return known.Case(ifs=ifs, default=known.false() if valid.all() else known.Null())

    def _correlated_behind_in(self, node: Node) -> Correlated | None:
        has_limit = _select_of(node).args.get("limit") is not None
        found = self._correlated(_select_of(node))
        if found is not None and has_limit:
            refuse(node, "a correlated subquery behind IN has no LIMIT")
        return found

    def _correlated_in(self, found: Correlated, node: Node) -> Node:
        """Whether a value is among those of the rows that have the outer query's keys: null where that is not
        known, since it or one of these is null."""
        known = expressions()
        if _has_one_row(found.select):
            return known.paren(known.EQ(this=node.this.copy(), expression=self._value(found, node)))
        self._check_rows(found, node)
        item, select = _only_item(node, found.select), found.select.copy()
        counts = [known.Count(this=known.Star()), known.Count(this=item.copy())]
        _, rows, values = self._grouped(found, counts, node)
        inner = [*(key for key, _ in found.keys), item]
        select.set("expressions", [_named(each, k) for k, each in enumerate(inner)])
        select.set("group", known.Group(expressions=[each.copy() for each in inner]))
        outer = [*(each for _, each in found.keys), node.this]
        met = self._joined(self.runner.result(select), outer, node)[0]
        is_unknown = known.Or(
            this=_is_null(node.this), expression=known.LT(this=values, expression=rows.copy())
        )
        cases = (
            (_is_null(rows), known.false()),
            (known.Not(this=_is_null(met)), known.true()),
            (is_unknown, known.Null()),
        )
        ifs = [known.If(this=condition, true=value) for condition, value in cases]
        return known.Case(ifs=ifs, default=known.false())

    @staticmethod
    def _check_rows(found: Correlated, node: Node) -> None:
        """Refuses a correlated subquery behind IN whose values are not those of its rows."""
        groups = found.select.args.get("group") or any(
            any(aggregates_in(e)) for e in found.select.expressions
        )
        if found.others or groups or not found.keys:
            refuse(node, "a correlated subquery behind IN has no groups, and compares with = alone")

    def _values(self, node: Node) -> Result:
        select = _select_of(node)
        result = self.runner.result(select)
        _check_one(node, [*result])
        return result

    # EXISTS.

    def _membership(self, found: Correlated, how: How, node: Node) -> Membership:
        select = found.select
        select.set("expressions", [_named(key, k) for k, (key, _) in enumerate(found.keys)])
        select.set("group", None)
        columns = self.runner.columns(select)
        return Membership(node, [outer for _, outer in found.keys], columns, columns.names, how)

    def _exists_value(self, node: Node) -> Node:
        """EXISTS as a truth value among others, or with a comparison that is none for equality: that of an
        extreme of each key's rows."""
        select, known = _select_of(node), expressions()
        found = self._correlated(select)
        if found is None:
            if select.args.get("limit") is None:
                select.set("limit", known.Limit(expression=known.Literal.number(1)))
            return known.true() if self.runner.result(select).row_count else known.false()
        if _has_one_row(select):
            return known.true()
        if len(found.others) > 1 or not found.keys:
            refuse(node, "a correlated subquery has keys that are equal, and one other comparison at most")
        extremes = [
            made
            for _, inner, _ in found.others
            for made in (known.Min(this=inner), known.Max(this=inner.copy()))
        ]
        there, *most = self._grouped(found, extremes, node)
        if not found.others:
            return known.Not(this=_is_null(there))
        kind, _, outer = found.others[0]
        of = {"NEQ": most, "LT": most[:1], "LTE": most[:1], "GT": most[1:], "GTE": most[1:]}[kind]
        tests = [getattr(known, kind)(this=each, expression=outer.copy()) for each in of]
        whole = tests[0] if len(tests) == 1 else known.Or(this=tests[0], expression=tests[1])
        return known.Coalesce(this=known.Paren(this=whole), expressions=[known.false()])

    # Values.

    def _value(self, found: Correlated, node: Node) -> Node:
        """What is made of a correlated subquery's aggregates, which are columns of its groups: of no rows
        counts are 0, others null."""
        known = expressions()
        whole = known.Paren(this=_only_item(node, found.select).copy())
        aggregates = list(aggregates_in(whole))
        if found.others or not found.keys or found.select.args.get("group") or not aggregates:
            refuse(node, "a correlated value is made of aggregates without groups, and compares with = alone")
        rest = whole.copy()
        for each in list(aggregates_in(rest)):
            each.replace(known.Null())
        if any(columns_in(rest)) or rest.find(known.Query):
            refuse(node, "beside the aggregates of a correlated subquery there are values alone")
        columns = self._grouped(found, aggregates, node)[1:]
        for each, column in zip(aggregates, columns, strict=True):
            is_count = isinstance(each.this if kind_of(each) == "Filter" else each, known.Count)
            zero = [known.Literal.number(0)]
            each.replace(known.Coalesce(this=column, expressions=zero) if is_count else column)
        return whole

    def _grouped(self, found: Correlated, items: list[Node], node: Node) -> list[Node]:
        """Columns of a subquery's groups by its keys, which are joined: the first key, and items."""
        select, keys = found.select, [inner for inner, _ in found.keys]
        select.set("expressions", [_named(each, k) for k, each in enumerate([*keys, *items])])
        select.set("group", expressions().Group(expressions=[key.copy() for key in keys]))
        made = self._joined(self.runner.result(select), [outer for _, outer in found.keys], node)
        return [made[0], *made[len(keys) :]]

    def _joined(self, result: Result, outer: Sequence[Node], node: Node) -> list[Node]:
        """A result beside each row, by its first columns; what stands for its columns."""
        alias = f"subquery {len(self.sources)}"
        given = [replace(column, name=f"{alias}.{k}") for k, column in enumerate(result.columns)]
        columns = [expressions().column(c.name, table=alias, quoted=True) for c in given]
        source = Source(alias, None, node, "left", given=ResultColumns(given))
        source.on = [
            expressions().EQ(this=mine.copy(), expression=other.copy())
            for mine, other in zip(columns, outer, strict=False)
        ]
        self.sources.append(source)
        return columns

    # Correlation.

    def _correlated(self, select: Node) -> Correlated | None:
        """A subquery whose conditions name the outer query's columns; None: it does not."""
        if kind_of(select) != "Select":
            return None
        names = self.runner.names(select)

        def is_outer(column: Node) -> bool:
            table, name = column.table.lower(), column.name.lower()
            if table:
                return table not in names
            if any(name in each for each in names.values()):
                return False
            return any(name in source.names for source in self.sources)

        def outer_in(node: Node) -> list[bool]:
            return [is_outer(column) for column in columns_in(node)]

        if not any(outer_in(select)):
            return None
        _drop_order(select)
        found = Correlated(select)
        where = select.args.get("where")
        stays = []
        for condition in conjuncts(where.this if where is not None else None):
            if not any(outer_in(condition)):
                stays.append(condition)
                continue
            kind = kind_of(condition)
            if kind not in ("EQ", *COMPARED):
                refuse(condition, "a correlated subquery compares its own columns with the outer query's")
            sides = (condition.this, condition.expression)
            outer = [all(outer_in(side)) and bool(outer_in(side)) for side in sides]
            inner = [not any(outer_in(side)) and bool(outer_in(side)) for side in sides]
            if outer == [True, False] and inner[1]:
                sides, kind = sides[::-1], COMPARED.get(kind, kind)
            elif outer != [False, True] or not inner[0]:
                refuse(condition, "a correlated subquery compares its own columns with the outer query's")
            if kind == "EQ":
                found.keys.append(sides)
            else:
                found.others.append((kind, *sides))
        known = expressions()
        select.set("where", known.Where(this=known.and_(*stays, copy=False)) if stays else None)
        if any(outer_in(select)):
            refuse(select, "the outer query's columns stand in conditions of WHERE alone")
        return found


def subqueries_of(node: Node) -> Iterator[Node]:
    """The subqueries in an expression, each as the expression that it stands in; not those in these."""
    known = expressions()
    todo = [node]
    while todo:
        each = todo.pop()
        kind = kind_of(each)
        whole = kind in ("Exists", "All", "Any") or (kind == "In" and each.args.get("query") is not None)
        if isinstance(each, known.Query) or (whole and each.find(known.Query) is not None):
            yield each
        else:
            todo += each.iter_expressions()


def _select_of(node: Node) -> Node:
    """What an EXISTS or IN asks."""
    inner = node.args.get("query") if kind_of(node) == "In" else node.this
    while kind_of(inner) == "Subquery":
        inner = inner.this
    return inner


def _only_item(node: Node, select: Node) -> Node:
    _check_one(node, select.expressions)
    return select.expressions[0].unalias()


def _check_one(node: Node, given: Sequence[object]) -> None:
    if len(given) != 1:
        refuse(node, "a subquery that is a value, or behind IN, has one column")


def _drop_order(select: Node) -> None:
    """Takes from a correlated subquery what neither adds nor leaves out rows that anything depends on."""
    known, limit = expressions(), select.args.get("limit")
    number: Node = None if limit is None else limit.expression
    is_plain = limit is None or (kind_of(number) == "Literal" and str(number.this).strip("0").isdigit())
    for part in ("having", "offset", "qualify") if is_plain else ("limit",):
        if select.args.get(part):
            refuse(select, f"{part.upper()} of a correlated subquery is not covered here")
    distinct = select.args.get("distinct")
    if distinct is not None:
        check_parts(distinct, set())
    group = select.args.get("group")
    if group is not None:
        check_parts(group, {"expressions"})
    of_rows = [*select.expressions, *(group.expressions if group is not None else ())]
    for each in of_rows:
        if each.find(known.Window, known.UDTF, known.Rollup, known.Cube, known.GroupingSets, known.Tuple):
            refuse(each, "in a correlated subquery it is not covered here")
    for part in ("order", "limit", "distinct"):
        select.set(part, None)


def _has_one_row(select: Node) -> bool:
    """Aggregates of all rows, also of none."""
    return not select.args.get("group") and any(any(aggregates_in(each)) for each in select.expressions)


def _named(node: Node, number: int) -> Node:
    return expressions().alias_(node.copy(), f"c{number}", quoted=True)


def _is_null(node: Node) -> Node:
    return expressions().Is(this=node.copy(), expression=expressions().Null())

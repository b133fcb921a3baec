"""What may be written shorter, written out: GROUP BY ALL, aliases beside columns, tuples, RIGHT JOIN."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.columns.statement_nodes import Node, aggregates_in, columns_in, expressions, kind_of, refuse
from penstock.columns.statement_tables import Source


def written_out(node: Node) -> Node:
    """A SELECT without short forms that need no columns of tables."""
    known = expressions()
    group = node.args.get("group")
    has_star = any(each.find(known.Star) and not each.find(known.Count) for each in node.expressions)
    if group is not None and group.args.get("all") and not has_star:
        items = [each.unalias() for each in node.expressions]
        keys = [each.copy() for each in items if not any(aggregates_in(each)) and any(columns_in(each))]
        node.set("group", known.Group(expressions=keys) if keys else None)
    if not has_star:
        write_order_by_all(node, len(node.expressions))
    _turn_right_join(node)
    for name in ("where", "expressions", "having"):
        given = node.args.get(name)
        for each in given if isinstance(given, list) else [given] if given is not None else []:
            each.replace(each.transform(_plain, copy=False))
    return node


def write_order_by_all(node: Node, count: int) -> None:
    """ORDER BY ALL of so many results: by the numbers of all."""
    known, order = expressions(), node.args.get("order")
    each = order.expressions[0] if order is not None and len(order.expressions) == 1 else None
    if each is not None and kind_of(each.this) == "Var" and each.this.name.upper() == "ALL":
        numbers = [known.Literal.number(k + 1) for k in range(count)]
        directions = {part: each.args.get(part) for part in ("desc", "nulls_first")}
        order.set("expressions", [known.Ordered(this=number, **directions) for number in numbers])


def _turn_right_join(node: Node) -> None:
    """A RIGHT JOIN is a LEFT JOIN the other way round."""
    known, joins = expressions(), node.args.get("joins") or []
    if len(joins) != 1 or joins[0].args.get("side") != "RIGHT" or joins[0].args.get("using"):
        return
    first, join = node.args["from_"].this, joins[0]
    if any(kind_of(each) == "Star" for each in node.expressions):
        tables = [known.column(known.Star(), table=each.alias_or_name) for each in (first, join.this)]
        items = [[each] if kind_of(each) != "Star" else tables for each in node.expressions]
        node.set("expressions", [each.copy() for some in items for each in some])
    node.set("from_", known.From(this=join.this.copy()))
    join.set("this", first.copy())
    join.set("side", "LEFT")


def _plain(node: Node) -> Node:
    """Tuples part by part, and ANY and ALL of a subquery by IN."""
    known, kind = expressions(), kind_of(node)
    if kind in ("EQ", "NEQ"):
        a, b = node.this, node.expression
        if (kind, kind_of(b)) in (("EQ", "Any"), ("NEQ", "All")) and b.find(known.Query):
            query = b.this if kind_of(b.this) == "Subquery" else known.Subquery(this=b.this)
            found = known.In(this=a, query=query)
            return found if kind == "EQ" else known.Not(this=found)
        if kind_of(a) == kind_of(b) == "Tuple":
            same = _all_equal(node, a, b)
            return same if kind == "EQ" else known.Not(this=same)
    if kind == "In" and kind_of(node.this) == "Tuple" and node.expressions:
        return known.paren(known.or_(*(_all_equal(node, node.this, each) for each in node.expressions)))
    return node


def _all_equal(node: Node, a: Node, b: Node) -> Node:
    """Parts of tuples are equal where both are null, too, as DuckDB has it."""
    if kind_of(b) != "Tuple" or len(a.expressions) != len(b.expressions):
        refuse(node, "both sides have as many values")
    known = expressions()
    pairs = zip(a.expressions, b.expressions, strict=True)
    return known.paren(known.and_(*(known.NullSafeEQ(this=x.copy(), expression=y.copy()) for x, y in pairs)))


def with_aliases(node: Node, sources: Sequence[Source]) -> None:
    """Puts what is selected in the places of its alias, beside it and in WHERE, where no table has such a
    column."""
    taken = {name for source in sources for name in (*source.names, *source.refused)}
    named: dict[str, Node] = {}
    for each in node.expressions:
        _replace(each, named)
        if kind_of(each) == "Alias" and each.alias.lower() not in taken:
            named[each.alias.lower()] = each.this
    if node.args.get("where") is not None:
        _replace(node.args["where"], named)
    parts = [node.args[part] for part in ("group", "order") if node.args.get(part) is not None]
    for each in (each for part in parts for each in part.expressions):
        if kind_of(each.this if kind_of(each) == "Ordered" else each) != "Column":
            _replace(each, named)


def _replace(node: Node, named: dict[str, Node]) -> None:
    for column in list(columns_in(node)):
        known = None if column.table else named.get(column.name.lower())
        if known is not None:
            column.replace(expressions().Paren(this=known.copy()))


def rows_selected(node: Node) -> Node:
    """The rows of VALUES, each as a SELECT."""
    known = expressions()
    rows = [each.expressions if kind_of(each) == "Tuple" else [each] for each in node.expressions]
    whole: Node = None
    for row in rows:
        items = [known.alias_(each.copy(), f"col{k}") for k, each in enumerate(row)]
        select = known.Select(expressions=items)
        whole = select if whole is None else known.Union(this=whole, expression=select, distinct=False)
    return whole

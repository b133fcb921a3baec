"""Statements that come to the same, and that run with less."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.columns.statement_nodes import NULL_OF, Node, aggregates_in, columns_in, expressions, kind_of
from penstock.columns.statement_tables import Source

PLAIN = {"expressions", "from_", "joins", "where", "kind"}
"""Parts of a SELECT whose rows are those of its tables."""
OUTER = ("RIGHT", "FULL")
"""Sides of joins that become tables of pairs before others are joined."""


def shown_name(node: Node) -> str:
    """What a part of a result is called."""
    if kind_of(node) in ("Alias", "Column"):
        return str(node.alias_or_name)
    text = str(node.sql(dialect="duckdb", normalize_functions="lower"))
    return "count_star()" if text == "count(*)" else text


def with_merged_subquery(node: Node) -> Node:
    """A SELECT of rows of a SELECT as one, so that these rows need not be kept."""
    first = node.args.get("from_")
    inner = None if first is None else first.this
    if (
        inner is None
        or kind_of(inner) != "Subquery"
        or node.args.get("joins")
        or kind_of(inner.this) != "Select"
    ):
        return node
    select, known = inner.this, expressions()
    parts = [part for part, value in select.args.items() if value]
    items = {each.alias_or_name.lower(): each.unalias() for each in select.expressions}
    if (
        node.args.get("joins")
        or not {"from_"} <= set(parts) <= PLAIN
        or len(items) < len(select.expressions)
        or "" in items
        or any(each.find(known.AggFunc, known.Star, known.Query) for each in select.expressions)
        or any(each.find(known.Star) and not each.find(known.Count) for each in node.expressions)
        or any(part.find(known.Query) for name, part in parts_of(node) if name != "from_")
        or any(column.name.lower() not in items for column in _columns(node))
        or inner.alias_column_names
        or any(join.side in OUTER for join in select.args.get("joins") or ())
    ):
        return node
    _replace_columns(node, lambda column: known.Paren(this=items[column.name.lower()].copy()))
    both = [part.this for part in (select.args.get("where"), node.args.get("where")) if part is not None]
    node.set("from_", select.args["from_"])
    node.set("joins", select.args.get("joins"))
    node.set("where", known.Where(this=known.and_(*both)) if both else None)
    return node


def parts_of(node: Node) -> list[tuple[str, Node]]:
    return [
        (name, each)
        for name, value in node.args.items()
        for each in (value if isinstance(value, list) else [value])
        if hasattr(each, "find")
    ]


def _columns(node: Node) -> list[Node]:
    """What a SELECT names, but for what ORDER BY and HAVING name of its results."""
    called = {each.alias.lower() for each in node.expressions if kind_of(each) == "Alias"}
    found = []
    for name, part in parts_of(node):
        of = columns_in(part) if name not in ("from_", "joins") else ()
        found += [c for c in of if name not in ("order", "having") or not is_result(c, called)]
    return found


def columns_of_tables(node: Node) -> Iterator[Node]:
    """What a SELECT names where DuckDB looks for a table's column first. In ORDER BY by itself, and in HAVING
    outside aggregates, a name is that of a result if one has it.
    """
    called = {each.alias.lower() for each in node.expressions if kind_of(each) == "Alias"}
    for name, part in parts_of(node):
        inside = {id(column) for each in aggregates_in(part) for column in columns_in(each)}
        for column in columns_in(part):
            is_alone = name == "order" and kind_of(column.parent) == "Ordered"
            may_be_result = is_alone or (name == "having" and id(column) not in inside)
            if not (may_be_result and is_result(column, called)):
                yield column


def is_result(column: Node, called: set[str]) -> bool:
    """Whether a name in ORDER BY or HAVING is that of a result, and not of a table's column."""
    known, up = expressions(), column.parent
    while up is not None and not isinstance(up, known.Query):
        if kind_of(up) == "Anonymous" and up.this == NULL_OF:
            return False
        up = up.parent
    return not column.table and column.name.lower() in called


def _replace_columns(node: Node, make: Callable[[Node], Node]) -> None:
    """Puts something in the places of a SELECT's columns; its results keep their names."""
    known, found = expressions(), _columns(node)
    names = [shown_name(each) for each in node.expressions]
    node.set(
        "expressions",
        [
            each if kind_of(each) == "Alias" else known.alias_(each, name, quoted=True, copy=False)
            for each, name in zip(node.expressions, names, strict=True)
        ],
    )
    for column in found:
        column.replace(make(column))


def other_way_round(node: Node, sources: list[Source]) -> Node | None:
    """A LEFT JOIN with a table that has a key more than once: an inner join of that table with the first one,
    and the rows of the first one that meet none; None: it is another statement."""
    known = expressions()
    whole = len(sources) == 2 and [source.how for source in sources] == ["inner", "left"]
    if not whole or any(source.table is None or source.using for source in sources):
        return None
    if any(part.find(known.Query) for name, part in parts_of(node) if name not in ("from_", "joins")) or any(
        each.find(known.Star) and not each.find(known.Count) for each in node.expressions
    ):
        return None
    first, join = node.args["from_"].this, node.args["joins"][0]
    named: dict[tuple[str, str], None] = {}

    def owner(column: Node) -> Source:
        return next(s for s in sources if column.name.lower() in s.names and s.is_meant(column))

    for column in _columns(node):
        if sum(column.name.lower() in s.names and s.is_meant(column) for s in sources) != 1:
            return None
        named[owner(column).alias, column.name.lower()] = None
    selected = {source.alias: [name for alias, name in named if alias == source.alias] for source in sources}

    def items(null: str | None) -> list[Node]:
        return [
            known.alias_(
                known.Null() if alias == null else known.column(name, table=alias),
                f"{alias}.{name}",
                quoted=True,
            )
            for alias, names in selected.items()
            for name in names
        ] or [known.alias_(known.Literal.number(1), "row", quoted=True)]

    on = join.args.get("on")
    met = known.select(*items(None)).from_(join.this.copy())
    met = met.join(first.copy(), on=on.copy(), join_type="inner")
    rest = known.select(*items(sources[1].alias)).from_(first.copy())
    rest = rest.join(join.this.copy(), on=on.copy(), join_type="anti")
    turned = node.copy()
    alias = "both ways"
    _replace_columns(
        turned, lambda c: known.column(f"{owner(c).alias}.{c.name.lower()}", table=alias, quoted=True)
    )
    union = known.Union(this=met, expression=rest, distinct=False)
    named_alias = known.TableAlias(this=known.to_identifier(alias, quoted=True))
    turned.set("from_", known.From(this=known.Subquery(this=union, alias=named_alias)))
    turned.set("joins", None)
    return turned

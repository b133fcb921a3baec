"""GROUP BY with ROLLUP, CUBE or GROUPING SETS: a SELECT for each set of keys, one below the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from penstock.columns.statement_nodes import NULL_OF, Node, expressions, kind_of, refuse
from penstock.columns.statement_rewriting import shown_name

OF_SETS = ("Rollup", "Cube", "GroupingSets")
MOST_SETS = 64
COUNT = "rows of the set"


def has_sets(node: Node) -> bool:
    group = node.args.get("group")
    return group is not None and any(kind_of(each) in OF_SETS for each in group.expressions)


def by_sets(node: Node, tables: Mapping[str, set[str]]) -> Node:
    """The same as a SELECT of SELECTs that have plain keys.

    Args:
        node: A SELECT, which is changed.
        tables: Columns of its tables, in lower case.

    Raises:
        ValueError: More sets than there may be, or a GROUPING of what is no key.
    """
    known, names = expressions(), [shown_name(each) for each in node.expressions]
    if any(each.find(known.Star) and not each.find(known.Count) for each in node.expressions):
        refuse(node.args["group"], "beside it there is no star")
    if len({name.lower() for name in names}) < len(names):
        refuse(node.args["group"], "what is selected beside it has different names: give aliases")
    sets = list(_sets(node, set().union(*tables.values())))
    if len(sets) > MOST_SETS:
        refuse(node.args["group"], f"it has {len(sets)} sets of keys, and {MOST_SETS} at most are covered")
    keys = [key for each in sets for key in each]
    order = _order(node, names)
    items = [*(each.unalias() for each in node.expressions), *(each for _, each in order if each is not None)]
    named = [*names, *(f"order {k}" for k, (_, each) in enumerate(order) if each is not None)]
    selects = [_select(node, items, named, keys, each) for each in sets]
    whole = selects[0]
    for select in selects[1:]:
        whole = known.Union(this=whole, expression=select, distinct=False)
    return _outer(node, whole, names, [(k, o, each is not None) for k, (o, each) in enumerate(order)])


def _sets(node: Node, columns: set[str]) -> Iterator[list[Node]]:
    """All combinations of what stands in GROUP BY."""
    items = {shown_name(each).lower(): each.unalias() for each in node.expressions}

    def key(each: Node) -> Node:
        """What a number or a name stands for that no table has."""
        if kind_of(each) == "Literal" and str(each.this).isdigit() and 0 < int(each.this) <= len(items):
            return list(items.values())[int(each.this) - 1]
        is_name = kind_of(each) == "Column" and not each.table and each.name.lower() not in columns
        return items.get(each.name.lower(), each) if is_name else each

    def part(each: Node) -> list[Node]:
        if kind_of(each) == "Tuple":
            return [key(one) for one in each.expressions]
        return [key(each.unnest())]

    def sets(each: Node) -> list[list[Node]]:
        if kind_of(each) == "GroupingSets":
            return [one for inner in each.expressions for one in sets(inner)]
        parts = [part(one) for one in each.expressions] if kind_of(each) in OF_SETS else [part(each)]
        if kind_of(each) == "Rollup":
            return [list(itertools.chain(*parts[:k])) for k in range(len(parts), -1, -1)]
        if kind_of(each) == "Cube":
            chosen = (c for k in range(len(parts), -1, -1) for c in itertools.combinations(parts, k))
            return [list(itertools.chain(*some)) for some in chosen]
        return parts

    for some in itertools.product(*(sets(each) for each in node.args["group"].expressions)):
        yield list(itertools.chain(*some))


def _order(node: Node, names: Sequence[str]) -> list[tuple[Node, Node | None]]:
    """Of ORDER BY what each is by, a number or a name of a result, or an expression beside these."""
    found: list[tuple[Node, Node | None]] = []
    order, known = node.args.get("order"), expressions()
    items = [each.unalias().sql(dialect="duckdb") for each in node.expressions]
    lower = [name.lower() for name in names]
    for each in order.expressions if order is not None else ():
        of, number = each.this, None
        if kind_of(of) == "Literal" and str(of.this).isdigit():
            number = int(of.this) - 1
        elif kind_of(of) == "Column" and not of.table and of.name.lower() in lower:
            number = lower.index(of.name.lower())
        elif of.sql(dialect="duckdb") in items:
            number = items.index(of.sql(dialect="duckdb"))
        is_item = number is not None and 0 <= number < len(names)
        by = known.column(names[number or 0], quoted=True) if is_item else None
        made = known.Ordered(this=by, desc=each.args.get("desc"), nulls_first=each.args.get("nulls_first"))
        found.append((made, None if is_item else of))
    return found


def _select(
    node: Node, items: Sequence[Node], names: Sequence[str], keys: Sequence[Node], chosen: Sequence[Node]
) -> Node:
    """One set's groups."""
    known, select = expressions(), node.copy()
    missing = [key for key in keys if not _stands(key, chosen)]
    given = [*(_of_set(each, keys, missing) for each in items), known.Count(this=known.Star())]
    made = [
        known.Alias(this=each, alias=known.to_identifier(name, quoted=True))
        for each, name in zip(given, [*names, COUNT], strict=True)
    ]
    select.set("expressions", made)
    for part in ("order", "limit", "offset", "distinct", "with_"):
        select.set(part, None)
    select.set("group", known.Group(expressions=[each.copy() for each in chosen]) if chosen else None)
    having = select.args.get("having")
    if having is not None:
        having.set("this", _of_set(having.this, keys, missing))
    return select


def _of_set(node: Node, keys: Sequence[Node], missing: Sequence[Node]) -> Node:
    """An expression in which keys that a set has not are null. What is in a key, an aggregate or a subquery
    is no key of its own."""
    known = expressions()

    def instead(part: Node) -> Node:
        if kind_of(part) in ("Grouping", "GroupingId"):
            return known.Literal.number(_grouping(part, keys, missing))
        if _stands(part, missing):
            return known.Anonymous(this=NULL_OF, expressions=[part.copy()])
        if not _stands(part, keys) and not isinstance(part, (known.AggFunc, known.Filter, known.Query)):
            for each in list(part.iter_expressions()):
                made = instead(each)
                if made is not each:
                    each.replace(made)
        return part

    return instead(node.copy())


def _grouping(node: Node, keys: Sequence[Node], missing: Sequence[Node]) -> int:
    """A bit for each key, set where a set has it not."""
    whole = 0
    for each in node.expressions:
        if not _stands(each, keys):
            refuse(node, "it takes keys of GROUP BY")
        whole = 2 * whole + _stands(each, missing)
    return whole


def _stands(node: Node, among: Sequence[Node]) -> bool:
    return any(_alike(node, each) for each in among)


def _alike(a: Node, b: Node) -> bool:
    if kind_of(a) == kind_of(b) == "Column":
        tables = {a.table.lower(), b.table.lower()} - {""}
        return len(tables) < 2 and a.name.lower() == b.name.lower()
    return bool(a == b)


def _outer(node: Node, whole: Node, names: Sequence[str], order: Sequence[tuple[int, Node, bool]]) -> Node:
    """What is done with the groups of all sets together."""
    known = expressions()
    alias = known.TableAlias(this=known.to_identifier("sets", quoted=True))
    select = known.Select(expressions=[known.column(name, quoted=True) for name in names])
    select.set("from_", known.From(this=known.Subquery(this=whole, alias=alias)))
    for k, ordered, is_beside in order:
        if is_beside:
            ordered.set("this", known.column(f"order {k}", quoted=True))
    if order:
        select.set("order", known.Order(expressions=[ordered for _, ordered, _ in order]))
    for part in ("limit", "offset", "distinct"):
        given = node.args.get(part)
        select.set(part, None if given is None else given.copy())
    return select

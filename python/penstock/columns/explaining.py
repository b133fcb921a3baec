"""What a query will do, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.columns.lowering import shown

if TYPE_CHECKING:
    from penstock.columns.query import Query
    from penstock.columns.table import Table


def explained(query: Query) -> str:
    """Columns, what of them is read when, and how many bytes that is."""
    table = query.table
    lines = [
        f"table {table.name}: {table.rows} rows, {len(table.columns)} columns, placement {table.placement}, "
        f"executor {table.executor}"
    ]
    scanned: list[str] = []
    if query.condition is not None:
        lines.append(f"condition: {shown(query.condition)}")
    whole = () if query.condition is None else (query.condition,)
    if whole or query.joins:
        scanned = query.stored_columns(*whole)
        lines += [_whole(table, name) for name in scanned]
    for join in query.joins:
        lines.append(
            f"{join.how} join on {shown(join.key)}: {len(join.other.names)} columns, read into memory"
        )
    rest = [*query.keys, *(query.aggregates or query.outputs or ())]
    names = query.stored_columns(*rest)
    what = ", ".join(shown(expression) for expression in rest) or "all columns"
    lines.append(f"rest: {what}")
    for name in names if rest else table.columns:
        if query.condition is None and not query.joins:
            lines.append(_whole(table, name))
        elif name not in scanned:
            lines.append(f"  {name}  {_stored(table, name)}  read where the condition holds")
    return "\n".join(lines)


def _whole(table: Table, name: str) -> str:
    known = "yes" if table.has_zone_map(name) else "no"
    nbytes = -(-table.rows * table.place_of(name).bits // 8)
    return f"  {name}  {_stored(table, name)}  read whole  {nbytes} bytes  zone map: {known}"


def _stored(table: Table, name: str) -> str:
    place = table.place_of(name)
    packed = f", packed to {place.bits} bits" if place.encoding == "packed" else ""
    return f"{place.type}{packed}{', nulls' if place.nullable else ''}"

"""What a query will do, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.columns.grouping import described
from penstock.columns.shown import shown

if TYPE_CHECKING:
    from penstock.columns.query import Query
    from penstock.columns.table import Table


SECTOR_BYTES = 32


def explained(query: Query, analyze: bool = False) -> str:
    """Columns, what of them is read when, and how many bytes that is."""
    table = query.table
    lines = [
        f"table {table.name}: {table.rows} rows, {len(table.columns)} columns, placement {table.placement}, "
        f"executor {table.executor}"
    ]
    if table.compiler is not None:
        lines.append(f"kernels: {table.compiler.described()}")
    scanned: list[str] = []
    if query.condition is not None:
        lines.append(f"condition: {shown(query.condition)}")
    whole = () if query.condition is None else (query.condition,)
    if whole or query.joins:
        scanned = query.stored_columns(*whole)
        lines += [_whole(table, name) for name in scanned]
    for join in query.joins:
        lines.append(f"{join.how} join on {join.shown()}: {len(join.other.names)} columns, read into memory")
    rest = [*query.keys, *(query.aggregates or query.outputs or ())]
    names = query.stored_columns(*query.of_groups(), *(query.outputs or ()))
    what = ", ".join(shown(expression) for expression in rest) or "all columns"
    lines.append(f"rest: {what}")
    some = [name for name in (names if rest else table.columns) if name not in scanned]
    if query.condition is None and not query.joins:
        lines += [_whole(table, name) for name in some]
        some = []
    if query.keys:
        lines.append(described(query, analyze))
    if query.having is not None:
        lines.append(f"condition of groups: {shown(query.having)}")
    touched = query.touched(some) if analyze else [None] * len(some)
    for name, touch in zip(some, touched, strict=True):
        line = f"  {name}  {_stored(table, name)}  read where the condition holds"
        lines.append(line + ("" if touch is None else _touched(table, *touch)))
    if analyze and table.compiler is not None:
        for what, compiled, seconds in query.collect().account.passes:
            way = "compiled" if compiled else "interpreted"
            lines.append(f"pass {what}: {way}, {1000 * seconds:.3f} ms")
        lines += table.compiler.account()
    return "\n".join(lines)


def _touched(table: Table, least: int, sectors: int, lines: int) -> str:
    """What is moved for a column's rows, by the tier that moves it."""
    by_sector, by_line = sectors * SECTOR_BYTES, lines * table.line_bytes
    return (
        f"  {least} bytes of values, in {sectors} sectors {by_sector} ({by_sector / max(least, 1):.2f}x), in "
        f"{lines} lines of {table.line_bytes} {by_line} ({by_line / max(least, 1):.2f}x)"
    )


def _whole(table: Table, name: str) -> str:
    known = "yes" if table.has_zone_map(name) else "no"
    nbytes = -(-table.rows * table.place_of(name).bits // 8)
    return f"  {name}  {_stored(table, name)}  read whole  {nbytes} bytes  zone map: {known}"


def _stored(table: Table, name: str) -> str:
    place = table.place_of(name)
    packed = f", packed to {place.bits} bits" if place.encoding == "packed" else ""
    return f"{place.type}{packed}{', nulls' if place.nullable else ''}"

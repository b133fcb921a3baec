"""Keys of joins: both sides as values of one type, which are equal where SQL has them equal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.columns.graph import Typed
from penstock.columns.results import ResultColumn
from penstock.columns.types import FLOAT, INTEGER, PER_SECOND, ColumnType

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph

DAY = 86400


def key_type(mine: ColumnType, other: ColumnType) -> ColumnType | None:
    """What keys are compared as; None: they do not go together.

    Args:
        mine: Of the rows that are joined.
        other: Of the other table's.
    """
    if mine.is_numeric and other.is_numeric:
        return FLOAT if "float" in (mine.kind, other.kind) else mine
    if {mine.kind, other.kind} <= {"date", "timestamp"} and (mine.zone is None) == (other.zone is None):
        return mine
    return mine if mine.kind == other.kind and mine.kind in ("string", "boolean") else None


def own_key(graph: Graph, key: Typed, kind: ColumnType) -> Typed:
    """A row's own key; of floating-point numbers an integer that is the same where they are equal."""
    if not kind.is_number:
        return key
    return Typed(graph.add("sortable", graph.as_float(key)), INTEGER)


def is_stored_so(mine: ColumnType, other: ColumnType) -> bool:
    """Whether the other table's keys are compared as they lie."""
    parts = [(kind.kind, kind.scale, kind.unit if kind.kind == "timestamp" else "") for kind in (mine, other)]
    return parts[0] == parts[1] and not mine.is_number


def other_key(column: ResultColumn, kind: ColumnType) -> ResultColumn:
    """The other table's keys; what no value of the type is equal to becomes a null."""
    if kind.kind == "string" or is_stored_so(kind, column.type):
        return column
    whole = np.where(column.valid, column.bits, 0).view(np.int64)
    if kind.is_number:
        unit = 10.0**column.type.scale
        numbers = column.bits.view(np.float64) if column.type.is_number else whole / unit
        bits = np.ascontiguousarray(numbers, np.float64).view(np.uint64)
        keys = replace(column, type=FLOAT, bits=bits).order_keys(False)
        return replace(column, type=INTEGER, bits=keys.view(np.uint64))
    mine, other = _per_unit(kind), _per_unit(column.type)
    if mine >= other:
        times = mine // other
        fits = np.abs(whole.astype(np.float64)) * times < 2.0**63
        made = np.where(fits, whole, 0) * np.int64(times)
    else:
        made, rest = np.divmod(whole, np.int64(other // mine))
        fits = rest == 0
    return replace(column, type=kind, bits=made.view(np.uint64), valid=column.valid & fits)


def _per_unit(kind: ColumnType) -> int:
    """How many of what is stored are one, or a day."""
    if kind.kind == "timestamp":
        return DAY * PER_SECOND[kind.unit]
    return int(10**kind.scale)

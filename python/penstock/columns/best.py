"""The rows with the largest or smallest values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from penstock.columns.expressions import Expr, Stored
from penstock.columns.results import Result, ResultColumn
from penstock.columns.selecting import selected
from penstock.columns.shown import shown
from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from penstock.columns.query import Query


def best_rows(query: Query) -> Result:
    """The rows of top_k: those that are no worse than the last of them are read whole."""
    assert query.best is not None
    k, by, reverse = query.best
    if query.graph().lower(by).type.kind == "string":
        raise TypeError(f"top_k by {shown(by)}: texts have no order here: choose a number or a date")
    plain = replace(query, best=None)
    keys = selected(plain, [by]).columns
    order = _ordered(keys[0], reverse)
    outputs = [*query.results(), by]
    if k < len(order) and order.size:
        last = keys[0].bits[order[k - 1 : k]]
        edge = keys[0].valid[order[k - 1 : k]]
        if k and edge[0]:
            number = (
                last.view(np.float64)[0].item() if keys[0].type.is_number else last.view(np.int64)[0].item()
            )
            edge_or_better = _beyond(by, keys[0].type, number, reverse)
            both = edge_or_better if query.condition is None else query.condition & edge_or_better
            plain = replace(plain, condition=both)
    found = selected(plain, outputs)
    chosen = _ordered(found.columns[-1], reverse)[:k]
    for column in found.columns:
        column.bits, column.valid = column.bits[chosen], column.valid[chosen]
    found.columns.pop()
    return found


def _ordered(column: ResultColumn, reverse: bool) -> npt.NDArray[np.int64]:
    """Positions by value, largest first, or smallest; nulls last; equal ones in their order."""
    order: npt.NDArray[np.int64] = np.lexsort((column.order_keys(not reverse), ~column.valid))
    return order


def _beyond(by: Expr, kind: ColumnType, edge: int | float, reverse: bool) -> Expr:
    """Rows that are as good as the k-th."""
    value = Stored(edge, kind)
    return by <= value if reverse else by >= value

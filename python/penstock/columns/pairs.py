"""Pairs of rows of two results that have equal keys: joins in which a row meets any number of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from penstock.arrays.whole import free_memory
from penstock.columns.results import Account, Result, ResultColumn
from penstock.columns.statement_rows import row_numbers, stacked

Sides = Literal["inner", "left", "right", "full"]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Paired:
    """What two results are joined by.

    Their first `keys` columns are equal, and `rest` says which of the pairs stay, if it is there: it is given
    the pairs' other columns. Rows that are in no pair, of a side that the join keeps, have nulls beside them.
    """

    keys: int
    how: Sides
    rest: Callable[[Result], npt.NDArray[np.bool_]] | None = None

    def of(self, first: Result, second: Result) -> Result:
        """The pairs, in the order of the first one's rows, and then what is in none.

        Raises:
            ValueError: Keys of types that do not go together, or more pairs than memory has room for.
        """
        mine, others = _pairs(first, second, self.keys)
        columns = [result.columns[self.keys :] for result in (first, second)]
        if self.rest is not None:
            stay = self.rest(Result(_beside(columns, mine, others), first.account))
            mine, others = mine[stay], others[stay]
        alone = [_without(rows, result.row_count) for rows, result in ((mine, first), (others, second))]
        if self.how in ("left", "full"):
            mine, others = np.append(mine, alone[0]), np.append(others, np.full(len(alone[0]), -1))
        if self.how in ("right", "full"):
            mine, others = np.append(mine, np.full(len(alone[1]), -1)), np.append(others, alone[1])
        return Result(_beside(columns, mine, others), first.account)


def _pairs(first: Result, second: Result, keys: int) -> tuple[Rows, Rows]:
    """Numbers of rows with equal keys; a null is equal to none."""
    sides = [Result(result.columns[:keys], Account()) for result in (first, second)]
    both = stacked(sides[0], sides[1], "a join")
    found, split = row_numbers(both), first.row_count
    valid = np.logical_and.reduce([column.valid for column in both.columns])
    there = np.flatnonzero(valid[split:])
    there = there[np.argsort(found[split:][there], kind="stable")]
    in_order = found[split:][there]
    least, end = (np.searchsorted(in_order, found[:split], side) for side in ("left", "right"))
    counts = np.where(valid[:split], end - least, 0)
    total = int(counts.sum())
    _check_room(total, len(first.columns) + len(second.columns) - 2 * keys)
    mine = np.repeat(np.arange(split), counts)
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return mine, there[np.repeat(least, counts) + within]


def _check_room(rows: int, columns: int) -> None:
    most = free_memory() // (2 * (9 * columns + 32))
    if rows > most:
        raise ValueError(
            f"sql: a join has {rows} rows, and memory has room for {most}: filter its tables before, or "
            "join groups of their rows"
        )


def _without(rows: Rows, count: int) -> Rows:
    marks = np.ones(count, bool)
    marks[rows] = False
    return np.flatnonzero(marks)


def _beside(columns: Sequence[Sequence[ResultColumn]], mine: Rows, others: Rows) -> list[ResultColumn]:
    """Columns of both, row by row; -1: nulls."""
    found = []
    for of, rows in zip(columns, (mine, others), strict=True):
        there = rows >= 0
        for column in of:
            bits = column.bits[rows] if len(column.bits) else np.zeros(len(rows), np.uint64)
            valid = column.valid[rows] & there if len(column.valid) else there & False
            found.append(ResultColumn(column.name, column.type, bits, valid))
    return found

"""Rows of results one below the other, each once, and those that two have or have not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from penstock.columns.results import Result, ResultColumn
from penstock.columns.types import FLOAT, INTEGER, PER_SECOND, ColumnType


def stacked(first: Result, second: Result, what: str) -> Result:
    """The rows of both, with the names of the first.

    Raises:
        ValueError: They have different numbers of columns, or types that do not go together.
    """
    if len(first.columns) != len(second.columns):
        raise ValueError(
            f"sql: {what} of {len(first.columns)} and {len(second.columns)} columns: select as many in both"
        )
    columns = []
    for a, b in zip(first.columns, second.columns, strict=True):
        kind = _common(a, b, what)
        below = [_as(column, kind) for column in (a, b)]
        words = None
        if kind.kind == "string":
            code_of = {word: code for code, word in enumerate(dict.fromkeys(_words(a) + _words(b)))}
            words = tuple(code_of)
            below[1] = _recoded(below[1], [code_of[word] for word in _words(b)])
        bits = np.concatenate(below)
        columns.append(
            ResultColumn(a.name, replace(kind, words=words), bits, np.concatenate([a.valid, b.valid]))
        )
    return Result(columns, first.account)


def without_repeats(result: Result) -> Result:
    """Each row once, the first of those that are equal."""
    return result.rows_at(first_of_each(result))


def first_of_each(result: Result) -> npt.NDArray[np.int64]:
    """Numbers of the rows that none before is equal to."""
    _, first = np.unique(row_numbers(result), return_index=True)
    return np.sort(first)


def combined(first: Result, second: Result, what: str, every: bool) -> Result:
    """UNION, EXCEPT and INTERSECT; `every`: with ALL, rows as often as they are there."""
    both = stacked(first, second, what)
    if what == "UNION":
        return both if every else without_repeats(both)
    numbers = row_numbers(both)
    mine, theirs = numbers[: first.row_count], numbers[first.row_count :]
    before = _before(mine)
    here = np.flatnonzero(before == 0) if not every else np.arange(len(mine))
    counts = np.bincount(theirs, minlength=int(numbers.max(initial=0)) + 1)
    is_there = before[here] < counts[mine[here]]
    return both.rows_at(here[~is_there if what == "EXCEPT" else is_there])


def _before(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many of each number stand before it."""
    order = np.argsort(numbers, kind="stable")
    in_order = numbers[order]
    before = np.empty(len(numbers), np.int64)
    before[order] = np.arange(len(numbers)) - np.searchsorted(in_order, in_order)
    return before


def row_numbers(result: Result) -> npt.NDArray[np.int64]:
    """Of each row, alike where rows are; nulls are equal, and so are zeros and what is no number."""
    whole = np.zeros(result.row_count, np.int64)
    for column in result.columns:
        keys = column.order_keys(False)
        for values in (keys, column.valid):
            _, found = np.unique(values, return_inverse=True)
            _, whole = np.unique(whole * (int(found.max(initial=0)) + 1) + found, return_inverse=True)
    return whole


def _common(a: ResultColumn, b: ResultColumn, what: str) -> ColumnType:
    """The type that holds both; a column without values has any."""
    x, y = a.type, b.type
    for mine, other in ((b, a), (a, b)):
        if not mine.valid.any() and mine.type.kind != other.type.kind:
            return other.type
    kinds = {x.kind, y.kind}
    if x.without_words() == y.without_words():
        return x
    if kinds == {"integer"}:
        return INTEGER
    if kinds <= {"integer", "decimal", "float"}:
        scale = max(x.scale, y.scale)
        return FLOAT if "float" in kinds else ColumnType("decimal", scale=scale)
    if kinds == {"timestamp"} and (x.zone is None) == (y.zone is None):
        return max(x, y, key=lambda kind: PER_SECOND[kind.unit])
    if kinds == {"date", "timestamp"}:
        return x if x.kind == "timestamp" else y
    raise ValueError(f"sql: {what}: column {a.name} is {x} and {y}: cast one to the other's type")


def _as(column: ResultColumn, kind: ColumnType) -> npt.NDArray[np.uint64]:
    """A column's 64 bits as another type has them."""
    of, whole = column.type, np.where(column.valid, column.bits, 0).view(np.int64)
    if not column.valid.any():
        return whole.view(np.uint64)
    if kind.is_number:
        numbers = column.bits.view(np.float64) if of.is_number else whole / 10.0**of.scale
        return np.ascontiguousarray(numbers, np.float64).view(np.uint64)
    times = 10 ** (kind.scale - of.scale)
    if kind.kind == "timestamp":
        days = 86400 if of.kind == "date" else 1
        times = days * PER_SECOND[kind.unit] // (1 if of.kind == "date" else PER_SECOND[of.unit])
    if times > 1 and int(np.abs(whole).max()) > ((1 << 63) - 1) // times:
        raise OverflowError(
            f"sql: column {column.name}: as {kind} it is beyond 64 bits: cast to float before"
        )
    made: npt.NDArray[np.int64] = whole * np.int64(times)
    return made.view(np.uint64)


def _words(column: ResultColumn) -> tuple[str, ...]:
    return column.type.words or ()


def _recoded(bits: npt.NDArray[np.uint64], codes: Sequence[int]) -> npt.NDArray[np.uint64]:
    new: npt.NDArray[np.uint64] = np.asarray(codes or [0], np.uint64)
    return new[np.minimum(bits.view(np.int64), len(new) - 1)]

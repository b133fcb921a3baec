"""Window functions: what is computed of each row's partition, peers and frame, over a result in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.columns.results import Account, Result, ResultColumn
from penstock.columns.statement_rows import row_numbers, stacked
from penstock.columns.types import FLOAT, INTEGER

Rows = npt.NDArray[np.int64]
HALF = 32
RANKS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
AGGREGATES = ("sum", "avg", "min", "max", "count")


@dataclass(frozen=True)
class Frame:
    """Rows from `first` to `last`, counted from a row, negative: before; None: to the partition's end.

    By peers, a bound that is 0 is the first or the last that orders as the row does.
    """

    first: int | None = None
    last: int | None = 0
    by_peers: bool = True


@dataclass(frozen=True)
class WindowFunction:
    """One OVER. Columns are named as the result has them."""

    function: str
    args: tuple[str, ...]
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...]
    """Columns, whether the greatest comes first, and whether nulls do."""
    frame: Frame
    number: int = 1
    """How far LAG and LEAD look, which row NTH_VALUE takes, into how many parts NTILE divides."""

    def of(self, result: Result) -> ResultColumn:
        """Its value for each row.

        Raises:
            TypeError: A sum of what is no number.
            OverflowError: A sum beyond 64 bits.
        """
        places = _Places.of(self, result)
        args = [_taken(result.column(name), places.rows) for name in self.args]
        if self.function in RANKS:
            column = _ranked(self, places)
        elif self.function in ("lag", "lead"):
            column = _moved(self, places, args)
        elif self.function in AGGREGATES:
            column = _aggregate(self, places, args)
        else:
            column = _nth(self, places, args[0])
        back = np.empty_like(places.rows)
        back[places.rows] = np.arange(len(back))
        return _taken(column, back)


@dataclass
class _Places:
    """Of rows in order: which they were, and where partitions, peers and frames begin and end."""

    rows: Rows
    begin: Rows
    end: Rows
    peer_begin: Rows
    peer_end: Rows
    first: Rows
    last: Rows
    """Behind the frame."""

    @staticmethod
    def of(window: WindowFunction, result: Result) -> _Places:
        count = result.row_count
        parts = np.zeros(count, np.int64)
        if window.partition:
            parts = row_numbers(Result([result.column(name) for name in window.partition], result.account))
        keys: list[npt.NDArray[Any]] = []
        for name, descending, nulls_first in reversed(window.order):
            column = result.column(name)
            keys += [column.order_keys(descending), column.valid if nulls_first else ~column.valid]
        rows = np.lexsort([*keys, parts]) if count else np.zeros(0, np.int64)
        starts = _changes([parts[rows]])
        peers = _changes([parts[rows], *(key[rows] for key in keys)])
        begin, end = _bounds(starts)
        peer_begin, peer_end = _bounds(peers)
        at, frame = np.arange(count), window.frame
        if frame.by_peers:  # without an order all are peers
            first = begin if frame.first is None else peer_begin
            last = end if frame.last is None else peer_end
        else:
            first = begin if frame.first is None else np.clip(at + frame.first, begin, end)
            last = end if frame.last is None else np.clip(at + frame.last + 1, begin, end)
        return _Places(rows, begin, end, peer_begin, peer_end, first, np.maximum(first, last))


def _changes(keys: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Where a row differs from the one before."""
    found = np.zeros(len(keys[0]), bool)
    found[:1] = True
    for key in keys:
        found[1:] |= key[1:] != key[:-1]
    return found


def _bounds(starts: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    at = np.flatnonzero(starts)
    number = np.cumsum(starts) - 1
    return at[number], np.append(at[1:], len(starts))[number]


def _taken(column: ResultColumn, rows: Rows) -> ResultColumn:
    return replace(column, bits=column.bits[rows], valid=column.valid[rows])


def _integers(values: Rows) -> ResultColumn:
    return ResultColumn("", INTEGER, values.astype(np.int64).view(np.uint64), np.ones(len(values), bool))


def _floats(values: npt.NDArray[np.float64], valid: npt.NDArray[np.bool_] | None = None) -> ResultColumn:
    there = np.ones(len(values), bool) if valid is None else valid
    return ResultColumn("", FLOAT, np.ascontiguousarray(values, np.float64).view(np.uint64), there)


def _ranked(window: WindowFunction, places: _Places) -> ResultColumn:
    at, count = np.arange(len(places.rows)), places.end - places.begin
    rank = places.peer_begin - places.begin
    match window.function:
        case "row_number":
            return _integers(at - places.begin + 1)
        case "rank":
            return _integers(rank + 1)
        case "dense_rank":
            number = np.cumsum(places.peer_begin == at)
            return _integers(number - number[places.begin] + 1 if len(at) else number)
        case "percent_rank":
            return _floats(rank / np.maximum(count - 1, 1))
        case "cume_dist":
            return _floats((places.peer_end - places.begin) / np.maximum(count, 1))
    small, more = count // window.number, count % window.number
    within, large = at - places.begin, more * (small + 1)
    rest = more + (within - large) // np.maximum(small, 1)
    return _integers(np.where(within < large, within // (small + 1), rest) + 1)


def _at(column: ResultColumn, rows: Rows, there: npt.NDArray[np.bool_]) -> ResultColumn:
    """Values of rows; null where there is no such row."""
    if not len(column.bits):
        return column
    found = _taken(column, np.where(there, rows, 0))
    return replace(found, valid=found.valid & there)


def _moved(window: WindowFunction, places: _Places, args: Sequence[ResultColumn]) -> ResultColumn:
    step = window.number if window.function == "lead" else -window.number
    rows = np.arange(len(places.rows)) + step
    there = (rows >= places.begin) & (rows < places.end)
    found = _at(args[0], rows, there)
    if len(args) == 1:
        return found
    values, others = (Result([each], Account()) for each in (found, args[1]))
    (both,) = stacked(values, others, window.function).columns
    here = np.arange(len(rows)) + np.where(there, 0, len(rows))
    return _taken(both, here)


def _nth(window: WindowFunction, places: _Places, of: ResultColumn) -> ResultColumn:
    rows = places.last - 1 if window.function == "last_value" else places.first + window.number - 1
    return _at(of, rows, (rows >= places.first) & (rows < places.last))


def _aggregate(window: WindowFunction, places: _Places, args: Sequence[ResultColumn]) -> ResultColumn:
    if not args:
        return _integers(places.last - places.first)
    (of,) = args
    counts = _exact(of.valid.astype(np.int64), places)
    if window.function == "count":
        return _integers(counts)
    some = counts > 0
    if window.function in ("min", "max"):
        return _extreme(of, places, window.function == "min", some)
    if not of.type.is_numeric:
        raise TypeError(f"{window.function} over {of.name}: there is none of values of type {of.type}")
    is_mean, unit = window.function == "avg", 10**of.type.scale
    if of.type.is_number:
        numbers = np.where(of.valid, of.bits.view(np.float64), 0.0)
        with np.errstate(all="ignore"):
            sums = _reduced(numbers, places, np.add, 0.0)
        return _floats(sums / np.maximum(counts, 1) if is_mean else sums, some)
    whole = np.where(of.valid, of.bits, 0).view(np.int64)
    low = _exact(whole & ((1 << HALF) - 1), places)
    high = _exact(whole >> HALF, places) + (low >> HALF)
    if is_mean:
        exact = high.astype(np.float64) * 2.0**HALF + (low & ((1 << HALF) - 1))
        return _floats(exact / (np.maximum(counts, 1) * float(unit)), some)
    if (high >> HALF - 1 != high >> 63).any():
        raise OverflowError("sum over a window: it is beyond 64 bits: cast to float before")
    sums = (high << HALF) + (low & ((1 << HALF) - 1))
    kind = of.type if of.type.kind == "decimal" else INTEGER
    return ResultColumn("", kind, sums.view(np.uint64), some)


def _exact(values: Rows, places: _Places) -> Rows:
    """Sums of frames, of integers whose sums of all fit."""
    before = np.concatenate([[0], np.cumsum(values)])
    sums: Rows = before[places.last] - before[places.first]
    return sums


def _extreme(of: ResultColumn, places: _Places, least: bool, some: npt.NDArray[np.bool_]) -> ResultColumn:
    """Rows by the rank of their values; nulls behind all."""
    there = np.flatnonzero(of.valid)
    _, rows, numbers = np.unique(of.order_keys(not least)[there], return_index=True, return_inverse=True)
    rows, behind = there[rows], len(rows)
    ranks = np.full(len(of.valid), behind)
    ranks[there] = numbers
    found = _reduced(ranks, places, np.minimum, behind)
    return _at(of, rows[np.minimum(found, behind - 1)] if behind else found, some)


def _reduced(values: npt.NDArray[Any], places: _Places, reduce: Any, nothing: Any) -> npt.NDArray[Any]:
    """Of each frame; one to an end of its partition by what is accumulated from there."""
    made = np.full(len(values), nothing, values.dtype)
    some = places.last > places.first
    if not some.any():
        return made
    from_begin, to_end = (places.first == places.begin)[some].all(), (places.last == places.end)[some].all()
    if not (from_begin or to_end) or (from_begin and to_end):
        return _of_frames(values, places, reduce, made, some)
    whole = np.empty_like(values)
    for first in np.unique(places.begin):
        end = places.end[first]
        part = values[first:end]
        whole[first:end] = reduce.accumulate(part) if from_begin else reduce.accumulate(part[::-1])[::-1]
    made[some] = whole[(places.last - 1 if from_begin else places.first)[some]]
    return made


def _of_frames(
    values: npt.NDArray[Any],
    places: _Places,
    reduce: Any,
    made: npt.NDArray[Any],
    some: npt.NDArray[np.bool_],
) -> npt.NDArray[Any]:
    """Each frame by itself; of frames that are alike, one behind the other, once."""
    first, last = places.first[some], places.last[some]
    new = _changes([first, last])
    bounds = np.stack([first[new], last[new]], axis=1).ravel()
    padded = np.append(values, values[-1:])  # a frame may end behind the last row
    found = reduce.reduceat(padded, bounds)[::2]
    made[some] = found[np.cumsum(new) - 1]
    return made

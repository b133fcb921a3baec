"""Aggregates of different values: groups by the keys and the value, and of these groups by the keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from penstock.columns.expressions import Aggregate
from penstock.columns.results import ResultColumn
from penstock.columns.shown import shown
from penstock.columns.types import FLOAT, INTEGER

if TYPE_CHECKING:
    from penstock.columns.query import Query

HALF = 32


def distinct(query: Query, aggregate: Aggregate) -> ResultColumn:
    """How many values an expression has in each group, their sum or their mean.

    Raises:
        TypeError: A sum of what is no number.
        OverflowError: A sum beyond 64 bits.
    """
    pairs = query.once(("pairs", id(aggregate)), lambda: _pairs(query, aggregate))
    *outer, of = pairs.grouped().columns
    if not len(of.bits):
        at = np.zeros(0 if outer else 1, np.int64)
    else:
        begins = np.zeros(len(of.bits), bool)
        begins[0] = True
        for column in outer:
            for values in (np.where(column.valid, column.bits, 0), column.valid):
                begins[1:] |= values[1:] != values[:-1]
        at = np.flatnonzero(begins)
    counts = _summed(of.valid.astype(np.int64), at)
    if aggregate.kind == "nunique":
        return ResultColumn("", INTEGER, counts.view(np.uint64), np.ones(len(at), bool))
    return _sums(of, at, counts, aggregate)


def _pairs(query: Query, aggregate: Aggregate) -> Query:
    assert aggregate.of is not None
    names = [key.alias(f"k{k}") for k, key in enumerate(query.keys)]
    keys = (*names, aggregate.of.alias("of"))
    return replace(query, keys=keys, aggregates=(), limit=None, having=None)


def _summed(values: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of the values from each place to the next; of none, which is the only group then, zero."""
    summed: npt.NDArray[np.int64] = np.add.reduceat(values, at) if len(values) else np.zeros_like(at)
    return summed


def _sums(
    of: ResultColumn, at: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], aggregate: Aggregate
) -> ResultColumn:
    if not (of.type.is_numeric or of.type.kind == "boolean"):
        raise TypeError(f"{shown(aggregate)}: there is no sum of values of type {of.type.kind}")
    there, is_mean = counts > 0, aggregate.kind == "distinct_mean"
    if of.type.is_number:
        numbers = np.where(of.valid, of.bits.view(np.float64), 0.0)
        with np.errstate(all="ignore"):
            floats = np.add.reduceat(numbers, at) if len(numbers) else np.zeros(len(at))
            made = floats / np.maximum(counts, 1) if is_mean else floats
        return ResultColumn("", FLOAT, made.view(np.uint64), there)
    whole = np.where(of.valid, of.bits, 0).view(np.int64)
    high, low = _summed(whole >> HALF, at), _summed(whole & ((1 << HALF) - 1), at)
    sums = [(int(a) << HALF) + int(b) for a, b in zip(high, low, strict=True)]
    if is_mean:
        unit = 10**of.type.scale
        means = [s / (max(int(n), 1) * unit) for s, n in zip(sums, counts, strict=True)]
        return ResultColumn("", FLOAT, np.array(means, np.float64).view(np.uint64), there)
    if any(not -(1 << 63) <= each < 1 << 63 for each in sums):
        raise OverflowError(f"{shown(aggregate)}: it is beyond 64 bits: cast to float before")
    kind = of.type if of.type.kind == "decimal" else INTEGER
    return ResultColumn("", kind, np.array(sums, np.int64).view(np.uint64), there)

"""Variances: sums of distances from each group's mean, which a pass before finds, and of their squares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.columns.expressions import Aggregate, Column, Expr, Value
from penstock.columns.joining import Join
from penstock.columns.key_packing import MOST_COMBINATIONS, combinations
from penstock.columns.other_tables import ResultColumns
from penstock.columns.results import Result, ResultColumn
from penstock.columns.types import FLOAT

if TYPE_CHECKING:
    from penstock.columns.query import Query

MEAN = "mean of group"


def variance(query: Query, aggregate: Aggregate) -> ResultColumn:
    """Of an expression in each group, or the deviation.

    What is summed up is near zero, so that nothing is lost to values that are far from zero (Chan, Golub and
    LeVeque, American Statistician 37, 1983).
    """
    assert aggregate.of is not None
    of = aggregate.of.cast(float)
    plain = replace(query, limit=None, having=None)
    means = replace(plain, aggregates=(of.mean().alias(MEAN),)).grouped()
    joined, mean = _with_means(plain, of, means)
    far = of - mean
    sums = (far.sum().alias("sum"), (far * far).sum().alias("squares"), far.count().alias("count"))
    first, second, count = replace(joined, aggregates=sums).grouped().columns[len(query.keys) :]
    values = [column.bits.view(np.float64) for column in (first, second)]
    counted = count.bits.view(np.int64)
    degrees = counted - (not aggregate.of_all)
    valid = degrees > 0
    rest = values[1] - values[0] * values[0] / np.maximum(counted, 1)
    made = np.maximum(rest, 0.0) / np.maximum(degrees, 1)
    if aggregate.kind == "deviation":
        made = np.sqrt(made)
    return ResultColumn("", FLOAT, np.ascontiguousarray(made).view(np.uint64), valid)


def _with_means(query: Query, of: Expr, means: Result) -> tuple[Query, Expr]:
    """The query with the mean of each row's group beside it; of groups that no key finds that of all rows."""
    *keys, mean = means.columns
    if not keys:
        return query, _number(mean)
    whole = replace(query, keys=(), aggregates=(of.mean().alias(MEAN),)).grouped().columns[0]
    if any(key.type.is_number for key in keys) or combinations(keys) > MOST_COMBINATIONS:
        return query, _number(whole)
    names = [f"key {k} of group" for k in range(len(keys))]
    columns = [replace(key, name=name) for key, name in zip(keys, names, strict=True)]
    join = Join(query.keys, ResultColumns([*columns, mean]), tuple(names), "left", {MEAN: MEAN})
    return replace(query, joins=(*query.joins, join)), Column(MEAN).fill_null(_number(whole))


def _number(mean: ResultColumn) -> Expr:
    return Value(mean.values()[0].item() if mean.valid[0] else 0.0)

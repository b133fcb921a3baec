"""Queries of all kinds, and the sources that their passes are compiled from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.columns import Table, col, count, open_table, when

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 5000


class Recorder:
    """A compiler that has no images, and keeps the sources that it is shown."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def compiled(self, source: str, resident: bool) -> None:
        raise AssertionError("a CPU asks for no image")

    def interpreted(self, source: str, resident: bool, seconds: float) -> None:
        assert ("is_resident = true" in source) == resident
        assert seconds >= 0
        self.sources.append(source)

    def refused(self, source: str, why: str) -> None:
        raise AssertionError(why)


def opened(**options: Any) -> Table:
    """Numbers of several widths, some of them packed, with nulls, truth values, texts and days."""
    import pyarrow as pa

    draw = np.random.default_rng(3)
    some = draw.random(ROWS) < 0.2
    columns = {
        "i": pa.array(draw.integers(-50, 50, ROWS), mask=some),
        "small": pa.array(draw.integers(0, 9, ROWS).astype(np.int8)),
        "f": pa.array(draw.normal(0, 50, ROWS)),
        "single": pa.array(draw.normal(0, 50, ROWS).astype(np.float32)),
        "cents": pa.array(np.round(draw.gamma(1.0, 30.0, ROWS), 2)),
        "flag": pa.array(draw.random(ROWS) < 0.5, mask=some[::-1]),
        "text": pa.array(draw.choice(["north", "south", "east"], ROWS)),
        "day": pa.array(np.datetime64("2019-12-25") + draw.integers(0, 800, ROWS).astype("timedelta64[D]")),
        "key": pa.array(draw.integers(-(2**40), 2**40, ROWS) // 2**30),
    }
    return open_table(pa.table(columns), **options)


def _weights(table: Table) -> Table:
    executor: Any = table.executor
    return Table.opened({"small": np.arange(0, 9, 2), "weight": np.arange(5) * 10}, executor)


def _two_conditions(t: Table, k: Any) -> Any:
    return t.filter(col("f") < k, col("i") > 0).select("cents", v=col("i") * 2 + k)


def _ranges_and_a_rest(t: Table, k: Any) -> Any:
    met = t.filter(col("cents") >= k, (col("f") + col("single")) < 5.5)
    return met.agg(s=col("cents").sum(), n=count())


def _several_ranges(t: Table, k: Any) -> Any:
    met = t.filter(col("cents") >= k, col("f") > -20.0, col("single") < 30.0, col("key") > 0)
    return met.agg(s=col("small").sum(), n=count())


def _one_sum(t: Table, k: Any) -> Any:
    return t.filter(col("i") > k).agg(s=(col("f") * col("cents")).sum())


def _integers(t: Table, k: Any) -> Any:
    met = t.filter((col("i") * 3 - col("key")) % 7 != k)
    return met.agg(a=(col("i") * col("small")).sum(), b=(col("i") // 3).min(), c=abs(col("key")).max())


def _nulls(t: Table, k: Any) -> Any:
    either = when(col("flag")).then(col("f")).otherwise(col("single"))
    met = t.filter(col("flag") | (col("i") < k))
    return met.select(a=col("i").fill_null(-1), b=either, c=col("i").is_null())


def _days_and_texts(t: Table, k: Any) -> Any:
    met = t.filter(col("day").dt.month() <= k, col("text").is_in(["east", "north"]))
    return met.select("text", y=col("day").dt.year(), w=col("day").dt.weekday())


def _by_a_number(t: Table, k: Any) -> Any:
    return t.filter(col("f") < k).group_by("text").agg(s=col("cents").sum(), n=count())


def _of_a_warp(t: Table, k: Any) -> Any:
    groups = t.filter(col("f") < k).group_by("small", "text")
    return groups.agg(a=col("cents").sum(), b=col("i").sum(), c=col("f").max(), n=count())


def _by_a_hash(t: Table, k: Any) -> Any:
    return t.filter(col("f") < k).group_by("key", "i").agg(s=col("i").sum(), m=col("f").min())


def _a_join(t: Table, k: Any) -> Any:
    both = t.join(_weights(t), on="small").filter(col("f") < k)
    return both.agg(s=(col("weight") * col("i")).sum())


SOURCES: dict[str, Callable[[Table, Any], Any]] = {
    "two conditions": _two_conditions,
    "ranges and a rest": _ranges_and_a_rest,
    "several ranges": _several_ranges,
    "one sum": _one_sum,
    "integers": _integers,
    "nulls": _nulls,
    "days and texts": _days_and_texts,
    "groups by a number": _by_a_number,
    "groups of a warp": _of_a_warp,
    "groups by a hash": _by_a_hash,
    "a join": _a_join,
}


def recorded(name: str, limit: Any, placement: str = "host") -> list[tuple[str, str]]:
    """The bodies and sources of a query's passes, as from its second run on."""
    with opened(executor="cpu", placement=placement) as table:
        recorder = Recorder()
        table.native.compile_with(recorder, 0.0)
        SOURCES[name](table, limit).collect()
        found = []
        for text in recorder.sources:
            body = text.partition("__grid_constant__ ")[2].split()[0]
            found.append((body, text))
        return found

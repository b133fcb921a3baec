"""New York's taxi trips: a table with the names of the commission's columns, drawn, and six queries.

"What is the average $/mile the driver makes for trips of at least 30 miles?" in steps (BaM, ASPLOS 2023,
section 5.3; Mailthody's dissertation, section 3.3). Q0 reads the distance alone; Q1 divides the total amount
by it; Q2 to Q5 subtract, each one more: surcharges, hail fees, tolls, taxes.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.columns.expressions import Expr, col, count
from penstock.columns.folders import FolderWriter
from penstock.columns.packing import ColumnWriter
from penstock.columns.query import Query
from penstock.columns.types import ColumnType

DISTANCE = "trip_distance"
METRICS = ("total_amount", "improvement_surcharge", "ehail_fee", "tolls_amount", "mta_tax")
"""Of Q1 to Q5."""
QUERIES = ("Q0", "Q1", "Q2", "Q3", "Q4", "Q5")

_MONEY = ColumnType("float")
_TIME = ColumnType("timestamp", unit="us")
_SMALL = ColumnType("integer", 32)
_FLAG = ColumnType("string")

COLUMNS: dict[str, ColumnType] = {
    "VendorID": _SMALL,
    "tpep_pickup_datetime": _TIME,
    "tpep_dropoff_datetime": _TIME,
    "passenger_count": _SMALL,
    "trip_distance": _MONEY,
    "RatecodeID": _SMALL,
    "store_and_fwd_flag": _FLAG,
    "PULocationID": _SMALL,
    "DOLocationID": _SMALL,
    "payment_type": _SMALL,
    "fare_amount": _MONEY,
    "extra": _MONEY,
    "mta_tax": _MONEY,
    "tip_amount": _MONEY,
    "tolls_amount": _MONEY,
    "improvement_surcharge": _MONEY,
    "total_amount": _MONEY,
    "congestion_surcharge": _MONEY,
    "airport_fee": _MONEY,
    "cbd_congestion_fee": _MONEY,
    "ehail_fee": _MONEY,
    "trip_type": _SMALL,
    "lpep_pickup_datetime": _TIME,
    "lpep_dropoff_datetime": _TIME,
    "hvfhs_license_num": _FLAG,
    "dispatching_base_num": _FLAG,
    "originating_base_num": _FLAG,
    "request_datetime": _TIME,
    "on_scene_datetime": _TIME,
    "trip_miles": _MONEY,
    "trip_time": _SMALL,
    "base_passenger_fare": _MONEY,
    "tolls": _MONEY,
    "bcf": _MONEY,
    "sales_tax": _MONEY,
    "tips": _MONEY,
    "driver_pay": _MONEY,
    "shared_request_flag": _FLAG,
    "shared_match_flag": _FLAG,
    "access_a_ride_flag": _FLAG,
    "wav_request_flag": _FLAG,
    "wav_match_flag": _FLAG,
    "SR_Flag": _SMALL,
    "Affiliated_base_number": _FLAG,
    "pickup_longitude": _MONEY,
    "pickup_latitude": _MONEY,
    "dropoff_longitude": _MONEY,
    "dropoff_latitude": _MONEY,
    "cab_type": _FLAG,
}
assert len(COLUMNS) == 49
COLUMNS_OF = {
    "all": tuple(COLUMNS),
    "needed": tuple(name for name in COLUMNS if name in (DISTANCE, *METRICS)),
}

_WORDS = {
    "store_and_fwd_flag": ["N", "Y"],
    "hvfhs_license_num": ["HV0003", "HV0005", "HV0002", "HV0004"],
    "cab_type": ["yellow", "green", "fhvhv", "fhv"],
}
_START = 1230768000_000_000  # 2009-01-01, us
_END = 1640995200_000_000  # 2022-01-01, us
_ZONES = 265
_CHUNK = 1 << 20


def query(trips: Any, number: int, miles: float) -> Query:
    """Q0 to Q5 of a table: the average, and the trips that count.

    What is subtracted and the table does not have is taken for 0: yellow cabs have no ehail_fee.
    """
    if number not in range(len(QUERIES)):
        raise ValueError(f"query {number}: choose 0 to {len(QUERIES) - 1}")
    distance = col(DISTANCE)
    if number == 0:
        value: Expr = distance.mean()
    else:
        made = col(METRICS[0]).sum()
        for name in METRICS[1:number]:
            if name in trips.columns:
                made = made - col(name).sum()
        value = made / distance.sum()
    found: Query = trips.filter(distance >= miles).agg(value.alias("average"), trips=count())
    return found


def make(
    folder: str | os.PathLike[str],
    rows: int,
    *,
    of_20_miles: float = 0.0047,
    of_30_miles: float = 0.0003,
    skew: float = 0.5,
    columns: str = "all",
    pack: bool = True,
    seed: int = 1,
    threads: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Draw a table of trips in order of their pickups, and write it as a folder of columns.

    Args:
        folder: A new one.
        rows: Trips.
        of_20_miles: Share of those of at least 20 miles.
        of_30_miles: Share of those of at least 30 miles.
        skew: How much more frequent long trips are at some times than on average, 0 to 1.
        columns: all 49, or needed: those of the queries.
        pack: Store integers and amounts in as few bits as they need.
        seed: Of the numbers.
        threads: 0: one per core.
        progress: Called with what is done, how much of it, and of how much.

    Raises:
        ValueError: Shares that cannot be, or a folder that is not empty.
    """
    if rows < 0:
        raise ValueError(f"{rows} rows: there cannot be less than none")
    if not 0 <= of_30_miles <= of_20_miles <= 0.5:
        raise ValueError(
            f"shares {of_20_miles} of 20 miles and {of_30_miles} of 30: give 0 to 0.5, the second no larger"
        )
    if not 0 <= skew <= 1:
        raise ValueError(f"skew {skew}: give 0 to 1")
    if columns not in COLUMNS_OF:
        raise ValueError(f"columns {columns!r}: choose all or needed")
    kinds = {name: COLUMNS[name] for name in COLUMNS_OF[columns]}
    workers = threads or len(os.sched_getaffinity(0))
    with FolderWriter(folder, kinds, pack, threads=workers) as writer:
        for name, kind in kinds.items():
            if kind.kind == "string":
                writer.columns[name].words = texts_of(name)
        done = 0
        shares = (of_20_miles - of_30_miles, of_30_miles)
        for drawn in chunks(rows, kinds, shares=shares, skew=skew, seed=seed, threads=workers):
            writer.put(partial(_add, drawn))
            done = min(done + _CHUNK, rows)
            if progress is not None:
                progress("drawing trips", done, rows)


def texts_of(name: str) -> list[str]:
    """What the codes of a drawn column stand for."""
    if name in _WORDS:
        return _WORDS[name]
    return ["N", "Y"] if name.endswith("flag") else [f"B{k:05d}" for k in range(700)]


def chunks(
    rows: int,
    kinds: Mapping[str, ColumnType],
    *,
    shares: tuple[float, float] = (0.0044, 0.0003),
    skew: float = 0.5,
    seed: int = 1,
    threads: int = 1,
) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """The trips of `make`, some of them at a time, texts as codes. Shares: 20 to 30 miles, and more."""

    def draw(first: int) -> dict[str, npt.NDArray[Any]]:
        n = min(_CHUNK, rows - first)
        generator = np.random.default_rng([seed, first // _CHUNK])
        return _Drawn(generator, first, n, rows, shares, skew).columns(kinds)

    starts = range(0, rows, _CHUNK)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(starts), threads):
            yield from pool.map(draw, starts[begin : begin + threads])


def _add(drawn: Mapping[str, npt.NDArray[Any]], column: ColumnWriter) -> None:
    column.add(drawn[column.name])


class _Drawn:
    """Some trips that follow each other."""

    def __init__(
        self,
        draw: np.random.Generator,
        first: int,
        rows: int,
        total: int,
        shares: tuple[float, float],
        skew: float,
    ) -> None:
        self.draw, self.rows = draw, rows
        at = (first + np.arange(rows)) / max(total, 1)
        self.pickup = (_START + at * (_END - _START)).astype(np.int64)
        often = 1 + skew * np.sin(at * (2 * np.pi * 13))  # a wave a year
        u = draw.random(rows)
        longest, longer = u < shares[1] * often, u < (shares[0] + shares[1]) * often
        miles = np.minimum(draw.gamma(1.3, 2.1, rows), 19.9)
        miles = np.where(longer, 20 + 9.99 * draw.random(rows), miles)
        self.miles = np.round(np.where(longest, 30 + draw.gamma(1.5, 6.0, rows), miles), 2)

    def columns(self, kinds: Mapping[str, ColumnType]) -> dict[str, npt.NDArray[Any]]:
        minutes = 3 + self.miles * self.draw.gamma(4.0, 0.9, self.rows)
        fare = np.round(2.5 + 2.5 * self.miles + 0.4 * minutes, 2)
        extra = self._one_of([0.0, 0.5, 1.0], [0.5, 0.3, 0.2])
        tolls = np.where(self.draw.random(self.rows) < 0.05 + 0.5 * (self.miles > 15), 6.55, 0.0)
        made: dict[str, Any] = {
            "trip_distance": self.miles,
            "fare_amount": fare,
            "extra": extra,
            "mta_tax": self._one_of([0.5, 0.0], [0.97, 0.03]),
            "tip_amount": np.round(fare * 0.18 * self.draw.random(self.rows), 2),
            "tolls_amount": tolls,
            "improvement_surcharge": self._one_of([0.3, 0.0, 1.0], [0.8, 0.05, 0.15]),
            "ehail_fee": self._one_of([0.0, 2.75], [0.7, 0.3]),
        }
        parts = (
            "fare_amount",
            "extra",
            "mta_tax",
            "tip_amount",
            "tolls_amount",
            "improvement_surcharge",
            "ehail_fee",
        )
        made["total_amount"] = np.round(sum(made[name] for name in parts), 2)
        return {
            name: made[name] if name in made else self._other(name, kind, minutes)
            for name, kind in kinds.items()
        }

    def _other(self, name: str, kind: ColumnType, minutes: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        if kind.kind == "timestamp":
            later = "dropoff" in name
            return self.pickup + (minutes * 60e6).astype(np.int64) if later else self.pickup
        if name.endswith("LocationID"):  # few zones have most trips
            return np.minimum(self.draw.zipf(1.4, self.rows), _ZONES).astype(np.int32)
        if kind.kind == "string":
            few = len(texts_of(name))
            return np.minimum(self.draw.geometric(0.6, self.rows) - 1, few - 1)
        if name == "trip_time":
            return (minutes * 60).astype(np.int32)
        if kind.kind == "integer":
            return np.minimum(self.draw.geometric(0.6, self.rows), 6).astype(np.int32)
        if "longitude" in name or "latitude" in name:
            middle = -73.97 if "longitude" in name else 40.75
            return middle + 0.05 * self.draw.standard_normal(self.rows)
        return np.round(self.draw.gamma(1.2, 4.0, self.rows), 2)

    def _one_of(self, values: list[float], shares: list[float]) -> npt.NDArray[np.float64]:
        edges = np.cumsum(shares)[:-1]
        chosen: npt.NDArray[np.float64] = np.array(values)[
            np.searchsorted(edges, self.draw.random(self.rows), side="right")
        ]
        return chosen

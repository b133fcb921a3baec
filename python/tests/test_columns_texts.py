"""Texts, times, casts and variances of penstock.columns: rows as Polars has them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from penstock.columns import col, concat_str, count, lit, open_table, when
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pl: Any = pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from column_frames import frame_of, same  # noqa: E402

WORDS = ["", "Straße", "straße ", "  İx", "east", "EAST", "a%b", None]


@pytest.fixture(params=DEVICES)
def table(request: pytest.FixtureRequest) -> Any:
    executor: Any = "cuda" if "cuda" in str(request.param) else "cpu"
    with open_table(frame(), executor=executor) as opened:
        yield opened


def frame() -> Any:
    made = frame_of(3000)
    words = np.random.default_rng(2).choice(len(WORDS), made.height)
    ticks = pl.Series(np.random.default_rng(3).integers(-(10**13), 10**16, made.height))
    return made.with_columns(
        pl.Series("word", [WORDS[k] for k in words]), ticks.cast(pl.Datetime("us")).alias("far")
    )


def test_texts_are_made_of_texts(table: Any) -> None:
    mine, theirs = col("word").str, pl.col("word").str
    made = {
        "low": (mine.to_lowercase(), theirs.to_lowercase()),
        "up": (mine.to_uppercase(), theirs.to_uppercase()),
        "length": (mine.len_chars(), theirs.len_chars().cast(pl.Int64)),
        "part": (mine.slice(1, 3), theirs.slice(1, 3)),
        "end": (mine.slice(-2), theirs.slice(-2)),
        "middle": (mine.slice(-3, 2), theirs.slice(-3, 2)),
        "first": (mine.replace("a", "ä"), theirs.replace("a", "ä", literal=True)),
        "all": (mine.replace_all("t", ""), theirs.replace_all("t", "", literal=True)),
        "stripped": (mine.strip_chars(), theirs.strip_chars()),
        "front": (mine.strip_chars_start("sE"), theirs.strip_chars_start("sE")),
        "back": (mine.strip_chars_end(" b"), theirs.strip_chars_end(" b")),
        "twice": (mine.to_lowercase().str.slice(0, 2), theirs.to_lowercase().str.slice(0, 2)),
        "both": (concat_str("<", col("word"), col("text_n")), pl.concat_str(pl.lit("<"), "word", "text_n")),
        "filled": (col("word").fill_null(col("text")), pl.col("word").fill_null(pl.col("text"))),
        "chosen": (
            when(col("flag")).then(col("text")).otherwise(lit("none")),
            pl.when("flag").then(pl.col("text")).otherwise(pl.lit("none")),
        ),
    }
    ours = table.select(**{name: pair[0] for name, pair in made.items()}).collect()
    same(ours, frame().select(**{name: pair[1] for name, pair in made.items()}))


def test_texts_that_are_made_are_keys_and_conditions(table: Any) -> None:
    low, theirs = col("word").str.to_lowercase(), pl.col("word").str.to_lowercase()
    grouped = table.group_by(low.alias("low")).agg(n=count(), least=col("text_n").min(), last=low.max())
    expected = (
        frame().group_by(theirs.alias("low")).agg(n=pl.len(), least=pl.col("text_n").min(), last=theirs.max())
    )
    same(grouped.collect(), expected.sort("low", nulls_last=True))
    ours = table.filter((low == "east") | (low < col("text"))).select("word", "text")
    same(
        ours.collect(), frame().filter((theirs == "east") | (theirs < pl.col("text"))).select("word", "text")
    )


def test_combinations_of_many_words_are_refused(table: Any) -> None:
    given = {"a": np.array([str(k) for k in range(2000)])}
    with open_table(given, executor=table.executor) as many:
        query = many.select(x=concat_str(col("a"), col("a")))
        with pytest.raises(ValueError, match=r"concat_str\(a, a\): the texts have 4000000 combinations"):
            query.collect()


@pytest.mark.parametrize("name", ["day_n", "time", "far"])
def test_parts_of_times(table: Any, name: str) -> None:
    mine, theirs = col(name).dt, pl.col(name).dt
    names = ["year", "quarter", "month", "week", "day", "ordinal_day", "weekday"]
    names += [] if name == "day_n" else ["hour", "minute", "second"]
    made: dict[str, Any] = {
        part: (getattr(mine, part)(), getattr(theirs, part)().cast(pl.Int64)) for part in names
    }
    for every in ("1d", "1w", "1mo", "1q", "1y"):
        made[every] = mine.truncate(every), theirs.truncate(every).cast(pl.Date)
    offsets = {
        "3d": (3, "day"), "-2w": (-2, "week"), "1mo": (1, "month"), "-14mo": (-14, "month"),
        "5q": (5, "quarter"), "-3y": (-3, "year"),
    }  # fmt: skip
    for by, (number, unit) in offsets.items():
        made[by] = mine.offset_by(number, unit), theirs.offset_by(by)
    made["epoch"] = mine.epoch(), theirs.epoch("us") / 1e6
    if name != "day_n":
        for every in ("1h", "1m", "1s"):
            made[every] = mine.truncate(every), theirs.truncate(every)
        made["later"] = mine.offset_by(7, "hour"), theirs.offset_by("7h")
    ours = table.select(**{part: pair[0] for part, pair in made.items()}).collect()
    same(ours, frame().select(**{part: pair[1] for part, pair in made.items()}))


def test_casts_and_rounding(table: Any) -> None:
    made = {
        "whole": (col("f64").cast(int), pl.col("f64").cast(pl.Int64)),
        "float": (col("i8_n").cast(float), pl.col("i8_n").cast(pl.Float64)),
        "truth": (col("i8_n").cast(bool), pl.col("i8_n").cast(pl.Boolean)),
        "day": (col("time").cast(datetime.date), pl.col("time").cast(pl.Date)),
        "time": (col("day_n").cast(datetime.datetime), pl.col("day_n").cast(pl.Datetime("us"))),
        "none": (col("i16").round(2), pl.col("i16").cast(pl.Int64)),
    }
    ours = table.select(**{name: pair[0] for name, pair in made.items()}).collect()
    same(ours, frame().select(**{name: pair[1] for name, pair in made.items()}))
    assert table.select(x=lit("2024-02-03").cast(datetime.date)).head(1).collect().item() == datetime.date(
        2024, 2, 3
    )
    with pytest.raises(TypeError, match="choose int, float, bool"):
        col("i8").cast(list)


def test_values_are_rounded_not_products(table: Any) -> None:
    """0.615 is a little less than it says, 1.005 too; 2.5 is what it says."""
    given = np.array([0.615, 1.005, 2.5, -2.5, 0.285, -1.245, 1e300, 0.49999999999999994, np.inf])
    with open_table({"x": given}, executor=table.executor) as small:
        found = small.select(a=col("x").round(2), b=col("x").round()).collect()
    assert list(found["a"]) == [0.61, 1.0, 2.5, -2.5, 0.28, -1.25, 1e300, 0.5, np.inf]
    assert list(found["b"]) == [1.0, 1.0, 3.0, -3.0, 0.0, -1.0, 1e300, 0.0, np.inf]


def test_variances_of_values_that_are_far_from_zero(table: Any) -> None:
    far, theirs = col("cents") + 10**8, pl.col("cents") + 10**8
    mine = {
        "v": far.var(),
        "s": far.std(ddof=0),
        "w": col("i8_n").var(),
        "r": (far.std() / far.mean()).sqrt(),
    }
    expected = {"v": theirs.var(), "s": theirs.std(ddof=0), "w": pl.col("i8_n").cast(pl.Float64).var(),
                "r": (theirs.std() / theirs.mean()).sqrt()}  # fmt: skip
    same(table.agg(**mine).collect(), frame().select(**expected), tolerance=1e-7)
    grouped = table.group_by("text_n", "flag").agg(**mine).collect()
    same(grouped, frame().group_by("text_n", "flag").agg(**expected), order=False, tolerance=1e-7)
    lonely = table.filter(col("sorted") == 0).group_by("f64").agg(v=col("i8").var(), w=col("i8").var(ddof=0))
    assert [row[1:] for row in lonely.collect().rows()] == [(None, 0.0)] * 3


def test_what_is_made_of_aggregates_and_keys(table: Any) -> None:
    total, theirs = col("cents").sum(), pl.col("cents").sum()
    middle = frame().group_by("text").agg(theirs).get_column("cents").sort().to_list()[2] + 1e-6
    ours = table.group_by("text").agg(
        band=when(total > middle).then(lit("much")).otherwise(col("text")), whole=total.round(1) // 100
    )
    groups = frame().group_by("text").agg(total=theirs).sort("text")
    band = pl.when(pl.col("total") > middle).then(pl.lit("much")).otherwise(pl.col("text"))
    expected = groups.select("text", band=band, whole=pl.col("total").round(1) // 100)
    found = ours.collect()
    assert sorted(found.rows()) == sorted(expected.rows())
    wrong = table.group_by("text").agg(x=total.floor() * col("flag").cast(int))
    with pytest.raises(KeyError, match="no column 'flag'"):
        wrong.collect()

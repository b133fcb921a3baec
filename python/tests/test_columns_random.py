"""Random queries of penstock.columns: answers are Polars'."""

from __future__ import annotations

import datetime
import math
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.columns import col, count, lit, when

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pl: Any = pytest.importorskip("polars", reason="polars is not installed")

from column_frames import frame_of, opened, same  # noqa: E402

DAY = datetime.date(2020, 1, 31)
NUMBERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f64", "cents", "i32_n", "f64_n", "i8_n"]
INTEGERS = [name for name in NUMBERS if name[0] in "iu"]


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2) -> tuple[Any, Any, bool]:
    """An expression of ours, the same of Polars', and whether it is whole."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(NUMBERS))
        theirs = pl.col(name)
        whole = name in INTEGERS
        return col(name), theirs.cast(pl.Int64) if whole else theirs, whole
    a, x, whole_a = draw(numbers(depth - 1))
    if draw(st.booleans()):
        b, y, whole_b = draw(numbers(depth - 1))
    else:
        value = draw(st.one_of(st.integers(-9, 9), st.sampled_from([0.5, 2.25, -3.0])))
        b, y, whole_b = lit(value), pl.lit(value), isinstance(value, int)
    whole = whole_a and whole_b
    match draw(st.sampled_from(["+", "-", "*", "/", "//", "%", "neg", "abs", "when", "fill"])):
        case "+":
            return a + b, x + y, whole
        case "-":
            return a - b, x - y, whole
        case "*":
            return a * b, x * y, whole
        case "/":
            return a / b, x / y, False
        case "//" if whole:
            return a // b, x // y, True
        case "%" if whole:
            return a % b, x % y, True
        case "neg":
            return -a, -x, whole_a
        case "abs":
            return abs(a), x.abs(), whole_a
        case "when":
            condition, theirs = draw(conditions(1))
            return when(condition).then(a).otherwise(b), pl.when(theirs).then(x).otherwise(y), whole
        case "fill":
            return a.fill_null(b), x.fill_null(y), whole
        case _:
            return a + b, x + y, whole


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Any:
    match draw(st.integers(0, 8 if depth else 5)):
        case 0:
            name = draw(st.sampled_from(["flag", "flag_n"]))
            return col(name), pl.col(name)
        case 1:
            name, word = (
                draw(st.sampled_from(["text", "text_n"])),
                draw(st.sampled_from(["east", "west", "up"])),
            )
            return draw(
                st.sampled_from(
                    [
                        (col(name) == word, pl.col(name) == word),
                        (col(name) > word, pl.col(name) > word),
                        (col(name).is_in([word, "south"]), pl.col(name).is_in([word, "south"])),
                        (col(name).str.starts_with("e"), pl.col(name).str.starts_with("e")),
                    ]
                )
            )
        case 2:
            name = draw(st.sampled_from(["day", "day_n"]))
            day = DAY + datetime.timedelta(days=draw(st.integers(-60, 700)))
            if draw(st.booleans()):
                return col(name).dt.month() == day.month, pl.col(name).dt.month() == day.month
            return col(name) <= day, pl.col(name) <= day
        case 3:
            name = draw(st.sampled_from(NUMBERS))
            return col(name).is_null(), pl.col(name).is_null()
        case 4:
            value = draw(st.sampled_from([-1.0, 0.0, 2.0, math.nan]))
            return col("nan") >= value, pl.col("nan") >= value
        case 5:
            hour = draw(st.integers(0, 23))
            return col("time").dt.hour() < hour, pl.col("time").dt.hour() < hour
        case 6:
            (a, x), (b, y) = draw(conditions(depth - 1)), draw(conditions(depth - 1))
            return draw(st.sampled_from([(a & b, x & y), (a | b, x | y), (~a, ~x)]))
        case _:
            a, x, _ = draw(numbers(depth - 1))
            value = draw(st.one_of(st.integers(-100, 100), st.sampled_from([0.5, 33.25])))
            return draw(
                st.sampled_from(
                    [
                        (a < value, x < value),
                        (a >= value, x >= value),
                        (a == value, x == value),
                        (value != a, value != x),
                    ]
                )
            )


@pytest.fixture(scope="module")
def frame() -> Any:
    return frame_of()


@pytest.fixture(scope="module")
def tables(frame: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = opened(frame, tmp_path_factory.mktemp("columns"))
    yield made
    for table in made:
        table.close()


# PENSTOCK_COLUMN_QUERIES: how many.
@settings(
    max_examples=int(os.environ.get("PENSTOCK_COLUMN_QUERIES", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(question=conditions(), value=numbers(), which=st.integers(0, 7), grouped=st.booleans())
def test_random_queries_have_polars_answers(
    frame: Any, tables: Any, question: Any, value: Any, which: int, grouped: bool
) -> None:
    table = tables[which % len(tables)]
    (ours, theirs), (mine, other, whole) = question, value
    table_part, frame_part = table.filter(ours), frame.filter(theirs)
    same(table_part.select(v=mine).collect(), frame_part.select(v=other), tolerance=1e-9)
    finite = other if whole else pl.when(other.is_finite()).then(other)
    my_finite = mine if whole else when((mine - mine) == 0).then(mine).otherwise(None)
    aggregates = [
        (my_finite.sum(), finite.sum()),
        (my_finite.min(), finite.min()),
        (my_finite.mean(), finite.mean()),
    ]
    named = {f"v{k}": pair for k, pair in enumerate(aggregates)}
    our_aggregates = {name: pair[0] for name, pair in named.items()}
    their_aggregates = {name: pair[1] for name, pair in named.items()}
    if grouped:
        got = table_part.group_by("text_n", "flag").agg(**our_aggregates, n=count()).collect()
        expected = frame_part.group_by("text_n", "flag").agg(**their_aggregates, n=pl.len())
        same(got, expected, order=False, tolerance=1e-9)
    else:
        same(table_part.agg(**our_aggregates, n=count()).collect(),
             frame_part.select(**their_aggregates, n=pl.len()), tolerance=1e-9)  # fmt: skip

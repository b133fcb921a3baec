"""Joins of penstock.columns: rows as Polars joins them, on both executors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.columns import Table, col, convert, count, lit, open_table
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pl: Any = pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

ROWS = 20_000
FAR = 10**12


@pytest.fixture(params=DEVICES, scope="module")
def executor(request: pytest.FixtureRequest) -> Any:
    return "cuda" if "cuda" in str(request.param) else "cpu"


def trips() -> Any:
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "zone": draw.integers(0, 300, ROWS),
            "far": draw.integers(-20, 30, ROWS) * FAR,
            "word": draw.choice(["a", "b", "c", "zz"], ROWS),
            "day": np.datetime64("2024-01-01") + draw.integers(0, 40, ROWS).astype("timedelta64[D]"),
            "flag": draw.random(ROWS) < 0.5,
            "miles": draw.random(ROWS),
        }
    )
    some = pl.when(pl.col("miles") < 0.1).then(None).otherwise(pl.col("zone"))
    return frame.with_columns(some.alias("zone_n"))


def zones() -> Any:
    return pl.DataFrame(
        {
            "zone": np.arange(0, 400, 2),
            "borough": [f"b{k % 7}" if k % 11 else None for k in range(200)],
            "area": np.arange(200.0),
            "miles": np.arange(200),
        }
    )


@pytest.fixture(scope="module")
def table(executor: Any) -> Any:
    with open_table(trips(), executor=executor) as opened:
        yield opened


def same(mine: Any, theirs: Any) -> None:
    """The same rows in the same order; texts as texts."""
    frame = mine.to_polars()
    texts = [name for name, kind in frame.schema.items() if kind == pl.Categorical or kind == pl.Enum]
    frame = frame.with_columns(pl.col(texts).cast(pl.String))
    assert frame.equals(theirs.select(frame.columns))


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("key", ["zone", "zone_n"])
def test_rows_are_those_of_polars(table: Table, how: Any, key: str) -> None:
    order = {"maintain_order": "left"} if how in ("inner", "left") else {}
    expected = trips().join(zones(), left_on=key, right_on="zone", how=how, **order)
    joined = table.join(zones(), left_on=key, right_on="zone", how=how)
    if how in ("inner", "left"):
        same(joined.collect(), expected)
    else:
        found = joined.agg(n=count(), miles=col("miles").sum()).collect().rows()[0]
        assert found[0] == expected.height
        assert found[1] == pytest.approx(expected["miles"].sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("far", pl.DataFrame({"id": np.arange(-30, 50, 3) * FAR, "n": np.arange(27)})),
        ("word", pl.DataFrame({"id": ["c", "a", "q"], "n": [1, 2, 3]})),
        ("day", pl.DataFrame({"id": np.datetime64("2024-01-10") + np.arange(9), "n": np.arange(9)})),
        ("flag", pl.DataFrame({"id": [True], "n": [7]})),
        ("zone", pl.DataFrame({"id": pl.Series([], dtype=pl.Int64), "n": pl.Series([], dtype=pl.Int64)})),
        ("zone", pl.DataFrame({"id": [None, 4, 6], "n": [1, 2, None]})),
    ],
)
def test_keys_of_each_type(table: Table, key: str, other: Any) -> None:
    joined = table.join(other, left_on=key, right_on="id")
    expected = trips().join(other, left_on=key, right_on="id", maintain_order="left")
    same(joined.collect(), expected)
    groups = joined.group_by("n").agg(rows=count()).collect().rows()
    assert sorted(groups, key=str) == sorted(expected.group_by("n").len().rows(), key=str)


def test_one_join_behind_another(table: Table) -> None:
    words = pl.DataFrame({"word": ["c", "a", "q"], "weight": [1, 2, 3]})
    parts = pl.DataFrame({"part": [0, 1, 2, 3], "name": ["w", "x", "y", "z"]})
    joined = table.join(words, on="word").join(parts, left_on=col("weight") + 1, right_on="part")
    joined = joined.filter(col("name") == "z", col("miles") > 0.5).join(zones(), on="zone", suffix="_z")
    expected = (
        trips()
        .join(words, on="word", maintain_order="left")
        .with_columns(part=pl.col("weight") + 1)
        .join(parts, on="part", maintain_order="left")
        .filter(pl.col("name") == "z", pl.col("miles") > 0.5)
        .join(zones(), on="zone", suffix="_z", maintain_order="left")
    )
    assert expected.height > 100
    same(joined.select("zone", "miles", "miles_z", "borough", "weight").collect(), expected)
    best = joined.top_k(5, "miles").collect()
    assert list(best["miles"]) == expected.top_k(5, by="miles")["miles"].to_list()


def test_with_tables_queries_and_results(table: Table, tmp_path: Path, executor: Any) -> None:
    convert(zones(), tmp_path / "zones")
    expected = trips().join(zones().filter(pl.col("area") > 50), on="zone", maintain_order="left")
    with open_table(tmp_path / "zones", executor=executor) as other:
        query = other.filter(col("area") > 50)
        for source in (query, query.collect(), query.select("zone", "borough", "area", "miles")):
            same(table.join(source, on="zone").collect(), expected)
        means = table.group_by("zone").agg(mean=col("miles").mean(), n=count())
        found = (
            table.join(means, on="zone")
            .filter(col("miles") > 1.9 * col("mean"))
            .agg(k=count())
            .collect()
            .item()
        )
    by_zone = trips().group_by("zone").agg(mean=pl.col("miles").mean())
    assert found == trips().join(by_zone, on="zone").filter(pl.col("miles") > 1.9 * pl.col("mean")).height


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("keys", [["zone_n", "word"], ["far", "word", "day"], ["zone", "far"]])
def test_several_columns_are_one_key(table: Table, how: Any, keys: list[str]) -> None:
    few = trips().filter(pl.col("miles") < 0.6).group_by(keys).agg(most=pl.col("miles").max()).sort("most")
    order = {"maintain_order": "left"} if how in ("inner", "left") else {}
    expected = trips().join(few, on=keys, how=how, **order)
    joined = table.join(few, on=keys, how=how)
    found = joined.agg(n=count(), miles=col("miles").sum()).collect().rows()[0]
    assert found[0] == expected.height
    assert found[1] == pytest.approx(expected["miles"].sum(), rel=1e-12)
    if how in ("inner", "left"):
        same(joined.collect(), expected)


def test_refusals(table: Table) -> None:
    twice = pl.DataFrame({"zone": [1, 2, 1], "x": [1, 2, 3]})
    with pytest.raises(ValueError, match="1 stands more than once in 'zone'"):
        table.join(twice, on="zone").collect()
    n = table.join(twice, on="zone", how="semi").agg(n=count()).collect().item()
    assert n == trips().filter(pl.col("zone").is_in([1, 2])).height
    words = pl.DataFrame({"word": ["a", "a"], "x": [1, 2]})
    with pytest.raises(ValueError, match="'a' stands more than once"):
        table.join(words, on="word").collect()
    with pytest.raises(TypeError, match="int64 here and string there"):
        table.join(words, left_on="zone", right_on="word").collect()
    with pytest.raises(ValueError, match=r"0\.5 stands more than once in 'm'"):
        table.join(pl.DataFrame({"m": [0.5, 0.5]}), left_on="miles", right_on="m").collect()
    with pytest.raises(KeyError, match="no column 'zones' in the other table"):
        table.join(zones(), left_on="zone", right_on="zones")
    with pytest.raises(KeyError, match="there is no column 'zoen'"):
        table.join(zones(), left_on="zoen", right_on="zone")
    with pytest.raises(TypeError, match="name the key"):
        table.join(zones())
    with pytest.raises(ValueError, match="choose one of inner"):
        table.join(zones(), on="zone", how="outer")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="choose another suffix"):
        table.join(zones(), on="zone", suffix="")
    with pytest.raises(TypeError, match="say it before"):
        table.select("zone").join(zones(), on="zone")


def test_explain_names_the_join(table: Table) -> None:
    text = table.join(zones(), on="zone").filter(col("area") > lit(3)).agg(n=count()).explain()
    assert "inner join on zone: 4 columns" in text
    assert "zone  int64" in text


def test_arrays_in_memory_are_tables_and_results_are_arrays(executor: Any) -> None:
    with open_table({"a": np.arange(9), "b": np.arange(9) / 4}, executor=executor) as arrays:
        found = arrays.filter(col("a") > 5).collect()
        assert np.from_dlpack(found.column("b")).tolist() == [1.5, 1.75, 2.0]
        assert arrays.join(found, on="a", how="semi").agg(n=count()).collect().item() == 3
        nothing = arrays.select(x=col("a") > 3, y=(col("a") // 0)).collect()
    with pytest.raises(ValueError, match="'y' is int64 with nulls, which DLPack does not have"):
        np.from_dlpack(nothing.column("y"))
    with pytest.raises(ValueError, match=r"'a' has shape \(2, 2\)"):
        open_table({"a": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="different lengths"):
        open_table({"a": np.zeros(2), "b": np.zeros(3)})
    with pytest.raises(TypeError, match=r"paths of \.npy files for all"):
        open_table({"a": "a.npy", "b": np.zeros(3)})


def test_what_an_array_masks_is_null(executor: Any) -> None:
    masked = np.ma.masked_array(np.arange(4.0), mask=[False, True, False, True])
    plain = np.ma.masked_array(np.arange(4))
    with open_table({"a": masked, "b": plain}, executor=executor) as table:
        assert table.collect().rows() == [(0.0, 0), (None, 1), (2.0, 2), (None, 3)]
        assert table.agg(col("a").sum(), col("b").sum()).collect().rows() == [(2.0, 6)]

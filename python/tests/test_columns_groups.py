"""Groups by any keys, as Polars has them: floating-point numbers, far integers, several columns, nulls."""

from __future__ import annotations

import datetime
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.columns import col, convert, count, open_table
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pl: Any = pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from column_frames import same  # noqa: E402

ROWS = 5000
KEYS = ["far", "near", "number", "nan", "text", "day", "flag", "whole"]
KEYS += [f"{name}_n" for name in ("far", "number", "text", "whole")]


def frame_of(rows: int = ROWS, seed: int = 1) -> Any:
    draw = np.random.default_rng(seed)
    ends = np.array([-(2**63), 2**63 - 1, 0, -1, 5], np.int64)
    specials = np.array([math.nan, 0.0, -0.0, math.inf, -math.inf, 1.5, -1.5, 5e-324])
    frame = pl.DataFrame(
        {
            "far": draw.integers(-(2**62), 2**62, 300)[draw.integers(0, 300, rows)],
            "whole": ends[draw.integers(0, len(ends), rows)],
            "near": draw.integers(-3, 40, rows),
            "number": np.round(draw.normal(0, 3, rows), 1),
            "nan": specials[draw.integers(0, len(specials), rows)],
            "text": draw.choice(["north", "south", "east", "west"], rows),
            "day": np.datetime64("2019-12-25") + draw.integers(0, 80, rows).astype("timedelta64[D]"),
            "flag": draw.random(rows) < 0.5,
            "value": draw.integers(-(2**40), 2**40, rows),
            "cents": np.round(draw.gamma(1.0, 30.0, rows), 2),
        }
    )
    some = [
        pl.when(pl.Series(draw.random(rows) < 0.15)).then(None).otherwise(pl.col(name)).alias(f"{name}_n")
        for name in ("far", "number", "text", "whole", "value", "cents")
    ]
    return frame.with_columns(some)


@pytest.fixture(scope="module")
def frame() -> Any:
    return frame_of()


@pytest.fixture(scope="module")
def tables(frame: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("groups")
    convert(frame, folder / "table")
    made = [
        open_table(folder / "table", executor="cuda" if "cuda" in str(device) else "cpu", placement=where)
        for device in DEVICES
        for where in ("host", "storage")
    ]
    yield made
    for table in made:
        table.close()


def in_order_of(table: Any, frame: Any, keys: list[str]) -> Any:
    """By the keys, nulls last; texts in the order of their dictionary."""
    words = {key: table.column(key)[1].words for key in keys if key.startswith("text")}
    coded = frame.with_columns(pl.col(key).cast(pl.Enum(words[key])) for key in words)
    return coded.sort(keys, nulls_last=True).with_columns(pl.col(key).cast(pl.String) for key in words)


# PENSTOCK_COLUMN_QUERIES: how many.
@settings(
    max_examples=int(os.environ.get("PENSTOCK_COLUMN_QUERIES", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True),
    bound=st.sampled_from([-1.0, 5.0, 60.0, 1e9]),
    which=st.integers(0, 7),
)
def test_random_groups_have_polars_answers(
    frame: Any, tables: Any, keys: list[str], bound: float, which: int
) -> None:
    table = tables[which % len(tables)]
    theirs = frame.filter(pl.col("cents") > bound).group_by(keys).agg(
        s=pl.col("value_n").sum(), x=pl.col("cents_n").sum(), m=pl.col("value").mean(),
        a=pl.col("value_n").min(), b=pl.col("cents").max(), c=pl.col("value_n").count(),
        d=pl.col("number_n").drop_nulls().n_unique(), n=pl.len(),
    )  # fmt: skip
    value, cents = col("value_n"), col("cents_n")
    ours = table.filter(col("cents") > bound).group_by(*keys).agg(
        s=value.sum(), x=cents.sum(), m=col("value").mean(), a=value.min(), b=col("cents").max(),
        c=value.count(), d=col("number_n").nunique(), n=count(),
    ).collect()  # fmt: skip
    same(ours, in_order_of(table, theirs, keys), tolerance=1e-9)


@settings(
    max_examples=int(os.environ.get("PENSTOCK_COLUMN_QUERIES", "150")) // 3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    keys=st.sampled_from([["far"], ["number_n"], ["far_n", "near"], ["text_n"]]),
    least=st.sampled_from([-(2.0**41), -0.5, 0, 7, 10**12]),
    rows=st.integers(1, 25),
    most=st.sampled_from([math.inf, 3.25, 60.0]),
    which=st.integers(0, 7),
)
def test_conditions_of_groups_have_polars_answers(
    frame: Any, tables: Any, keys: list[str], least: float, rows: int, most: float, which: int
) -> None:
    table = tables[which % len(tables)]
    theirs = frame.group_by(keys).agg(
        s=pl.col("value_n").sum(), x=pl.col("cents_n").sum(), a=pl.col("value").min(),
        b=pl.col("cents").max(), n=pl.len(),
    )  # fmt: skip
    theirs = theirs.filter(
        (pl.col("s") > least) & (pl.col("n") >= rows) & (pl.col("b") < most) & (pl.col("x") != 0)
    )
    ours = table.group_by(*keys).agg(
        s=col("value_n").sum(), x=col("cents_n").sum(), a=col("value").min(), b=col("cents").max(), n=count()
    )  # fmt: skip
    condition = (col("s") > least) & (rows <= col("n")) & (col("x") != 0)
    found = ours.filter(condition).filter(col("b") < most).collect()
    same(found, in_order_of(table, theirs, keys), tolerance=1e-9)


@pytest.mark.parametrize("groups", [1, 700, 300_000])
def test_the_table_grows_until_all_groups_fit(executor: Any, groups: int) -> None:
    draw = np.random.default_rng(groups)
    rows = 2 * groups + 3000
    key = draw.integers(-(2**60), 2**60, groups)[draw.integers(0, groups, rows)]
    frame = pl.DataFrame({"key": key, "other": key.astype(np.float64), "value": draw.integers(-9, 9, rows)})
    theirs = frame.group_by("key", "other").agg(pl.col("value").sum(), n=pl.len()).sort("key")
    with open_table(frame, executor=executor) as table:
        ours = table.group_by("key", "other").agg(col("value").sum(), n=count()).collect()
        assert ours.to_polars().equals(theirs)
        assert ours.account.groups == len(theirs)
        assert ours.account.rows_met == rows
        assert table.group_by("other").agg(n=count()).collect().account.slots >= 2 * len(theirs) - 2
        nothing = table.filter(col("value") > 100).group_by("other").agg(n=count()).collect()
        assert nothing.rows() == []


WITHOUT_MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from penstock.columns import col, count, open_table

with open_table({"k": Path(sys.argv[1])}, executor="cpu", threads=1) as table:
    few = table.filter(col("k") < 0.001).group_by("k").agg(n=count())
    before = few.collect().account.groups
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), resource.RLIM_INFINITY))
    try:
        table.group_by("k").agg(n=count()).collect()
    except ValueError as problem:
        print(problem)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(few.collect().account.groups == before)
"""


def test_groups_that_do_not_fit_memory_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "k.npy", np.random.default_rng(1).random(2_000_000))
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_MEMORY, str(tmp_path / "k.npy")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    refusal, same_as_before = run.stdout.splitlines()
    assert re.fullmatch(
        r"group a table: its groups need \d+ bytes at least, and \d+ are free: filter rows, .*", refusal
    )
    assert same_as_before == "True"


def test_sums_beyond_64_bits_of_a_group_are_refused(executor: Any) -> None:
    frame = pl.DataFrame({"k": [0.5, 0.5, 1.5], "v": [2**62, 2**62, 1]})
    with open_table(frame, executor=executor) as table:
        with pytest.raises(OverflowError, match=r"sum\(v\): it is beyond 64 bits"):
            table.group_by("k").agg(col("v").sum()).collect()
        with pytest.raises(OverflowError, match="beyond 64 bits"):  # of a group that is not kept, too
            table.group_by("k").agg(col("v").sum()).filter(col("v") < 5).collect()
        means = table.group_by("k").agg(col("v").mean()).collect()
        assert means.rows() == [(0.5, float(2**62)), (1.5, 1.0)]


def test_explain_says_how_groups_are_found(executor: Any, tmp_path: Path) -> None:
    day = datetime.date(2024, 1, 1)
    numbers, far = [0.5, 1.5, 1.5], [1, 5, 2**60]
    frame = pl.DataFrame({"near": [1, 2, 2], "number": numbers, "day": [day] * 3, "far": far})
    convert(frame, tmp_path / "table")
    with open_table(tmp_path / "table", executor=executor) as table:
        n = count()
        assert "in an array of 2 sums" in table.group_by("near").agg(n=n).explain(analyze=True)
        assert "in a hash table, keys of 1 words" in table.group_by("number").agg(n=n).explain()
        assert "in a hash table, keys of 2 words" in table.group_by("number", "far").agg(n=n).explain(True)
        assert "at most 65536 combinations" in table.group_by("far").agg(n=n).explain()
        assert table.group_by("near").agg(n=n).collect().account.slots == 0
        assert table.agg(col("number").nunique()).collect().item() == 2
        few = table.group_by("number").agg(n=n).filter(col("n") > 1)
        assert few.explain().endswith("condition of groups: (1 < n)")
        assert few.collect().rows() == [(1.5, 2)]

"""Columns that are `.npy` files."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock import Error
from penstock.columns import col, count, npy_columns, open_table, sql

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)


def saved(folder: Path, **columns: Any) -> dict[str, str]:
    for name, values in columns.items():
        np.save(folder / f"{name}.npy", values)
    return {name: str(folder / f"{name}.npy") for name in columns}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "D"])
@pytest.mark.parametrize("gaps", [0, 1, 900])
@pytest.mark.parametrize("placement", ["host", "storage"])
def test_times_are_read_in_place_and_nat_is_a_null(
    unit: str, gaps: int, placement: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npy_columns, "PART", 256)
    random = np.random.default_rng(gaps)
    days = random.integers(-30_000, 30_000, 5000).astype("datetime64[D]")
    times = days.astype(f"datetime64[{unit}]")
    if unit != "D":
        times = times + random.integers(0, 86400, len(times)).astype("timedelta64[s]")
    times[random.choice(len(times), gaps, replace=False)] = "NaT"
    there = ~np.isnat(times)
    with open_table(
        saved(tmp_path, t=times, n=np.arange(5000)), executor="cpu", placement=placement
    ) as table:
        assert str(table.schema["t"]) == ("date" if unit == "D" else f"timestamp[{unit}]")
        found = table.collect()["t"]
        assert found.dtype == times.dtype
        np.testing.assert_array_equal(found, times)
        counted = table.agg(n=count(), t=col("t").count(), first=col("t").min(), last=col("t").max())
        answer = counted.collect()
        assert (answer["n"][0], answer["t"][0]) == (5000, there.sum())
        assert (answer["first"][0], answer["last"][0]) == (times[there].min(), times[there].max())
        late = np.datetime64("1990-05-17")
        rows = table.filter(col("t") >= late.item()).select("n").collect()["n"]
        np.testing.assert_array_equal(rows, np.flatnonzero(there & (times >= late)))
        years = table.filter(col("t").is_null()).agg(n=count()).collect().item()
        assert years == gaps
        groups = dict(table.group_by(col("t").dt.year().alias("year")).agg(n=count()).collect().rows())
        assert groups[1999] == (times[there].astype("datetime64[Y]") == np.datetime64("1999")).sum()


def test_a_table_with_nulls_of_times_removes_its_marks_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = open_table(saved(tmp_path, t=np.array(["2024-01-01", "NaT"], "datetime64[s]")), executor="cpu")
    assert table.filter(col("t").is_null()).agg(count()).collect().item() == 1
    assert [*tmp_path.glob("penstock-table-*")]
    table.close()
    assert not [*tmp_path.glob("penstock-table-*")]


def test_a_file_that_changes_while_it_is_looked_through_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = saved(tmp_path, t=np.zeros(1000, "datetime64[s]"))
    mark = npy_columns._mark_nulls

    def mark_and_change(layout: Any) -> None:
        mark(layout)
        np.save(files["t"], np.full(1000, "NaT", "datetime64[s]"))
        os.utime(files["t"], (1, 1))

    monkeypatch.setattr(npy_columns, "_mark_nulls", mark_and_change)
    with (
        open_table(files, executor="cpu") as table,
        pytest.raises(ValueError, match=r"t\.npy has changed since it was opened: open the table again"),
    ):
        table.agg(n=col("t").count()).collect()


def test_a_full_disk_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = saved(tmp_path, t=np.full(8 << 16, "NaT", "datetime64[s]"), n=np.arange(8 << 16))
    with open_table(files, executor="cpu") as table:
        result = table.collect()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, hard))
    try:
        for source in (files, result):
            with pytest.raises(Error, match=r"cannot be written: File too large: make room, or set TMPDIR"):
                open_table(source)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [*tmp_path.glob("penstock-table-*")]


def test_sql_and_joins_take_times_of_files(tmp_path: Path) -> None:
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    days = np.array(["2024-02-29", "NaT", "2023-12-31"], "datetime64[D]")
    times = np.array(["2024-02-29T12:00", "2023-12-31T00:00", "2024-02-29T00:00"], "datetime64[ns]")
    with (
        open_table(saved(tmp_path, day=days, n=np.arange(3)), executor="cpu") as a,
        open_table(saved(tmp_path, time=times, m=np.arange(3)), executor="cpu") as b,
    ):
        statement = "select n, m from a join b on day = time::date order by m"
        assert sql(statement, a=a, b=b).rows() == [(0, 0), (2, 1), (0, 2)]


@pytest.mark.parametrize("time", ["2024-02-29T12:00:00", "18000-01-01T00:00:00"])
def test_a_key_of_times_that_stands_twice_is_named(time: str, tmp_path: Path) -> None:
    times = np.array([time, time], "datetime64[s]")
    with open_table(saved(tmp_path, t=times), executor="cpu") as table:
        with pytest.raises(ValueError, match=f"{time} stands more than once in 't'"):
            table.join(table, on="t").agg(n=count()).collect()
        pytest.importorskip("sqlglot", reason="sqlglot is not installed")
        assert sql("select count(*) from t a join t b on a.t = b.t", t=table).item() == 4


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (np.zeros(3, "datetime64[h]"), r"elements of datetime64\[h\]: a column is one row of "),
        (np.zeros(3, "datetime64[10us]"), r"elements of datetime64\[10us\]: a column is one row of "),
        (np.zeros(3, "datetime64"), r"elements of datetime64\[generic\]: a column is one row of "),
        (np.zeros(3, ">M8[s]"), r"elements of dtype >M8\[s\]: save it as "),
        (np.zeros(3, "timedelta64[s]"), r"elements of dtype timedelta64\[s\]: save it as "),
        (
            np.zeros((3, 2), "datetime64[s]"),
            r"shape \(3, 2\) and elements of datetime64\[s\]: a column is one",
        ),
        (np.zeros((), "datetime64[s]"), r"shape \(\) and elements of datetime64\[s\]: a column is one"),
        (
            np.array([1 << 31]).astype("datetime64[D]"),
            "column 't' has days beyond 32 bits: save it as datetime",
        ),
    ],
)
def test_other_times_are_refused(values: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=what):
        open_table(saved(tmp_path, t=values))


def test_a_file_of_times_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    files = saved(tmp_path, t=np.zeros(1000, "datetime64[s]"))
    content = Path(files["t"]).read_bytes()
    Path(files["t"]).write_bytes(content[:-8])
    with pytest.raises(
        ValueError, match=r"from byte 128 needs 8128 bytes, and the file has 8120: write it anew"
    ):
        open_table(files)
    Path(files["t"]).write_bytes(content)
    assert len(open_table(files)) == 1000


def test_times_that_python_has_not_are_named_and_numpy_has_them(tmp_path: Path) -> None:
    far = np.array([-(2**62), 5], "datetime64[us]")
    with open_table(saved(tmp_path, t=far), executor="cpu") as table:
        result = table.collect()
    np.testing.assert_array_equal(result["t"], far)
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with pytest.raises(OverflowError, match=r"^column 't': Python has times of the years 1 to 9999 alone"):
        result.rows()

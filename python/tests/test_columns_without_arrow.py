"""Columns where pyarrow is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from penstock.columns import Table, col, convert, open_table

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

KEYS = np.arange(1000, dtype=np.int16) % 7 - 3
VALUES = np.arange(1000) / 8


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    columns = {"key": KEYS, "value": VALUES, "even": VALUES % 2 == 0}
    for name, values in columns.items():
        np.save(tmp_path / f"{name}.npy", values)
    return open_table({name: tmp_path / f"{name}.npy" for name in columns}, executor="cpu")


def test_files_of_numpy_are_queried(table: Table) -> None:
    found = table.filter(col("key") == -3).select("key", "value", "even").collect().rows()
    assert found == [(-3, value, value % 2 == 0) for value in VALUES[KEYS == -3].tolist()]
    assert [type(value) for value in found[0]] == [int, float, bool]
    sums = table.group_by("key").agg(sum=col("value").sum()).collect().rows()
    assert sorted(sums) == [(key, float(VALUES[key == KEYS].sum())) for key in range(-3, 4)]


def test_a_null_is_none(table: Table) -> None:
    found = table.filter(col("value") > 1000).agg(least=col("value").min(), rows=col("key").count())
    assert found.collect().rows() == [(None, 0)]


def test_what_needs_it_says_so(table: Table, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    remedy = r"pyarrow is not installed: pip install 'penstock\[arrow\]'$"
    with pytest.raises(ImportError, match=f"^open {tmp_path / 't.csv'}: {remedy}"):
        open_table(tmp_path / "t.csv")
    with pytest.raises(ImportError, match=f"^convert {tmp_path / 't.csv'}: {remedy}"):
        convert(tmp_path / "t.csv", tmp_path / "folder")
    with pytest.raises(ImportError, match=f"^open a table of arrays in memory: {remedy}"):
        open_table({"a": np.arange(3)})
    result = table.select("key").collect()
    with pytest.raises(ImportError, match=f"^a result as Arrow has it: {remedy}"):
        result.to_arrow()

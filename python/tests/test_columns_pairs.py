"""Joins in which a row meets any number of others: what is refused, and what runs again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.columns import open_table, sql
from penstock.columns.statements import prepared

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def opened(**columns: Any) -> Any:
    return open_table({name: np.array(values) for name, values in columns.items()}, executor="cpu")


def test_more_pairs_than_memory_has_room_for_are_refused() -> None:
    table = open_table({"k": np.zeros(1 << 22, np.int64), "v": np.arange(1 << 22)}, executor="cpu")
    with pytest.raises(ValueError, match=f"a join has {1 << 44} rows, and memory has room for"):
        sql("SELECT sum(a.v * b.v) FROM t a JOIN t b ON a.k = b.k", t=table)


def test_keys_of_types_that_do_not_go_together_are_refused() -> None:
    table = opened(k=[1, 1], s=["a", "b"])
    with pytest.raises(ValueError, match="a join: column key 0 is int64 and string: cast one"):
        sql("SELECT count(*) FROM t a FULL JOIN t b ON a.k = b.s", t=table)


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        ("t LEFT JOIN u ON t.k = u.k", 6),
        ("u LEFT JOIN t ON t.k = u.k", 5),
        ("t LEFT JOIN u ON t.k = u.k AND t.v = 1 AND u.w > 5", 4),
        ("t LEFT JOIN u ON t.k = u.k AND false", 4),
        ("t FULL JOIN u ON true", 12),
        ("t FULL JOIN u ON false", 7),
        ("t FULL JOIN (SELECT max(w) AS w FROM u) s ON false", 5),
    ],
)
def test_rows_of_a_join_without_columns_are_counted(join: str, rows: int) -> None:
    tables = {"t": opened(k=[1, 1, 2, 3], v=[1, 2, 3, 4]), "u": opened(k=[1, 1, 4], w=[5, 6, 7])}
    assert sql(f"SELECT count(*) FROM {join}", **tables).item() == rows
    assert sql(f"SELECT 7 AS seven FROM {join}", **tables).rows() == [(7,)] * rows


def test_a_plan_with_pairs_runs_again() -> None:
    table = opened(k=[1, 1, 2], v=[1, 2, 3])
    statement = "SELECT a.v, b.v AS w FROM t a JOIN t b ON a.k = b.k WHERE a.v <= b.v ORDER BY 1, 2"
    assert [sql(statement, t=table).rows() for _ in range(3)] == [[(1, 1), (1, 2), (2, 2), (3, 3)]] * 3


def test_explain_says_what_is_done_in_memory() -> None:
    table = opened(k=[1, 1, 2], v=[1, 2, 3])
    joined = prepared("SELECT sum(a.v) FROM t a JOIN t b ON a.k = b.k", {"t": table}).explain()
    assert joined.count("table ") == 3
    assert "inner join, in memory, with" in joined
    ranked = prepared("SELECT k, rank() OVER (ORDER BY v) AS r FROM t", {"t": table}).explain()
    assert "window functions, in memory: rank" in ranked


def test_a_table_before_a_comma_is_refused_behind_on() -> None:
    one, two = opened(k=[1], v=[2]), opened(k=[1, 1])
    with pytest.raises(
        ValueError, match=r"sql: a\.v: ON of a join behind a comma takes no columns of tables"
    ):
        sql("SELECT a.v FROM a, b FULL JOIN b c ON a.v = c.k", a=one, b=two)

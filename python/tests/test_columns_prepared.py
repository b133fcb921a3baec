"""Statements that run again: what their kept plans hold, and when they are planned anew."""

from __future__ import annotations

import datetime
import gc
import multiprocessing
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.columns import Table, convert, open_table, prepared, sql, statements
from penstock.columns.prepared import PreparedPlans

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

JOINED = "SELECT name, sum(v) AS total FROM a JOIN b ON k = id WHERE v < 90 GROUP BY name ORDER BY name"
STATEMENTS = [
    JOINED,
    "SELECT count(*) AS n FROM a WHERE k IN (SELECT id FROM b WHERE name <> 'y')",
    "SELECT k, v FROM a WHERE v > (SELECT avg(v) FROM a) ORDER BY v DESC LIMIT 3",
    "SELECT sum(n) AS n FROM (SELECT k, count(DISTINCT v) AS n FROM a GROUP BY k)",
    "WITH m AS (SELECT k, max(v) AS v FROM a GROUP BY k) SELECT name, v FROM m JOIN b ON k = id ORDER BY 1",
    "SELECT k FROM a UNION SELECT id FROM b ORDER BY 1",
    "SELECT k, stddev(v) AS s FROM a GROUP BY k HAVING count(*) > 2 ORDER BY k",
    "SELECT v AS least FROM a ORDER BY v LIMIT 1",
]


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> PreparedPlans:
    kept = PreparedPlans()
    monkeypatch.setattr(statements, "prepared_plans", kept)
    return kept


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that have been planned."""
    found: list[str] = []
    plan = statements.prepared

    def noted(statement: str, tables: Any) -> Any:
        found.append(statement)
        return plan(statement, tables)

    monkeypatch.setattr(statements, "prepared", noted)
    return found


def written(folder: Path, **columns: Any) -> Path:
    convert(pa.table(columns), folder)
    return folder


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[dict[str, Any]]:
    a = written(tmp_path / "a", k=[1, 2, 3, 1, 2, 1], v=[10, 20, 30, 40, 50, 99])
    b = written(tmp_path / "b", id=[1, 2, 4], name=["x", "y", "z"])
    with open_table(a, executor="cpu") as one, open_table(b, executor="cpu") as two:
        yield {"a": one, "b": two}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_is_planned_once(tables: Any, planned: list[str], statement: str) -> None:
    first = sql(statement, **tables).rows()
    assert first
    assert all(sql(statement, **tables).rows() == first for _ in range(3))
    assert planned == [statement]


def test_other_tables_are_planned_for(tables: Any, planned: list[str], tmp_path: Path) -> None:
    other = open_table(written(tmp_path / "c", id=[1, 2], name=["p", "q"]), executor="cpu")
    assert sql(JOINED, **tables).rows() == [("x", 50), ("y", 70)]
    assert sql(JOINED, a=tables["a"], b=other).rows() == [("p", 50), ("q", 70)]
    assert sql(JOINED, **tables).rows() == [("x", 50), ("y", 70)]
    assert planned == [JOINED, JOINED]


def test_what_is_no_table_is_opened_for_each_run(planned: list[str]) -> None:
    values = {"k": np.array([1, 2])}
    assert sql("SELECT sum(k) FROM t", t=values).item() == 3
    values["k"][0] = 5
    assert sql("SELECT sum(k) FROM t", t=values).item() == 7
    assert len(planned) == 2


@pytest.mark.parametrize("statement", STATEMENTS[:5])
def test_a_changed_file_is_refused_as_before(tables: Any, tmp_path: Path, statement: str) -> None:
    sql(statement, **tables)
    for file in (tmp_path / "a").glob("*.values"):
        os.utime(file, (1, 1))
    with pytest.raises(ValueError, match="has changed since it was opened"):
        sql(statement, **tables)


def test_a_closed_table_is_refused_as_before(tables: Any) -> None:
    sql(JOINED, **tables)
    tables["b"].close()
    with pytest.raises(ValueError, match="the table is closed"):
        sql(JOINED, **tables)


@pytest.mark.parametrize("change", ["closed", "has changed since it was opened"])
def test_a_table_of_one_row_is_read_again(tables: Any, tmp_path: Path, change: str) -> None:
    one = open_table(written(tmp_path / "one", w=[5]), executor="cpu")
    statement = "SELECT k + w AS x FROM a, one ORDER BY x LIMIT 1"
    assert sql(statement, a=tables["a"], one=one).item() == 6
    if change == "closed":
        one.close()
    else:
        for file in (tmp_path / "one").glob("*.values"):
            os.utime(file, (1, 1))
    with pytest.raises(ValueError, match=change):
        sql(statement, a=tables["a"], one=one)


def test_kept_plans_hold_no_tables(tmp_path: Path, plans: PreparedPlans) -> None:
    table = open_table(written(tmp_path / "a", k=[1, 2], v=[3, 4]), executor="cpu")
    for statement in ("SELECT sum(x.v) FROM a x JOIN a y ON x.k = y.k", "SELECT k FROM a LIMIT 1"):
        sql(statement, a=table)
    alive = weakref.ref(table)
    del table
    gc.collect()
    assert alive() is None
    assert len(plans._kept) == 2


def test_plans_of_tables_that_are_gone_are_let_go(tables: Any, tmp_path: Path, plans: PreparedPlans) -> None:
    table = open_table(written(tmp_path / "c", t=["p", "q"]), executor="cpu")
    sql("SELECT upper(t) AS t FROM c ORDER BY t", c=table)
    del table
    gc.collect()
    sql(JOINED, **tables)
    assert [key[0] for key in plans._kept] == [JOINED]


def test_a_plan_of_yesterday_is_not_run(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime.date):
        day = 1

        @classmethod
        def today(cls) -> Any:
            return datetime.date(2030, 1, cls.day)

    real = prepared.result_of

    def over_midnight(plan: Any) -> Any:
        Clock.day = 2
        return real(plan)

    monkeypatch.setattr(datetime, "date", Clock)
    monkeypatch.setattr(statements, "result_of", over_midnight)
    statement = "SELECT k + day(current_date) AS d FROM a ORDER BY d LIMIT 1"
    assert [sql(statement, **tables).item() for _ in range(2)] == [2, 3]


def test_what_is_no_text_is_refused(tables: Any) -> None:
    with pytest.raises(TypeError, match="sql: a statement is a text, not list"):
        sql(["SELECT 1"], **tables)  # type: ignore[arg-type]


def test_kept_plans_hold_no_rows_of_joined_tables(tables: Any, plans: PreparedPlans) -> None:
    sql(JOINED, **tables)
    (kept,) = plans._kept.values()
    query: Any = kept.plan
    assert [way._placed for join in query.query.joins for way in join.ways] == [None]


def test_a_plan_with_another_result_of_its_subquery_is_made_anew(
    tables: Any, plans: PreparedPlans, planned: list[str]
) -> None:
    statement = STATEMENTS[2]
    first = sql(statement, **tables).rows()
    (kept,) = plans._kept.values()
    kept.subqueries[0][1].columns[0].bits = kept.subqueries[0][1].columns[0].bits + np.uint64(1)
    assert sql(statement, **tables).rows() == first
    assert planned == [statement, statement]


def test_texts_of_values_are_not_kept(tables: Any, plans: PreparedPlans) -> None:
    for statement in (
        "SELECT CAST(v AS VARCHAR) AS t FROM a",
        "SELECT count(*) FROM a JOIN b ON CAST(k AS VARCHAR) = name",
        "SELECT sum(v) AS n FROM a GROUP BY k HAVING CAST(sum(v) AS VARCHAR) <> '0'",
    ):
        sql(statement, **tables)
    assert not plans._kept


def test_few_plans_are_kept(tables: Any, plans: PreparedPlans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MOST_PLANS", 2)
    for least in range(4):
        sql(f"SELECT count(*) FROM a WHERE v > {least}", **tables)
    assert [key[0][-1] for key in plans._kept] == ["2", "3"]
    monkeypatch.setattr(prepared, "MOST_BYTES", 16)
    sql("SELECT count(*) FROM (SELECT DISTINCT k, v FROM a)", **tables)
    assert [key[0][-1] for key in plans._kept] == ["2", "3"]


def test_a_forked_process_has_no_plans_and_no_locks_of_its_parent() -> None:
    kept = prepared.prepared_plans
    table = open_table({"k": np.array([1, 1, 2])}, executor="cpu")
    statement = "SELECT sum(n) FROM (SELECT count(*) AS n FROM t GROUP BY k)"
    kept.give(statement, {"t": table}, statements.prepared(statement, {"t": weakref.proxy(table)}))

    def run() -> None:
        assert not kept._kept
        kept.clear()
        assert kept.take("", {}) is None

    child = multiprocessing.get_context("fork").Process(target=run)
    with kept._lock:
        child.start()
    child.join(60)
    child.kill()
    assert child.exitcode == 0
    assert kept._kept


def test_threads_run_a_statement_at_once(tables: Any) -> None:
    expected = sql(JOINED, **tables).rows()
    found: list[Any] = []

    def run() -> None:
        found.extend(sql(JOINED, **tables).rows() for _ in range(20))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [expected] * 80


def test_columns_of_another_table_are_read_in_one_pass(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    native = Table.native.fget  # type: ignore[attr-defined]

    class Counted:
        def __init__(self, of: Any) -> None:
            self.of = of

        def __getattr__(self, name: str) -> Any:
            return getattr(self.of, name)

        def select_kept(self, program: Any, registers: list[int]) -> Any:
            kept.append(len(registers))
            return self.of.select_kept(program, registers)

    monkeypatch.setattr(Table, "native", property(lambda table: Counted(native(table))))
    statement = "SELECT sum(v * id) AS n, min(name) AS m FROM a JOIN b ON k = id WHERE id < 4"
    assert [sql(statement, **tables).rows() for _ in range(3)] == [[(149 + 2 * 70, "x")]] * 3
    assert kept == [2, 2, 2]

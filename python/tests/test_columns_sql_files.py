"""Files that a statement names: opened for it, as DuckDB does, and closed when it has run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.cli.main import main
from penstock.columns import Table, convert, open_table, sql
from penstock.columns.prepared import prepared_plans

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

COVERED = """
select * from 'trips.parquet' order by id;
select word, count(*) from "trips.parquet" group by word order by 1 nulls first;
select trips.word, area from 'trips.parquet' join 'Zones.csv' on trips.zone = zones.zone order by id;
select z.area from 'Zones.csv' z where zone in (select zone from 'trips.parquet') order by 1;
select a.id from 'trips.parquet' a join 'trips.parquet' b on a.id = b.zone order by 1;
select trips.id, rank() over (order by zone) from 'trips.parquet' order by 1;
select late.b from 'late.2024.csv' order by late.b;
select trips.id, z.zone from 'trips.parquet' full join 'Zones.csv' z on trips.zone = z.zone order by 1, 2;
with t as (select * from 'trips.parquet') select count(*) from t
""".strip().split(";\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import pyarrow.parquet as pq

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    trips = {"id": [1, 2, 3, 4], "zone": [1, 1, 2, 7], "word": ["a", "b", None, "a"]}
    pq.write_table(pa.table(trips), "trips.parquet")
    Path("Zones.csv").write_text("zone,area\n1,10\n2,20\n3,30\n")
    Path("late.2024.csv").write_text("a,b\n1,2\n3,1\n")
    return tmp_path


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of tables that were closed."""
    names: list[str] = []
    close = Table.close

    def noted(table: Table) -> None:
        names.append(table.name)
        close(table)

    monkeypatch.setattr(Table, "close", noted)
    return names


@pytest.mark.parametrize("statement", COVERED)
def test_answers_are_those_of_duckdb(statement: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    assert sql(statement).rows() == duckdb.sql(statement).fetchall()


def test_a_file_is_closed_when_its_statement_has_run_or_failed(closed: list[str]) -> None:
    both = "select count(*) from 'trips.parquet' t join '{}' z on t.zone = z.zone"
    assert sql(both.format("Zones.csv")).item() == 3
    assert closed == ["trips.parquet", "Zones.csv"]
    closed.clear()
    with pytest.raises(ValueError, match=r"^open none\.csv: there is no such file"):
        sql(both.format("none.csv"))
    assert closed == ["trips.parquet"]


def test_what_is_given_by_its_path_is_closed_too(closed: list[str]) -> None:
    assert sql("select count(*) from t", t="trips.parquet").item() == 4
    assert closed == ["trips.parquet"]


def test_a_file_is_read_as_it_is_when_the_statement_runs() -> None:
    prepared_plans.clear()
    statement = "select sum(area) from 'Zones.csv'"
    assert sql(statement).item() == 60
    Path("Zones.csv").write_text("zone,area\n1,5\n")
    assert sql(statement).item() == 5


def test_a_folder_of_columns_is_a_table() -> None:
    convert("trips.parquet", "trips")
    assert sql("select max(id) from 'trips'").item() == 4


def test_names_that_are_given_come_first() -> None:
    assert sql("select count(*) from 'trips.parquet'", **{"trips.parquet": {"a": pa.array([1])}}).item() == 1


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("'none.parquet'", r"open none\.parquet: there is no such file"),
        ("'damaged.parquet'", r"open damaged\.parquet: pyarrow cannot read it"),
        ("'notes.txt'", r"open notes\.txt: its name ends in '\.txt'"),
        ("trips.parquet", r"trips\.parquet: the name of a table has one part, and a file stands in quotes"),
        (
            "read_csv('late.2024.csv')",
            r"what stands behind FROM is a table, a subquery, READ_PARQUET or a file in",
        ),
        (f"'{'x' * 300}.csv'", r"open x*\.csv: there is no such file"),
        (f"'{'x' * 300}'", r"no table .*x{300}.*: given are none"),
        ("trips", r"no table 'trips': given are none; write a file in quotes"),
    ],
)
def test_what_is_refused(table: str, sentence: str) -> None:
    for name in ("damaged.parquet", "notes.txt"):
        Path(name).write_text("nothing")
    with pytest.raises((ValueError, KeyError), match=sentence) as refusal:
        sql(f"select * from {table}")
    assert "\n" not in str(refusal.value)


def test_the_command_takes_files_of_the_statement(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "select max(id) from 'trips.parquet'", "--executor", "cpu"]) == 0
    assert "1 row in" in capsys.readouterr().out
    before = Path("Zones.csv").read_text()
    assert main(["sql", "select * from 'Zones.csv'", "-o", "Zones.csv"]) == 2
    assert "it is the input" in capsys.readouterr().err
    assert Path("Zones.csv").read_text() == before


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("executor", "cpu"),
        ("threads", 2),
        ("placement", None),
        ("direct", True),
        ("columns", ["id"]),
        ("progress", print),
        ("memory", "1.5GiB"),
        ("memory", np.int64(3)),
    ],
)
def test_options_of_tables_are_no_tables(name: str, given: Any) -> None:
    Path("cpu").mkdir()
    sentence = f"^sql: {name}= would be a table, and the statement names none that is called so: options go"
    for source in ("'trips.parquet'", f"(select id as {name} from 'trips.parquet')"):
        with pytest.raises(TypeError, match=sentence):
            sql(f"select count(*) from {source}", **{name: given})


def test_a_table_may_be_called_as_an_option_is() -> None:
    trips = open_table("trips.parquet", executor="cpu")
    named = {"executor": trips, "columns": {"a": np.arange(3)}}
    assert sql("select count(*) from executor, columns where id = a", **named).item() == 2
    assert sql("select count(*) from (select max(a) from Media)", media="late.2024.csv").item() == 1
    assert sql("select 1", executor=trips).item() == 1


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        ("t pivot (sum(id) for zone in (1, 2))", "PIVOT is not covered here"),
        ("t unpivot (a for b in (id, zone))", "UNPIVOT is not covered here"),
        ("t limit 10%", "LIMIT 10 PERCENT: LIMIT with PERCENT or WITH TIES is not covered here"),
        ("t for update", "FOR UPDATE is not covered here"),
        ("t order by id fetch first 2 rows only", "FETCH is not covered here"),
        ("t at (version => 3)", "AT is not covered here"),
        ("t as x(b)", "an alias with names of columns is covered behind subqueries only"),
        ("(t join u on t.id = u.id)", "JOIN in brackets is not covered here"),
        (
            "unnest([1, 2])",
            "what stands behind FROM is a table, a subquery, READ_PARQUET or a file in quotes here",
        ),
        (
            "t, lateral (select 1)",
            "what stands behind FROM is a table, a subquery, READ_PARQUET or a file in quot",
        ),
        ("t, t u where t.id > u.id", r"sql: t AS u: it has no key"),
    ],
)
def test_parts_are_called_as_the_statement_calls_them(rest: str, sentence: str) -> None:
    with open_table("trips.parquet", executor="cpu") as trips, pytest.raises(ValueError, match=sentence):
        sql(f"select * from {rest}", t=trips, u=trips)


def test_with_may_say_that_its_rows_are_kept() -> None:
    for how in ("materialized", "not materialized"):
        assert sql(f"with t as {how} (select id from 'trips.parquet') select sum(id) from t").item() == 10

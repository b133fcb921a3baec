"""Statements of sql/*.sql: rows, values, types and order are DuckDB's."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from penstock.columns import Table, open_table, sql
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

import duckdb
from sql_statements import statements, tables


@pytest.fixture(scope="module")
def peer() -> Any:
    connection = duckdb.connect()
    for name, table in tables().items():
        connection.register(name, table)
    return connection


@pytest.fixture(params=DEVICES, scope="module")
def given(request: pytest.FixtureRequest) -> Iterator[dict[str, Table]]:
    executor: Any = "cuda" if "cuda" in str(request.param) else "cpu"
    with ExitStack() as opened:
        yield {
            name: opened.enter_context(open_table(table, executor=executor))
            for name, table in tables().items()
        }


def alike(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, datetime.datetime) and type(mine) is datetime.date:
        return datetime.datetime(mine.year, mine.month, mine.day) == theirs
    if type(mine) is not type(theirs):
        return False
    if isinstance(theirs, float):
        both = math.isnan(mine) and math.isnan(theirs)
        return both or mine == theirs or math.isclose(mine, theirs, rel_tol=1e-12)
    if isinstance(theirs, decimal.Decimal):
        return bool(mine.as_tuple() == theirs.as_tuple())
    return bool(mine == theirs)


def in_any_order(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
    numbers = (int, float, decimal.Decimal)
    return [(v is None, f"{v:.9g}" if isinstance(v, numbers) else str(v)[:10]) for v in row]


@pytest.mark.parametrize("statement", statements())
def test_answers_are_those_of_duckdb(given: dict[str, Table], peer: Any, statement: str) -> None:
    sql(statement, **given)
    mine, theirs = sql(statement, **given).rows(), peer.sql(statement).fetchall()  # planned before
    if "order by" not in statement.split(")")[-1]:
        mine, theirs = sorted(mine, key=in_any_order), sorted(theirs, key=in_any_order)
    assert len(mine) == len(theirs)
    for row, other in zip(mine, theirs, strict=True):
        assert all(map(alike, row, other)), (row, other)

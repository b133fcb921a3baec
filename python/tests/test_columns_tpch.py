"""TPC-H's queries by penstock.sql, over tables of tpchgen-cli: answers are DuckDB's."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from penstock.columns import open_table, sql
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
duckdb: Any = pytest.importorskip("duckdb", reason="duckdb is not installed")
if shutil.which("tpchgen-cli") is None:
    pytest.skip("tpchgen-cli is not installed", allow_module_level=True)

FOLDER = Path(__file__).parents[2] / "benchmarks"
NUMBERS = [*(f"tpch.q{number}" for number in range(1, 23)), *(f"ssb.q{flight}.{k}" for flight, k in (
    (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (3, 4), (4, 1), (4, 2), (4, 3)
))]  # fmt: skip
WITHOUT_ROWS = ("ssb.q2.3", "ssb.q3.3", "ssb.q3.4")
"""Of so few rows."""


@pytest.fixture(scope="module")
def benchmark() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return importlib.import_module("tpch_queries")


@pytest.fixture(scope="module")
def paths(benchmark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found: dict[str, Path] = benchmark.drawn(
        tmp_path_factory.mktemp("tpch"), 0.01, benchmark.STATEMENTS.values()
    )
    return found


@pytest.fixture(params=DEVICES, scope="module")
def tables(
    paths: dict[str, Path], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    executor: Any = "cuda" if "cuda" in str(request.param) else "cpu"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        made = {name: open_table(path, executor=executor) for name, path in paths.items()}
    yield made
    for table in made.values():
        table.close()


@pytest.fixture(scope="module")
def peer(paths: dict[str, Path]) -> Any:
    connection = duckdb.connect()
    for name, path in paths.items():
        connection.execute(f"create table {name} as select * from '{path}'")
    return connection


@pytest.mark.parametrize("number", NUMBERS)
def test_answers_are_those_of_duckdb(benchmark: Any, peer: Any, tables: Any, number: str) -> None:
    statement = benchmark.STATEMENTS[number]
    expected = peer.execute(statement).fetchall()
    found = sql(statement, **tables).rows()
    assert benchmark.same(found, expected), (found[:2], expected[:2])
    assert expected or number in WITHOUT_ROWS


def test_all_statements_are_asked(benchmark: Any) -> None:
    assert sorted(NUMBERS) == sorted(benchmark.STATEMENTS)

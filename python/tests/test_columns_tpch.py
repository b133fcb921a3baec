"""TPC-H's queries by penstock.sql, over tables of tpchgen-cli: answers are DuckDB's."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
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

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tpch_queries.py"
NUMBERS = [
    "tpch.q1",
    "tpch.q3",
    "tpch.q5",
    "tpch.q6",
    "tpch.q10",
    "tpch.q12",
    "tpch.q14",
    "tpch.q18",
    "tpch.q19",
]


@pytest.fixture(scope="module")
def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("tpch_queries", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def folder(benchmark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tpch")
    names = ",".join(benchmark.COLUMNS)
    subprocess.run(
        ["tpchgen-cli", "parquet", "-s", "0.05", "--output-dir", str(made), "--tables", names], check=True
    )
    return made


@pytest.fixture(params=DEVICES, scope="module")
def tables(
    benchmark: Any, folder: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    executor: Any = "cuda" if "cuda" in str(request.param) else "cpu"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        made = {name: open_table(folder / f"{name}.parquet", executor=executor) for name in benchmark.COLUMNS}
    yield made
    for table in made.values():
        table.close()


@pytest.mark.parametrize("number", NUMBERS)
def test_answers_are_those_of_duckdb(benchmark: Any, folder: Path, tables: Any, number: str) -> None:
    peer = duckdb.connect()
    for name in benchmark.COLUMNS:
        peer.execute(f"create view {name} as select * from '{folder / name}.parquet'")
    statement = benchmark.STATEMENTS[number]
    expected = peer.execute(statement).fetchall()
    found = sql(statement, **tables).rows()
    assert expected
    assert benchmark.same(found, expected), (found[:2], expected[:2])

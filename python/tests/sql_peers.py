"""Two small tables for statements, and DuckDB with the same."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from penstock.columns import Table, open_table
from test_columns_joins import trips, zones

duckdb: Any = pytest.importorskip("duckdb", reason="duckdb is not installed")


def peer_of() -> Any:
    connection = duckdb.connect()
    connection.register("trips", trips().to_arrow())
    connection.register("zones", zones().to_arrow())
    return connection


@contextmanager
def opened(device: str) -> Iterator[dict[str, Table]]:
    executor: Any = "cuda" if "cuda" in device else "cpu"
    with open_table(trips(), executor=executor) as large, open_table(zones(), executor=executor) as small:
        yield {"trips": large, "zones": small}


def comparable(rows: list[Any], ordered: bool) -> list[Any]:
    def same(value: Any) -> Any:
        return f"{float(value):.10g}" if isinstance(value, (int, float, decimal.Decimal)) else value

    made = [tuple(same(value) for value in row) for row in rows]
    return made if ordered else sorted(made, key=str)

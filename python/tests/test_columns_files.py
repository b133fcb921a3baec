"""Files of tables: what commands and open_table refuse, and what conversions leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock.cli.main import main

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where conversions go."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "penstock" / "columns"


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints that exits with 2."""
    capsys.readouterr()
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert printed.startswith("penstock: ")
    return printed


def test_commands_refuse_unknown_names_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    (tmp_path / "nation.csv").write_text("id,name\n1,FRANCE\n9223372036854775807,PERU\n")
    nation = str(tmp_path / "nation.csv")
    line = refused(["sql", "SELECT x FROM nation", nation], capsys)
    assert line.startswith("penstock: sql: there is no column 'x'")
    assert "there are id, name" in line
    assert "there is no table" in refused(["sql", "SELECT id FROM nations", nation], capsys)
    refused(["sql", "SELECT id + id AS twice FROM nation", nation], capsys)
    assert "trip_distance" in refused(["taxi", nation], capsys)
    (tmp_path / "trips.csv").write_text("trip_distance,total_amount\n40,x\n40,y\n")
    refused(["taxi", str(tmp_path / "trips.csv")], capsys)

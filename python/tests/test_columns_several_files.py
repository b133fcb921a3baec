"""Several Parquet files as one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from penstock.cli.main import penstock
from penstock.columns import convert, open_table, sql

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("sqlglot", reason="sqlglot is not installed")


def write(path: str, **columns: Any) -> None:
    import pyarrow.parquet as pq

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    words = np.array(["a", "b", "c", "b"])
    for k in range(4):
        number = pa.array(np.arange(100) + 100 * k, mask=np.arange(100) % 7 == k)
        write(f"data/{k}.parquet", number=number, word=words[np.arange(100) * k % 4], day=[k] * 100)
    return tmp_path


@pytest.mark.parametrize(
    "source", ["'data/*.parquet'", "'data/[12].parquet'", "'**/*.parquet'", "read_parquet('data/?.parquet')",
               "read_parquet(['data/3.parquet', 'data/0.parquet'])", "'data/*.parquet' t"]
)  # fmt: skip
def test_answers_are_those_of_duckdb(source: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    for statement in (
        f"select * from {source}",
        f"select word, count(number), min(day) from {source} where number > 50 group by word order by 1",
    ):
        assert sql(statement).rows() == duckdb.sql(statement).fetchall()


def test_a_list_is_read_in_its_order_and_columns_by_their_names() -> None:
    write("turned.parquet", day=[9], word=pa.array(["z"]).dictionary_encode(), number=[7])
    table = open_table([Path("turned.parquet"), "data/[01].parquet"], executor="cpu")
    assert table.columns == ["day", "word", "number"]
    assert table.select("day").collect()["day"].tolist() == [9, *[0] * 100, *[1] * 100]
    assert table.name == "turned.parquet and 2 more"


def test_files_without_rows_are_none_of_it() -> None:
    write("some/0.parquet", a=pa.array([], pa.int64()))
    write("some/1.parquet", a=pa.array([3], pa.int64()))
    write("some/2.parquet", a=pa.array([], pa.int64()))
    assert open_table("some/*.parquet", executor="cpu").collect().rows() == [(3,)]


def test_a_file_that_is_added_or_changed_is_seen_by_the_next_statement() -> None:
    counted = "select count(*) from 'data/*.parquet'"
    assert sql(counted).item() == 400
    write("data/4.parquet", number=[1], word=["x"], day=[2])
    assert sql(counted).item() == 401
    write("data/4.parquet", number=[1, 2], word=["x", "y"], day=[2, 3])
    assert sql(counted).item() == 402
    Path("data/0.parquet").unlink()
    assert sql(counted).item() == 302


def test_a_pattern_leaves_out_hidden_files() -> None:
    for path in ("data/.hidden.parquet", "data/.part/0.parquet"):
        write(path, number=[1], word=["x"], day=[2])
    for pattern in ("data/*.parquet", "**/*.parquet"):
        assert open_table(pattern, executor="cpu").rows == 400
    assert open_table("data/.*.parquet", executor="cpu").rows == 1


def test_a_conversion_makes_one_folder_of_them() -> None:
    convert("data/*.parquet", "folder")
    assert open_table("folder", executor="cpu").rows == 400


def test_a_name_with_a_star_that_is_there_is_that_file() -> None:
    write("data/*.parquet", a=[1, 2])
    assert open_table("data/*.parquet", executor="cpu").columns == ["a"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"number": [1.5], "word": ["a"], "day": [1]},
         r"^open data/x\.parquet: column 'number' is float64, and int64 in data/0\.parquet: give files that"),
        ({"number": [1], "day": [1]}, r"^open data/x\.parquet: data/x\.parquet has no column 'word', data/0"),
        ({"number": [1], "word": ["a"], "day": [1], "more": [1]},
         r"^open data/x\.parquet: data/0\.parquet has no column 'more', data/x\.parquet has: give files"),
        ({"number": [[1]], "word": ["a"], "day": [1]},
         r"column 'number' is list<element: int64>, and int64 in data/0\.parquet: "),
    ],
)  # fmt: skip
def test_other_columns_are_refused_before_anything_is_converted(
    columns: dict[str, Any], sentence: str, folder: Path
) -> None:
    write("data/x.parquet", **columns)
    with pytest.raises(ValueError, match=sentence):
        open_table("data/*.parquet")
    assert not [*folder.glob("cache/penstock/columns/*")]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("data/*.pq", r"^open data/\*\.pq: there is no file with such a name: mend the pattern, or"),
        (["data/0.parquet", "data/*.pq"], r"^open data/\*\.pq: there is no file"),
        (["data/0.parquet", "none.parquet"], r"^open none\.parquet: there is no such file"),
        ([], r"^open a list of files: it is empty: name Parquet files"),
        (
            ["data/0.parquet", "a.csv"],
            r": a\.csv is no Parquet file, and several files are a table where all ",
        ),
    ],
)
def test_what_is_no_list_of_parquet_files_is_refused(
    source: Any, sentence: str, folder: Path, tmp_path: Path
) -> None:
    Path("a.csv").write_text("number\n1\n")
    for operation in (open_table, lambda source: convert(source, tmp_path / "made")):
        with pytest.raises(ValueError, match=sentence):
            operation(source)


@pytest.mark.parametrize("operation", [lambda s: open_table([s]), lambda s: convert(s, "made")])
def test_a_folder_is_no_file(operation: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^open data: it is a folder: name its files, as in 'data/\*\.parquet'"
    ):
        operation("data")
    convert("data/0.parquet", "folder")
    with pytest.raises(ValueError, match=r"^open folder: it is a folder of columns: open it by itself"):
        operation("folder")


def test_options_of_read_parquet_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"READ_PARQUET takes the name of a file or a list of names here, and no"
    ):
        sql("select count(*) from read_parquet('data/*.parquet', filename=true)")


def test_a_damaged_file_is_named() -> None:
    Path("data/2.parquet").write_bytes(Path("data/2.parquet").read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(ValueError, match=r"^open data/2\.parquet: pyarrow cannot read it"):
        open_table("data/*.parquet")


@pytest.mark.parametrize("arguments", [["'data/*.parquet'"], ["t", "t=data/*.parquet"]])
def test_the_command_takes_patterns_and_does_not_overwrite_their_files(arguments: list[str]) -> None:
    statement = f"select count(*) from {arguments[0]}"
    ran = CliRunner().invoke(penstock, ["sql", statement, *arguments[1:], "--executor", "cpu"])
    assert "400" in ran.output
    before = Path("data/1.parquet").read_bytes()
    ran = CliRunner().invoke(penstock, ["sql", statement, *arguments[1:], "-o", "data/1.parquet"])
    assert "-o data/1.parquet: it is the input data/1.parquet: name another file" in str(ran.exception)
    assert Path("data/1.parquet").read_bytes() == before


def test_trips_of_several_months_are_queried_together() -> None:
    trips = {"trip_distance": [40.0, 2.0], "total_amount": [100.0, 9.0]}
    write("trips/01.parquet", **trips)
    write("trips/02.parquet", **trips)
    ran = CliRunner().invoke(penstock, ["taxi", "trips/*.parquet", "--executor", "cpu"])
    assert "trips/*.parquet: 4 trips" in ran.output


def test_trips_are_drawn_into_a_folder_whose_name_is_like_a_pattern() -> None:
    for _ in range(2):
        ran = CliRunner().invoke(penstock, ["taxi", "tr[1]", "--rows", "10", "--executor", "cpu"])
        assert "tr[1]: 10 trips" in ran.output
    ran = CliRunner().invoke(penstock, ["taxi", "trips/*"])
    assert "open trips/*: there is no file with such a name" in str(ran.exception)

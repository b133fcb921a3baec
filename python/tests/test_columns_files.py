"""Files of tables: what commands and open_table refuse, and what conversions leave behind."""

from __future__ import annotations

import errno
import gzip
import os
import re
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock import Error
from penstock.cli.main import main
from penstock.columns import col, convert, open_table, packing
from penstock.columns.messages import one_line

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


def write_numbers(path: Path, rows: int = 1000) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": range(rows), "t": ["a", "b"] * (rows // 2)}), path)
    return path


def test_threads_that_open_a_file_at_once_share_one_conversion(tmp_path: Path, cache: Path) -> None:
    path = write_numbers(tmp_path / "numbers.parquet", 200_000)
    meet = threading.Barrier(6)

    def sum_of(_: int) -> Any:
        meet.wait()
        with open_table(path, executor="cpu") as table:
            return table.agg(col("n").sum()).collect().item()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(sum_of, range(6))) == {sum(range(200_000))}
    assert len([*cache.iterdir()]) == 1
    (kept,) = cache.iterdir()
    (kept / "table.json").unlink()
    with open_table(path, executor="cpu") as table:  # what is incomplete is written anew
        assert table.rows == 200_000


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    convert(pa.table({"a": range(7)}), tmp_path / "folder")
    monkeypatch.chdir(tmp_path)
    with open_table("folder") as folder, open_table({"a": "a.npy"}) as arrays:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        assert folder.filter(col("a") > 2).agg(n=col("a").count()).collect().rows() == [(4,)]
        assert arrays.agg(n=col("a").sum()).collect().rows() == [(10,)]
        np.save(tmp_path / "a.npy", np.arange(50))
        with pytest.raises(ValueError, match=r"a\.npy has changed"):
            arrays.agg(n=col("a").sum()).collect()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_file_that_changes_while_it_is_converted_is_refused(
    suffix: str, tmp_path: Path, cache: Path
) -> None:
    from pyarrow import csv, parquet

    path = tmp_path / f"t.{suffix}"
    (parquet.write_table if suffix == "parquet" else csv.write_csv)(pa.table({"a": range(100)}), path)

    def change(*_: Any) -> None:
        os.utime(path, (1, 1))

    with pytest.raises(ValueError, match=rf"^open {path}: {path} has changed while it was read: try again "):
        open_table(path, progress=change)
    os.utime(path, (2, 2))
    with pytest.raises(ValueError, match=rf"^convert to .*: {path} has changed while it was read: try again"):
        convert(path, tmp_path / "folder", progress=change)
    assert not [*cache.iterdir()]
    assert not (tmp_path / "folder").exists()
    assert open_table(path, executor="cpu").rows == 100


def test_a_folder_that_appears_during_a_conversion_stays(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def appear(*_: Any) -> None:
        target.mkdir(exist_ok=True)
        (target / "mine").write_text("kept")

    with pytest.raises(ValueError, match="it is there already: name a new folder"):
        convert(pa.table({"n": [1]}), target, progress=appear)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
    assert (target / "mine").read_text() == "kept"


KILLED = """
import os, signal, sys
import pyarrow as pa
from penstock.columns import convert
def batches():
    yield pa.record_batch({"n": [1]})
    print("writing", flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
convert(pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), batches()), sys.argv[1])
"""


def test_what_a_killed_conversion_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".mine-00000000").mkdir()
    command = [sys.executable, "-c", KILLED, str(tmp_path / "first")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        convert(pa.table({"n": [1]}), tmp_path / "second")
        assert len([*tmp_path.glob(".first-*/draft")]) == 1  # its process runs
        process.stdin.close()
        process.wait()
    assert len([*tmp_path.glob(".first-*")]) == 1
    convert(pa.table({"n": [1]}), tmp_path / "third")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".mine-00000000", "second", "third"]


def test_a_full_disk_names_the_folder_and_what_to_do(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_numbers(tmp_path / "numbers.parquet")
    (tmp_path / "plain").write_text("")
    with pytest.raises(Error, match=r"convert to .*plain/new: .*plain cannot be written: "):
        convert(path, tmp_path / "plain" / "new")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "plain"))
        with pytest.raises(Error, match=r"open .*numbers.parquet: .*plain.* set XDG_CACHE_HOME"):
            open_table(path)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(packing.ValuesFile, "append", full)
    with pytest.raises(Error, match=rf"{cache} cannot be written: No space left on device: .*XDG") as raised:
        open_table(path)
    assert raised.value.errno == errno.ENOSPC
    assert not [*cache.iterdir()]
    with pytest.raises(Error, match="No space left on device: make room, or name another folder"):
        convert(path, tmp_path / "folder")
    with pytest.raises(Error, match="No space left on device: make room, or set TMPDIR"):
        open_table(pa.table({"n": [1]}))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cache", "numbers.parquet", "plain"]


def test_an_error_of_who_watches_progress_stays_what_it_is(tmp_path: Path) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EPIPE, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        convert(pa.table({"n": [1]}), tmp_path / "folder", progress=fail)
    assert not [*tmp_path.iterdir()]


def test_convert_checks_memory_and_threads(tmp_path: Path) -> None:
    table = pa.table({"n": [1]})
    convert(table, tmp_path / "folder", memory="1MiB")
    for options, sentence in (
        ({"memory": -1}, "memory -1: it cannot be negative"),
        ({"memory": "much"}, "memory 'much': write it as 16MiB"),
        ({"threads": -1}, "threads -1: it must be 0 or more"),
        ({"threads": 10**6}, "threads 1000000: it must be 1024 or less"),
    ):
        with pytest.raises(ValueError, match=sentence):
            convert(table, tmp_path / "none", **options)


def test_a_damaged_folder_names_the_file(tmp_path: Path) -> None:
    convert(pa.table({"t": ["a"]}), tmp_path / "folder")
    (tmp_path / "folder" / "0000.words.json").write_text("{}")
    with pytest.raises(ValueError, match=r"folder: 0000\.words\.json is no list of texts"):
        open_table(tmp_path / "folder")
    (tmp_path / "folder" / "0000.words.json").unlink()
    with pytest.raises(ValueError, match=r"folder: 0000\.words\.json, .*: No such file or directory: write"):
        open_table(tmp_path / "folder")
    facts = (tmp_path / "folder" / "table.json").read_text()
    damaged = re.sub(r'"bits": \d+', '"bits": 64', facts.replace('"int64"', '"packed"'))
    (tmp_path / "folder" / "table.json").write_text(damaged)
    (tmp_path / "folder" / "0000.words.json").write_text('["a"]')
    with pytest.raises(ValueError, match=r"table\.json is damaged: values of column 't' have 64 bits"):
        open_table(tmp_path / "folder")
    (tmp_path / "folder" / "table.json").write_text("[]")
    with pytest.raises(ValueError, match=r"table\.json is damaged"):
        open_table(tmp_path / "folder")


BLOCK = 1 << 16
VALUES = [
    *("", "NA", "1", "0", "-7", "12345678901", "1.5", "99999999999999999999", "nan", "true", "false"),
    *("2020-01-31", "2020-01-31 10:00:00", "1600-01-01 00:00:00", "2020-01-31 10:00:00.25"),
    *("2020-01-31 10:00:00Z", "x", '"a,b"', '"two\nlines"'),
]


def contents(path: Path, folder: Path, memory: str) -> Any:
    convert(path, folder, memory=memory)
    with open_table(folder, executor="cpu") as table:
        return table.schema, list(map(str, table.collect().rows()))


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.lists(st.lists(st.sampled_from(VALUES), min_size=2, max_size=2), min_size=1, max_size=4),
)
def test_types_of_csv_do_not_depend_on_memory(
    kinds: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    filler = "f" * 1000
    rows = [f"{a},{b},{filler}" for a, b in kinds for _ in range(90)]
    (folder / "t.csv").write_text("\n".join(["a,b,filler", *rows]) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = contents(folder / "t.csv", folder / "few", "64KiB")
        assert few == contents(folder / "t.csv", folder / "all", "1GiB")


def test_later_rows_of_csv_widen_types(tmp_path: Path) -> None:
    rows = 30_000
    lines = [f"{k},{k},,2020-01-01,{k % 2}" for k in range(rows)]
    lines += ["7,7.5,9,soon,true"]
    (tmp_path / "t.csv").write_text("\n".join(["whole,half,late,day,flag", *lines]) + "\n")
    with open_table(tmp_path / "t.csv", executor="cpu", memory="1MiB") as table:
        assert {name: str(kind) for name, kind in table.schema.items()} == {
            "whole": "int64", "half": "float64", "late": "int64", "day": "string", "flag": "boolean",
        }  # fmt: skip
        assert table.take([1, rows]).rows() == [(1, 1.0, None, "2020-01-01", True), (7, 7.5, 9, "soon", True)]


WIDEST = "99999999999999999999"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([WIDEST, "1"], "string"),
        (["1", f" -{WIDEST}"], "string"),
        (["", WIDEST, ""], "string"),
        (["9223372036854775808"], "string"),
        (["9223372036854775807", "-9223372036854775808"], "int64"),
        ([WIDEST, "1.5"], "float64"),
        (["1e3", WIDEST], "float64"),
        (["+7"], "float64"),
        (["+7", "5"], "float64"),
        (["5", "+7"], "float64"),
        ([f"+{WIDEST}", "1"], "string"),
        (["1", f"+{WIDEST}"], "string"),
        (["+7", WIDEST], "string"),
        ([WIDEST, "+7"], "string"),
        (["+9007199254740993", "1"], "string"),
        (["9007199254740993", "+7"], "string"),
        ([f"+{WIDEST}", "1.5"], "float64"),
        ([WIDEST, "x"], "string"),
    ],
)
@pytest.mark.parametrize("between", [1, 30_000])
def test_integers_of_csv_beyond_64_bits_keep_their_digits(
    values: list[str], kind: str, between: int, tmp_path: Path
) -> None:
    rows = [each for value in values for each in [value] * between]
    (tmp_path / "t.csv").write_text("\n".join(["a,k", *(f"{each},{k}" for k, each in enumerate(rows))]))
    with open_table(tmp_path / "t.csv", executor="cpu", memory="1MiB") as table:
        assert [str(each) for each in table.schema.values()] == [kind, "int64"]
        if kind == "string":
            assert [each or "" for each in table.collect()["a"]] == rows
        assert table.collect()["k"].tolist() == [*range(len(rows))]


def test_csv_with_long_rows_and_without_rows(tmp_path: Path) -> None:
    def opened(text: str | bytes, name: str = "t.csv") -> Any:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        with open_table(path, executor="cpu", memory="64KiB") as table:
            return [(name, str(kind)) for name, kind in table.schema.items()], table.collect().rows()

    long = "y" * (3 * BLOCK)
    assert opened(f"a,b\n1,x\n2,{long}\n3,z\n")[1] == [(1, "x"), (2, long), (3, "z")]
    many = "1,x\n" * BLOCK
    assert opened(f"a,b\n{many}2,{long}\n")[1][-1] == (2, long)
    text = [("a", "string"), ("b", "string")]
    assert opened("a,b\n") == (text, [])
    assert opened("a,b") == (text, [])
    assert opened(gzip.compress(b"a,b"), "t.csv.gz") == (text, [])
    assert opened("a,b\n1,\n2,\n") == ([("a", "int64"), ("b", "string")], [(1, None), (2, None)])
    with pytest.warns(UserWarning, match=r"'b' \(it is time32.*: write it as a number, a date, a timestamp"):
        opened("a,b\n1,10:00:00\n")
    with pytest.raises(ValueError, match=r"open .*t\.csv: .*Empty CSV"):
        opened("")


def test_empty_fields_of_csv_are_nulls_and_words_are_not(tmp_path: Path, sql_peer: Any) -> None:
    late = "".join(f"{k},{k},t{k}\n" for k in range(20_000))
    for k, text in enumerate(
        [
            'n,f,s\n1,1.5,x\n2,nan,\n,,""\n3,2,NULL\n4,3,NA\n5,4,nan\n',
            "n,s\n1,NA\n2,null\n",
            "s,n\nNULL,1\n,2\n",
            f"n,f,s\n{late},nan,\n2.5,7,z\n",
            "n\n1\n\n3\n\n",
            "s\nx\n\n\ny\n",
            "\n\nn\n1\n\n2\n",
            "a,b\n1,2\n\n3,4\n\n",
        ]
    ):
        path = tmp_path / f"{k}.csv"
        path.write_text(text)
        with open_table(path, executor="cpu", memory="1MiB") as table:
            theirs = sql_peer.sql(
                f"select * from read_csv('{path}', header = true, sample_size = -1)"
            ).fetchall()
            assert list(map(repr, table.collect().rows())) == list(map(repr, theirs)), text[:50]


class Failing:
    """A stream that raises at its second batch."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        def batches() -> Iterator[Any]:
            yield pa.record_batch({"n": [1]})
            raise RuntimeError(self.message)

        schema = pa.schema({"n": pa.int64()})
        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()


def test_a_stream_that_raises_is_one_short_line() -> None:
    with pytest.raises(
        ValueError, match=r"of a Failing: its Arrow stream has failed: .*no more rows: mend"
    ) as one:
        open_table(Failing("no more rows"))
    assert "Traceback" not in str(one.value)
    with pytest.raises(ValueError, match=r"\\x1b\[31mred.*\.\.\.: mend") as other:
        open_table(Failing("\x1b[31mred" + "x" * 5000))
    assert len(str(other.value)) < 500
    assert str(other.value).isprintable()


def test_errors_of_libraries_become_a_line() -> None:
    for text, line in (
        ("a\0b\nc", "a\\x00b"),
        ("boom. Detail: Python exception: Traceback (most recent call last):\n  File x\nE: boom", "boom"),
        ("Traceback (most recent call last):\n  File x\nKeyError: boom", "KeyError: boom"),
        ("", "ValueError"),
    ):
        assert one_line(ValueError(text)) == line


def test_what_is_no_table_is_refused_with_what_is() -> None:
    with pytest.raises(TypeError, match=r"of a list: give a path, a dict of \.npy files or of arrays"):
        open_table([1, 2])
    with pytest.raises(ValueError, match=r"column 'o' has elements of complex128: .*: give numbers"):
        open_table({"o": np.array([1j])})
    table = open_table({"n": np.arange(3)}, executor="cpu")
    table.close()
    with pytest.raises(ValueError, match="query arrays: the table is closed: open it again"):
        table.collect()


def test_a_damaged_arrow_file_names_the_column(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    table = pa.table({"fine": [1.5] * 100, "late": [2.5] * 100})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    whole = path.read_bytes()
    buffer = struct.pack("<4q", 800, 0, 800, 800)  # where the second column lies in the batch
    assert whole.count(buffer) == 1
    path.write_bytes(whole.replace(buffer, struct.pack("<4q", 800, 0, 1 << 40, 800)))
    with pytest.raises(ValueError, match=r"open .*t\.arrow: column 'late' is damaged: .*: write it anew"):
        open_table(path)
    for damaged in (whole.replace(b"fine", b"f\xffne"), whole[:200], whole.replace(b"ARROW1", b"ARR0W1")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"open .*t\.arrow: .*: write it anew"):
            open_table(path)


def test_a_parquet_page_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"n": [123456789] * 100}), path, **options)
    number = struct.pack("<q", 123456789)
    path.write_bytes(path.read_bytes().replace(number * 50, struct.pack("<q", 123456788) * 50, 1))
    with pytest.raises(ValueError, match=r"t\.parquet: pyarrow cannot read it: .*CRC.*: write it anew"):
        open_table(path)

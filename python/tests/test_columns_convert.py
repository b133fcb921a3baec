"""penstock.columns.convert: what a folder has is what came, bit for bit, by any number of threads."""

from __future__ import annotations

import datetime
import decimal
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.columns import arrow, col, convert, open_table, packing
from penstock.columns.folders import FolderWriter, open_folder
from penstock.columns.types import ColumnType

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

EPOCH = datetime.date(1970, 1, 1)
ROWS = (0, 1, 7, 8, 9, 63, 64, 65, 300)
TYPES = {
    **{name: getattr(pa, name)() for name in ("int8", "int16", "int32", "int64")},
    **{name: getattr(pa, name)() for name in ("uint8", "uint16", "uint32", "uint64")},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "cents": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "code": pa.dictionary(pa.int16(), pa.string()),
    "day": pa.date32(),
    "tick": pa.timestamp("us"),
    "decimal": pa.decimal128(18, 2),
}


@pytest.fixture(autouse=True, scope="module")
def short_pieces() -> Iterator[None]:
    """As of many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "PACK_ROWS", 64)
        patch.setattr(arrow, "PACK_ROWS", 64)
        yield


def whole_numbers(low: int, high: int) -> st.SearchStrategy[Any]:
    near = st.integers(max(low, -3), min(high, 3))
    return st.one_of(near, st.integers(low, high), st.sampled_from([low, high]))


def values_of(name: str) -> st.SearchStrategy[Any]:
    if "int" in name:
        width = int(name.rsplit("t", 1)[-1])
        unsigned = name.startswith("u")
        low, high = (0, 2**width - 1) if unsigned else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
        return whole_numbers(low, high)
    odd = [0.0, -0.0, float("nan"), float("inf"), float("-inf")]
    return {
        "float32": st.one_of(st.floats(width=32), st.sampled_from(odd)),
        "float64": st.one_of(st.floats(), st.sampled_from([*odd, 2.0**52, 2.0**52 - 1, 5e-324, 1.7e308])),
        "cents": st.integers(-(10**6), 10**9).map(lambda cents: cents / 100),
        "flag": st.booleans(),
        "text": st.one_of(st.sampled_from(["", "north", "zürich"]), st.text(max_size=3)),
        "code": st.sampled_from(["a", "b", "c"]),
        "day": st.dates(),
        "tick": st.datetimes(),
        "decimal": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2)),
    }[name]


@st.composite
def tables(draw: st.DrawFn) -> Any:
    """Batches of some columns; long ones repeat what is drawn."""
    rows = draw(st.sampled_from(ROWS))
    columns = {}
    for name in draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4, unique=True)):
        value = values_of(name)
        if draw(st.booleans()):
            value = st.one_of(value, st.none())
        some = draw(st.lists(value, min_size=min(rows, 1), max_size=min(rows, 12)))
        drawn = [some[k * len(some) // rows] for k in range(rows)]  # what is rare may come late
        columns[name] = pa.array(drawn, TYPES[name])
    table = pa.table(columns)
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=3)))
    return [
        batch
        for first, end in zip([0, *cuts], [*cuts, rows], strict=True)
        for batch in table.slice(first, end - first).combine_chunks().to_batches() or [empty(table.schema)]
    ], table


def empty(schema: Any) -> Any:
    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)


def stored_number(value: Any) -> Any:
    """An integer or a float, as a folder has it."""
    match value:
        case datetime.datetime():
            return (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return (value - EPOCH).days
        case decimal.Decimal():
            return int(value.scaleb(2))
    return value


def is_exact(value: float, divisor: float) -> bool:
    with np.errstate(all="ignore"):
        whole = float(np.rint(np.float64(value) * divisor))
    zero = struct.pack("d", value) == struct.pack("d", -0.0)
    return abs(whole) < 2**52 and whole / divisor == value and not zero


def expected_form(kind: ColumnType, values: list[Any]) -> tuple[int, int, float] | None:
    """Bits, base and divisor of values without nulls, by the rule as docs and module state it."""
    width = {"float": kind.width, "integer": kind.width, "boolean": 8}.get(kind.kind, 64)
    divisor = 0.0
    if kind.kind == "float":
        exact = [d for d in packing.DIVISORS if kind.width == 64 and all(is_exact(v, d) for v in values)]
        if not exact:
            return None
        divisor = exact[0]
        values = [round(v * divisor) for v in values]
    bits = (max(values) - min(values)).bit_length()
    return (bits, min(values), divisor) if bits <= min(57, 0.75 * width) else None


def read_column(place: Any, rows: int) -> list[Any]:
    """Values of a file, slowly; None where the validity has no bit."""
    piece = place.pieces[0]
    data = Path(piece.path).read_bytes()
    if place.encoding == "packed":
        assert len(data) == piece.nbytes == (rows * place.packed_bits + 63) // 64 * 8 + 8
        bits = int.from_bytes(data, "little")
        mask = (1 << place.packed_bits) - 1
        assert bits >> rows * place.packed_bits == 0
        values = [(bits >> k * place.packed_bits & mask) + place.base for k in range(rows)]
        if place.divisor:
            values = [value / place.divisor for value in values]
    else:
        values = np.frombuffer(data, place.encoding).tolist()
    if piece.validity is not None:
        valid = int.from_bytes(Path(piece.validity.path).read_bytes(), "little")
        assert valid >> rows == 0
        values = [value if valid >> k & 1 else None for k, value in enumerate(values)]
    if place.type.words is not None:
        values = [None if value is None else place.type.words[value] for value in values]
    return values


def bits_of(values: list[Any]) -> list[Any]:
    return [struct.pack("d", value) if isinstance(value, float) else value for value in values]


def check_folder(folder: Path, table: Any) -> None:
    layout = open_folder(folder)
    assert layout.total == table.num_rows
    for place in layout.columns:
        given_values = [stored_number(value) for value in table[place.name].to_pylist()]
        assert bits_of(read_column(place, table.num_rows)) == bits_of(given_values), place.name
        if None not in given_values and given_values and place.type.kind != "string":
            form = expected_form(place.type, given_values)
            assert (place.encoding == "packed") == (form is not None), place.name
            assert form is None or (place.packed_bits, place.base, place.divisor) == form, place.name


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(given_table=tables())
def test_a_folder_has_what_came(given_table: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    batches, table = given_table
    root = tmp_path_factory.mktemp("convert")
    for threads in (1, 3):
        arrow.convert(batches, table.schema, root / str(threads), threads=threads)
    check_folder(root / "1", table)
    assert contents(root / "1") == contents(root / "3")


def test_many_batches_widen_a_column_again_and_again(tmp_path: Path) -> None:
    rows = np.arange(5000)
    with np.errstate(over="ignore"):
        powers = np.sign(rows % 3 - 1) * (2 ** (rows // 90)).astype(np.int64)
    table = pa.table(
        {
            "wider": powers,
            "finer": np.where(rows < 4000, rows / 4, rows / 1000),
            "rough_at_last": np.where(rows < 4999, rows / 10, 1 / 3),
            "too_wide_at_last": np.where(rows < 4999, rows, 2**62),
            "rarely": pa.array([k if k in (70, 2500) else None for k in range(5000)]),
            "wrapped": np.where(rows < 4000, np.uint64(2**64 - 1), np.uint64(2**64 - 9)),
        }
    )
    arrow.convert(table.to_batches(max_chunksize=130), table.schema, tmp_path / "table")
    check_folder(tmp_path / "table", table)
    encodings = {place.name: place.encoding for place in open_folder(tmp_path / "table").columns}
    assert encodings["rough_at_last"] == "float64"
    assert encodings["too_wide_at_last"] == "int64"
    assert {encodings[name] for name in ("finer", "rarely", "wrapped")} == {"packed"}


def test_the_engine_reads_what_was_converted(tmp_path: Path) -> None:
    table = pa.table(
        {
            "cents": pa.array([0.07, None, 12.5, -3.0] * 50),
            "day": pa.array([None, EPOCH, datetime.date(1969, 12, 24), EPOCH] * 50),
            "text": pa.array(["a", None, "b", ""] * 50),
            "low": pa.array([-(2**63), None, -(2**63) + 5, None] * 50),
        }
    )
    convert(table, tmp_path / "table")
    with open_table(tmp_path / "table", executor="cpu") as ours:
        assert ours.collect().rows() == list(zip(*table.to_pydict().values(), strict=True))


def test_texts_get_codes_as_they_appear(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    words = [f"w{k * 7 % 50}" for k in range(200)] + [None, "late", "w3", "z"] * 40
    table = pa.table({"t": words, "n": range(len(words))})
    convert(table, tmp_path / "stream")
    ways: dict[str, dict[str, Any]] = {
        "groups": {"row_group_size": 77},
        "plain": {"use_dictionary": False},
        "spilled": {"dictionary_pagesize_limit": 64, "data_page_size": 64},
    }
    for name, options in ways.items():
        pq.write_table(table, tmp_path / f"{name}.parquet", **options)
        convert(tmp_path / f"{name}.parquet", tmp_path / name, memory=1 << 10)
        check_folder(tmp_path / name, table)
        listed = [contents(tmp_path / each)["0000.words.json"] for each in (name, "stream")]
        assert listed[0] == listed[1]
    listed_words = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), pa.array(["unused", "used"]))
    convert(pa.table({"t": listed_words}), tmp_path / "listed")
    assert json.loads(contents(tmp_path / "listed")["0000.words.json"]) == ["unused", "used"]


def test_what_is_interrupted_is_refused(tmp_path: Path) -> None:
    table = pa.table({"n": range(500), "t": ["a"] * 500})

    class Stop(BaseException):
        pass

    def stop(what: str, done: int, total: int) -> None:
        if done > 200:
            raise Stop

    with pytest.raises(Stop):
        arrow.convert(table.to_batches(100), table.schema, tmp_path / "part", progress=stop)
    with pytest.raises(ValueError, match=r"table\.json is damaged"):
        open_folder(tmp_path / "part")
    with pytest.raises(Stop):
        convert(table.to_reader(100), tmp_path / "whole", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_progress_counts_rows_in_order(tmp_path: Path) -> None:
    table = pa.table({"n": range(500)})
    seen: list[Any] = []
    convert(table.to_reader(200), tmp_path / "table", progress=lambda *step: seen.append(step))
    assert seen == [("converting rows", done, done) for done in (200, 400, 500)]


def test_the_first_error_is_the_one_raised(tmp_path: Path) -> None:
    def fails(column: Any) -> None:
        raise ValueError("the first rows are damaged")

    def write(threads: int) -> None:
        kinds = {"a": ColumnType("integer")}
        with FolderWriter(tmp_path / str(threads), kinds, threads=threads) as writer:
            writer.put(fails)
            raise ValueError("open x: the next batch is damaged")

    for threads in (1, 4):
        with pytest.raises(ValueError, match="the first rows are damaged"):
            write(threads)


def test_decimals_beyond_64_bits_are_left_out(tmp_path: Path) -> None:
    kind = pa.decimal128(38, 2)
    wide = pa.array([decimal.Decimal(3), None, decimal.Decimal(2) ** 64], kind)
    narrow = pa.array([decimal.Decimal(3), None, decimal.Decimal(5)], kind)
    table = pa.table({"a": [1, 2, 3], "wide": wide, "narrow": narrow})
    with pytest.warns(UserWarning, match=r"1 column is left out: 'wide' \(it has decimals beyond 64 bits: "):
        convert(table.to_reader(1), tmp_path / "table")
    assert not list((tmp_path / "table").glob("0001*"))
    with open_table(tmp_path / "table", executor="cpu") as opened:
        assert opened.agg(col("a").sum(), col("narrow").sum()).collect().rows() == [(6, 8)]
        with pytest.raises(KeyError, match=r"'wide' of .* cannot be used: it has decimals beyond 64 bits"):
            opened.select("wide").collect()
    with pytest.raises(ValueError, match=r"no column that can be used \('wide': it has decimals beyond"):
        convert(table.select(["wide"]), tmp_path / "none")
    hidden = pa.Array.from_buffers(
        kind, 1, [pa.py_buffer(b"\0"), wide.buffers()[1]], null_count=1
    )  # what lies under a null is not looked at
    convert(pa.table({"a": hidden}), tmp_path / "null")


def test_columns_of_unlike_lengths_are_refused(tmp_path: Path) -> None:
    kind = ColumnType("integer")
    with (
        pytest.raises(ValueError, match=r"its columns have \[2, 3\] rows"),
        FolderWriter(tmp_path / "table", {"a": kind, "b": kind}) as writer,
    ):
        writer.put(lambda column: column.add(np.arange(2 if column.name == "a" else 3)))
    with pytest.raises(ValueError, match="damaged"):
        open_folder(tmp_path / "table")

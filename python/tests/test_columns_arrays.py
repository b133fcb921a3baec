"""Columns of tables as arrays, which kernels take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.columns import Table, convert, open_table

pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

ROWS = 50_000
_RNG = np.random.default_rng(7)
COLUMNS: dict[str, Any] = {
    "number": _RNG.integers(-1000, 1000, ROWS).astype(np.int32),
    "price": (_RNG.integers(0, 10**6, ROWS) / 100).astype(np.float64),
    "wild": _RNG.standard_normal(ROWS).astype(np.float32),
    "paid": _RNG.random(ROWS) < 0.5,
    "big": _RNG.integers(0, 1 << 63, ROWS).astype(np.uint64),
}
TOTAL = """
extern "C" __global__ void total(penstock::array<const int> numbers, penstock::array<const float> wild,
                                 double* out) {
  double mine = 0;
  penstock::for_each_index(numbers.size(), [&](auto i) { mine += numbers[i] * double(wild[i]); });
  atomicAdd(out, mine);
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def opened(how: str, folder: Path) -> Table:
    table = pa.table(COLUMNS)
    path = folder / f"table.{how}"
    match how:
        case "npy":
            for name, values in COLUMNS.items():
                np.save(folder / f"{name}.npy", values)
            return open_table({name: folder / f"{name}.npy" for name in COLUMNS})
        case "arrow" | "batches":
            size = ROWS if how == "arrow" else 7001
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table, max_chunksize=size)
            return open_table(path.rename(path.with_suffix(".arrow")))
        case "parquet":
            parquet.write_table(table, path)
            return open_table(path)
    parquet.write_table(table, folder / "source.parquet")
    convert(folder / "source.parquet", folder / "written")
    return open_table(folder / "written")


@pytest.mark.parametrize("how", ["npy", "arrow", "batches", "parquet", "folder"])
def test_a_column_is_an_array_of_its_values(how: str, tmp_path: Path) -> None:
    with opened(how, tmp_path) as table:
        for name, values in COLUMNS.items():
            array = table.array(name, device="cpu")
            assert array.shape == (ROWS,)
            assert array.dtype.name == values.dtype.name
            assert np.array_equal(np.asarray(array[:]), values), name
            array.close()


@pytest.mark.parametrize("placement", ["host", "storage"])
def test_kernels_take_columns(placement: str, tmp_path: Path) -> None:
    with opened("arrow", tmp_path) as table:
        numbers, wild = (table.array(name, placement=placement, device="cpu") for name in ("number", "wild"))
    out = np.zeros(1)
    penstock.kernel(TOTAL, device="cpu")(numbers, wild, out).wait()
    assert np.isclose(out[0], (COLUMNS["number"] * COLUMNS["wild"].astype(np.float64)).sum())
    with pytest.raises(TypeError, match="the array holds float32: declare penstock::array<const float>"):
        penstock.kernel(TOTAL, device="cpu")(wild, wild, out)


def test_columns_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    words = pa.table({"word": ["a", "b"], "some": pa.array([1, None], pa.int32()), "number": [1, 2]})
    parquet.write_table(words, tmp_path / "words.parquet")
    with open_table(tmp_path / "words.parquet") as table:
        with pytest.raises(ValueError, match=r"'word' of .*: it holds string, and an array numbers"):
            table.array("word")
        with pytest.raises(
            ValueError, match=r"'some' of .*: it has nulls, and an array has a number in each row"
        ):
            table.array("some")
        with pytest.raises(KeyError, match="there is no column 'none'"):
            table.array("none")
        with pytest.raises(ValueError, match="placement"):
            table.array("number", placement="nowhere")


def test_a_table_from_memory_gives_what_lies_in_one_piece() -> None:
    with open_table(pa.table({"wild": COLUMNS["wild"], "few": COLUMNS["number"] % 4})) as table:
        array = table.array("wild", device="cpu")
        with pytest.raises(ValueError, match="it lies packed in a temporary folder: write the table with"):
            table.array("few", device="cpu")
    assert np.array_equal(np.asarray(array[:]), COLUMNS["wild"])

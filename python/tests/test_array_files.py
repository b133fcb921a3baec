"""Files that arrays are in: safetensors, Arrow, .npy, raw; and files that hold none."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import table
from penstock.arrays.dtypes import dtype_named
from penstock.arrays.layout import find_layout


def opened(path: Path, **options: Any) -> penstock.Array:
    return penstock.open(path, placement="host", device="cpu", **options)


def _safetensors(path: Path, tensors: dict[str, tuple[str, np.ndarray[Any, Any]]]) -> Path:
    header, data = {"__metadata__": {"made": "here"}}, b""
    entries: dict[str, Any] = dict(header)
    for name, (kind, content) in tensors.items():
        entries[name] = {
            "dtype": kind,
            "shape": content.shape,
            "data_offsets": [len(data), len(data) + content.nbytes],
        }
        data += content.tobytes()
    text = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_tensors_of_a_safetensors_file(tmp_path: Path) -> None:
    first, second = table(10, 3), table(20, 5, "int16")
    path = _safetensors(tmp_path / "model.safetensors", {"one": ("F32", first), "two": ("I16", second)})
    with opened(path, name="two") as array:
        np.testing.assert_array_equal(np.asarray(array[:]), second)
    with pytest.raises(ValueError, match=r"it has 2 tensors: name one of them \(one, two\)"):
        opened(path)
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="no safetensors file"):
        opened(path)
    path.write_bytes(struct.pack("<Q", 4) + b"nope" + bytes(100))
    with pytest.raises(ValueError, match="malformed"):
        opened(path, name="one")


def test_columns_of_an_arrow_file(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    numbers, lists = np.arange(1000, dtype=np.int64), table(1000, 4)
    column = pa.FixedSizeListArray.from_arrays(pa.array(lists.ravel()), 4)
    path = tmp_path / "table.arrow"
    whole = pa.table({"n": numbers, "v": column, "s": ["x"] * 1000})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
        writer.write_table(whole)
    with opened(path, name="n") as array:
        np.testing.assert_array_equal(np.asarray(array[[999, 0]]), [999, 0])
    with opened(path, name="v") as array:
        np.testing.assert_array_equal(np.asarray(array[[999, 0]]), lists[[999, 0]])
    with pytest.raises(ValueError, match="give one of numbers"):
        opened(path, name="s")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: p.write_bytes(b"no numpy"), "no .npy file"),
        (lambda p: np.save(p, np.asfortranarray(table())), "Fortran order"),
        (lambda p: np.save(p, table().astype(">f4")), "little-endian"),
        (lambda p: np.save(p, table().astype(complex)), "dtype complex128"),
        (lambda p: np.save(p, np.float32(3)), "no dimensions"),
        (lambda p: np.save(p, np.zeros((5, 0))), "no elements"),
    ],
)
def test_files_that_are_no_arrays(tmp_path: Path, make: Any, words: str) -> None:
    path = tmp_path / "bad.npy"
    make(path)
    with pytest.raises(ValueError, match=words):
        find_layout(path) if "dimensions" not in words and "elements" not in words else opened(path)


def test_raw_files_need_to_be_described(tmp_path: Path) -> None:
    path = tmp_path / "raw.bin"
    path.write_bytes(bytes(100))
    with pytest.raises(ValueError, match="give dtype"):
        opened(path)
    with pytest.raises(ValueError, match="needs 120 bytes, and the file has 100"):
        opened(path, dtype="float32", shape=(30,))
    with opened(path, dtype="int32") as array:
        assert array.shape == (25,)
    with pytest.raises(ValueError, match="arrays have none such"):
        dtype_named("complex64")
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "none.npy")

"""What arrays refuse: results that cannot be written to, row numbers and values that are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.arrays import libraries


@pytest.fixture(params=["numpy", "torch"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    else:
        monkeypatch.setattr(libraries, "has_torch", lambda: False)
    return str(request.param)


def table(rows: int = 100, width: int = 7, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return (np.arange(rows * width) % 251).reshape(rows, width).astype(dtype)


def opened(folder: Path, content: np.ndarray[Any, Any], **options: Any) -> penstock.Array:
    np.save(folder / "array.npy", content)
    return penstock.open(folder / "array.npy", placement="host", device="cpu", **options)


@pytest.fixture
def array(tmp_path: Path, library: str) -> Iterator[penstock.Array]:
    """Of the library's results."""
    with opened(tmp_path, table()) as made:
        yield made


def of_library(library: str, given: np.ndarray[Any, Any]) -> Any:
    if library == "numpy":
        return given
    import torch

    return torch.from_numpy(given)


def test_a_read_only_result_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "has_torch", lambda: False)
    out = np.zeros((2, 7), np.float32)
    out.flags.writeable = False
    with opened(tmp_path, table()) as array:
        for call in (array.gather, array.gather_async):
            with pytest.raises(ValueError, match="out is read-only: give one that may be written to"):
                call([3, 5], out=out)
        np.save(tmp_path / "out.npy", out)
        with opened(tmp_path, out) as other, pytest.raises(ValueError, match="out is read-only"):
            array.gather([3, 5], out=other.numpy())
    assert not out.any()


def test_a_result_is_a_contiguous_array_in_this_byte_order(tmp_path: Path, array: Any, library: str) -> None:
    for out, words in [
        (of_library(library, np.zeros((2, 14), np.float32))[:, ::2], "out is not contiguous"),
        ([[0.0] * 7] * 2, "out of type list: it must be what gather gives"),
        (np.zeros((2, 7), ">f4"), "out of >f4"),
        (of_library(library, np.zeros((7, 2), np.float32)), r"out of float32 \(7, 2\): the rows are"),
    ]:
        with pytest.raises(ValueError, match=words):
            array.gather([3, 5], out=out)


def test_a_result_shares_no_memory_with_what_is_read(library: str) -> None:
    content = of_library(library, table(100, 1, "int64"))
    with penstock.from_tensor(content, device="cpu") as array:
        with pytest.raises(ValueError, match="out overlaps the array: give memory of its own"):
            array.gather([3, 5], out=content[1:3])
        rows = of_library(library, np.array([[3], [5]]))
        with pytest.raises(ValueError, match="out overlaps the row numbers"):
            array.gather(rows.reshape(2), out=rows)
        beside = of_library(library, np.zeros((4, 1), np.int64))
        array.gather(beside[2:].reshape(2), out=beside[:2])
    cached = penstock.from_tensor(content, "host-cached", device="cpu")
    with cached, pytest.raises(ValueError, match="out overlaps the array"):
        cached.gather([3, 5], out=content[1:3])


def test_unsigned_row_numbers_do_not_become_negative(array: Any, library: str) -> None:
    good = np.array([0, 99], np.uint64)
    np.testing.assert_array_equal(np.asarray(array[of_library(library, good)]), table()[[0, 99]])
    for number in (2**63, 2**64 - 1, 2**63 - 1):
        bad = np.array([[0, 1], [2, number]], np.uint64)
        for rows in (bad, of_library(library, bad)):
            with pytest.raises(IndexError, match=r"index \d+ or more at position \(1, 1\) is out of range"):
                array[rows]
    with pytest.raises(IndexError, match=r"index 100 at position 0 is out"):
        array[np.array([100], np.uint64)]

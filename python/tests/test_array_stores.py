"""`array[rows] = values`: what is cast, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

pytestmark = pytest.mark.usefixtures("library")


def zeros(folder: Path, dtype: str) -> penstock.Array:
    np.save(folder / "array.npy", np.zeros((10, 3), dtype))
    return penstock.open(folder / "array.npy", placement="host", device="cpu", writable=True)


def tensor(given: np.ndarray[Any, Any]) -> Any:
    import torch

    return torch.from_numpy(given)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", np.float64(2.5)), ("float32", np.arange(3)), ("float32", np.ones((2, 3))), ("int8", True),
        ("int8", np.arange(3)), ("float16", np.arange(3.0)), ("int32", np.arange(3, dtype=np.uint8)),
        ("float32", 2), ("float32", 2.5), ("uint8", 255), ("uint8", [1, 2, 3]), ("int8", [[-128], [127]]),
        ("uint64", 2**64 - 1), ("bool", True), ("float32", [1, 2.5, True]), ("float16", float("inf")),
        ("uint64", [2**64 - 1, 2**63, 1]), ("uint64", [[np.uint64(2**63)], [1]]),
        ("float32", np.arange(3, dtype=">f8")), ("int64", [np.int8(1), np.int8(2), np.int8(3)]),
    ],
)  # fmt: skip
def test_values_of_the_kind_are_cast(tmp_path: Path, library: str, dtype: str, values: Any) -> None:
    wanted = np.zeros((10, 3), dtype)
    wanted[[4, 7]] = values
    for given in [values, tensor(values)] if library == "torch" and _is_native_array(values) else [values]:
        with zeros(tmp_path, dtype) as array:
            array[[4, 7]] = given
        np.testing.assert_array_equal(np.load(tmp_path / "array.npy"), wanted)


def _is_native_array(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.isnative


@pytest.mark.parametrize(
    ("dtype", "values", "words"),
    [
        ("int32", np.ones(3), "values of type float64: the array holds int32: convert them first"),
        ("int32", np.ones((2, 3)), "values of type float64: the array holds int32"),
        ("int32", 2.5, "values of type float64: the array holds int32"),
        ("float32", 1j, "values of type complex128: the array holds float32"),
        ("float32", np.ones(3, complex), "values of type complex128: the array holds float32"),
        ("float32", "2.5", "values of type str96: the array holds float32"),
        ("uint8", np.arange(3), "values of type int64: the array holds uint8"),
        ("bool", 1, "values of type int64: the array holds bool"),
        ("int64", None, "values of type object: the array holds int64"),
    ],
)
def test_values_of_another_kind_are_refused(
    tmp_path: Path, library: str, dtype: str, values: Any, words: str
) -> None:
    both = library == "torch" and isinstance(values, np.ndarray)
    for given in [values, tensor(values)] if both else [values]:
        with zeros(tmp_path, dtype) as array, pytest.raises(TypeError, match=words):
            array[[4, 7]] = given
    assert not np.load(tmp_path / "array.npy").any()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 300), ("uint8", -1), ("int8", 128), ("int32", 2**63 - 1), ("uint64", -1), ("float16", 1e6),
        ("uint64", 2**64), ("int8", 2**70), ("int64", 2**63), ("float32", -1e300), ("float16", 100_000),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit_are_refused(tmp_path: Path, dtype: str, value: Any) -> None:
    with zeros(tmp_path, dtype) as array:
        for given in (value, [0, value, 1]):
            with pytest.raises(ValueError, match=f"it does not fit the array's {dtype}"):
                array[[4, 7]] = given
    assert not np.load(tmp_path / "array.npy").any()


def test_one_number_past_all_is_refused(tmp_path: Path) -> None:
    with (
        zeros(tmp_path, "int64") as array,
        pytest.raises(ValueError, match="it does not fit the array's int64"),
    ):
        array[4] = 2**63


def test_values_of_another_shape_are_refused(tmp_path: Path, library: str) -> None:
    values = np.ones((2, 4), np.float32)
    with zeros(tmp_path, "float32") as array:
        for given in [values, tensor(values)] if library == "torch" else [values]:
            with pytest.raises(ValueError, match=r"values of shape \(2, 4\): the rows take \(2, 3\)"):
                array[[4, 7]] = given


def test_a_tuple_names_an_element_and_not_two_rows(tmp_path: Path) -> None:
    with zeros(tmp_path, "float32") as array:
        array[1, 2] = 5
        wanted = np.zeros(array.shape, np.float32)
        wanted[1, 2] = 5
        np.testing.assert_array_equal(np.asarray(array[:]), wanted)


def test_bfloat16_is_stored_by_tensors(tmp_path: Path, library: str) -> None:
    np.save(tmp_path / "halves.npy", np.zeros((10, 3), np.uint16))
    where: dict[str, Any] = {"dtype": "bfloat16", "placement": "host", "device": "cpu", "writable": True}
    with penstock.open(tmp_path / "halves.npy", **where) as array:
        with pytest.raises(TypeError, match="NumPy has no bfloat16: give a tensor of it"):
            array[3] = np.ones(3, np.float32)
        array[3] = np.full(3, 0x3F80, np.uint16)  # its bytes
        if library == "torch":
            import torch

            array[4] = torch.tensor(2.5)
            assert array[[3, 4]].tolist() == [[1.0] * 3, [2.5] * 3]
            with pytest.raises(TypeError, match="values of type complex64: the array holds bfloat16"):
                array[4] = torch.tensor(1j)

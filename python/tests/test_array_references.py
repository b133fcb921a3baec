"""Arrays by reference, in pickles and states: the header is read again, and what differs is refused."""

from __future__ import annotations

import json
import pickle
import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.arrays import foreign, from_reference


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "has_torch", lambda: False)


def opened(path: Path, **options: Any) -> penstock.Array:
    return penstock.open(path, placement="host", device="cpu", **options)


def table(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


def through_a_pickle(array: penstock.Array) -> Callable[[], penstock.Array]:
    packed = pickle.dumps(array)
    return lambda: pickle.loads(packed)


def through_a_state(array: penstock.Array) -> Callable[[], penstock.Array]:
    state = json.loads(json.dumps(array.opened.reference()))
    return lambda: from_reference(state, device="cpu", writable=False)


WAYS = pytest.mark.parametrize("way", [through_a_pickle, through_a_state])


def shifted(path: Path) -> None:
    """The same array behind a longer header."""
    path.unlink()
    with penstock.empty(path, (200, 3), "float32", device="cpu") as array:
        array.scatter(np.arange(200), table(200, 3))


@WAYS
@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda p: np.save(p, table(200, 3, dtype="float64")), r"it holds float64 of shape \(200, 3\)"),
        (lambda p: np.save(p, table(200, 3, dtype="int32")), r"it holds int32 of shape \(200, 3\)"),
        (lambda p: np.save(p, table(100, 6)), r"shape \(100, 6\) from byte 128, .*shape \(200, 3\) from"),
        (shifted, "from byte 4096, and what refers to it says .*from byte 128"),
        (lambda p: p.write_bytes(p.read_bytes()[:1000]), "needs 2528 bytes, and the file has 1000"),
    ],
)
def test_a_file_that_was_written_anew_is_refused(tmp_path: Path, way: Any, write: Any, words: str) -> None:
    path = tmp_path / "table.npy"
    np.save(path, table(200, 3))
    with opened(path) as array:
        again = way(array)
    with again() as same:
        np.testing.assert_array_equal(same[:], table(200, 3))
    write(path)
    with pytest.raises(ValueError, match=words):
        again()


@WAYS
def test_elements_under_another_name_are_known_again(tmp_path: Path, way: Any) -> None:
    path = tmp_path / "table.npy"
    np.save(path, table(20, 3, dtype="uint16"))
    with opened(path, dtype="bfloat16") as array, way(array)() as same:
        assert same.dtype.name == "bfloat16"
    with opened(path, dtype="float16") as array:
        again = way(array)
    np.save(path, table(20, 3, dtype="float16"))
    with pytest.raises(ValueError, match=r"it holds float16 .*says uint16"):
        again()


def write_safetensors(path: Path, tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    header, data = {}, b""
    for name, content in tensors.items():
        ends = [len(data), len(data) + content.nbytes]
        header[name] = {"dtype": "F32", "shape": content.shape, "data_offsets": ends}
        data += content.tobytes()
    text = json.dumps(header).encode().ljust(200)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@WAYS
def test_a_tensor_is_found_by_its_name(tmp_path: Path, way: Any) -> None:
    path, one, two = tmp_path / "model.safetensors", table(10, 4), table(10, 4) + 1000
    write_safetensors(path, {"one": one, "two": two})
    with opened(path, name="two") as array:
        again = way(array)
    with again() as same:
        np.testing.assert_array_equal(same[:], two)
    write_safetensors(path, {"two": two, "one": one})
    with pytest.raises(ValueError, match=r"from byte 208, and what refers to it says .* byte 368"):
        again()
    write_safetensors(path, {"one": one})
    with pytest.raises(ValueError, match=r"there is no two in it: it has 1 tensor: name it \(one\)"):
        again()


@WAYS
def test_a_raw_file_is_as_long_as_it_was(tmp_path: Path, way: Any) -> None:
    path = tmp_path / "raw.bin"
    path.write_bytes(b"abc" + table(10, 4).tobytes())
    with opened(path, dtype="float32", shape=(10, 4), offset=3) as array:
        again = way(array)
    with again() as same:
        np.testing.assert_array_equal(same[:], table(10, 4))
    path.write_bytes(bytes(100))
    with pytest.raises(ValueError, match="needs 163 bytes, and the file has 100"):
        again()


def test_a_pickle_holds_plain_values_and_one_name(tmp_path: Path) -> None:
    path = tmp_path / "table.npy"
    np.save(path, table(20, 3))
    with opened(path) as array:
        packed = pickle.dumps(array)
        # What others had written before there were names: still found.
        old = {k: v for k, v in array.opened.reference().items() if k not in ("name", "stored")}
    assert len(packed) < 500
    named = [argument for code, argument, _ in pickletools.genops(packed) if code.name in ("GLOBAL",)]
    named += [a for _, a, _ in pickletools.genops(packed) if isinstance(a, str) and a.startswith("penstock")]
    assert named == ["penstock.arrays.opening"]
    with from_reference(old, device="cpu", writable=False) as same:
        assert same.shape == (20, 3)
    with pytest.raises(ValueError, match="does not refer to an array"):
        from_reference({"path": str(path)}, device="cpu", writable=False)

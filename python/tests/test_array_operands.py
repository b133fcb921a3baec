"""Whole arrays as operands of Python's operators, in torch's functions, and as NumPy arrays."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.arrays import foreign, whole
from places import small_cache


@pytest.fixture
def content() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).standard_normal((50, 4)).astype(np.float32)


def saved(folder: Path, content: np.ndarray[Any, Any], name: str = "array.npy") -> Path:
    np.save(folder / name, content)
    return folder / name


@pytest.fixture
def array(tmp_path: Path, content: np.ndarray[Any, Any], device: str) -> Any:
    with penstock.open(saved(tmp_path, content), placement="host", device=device) as made:
        yield made


@pytest.fixture(params=["storage", "host-cached"])
def cached(request: pytest.FixtureRequest, tmp_path: Path, content: np.ndarray[Any, Any], device: str) -> Any:
    where = {"placement": request.param, "device": device}
    with penstock.open(saved(tmp_path, content), **small_cache(where["placement"]), **where) as made:
        yield made


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge"]
BITS = ["and_", "or_", "xor"]


@pytest.mark.parametrize("name", BINARY)
def test_operators_are_those_of_tensors(array: Any, content: Any, name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    do, own = getattr(operator, name), torch.from_numpy(content)
    other = torch.rand(50, 4) + 0.5
    there = other.to(array.device)
    for taken, expected in [
        (do(array, 2), do(own, 2)),
        (do(2, array), do(2, own)),
        (do(array, there), do(own, other)),
        (do(there, array), do(other, own)),
        (do(array, array), do(own, own)),
        (do(array, other.numpy()), do(own, other)),
        (do(other.numpy(), array), do(other, own)),
    ]:
        assert isinstance(taken, torch.Tensor)
        torch.testing.assert_close(taken.cpu(), expected, equal_nan=True)


def test_operators_without_a_number(array: Any, content: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    own, factor = torch.from_numpy(content), torch.rand(4, 3)
    there = factor.to(array.device)
    torch.testing.assert_close((array @ there).cpu(), own @ factor)
    torch.testing.assert_close((there.T @ array.tensor().T).cpu(), factor.T @ own.T)
    torch.testing.assert_close(
        (torch.ones(2, 50, device=there.device) @ array).cpu(), torch.ones(2, 50) @ own
    )
    assert torch.equal((-array).cpu(), -own)
    assert torch.equal((+array).cpu(), own)
    assert torch.equal(abs(array).cpu(), own.abs())
    assert torch.equal((array**2).cpu(), own**2)
    torch.testing.assert_close((2**array).cpu(), 2**own)
    assert (array == array) is True, "the same array"
    assert len({array, array}) == 1


@pytest.mark.parametrize("name", BITS)
def test_operators_on_bits(tmp_path: Path, device: str, name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    own, do = torch.arange(12).reshape(4, 3), getattr(operator, name)
    with penstock.open(saved(tmp_path, own.numpy()), placement="host", device=device) as array:
        assert torch.equal(do(array, 5).cpu(), do(own, 5))
        assert torch.equal(do(5, array).cpu(), do(5, own))
        assert torch.equal((~array).cpu(), ~own)


def test_without_torch_operators_give_numpy_arrays(
    tmp_path: Path, content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "has_torch", lambda: False)
    with penstock.open(saved(tmp_path, content), placement="host", device="cpu") as array:
        assert type(array * 2) is np.ndarray
        np.testing.assert_array_equal(array * 2, content * 2)
        np.testing.assert_array_equal(content - array, np.zeros_like(content))
        np.testing.assert_array_equal(array > 1, content > 1)
        np.testing.assert_array_equal(np.asarray(array), content)


IN_PLACE = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior", "ixor"]


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_array_is_not_replaced_by_a_result(array: Any, name: str) -> None:
    with pytest.raises(TypeError, match=r"= does not change penstock.Array.*store into it by array\[rows\]"):
        getattr(operator, name)(array, 2)


def test_what_lies_behind_a_cache_says_what_to_do(cached: Any) -> None:
    said = r"lies behind a cache: take rows of it \(array\[rows\].*or open it with placement='host' or 'hbm'"
    operations: list[Any] = [
        lambda: cached * 2,
        lambda: 2 - cached,
        lambda: cached < 1,
        lambda: -cached,
        lambda: abs(cached),
    ]
    for do in operations:
        with pytest.raises(TypeError, match=said):
            do()
    with pytest.raises(TypeError, match=said):
        np.ones((50, 4)) + cached
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for call in (
        torch.sum,
        torch.relu,
        lambda a: torch.cat([a, a]),
        lambda a: torch.add(torch.ones(4), other=a),
    ):
        with pytest.raises(TypeError, match=r"torch\.\w+ takes a whole tensor, and penstock.Array.*" + said):
            call(cached)
    with pytest.raises(TypeError, match=said):
        torch.ones(50, 4) + cached


def test_functions_of_torch_take_what_lies_in_memory(array: Any, content: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    own, where = torch.from_numpy(content), array.device
    torch.testing.assert_close(torch.sum(array).cpu(), own.sum())
    torch.testing.assert_close(torch.sum(input=array, dim=0).cpu(), own.sum(0))
    assert torch.equal(torch.cat([array, array]).cpu(), torch.cat([own, own]))
    assert torch.equal(torch.nn.functional.relu(array).cpu(), own.relu())
    layer = torch.nn.Linear(4, 2).to(where)
    torch.testing.assert_close(layer(array), layer(own.to(where)))
    sums = torch.zeros(50, 4, device=where)
    sums += array
    sums[:10] = torch.as_tensor(array)[:10]
    assert torch.equal(sums.cpu(), own)
    indices = torch.tensor([3, 1], device=where)
    picked = torch.nn.functional.embedding(
        penstock.from_tensor(indices.cpu(), "host", device=where.type), sums
    )
    assert torch.equal(picked.cpu(), own[[3, 1]]), "an array of indices"


def test_nothing_is_stored_into_what_is_read_only(tmp_path: Path, content: Any, device: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    ones = torch.ones(50, 4)
    with penstock.open(saved(tmp_path, content), placement="host", device=device) as array:
        calls: list[Any] = [
            lambda: torch.relu_(array),
            lambda: torch.add(ones, 1, out=array),
            lambda: torch.nn.functional.relu(array, inplace=True),
            lambda: torch._foreach_add_([array], 1),
        ]
        for call in calls:
            with pytest.raises(
                ValueError, match=r"stores into penstock.Array.*opened read-only: give a tensor"
            ):
                call()
    np.testing.assert_array_equal(np.load(tmp_path / "array.npy"), content)
    table = penstock.from_tensor(np.zeros((50, 4), np.float32), "host", device=device)
    torch.add(ones.to(table.device), 1, out=table)
    assert float(table[7][0]) == 2


def test_numpy_sees_memory_where_it_lies(array: Any, content: Any) -> None:
    shown = np.asarray(array)
    np.testing.assert_array_equal(shown, content)
    assert shown.__array_interface__["data"][0] == array.numpy().__array_interface__["data"][0]
    assert not shown.flags.writeable
    copied = np.array(array)
    copied[:] = 0
    np.testing.assert_array_equal(array.numpy(), content)
    assert np.asarray(array, dtype=np.float64).dtype == np.float64
    assert float(np.sum(array)) == pytest.approx(float(content.sum()))


def test_numpy_reads_what_lies_behind_a_cache(
    cached: Any, content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "_BYTES_AT_ONCE", 160)  # ten rows
    np.testing.assert_array_equal(np.asarray(cached), content)
    np.testing.assert_array_equal(np.array(cached, dtype=np.float64), content.astype(np.float64))
    with pytest.raises(ValueError, match=r"as float32 for NumPy it has to be copied: leave out copy=False"):
        cached.__array__(copy=False)
    monkeypatch.setattr(whole, "free_memory", lambda: 799)
    with pytest.raises(MemoryError, match=r"the machine has 799 B of memory left: take rows of it"):
        np.asarray(cached)


def test_numpy_is_told_of_types_that_it_does_not_have(tmp_path: Path, device: str) -> None:
    (tmp_path / "raw.bin").write_bytes(bytes(24))
    with (
        penstock.open(
            tmp_path / "raw.bin", dtype="bfloat16", shape=(4, 3), placement="host", device=device
        ) as array,
        pytest.raises(
            TypeError, match=r"NumPy has no bfloat16: take rows of it as tensors, or array.numpy\(\)"
        ),
    ):
        np.asarray(array)

"""NumPy's functions and ufuncs over arrays: its results, what is stored, and files that shrink meanwhile."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.arrays import foreign
from places import small_cache

ROWS, WIDTH = 40, 6
Call = Callable[[Any, Any], Any]


def opened(path: Path, placement: str = "host", **options: Any) -> Any:
    return penstock.open(path, placement=placement, device="cpu", **small_cache(placement), **options)


def saved(folder: Path, content: Any) -> Path:
    np.save(folder / "array.npy", content)
    return folder / "array.npy"


# Of x, which is an array of either kind, and y, a NumPy array of the same shape and dtype.
CALLS: list[Call] = [
    *(lambda x, y, f=f: f(x) for f in (np.sum, np.mean, np.std, np.var, np.prod, np.ptp, np.max, np.min)),
    *(lambda x, y, f=f: f(x, axis=0) for f in (np.sum, np.argmax, np.cumsum, np.any, np.all, np.median)),
    *(lambda x, y, f=f: f(x) for f in (np.sort, np.argsort, np.unique, np.nonzero, np.count_nonzero)),
    *(lambda x, y, f=f: f(x) for f in (np.ravel, np.transpose, np.flip, np.atleast_3d, np.squeeze, np.copy)),
    *(lambda x, y, f=f: f([x, y, x]) for f in (np.concatenate, np.stack, np.vstack, np.hstack, np.dstack)),
    *(lambda x, y, f=f: f(x) for f in (np.shape, np.ndim, np.size, np.zeros_like, np.result_type, np.isreal)),
    *(lambda x, y, f=f: f(x, y) for f in (np.add, np.subtract, np.multiply, np.maximum, np.less, np.equal)),
    *(lambda x, y, f=f: f(y, x) for f in (np.add, np.subtract, np.multiply, np.maximum, np.less, np.equal)),
    *(lambda x, y, f=f: f(x) for f in (np.negative, np.abs, np.sign, np.square, np.sqrt, np.isfinite)),
    *(lambda x, y, f=f: f(x, x) for f in (np.add, np.divmod, np.outer, np.array_equal, np.isclose, np.vdot)),
    *(lambda x, y, f=f: f(x) for f in (np.add.reduce, np.maximum.accumulate, np.modf, np.frexp, np.nansum)),
    lambda x, y: np.add.reduceat(x, [0, 3, 5]),
    lambda x, y: np.add.reduce(x, axis=None),
    lambda x, y: np.add.outer(x, [1, 2]),
    lambda x, y: np.add(x, y, out=np.zeros(y.shape)),
    lambda x, y: np.sum(x, 0, None, np.zeros(WIDTH)),
    lambda x, y: np.where(y > y[0, 0], x, y),
    lambda x, y: np.take(x, [3, 1, -1], axis=0),
    lambda x, y: np.take_along_axis(x, np.argsort(y, axis=1), axis=1),
    lambda x, y: np.einsum("ij,kj->ik", x, y),
    lambda x, y: np.dot(x, y.T),
    lambda x, y: np.matmul(x, y.T),
    lambda x, y: np.tensordot(x, y, axes=2),
    lambda x, y: np.linalg.norm(x),
    lambda x, y: np.fft.rfft(x),
    lambda x, y: np.clip(x, 1, y),
    lambda x, y: np.block([[x, y], [y, x]]),
    lambda x, y: np.split(x, 4),
    lambda x, y: np.broadcast_arrays(x, y[:1]),
    lambda x, y: np.select([y > 1, y <= 1], [x, y]),
    lambda x, y: np.apply_along_axis(np.sum, 1, x),
    lambda x, y: np.histogram(x, bins=5),
    lambda x, y: np.insert(x, 1, y[0], axis=0),
    lambda x, y: np.append(y, x),
    lambda x, y: np.array([1, 2], like=x),
    lambda x, y: np.array2string(x, threshold=5),
    lambda x, y: np.asarray(x, dtype=np.float64),
    lambda x, y: np.concatenate(deque([x, y])),
]


def outcome(call: Call, x: Any, y: Any) -> Any:
    """What it returns, or the class of what it raises."""
    try:
        with np.errstate(all="ignore"):
            return call(x, y)
    except Exception as problem:
        return type(problem)


def check_equal(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            check_equal(one, other)
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert type(found) is type(wanted)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found == wanted


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1 << 30),
    dtype=st.sampled_from(["float32", "float64", "int16", "int64", "uint8", "bool"]),
    placement=st.sampled_from(["host", "host-cached", "storage"]),
    writable=st.booleans(),
)
def test_results_are_those_of_numpy(
    tmp_path: Path, seed: int, dtype: str, placement: str, writable: bool
) -> None:
    draw = np.random.default_rng(seed)
    x, y = draw.integers(0, 9, (2, ROWS, WIDTH)).astype(dtype)
    with opened(saved(tmp_path, x), placement, writable=writable) as array:
        for number in draw.choice(len(CALLS), 20, replace=False):
            check_equal(outcome(CALLS[number], array, y), outcome(CALLS[number], x, y))


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_each_function_gives_what_it_gives_of_the_plain_array(tmp_path: Path, number: int) -> None:
    x, y = np.random.default_rng(number).standard_normal((2, ROWS, WIDTH))
    with opened(saved(tmp_path, x)) as array:
        wanted = outcome(CALLS[number], x, y)
        assert not isinstance(wanted, type), "NumPy has a result"
        check_equal(outcome(CALLS[number], array, y), wanted)


def test_what_is_asked_about_an_array_reads_nothing(tmp_path: Path) -> None:
    with opened(saved(tmp_path, np.ones((ROWS, WIDTH))), "storage") as array:
        assert (np.shape(array), np.ndim(array)) == ((ROWS, WIDTH), 2)
        assert (np.size(array), np.size(array, 1)) == (ROWS * WIDTH, WIDTH)
        assert array.stats()["bytes_requested"] == 0
        np.sum(array)
        assert array.stats()["bytes_requested"] == array.nbytes


STORES: list[Callable[[Any], Any]] = [
    lambda x: np.copyto(x, 5),
    lambda x: np.copyto(dst=x, src=5),
    lambda x: np.put(x, [0], 5),
    lambda x: np.place(x, np.ones((ROWS, WIDTH), bool), [5]),
    lambda x: np.putmask(x, np.ones((ROWS, WIDTH), bool), 5),
    lambda x: np.fill_diagonal(x, 5),
    lambda x: np.sum(np.ones((ROWS, WIDTH)), out=x),
    lambda x: np.cumsum(np.ones((ROWS, WIDTH)), 0, None, x),
    lambda x: np.concatenate([np.ones((ROWS, WIDTH))], 0, x),
    lambda x: np.clip(x, 2, 3, out=x),
    lambda x: np.add(1, 1, out=x),
    lambda x: np.add.at(x, [0], 1),
]


@pytest.mark.parametrize("placement", ["host", "storage"])
@pytest.mark.parametrize("writable", [False, True])
def test_nothing_is_stored_by_numpys_functions(tmp_path: Path, placement: str, writable: bool) -> None:
    content = np.arange(ROWS * WIDTH, dtype=np.float64).reshape(ROWS, WIDTH)
    path = saved(tmp_path, content)
    with opened(path, placement, writable=writable) as array:
        for store in STORES:
            with pytest.raises(TypeError):
                store(array)
        with pytest.raises(
            TypeError, match=r"numpy.copyto stores into penstock.Array.*: store by array\[rows\] = values, or"
        ):
            STORES[0](array)
        np.testing.assert_array_equal(np.asarray(array), content)
    np.testing.assert_array_equal(np.load(path), content)


def test_put_along_axis_stores_through_the_array(tmp_path: Path) -> None:
    content, at = np.random.default_rng(1).random((ROWS, WIDTH)), np.arange(ROWS)[:, None] % WIDTH
    path = saved(tmp_path, content)
    with opened(path, "storage", writable=True) as array:
        np.put_along_axis(array, at, 7.0, 1)
    np.put_along_axis(content, at, 7.0, 1)
    np.testing.assert_array_equal(np.load(path), content)


class Cutting:
    """An operand that cuts a file short when NumPy reads it: the array before it was looked at by then."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __array__(self, *how: Any, **more: Any) -> Any:
        os.truncate(self._path, 4096)
        return np.ones((4096, WIDTH), np.float32)


MEANWHILE: list[Call] = [
    lambda x, cut: np.concatenate([x, cut]),
    lambda x, cut: np.where(np.ones((4096, 1), bool), x, cut),
    lambda x, cut: np.sum(x, where=np.ones((4096, 1), bool), initial=np.sum(cut)),
    lambda x, cut: np.einsum("ij,ij->i", x, cut),
    lambda x, cut: np.apply_along_axis(lambda row: row + np.sum(cut), 1, x),
    lambda x, cut: np.add(x, cut),
    lambda x, cut: np.frompyfunc(lambda one: (np.asarray(cut), one)[1], 1, 1)(x),
    lambda x, cut: np.frompyfunc(lambda one, other: (np.asarray(cut), other)[1], 2, 1).reduce(x),
    lambda x, cut: np.add(np.ones((4096, WIDTH)), np.add(x, cut)),
    lambda x, cut: np.matmul(np.ones((3, 4096)), np.add(cut, x)),
]


@pytest.mark.parametrize("number", range(len(MEANWHILE)))
def test_a_file_that_shrinks_while_numpy_reads_is_an_error(tmp_path: Path, number: int) -> None:
    path = saved(tmp_path, np.ones((4096, WIDTH), np.float32))
    with (
        opened(path) as array,
        pytest.raises(penstock.Error, match=r"array\.npy: it has 4096 bytes, and the array goes up to byte"),
    ):
        MEANWHILE[number](array, Cutting(path))


def test_a_tensor_beside_an_array_makes_a_tensor_and_the_file_is_checked(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    path, content = tmp_path / "array.npy", np.random.default_rng(2).random((4096, WIDTH))
    np.save(path, content)
    ones = torch.ones(4096, WIDTH, dtype=torch.float64)
    with opened(path) as array:
        for made in (np.add(array, ones), np.add(ones, array)):
            assert torch.equal(made, torch.from_numpy(content) + 1)

        cutting = type("Cut", (torch.Tensor,), {"__array__": lambda _, *how: Cutting(path).__array__()})
        with pytest.raises(penstock.Error, match="it has 4096 bytes"):
            np.add(array, ones.as_subclass(cutting))


@pytest.mark.parametrize("torch", [False, True])
def test_what_is_handed_out_is_of_a_whole_file(
    tmp_path: Path, torch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch:
        pytest.importorskip("torch", reason="torch is not installed")
    else:
        monkeypatch.setattr(foreign, "has_torch", lambda: False)
    path = saved(tmp_path, np.ones((4096, WIDTH), np.float32))
    with opened(path) as array:
        os.truncate(path, 4097)  # zeros follow up to the page's end, which no fault reports
        asked: list[Callable[[], Any]] = [
            lambda: np.asarray(array),
            lambda: np.array(array),
            array.numpy,
            lambda: np.from_dlpack(array),
        ]
        for ask in [*asked, array.tensor] if torch else asked:
            with pytest.raises(penstock.Error, match="it has 4097 bytes"):
                ask()


@pytest.mark.parametrize("writable", [False, True])
def test_an_array_in_the_form_of_a_tensor_gives_numpy_what_stores_reach(
    tmp_path: Path, writable: bool
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from penstock.arrays.array_tensor import ArrayTensor

    path = saved(tmp_path, np.ones((ROWS, WIDTH), np.float32))
    with opened(path, writable=writable) as array:
        tensor = ArrayTensor(array)
        views = [tensor.numpy(), tensor.numpy(force=True), tensor.detach().cpu().numpy(), np.asarray(tensor)]
        for number, view in enumerate(views):
            np.testing.assert_array_equal(view, np.asarray(array))
            assert view.flags.writeable == writable
            if writable:
                view[number] = 9
            else:
                with pytest.raises(ValueError, match="read-only"):
                    view[number] = 9
        assert float(array[:].sum()) == ROWS * WIDTH + (len(views) * 8 * WIDTH if writable else 0)
    assert float(np.load(path).sum()) == ROWS * WIDTH + (len(views) * 8 * WIDTH if writable else 0)

"""Gathers of several arrays, of wide rows, and by copy engines."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import host
from places import DEVICES, small_cache


def opened(
    path: Path, content: np.ndarray[Any, Any], placement: str, device: str, **options: Any
) -> penstock.Array:
    np.save(path, content)
    return penstock.open(path, placement=placement, device=device, **small_cache(placement), **options)


def test_several_arrays_are_gathered_from_at_once(tmp_path: Path, device: str) -> None:
    contents = [np.arange((40 + k) * (1 + 3 * k), dtype=np.int32).reshape(40 + k, -1) for k in range(20)]
    arrays = [
        opened(tmp_path / f"{k}.npy", content, "storage" if k % 5 == 4 else "host", device)
        for k, content in enumerate(contents)
    ]
    rows = [[k, 39, k] for k in range(20)]
    taken = penstock.gather_all(list(zip(arrays, rows, strict=True)))
    for k in range(20):
        np.testing.assert_array_equal(host(taken[k]), contents[k][rows[k]])
    with pytest.raises(IndexError, match="index 40 at position 0"):
        penstock.gather_all([(arrays[1], [1]), (arrays[0], [40])])
    assert penstock.gather_all([]) == []


def test_an_executor_has_one_name(tmp_path: Path) -> None:
    content = np.ones((4, 4), np.float32)
    one = opened(tmp_path / "one.npy", content, "host", DEVICES[-1])
    two = opened(tmp_path / "two.npy", content, "host", "auto")
    assert len(penstock.gather_all([(one, [1]), (two, [2])])) == 2


def test_rows_of_a_mebibyte(tmp_path: Path, device: str) -> None:
    content = np.arange(5 << 18, dtype=np.int32).reshape(5, 1 << 18)
    with opened(tmp_path / "wide.npy", content, "host", device) as array:
        np.testing.assert_array_equal(host(array[[4, 0, 4, -2]]), content[[4, 0, 4, -2]])
        np.testing.assert_array_equal(host(array.gather_async([1]).wait()), content[[1]])
        with pytest.raises(IndexError, match="index 5 at position 1"):
            array[[4, 5]]


@pytest.mark.parametrize("placement", ["host", "storage"])
def test_copy_engines_take_rows_in_memory_of_a_gpu(tmp_path: Path, device: str, placement: str) -> None:
    content = np.arange(700, dtype=np.int32).reshape(100, 7)
    with opened(tmp_path / "rows.npy", content, placement, device) as array:
        if device == "cuda" and placement == "host":
            taken = array.gather([99, 0, 99], order="copy-engine")
            np.testing.assert_array_equal(host(taken), content[[99, 0, 99]])
            with pytest.raises(IndexError, match="index 100 at position 1"):
                array.gather([0, 100], order="copy-engine")
        else:
            words = "behind a cache" if device == "cuda" else "the CPU executor has none"
            with pytest.raises(ValueError, match=words):
                array.gather([1], order="copy-engine")
        with pytest.raises(ValueError, match="there is no order"):
            array.gather([1], order="sideways")


@pytest.mark.parametrize("placement", ["host", "storage"])
def test_calls_that_nobody_waits_for_tell_later(tmp_path: Path, device: str, placement: str) -> None:
    """On a CPU they are over when they return, and tell at once."""
    content = np.arange(700, dtype=np.float32).reshape(100, 7)
    np.save(tmp_path / "rows.npy", content)
    writable = placement == "storage"
    array = penstock.open(
        tmp_path / "rows.npy", placement=placement, device=device, writable=writable, **small_cache(placement)
    )
    for k in range(20):  # more than may be under way
        taken = array.gather([k, 99], wait=False)
        np.testing.assert_array_equal(host(taken), content[[k, 99]])
    tellers: list[Callable[[], Any]] = [array.check_errors, array.flush, lambda: array[[1]]]
    for tell in tellers:
        with pytest.raises(IndexError, match=r"gather from .*index 100 at position 1 is out of range"):
            (array.gather([5, 100], wait=False), tell())
        tell()  # told once
    with pytest.raises(IndexError, match=r"index -101 at position 0"):
        [array.gather([-101], wait=False) for _ in range(9)]
    for _ in range(9):  # each tells of itself
        with contextlib.suppress(IndexError):
            array.check_errors()
    if writable:
        for _ in range(9):
            array.scatter([3, 4], content[[3, 4]] * 2, wait=False)
            array.scatter([5, 5], np.ones((2, 7), np.float32), reduce="add", wait=False)
        np.testing.assert_array_equal(host(array[[3, 4]]), content[[3, 4]] * 2)
        np.testing.assert_array_equal(host(array[[5]]), content[[5]] + 18)

        def store_and_close() -> None:
            array.scatter([6, 100], np.zeros((2, 7), np.float32), wait=False)
            array.close()

        with pytest.raises(IndexError, match=r"scatter to .*index 100 at position 1"):
            store_and_close()
    array.close()
    if writable:
        assert not np.load(tmp_path / "rows.npy")[6].any(), "rows in range are stored all the same"


class Stream:
    """What torch's look like, to those who ask for a handle."""

    cuda_stream = 0


@pytest.mark.parametrize("placement", ["host", "storage"])
def test_hints_for_a_gpu_change_nothing_on_the_cpu(tmp_path: Path, placement: str) -> None:
    content = np.arange(700, dtype=np.int32).reshape(100, 7)
    hints: list[dict[str, Any]] = [{"stream": Stream()}, {"stream": 0}, {"stream": 7, "sms": 2}, {"sms": 132}]
    orders = [{"order": order} for order in ("auto", "as-asked", "by-address")]
    with opened(tmp_path / "rows.npy", content, placement, "cpu", writable=True) as array:
        for hint in [*hints, *orders]:
            np.testing.assert_array_equal(host(array.gather([99, 0, 99], **hint)), content[[99, 0, 99]])
            np.testing.assert_array_equal(host(array.gather_async([5], **hint).wait()), content[[5]])
        for number, hint in enumerate(hints):
            array.scatter([number], content[[number + 50]], **hint)
            np.testing.assert_array_equal(host(array[number]), content[number + 50])
        for stream in ("x", object(), 0.5):
            calls: list[Any] = [
                lambda given: array.gather([1], stream=given),
                lambda given: array.gather_async([1], stream=given),
                lambda given: array.prefetch([1], stream=given),
                lambda given: array.scatter([1], content[[1]], stream=given),
                lambda given: penstock.gather_all([(array, [1])], stream=given),
            ]
            for call in calls:
                with pytest.raises(TypeError, match=r"stream .*: give a torch.cuda.Stream, or the handle of"):
                    call(stream)


def test_arrays_of_one_number_may_go_backwards() -> None:
    """NumPy calls them contiguous, and torch refuses a negative stride."""
    with penstock.from_tensor(np.zeros((10, 3), np.float32), device="cpu") as array:
        for key in (np.array([5])[::-1], np.array([[5]])[::-1, ::-1], np.array([], np.int64)[::-1]):
            shape = (*key.shape, 3)
            for taken in (array[key], array.gather(key), array.gather_async(key).wait()):
                assert host(taken).shape == shape
            array.prefetch(key)
            array[key] = np.ones(shape, np.float32)[::-1]
        assert float(array[5][0]) == 1
        read_only = np.array([5, 4])
        read_only.flags.writeable = False
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert host(array[read_only]).shape == (2, 3)


def test_indices_of_a_kind_that_is_none_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with penstock.from_tensor(torch.zeros(10, 3), device="cpu") as array:
        with pytest.raises(IndexError, match="an index that is a nested tensor: give a dense one"):
            array[torch.nested.nested_tensor([torch.tensor([1])], layout=torch.jagged)]
        with pytest.raises(IndexError, match=r"rows of type .*bool: give integers, or array\[mask\] a mask"):
            array.gather(torch.arange(10) < 3)
        with pytest.raises(TypeError, match="wait x: give True or False"):
            array.gather([1], wait="x")  # type: ignore[arg-type]


def test_columns_of_frames_are_indices() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    keys = [pandas.Series([1, 2]), pandas.Index([1, 2]), pandas.Series([1, 2], dtype="int64[pyarrow]")]
    keys += [polars.Series([1, 2]), arrow.array([1, 2]), arrow.chunked_array([[1], [2]])]
    with penstock.from_tensor(np.arange(30.0).reshape(10, 3), device="cpu") as array:
        for key in keys:
            for taken in (array[key], array.gather(key)):
                np.testing.assert_array_equal(host(taken), [[3, 4, 5], [6, 7, 8]])
    ranks = penstock.pagerank(
        np.array([[0, 1, 2], [1, 2, 0]]), nstart=pandas.Series([1.0, 1, 1]), executor="cpu"
    )
    assert ranks.converged

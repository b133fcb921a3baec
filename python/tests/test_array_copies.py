"""Copies to the GPU that take a while: they tell how far they are, and can be stopped."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import _native
from penstock.arrays.devices import executor_for
from places import DEVICES

needs_a_gpu = pytest.mark.skipif(not _native.cuda_usable()[0], reason="there is no GPU to copy to")
PART = 64 << 20
ROWS, WIDTH = 1000, (PART + PART // 2) // 1000 // 4  # a part and a half


def content() -> np.ndarray[Any, Any]:
    return np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)


def host(taken: Any) -> np.ndarray[Any, Any]:
    return np.asarray(taken.cpu() if hasattr(taken, "cpu") else taken.numpy())


def copied(tmp_path: Path, kind: str, progress: Any) -> penstock.Array:
    if kind == "tensor":
        return penstock.from_tensor(content(), "hbm", device="cuda", progress=progress)
    np.save(tmp_path / "array.npy", content())
    return penstock.open(tmp_path / "array.npy", placement="hbm", device="cuda", progress=progress)


@needs_a_gpu
@pytest.mark.parametrize("kind", ["file", "tensor"])
def test_a_copy_tells_how_far_it_is(tmp_path: Path, kind: str) -> None:
    told: list[tuple[str, int, int]] = []
    with copied(tmp_path, kind, lambda *report: told.append(report)) as array:
        assert told == [("copy", PART, array.nbytes), ("copy", array.nbytes, array.nbytes)]
        np.testing.assert_array_equal(host(array[[0, 999, 700]]), content()[[0, 999, 700]])


@needs_a_gpu
@pytest.mark.parametrize("kind", ["file", "tensor"])
@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError])
def test_a_copy_that_is_stopped_leaves_nothing(
    tmp_path: Path, kind: str, problem: type[BaseException]
) -> None:
    calls = []

    def stop(*report: Any) -> None:
        calls.append(report)
        raise problem("enough")

    copied(tmp_path, kind, None).close()
    gc.collect()
    before = executor_for("cuda").free_bytes
    for _ in range(8):
        with pytest.raises(problem, match="enough"):
            copied(tmp_path, kind, stop)
    gc.collect()
    assert len(calls) == 8, "one part each"
    end = time.monotonic() + 20  # other tests have memory of the card for a while
    while before - executor_for("cuda").free_bytes >= PART and time.monotonic() < end:
        time.sleep(0.05)
    assert before - executor_for("cuda").free_bytes < PART
    copied(tmp_path, kind, None).close()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("placement", ["host", "host-cached", "storage"])
def test_what_is_not_copied_tells_nothing(tmp_path: Path, device: str, placement: str) -> None:
    def refuse(*report: Any) -> None:
        raise AssertionError(report)

    np.save(tmp_path / "array.npy", np.ones((3, 4), np.float32))
    with penstock.open(tmp_path / "array.npy", placement=placement, device=device, progress=refuse) as array:
        assert len(array) == 3
    if placement != "storage":
        with penstock.from_tensor(
            np.ones((3, 4), np.float32), placement, device=device, progress=refuse
        ) as array:
            assert len(array) == 3


def test_without_a_gpu_nothing_is_copied_there(tmp_path: Path) -> None:
    told: list[Any] = []
    np.save(tmp_path / "array.npy", np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match="no GPU for placement hbm"):
        penstock.open(
            tmp_path / "array.npy",
            placement="hbm",
            device="cpu",
            progress=lambda *report: told.append(report),
        )
    assert told == []

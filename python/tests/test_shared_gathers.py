"""Gathers of narrow rows of host memory, which threads of the CPU share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import host
from places import DEVICES

ROWS, WIDTH = 3 << 22, 32  # of 128 bytes: far more than the list has, or nobody is asked to help
COUNT = 150_000

needs_gpu = pytest.mark.skipif("cuda" not in DEVICES, reason="no GPU here")


@pytest.fixture(scope="module")
def table(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A file of which some rows are written, their numbers in any order and twice, and what they are."""
    if "cuda" not in DEVICES:
        pytest.skip("no GPU here")
    path = tmp_path_factory.mktemp("shared") / "rows.bin"
    numbers = np.random.default_rng(3).integers(0, ROWS, COUNT)
    rows = np.memmap(path, np.int32, "w+", shape=(ROWS, WIDTH))
    rows[numbers] = numbers[:, None] * 7 + np.arange(WIDTH)
    rows.flush()
    return path, numbers, rows[numbers]


@needs_gpu
@pytest.mark.parametrize("threads", [0, 3, None])
def test_rows_are_those_of_the_file(table: Any, threads: int | None) -> None:
    path, numbers, wanted = table
    with penstock.open(
        path, dtype="int32", shape=(ROWS, WIDTH), placement="host", gather_threads=threads
    ) as array:
        for _ in range(3):
            np.testing.assert_array_equal(host(array.gather(numbers)), wanted)
        calls = [array.gather_async(numbers[::-1].copy()), array.gather_async(numbers)]
        np.testing.assert_array_equal(host(calls[1].wait()), wanted)
        np.testing.assert_array_equal(host(calls[0].wait()), wanted[::-1])
        outside = numbers.copy()
        outside[[5, 99]] = ROWS
        with pytest.raises(IndexError, match=f"index {ROWS} at position 5"):
            array.gather(outside)


@needs_gpu
def test_rows_that_are_kept_are_those_of_the_file(table: Any) -> None:
    path, numbers, wanted = table
    scores = np.zeros(ROWS)
    scores[numbers[::3]] = 1
    with penstock.open(
        path, dtype="int32", shape=(ROWS, WIDTH), placement="tiered", scores=scores, hot=0.01
    ) as array:
        before = array.bytes_by_tier()
        np.testing.assert_array_equal(host(array.gather(numbers)), wanted)
        moved = {tier: count - before[tier] for tier, count in array.bytes_by_tier().items()}
    kept = np.isin(numbers, numbers[::3]).sum() * WIDTH * 4
    assert moved["hbm"] >= kept
    assert sum(moved.values()) == COUNT * WIDTH * 4


@needs_gpu
def test_an_array_that_is_closed_at_once_waits_for_its_threads(table: Any) -> None:
    path, numbers, wanted = table
    for _ in range(3):
        with penstock.open(path, dtype="int32", shape=(ROWS, WIDTH), placement="host") as array:
            call = array.gather_async(numbers)
        np.testing.assert_array_equal(host(call.wait()), wanted)


def test_threads_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.zeros((4, 4), np.int32))
    with pytest.raises(ValueError, match="gather_threads -1: it must be 0 or more"):
        penstock.open(path, placement="host", gather_threads=-1)
    with pytest.raises(ValueError, match="placement storage reads no rows in host memory"):
        penstock.open(path, placement="storage", gather_threads=2)
    with pytest.raises(TypeError, match="gather_threads"):
        penstock.from_tensor(np.zeros((4, 4)), "host", gather_threads="many")  # type: ignore[arg-type]

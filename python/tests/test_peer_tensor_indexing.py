"""Indexing by tensors and stores of tensors, as into torch's own tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import penstock
import pytest
from indexed_arrays import PLACEMENTS, numbers, placed


@pytest.fixture(params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tensors(tmp_path: Path, placement: str) -> Iterator[tuple[penstock.Array, Any]]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    content = numbers((6, 5, 9))
    with placed(tmp_path, content, placement, writable=True) as array:
        yield array, torch.from_numpy(content.copy())


def test_tensors_are_indices_as_for_tensors(tensors: tuple[penstock.Array, Any]) -> None:
    import torch

    array, content = tensors
    long = torch.tensor
    keys: list[Any] = [
        long(3), long([3]), long([[0, 5], [-1, 2]]), long([1, 2], dtype=torch.int32),
        (long([1, 2]), long([0, 4])), (long([1, 2]), [0, 4], 3),
        (slice(None), long([4, 0])), (..., long([8, 0])), (long([1]), slice(None), long([[2], [3]])),
        content[:, 0, 0] > 50, content > 100, (content[:, :, 0] > 100, long(3)),
        (slice(1, 4), (content[0] > 20)), (long([], dtype=torch.int64),), long([0, 1])[::1],
        (None, long([1, 2]), None), (long(2), long(3), long(4)), torch.arange(6)[::2],
        slice(long(1), long(5), long(2)), torch.zeros(6, dtype=torch.bool), (long([[0], [1]]), long([1, 2])),
    ]  # fmt: skip
    for key in keys:
        found, wanted = array[key], content[key]
        assert found.shape == wanted.shape
        assert torch.equal(found, wanted), key
    for bad in (long([6]), (long([0]), long([5])), long([0.5]), long(True), torch.ones(5, dtype=torch.bool)):
        with pytest.raises(IndexError):
            array[bad]


def test_tensors_are_stored_as_into_tensors(tensors: tuple[penstock.Array, Any]) -> None:
    import torch

    array, content = tensors
    stores: list[tuple[Any, Any]] = [
        (torch.tensor([1, 4]), torch.ones(5, 9)), ((slice(None), torch.tensor([4, 0])), torch.zeros(9)),
        (content > 200, 5), ((..., 3), torch.arange(5.0)), (slice(None, None, 2), torch.full((1, 1, 9), 2.0)),
        ((torch.tensor([0, 5]), torch.tensor([0, 4]), torch.tensor([0, 8])), torch.tensor([7.0, 8.0])),
        (None, torch.ones(1, 6, 5, 9)), (..., torch.tensor(3.0)),
        ((), torch.ones(6, 5, 9, dtype=torch.float64)),
        ((slice(1, 3), None), torch.zeros(1, 5, 9)), (2, torch.ones(1, 1, 5, 9)),
    ]  # fmt: skip
    for key, values in stores:
        array[key] = values
        content[key] = values
        assert torch.equal(array[:], content), key

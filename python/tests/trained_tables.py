"""The table that tests of `penstock.nn` train, and batches for it. Imports torch where it is used."""

from __future__ import annotations

from typing import Any

ROWS, WIDTH = 200, 12


def weights_of(array: Any) -> Any:
    import torch

    return array.gather(torch.arange(len(array))).cpu()


def batch(seed: int, shape: tuple[int, ...] = (16, 5)) -> Any:
    import torch

    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
    return (drawn**3 * ROWS).long()  # few rows often

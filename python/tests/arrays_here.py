"""Small arrays in files, opened where the `here` fixture says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.arrays import libraries
from places import small_cache

on_the_cpu = pytest.mark.parametrize("here", ["cpu"], indirect=True)


class Here:
    device = "cpu"


def host(taken: Any) -> np.ndarray[Any, Any]:
    """A result in host memory."""
    if hasattr(taken, "cpu"):
        return np.asarray(taken.cpu())
    return taken.numpy() if isinstance(taken, libraries.DeviceArray) else np.asarray(taken)


def saved(folder: Path, content: np.ndarray[Any, Any]) -> Path:
    path = folder / "array.npy"
    np.save(path, content)
    return path


def opened(path: Path, placement: str = "host", **options: Any) -> penstock.Array:
    return penstock.open(path, placement=placement, device=Here.device, **small_cache(placement), **options)


def table(rows: int = 100, width: int = 7, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return (np.arange(rows * width) % 251).reshape(rows, width).astype(dtype)

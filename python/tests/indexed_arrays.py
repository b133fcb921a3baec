"""Arrays that are indexed: of small numbers, in each placement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
from places import small_cache

PLACEMENTS = ["host", "host-cached", "storage", "memory"]


def numbers(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


def placed(
    folder: Path, content: np.ndarray[Any, Any], placement: str, *, writable: bool = False, line: int = 512
) -> penstock.Array:
    if placement == "memory":
        return penstock.from_tensor(content.copy(), device="cpu")
    path = folder / "array.npy"
    np.save(path, content)
    return penstock.open(
        path, placement=placement, device="cpu", writable=writable, **small_cache(placement, line)
    )


def host(taken: Any) -> np.ndarray[Any, Any]:
    return np.asarray(taken.cpu() if hasattr(taken, "cpu") else taken)

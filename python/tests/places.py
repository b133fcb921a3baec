"""Where the kernels of a test run: on the GPU too, where there is one."""

from __future__ import annotations

from typing import Any

from penstock import _native

DEVICES = ["cpu", "cuda"] if _native.cuda_usable()[0] else ["cpu"]
PLACEMENTS = ["host", "host-cached", "storage"]  # for files and memory, on every device


def small_cache(placement: str, line: int = 512) -> dict[str, Any]:
    """Options of `penstock.open` for a cache of many small lines, where the placement has one."""
    return {"cache": "1MiB", "line": line} if placement in ("host-cached", "storage") else {}


def check_same(found: Any, wanted: Any, on_gpu: bool, near: float = 1e-5) -> None:
    """Of tensors computed by the same steps: bit for bit, but that a GPU adds in an order of its own."""
    import torch

    near = near if on_gpu else 0
    torch.testing.assert_close(found.cpu(), wanted.cpu(), rtol=near, atol=near)

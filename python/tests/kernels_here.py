"""What tests of kernels have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import penstock
from places import small_cache

if TYPE_CHECKING:
    from pathlib import Path

READ = """
template <class T>
__device__ void copy(const penstock::array<const T>& from, penstock::array<T>& to, unsigned long long step) {
  penstock::for_each_index(to.size(), [&](auto i) { to[i] = from[i * step % from.size()]; });
}
extern "C" __global__ void copy_it(penstock::array<const TYPE> from, penstock::array<TYPE> to, size_t step) {
  copy(from, to, step);
}
"""


def opened(folder: Path, content: Any, placement: str, device: str, **options: Any) -> penstock.Array:
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, content)
    return penstock.open(path, placement=placement, device=device, **small_cache(placement), **options)


def results(content: Any, device: str) -> tuple[np.ndarray[Any, Any], penstock.Array]:
    """Memory that a kernel writes to in place."""
    memory = np.array(content)
    return memory, penstock.from_tensor(memory, "host", device=device)

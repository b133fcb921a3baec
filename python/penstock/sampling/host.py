"""Results of any device in host memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.arguments import is_torch
from penstock.arrays.foreign import host_values


def on_host(given: Any) -> NDArray[Any]:
    """A NumPy array of a tensor, of a result of an Array, or of what NumPy takes."""
    if is_torch(given):
        return np.asarray(given.detach().cpu())
    if hasattr(given, "__cuda_array_interface__") and hasattr(given, "numpy"):
        given = given.numpy()
    values: NDArray[Any] = host_values(given)
    return values

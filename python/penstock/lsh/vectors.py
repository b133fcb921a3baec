"""What callers give as vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


def as_vectors(given: Any, name: str, dimensions: int | None = None, first: int = 0) -> Vectors:
    """Numbers of shape (n, dimensions), float32, in order; one vector of shape (dimensions,) is n = 1.

    Messages count rows from `first`.

    Raises:
        ValueError, TypeError: One sentence with the name, the shape and what is wanted.
    """
    array = np.asarray(given)
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} of {array.dtype}: give real numbers")
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} of shape {array.shape}: give (n, dimensions)")
    if dimensions is not None and array.shape[1] != dimensions:
        raise ValueError(f"{name} of shape {array.shape}: the index has {dimensions} dimensions")
    with np.errstate(over="ignore"):  # what is too large for float32 is infinite then
        numbers = np.ascontiguousarray(array, dtype=np.float32)
    largest = np.abs(numbers).max(axis=1)
    finite = np.isfinite(largest)
    if not finite.all():
        raise ValueError(
            f"{name}: row {first + int(finite.argmin())} has a number that is not finite: leave it out"
        )
    limit = math.sqrt(float(np.finfo(np.float32).max) / numbers.shape[1]) / 2  # of two opposite ones, too
    fits = largest <= limit
    if not fits.all():
        row = int(fits.argmin())
        raise ValueError(
            f"{name}: row {first + row} has a number of {largest[row]:.3g}: squares of distances overflow "
            f"above {limit:.3g}: scale the vectors"
        )
    return numbers

"""How many elements an array has: for NumPy a number, for PyTorch a method."""

from __future__ import annotations

import math
from typing import Any


class Size(int):
    """`array.size`: the number of elements, as `numpy.size` reads it; called, the shape, as of a tensor."""

    _shape: tuple[int, ...]

    def __new__(cls, shape: tuple[int, ...]) -> Size:
        made = super().__new__(cls, math.prod(shape))
        made._shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or its element `dim`."""
        return self._shape if dim is None else self._shape[dim]

    def __reduce__(self) -> tuple[type[Size], tuple[tuple[int, ...]]]:
        return Size, (self._shape,)

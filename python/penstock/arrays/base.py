"""What an array is to the modules that `Array` itself imports: they import this one, and not `array`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from penstock.arrays.array import Array


class ArrayBase:
    """Base of `Array`, which is the only class with it."""


def is_array(given: Any) -> TypeGuard[Array]:
    return isinstance(given, ArrayBase)

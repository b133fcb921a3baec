"""Weights as int32 or float32, refused where these cannot hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._binding import Array

PIECE = 1 << 20
"""Values that are looked at together."""
END_OF_INTEGERS = float(2**64)
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)


def weights_of(called: str, values: Array) -> Array:
    """Integers as int32, floats as finite float32: with its rounding of fractions, but no other integers.

    Raises ValueError, with the first value, where these cannot hold them.
    """
    if values.dtype.kind in "iu":
        return _int32(called, values)
    if values.dtype.kind == "f":
        return _float32(called, values)
    raise ValueError(
        f"read {called}: values of dtype {values.dtype} are no weights: convert them to integers or floats"
    )


def of_numbers(called: str, numbers: Sequence[Any]) -> Array:
    """Numbers of Python, or what converts to them. Raises as weights_of()."""
    whole = [not isinstance(number, bool) and hasattr(number, "__index__") for number in numbers]
    for number, is_whole in zip(numbers, whole, strict=True):
        if isinstance(number, (bool, str, bytes, complex)) or not (is_whole or hasattr(number, "__float__")):
            raise ValueError(f"read {called}: weight {number!r} is no number: give one, or leave weights out")
        if is_whole and not -(2**63) <= int(number) < 2**63:
            raise _misfit(called, number, "does not fit int32")
    if all(whole):
        return _int32(called, np.array([int(number) for number in numbers], np.int64))
    for number, is_whole in zip(numbers, whole, strict=True):
        if is_whole and int(np.float32(int(number))) != int(number):
            raise _misfit(called, number, "is an integer that float32 cannot hold exactly")
    return _float32(called, np.array([float(number) for number in numbers]))


def joined(called: str, parts: list[Array]) -> Array:
    """Weights that came in several parts, of one type; empties `parts`. Raises as weights_of()."""
    if all(part.dtype.kind in "iu" for part in parts):
        return _in_one_piece([_int32(called, part) for part in _taken(parts)], np.int32)
    return _in_one_piece([_as_float32(called, part) for part in _taken(parts)], np.float32)


def _taken(parts: list[Array]) -> list[Array]:
    taken = parts[:]
    parts.clear()
    return taken


def _in_one_piece(parts: list[Array], dtype: Any) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, dtype)])


def _int32(called: str, values: Array) -> Array:
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if low >= -(2**31) and high < 2**31:
        return values.astype(np.int32, copy=False)
    raise ValueError(f"read {called}: weights from {low} to {high} do not fit int32: scale them")


def _as_float32(called: str, values: Array) -> Array:
    """Integers, too, beside floats."""
    if values.dtype.kind == "f":
        return _float32(called, values)
    narrow = values.astype(np.float32)
    wrong = narrow.astype(np.longdouble) != values
    if wrong.any():
        raise _misfit(called, values[int(np.argmax(wrong))], "is an integer that float32 cannot hold exactly")
    return narrow


def _float32(called: str, values: Array) -> Array:
    if values.dtype.itemsize < 4:
        values = values.astype(
            np.float32
        )  # exactly; float16 overflows where it is compared with a large number
    narrow = np.empty(values.shape, np.float32)
    for begin in range(0, len(values), PIECE):
        wide, part = values[begin : begin + PIECE], narrow[begin : begin + PIECE]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            part[:] = wide
        _check(called, wide, part)
    return narrow


def _check(called: str, wide: Array, narrow: Array) -> None:
    size, inexact = np.abs(wide), narrow != wide
    whole = (size < END_OF_INTEGERS) & (np.trunc(wide) == wide)
    for wrong, why in (
        (~np.isfinite(wide), "is no finite float32 number"),
        (~np.isfinite(narrow), "is no finite float32 number: it is too large"),
        (inexact & (size < SMALLEST_NORMAL), "is too small for float32"),
        (inexact & whole, "is an integer that float32 cannot hold exactly"),
    ):
        if wrong.any():
            raise _misfit(called, wide[int(np.argmax(wrong))], why)


def _misfit(called: str, value: Any, why: str) -> ValueError:
    if isinstance(value, int) and value.bit_length() > 128:
        value = f"of {value.bit_length()} bits"
    return ValueError(f"read {called}: weight {value} {why}: scale the weights, or remove this one")

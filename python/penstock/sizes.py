"""Sizes and counts as people write them."""

from __future__ import annotations

import operator
import re
from fractions import Fraction
from typing import SupportsIndex

UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:iB)?\s*|\s*(\d+)\s*B\s*", re.IGNORECASE)


LIMIT = 1 << 63
"""Sizes are below it: what the compiled part, and files, can count."""


def parse_size(size: SupportsIndex | str, name: str = "size") -> int:
    """A number of bytes: 4096, "4096", "4KiB", "64K", "1.5GiB". K, M, G and T are powers of 1024.

    name: what the size is of, for the sentence of an error.
    """
    count = _parse_text(size, name) if isinstance(size, str) else whole_number(size)
    if count is None:
        raise TypeError(f"{name} {size!r}: give a number of bytes, or text such as 16MiB")
    if count < 0:
        raise ValueError(f"{name} {size}: it cannot be negative")
    if count >= LIMIT:
        raise ValueError(f"{name} {size}: more bytes than can be addressed: give a smaller size")
    return count


def whole_number(value: object) -> int | None:
    """An int, or what stands for one, such as NumPy's integers; None for all else, also for bool."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # NumPy's bool and arrays have the method, and refuse
        return None


def _parse_text(size: str, name: str) -> int:
    match = SIZE.fullmatch(size)
    if match is None:
        raise ValueError(f"{name} '{size}': write it as 16MiB, 64K or a number of bytes")
    number, unit = (match.group(3), "") if match.group(3) else (match.group(1), match.group(2))
    exact = Fraction(number) * UNITS[unit.upper()]
    if exact.denominator != 1:
        raise ValueError(f"{name} '{size}': it is no whole number of bytes")
    return int(exact)


def format_bytes(count: float) -> str:
    """Bytes in the largest binary unit that leaves at least 1: "512 B", "4.0 KiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def format_seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"


def format_rate(per_second: float, unit: str) -> str:
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_second >= scale:
            return f"{per_second / scale:.2f} {prefix}{unit}"
    return f"{per_second:.2f} {unit}"

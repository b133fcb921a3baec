"""Sizes and counts as people write them."""

from __future__ import annotations

import re
from fractions import Fraction

UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:iB)?\s*|\s*(\d+)\s*B\s*", re.IGNORECASE)


def parse_size(size: int | str) -> int:
    """A number of bytes: 4096, "4096", "4KiB", "64K", "1.5GiB". K, M, G and T are powers of 1024."""
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise TypeError(f"size {size!r}: give a number of bytes, or text such as 16MiB")
    if isinstance(size, int):
        if size < 0:
            raise ValueError(f"size {size}: it cannot be negative")
        return size
    match = SIZE.fullmatch(size)
    if match is None:
        raise ValueError(f"size '{size}': write it as 16MiB, 64K or a number of bytes")
    number, unit = (match.group(3), "") if match.group(3) else (match.group(1), match.group(2))
    exact = Fraction(number) * UNITS[unit.upper()]
    if exact.denominator != 1:
        raise ValueError(f"size '{size}': it is no whole number of bytes")
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

"""CRC-32 of files, as zlib and the tools of that name count it. Holes are zeros, which are not read."""

from __future__ import annotations

import zlib

_POLYNOMIAL = 0xEDB88320  # of CRC-32, lowest power in the highest bit
_ALL = 0xFFFFFFFF
_X_TO_8 = 1 << 23


class Checksum:
    """Of the bytes that were added, in their order."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, part: bytes | memoryview) -> None:
        self.value = zlib.crc32(part, self.value)

    def add_zeros(self, count: int) -> None:
        """In a time that grows with the logarithm of their number: multiplies the register by x**(8 count),
        by repeated squaring."""
        register, factor = self.value ^ _ALL, _X_TO_8
        while count:
            if count & 1:
                register = _multiply(register, factor)
            factor = _multiply(factor, factor)
            count >>= 1
        self.value = register ^ _ALL


def _multiply(one: int, other: int) -> int:
    """Of polynomials over GF(2), modulo that of CRC-32."""
    product = 0
    for power in range(31, -1, -1):
        if one >> power & 1:
            product ^= other
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product

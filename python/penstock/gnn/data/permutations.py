"""Permutations of many numbers that take no memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
_Step = Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.uint64]]
_ROUNDS = 3


class Permutation:
    """A bijection of 0 to count - 1 that looks random, in both directions.

    Rounds of xor-shift and multiplication by an odd number permute the next power of two; a number that
    leaves the range goes through again until it is back (cycle walking: Black and Rogaway, CT-RSA 2002).
    """

    def __init__(self, count: int, random: np.random.Generator) -> None:
        self.count = count
        self._bits = max(2, (count - 1).bit_length())
        self._mask = np.uint64((1 << self._bits) - 1)
        self._shift = np.uint64((self._bits + 1) // 2)
        drawn = random.integers(0, 1 << self._bits, (2, _ROUNDS), dtype=np.uint64)
        self._factors = [int(value) | 1 for value in drawn[0]]
        self._added = [np.uint64(value) for value in drawn[1]]
        self._inverses = [pow(factor, -1, 1 << self._bits) for factor in self._factors]

    def forward(self, places: Ids) -> Ids:
        return self._walk(places, self._once)

    def inverse(self, values: Ids) -> Ids:
        return self._walk(values, self._once_back)

    def _walk(self, given: Ids, once: _Step) -> Ids:
        values = once(given.astype(np.uint64))
        limit = np.uint64(self.count)
        outside = np.flatnonzero(values >= limit)
        while len(outside):
            again = once(values[outside])
            values[outside] = again
            outside = outside[again >= limit]
        return values.view(np.int64)

    def _once(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        for factor, added in zip(self._factors, self._added, strict=True):
            values ^= values >> self._shift  # its own inverse: the shift is at least half of the bits
            values *= np.uint64(factor)
            values += added
            values &= self._mask
        values ^= values >> self._shift
        return values

    def _once_back(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        values ^= values >> self._shift
        for factor, added in zip(reversed(self._inverses), reversed(self._added), strict=True):
            values -= added
            values *= np.uint64(factor)
            values &= self._mask
            values ^= values >> self._shift
        return values

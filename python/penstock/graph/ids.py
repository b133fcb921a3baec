"""Ids of tables as numbers of vertices.

Vertices are numbered in ascending order of their ids (integers as numbers, strings by their bytes), and the
ids become the vertices' names, unless they are the numbers anyway. Batches are kept as arrays; text of ids is
never held but once for each vertex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ._binding import Array

MOST_VERTICES = 2**40
RENUMBERED = "ids renumbered, and kept as names"
"""In GraphFolder.reading where names are integers; libs/graph/text_edge_list.cpp has it, too."""


@dataclass(frozen=True)
class Numbering:
    """first_id: the integer that the first vertex is called. gaps: whether integers that are no vertex's id
    are vertices, too, so that an id is a number."""

    first_id: int = 0
    gaps: bool = False


@dataclass(frozen=True)
class Numbered:
    """from_, to: int32 or int64, shape (rows,)."""

    from_: Array
    to: Array
    vertices: int
    names: list[str] | None
    integers: bool = False
    """Whether the names are."""

    @property
    def remark(self) -> str:
        """For the end of a reading."""
        return f"; {RENUMBERED}" if self.integers and self.names is not None else ""


class Ids(Protocol):
    """Collects the ends of edges; then numbers the vertices."""

    def add(self, from_: Any, to: Any) -> None:
        """Two Arrow or NumPy arrays of one length."""

    def numbered(self, called: str, how: Numbering) -> Numbered:
        """Empties what was collected. Raises ValueError for ids that `how` does not allow."""


class IntegerIds:
    """Keeps the ids of all rows, 8 bytes each, and apart from them each id once."""

    def __init__(self, dtype: str) -> None:
        self.batches: list[tuple[Array, Array]] = []
        self.distinct: Array = np.empty(0, dtype)
        self.recent: list[Array] = []
        self.recent_size = 0

    def add(self, from_: Any, to: Any) -> None:
        ends = (array_of(from_), array_of(to))
        self.batches.append(ends)
        self.recent.append(_distinct(np.concatenate(ends)))
        self.recent_size += len(self.recent[-1])
        # As much as there is already at a time: each id is sorted a few times, not once for each batch.
        if self.recent_size > len(self.distinct):
            self.merge()

    def merge(self) -> None:
        self.distinct = _distinct(np.concatenate([self.distinct, *self.recent]))
        self.recent, self.recent_size = [], 0

    def numbered(self, called: str, how: Numbering) -> Numbered:
        self.merge()
        distinct, first = self.distinct, how.first_id
        count = len(distinct)
        if count and (how.gaps or first) and int(distinct[0]) < first:
            raise ValueError(
                f"read {called}: id {distinct[0]}: it is below the first id, {first}: correct first_id"
            )
        span = int(distinct[-1]) - first + 1 if count else 0
        plain = how.gaps or (count > 0 and int(distinct[0]) == first and span == count)
        if plain and span > MOST_VERTICES:
            raise ValueError(
                f"read {called}: id {distinct[-1]}: it is no number of a vertex: give renumber=True"
            )
        vertices = span if plain else count
        shift = distinct.dtype.type(first)
        from_, to = _joined(
            self.batches, vertices, lambda ends: ends - shift if plain else np.searchsorted(distinct, ends)
        )
        names = None if plain else [str(each) for each in distinct.tolist()]
        return Numbered(from_, to, vertices, names, integers=True)


class StringIds:
    """Keeps each string once, and for the rows the numbers of strings in the order in which they came."""

    def __init__(self) -> None:
        self.batches: list[tuple[Array, Array]] = []
        self.seen: dict[str, int] = {}

    def add(self, from_: Any, to: Any) -> None:
        self.batches.append((self.codes(from_), self.codes(to)))

    def codes(self, column: Any) -> Array:
        encoded, seen = column.dictionary_encode(), self.seen
        known = [seen.setdefault(name, len(seen)) for name in encoded.dictionary.to_pylist()]
        dtype = np.int32 if len(seen) < 2**31 else np.int64
        codes: Array = np.array(known, dtype)[encoded.indices.to_numpy(zero_copy_only=False)]
        return codes

    def numbered(self, called: str, how: Numbering) -> Numbered:
        if how.gaps or how.first_id:
            some = next(iter(self.seen), "")
            raise ValueError(f"read {called}: id {some!r} is no integer: leave first_id and renumber out")
        # By code points, which is by the bytes of UTF-8.
        names = sorted(self.seen)
        rank = np.empty(len(names), np.int64)
        rank[[self.seen[name] for name in names]] = np.arange(len(names))
        from_, to = _joined(self.batches, len(names), lambda codes: rank[codes])
        return Numbered(from_, to, len(names), names)


def array_of(column: Any) -> Array:
    array: Array = column if isinstance(column, np.ndarray) else column.to_numpy(zero_copy_only=False)
    return array


def _distinct(ids: Array) -> Array:
    """Each once, ascending; sorts `ids` in place. np.unique hashes, which takes eight times as long here."""
    ids.sort()
    first = np.ones(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=first[1:])
    return ids[first]


def _joined(batches: list[tuple[Array, Array]], vertices: int, number: Any) -> tuple[Array, Array]:
    """Both columns in one piece, as vertices; empties `batches` on the way, to hold nothing twice."""
    rows = sum(len(from_) for from_, _ in batches)
    dtype = np.int32 if vertices < 2**31 else np.int64
    ends = np.empty(rows, dtype), np.empty(rows, dtype)
    while batches:
        batch = batches.pop()
        for whole, part in zip(ends, batch, strict=True):
            whole[rows - len(part) : rows] = number(part)
        rows -= len(batch[0])
    return ends

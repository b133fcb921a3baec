"""Edges of a source in pieces: a file of pairs, or arrays in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .npy import Npy, read_at, read_pieces

Ids = npt.NDArray[np.int64]


class Edges(Protocol):
    """Edges that can be read several times."""

    @property
    def where(self) -> Path | str:
        """What errors name."""

    @property
    def count(self) -> int: ...

    def pieces(self, edges: int) -> Iterator[tuple[Ids, Ids]]:
        """Sources and targets of at most `edges` edges at a time."""


@dataclass(frozen=True)
class FileEdges:
    """An array of shape (2, edges) or (edges, 2)."""

    facts: Npy
    pairs: bool
    """Whether its shape is (edges, 2)."""
    where: Path

    @property
    def count(self) -> int:
        return self.facts.shape[0 if self.pairs else 1]

    def pieces(self, edges: int) -> Iterator[tuple[Ids, Ids]]:
        facts = self.facts
        if self.pairs != facts.fortran:  # source and target of an edge lie side by side
            side_by_side = Npy(facts.path, facts.dtype, (self.count, 2), facts.offset)
            for _, piece in read_pieces(side_by_side, edges):
                yield piece[:, 0].astype(np.int64), piece[:, 1].astype(np.int64)
            return
        size = facts.dtype.itemsize
        with facts.path.open("rb", buffering=0) as file:
            for first in range(0, self.count, edges):
                piece = np.empty((2, min(edges, self.count - first)), facts.dtype)
                for side in range(2):
                    place = facts.offset + (side * self.count + first) * size
                    read_at(file.fileno(), piece[side], place, facts.path)
                yield piece[0].astype(np.int64), piece[1].astype(np.int64)


@dataclass(frozen=True)
class MemoryEdges:
    """Arrays of the sources and of the targets."""

    where: str
    sources: npt.NDArray[np.integer]
    targets: npt.NDArray[np.integer]

    @property
    def count(self) -> int:
        return len(self.sources)

    def pieces(self, edges: int) -> Iterator[tuple[Ids, Ids]]:
        for first in range(0, self.count, edges):
            part = slice(first, first + edges)
            yield self.sources[part].astype(np.int64), self.targets[part].astype(np.int64)


def file_edges(facts: Npy, *, pairs: bool, read_from: Path | None = None) -> FileEdges:
    """Edges of an array.

    Args:
        pairs: It has the shape (edges, 2), not (2, edges).
        read_from: The file of the user's that it was read from, where it is none itself.

    Raises:
        ValueError: It has another shape, or holds no integers.
    """
    right = len(facts.shape) == 2 and facts.shape[1 if pairs else 0] == 2
    if not right or facts.dtype.kind not in "iu":
        wanted = "(edges, 2)" if pairs else "(2, edges)"
        raise ValueError(
            f"read {facts.path}: it has {facts.dtype} of shape {facts.shape}: give integers of shape {wanted}"
        )
    return FileEdges(facts, pairs, read_from or facts.path)


def with_reverse(edges: Edges, at_once: int) -> Iterator[tuple[Ids, Ids]]:
    """Each edge, and its reverse; an edge of a node to itself once."""
    for sources, targets in edges.pieces(max(1, at_once // 2)):
        others = sources != targets
        yield np.concatenate([sources, targets[others]]), np.concatenate([targets, sources[others]])

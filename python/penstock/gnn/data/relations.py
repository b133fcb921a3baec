"""Edges of several types to compressed sparse columns: each type for itself, then all together.

The edges into a node stand type after type, those of a type by their sources.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.callbacks import Progress

from .csc import Conversion
from .dataset import MAX_RELATIONS, EdgeType, id_dtype
from .edges import Edges
from .npy import Npy, NpyWriter, read_at, read_npy, read_pieces, write_npy

Ids = npt.NDArray[np.int64]
_EDGE_BYTES = 64  # of memory for an edge of a range: its source and its place, for one type and for all


@dataclass(frozen=True)
class Relation:
    """Edges of one type, whose ends are numbered in their types."""

    kind: EdgeType
    edges: Edges
    sources: range
    """The numbers of all nodes of the type of the sources, in the numbering of all types."""
    targets: range
    undirected: bool = False
    """Whether each edge has a reverse of the same type."""

    def reversed(self) -> Relation:
        source, name, target = self.kind
        edges = _Reversed(self.edges)
        return Relation((target, f"rev_{name}", source), edges, self.targets, self.sources)

    @property
    def where(self) -> Path | str:
        return self.edges.where

    @property
    def count(self) -> int:
        return self.edges.count

    def pieces(self, edges: int) -> Iterator[tuple[Ids, Ids]]:
        """In the numbering of all types."""
        for sources, targets in self.edges.pieces(edges):
            source, _, target = self.kind
            yield (
                self._numbered(source, sources, self.sources),
                self._numbered(target, targets, self.targets),
            )

    def _numbered(self, kind: str, ids: Ids, numbers: range) -> Ids:
        if len(ids) and (ids.min() < 0 or ids.max() >= len(numbers)):
            bad = ids.min() if ids.min() < 0 else ids.max()
            raise ValueError(
                f"read {self.where}: an edge names node {bad} of {kind}, and these are 0 to "
                f"{len(numbers) - 1}: correct the edges"
            )
        return ids + numbers.start


@dataclass(frozen=True)
class _Reversed:
    edges: Edges

    @property
    def where(self) -> Path | str:
        return self.edges.where

    @property
    def count(self) -> int:
        return self.edges.count

    def pieces(self, edges: int) -> Iterator[tuple[Ids, Ids]]:
        for sources, targets in self.edges.pieces(edges):
            yield targets, sources


def with_reverses(relations: Sequence[Relation]) -> list[Relation]:
    """Reverses of edges between two types are a type of their own, those within a type are of the same."""
    made = []
    for each in relations:
        if each.kind[0] == each.kind[2]:
            made.append(Relation(each.kind, each.edges, each.sources, each.targets, undirected=True))
        else:
            made += [each, each.reversed()]
    return made


def put_relations(
    draft: Path, relations: Sequence[Relation], nodes: int, memory: int, progress: Progress | None
) -> int:
    """Write pointers.npy, neighbors.npy and relations.npy.

    Returns:
        Edges that were written.

    Raises:
        ValueError: An id is out of range, there are no types or too many.
    """
    if not 0 < len(relations) <= MAX_RELATIONS:
        raise ValueError(f"edge types: there are {len(relations)}: give 1 to {MAX_RELATIONS}")
    lists = []
    for number, relation in enumerate(relations):
        folder = draft / f"relation-{number}"
        folder.mkdir()
        Conversion(
            folder, relation, nodes, undirected=relation.undirected, memory=memory, progress=progress
        ).run()
        lists.append(_Lists(folder))
    pointers = np.zeros(nodes + 1, np.int64)
    for each in lists:
        for first, piece in read_pieces(each.pointers, 1 << 20):
            pointers[first : first + len(piece)] += piece
    write_npy(draft / "pointers.npy", pointers)
    _merge(draft, lists, pointers, max(1, memory // _EDGE_BYTES))
    for each in lists:
        shutil.rmtree(each.folder)
    return int(pointers[-1])


class _Lists:
    """The edges of one type on their way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pointers, self.neighbors = (
            read_npy(folder / f"{name}.npy") for name in ("pointers", "neighbors")
        )


def _merge(draft: Path, lists: Sequence[_Lists], pointers: Ids, at_once: int) -> None:
    nodes, total = len(pointers) - 1, int(pointers[-1])
    by_edges = np.searchsorted(pointers[:-1], np.arange(0, total, at_once))
    cuts = np.unique(np.concatenate([by_edges, np.arange(0, nodes, at_once), [0, nodes]]))
    with ExitStack() as stack:
        neighbors, relations = (
            stack.enter_context(NpyWriter(draft / f"{name}.npy", dtype, (total,)))
            for name, dtype in (("neighbors", id_dtype(nodes)), ("relations", np.dtype(np.uint8)))
        )
        for first, end in pairwise(cuts):
            begin = pointers[first]
            sources = np.empty(pointers[end] - begin, id_dtype(nodes))
            kinds = np.empty(len(sources), np.uint8)
            free = pointers[first:end] - begin  # where the next edge into each node goes
            for number, each in enumerate(lists):
                bounds = _slice(each.pointers, first, end + 1)
                counts = np.diff(bounds)
                places = np.repeat(free - bounds[:-1], counts) + np.arange(bounds[0], bounds[-1])
                sources[places] = _slice(each.neighbors, bounds[0], bounds[-1])
                kinds[places] = number
                free = free + counts
            neighbors.add(sources)
            relations.add(kinds)


def _slice(facts: Npy, first: int, end: int) -> npt.NDArray[Any]:
    piece = np.empty(int(end - first), facts.dtype)
    with facts.path.open("rb", buffering=0) as file:
        read_at(file.fileno(), piece, facts.offset + int(first) * facts.row_bytes, facts.path)
    return piece

"""Edges in any order to compressed sparse columns, in bounded memory.

The first pass counts the edges into each node. The second distributes the edges to temporary files, each of a
range of targets whose edges fit memory. Then each file is sorted, and its sources are appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penstock.callbacks import Progress

from .dataset import id_dtype
from .edges import Edges, with_reverse
from .npy import Npy, NpyWriter, read_pieces, write_npy

Ids = npt.NDArray[np.int64]

MAX_NODES = (1 << 31) - 1
_SOURCE_BITS = np.int64(32)
_EDGE_BYTES = (
    64  # of memory for an edge of a piece: both ids, as read and converted, its key, and a sorted copy
)
_KEY_BYTES = 24  # of memory for an edge of a range: its key, and its source
_MAX_RANGES = 256  # files that are open at once
MIN_MEMORY = 1 << 20


class Conversion:
    """One graph's edges on their way into a draft."""

    def __init__(
        self,
        draft: Path,
        edges: Edges,
        nodes: int,
        *,
        undirected: bool,
        memory: int,
        progress: Progress | None,
    ) -> None:
        if nodes > MAX_NODES:
            raise ValueError(f"read {edges.where}: {nodes} nodes: at most {MAX_NODES} can be converted")
        self.draft, self.edges, self.nodes, self.undirected = draft, edges, nodes, undirected
        self.piece = max(1, memory // 2 // _EDGE_BYTES)
        self.range_edges = max(1, memory // 2 // _KEY_BYTES)
        self.progress = progress

    def run(self) -> int:
        """Write pointers.npy and neighbors.npy; the sources of a node ascend.

        Returns:
            Edges that were written.

        Raises:
            ValueError: An id is out of range.
        """
        pointers = self._count()
        write_npy(self.draft / "pointers.npy", pointers)
        total = int(pointers[-1])
        with NpyWriter(self.draft / "neighbors.npy", id_dtype(self.nodes), (total,)) as neighbors:
            done = 0
            for keys in self._ranges(pointers):
                keys.sort()
                neighbors.add(keys & ((np.int64(1) << _SOURCE_BITS) - 1))
                done += len(keys)
                self._report("sorting edges", done, total)
        return total

    def _pieces(self, what: str) -> Iterator[tuple[Ids, Ids]]:
        given = with_reverse(self.edges, self.piece) if self.undirected else self.edges.pieces(self.piece)
        done, total = 0, self.edges.count * (2 if self.undirected else 1)
        for sources, targets in given:
            yield sources, targets
            done += len(sources)
            self._report(what, done, total)

    def _count(self) -> Ids:
        pointers = np.zeros(self.nodes + 1, np.int64)
        for sources, targets in self._pieces("counting edges"):
            for ids in (sources, targets):
                if len(ids) and (ids.min() < 0 or ids.max() >= self.nodes):
                    bad = ids.min() if ids.min() < 0 else ids.max()
                    raise ValueError(
                        f"read {self.edges.where}: an edge names node {bad}, and nodes are 0 to "
                        f"{self.nodes - 1}: correct the edges, or give all nodes features"
                    )
            np.add.at(pointers, targets + 1, 1)
        return np.cumsum(pointers, out=pointers)

    def _ranges(self, pointers: Ids) -> Iterator[Ids]:
        """Keys of the edges into each range of nodes: target in the upper half, source in the lower."""
        total = int(pointers[-1])
        step = max(self.range_edges, -(-total // _MAX_RANGES))
        # The first node of each range; one node's edges are never divided.
        starts = np.unique(np.searchsorted(pointers[:-1], np.arange(0, total, step), side="left"))
        starts[:1] = 0
        if len(starts) <= 1:
            pieces = self._pieces("reading edges")
            yield np.concatenate([np.empty(0, np.int64), *(self._keys(*piece) for piece in pieces)])
            return
        paths = [self.draft / f"range-{number}.tmp" for number in range(len(starts))]
        self._distribute(starts, paths)
        for path in paths:
            count = path.stat().st_size // 8
            for _, keys in read_pieces(Npy(path, np.dtype(np.int64), (count,), 0), max(1, count)):
                yield keys
            path.unlink()

    def _distribute(self, starts: Ids, paths: list[Path]) -> None:
        bounds = starts[1:] << _SOURCE_BITS
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("xb", buffering=0)) for path in paths]
            for piece in self._pieces("distributing edges"):
                keys = self._keys(*piece)
                keys.sort()
                parts = np.split(keys, np.searchsorted(keys, bounds))
                for file, part in zip(files, parts, strict=True):
                    view = part.view(np.uint8).data
                    while len(view):
                        view = view[file.write(view) :]

    @staticmethod
    def _keys(sources: Ids, targets: Ids) -> Ids:
        keys: Ids = targets << _SOURCE_BITS | sources
        return keys

    def _report(self, what: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(what, min(done, total), total)

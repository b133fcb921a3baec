"""Folders of graphs whose nodes are numbered by score: the hottest rows of their tables lie at the front."""

from __future__ import annotations

import json
import mmap
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from penstock.arguments import reading
from penstock.arrays.layout import path_text
from penstock.arrays.messages import shown_path, watched
from penstock.arrays.whole import free_memory
from penstock.checks import checked_count
from penstock.drafts import draft_folder
from penstock.sampling.host import on_host
from penstock.sizes import format_bytes, parse_size
from penstock.tiering.npy_files import NpyFile, Values, advise, map_of, mapped
from penstock.tiering.ranking import ranked, scores_of
from penstock.tiering.source_folder import FACTS, SourceFolder
from penstock.tiering.workers import Workers

if TYPE_CHECKING:
    from penstock.callbacks import Progress

_MIN_MEMORY = 1 << 20
_BLOCKS_OF_TASK = 8
_READ_AHEAD = 64 << 20  # bytes that one call reads


@dataclass(frozen=True)
class Reordered:
    """A folder that `reorder` wrote, for `penstock.sampling.Graph.open` and, with a dataset.json, for
    `penstock.gnn.data.open`.

    Attributes:
        folder: Its path.
        nodes, edges: How many there are.
    """

    folder: Path
    nodes: int
    edges: int

    def __fspath__(self) -> str:
        return os.fspath(self.folder)

    @property
    def order(self) -> Path:
        """int64, shape (nodes,): the number in the old folder of each node."""
        return self.folder / "order.npy"

    @property
    def pointers(self) -> Path:
        return self.folder / "pointers.npy"

    @property
    def neighbors(self) -> Path:
        return self.folder / "neighbors.npy"

    @property
    def features(self) -> Path:
        return self.folder / "features.npy"

    @property
    def labels(self) -> Path:
        return self.folder / "labels.npy"

    @property
    def train(self) -> Path:
        return self.folder / "train.npy"

    @property
    def valid(self) -> Path:
        return self.folder / "valid.npy"

    @property
    def test(self) -> Path:
        return self.folder / "test.npy"


def reorder(
    folder: Any,
    scores: Any,
    to: str | os.PathLike[str],
    *,
    memory: SupportsIndex | str = "1GiB",
    threads: SupportsIndex = 0,
    progress: Progress | None = None,
) -> Reordered:
    """Write a dataset anew with its nodes numbered by descending score; of equal scores the lower number is
    first. The hottest rows of features.npy are then its first ones.

    pointers.npy and neighbors.npy are needed; weights.npy and relations.npy (of edges), features.npy,
    labels.npy, train.npy, valid.npy, test.npy and dataset.json follow where they are there; other files are
    not copied, and links become files. Lists and splits keep the order of their elements, and neighbors.npy
    its type; the nodes of a type are no longer one range of numbers. The result does not depend on `memory`
    and `threads`.

    order.npy holds the old number of each node, so that ids keep their meaning for users. With
    `order = numpy.load(result.order, mmap_mode="r")`:

        order[batch.n_id]      the old numbers of a batch's nodes, also `original(order, batch.n_id)`
        places(order)[ids]     the new numbers of old ones

    Numbers are those in `folder`; after two calls, `first_order[second_order]` has the first numbers.

    Args:
        folder: A dataset's folder, or an object with its path as `folder`.
        scores: Numbers, shape (nodes,), such as those of `score`.
        to: A new folder. It appears when all is written.
        memory: Bytes for arrays that are not written yet. The tables of nodes come on top, about 30 bytes a
            node, and mapped files, which the page cache holds.
        threads: 0: one for each core.
        progress: Called with what is done, how much of it, and of how much.

    Returns:
        The new folder.

    Raises:
        FileNotFoundError: pointers.npy or neighbors.npy is missing.
        ValueError, TypeError: A bad argument, scores of another length, damaged files, a folder `to` that is
            not empty.
        penstock.Error: `to` cannot be written, there is no room, or a file was cut short meanwhile.

    Source: the zero-copy dissertation, 4.2.2.
    """
    size = parse_size(memory, "memory")
    if size < _MIN_MEMORY:
        raise ValueError(f"memory {format_bytes(size)}: it is too small: give 1MiB or more")
    count = checked_count("threads", threads, 0, 1024) or len(os.sched_getaffinity(0))
    path = Path(path_text(getattr(folder, "folder", folder), "reorder"))
    target = Path(path_text(to, "reorder to"))
    source = SourceFolder(path)
    values = scores_of(scores, source)
    seen = watched(progress)
    workers = Workers(max(1, min(count, size // _MIN_MEMORY)), size, seen)
    with (
        draft_folder("reorder to", target, source.nbytes, seen) as draft,
        reading(f"reorder {shown_path(str(path))}", *source.arrays, values),
    ):
        _Reordering(source, values, draft, workers).write(target.resolve().name)
    return Reordered(target, source.nodes, source.edges)


def original(order: Any, ids: Any) -> NDArray[np.int64]:
    """The numbers that nodes had before `reorder`.

    Args:
        order: Of order.npy, or its path.
        ids: New numbers, of any shape, such as `batch.n_id`.

    Returns:
        int64, in the shape of `ids`.

    Raises:
        IndexError, TypeError: A number that is no node, or no integer.
    """
    table = _order_of(order)
    numbers = on_host(ids)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(f"original: ids of {numbers.dtype}: give integers")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= len(table)):
        wrong = int(numbers.min()) if numbers.min() < 0 else int(numbers.max())
        raise IndexError(f"original: node {wrong}: it is no node: give numbers from 0 to {len(table) - 1}")
    found: NDArray[np.int64] = np.asarray(table[numbers.astype(np.int64)], np.int64)
    return found


def places(order: Any) -> NDArray[np.int64]:
    """The new number of each old one: the inverse of `order`, an array or the path of order.npy."""
    table = _order_of(order)
    inverse = np.empty(len(table), np.int64)
    inverse[table] = np.arange(len(table))
    return inverse


def _order_of(given: Any) -> Values:
    if isinstance(given, (str, os.PathLike)):
        return mapped(Path(given))
    return on_host(given)


class _Reordering:
    """One folder on its way into a draft."""

    def __init__(self, source: SourceFolder, scores: Values, draft: Path, workers: Workers) -> None:
        self.source, self.draft, self.workers = source, draft, workers
        self.id_type = np.dtype(np.int32 if source.nodes < 1 << 31 else np.int64)
        self.scores = scores
        self.task = workers.block * _BLOCKS_OF_TASK

    def write(self, name: str) -> None:
        """Write all files. What can be wrong quickly comes first."""
        self._check_pointers()
        self._check_splits()
        self.order = ranked(self.scores, self.id_type, self.workers)
        self._write_order()
        self._write_pointers()
        self._write_edges()
        for each, values in self.source.rows.items():
            self._write_rows(each, values)
        for each, ids in self.source.splits.items():
            with NpyFile(self.draft / f"{each}.npy", np.int64, (len(ids),)) as file:
                file.put(0, self.places[ids])
        if self.source.facts is not None:
            facts = {**self.source.facts, "name": name}
            for of_ranges in ("node_types", "without_features"):
                facts.pop(of_ranges, None)
            facts["source"] = f"{facts.get('source', self.source.folder.name)}, reordered by score"
            (self.draft / FACTS).write_text(json.dumps(facts, indent=1) + "\n")

    def _check_pointers(self) -> None:
        pointers, edges = self.source.pointers, self.source.edges
        if pointers[0] != 0:
            raise self.source.wrong("pointers", f"it begins with {pointers[0]}, not 0")

        def check(first: int, end: int) -> None:
            falls = pointers[first + 1 : end + 1] < pointers[first:end]
            if falls.any():
                place = first + 1 + int(np.argmax(falls))
                raise self.source.wrong("pointers", f"pointer {place} decreases")

        self.workers.ranges("checking pointers", self.source.nodes, self.workers.block, check)
        if pointers[-1] != edges:
            raise self.source.wrong("pointers", f"it ends at {pointers[-1]}, and there are {edges} neighbors")

    def _check_splits(self) -> None:
        for name, ids in self.source.splits.items():
            if _outside(ids, self.source.nodes):
                self._refuse(name, ids)

    def _refuse(self, name: str, ids: Values) -> None:
        bad = ids[np.argmax((ids < 0) | (ids >= self.source.nodes))]
        raise self.source.wrong(name, f"it has {bad}, and node ids are 0 to {self.source.nodes - 1}")

    def _write_order(self) -> None:
        """order.npy, and the table of new numbers."""
        nodes, order = self.source.nodes, self.order
        self.places = np.empty(nodes, self.id_type)
        with NpyFile(self.draft / "order.npy", np.int64, (nodes,)) as file:

            def write(first: int, end: int) -> None:
                file.put(first, order[first:end])
                self.places[order[first:end]] = np.arange(first, end, dtype=self.id_type)

            self.workers.ranges("numbering nodes", nodes, self.workers.block, write)

    def _write_pointers(self) -> None:
        nodes, old, order = self.source.nodes, self.source.pointers, self.order
        self.new = np.zeros(nodes + 1, np.int64)

        def measure(first: int, end: int) -> None:
            ids = order[first:end].astype(np.intp)
            lengths = self.new[first + 1 : end + 1]
            np.subtract(old[1:].take(ids, mode="clip"), old.take(ids, mode="clip"), out=lengths)

        self.workers.ranges("measuring lists", nodes, self.workers.block, measure)
        np.cumsum(self.new, out=self.new)
        with NpyFile(self.draft / "pointers.npy", np.int64, (nodes + 1,)) as file:
            self.workers.ranges(
                "writing pointers", nodes + 1, self.workers.block,
                lambda first, end: file.put(first, self.new[first:end]),
            )  # fmt: skip

    def _read_ahead(self, name: str, values: Values) -> None:
        """Read a file into the page cache in its own order, if it fits there: it is used in another order."""
        memory = map_of(values)
        if memory is None:
            return
        if values.nbytes > free_memory() // 2:
            advise(memory, mmap.MADV_RANDOM, 0, len(memory))
            return
        for first in range(0, len(memory), _READ_AHEAD):
            count = min(_READ_AHEAD, len(memory) - first)
            advise(memory, mmap.MADV_WILLNEED, first, count)
            self.workers.report(f"reading {name}", first + count, len(memory))

    def _write_edges(self) -> None:
        source = self.source
        dtype = np.promote_types(source.neighbors.dtype, self.id_type)
        self._read_ahead("neighbors", source.neighbors)
        with ExitStack() as files:
            neighbors = files.enter_context(NpyFile(self.draft / "neighbors.npy", dtype, (source.edges,)))
            values = []
            for name, each in source.of_edges.items():
                self._read_ahead(name, each)
                file = files.enter_context(NpyFile(self.draft / f"{name}.npy", each.dtype, each.shape))
                values.append((each, file))
            self._move_edges(neighbors, values)

    def _move_edges(self, neighbors: NpyFile, values: list[tuple[Values, NpyFile]]) -> None:
        source, block = self.source, self.workers.block

        def move(first: int, last: int) -> None:
            index, wide = (np.empty(min(block, last - first), np.intp) for _ in range(2))
            ids = np.empty(len(index), source.neighbors.dtype)
            moved = np.empty(len(index), self.id_type)
            while first < last:
                end = self._find_edges(first, min(first + block, last), index)
                count = end - first
                here = index[:count]
                # "clip" takes into the array itself; "raise" takes into a copy. The indices are in range.
                source.neighbors.take(here, out=ids[:count], mode="clip")
                if _outside(ids[:count], source.nodes):
                    self._refuse("neighbors", ids[:count])
                wide[:count] = ids[:count]
                self.places.take(wide[:count], out=moved[:count], mode="clip")
                neighbors.put(first, moved[:count])
                for each, file in values:
                    file.put(first, each.take(here, mode="clip"))
                first = end

        self.workers.ranges("moving edges", source.edges, self.task, move)

    def _find_edges(self, first: int, end: int, index: NDArray[np.intp]) -> int:
        """Where the new edges from `first` on lie in the old file.

        Args:
            first, end: A range of edges by their new numbers. It may begin and end within a list.
            index: Gets the old numbers.

        Returns:
            The end of what was found, which is before `end` where more nodes than a block has come first.
        """
        node = int(self.new.searchsorted(first, side="right")) - 1
        last = int(self.new.searchsorted(end, side="left"))
        if last - node > self.workers.block:
            last = node + self.workers.block
            end = int(self.new[last])
        bounds = self.new[node : last + 1] - first
        starts = self.source.pointers.take(self.order[node:last].astype(np.intp), mode="clip") - bounds[:-1]
        bounds[0] = 0
        bounds[-1] = end - first
        filled = np.flatnonzero(bounds[1:] > bounds[:-1])
        starts, begins = starts[filled], bounds[:-1][filled]
        # Old numbers step by 1 within a list, and jump between lists. numpy.repeat takes as long, but holds
        # the GIL.
        found = index[: end - first]
        found.fill(1)
        found[begins[1:]] += np.diff(starts)
        found[0] = starts[0]
        np.cumsum(found, out=found)
        return end

    def _write_rows(self, name: str, values: Values) -> None:
        what = f"moving {name}"
        with NpyFile(self.draft / f"{name}.npy", values.dtype, values.shape) as file:
            if values.nbytes == 0:
                return
            self._read_ahead(name, values)
            rows = values.view(np.uint8) if values.ndim > 1 else values.reshape(-1, 1).view(np.uint8)
            rows = rows.reshape(self.source.nodes, -1)
            block = self.workers.rows(rows.shape[1])

            def move(first: int, end: int) -> None:
                out = np.empty((min(block, end - first), rows.shape[1]), np.uint8)
                for begin in range(first, end, block):
                    ids = self.order[begin : min(begin + block, end)].astype(np.intp)
                    file.put(begin, rows.take(ids, axis=0, out=out[: len(ids)], mode="clip"))

            self.workers.ranges(what, self.source.nodes, block * _BLOCKS_OF_TASK, move)


def _outside(ids: Values, nodes: int) -> bool:
    """Whether one is no node: negative ones are large without their sign."""
    return bool(len(ids)) and int(ids.view(f"u{ids.itemsize}").max()) >= nodes

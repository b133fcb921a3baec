"""Folders of graphs whose nodes are numbered by score: the hottest rows of their tables lie at the front."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import mmap
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penstock.arguments import reading
from penstock.arrays.layout import find_layout, path_text
from penstock.arrays.messages import Watched, naming, shown_path, system_error, watched
from penstock.checks import checked_count
from penstock.errors import Error
from penstock.sampling.host import on_host
from penstock.sizes import format_bytes, parse_size

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.callbacks import Progress

_Result = TypeVar("_Result")
_Values = NDArray[Any]

_FACTS = "dataset.json"
_SPLITS = ("train", "valid", "test")
_OF_EDGES = {"weights": ("float32", "float64"), "relations": ("uint8",)}
_DATA_OFFSET = 4096  # of a header: rows of 512 bytes or 4 KiB then lie in as few blocks of a drive as can be
_MIN_MEMORY = 1 << 20
_ITEM_BYTES = 128  # of temporary arrays, for an edge or a node of a block
_MAX_BLOCK = 1 << 17  # edges or nodes: temporary arrays stay in the caches of a core
_MAX_COPY = 1 << 20  # bytes of rows that one write takes
_BLOCKS_OF_TASK = 8
_BUCKETS_OF_THREAD = 4
_READ_AHEAD = 64 << 20  # bytes that one call reads
_SAMPLE = 1 << 16  # scores that buckets are chosen by


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
    source = _Source(path)
    values = _checked_scores(scores, source)
    seen = watched(progress)
    workers = _Workers(max(1, min(count, size // _MIN_MEMORY)), size, seen)
    with (
        _draft_folder(target, source.nbytes, seen) as draft,
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


def _order_of(given: Any) -> _Values:
    if isinstance(given, (str, os.PathLike)):
        return _mapped(Path(given))
    return on_host(given)


class _Source:
    """The files of a folder, mapped, with shapes and types checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pointers = self._list("pointers", ("int64",))
        self.neighbors = self._list("neighbors", ("int32", "int64"))
        self.nodes, self.edges = len(self.pointers) - 1, len(self.neighbors)
        if self.nodes < 0:
            raise self.wrong("pointers", "it has no element")
        values = {name: self._list(name, dtypes, self.edges) for name, dtypes in _OF_EDGES.items()}
        self.of_edges = {name: each for name, each in values.items() if each is not None}
        self.rows = {name: rows for name in ("features", "labels") if (rows := self._rows(name)) is not None}
        lists = {name: self._list(name, ("int32", "int64")) for name in _SPLITS if self._has(name)}
        self.splits = {name: np.array(ids) for name, ids in lists.items()}
        self.facts = self._read_facts()

    @property
    def arrays(self) -> list[_Values]:
        return [self.pointers, self.neighbors, *self.of_edges.values(), *self.rows.values()]

    @property
    def nbytes(self) -> int:
        """What the new folder takes."""
        splits = sum(8 * len(ids) for ids in self.splits.values())
        return sum(array.nbytes for array in self.arrays) + 8 * self.nodes + splits

    def wrong(self, name: str, what: str) -> ValueError:
        path = shown_path(str(self.folder / f"{name}.npy"))
        return ValueError(f"open {path}: {what}: make the dataset anew")

    def _has(self, name: str) -> bool:
        return os.path.lexists(self.folder / f"{name}.npy")

    def _list(self, name: str, dtypes: tuple[str, ...], length: int | None = None) -> Any:
        """One dimension of some type; None where there is no file, but for pointers and neighbors."""
        if not self._has(name) and name not in ("pointers", "neighbors"):
            return None
        values = _mapped(self.folder / f"{name}.npy")
        if values.ndim != 1 or values.dtype.name not in dtypes:
            raise self.wrong(
                name, f"it has {values.dtype} of shape {values.shape}, not a list of {' or '.join(dtypes)}"
            )
        if length is not None and len(values) != length:
            raise self.wrong(name, f"it has {len(values)} numbers, and there are {length} neighbors")
        if not values.flags.aligned:
            raise self.wrong(name, f"its numbers lie at no multiple of {values.itemsize} bytes")
        return values

    def _rows(self, name: str) -> _Values | None:
        if not self._has(name):
            return None
        values = _mapped(self.folder / f"{name}.npy")
        if values.ndim == 0 or len(values) != self.nodes:
            raise self.wrong(name, f"it has shape {values.shape}, and there are {self.nodes} nodes")
        return values

    def _read_facts(self) -> dict[str, Any] | None:
        path = self.folder / _FACTS
        with naming("open", str(path)):
            try:
                facts = json.loads(path.read_text())
            except FileNotFoundError:
                return None
            except ValueError as problem:
                raise ValueError(f"it is damaged: {problem}: make the dataset anew") from None
            if not isinstance(facts, dict):
                raise ValueError("it is damaged: it holds no object: make the dataset anew")
            for name, here in (("nodes", self.nodes), ("edges", self.edges)):
                if facts.get(name, here) != here:
                    raise ValueError(
                        f"its {name} are {facts[name]}, and those here {here}: make the dataset anew"
                    )
        return facts


class _Workers:
    """Threads that work on ranges, each within its share of the memory."""

    def __init__(self, threads: int, memory: int, progress: Progress | None) -> None:
        self.threads, self._progress = threads, progress
        self._share = memory // threads
        self.block = max(1, min(_MAX_BLOCK, self._share // _ITEM_BYTES))

    def rows(self, row_bytes: int) -> int:
        """How many rows one block has."""
        return max(1, min(self.block, _MAX_COPY // row_bytes, self._share // 2 // row_bytes))

    def ranges(self, what: str, total: int, step: int, work: Callable[[int, int], object]) -> None:
        """Run work(first, end) for ranges of `step` up to `total`."""

        def work_on(number: int) -> int:
            end = min((number + 1) * step, total)
            work(number * step, end)
            return end

        self.each(-(-total // step), work_on, lambda end: self.report(what, end, total))

    def each(self, count: int, work: Callable[[int], _Result], take: Callable[[_Result], None]) -> None:
        """Run work(0) to work(count - 1), and pass their results to `take` in order, on this thread.

        An exception, also Ctrl-C, cancels the pending calls and waits for the running ones.
        """
        pool = ThreadPoolExecutor(self.threads)
        pending: deque[Future[_Result]] = deque()
        try:
            for number in range(count):
                if len(pending) >= 2 * self.threads:
                    take(pending.popleft().result())
                pending.append(pool.submit(work, number))
            while pending:
                take(pending.popleft().result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def report(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)


class _Reordering:
    """One folder on its way into a draft."""

    def __init__(self, source: _Source, scores: _Values, draft: Path, workers: _Workers) -> None:
        self.source, self.draft, self.workers = source, draft, workers
        self.id_type = np.dtype(np.int32 if source.nodes < 1 << 31 else np.int64)
        self.scores = scores
        self.task = workers.block * _BLOCKS_OF_TASK

    def write(self, name: str) -> None:
        """Write all files. What can be wrong quickly comes first."""
        self._check_pointers()
        self._check_splits()
        self.order = _ranked(self.scores, self.id_type, self.workers)
        self._write_order()
        self._write_pointers()
        self._write_edges()
        for each, values in self.source.rows.items():
            self._write_rows(each, values)
        for each, ids in self.source.splits.items():
            with _NpyFile(self.draft / f"{each}.npy", np.int64, (len(ids),)) as file:
                file.put(0, self.places[ids])
        if self.source.facts is not None:
            facts = {**self.source.facts, "name": name}
            facts.pop("node_types", None)
            facts["source"] = f"{facts.get('source', self.source.folder.name)}, reordered by score"
            (self.draft / _FACTS).write_text(json.dumps(facts, indent=1) + "\n")

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

    def _refuse(self, name: str, ids: _Values) -> None:
        bad = ids[np.argmax((ids < 0) | (ids >= self.source.nodes))]
        raise self.source.wrong(name, f"it has {bad}, and node ids are 0 to {self.source.nodes - 1}")

    def _write_order(self) -> None:
        """order.npy, and the table of new numbers."""
        nodes, order = self.source.nodes, self.order
        self.places = np.empty(nodes, self.id_type)
        with _NpyFile(self.draft / "order.npy", np.int64, (nodes,)) as file:

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
        with _NpyFile(self.draft / "pointers.npy", np.int64, (nodes + 1,)) as file:
            self.workers.ranges(
                "writing pointers", nodes + 1, self.workers.block,
                lambda first, end: file.put(first, self.new[first:end]),
            )  # fmt: skip

    def _read_ahead(self, name: str, values: _Values) -> None:
        """Read a file into the page cache in its own order, if it fits there: it is used in another order."""
        memory = _map_of(values)
        if memory is None:
            return
        if values.nbytes > _available_bytes() // 2:
            _advise(memory, mmap.MADV_RANDOM, 0, len(memory))
            return
        for first in range(0, len(memory), _READ_AHEAD):
            count = min(_READ_AHEAD, len(memory) - first)
            _advise(memory, mmap.MADV_WILLNEED, first, count)
            self.workers.report(f"reading {name}", first + count, len(memory))

    def _write_edges(self) -> None:
        source = self.source
        dtype = np.promote_types(source.neighbors.dtype, self.id_type)
        self._read_ahead("neighbors", source.neighbors)
        with ExitStack() as files:
            neighbors = files.enter_context(_NpyFile(self.draft / "neighbors.npy", dtype, (source.edges,)))
            values = []
            for name, each in source.of_edges.items():
                self._read_ahead(name, each)
                file = files.enter_context(_NpyFile(self.draft / f"{name}.npy", each.dtype, each.shape))
                values.append((each, file))
            self._move_edges(neighbors, values)

    def _move_edges(self, neighbors: _NpyFile, values: list[tuple[_Values, _NpyFile]]) -> None:
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

    def _write_rows(self, name: str, values: _Values) -> None:
        what = f"moving {name}"
        with _NpyFile(self.draft / f"{name}.npy", values.dtype, values.shape) as file:
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


def _checked_scores(given: Any, source: _Source) -> _Values:
    values = on_host(given)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise TypeError(
            f"reorder: scores: {values.dtype} of shape {values.shape}: give a number for each node"
        )
    if len(values) != source.nodes:
        raise ValueError(
            f"reorder: {len(values)} scores: {shown_path(str(source.folder))} has {source.nodes} nodes: give "
            "one for each"
        )
    return values


def _ranked(scores: _Values, id_type: np.dtype[Any], workers: _Workers) -> _Values:
    """Node numbers by descending score, of equal ones ascending.

    Scores are divided into buckets by value, which threads sort. A value that many nodes have is a bucket of
    its own, in which nothing is left to sort.
    """
    buckets = _buckets(scores, workers.threads * _BUCKETS_OF_THREAD)
    step = workers.block

    def rank(number: int) -> _Values:
        low, high, equal = buckets[number]
        parts = []
        for first in range(0, len(scores), step):
            part = scores[first : first + step]
            if part.dtype.kind == "f" and number == 0 and not np.isfinite(part).all():
                raise ValueError("reorder: scores: one is no finite number: give a finite one for each node")
            if equal:
                chosen = part == low
            else:
                chosen = np.ones(len(part), bool) if low is None else part >= low
                if high is not None:
                    chosen &= part < high
            parts.append((np.flatnonzero(chosen) + first).astype(id_type))
        ids = np.concatenate(parts) if parts else np.empty(0, id_type)
        if equal:
            return ids
        values = scores[ids]
        keys = np.negative(values) if values.dtype.kind == "f" else np.invert(values)  # no integer overflows
        ranked: _Values = ids[np.argsort(keys, kind="stable")]
        return ranked

    order = np.empty(len(scores), id_type)
    done = 0

    def take(ids: _Values) -> None:
        nonlocal done
        order[done : done + len(ids)] = ids
        done += len(ids)
        workers.report("ranking nodes", done, len(scores))

    workers.each(len(buckets), rank, take)
    return order


def _buckets(scores: _Values, count: int) -> list[tuple[Any, Any, bool]]:
    """Ranges of values from the highest on: least, end (None: no bound), and whether it is one value."""
    sample = np.sort(scores[:: max(1, len(scores) // _SAMPLE)])
    if len(sample) < _SAMPLE // 2 or count < 2:
        return [(None, None, False)]
    cuts, times = np.unique(sample[np.arange(1, count) * len(sample) // count], return_counts=True)
    found: list[tuple[Any, Any, bool]] = [(None, cuts[0], False)]
    for place, cut in enumerate(cuts):
        end = cuts[place + 1] if place + 1 < len(cuts) else None
        if times[place] == 1:
            found.append((cut, end, False))
            continue
        found.append((cut, None, True))
        above = np.nextafter(cut, cut.dtype.type(np.inf)) if cut.dtype.kind == "f" else _next_integer(cut)
        if above is not None:
            found.append((above, end, False))
    return found[::-1]


def _next_integer(value: Any) -> Any:
    """None after the greatest."""
    return None if value == np.iinfo(value.dtype).max else value + value.dtype.type(1)


def _outside(ids: _Values, nodes: int) -> bool:
    """Whether one is no node: negative ones are large without their sign."""
    return bool(len(ids)) and int(ids.view(f"u{ids.itemsize}").max()) >= nodes


def _mapped(path: Path) -> _Values:
    """The array of a .npy file, read-only."""
    if path.is_symlink() and not path.exists():
        raise system_error(
            f"open {shown_path(str(path))}: it links to {shown_path(str(path.readlink()))}, and there is no "
            "such file: put that file back",
            errno.ENOENT,
        )
    layout = find_layout(path)
    if layout.nbytes == 0:
        return np.empty(layout.shape, layout.dtype.numpy)
    with naming("open", str(path)), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < layout.offset + layout.nbytes:
            raise ValueError(f"it has {size} bytes, and its header needs more: make the dataset anew")
        memory = mmap.mmap(file.fileno(), layout.offset + layout.nbytes, prot=mmap.PROT_READ)
    flat = np.frombuffer(memory, layout.dtype.numpy, math.prod(layout.shape), layout.offset)
    return flat.reshape(layout.shape)


def _map_of(values: _Values) -> mmap.mmap | None:
    """What `_mapped` made an array of."""
    owner: Any = values
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, mmap.mmap) else None


def _advise(memory: mmap.mmap, advice: int, first: int, count: int) -> None:
    with suppress(OSError):  # a file system that takes no advice
        memory.madvise(advice, first, count)


def _available_bytes() -> int:
    with suppress(OSError, ValueError), Path("/proc/meminfo").open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


class _NpyFile:
    """A new .npy file of known shape, whose rows threads write in any order."""

    def __init__(self, path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
        self._dtype = np.dtype(dtype)
        self._row_bytes = math.prod(shape[1:]) * self._dtype.itemsize
        fields = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        head = np.lib.format.magic(1, 0) + (_DATA_OFFSET - 10).to_bytes(2, "little")
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.pwrite(self._handle, head + repr(fields).encode("ascii").ljust(_DATA_OFFSET - 11) + b"\n", 0)
        except BaseException:
            os.close(self._handle)
            raise

    def put(self, row: int, values: _Values) -> None:
        """Write rows from `row` on; raw bytes are taken as they are, numbers become the file's type."""
        if values.dtype != np.uint8:
            values = np.ascontiguousarray(values, self._dtype)
        view = values.reshape(-1).view(np.uint8).data
        place, done = _DATA_OFFSET + row * self._row_bytes, 0
        while done < len(view):
            done += os.pwrite(self._handle, view[done : done + (1 << 30)], place + done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


@contextmanager
def _draft_folder(to: Path, nbytes: int, progress: Watched | None) -> Iterator[Path]:
    """A new folder beside `to`, which gets that name after the block; removed where the block fails.

    The process locks its draft. Drafts for `to` without a lock are those of killed runs, and are removed.

    Args:
        to: The new folder.
        nbytes: What it takes.
        progress: Its own errors stay as they are.
    """
    target = to.resolve()
    name = shown_path(str(to))
    draft = target.with_name(f".{target.name}.{os.getpid()}.reorder")
    try:
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise ValueError(f"reorder to {name}: it exists and is not empty: name a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        free = shutil.disk_usage(target.parent).free
        if nbytes > free:
            raise Error(
                f"reorder to {name}: it takes {format_bytes(nbytes)}, and {format_bytes(free)} are free: "
                "make room, or choose another folder",
                errno.ENOSPC,
            )
        draft.mkdir()
        lock = -1
        try:
            with suppress(OSError):  # a file system without locks: no process removes the draft of another
                lock = _locked(draft)
            yield draft
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            if lock >= 0:
                os.close(lock)
    except OSError as problem:
        own = progress is not None and progress.raised is problem
        if own or isinstance(problem, Error) or not problem.errno or problem.strerror is None:
            raise
        why = os.strerror(problem.errno)
        raise Error(
            f"reorder to {name}: {why}: make room, or choose another folder", problem.errno
        ) from problem


def _locked(folder: Path) -> int:
    """A descriptor that holds a folder's lock; BlockingIOError where another process has it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _remove_abandoned(target: Path) -> None:
    name = re.compile(rf"\.{re.escape(target.name)}\.\d+\.reorder")
    for draft in [path for path in target.parent.iterdir() if name.fullmatch(path.name)]:
        with suppress(OSError):
            lock = _locked(draft)
            shutil.rmtree(draft, ignore_errors=True)
            os.close(lock)

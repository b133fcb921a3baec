"""Sizes and counts of the requests by which a GPU's threads read lists of edges over its link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.graph.results import BfsResult, ComponentsResult, GraphCost, PagerankResult

SECTOR, LINE, WARP = 32, 128, 32
"""Bytes of the smallest request and of the largest; lanes of a warp."""
SIZES = tuple(range(SECTOR, LINE + 1, SECTOR))
ALIGNED = ("merged_aligned", "frontier", "coarsened", "transposed")
STRATEGIES = ("thread", "merged", *ALIGNED)
"""Those that walk whole lists."""
PIECE = 1 << 21
"""Sectors that are looked at together, which bounds the memory."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class LinkRequests:
    """The requests of a run.

    Attributes:
        strategy: How its threads shared out edges.
        counts: Requests by their bytes, 32, 64, 96 and 128.
        edge_bytes: Of the lists that were read.
    """

    strategy: str
    counts: dict[int, int]
    edge_bytes: int

    @property
    def requests(self) -> int:
        return sum(self.counts.values())

    @property
    def bytes(self) -> int:
        """That cross the link, without the headers of packets."""
        return sum(size * count for size, count in self.counts.items())

    def share(self, size: int) -> float:
        """Of the requests, 0 to 1, that have so many bytes."""
        return self.counts[size] / max(self.requests, 1)

    def as_dict(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "counts": {str(size): count for size, count in self.counts.items()},
            "requests": self.requests,
            "bytes": self.bytes,
            "edge_bytes": self.edge_bytes,
        }


def check_strategy(strategy: str) -> None:
    """Raises ValueError for one that does not walk whole lists."""
    if strategy.partition("(")[0] not in STRATEGIES:
        raise ValueError(
            f"trace link: strategy {strategy} does not walk whole lists, which a trace is made of: choose "
            f"one of {', '.join(STRATEGIES)}"
        )


def link_requests(result: GraphCost, id_bytes: int | None = None) -> LinkRequests:
    """Requests that reading the lists of a run in place takes, where its threads are a GPU's.

    A search reads the list of each vertex that it reaches once, in the round of its level; components and
    PageRank read all lists, once or in each iteration. A warp's loads of one step are merged to sectors of 32
    bytes inside lines of 128, and a thread or warp that has read a sector of its list does not ask for it
    again in that round. The edges begin on a line. The executor of the run does not matter.

    Args:
        result: Of `penstock.graph.bfs`, `cc` or `pagerank`, the last trial, with a strategy that walks whole
            lists (`STRATEGIES`).
        id_bytes: 4 or 8, of the id of a vertex in the lists; None: as they are stored.

    Raises:
        ValueError: Another strategy, other bytes, a graph on a volume, or a run that read something else:
            some lists again, lists of incoming edges, or weights.

    Source: the zero-copy dissertation, 2.3.2 and 2.3.3.
    """
    for strategy in {result.strategy, *result.level_strategies}:
        check_strategy(strategy)
    item = result.folder.edge_dtype.itemsize if id_bytes is None else id_bytes
    if item not in (4, 8):
        raise ValueError(f"trace link: ids of {item} bytes: they have 4 or 8")
    offsets = np.asarray(result.folder.offsets()).astype(np.int64)
    vertices, rounds, times = _lists_of(result)
    begin, end = offsets[vertices], offsets[vertices + 1]
    if result.strategy == "thread":
        counts = requests_of_threads(begin, end, rounds, vertices, item)
    else:
        counts = requests_of_warps(begin, end, item, aligned=result.strategy != "merged")
    edge_bytes = int((end - begin).sum()) * item * times
    return LinkRequests(result.strategy, {size: times * n for size, n in counts.items()}, edge_bytes)


def _lists_of(result: GraphCost) -> tuple[Numbers, Numbers, int]:
    """Vertices whose lists were read, the round of each, and how often all of that was done."""
    if isinstance(result, BfsResult):
        parents = np.asarray(result.parents)
        reached = np.flatnonzero(parents >= 0)
        return reached, levels_of(parents, result.source)[reached], 1
    times, rest = divmod(result.edges_traversed, max(result.edges, 1))
    ranks = isinstance(result, PagerankResult) and not result.directed and result.weights != "used"
    if rest or not (ranks or isinstance(result, ComponentsResult)):
        raise ValueError(
            f"trace link: {result.title.lower()} of {result.graph}: it reads other lists than all of the "
            "graph's, or weights: trace bfs, cc, or pagerank of an undirected graph"
        )
    every = np.arange(result.vertices)
    return every, np.zeros_like(every), times


def levels_of(parents: Numbers, source: int) -> Numbers:
    """Of each vertex, from its parents; -1 for what was not reached."""
    levels = np.full(len(parents), -1, np.int64)
    levels[source] = 0
    waiting = np.flatnonzero(parents >= 0)
    while len(waiting := waiting[levels[waiting] < 0]):
        above = levels[parents[waiting]]
        levels[waiting] = np.where(above < 0, -1, above + 1)
    return levels


def requests_of_warps(begin: Numbers, end: Numbers, item: int, *, aligned: bool) -> dict[int, int]:
    """A warp for each list, its lanes over 32 items at a time.

    begin, end: of each list, in items of `item` bytes. aligned: steps begin at multiples of 32 items, else
    where the list does.
    """
    counts = np.zeros(LINE // SECTOR + 1, np.int64)
    origin = begin - begin % WARP if aligned else begin
    steps = np.where(end > begin, -(-(end - origin) // WARP), 0)
    for some in _pieces(steps):
        of = np.repeat(some, steps[some])
        step = _counted(steps[some])
        low = np.maximum(origin[of] + step * WARP, begin[of])
        high = np.minimum(origin[of] + (step + 1) * WARP, end[of])
        first, last = low * item // SECTOR, (high * item - 1) // SECTOR
        first += (step > 0) & ((low * item) % SECTOR != 0)  # the step before has read that sector
        _count_lines(first, last, counts)
    return _by_size(counts)


def requests_of_threads(
    begin: Numbers, end: Numbers, rounds: Numbers, vertices: Numbers, item: int
) -> dict[int, int]:
    """A thread for each list, which it reads item by item; 32 vertices that follow each other are a warp.

    rounds: in which each list is read. Lanes of one round read item k of their lists in step k.
    """
    counts = np.zeros(LINE // SECTOR + 1, np.int64)
    order = np.lexsort((vertices, rounds))
    begin, end = begin[order], end[order]
    warps = rounds[order] * (int(vertices.max(initial=0)) // WARP + 1) + vertices[order] // WARP
    warp_of = np.cumsum(np.diff(warps, prepend=warps[:1]) != 0)
    first = begin * item // SECTOR
    sectors = np.where(end > begin, (end * item - 1) // SECTOR - first + 1, 0)
    of_warp = np.bincount(warp_of, sectors).astype(np.int64)
    bounds = np.searchsorted(warp_of, np.arange(len(of_warp) + 1))
    for some in _pieces(of_warp):
        lists = np.arange(bounds[some[0]], bounds[some[-1] + 1])
        of = np.repeat(lists, sectors[lists])
        sector = first[of] + _counted(sectors[lists])
        step = np.maximum(sector * SECTOR // item - begin[of], 0)
        _count_runs(warp_of[of], step, sector, counts)
    return _by_size(counts)


def _pieces(sizes: Numbers) -> Iterator[Numbers]:
    """Positions that follow each other, whose sizes together are about PIECE."""
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, np.arange(PIECE, ends[-1] if len(ends) else 0, PIECE), side="left") + 1
    for some in np.split(np.arange(len(sizes)), np.unique(cuts)):
        if len(some):
            yield some


def _counted(sizes: Numbers) -> Numbers:
    """0, 1, ... for each of the sizes, one after the other."""
    total = int(sizes.sum())
    return np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _count_lines(first: Numbers, last: Numbers, counts: Numbers) -> None:
    """Adds the parts of first to last, sectors that follow each other, that lie in each line."""
    per_line = LINE // SECTOR
    line = first // per_line
    while len(first):
        in_line = np.minimum(last, (line + 1) * per_line - 1) - first + 1
        counts += np.bincount(np.maximum(in_line, 0), minlength=len(counts))
        line, first = line + 1, (line + 1) * per_line
        more = first <= last
        first, last, line = first[more], last[more], line[more]


def _count_runs(warp: Numbers, step: Numbers, sector: Numbers, counts: Numbers) -> None:
    """Adds the runs of sectors of one line that the lanes of a warp ask for in one step."""
    order = np.lexsort((sector, step, warp))
    warp, step, sector = warp[order], step[order], sector[order]
    same = (np.diff(warp) == 0) & (np.diff(step) == 0)
    again = same & (np.diff(sector) == 0)
    keep = np.concatenate(([True], ~again))
    warp, step, sector = warp[keep], step[keep], sector[keep]
    follows = (np.diff(warp) == 0) & (np.diff(step) == 0) & (np.diff(sector) == 1)
    follows &= sector[1:] % (LINE // SECTOR) != 0
    starts = np.flatnonzero(np.concatenate(([True], ~follows)))
    counts += np.bincount(np.diff(starts, append=len(sector)), minlength=len(counts))


def _by_size(counts: Numbers) -> dict[int, int]:
    return {size: int(counts[size // SECTOR]) for size in SIZES}

"""Sizes and counts of the requests by which a GPU's threads read lists of edges over its link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.graph.link_lists import PULL_WIDTH, Lists, Numbers, counted, lists_of, pieces_of
from penstock.graph.results import GraphCost, SsspResult

SECTOR, LINE, WARP = 32, 128, 32
"""Bytes of the smallest request and of the largest; lanes of a warp."""
SIZES = tuple(range(SECTOR, LINE + 1, SECTOR))
TILED = ("tiled", "tiled_frontier")


@dataclass(frozen=True)
class LinkRequests:
    """The requests of a run.

    Attributes:
        strategy: How its threads shared out edges.
        counts: Requests by their bytes, 32, 64, 96 and 128.
        edge_bytes: Of the lists that were read, with their weights where these are read.
        at_most: Whether the run read less: shortest paths leave the rest of a list for the next round where
            its vertex gets nearer meanwhile.
    """

    strategy: str
    counts: dict[int, int]
    edge_bytes: int
    at_most: bool = False

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
            "at_most": self.at_most,
        }


def link_requests(result: GraphCost, id_bytes: int | None = None) -> LinkRequests:
    """Requests that reading the lists of a run in place takes, where its threads are a GPU's.

    A search reads the list of each vertex that it reaches once, in the round of its level, and where a round
    pulls, lists of what is not reached up to a parent; shortest paths read the lists of each round with
    their weights; components and PageRank all lists, once or in each iteration. A warp's loads of one step
    are merged to sectors of 32 bytes inside lines of 128, and a thread or warp that has read a sector of its
    list does not ask for it again in that round. Tiles are read by steps of whole lines, of which lists that
    a round does not want are left out. The edges begin on a line. The executor of the run does not matter,
    but strategy auto chooses by it.

    Args:
        result: Of `penstock.graph.bfs`, `cc`, `pagerank` or, with `round_vertices`, `sssp`, the last trial.
        id_bytes: 4 or 8, of the id of a vertex in the lists; None: as they are stored.

    Raises:
        ValueError: Other bytes, a graph on a volume, or a run whose lists are not known: components by auto,
            lists of incoming edges, ranks by weights, shortest paths without their rounds or with parents.

    Source: the zero-copy dissertation, 2.3.2 and 2.3.3.
    """
    item = result.folder.edge_dtype.itemsize if id_bytes is None else id_bytes
    if item not in (4, 8):
        raise ValueError(f"trace link: ids of {item} bytes: they have 4 or 8")
    # Weights lie as the edges do, in an array of their own.
    items = (item, result.folder.weight_array().itemsize) if isinstance(result, SsspResult) else (item,)
    counts = dict.fromkeys(SIZES, 0)
    edge_bytes = edges = 0
    for lists in lists_of(result):
        edges += lists.edges
        for each in items:
            for size, count in _requests_of(lists, each).items():
                counts[size] += lists.times * count
            edge_bytes += lists.edges * each
    at_most = isinstance(result, SsspResult) and edges > result.edges_traversed
    return LinkRequests(result.strategy, counts, edge_bytes, at_most)


def _requests_of(lists: Lists, item: int) -> dict[int, int]:
    if lists.how == "thread":
        return requests_of_threads(lists.begin, lists.end, lists.rounds, lists.vertices, item)
    if lists.how in TILED:
        return requests_of_tiles(lists.begin, lists.end, lists.rounds, item)
    width = PULL_WIDTH if lists.how == "pull" else WARP
    return requests_of_warps(lists.begin, lists.end, item, aligned=lists.how != "merged", width=width)


def requests_of_warps(
    begin: Numbers, end: Numbers, item: int, *, aligned: bool, width: int = WARP
) -> dict[int, int]:
    """A warp for each list, or a part of one with `width` lanes, over as many items at a time.

    begin, end: of each list, in items of `item` bytes. aligned: steps begin at multiples of `width` items,
    else where the list does.
    """
    counts = np.zeros(LINE // SECTOR + 1, np.int64)
    origin = begin - begin % width if aligned else begin
    steps = np.where(end > begin, -(-(end - origin) // width), 0)
    for some in pieces_of(steps):
        of = np.repeat(some, steps[some])
        step = counted(steps[some])
        low = np.maximum(origin[of] + step * width, begin[of])
        high = np.minimum(origin[of] + (step + 1) * width, end[of])
        first, last = low * item // SECTOR, (high * item - 1) // SECTOR
        first += (step > 0) & ((low * item) % SECTOR != 0)  # the step before has read that sector
        _count_lines(first, last, counts)
    return _by_size(counts)


def requests_of_tiles(begin: Numbers, end: Numbers, rounds: Numbers, item: int) -> dict[int, int]:
    """A warp for each tile, its lanes over 4 items each: what lists of one round share is read once."""
    counts = np.zeros(LINE // SECTOR + 1, np.int64)
    order = np.lexsort((begin, rounds))
    order = order[begin[order] < end[order]]
    first, last, rounds = begin[order] * item // SECTOR, (end[order] * item - 1) // SECTOR, rounds[order]
    same = np.diff(rounds, prepend=-1) == 0
    before = np.concatenate(([-1], last[:-1]))
    first = np.where(same & (first <= before), before + 1, first)
    some = first <= last  # not all of it in a sector of the list before
    first, last, rounds = first[some], last[some], rounds[some]
    follows = (np.diff(rounds) == 0) & (first[1:] == last[:-1] + 1)
    run_begins = np.concatenate(([True], ~follows))[: len(first)]
    run_ends = np.concatenate((~follows, [True]))[: len(first)]
    _count_lines(first[run_begins], last[run_ends], counts)
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
    for some in pieces_of(of_warp):
        lists = np.arange(bounds[some[0]], bounds[some[-1] + 1])
        of = np.repeat(lists, sectors[lists])
        sector = first[of] + counted(sectors[lists])
        step = np.maximum(sector * SECTOR // item - begin[of], 0)
        _count_runs(warp_of[of], step, sector, counts)
    return _by_size(counts)


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

"""Which lists of edges the rounds of a run read, and how far: what `link_requests` counts requests of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.graph.results import BfsResult, ComponentsResult, GraphCost, PagerankResult, SsspResult

PULL_WIDTH = 8
"""Lanes that look for a parent together (libs/analytics/edge_walker.hpp)."""
PIECE = 1 << 21
"""Edges that are looked at together, which bounds the memory."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Lists:
    """Lists that rounds of one strategy read.

    Attributes:
        how: The strategy, without what stands in brackets.
        vertices: Whose lists.
        rounds: Of each the round.
        begin, end: Of each the edges that were read.
        times: How often all of that was done.
    """

    how: str
    vertices: Numbers
    rounds: Numbers
    begin: Numbers
    end: Numbers
    times: int = 1

    @property
    def edges(self) -> int:
        return int((self.end - self.begin).sum()) * self.times


def lists_of(result: GraphCost) -> list[Lists]:
    """By strategy. Raises ValueError for a run of which they are not known."""
    offsets = np.asarray(result.folder.offsets()).astype(np.int64)
    if isinstance(result, BfsResult):
        return list(_of_search(result, offsets))
    if isinstance(result, SsspResult):
        return _of_paths(result, offsets)
    times, rest = divmod(result.edges_traversed, max(result.edges, 1))
    ranks = isinstance(result, PagerankResult) and not result.directed and result.weights != "used"
    if rest or not (ranks or isinstance(result, ComponentsResult)):
        raise ValueError(
            f"trace link: {result.title.lower()} of {result.graph}: it reads other lists than all of the "
            "graph's, or weights: trace cc with another strategy than auto, or pagerank of an undirected "
            "graph without weights"
        )
    every = np.arange(result.vertices)
    (how,) = set(result.level_strategies) or {"merged"}
    return [Lists(how, every, np.zeros_like(every), offsets[:-1], offsets[1:], times)]


def _of_search(result: BfsResult, offsets: Numbers) -> Iterator[Lists]:
    """Each vertex in the round of its level; where a round pulls, those that no round had reached."""
    parents = np.asarray(result.parents)
    levels = levels_of(parents, result.source)
    pulled = [level for level, how in enumerate(result.level_strategies) if how == "pull"]
    if pulled and result.directed:
        raise ValueError(
            f"trace link: search of {result.graph}: it read lists of incoming edges: choose another strategy "
            "than auto"
        )
    by_vertex = np.array([*result.level_strategies, ""], object)[levels]
    for how in dict.fromkeys(result.level_strategies):
        if how == "pull":
            continue
        vertices = np.flatnonzero(by_vertex == how)
        yield Lists(how, vertices, levels[vertices], offsets[vertices], offsets[vertices + 1])
    for level in pulled:
        vertices = np.flatnonzero((levels > level) | (levels < 0))
        begin, end = offsets[vertices], offsets[vertices + 1]
        edges = result.folder.edge_array()
        found = _first_of_level(edges, begin, end, levels, level)
        read = np.minimum(found - found % PULL_WIDTH + PULL_WIDTH, end)
        yield Lists("pull", vertices, np.full_like(vertices, level), begin, read)


def _first_of_level(
    edges: NDArray[np.signedinteger], begin: Numbers, end: Numbers, levels: Numbers, level: int
) -> Numbers:
    """Of each list the position of its first edge to a vertex of `level`; `end` where it has none."""
    found: Numbers = end.copy()
    at, open_ = begin.copy(), np.flatnonzero(begin < end)
    width = 1
    while len(open_):
        # Most have found one after few edges: the longer a list is looked at, the more of it at once.
        stop = np.minimum(at[open_] + width, end[open_])
        sizes = stop - at[open_]
        for some in pieces_of(sizes):
            these, counts = open_[some], sizes[some]
            positions = np.repeat(at[these], counts) + counted(counts)
            hit = levels[edges[positions]] == level
            first = np.minimum.reduceat(
                np.where(hit, positions, np.iinfo(np.int64).max), np.cumsum(counts) - counts
            )
            found[these] = np.minimum(found[these], first)
        at[open_] = stop
        open_ = open_[(found[open_] == end[open_]) & (stop < end[open_])]
        width *= 2
    return found


def _of_paths(result: SsspResult, offsets: Numbers) -> list[Lists]:
    """Those that each round took; the rest of one that is lowered meanwhile may wait for the next round."""
    if result.round_vertices is None:
        raise ValueError(
            f"trace link: shortest paths of {result.graph}: its rounds were not kept: search with "
            "round_vertices=True"
        )
    vertices = np.asarray(result.round_vertices)
    if len(vertices) != sum(result.level_sizes):
        raise ValueError(
            f"trace link: shortest paths of {result.graph}: parents read more lists: leave them out"
        )
    rounds = np.repeat(np.arange(len(result.level_sizes)), result.level_sizes)
    by_round = np.array(result.level_strategies, object)[rounds]
    return [
        Lists(how, these, rounds[by_round == how], offsets[these], offsets[these + 1])
        for how in dict.fromkeys(result.level_strategies)
        if len(these := vertices[by_round == how])
    ]


def levels_of(parents: Numbers, source: int) -> Numbers:
    """Of each vertex, from its parents; -1 for what was not reached."""
    levels = np.full(len(parents), -1, np.int64)
    levels[source] = 0
    waiting = np.flatnonzero(parents >= 0)
    while len(waiting := waiting[levels[waiting] < 0]):
        above = levels[parents[waiting]]
        levels[waiting] = np.where(above < 0, -1, above + 1)
    return levels


def pieces_of(sizes: Numbers) -> Iterator[Numbers]:
    """Positions that follow each other, whose sizes together are about PIECE."""
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, np.arange(PIECE, ends[-1] if len(ends) else 0, PIECE), side="left") + 1
    for some in np.split(np.arange(len(sizes)), np.unique(cuts)):
        if len(some):
            yield some


def counted(sizes: Numbers) -> Numbers:
    """0, 1, ... for each of the sizes, one after the other."""
    total = int(sizes.sum())
    return np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)

"""What a run over a graph found, and what it cost."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from penstock.checks import checked_integer

Array = NDArray[Any]
Weights = Literal["none", "used", "left out"]
SHOWN = 12
"""Vertices of a path in a table."""

PER_VERTEX = {"per vertex": True}
"""Metadata of a field that has something for each vertex."""


@dataclass(frozen=True, kw_only=True)
class GraphCost:
    """What a run over a graph cost; of several trials the last. Bytes are of edges, and of weights where they
    are read."""

    title: ClassVar[str] = ""
    VERTICES: ClassVar[bool] = False
    """Whether what is found for each vertex is a vertex."""

    graph: str
    path: str
    vertices: int
    edges: int
    directed: bool

    edges_traversed: int
    seconds: float
    teps: float
    """Traversed edges per second."""
    trial_seconds: list[float]
    trial_sources: list[int]
    """Empty where an algorithm has none."""
    verified: bool | None
    """Whether the reference agrees; None when it was not asked."""
    violation: str
    """What it found wrong, as a sentence; empty where nothing is, or it was not asked."""

    executor: str
    device: str
    engine: str
    placement: str
    strategy: str
    media: str
    """What storage was: file, or the preset of a modelled drive."""
    drives: int
    """Modelled ones; 0 for files."""
    media_bytes_per_second: float
    """What modelled drives were specified to read together; 0 for files."""
    hits: int
    misses: int
    joins: int
    """Accesses that waited for a line that somebody else was already fetching."""
    fills: int
    prefetches: int
    evictions: int
    retries: int
    errors: int
    bytes_asked: int
    bytes_moved: int
    amplification: float
    """Bytes moved over bytes asked."""
    sector_bytes: int
    """Of edges that a GPU reads in place: 32 for each sector that a group asked for at once."""
    frames: int
    line_bytes: int
    cache_bytes: int
    metadata_bytes: int
    """Of the cache, besides its lines."""
    directory: str
    """How the cache finds a line. direct: an entry per line of the edges; set: one per line of its own."""
    directory_bytes_per_tib: int
    """Of edges, at this cache's ratio of directory to edges."""
    edge_bytes: int
    offset_bytes: int
    vertex_bytes: int
    tile_bytes: int
    """Of tables over tiles of edges."""
    tile_seconds: float
    """Part of load_seconds: finding the first vertex of each tile."""
    load_seconds: float
    verify_seconds: float
    level_sizes: list[int]
    """Vertices of each round."""
    level_seconds: list[float]
    level_strategies: list[str]
    """How edges were shared out in each round."""
    level_bytes: list[int]
    """Moved, or of sectors; empty without `level_traffic`, and where a CPU reads in place."""
    peak_rss_bytes: int
    file_rss_bytes: int
    """Pages of files in that; the system may take them back."""
    folder: Any = field(default=None, metadata={"of the graph": True}, repr=False, compare=False)
    """The GraphFolder that it ran over."""

    @property
    def names(self) -> Sequence[Hashable] | None:
        """Of the vertices, in order, or None; integers where ids were, of a graph of NetworkX its nodes."""
        return None if self.folder is None else self.folder.ids

    def by_name(self) -> dict[Hashable, Any]:
        """What was found for each vertex, by its name (its number, where vertices have no names); an integer
        where ids were integers. Parents and labels of components are names, too; None where there is none.

        `pandas.Series(result.by_name())` is a column with names as its index. Raises ValueError where several
        vertices have one name.
        """
        values = next(
            getattr(self, each.name) for each in dataclasses.fields(self) if each.metadata == PER_VERTEX
        ).tolist()
        names = self.names or range(self.vertices)
        if self.VERTICES:
            values = [None if value < 0 else names[value] for value in values]
        found = dict(zip(names, values, strict=True))
        if len(found) < len(values):
            raise ValueError(
                f"look {self.graph} up by name: several vertices have one name: go by their numbers"
            )
        return found

    def found(self) -> list[tuple[str, str]]:
        """Names and values of what is not cost, for a table, which begins with them."""
        return []

    def shortcoming(self) -> str:
        """Why the result is not what was asked for, though nothing of it is wrong; else empty."""
        return ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON: without what is as long as the graph has vertices, or longer."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if not each.metadata}


def share_of(vertices: int, result: GraphCost) -> str:
    return f"{vertices:,} ({100 * vertices / max(result.vertices, 1):.1f} %)"


def with_tensors(found: dict[str, Any], *names: str) -> dict[str, Any]:
    """The arrays of these names as tensors, where torch is installed and this program uses it."""
    torch = sys.modules.get("torch")
    if torch is None:
        return found
    return found | {name: torch.from_numpy(found[name]) for name in names if found[name] is not None}


@dataclass(frozen=True, kw_only=True)
class BfsResult(GraphCost):
    """What a search found and what it cost."""

    title: ClassVar[str] = "Breadth-first search"
    VERTICES: ClassVar[bool] = True

    source: int
    reached: int
    levels: int
    parents: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """int64; the source's is itself, -1 for what was not reached. A tensor where torch is in use."""

    def found(self) -> list[tuple[str, str]]:
        total = sum(level * vertices for level, vertices in enumerate(self.level_sizes))
        return [
            ("vertices reached", share_of(self.reached, self)),
            ("levels", f"{self.levels}"),
            ("sum of depths", f"{total:,}"),
        ]


@dataclass(frozen=True, kw_only=True)
class ComponentsResult(GraphCost):
    """Weakly connected components, and what it cost to find them."""

    title: ClassVar[str] = "Connected components"
    VERTICES: ClassVar[bool] = True

    components: int
    largest: int
    """Vertices."""
    labels: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """int64: of each vertex the smallest vertex of its component. A tensor where torch is in use."""

    def found(self) -> list[tuple[str, str]]:
        return [
            ("components", f"{self.components:,}"),
            ("vertices of the largest", share_of(self.largest, self)),
        ]


@dataclass(frozen=True, kw_only=True)
class PagerankResult(GraphCost):
    """Ranks, and what they cost."""

    title: ClassVar[str] = "PageRank"

    converged: bool
    """Whether the last iteration changed the ranks by less than `tolerance`; ranks that have not converged
    are those of `iterations` iterations, and no more."""
    iterations: int
    change: float
    """Sum of what the last iteration changed."""
    tolerance: float
    weights: Weights
    """Whether edges passed ranks on by their weights: "used", "left out" where the graph has some and
    `weighted` was not given, "none" where it has none."""
    ranks: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """float32 or float64; they add up to 1 where no vertex is without edges, or `dangling` is given."""

    def found(self) -> list[tuple[str, str]]:
        how = f"{self.iterations} iterations, of which the last changed the ranks by {self.change:.2g} in all"
        if self.converged:
            verdict = f"yes: {how}"
        elif self.tolerance == 0:
            verdict = f"not asked for (tolerance 0): {how}"
        else:
            verdict = f"[red]no[/]: {how}, not less than the tolerance {self.tolerance:g}"
        weights = {
            "none": "none",
            "used": "used",
            "left out": "left out, though the graph has some (--weighted uses them)",
        }
        return [
            ("converged", verdict),
            ("sum of ranks", f"{float(np.sum(np.asarray(self.ranks), dtype=np.float64)):.6g}"),
            ("weights", weights[self.weights]),
        ]

    def shortcoming(self) -> str:
        if self.converged or self.tolerance == 0:
            return ""
        return (
            f"rank {self.graph}: not converged: the last of {self.iterations} iterations changed the ranks "
            f"by {self.change:.3g}, the tolerance is {self.tolerance:g}: allow more iterations"
        )


@dataclass(frozen=True, kw_only=True)
class SsspResult(GraphCost):
    """Distances from a vertex, and what they cost."""

    title: ClassVar[str] = "Shortest paths"

    source: int
    reached: int
    delta: float
    """How far the threshold rose between two phases."""
    farthest: float
    distances_sum: float
    """Of those that were reached; an int of int32 weights."""
    farthest_path: list[int] | None
    """Vertices from the source to the one that lies farthest; None unless `parents` was given."""
    distances: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """int64 sums of int32 weights, -1 where there is no path; float64 sums of float32 weights, infinity
    there."""
    predecessors: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """int64: of each vertex the one before it on a shortest path, the smallest of several where no weight is
    0; the source's is itself, -1 where there is no path. None unless `parents` was given."""
    round_vertices: Any = field(metadata={"of rounds": True}, repr=False, compare=False)
    """int64 vertices of the rounds, one after the other, as many as `level_sizes` says. None unless asked
    for."""

    def found(self) -> list[tuple[str, str]]:
        rows = [
            ("vertices reached", share_of(self.reached, self)),
            ("sum of distances", f"{self.distances_sum:,.6g}"),
            ("farthest", f"{self.farthest:,.6g}"),
        ]
        if self.farthest_path is not None:
            rows.append(("path to the farthest", _path_text(self.farthest_path)))
        rounds = f"{len(self.level_sizes)} (the threshold rose by {self.delta:,.6g})"
        return [*rows, ("rounds", rounds)]

    def path_to(self, target: SupportsIndex) -> list[int]:
        """A shortest path.

        Args:
            target: A vertex by its number.

        Returns:
            Vertices, from the source to `target`.

        Raises:
            ValueError: `parents` was not given, `target` is no vertex, or there is no path.
        """
        goal = checked_integer("target", target)
        if self.predecessors is None:
            raise ValueError(f"search {self.graph}: paths were not asked for: search with parents=True")
        if not 0 <= goal < self.vertices:
            raise ValueError(f"search {self.graph}: target {goal}: the vertices are 0 to {self.vertices - 1}")
        path = path_back(np.asarray(self.predecessors), goal)
        if not path:
            raise ValueError(
                f"search {self.graph}: target {goal}: no path from vertex {self.source}: choose another one"
            )
        return path


def path_back(predecessors: Array, target: int) -> list[int]:
    """From the source to `target`, empty where there is no path. predecessors: int64, shape (vertices,)."""
    if predecessors[target] < 0:
        return []
    path = [target]
    while (before := int(predecessors[path[-1]])) != path[-1]:
        path.append(before)
    return path[::-1]


def _path_text(path: list[int]) -> str:
    shown = [str(vertex) for vertex in path]
    if len(path) > SHOWN:
        shown = [*shown[: SHOWN // 2], "...", *shown[-SHOWN // 2 :]]
    return f"{' -> '.join(shown)} ({len(path) - 1:,} edges)"

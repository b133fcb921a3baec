"""Connected components, PageRank and shortest paths over graphs on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

from penstock.breadth_first import (
    PER_VERTEX,
    GraphCost,
    GraphLike,
    GraphOptions,
    Progress,
    check_source,
    checked_count,
    prepare,
    share_of,
    source_number,
    with_tensors,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from typing_extensions import Unpack


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

    iterations: int
    change: float
    """Sum of what the last iteration changed."""
    converged: bool
    ranks: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """float32 or float64; they add up to 1 where no vertex is without edges, or `dangling` is given."""

    def found(self) -> list[tuple[str, str]]:
        end = "" if self.converged else ", more than the tolerance"
        return [
            ("iterations", f"{self.iterations} (the last changed the ranks by {self.change:.2g} in all{end})")
        ]


@dataclass(frozen=True, kw_only=True)
class SsspResult(GraphCost):
    """Distances from a vertex, and what they cost."""

    title: ClassVar[str] = "Shortest paths"

    source: int
    reached: int
    delta: float
    """How far the threshold rose between two phases."""
    farthest: float
    distances: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """int64 for int32 weights, -1 where there is no path; float32 for float32 weights, infinity there."""

    def found(self) -> list[tuple[str, str]]:
        return [
            ("vertices reached", share_of(self.reached, self)),
            ("farthest", f"{self.farthest:,.6g}"),
            ("rounds", f"{len(self.level_sizes)} (the threshold rose by {self.delta:,.6g})"),
        ]


def cc(
    graph: GraphLike,
    *,
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> ComponentsResult:
    """The weakly connected components, in one pass over the edges (ECL-CC: Jaiganesh and Burtscher, HPDC
    2018). graph, options, errors: as `penstock.bfs`.
    """
    job = prepare(graph, progress, options)
    found = job.native.components(job.options, progress)
    return ComponentsResult(**job.facts, **with_tensors(found, "labels"))


def pagerank(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-4,
    iterations: SupportsIndex = 20,
    dangling: bool = False,
    dtype: str = "float32",
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> PagerankResult:
    """PageRank as GAP defines it: from 1/n, until an iteration changes the ranks by less than `tolerance` in
    all, or `iterations` are over.

    dangling: what vertices without edges have goes to all in equal parts, as NetworkX and Graphalytics do;
    GAP lets it go. dtype: of the ranks, "float32" or "float64". graph, options, errors: as `penstock.bfs`.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype {dtype!r}: ranks are float32 or float64")
    most = checked_count("iterations", iterations, 1)
    job = prepare(graph, progress, options)
    wide = dtype == "float64"
    found = job.native.pagerank(
        job.options, float(damping), float(tolerance), most, bool(dangling), wide, progress
    )
    return PagerankResult(**job.facts, **with_tensors(found, "ranks"))


def sssp(
    graph: GraphLike,
    *,
    source: Hashable = None,
    delta: float = 0,
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> SsspResult:
    """Shortest paths from a vertex, by near-far (Davidson, Baxter, Garland, Owens, IPDPS 2014).

    The graph has weights, none negative: int32 or float32; those of generated graphs are drawn from 1 to 255.
    source: as `penstock.bfs`. delta: how far the threshold rises when no vertex below it is left; 0: chosen.
    graph, options, errors: as `penstock.bfs`; ValueError also for a graph without weights, or a negative one.
    """
    check_source(source, graph)
    job = prepare(graph, progress, options, weighted=True)
    found = job.native.sssp(job.options, source_number(job, source), float(delta), progress)
    return SsspResult(**job.facts, **with_tensors(found, "distances"))

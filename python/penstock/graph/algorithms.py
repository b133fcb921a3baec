"""Connected components, PageRank and shortest paths over graphs on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from penstock.arguments import reading
from penstock.callbacks import Progress
from penstock.checks import checked_count, checked_integer, checked_number
from penstock.graph.options import GraphOptions
from penstock.graph.results import (
    Array,
    ComponentsResult,
    PagerankResult,
    SsspResult,
    Weights,
    path_back,
    with_tensors,
)
from penstock.graph.run import GraphLike, check_source, prepare, source_number, vertex_numbers
from penstock.options import show_options

if TYPE_CHECKING:
    from collections.abc import Hashable

    from typing_extensions import Unpack

    from penstock.graph.folder import GraphFolder

VertexValues: TypeAlias = "Mapping[Any, float] | ArrayLike"
"""Numbers for vertices: a dict from numbers or names of vertices, or an array of shape (vertices,)."""


@show_options(GraphOptions)
def cc(
    graph: GraphLike,
    *,
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> ComponentsResult:
    """Find weakly connected components, in one pass over the edges.

    ECL-CC (Jaiganesh and Burtscher, HPDC 2018).

    Args:
        graph: As for `penstock.bfs`.
        progress: As for `penstock.bfs`.
        **options: Those of `penstock.bfs`.

    Returns:
        Labels: of each vertex the smallest vertex of its component.

    Raises:
        ValueError, TypeError, penstock.Error: As `penstock.bfs`.
    """
    job = prepare("cc", graph, progress, options)
    found = job.native.components(job.options, progress)
    return ComponentsResult(**job.facts, **with_tensors(found, "labels"))


@show_options(GraphOptions)
def pagerank(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-4,
    iterations: SupportsIndex = 20,
    dangling: bool | VertexValues = False,
    dtype: str = "float32",
    weighted: bool = False,
    personalization: VertexValues | None = None,
    nstart: VertexValues | None = None,
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> PagerankResult:
    """Rank vertices by PageRank: from 1/n, until an iteration changes the ranks by less than `tolerance`.

    Without options it is GAP's definition. NetworkX's `pagerank(G, alpha, personalization, max_iter, tol,
    nstart, weight, dangling)` is `pagerank(graph, damping=alpha, personalization=..., iterations=max_iter,
    tolerance=tol * len(G), nstart=..., weighted=True, dangling=True, dtype="float64")`; its `dangling` is
    given the same way, and weights are int32 or float32.

    Args:
        graph: As for `penstock.bfs`.
        damping: Share of its rank that a vertex passes on, from 0 to below 1.
        tolerance: Of the sum of all changes in an iteration; 0: all `iterations` are done.
        iterations: At most so many. Where they do not suffice, the result's `converged` is False.
        dangling: Where the rank of vertices goes that have no edges (or whose weights add up to 0). False:
            nowhere (GAP). True: to all, by `personalization` where it is given (NetworkX). Or values for
            vertices, as for `personalization`: to these.
        dtype: Of the ranks, "float32" or "float64".
        weighted: Edges pass a rank on by their weights, int32 or float32, finite and not negative, and not
            in equal parts. Parallel edges count together. Those of generated graphs are drawn from 1 to 255.
        personalization: Where ranks begin anew, in place of all vertices alike: a dict from vertices, by
            number or name, to numbers (0 for others), or an array or tensor, shape (vertices,). Scaled to a
            sum of 1.
        nstart: Ranks to begin with, given the same way.
        progress: As for `penstock.bfs`.
        **options: Those of `penstock.bfs`.

    Returns:
        Ranks, and whether they have converged.

    Raises:
        ValueError, TypeError, penstock.Error: As `penstock.bfs`; ValueError also for a graph that is to be
            weighted and has no weights, or a negative one, and for values that are negative or add up to 0.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype {dtype!r}: ranks are float32 or float64")
    if not isinstance(weighted, bool):
        raise TypeError(f"weighted {weighted!r}: give True or False")
    kept, least = checked_number("damping", damping), checked_number("tolerance", tolerance)
    most = checked_count("iterations", iterations, 1)
    job = prepare("pagerank", graph, progress, options, weighted=weighted)
    with reading(f"rank {job.folder.shown}", personalization, nstart, dangling):
        goes = None if isinstance(dangling, bool) else values_of(job.folder, "dangling", dangling)
        found = job.native.pagerank(
            job.options,
            kept,
            least,
            most,
            dangling is True or goes is not None,
            dtype == "float64",
            weighted,
            values_of(job.folder, "personalization", personalization),
            values_of(job.folder, "nstart", nstart),
            goes,
            progress,
        )
    has_some = job.folder.weights_place is not None
    weights: Weights = "used" if weighted else "left out" if has_some else "none"
    return PagerankResult(**job.facts, **with_tensors(found, "ranks"), weights=weights, tolerance=least)


def values_of(folder: GraphFolder, name: str, given: VertexValues | None) -> Array | None:
    """A number for each vertex, float64, shape (vertices,), of a dict or an array; None of None.

    Raises:
        TypeError: It is neither.
        ValueError: A key is no vertex, or the array does not have a number for each.
    """
    if given is None:
        return None
    subject = f"rank {folder.shown}: {name}"
    if isinstance(given, Mapping):
        values = np.zeros(folder.vertices)
        for key in given:
            if not isinstance(key, str):
                checked_integer(f"{subject} of vertex", key)
        numbers = vertex_numbers(folder, given.keys(), f"{subject} of vertex")
        seen: set[int] = set()
        for key, number in zip(given, numbers, strict=True):
            if number in seen:
                raise ValueError(f"{subject} of vertex {key}: it is given twice: give each vertex once")
            seen.add(number)
        values[numbers] = _numbers(subject, list(given.values()))
        return values
    values = _numbers(subject, given)
    if values.shape != (folder.vertices,):
        shape = f"shape {values.shape}" if values.ndim else "one number"
        raise ValueError(f"{subject} has {shape}: give shape ({folder.vertices},), a number for each vertex")
    return values


def _numbers(subject: str, given: Any) -> Array:
    try:
        found = np.asarray(given)
        if found.dtype.kind in "biuf":
            return np.asarray(found, dtype=np.float64, order="C")
    except (TypeError, ValueError, RuntimeError):
        pass
    raise TypeError(f"{subject} {given!r:.60}: give a dict of vertices and numbers, or an array of numbers")


@show_options(GraphOptions)
def sssp(
    graph: GraphLike,
    *,
    source: Hashable = None,
    delta: float = 0,
    parents: bool = False,
    round_vertices: bool = False,
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> SsspResult:
    """Find shortest paths from a vertex, by near-far (Davidson, Baxter, Garland, Owens, IPDPS 2014).

    int32 weights are added up in int64, float32 weights in float64: distances are equal to those of
    Dijkstra's algorithm in these types.

    Args:
        graph: As for `penstock.bfs`, with weights: int32 or float32, finite, none negative; those of
            generated graphs are drawn from 1 to 255. All are checked before the search.
        source: As for `penstock.bfs`.
        delta: How far the threshold rises when no vertex below it is left; 0: chosen.
        parents: Find `predecessors`, a tree of shortest paths, too: one more walk over the edges.
        round_vertices: Keep the vertices of each round, for `penstock.graph.link_requests`.
        progress: As for `penstock.bfs`.
        **options: Those of `penstock.bfs`.

    Returns:
        Distances and, where `parents` is given, predecessors.

    Raises:
        ValueError, TypeError, penstock.Error: As `penstock.bfs`; ValueError also for a graph without weights
            or with one that is negative, infinite or no number, whose edge is named.
    """
    check_source(source, graph)
    for name, flag in (("parents", parents), ("round_vertices", round_vertices)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} {flag!r}: give True or False")
    step = checked_number("delta", delta)
    job = prepare("sssp", graph, progress, options, source=source, weighted=True)
    found = job.native.sssp(job.options, source_number(job, source), step, parents, round_vertices, progress)
    distances = found["distances"]
    reached = np.isfinite(distances) & (distances >= 0)
    farthest = int(np.argmax(np.where(reached, distances, -1)))
    return SsspResult(
        **job.facts,
        **with_tensors(found, "distances", "predecessors"),
        distances_sum=_sum(distances[reached]),
        farthest_path=path_back(found["predecessors"], farthest) if parents else None,
    )


def _sum(distances: Array) -> float:
    """An int of ints, whose sum may be more than 64 bits hold."""
    if distances.dtype.kind == "f":
        return float(np.sum(distances))
    high, low = np.sum(distances >> 32), np.sum(distances & 0xFFFFFFFF)
    return (int(high) << 32) + int(low)

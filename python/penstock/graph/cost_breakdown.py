"""Where the time of a run over a graph on storage goes: computing, the cache, storage (BaM, 7.1.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.effects import without_effect
from penstock.graph.effects import OF_OPTIONS
from penstock.graph.results import GraphCost
from penstock.graph.run import GraphLike

LEAST_CACHE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Three runs of one algorithm, of which each adds a layer to the one before. Seconds.

    All are from one source, so they read the same lists. What overlaps is counted where it shows first, so a
    part may be less than what its layer does; by what two runs of the same differ, it may be below zero.
    """

    graph: str
    title: str
    compute_seconds: float
    """Edges in HBM; on the CPU executor, in the mapped file."""
    all_hit_seconds: float
    """Through a cache that has all edges already."""
    seconds: float
    """Through a cache of the size asked for, empty at first."""
    cache_bytes: int
    edge_bytes: int
    verified: bool | None
    """Of all three."""

    @property
    def parts(self) -> dict[str, float]:
        return {
            "compute": self.compute_seconds,
            "cache": self.all_hit_seconds - self.compute_seconds,
            "storage": self.seconds - self.all_hit_seconds,
        }

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "parts": self.parts}


def breakdown(algorithm: Callable[..., GraphCost], graph: GraphLike, **options: Any) -> Breakdown:
    """Runs `algorithm` (bfs, cc, pagerank, sssp) over `graph` three times, as BaM's authors take time apart.

    options: those of the algorithm; placement and trials are set here. Errors: those of the algorithm;
    ValueError for a placement or a number of trials.
    """
    if not callable(algorithm):
        raise TypeError(f"breakdown of {algorithm!r}: give bfs, cc, pagerank or sssp of penstock.graph")
    for name in ("placement", "trials"):
        if options.pop(name, None) is not None:
            raise ValueError(
                f"breakdown: {name} is not to be chosen: it runs three placements, and each once"
            )
    capped = algorithm(graph, placement="storage", **options)
    if capped.trial_sources:  # drawn, unless given: one for all
        labels = capped.folder.labels
        first = capped.trial_sources[0]
        options["source"] = first if labels is None else labels[first]
    compute = algorithm(graph, **_in_place(options, capped.executor == "cuda"))
    # Rounded up to sets of seven lines, and with room for those that are on their way.
    room = max(LEAST_CACHE, 2 * (capped.edge_bytes + 64 * capped.line_bytes))
    options["cache"] = room
    filled = algorithm(graph, placement="storage", trials=2, **options)
    verdicts = [run.verified for run in (capped, compute, filled)]
    return Breakdown(
        graph=capped.graph,
        title=capped.title,
        compute_seconds=compute.seconds,
        all_hit_seconds=filled.trial_seconds[1],
        seconds=capped.seconds,
        cache_bytes=capped.cache_bytes,
        edge_bytes=capped.edge_bytes,
        verified=None if None in verdicts else all(verdicts),
    )


def _in_place(options: dict[str, Any], gpu: bool) -> dict[str, Any]:
    """Without what only storage and caches have."""
    in_place = {"media": "file", **options, "placement": "hbm" if gpu else "host"}
    facts = {"drives": 1, "algorithm": "", "strategy": "auto", "undirected": False, "weighted": False}
    settings = {**facts, **in_place, "media": "file", "source": None, "gpu": gpu}
    dropped = {row.option for row in without_effect(OF_OPTIONS, settings)} - {"incoming", "sources"}
    return {name: value for name, value in in_place.items() if name not in dropped | {"media"}}

"""How often the nodes of a graph are likely to be sampled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.arrays.messages import shown
from penstock.effects import Effect, refuse_without_effect
from penstock.sampling import Graph, NeighborSampler
from penstock.sampling.host import on_host
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Progress = Callable[[str, int, int], None]

METHODS = ("degree", "reverse_pagerank", "weighted_reverse_pagerank", "frequency")
SAMPLED = (
    Effect(
        "fanout",
        lambda given: given["method"] == "frequency",
        "method {method} samples nothing: leave it out, or choose frequency",
    ),
)
_WEIGHTED_ITERATIONS = 5
_MAX_ITERATIONS = 200


def score(
    graph: Graph,
    method: str = "weighted_reverse_pagerank",
    *,
    train_ids: Any = None,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    fanout: Sequence[int] | None = None,
    epochs: int = 1,
    batch_size: int = 1024,
    seed: int = 0,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Score the nodes of a graph: the greater, the more often training will read a node's features.

    Runs on the graph's device, over lists in any placement. Both executors compute the same numbers.

    Args:
        graph: Its lists are incoming edges, as training samples them.
        method: "degree": edges that lead out of a node. "reverse_pagerank": to convergence.
            "weighted_reverse_pagerank": five iterations from scores that are nodes / training nodes times as
            high for training nodes. "frequency": how often `epochs` of sampling found a node.
        train_ids: Integers, shape (training nodes,): where samples begin; for the last two methods.
        damping: Of PageRank, from 0 up to 1.
        tolerance: Of "reverse_pagerank": it ends when all scores together change by less.
        fanout: Of the samples of "frequency"; the other methods take none.
        epochs, batch_size, seed: Of these samples, too.
        progress: Called with what is done, how many iterations or batches are done, and of how many.

    Returns:
        float64, shape (nodes,). PageRank's add up to 1 where each node lists some: what one without a list
        has goes nowhere.

    Raises:
        TypeError, ValueError: What cannot be.

    Source: the zero-copy dissertation, 4.2.1 and Algorithm 2.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"score: {shown(graph)}: give a penstock.sampling.Graph")
    if graph.sources != graph.nodes:
        raise ValueError("score: a graph of two types of nodes: score the graph of one")
    if method not in METHODS:
        raise ValueError(f"score: method {shown(method)}: choose {', '.join(METHODS)}")
    refuse_without_effect(SAMPLED, {"method": method, "fanout": fanout}, "score")
    if not isinstance(damping, (int, float)) or not 0 <= damping < 1:
        raise ValueError(f"score: damping {shown(damping)}: give a number from 0 up to 1")
    if not isinstance(tolerance, (int, float)) or not 0 <= tolerance < math.inf:
        raise ValueError(f"score: tolerance {shown(tolerance)}: give a number from 0 on")
    if graph.nodes == 0:
        return np.zeros(0)
    weighted = method in ("weighted_reverse_pagerank", "frequency")
    if weighted and train_ids is None:
        raise ValueError(f"score: method {method} needs train_ids: the nodes that samples begin at")
    ids = _train_ids(train_ids, graph.nodes) if weighted else np.zeros(0, np.int64)
    if method == "frequency":
        if fanout is None:
            raise ValueError("score: method frequency needs a fanout: the one of the training")
        return _frequency(graph, ids, fanout, epochs, batch_size, seed, progress)
    from penstock import _native

    natives = _native.NodeScores(graph.pointers._executor, graph.nodes, graph.lent())
    if method == "degree":
        return natives.count_out_degrees()
    natives.start(ids)
    most = _WEIGHTED_ITERATIONS if weighted else _MAX_ITERATIONS
    for done in range(most):
        change = natives.step(damping)
        if progress is not None:
            progress("score", done + 1, most)
        if not weighted and change < tolerance:
            break
    return natives.values()


def _train_ids(given: Any, nodes: int) -> NDArray[np.int64]:
    ids = on_host(given)
    if ids.dtype == bool and ids.shape == (nodes,):
        ids = np.flatnonzero(ids)
    if ids.shape == (0,):
        raise ValueError("score: train_ids is empty: give the nodes that samples begin at")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(f"score: train_ids: {ids.dtype} of shape {ids.shape}: give a list of integers")
    if ids.min() < 0 or ids.max() >= nodes:
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise ValueError(f"score: training node {wrong}: it is no node: give numbers from 0 to {nodes - 1}")
    return np.unique(ids.astype(np.int64))


def _frequency(
    graph: Graph,
    ids: NDArray[np.int64],
    fanout: Sequence[int],
    epochs: int,
    batch_size: int,
    seed: int,
    progress: Progress | None,
) -> NDArray[np.float64]:
    for name, given in (("epochs", epochs), ("batch_size", batch_size)):
        if (whole_number(given) or 0) < 1:
            raise ValueError(f"score: {name} {shown(given)}: give a whole number from 1 on")
    sampler = NeighborSampler(graph, fanout, seed=seed)
    counts = np.zeros(graph.nodes, np.int64)
    batches = -(-len(ids) // batch_size)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(ids)
        for number in range(batches):
            seeds = order[number * batch_size : (number + 1) * batch_size]
            made = sampler.sample(seeds, call=epoch * batches + number)
            nodes = on_host(made.nodes)
            counts += np.bincount(nodes, minlength=graph.nodes) if len(nodes) * 8 > graph.nodes else 0
            if len(nodes) * 8 <= graph.nodes:
                np.add.at(counts, nodes, 1)
            if progress is not None:
                progress("score", epoch * batches + number + 1, epochs * batches)
    return counts.astype(np.float64)

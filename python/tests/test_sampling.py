"""Samples of neighbours: what is drawn, how it is numbered, the same on every executor."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from numpy.typing import NDArray
from penstock import _native
from penstock.sampling import Graph, HeteroNeighborSampler, NeighborSampler, Sample

DEVICES = ["cpu", *(["cuda"] if _native.cuda_usable()[0] else [])]
NODES, EDGES = 3000, 60_000


def host(values: Any) -> NDArray[Any]:
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "cpu"):
        values = values.cpu()
    return np.asarray(values.numpy() if hasattr(values, "numpy") else values)


class Edges:
    """A graph with hubs, nodes without edges, and edges that stand several times."""

    def __init__(self, seed: int = 7) -> None:
        draw = np.random.default_rng(seed)
        self.sources = (NODES * draw.random(EDGES) ** 2).astype(np.int64)
        self.targets = (NODES * 0.9 * draw.random(EDGES) ** 3).astype(np.int64)
        self.degrees = np.bincount(self.targets, minlength=NODES)
        self.weights = np.where(draw.random(EDGES) < 0.3, 0, draw.random(EDGES)).astype(np.float32)
        self.times = draw.integers(0, 1000, EDGES)
        self.node_times = draw.integers(0, 1000, NODES)

    def graph(self, device: str = "cpu", **options: Any) -> Graph:
        return Graph.from_edges(self.sources, self.targets, NODES, device=device, **options)


@pytest.fixture(scope="module")
def edges() -> Edges:
    return Edges()


def checked(
    of: Edges, made: Sample, fanout: list[int], eligible: NDArray[Any], replace: bool = False
) -> None:
    """eligible: of each node, how many edges may be drawn."""
    nodes, rows, columns, ids = (host(each) for each in (made.nodes, made.rows, made.columns, made.edges))
    assert np.array_equal(of.sources[ids], nodes[rows])
    assert np.array_equal(of.targets[ids], nodes[columns])
    assert (sum(made.nodes_per_hop), sum(made.edges_per_hop)) == (len(nodes), len(rows))
    begin, done, known = 0, 0, made.nodes_per_hop[0]
    for hop, count in enumerate(fanout):
        front = np.arange(begin, begin + made.nodes_per_hop[hop])
        begin += len(front)
        here = slice(done, done + made.edges_per_hop[hop])
        done = here.stop
        may = eligible[nodes[front]]
        wanted = may if count < 0 else np.where(may > 0, count, 0) if replace else np.minimum(may, count)
        taken = np.bincount(columns[here] - (front[0] if len(front) else 0), minlength=len(front))
        assert np.array_equal(taken, wanted)
        if not replace:
            assert len(np.unique(ids[here])) == len(ids[here])
        # New nodes are numbered in the order of the edges that led to them first.
        new = rows[here][rows[here] >= known]
        assert np.array_equal(
            new[np.sort(np.unique(new, return_index=True)[1])], known + np.arange(len(set(new)))
        )
        known += made.nodes_per_hop[hop + 1]


def seeds_of(count: int, seed: int = 1) -> NDArray[np.int64]:
    return np.random.default_rng(seed).choice(NODES, count, replace=False)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fanout", [[3], [15, 10, 5], [-1, 2], [70, 3], [200], [1, 1, 1, 1]])
@pytest.mark.parametrize("replace", [False, True])
def test_a_sample_has_the_asked_number_of_edges_of_each_node(
    edges: Edges, device: str, fanout: list[int], replace: bool
) -> None:
    made = NeighborSampler(edges.graph(device), fanout, replace=replace).sample(seeds_of(64))
    checked(edges, made, fanout, edges.degrees, replace)
    assert np.array_equal(host(made.nodes)[:64], seeds_of(64))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("replace", [False, True])
def test_edges_of_weight_zero_are_never_drawn(edges: Edges, device: str, replace: bool) -> None:
    graph = edges.graph(device, weights=edges.weights)
    may = np.bincount(edges.targets[edges.weights > 0], minlength=NODES)
    for fanout in ([5, 3], [-1], [80]):
        made = NeighborSampler(graph, fanout, replace=replace).sample(seeds_of(64))
        checked(edges, made, fanout, may, replace)
        assert (edges.weights[host(made.edges)] > 0).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["edge_times", "node_times"])
@pytest.mark.parametrize("temporal", ["uniform", "latest"])
def test_nothing_later_than_the_seed_is_drawn(edges: Edges, device: str, kind: str, temporal: str) -> None:
    times = edges.times if kind == "edge_times" else edges.node_times
    graph = edges.graph(device, **{kind: times})
    seeds, at = seeds_of(64), np.random.default_rng(3).integers(0, 1000, 64)
    made = NeighborSampler(graph, [4, 3], temporal=temporal).sample(seeds, seed_times=at)
    trees, ids, columns = host(made.trees), host(made.edges), host(made.columns)
    own = times[ids] if kind == "edge_times" else times[edges.sources[ids]]
    assert (own <= at[trees[columns]]).all()
    of_edge = times if kind == "edge_times" else times[edges.sources]
    for place in range(64):
        list_of = np.flatnonzero(edges.targets == seeds[place])
        may = list_of[of_edge[list_of] <= at[place]]
        drawn = ids[: made.edges_per_hop[0]][columns[: made.edges_per_hop[0]] == place]
        assert len(drawn) == min(4, len(may))
        if temporal == "latest":
            best = np.sort(of_edge[may])[::-1][: len(drawn)]
            assert np.array_equal(np.sort(of_edge[drawn])[::-1], best)


@pytest.mark.parametrize("device", DEVICES)
def test_trees_of_a_disjoint_sample_share_no_node(edges: Edges, device: str) -> None:
    made = NeighborSampler(edges.graph(device), [4, 3], disjoint=True).sample(seeds_of(64))
    trees, nodes, rows, columns = (host(each) for each in (made.trees, made.nodes, made.rows, made.columns))
    assert np.array_equal(trees[rows], trees[columns])
    assert len(np.unique(trees * NODES + nodes)) == len(nodes)


@pytest.mark.parametrize("device", DEVICES)
def test_an_induced_sample_has_all_edges_among_its_nodes(edges: Edges, device: str) -> None:
    made = NeighborSampler(edges.graph(device), [3, 2], induced=True).sample(seeds_of(32))
    nodes = host(made.nodes)
    inside = np.isin(edges.sources, nodes) & np.isin(edges.targets, nodes)
    assert np.array_equal(np.sort(host(made.edges)), np.flatnonzero(inside))
    assert np.array_equal(edges.sources[host(made.edges)], nodes[host(made.rows)])
    assert np.array_equal(edges.targets[host(made.edges)], nodes[host(made.columns)])


@pytest.mark.skipif("cuda" not in DEVICES, reason="no GPU here")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"replace": True},
        {"disjoint": True},
        {"induced": True},
        {"weights": True},
        {"weights": True, "replace": True},
        {"edge_times": True},
        {"edge_times": True, "temporal": "latest"},
    ],
)
def test_both_executors_draw_the_same(edges: Edges, options: dict[str, Any]) -> None:
    given = dict(options)
    beside: dict[str, Any] = {}
    times = None
    if given.pop("weights", False):
        beside["weights"] = edges.weights
    if given.pop("edge_times", False):
        beside["edge_times"], times = edges.times, np.full(100, 500)
    for fanout in ([15, 10, 5], [-1, 80, 2]):
        one, other = (
            NeighborSampler(edges.graph(device, **beside), fanout, seed=11, **given).sample(
                seeds_of(100), call=5, seed_times=times
            )
            for device in ("cpu", "cuda")
        )
        for name in ("nodes", "rows", "columns", "edges"):
            assert np.array_equal(host(getattr(one, name)), host(getattr(other, name))), name
        assert (one.nodes_per_hop, one.edges_per_hop) == (other.nodes_per_hop, other.edges_per_hop)


@pytest.mark.parametrize("device", DEVICES)
def test_seed_and_call_choose_the_draw(edges: Edges, device: str) -> None:
    graph = edges.graph(device)
    drawn = {
        (seed, call): host(NeighborSampler(graph, [3, 3], seed=seed).sample(seeds_of(64), call=call).edges)
        for seed in (0, 1)
        for call in (0, 1, 2**40)
    }
    again = NeighborSampler(graph, [3, 3], seed=1).sample(seeds_of(64), call=1)
    assert np.array_equal(drawn[1, 1], host(again.edges))
    assert len({each.tobytes() for each in drawn.values()}) == 6


# This is a 1 in 10^6 chance to fail for each: seeds are fixed, so it does not by chance.
_LIMIT = 4.9


def deviation(counts: NDArray[Any], expected: NDArray[Any]) -> float:
    """Of chi-square in standard deviations."""
    free = len(counts) - 1
    return float((((counts - expected) ** 2 / expected).sum() - free) / np.sqrt(2 * free))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("degree", "fanout"), [(7, 3), (20, 15), (64, 5), (100, 70), (1000, 10)])
@pytest.mark.parametrize("replace", [False, True])
def test_neighbours_and_pairs_of_them_are_drawn_uniformly(
    device: str, degree: int, fanout: int, replace: bool
) -> None:
    lists = 20_000
    sampler = NeighborSampler(star(degree, lists, device), [fanout], replace=replace, seed=degree)
    made = sampler.sample(np.arange(lists))
    at = (host(made.edges) % degree).reshape(lists, fanout)
    counts = np.bincount(at.reshape(-1), minlength=degree)
    expected = np.full(degree, lists * fanout / degree)
    # Without replacement what a list takes varies less by (degree - fanout) / (degree - 1).
    scale = 1.0 if replace else (degree - 1) / (degree - fanout)
    free = degree - 1
    squares = float(((counts - expected) ** 2 / expected).sum()) * scale
    assert abs(squares - free) / np.sqrt(2 * free) < _LIMIT
    if degree <= 64:
        near = np.sort(at[:, :2], axis=1) if replace else np.sort(at, axis=1)[:, :2]
        assert near.shape == (lists, 2)
    if degree == 7 and not replace:  # all 35 sets of 3
        sets = (1 << at).sum(axis=1)
        values, seen = np.unique(sets, return_counts=True)
        assert len(values) == 35
        assert abs(deviation(seen, np.full(35, lists / 35))) < _LIMIT


def star(degree: int, lists: int, device: str, **options: Any) -> Graph:
    """`lists` nodes, each with the same number of neighbours."""
    pointers = np.minimum(np.arange(lists + 1), lists) * degree
    return Graph(pointers, np.arange(degree * lists, dtype=np.int64) % lists, device=device, **options)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("replace", [False, True])
def test_weights_are_probabilities(device: str, replace: bool) -> None:
    lists, weights = 30_000, np.array([1, 2, 4, 0, 8, 0.5])
    graph = star(6, lists, device, weights=np.tile(weights, lists))
    for fanout in (1, 2):
        made = NeighborSampler(graph, [fanout], replace=replace, seed=5).sample(np.arange(lists))
        at = (host(made.edges) % 6).reshape(lists, fanout)
        chance = weights / weights.sum()
        if fanout == 1 or replace:
            seen = np.bincount(at.reshape(-1), minlength=6)[weights > 0]
            assert abs(deviation(seen, lists * fanout * chance[weights > 0])) < _LIMIT
            continue
        # One after the other: the chance of a pair in either order (Efraimidis and Spirakis).
        pairs = np.sort(at, axis=1) @ [6, 1]
        expected = np.zeros(36)
        for i in range(6):
            for j in range(6):
                if i != j and weights[i] > 0 and weights[j] > 0:
                    low, high = min(i, j), max(i, j)
                    expected[6 * low + high] += chance[i] * chance[j] / (1 - chance[i])
        seen = np.bincount(pairs, minlength=36)
        assert seen[expected == 0].sum() == 0
        assert abs(deviation(seen[expected > 0], lists * expected[expected > 0])) < _LIMIT


@pytest.mark.parametrize("device", DEVICES)
def test_several_types_of_nodes(device: str) -> None:
    draw = np.random.default_rng(0)
    writes = draw.integers(0, [[100], [50]], (2, 500))
    cites = draw.integers(0, 50, (2, 400))
    back = draw.integers(0, [[50], [100]], (2, 300))
    kinds = {("a", "writes", "p"): (writes, (100, 50)), ("p", "cites", "p"): (cites, (50, 50)),
             ("p", "of", "a"): (back, (50, 100))}  # fmt: skip
    graphs = {
        kind: Graph.from_edges(ends[0], ends[1], size, device=device) for kind, (ends, size) in kinds.items()
    }
    fanout = {("a", "writes", "p"): [3, 2], ("p", "cites", "p"): [2, 0], ("p", "of", "a"): [-1, 1]}
    made = HeteroNeighborSampler(graphs, fanout).sample({"p": np.arange(10), "a": [99]})
    for kind, (ends, _) in kinds.items():
        ids = host(made.edges[kind])
        assert np.array_equal(ends[0][ids], host(made.nodes[kind[0]])[host(made.rows[kind])])
        assert np.array_equal(ends[1][ids], host(made.nodes[kind[2]])[host(made.columns[kind])])
    for nodes in made.nodes.values():
        assert len(np.unique(host(nodes))) == len(nodes)
    assert made.edges_per_hop["p", "cites", "p"][1] == 0
    assert made.edges_per_hop["p", "of", "a"][0] == int((back[1] == 99).sum())


PLACED = [
    (device, placement)
    for device in DEVICES
    for placement in ("host", "storage", *(("hbm", "host-cached") if device == "cuda" else ()))
]


@pytest.mark.parametrize(("device", "placement"), PLACED)
def test_every_placement_gives_the_same_sample(
    edges: Edges, tmp_path: Path, device: str, placement: str
) -> None:
    more: dict[str, Any] = {"cache": "1MiB"} if placement in ("storage", "host-cached") else {}
    plain = edges.graph("cpu")
    paths = {name: tmp_path / f"{name}.npy" for name in ("pointers", "neighbors")}
    for name, path in paths.items():
        np.save(path, host(getattr(plain, name)[:]))
    wanted = NeighborSampler(plain, [9, 80]).sample(seeds_of(64))
    with Graph.open(tmp_path, placement=placement, device=device, **more) as graph:
        made = NeighborSampler(graph, [9, 80]).sample(seeds_of(64))
    for name in ("nodes", "rows", "columns"):
        assert np.array_equal(host(getattr(wanted, name)), host(getattr(made, name)))


def test_a_sampler_goes_to_other_processes_by_reference(edges: Edges, tmp_path: Path) -> None:
    graph = edges.graph("cpu")
    sampler = NeighborSampler(graph, [3, 2], seed=4)
    again = pickle.loads(pickle.dumps(sampler))
    one, other = sampler.sample(seeds_of(8), call=3), again.sample(seeds_of(8), call=3)
    assert np.array_equal(host(one.edges), host(other.edges))


@pytest.mark.parametrize("device", DEVICES)
def test_few_seeds_or_none(edges: Edges, device: str) -> None:
    sampler = NeighborSampler(edges.graph(device), [3, 2])
    made = sampler.sample([])
    assert (made.nodes_per_hop, made.edges_per_hop, len(made.nodes)) == ([0, 0, 0], [0, 0], 0)
    twice = sampler.sample([5, 5, 6])
    assert (host(twice.nodes)[:3].tolist(), twice.nodes_per_hop[0]) == ([5, 5, 6], 3)
    lonely = sampler.sample([NODES - 1])
    assert lonely.edges_per_hop == [0, 0]
    empty = Graph([0, 0], np.zeros(0, np.int64), device=device)
    assert NeighborSampler(empty, [2]).sample([0]).nodes_per_hop == [1, 0]


def test_bad_input_is_one_sentence(edges: Edges) -> None:
    graph = edges.graph("cpu")
    sampler = NeighborSampler(graph, [3])
    weights = np.full(EDGES, np.nan)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: sampler.sample([NODES]), ValueError, f"seed 0 is {NODES}: it is no node"),
        (lambda: sampler.sample([1, -1]), ValueError, "seed 1"),
        (lambda: sampler.sample([0.5]), TypeError, "give integers"),
        (
            lambda: sampler.sample(np.array([2**63], np.uint64)),
            ValueError,
            "seeds: 9223372036854775808: give",
        ),
        (lambda: sampler.sample([1], seed_times=[1]), ValueError, "without times"),
        (lambda: NeighborSampler(graph, [0]), ValueError, "fan-out 0"),
        (lambda: NeighborSampler(graph, [-2]), ValueError, "fan-out -2"),
        (lambda: NeighborSampler(graph, []), TypeError, "each hop"),
        (lambda: NeighborSampler(graph, [1], temporal="last"), ValueError, "uniform or latest"),
        (lambda: NeighborSampler(graph, [1], seed=-1), ValueError, "seed -1"),
        (lambda: Graph([0, 3], [0, 1]), ValueError, "go from 0 to 3"),
        (lambda: Graph([0.0, 1.0], [0]), TypeError, "pointers"),
        (lambda: Graph([0, 2], [0, 0], weights=[1.0]), ValueError, "1 weights"),
        (lambda: Graph.from_edges([0], [5], 3), ValueError, "target 5"),
        (lambda: Graph.from_edges([0], [1, 2]), ValueError, "1 sources and 2 targets"),
        (lambda: Graph.open("/nowhere"), FileNotFoundError, "pointers.npy"),
        (
            lambda: NeighborSampler(edges.graph("cpu", weights=weights), [2]).sample([0]),
            ValueError,
            "its weight is negative or no number",
        ),
        (
            lambda: NeighborSampler(Graph([0, 1], [7]), [1]).sample([0]),
            ValueError,
            "its neighbour is no node",
        ),
        (lambda: Graph([0, 5, 2], [0, 1]), ValueError, "pointers decrease"),
        (lambda: Graph.from_edges([0], [1], weights=[1.0, 2.0]), ValueError, "2 weights"),
        (lambda: Graph.from_edges([0], [1], -1), ValueError, "nodes -1"),
        (lambda: Graph.from_edges([2**50], [1]), ValueError, f"node {2**50}: give numbers below"),
        (lambda: Graph([0, 1], [0], sources=-1), ValueError, "sources -1"),
        (lambda: Graph(None, [0]), TypeError, "pointers: None: give an array"),
        (lambda: Graph([0, 1], [0], edge_ids=[0.5]), TypeError, "edge_ids"),
        (lambda: Graph([0, 1], [0], edge_times=np.ones(1, np.uint32)), TypeError, "int32 or int64"),
        (lambda: Graph([0, 1], [0], node_times=np.ones(1, np.uint64)), TypeError, "int32 or int64"),
        (
            lambda: NeighborSampler(Graph([0, 1], [0], node_times=[3]), [1]).sample(
                [0], seed_times=np.array([2**63], np.uint64)
            ),
            ValueError,
            f"seed_times: {2**63}: give numbers below",
        ),
        (lambda: sampler.sample([0], sms=2**70), ValueError, "sms"),
        (lambda: NeighborSampler(None, [1]), TypeError, "give a penstock"),  # type: ignore[arg-type]
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words) as raised:
            call()
        assert "\n" not in str(raised.value)
    closed = edges.graph("cpu")
    over = NeighborSampler(closed, [1])
    closed.close()
    with pytest.raises(ValueError, match="it is closed"):
        over.sample([0])
    assert isinstance(closed.pointers, penstock.Array)


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("readable", ["writable", "mapped", "tensor"])
def test_edges_are_named_as_int64_without_a_copy_of_all_names(
    tmp_path: Path, kind: str, readable: str
) -> None:
    edges = 3_000_000
    ids = (np.arange(edges) * 7).astype(kind)
    names: Any = ids
    if readable == "mapped":
        np.save(tmp_path / "ids.npy", ids)
        names = np.load(tmp_path / "ids.npy", mmap_mode="r")
    elif readable == "tensor":
        names = pytest.importorskip("torch", reason="torch is not installed").from_numpy(ids)
    graph = Graph([0, edges], np.zeros(edges, np.int32), sources=1, edge_ids=names, device="cpu")
    sampler = NeighborSampler(graph, [5], seed=1)
    plain = Graph([0, edges], graph.neighbors, sources=1, device="cpu")
    positions = np.asarray(NeighborSampler(plain, [5], seed=1).sample([0]).edges)
    tracemalloc.start()
    named = sampler.sample([0]).edges
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < edges
    assert str(named.dtype).endswith("int64")
    assert np.array_equal(np.asarray(named), positions * 7)

"""Weights: sums of shortest paths, predecessors, weighted and personalised ranks, against NetworkX."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import penstock.cli.main
import pytest
from places import DEVICES

pytest.importorskip("networkx", reason="networkx is not installed")
pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
import networkx as nx
from penstock import graph as graphs

PLACEMENTS = ("storage", "host", "pinned", "host-cached", "subgraph")
STRATEGIES = ("auto", "thread", "merged", "coarsened(3)", "tiled(32)", "frontier", "tiled_frontier(32)")
PLACES = list(itertools.product(DEVICES, PLACEMENTS))


@pytest.fixture(params=PLACES, ids="-".join)
def how(request: pytest.FixtureRequest) -> dict[str, Any]:
    executor, placement = request.param
    small = {"cache": "64KiB", "line": 512} if placement in ("storage", "host-cached") else {}
    return {"executor": executor, "placement": placement, "verify": True, **small}


def strategy_of(how: dict[str, Any], number: int) -> str:
    return "auto" if how["placement"] == "subgraph" else STRATEGIES[number % len(STRATEGIES)]


def drawn(
    folder: Path, seed: int, weights: Any, *, directed: bool = True, wide: bool = False
) -> tuple[Any, Any]:
    """A multigraph with loops and weights, many of them 0, as NetworkX's and as a folder."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    count = int(rng.integers(0, 5 * n))
    ends = rng.integers(0, n, (2, count)).astype(np.int64 if wide else np.int32)
    lengths = rng.integers(0, 6, count).astype(weights)
    if weights is np.float32:
        lengths = (lengths * rng.choice([1, 1 / 3, 1e20, 1e-20], count)).astype(np.float32)
    theirs = nx.MultiDiGraph() if directed else nx.MultiGraph()
    theirs.add_nodes_from(range(n))
    theirs.add_weighted_edges_from(zip(*ends.tolist(), lengths.tolist(), strict=True))
    if not directed:  # both ways, but a loop once
        there = ends[0] != ends[1]
        ends = np.concatenate([ends, ends[::-1, there]], axis=1)
        lengths = np.concatenate([lengths, lengths[there]])
    ours = graphs.write_folder(
        folder / f"g{seed}", n, ends[0], ends[1], weights=lengths, directed=directed, source="drawn"
    )
    return theirs, ours


@pytest.mark.parametrize("weights", [np.int32, np.float32])
def test_distances_are_equal_to_those_of_networkx(tmp_path: Path, how: dict[str, Any], weights: Any) -> None:
    for seed in range(2 * len(STRATEGIES)):
        theirs, ours = drawn(tmp_path, seed, weights, directed=seed % 3 != 0, wide=seed % 2 == 1)
        source = seed % ours.vertices
        found = graphs.sssp(ours, source=source, parents=True, strategy=strategy_of(how, seed), **how)
        assert found.verified, found.violation
        expected = nx.single_source_dijkstra_path_length(theirs, source)
        distances = np.asarray(found.distances)
        assert distances.dtype == (np.int64 if weights is np.int32 else np.float64)
        reached = {v: d for v, d in enumerate(distances.tolist()) if d >= 0 and d != np.inf}
        assert reached == expected  # to the last bit
        assert found.reached == len(expected)
        assert found.distances_sum == pytest.approx(sum(expected.values()))
        assert_shortest_path_tree(found, theirs, expected)


def assert_shortest_path_tree(found: Any, theirs: Any, expected: dict[int, float]) -> None:
    """Each path of the predecessors has the length that NetworkX says is the shortest."""
    predecessors = np.asarray(found.predecessors)
    assert predecessors.dtype == np.int64
    assert predecessors[found.source] == found.source
    for target in range(found.vertices):
        if target not in expected:
            assert predecessors[target] == -1
            continue
        path = found.path_to(target)
        length = 0
        for a, b in itertools.pairwise(path):
            length += min(data["weight"] for data in theirs[a][b].values())
        assert (path[0], path[-1], length) == (found.source, target, expected[target])
    assert found.farthest == max(expected.values())
    assert expected[found.farthest_path[-1]] == found.farthest


def test_of_several_predecessors_the_smallest_is_taken(tmp_path: Path, how: dict[str, Any]) -> None:
    """So that two runs give the same paths; whichever thread came first had its way."""
    rng = np.random.default_rng(7)
    vertices, edges = 60, 900
    sources, targets = rng.integers(0, vertices, (2, edges))
    lengths = rng.integers(1, 4, edges).astype(np.int32)
    order = np.argsort(sources, kind="stable")
    sources, targets, lengths = sources[order], targets[order], lengths[order]
    graph = graphs.write_folder(tmp_path / "ties", vertices, sources, targets, weights=lengths)
    for strategy in sorted({strategy_of(how, k) for k in range(len(STRATEGIES))}):
        found = graphs.sssp(graph, source=0, parents=True, strategy=strategy, **how)
        distances = np.asarray(found.distances)
        last = (distances[sources] >= 0) & (distances[sources] + lengths == distances[targets])
        expected = np.full(vertices, vertices)
        np.minimum.at(expected, targets[last], sources[last])
        expected[expected == vertices] = -1
        expected[0] = 0
        assert np.asarray(found.predecessors).tolist() == expected.tolist(), strategy


def chain(folder: Path, weights: Any) -> Any:
    n = len(weights)
    return graphs.write_folder(folder, n + 2, np.arange(n), np.arange(1, n + 1), weights=weights)


@pytest.mark.parametrize("executor", DEVICES)
def test_sums_beyond_float32_are_paths(tmp_path: Path, executor: Any) -> None:
    """They were infinite, "not reached", and the verifier called that wrong."""
    largest = np.finfo(np.float32).max
    ours = chain(tmp_path / "long", np.full(5, largest, np.float32))
    found = graphs.sssp(ours, source=0, verify=True, executor=executor)
    assert found.verified, found.violation
    assert found.reached == 6
    assert np.asarray(found.distances).tolist() == [k * float(largest) for k in range(6)] + [np.inf]
    # 2^24 + 1 is no float32.
    ours = chain(tmp_path / "exact", np.array([2**24, 1, 1], np.float32))
    found = graphs.sssp(ours, source=0, verify=True, executor=executor)
    assert np.asarray(found.distances).tolist()[:4] == [0, 2**24, 2**24 + 1, 2**24 + 2]
    # What a double's last bit loses adds nothing: its end is as far, and has a predecessor all the same.
    ours = chain(tmp_path / "lost", np.array([1e30, 1, 1], np.float32))
    found = graphs.sssp(ours, source=0, parents=True, verify=True, executor=executor)
    assert found.verified, found.violation
    assert found.path_to(3) == [0, 1, 2, 3]


@pytest.mark.parametrize("executor", DEVICES)
def test_sums_beyond_int32_are_paths(tmp_path: Path, executor: Any) -> None:
    ours = chain(tmp_path / "long", np.full(9, 2**31 - 1, np.int32))
    found = graphs.sssp(ours, source=0, verify=True, executor=executor)
    assert found.verified, found.violation
    assert np.asarray(found.distances).tolist() == [k * (2**31 - 1) for k in range(10)] + [-1]
    assert found.distances_sum == 45 * (2**31 - 1)
    assert isinstance(found.distances_sum, int)


def test_cycles_of_no_length_have_trees(tmp_path: Path) -> None:
    n = 40  # a ring of zeros that is entered at one vertex, and chords
    a = np.concatenate([np.arange(n), np.arange(0, n, 3), [n]])
    b = np.concatenate([(np.arange(n) + 1) % n, (np.arange(0, n, 3) + 7) % n, [5]])
    weights = np.zeros(len(a), np.float32)
    weights[-1] = 2
    ours = graphs.write_folder(tmp_path / "ring", n + 1, a, b, weights=weights)
    for strategy in STRATEGIES:
        found = graphs.sssp(
            ours, source=n, parents=True, verify=True, strategy=strategy, placement="host", executor="cpu"
        )
        assert found.verified, found.violation
        assert all(found.path_to(v)[:2] == [n, 5] for v in range(n))


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.array([1, 2, -3], np.int32), "-3"),
        (np.array([1, 2, -0.5], np.float32), "-0.5"),
        (np.array([1, 2, np.nan], np.float32), "nan"),
        (np.array([1, 2, np.inf], np.float32), "inf"),
    ],
)
def test_bad_weights_are_refused_wherever_the_source_is(tmp_path: Path, weights: Any, said: str) -> None:
    """Not only where the source reaches them."""
    ours = graphs.write_folder(tmp_path / "g", 5, [0, 1, 3], [1, 2, 4], weights=np.ones_like(weights))
    np.load(tmp_path / "g" / "weights.npy", mmap_mode="r+")[:] = weights  # as other programs may write them
    sentence = f"weights.npy: the weight of edge 2, 3 -> 4, is {said}: give finite weights of 0 or more"
    for source in (0, 2, 3, None):
        with pytest.raises(ValueError, match=sentence):
            graphs.sssp(ours, source=source, executor="cpu")
    with pytest.raises(ValueError, match=sentence):
        graphs.pagerank(ours, weighted=True, executor="cpu")
    assert graphs.bfs(ours, source=0, executor="cpu").reached == 3  # weights are not its


def test_a_weight_that_changes_between_two_runs_is_seen(tmp_path: Path) -> None:
    ours = graphs.write_folder(tmp_path / "g", 3, [0, 1], [1, 2], weights=np.array([1, 2], np.int32))
    assert graphs.sssp(ours, source=0, executor="cpu").farthest == 3
    changed = np.load(tmp_path / "g" / "weights.npy", mmap_mode="r+")
    changed[1] = -1
    changed.flush()
    del changed
    with pytest.raises(ValueError, match="the weight of edge 1, 1 -> 2, is -1"):
        graphs.sssp(ours, source=0, executor="cpu")


RANK_OPTIONS: list[dict[str, Any]] = [
    {},
    {"personalization": True},
    {"nstart": True},
    {"dangling": True},
    {"personalization": True, "nstart": True, "dangling": True, "alpha": 0.6},
]


@pytest.mark.parametrize("weights", [np.int32, np.float32])
@pytest.mark.parametrize("weighted", [True, False])
def test_ranks_are_those_of_networkx(
    tmp_path: Path, how: dict[str, Any], weighted: bool, weights: Any
) -> None:
    for seed in range(len(STRATEGIES)):
        theirs, ours = drawn(tmp_path, seed, weights, directed=seed % 3 != 0, wide=seed % 2 == 1)
        rng = np.random.default_rng(seed)
        options = RANK_OPTIONS[seed % len(RANK_OPTIONS)]
        values = {name: rng.random(ours.vertices) + 0.01 for name in options if name != "alpha"}
        if "personalization" in values and ours.vertices > 1:
            values["personalization"][0] = 0
        alpha = options.get("alpha", 0.85)
        expected = nx.pagerank(
            theirs,
            alpha=alpha,
            tol=1e-12,
            max_iter=500,
            weight="weight" if weighted else None,
            **{name: dict(enumerate(array.tolist())) for name, array in values.items()},
        )
        found = graphs.pagerank(
            ours,
            damping=alpha,
            tolerance=1e-12 * ours.vertices,
            iterations=500,
            dtype="float64",
            weighted=weighted,
            strategy=strategy_of(how, seed),
            **{"dangling": True, **values},
            **how,
        )
        assert found.verified, found.violation
        assert found.converged
        assert found.weights == ("used" if weighted else "left out")
        wanted = [expected[v] for v in range(ours.vertices)]
        np.testing.assert_allclose(np.asarray(found.ranks), wanted, atol=1e-11)
        narrow = graphs.pagerank(
            ours, damping=alpha, tolerance=1e-6, iterations=500, weighted=weighted, executor=how["executor"],
            verify=True, **{"dangling": True, **values},
        )  # fmt: skip
        assert narrow.verified, narrow.violation
        np.testing.assert_allclose(np.asarray(narrow.ranks), np.asarray(found.ranks), atol=2e-5)


def test_values_are_given_by_number_by_name_and_as_arrays(tmp_path: Path) -> None:
    ours = graphs.write_folder(
        tmp_path / "g", 3, [0, 1], [1, 2], weights=np.array([1, 2], np.int32), names=["a", "b", "c"]
    )
    same = [
        graphs.pagerank(ours, personalization=given, dangling=True, dtype="float64", iterations=99).ranks
        for given in ({"b": 3}, {1: 7.5}, [0, 1, 0], np.array([0, 2, 0], np.int8), {np.int64(1): 1})
    ]
    for ranks in same:
        np.testing.assert_array_equal(np.asarray(ranks), np.asarray(same[0]))
    expected = nx.pagerank(nx.DiGraph([("a", "b"), ("b", "c")]), personalization={"b": 1}, tol=1e-5)
    np.testing.assert_allclose(np.asarray(same[0]), list(expected.values()), atol=1e-4)


@pytest.mark.parametrize(
    ("options", "kind", "part"),
    [
        ({"personalization": {"x": 1}}, ValueError, "personalization of vertex 'x': no vertex has this name"),
        ({"personalization": {3: 1}}, ValueError, "personalization of vertex 3: the vertices are 0 to 2"),
        ({"personalization": {1.5: 1}}, TypeError, "personalization of vertex 1.5: it is no whole number"),
        ({"personalization": {0: -1, 1: 2}}, ValueError, "personalization of vertex 0 is -1"),
        ({"personalization": {0: float("nan")}}, ValueError, "personalization of vertex 0 is nan"),
        ({"personalization": {}}, ValueError, "personalization adds up to 0"),
        ({"nstart": [1, 2]}, ValueError, r"nstart has shape \(2,\): give shape \(3,\)"),
        ({"nstart": np.zeros(3)}, ValueError, "nstart adds up to 0"),
        ({"nstart": "a"}, TypeError, "nstart 'a': give a dict of vertices and numbers, or an array"),
        ({"dangling": 3}, ValueError, "dangling has one number: give shape"),
        ({"dangling": {0: "x"}}, TypeError, "give a dict of vertices and numbers"),
        ({"weighted": 1}, TypeError, "weighted 1: give True or False"),
        ({"tolerance": "x"}, TypeError, "tolerance 'x': it is no number: give a float"),
        ({"damping": None}, TypeError, "damping None: it is no number: give a float"),
        ({"personalization": {True: 1}}, TypeError, "g: personalization of vertex True: it is no whole"),
        ({"weighted": True}, ValueError, "its edges have no weights"),
    ],
)
def test_values_that_cannot_be_are_refused(
    tmp_path: Path, options: dict[str, Any], kind: type[Exception], part: str
) -> None:
    ours = graphs.write_folder(tmp_path / "g", 3, [0, 1], [1, 2], names=["a", "b", "c"])
    with pytest.raises(kind, match=part) as refused:
        graphs.pagerank(ours, **options)
    assert "\n" not in str(refused.value)


def flat(table: str) -> str:
    """With the second lines of cells behind the first ones, without the title."""
    return " ".join(table.replace("│", " ").split("\n", 1)[1].split())


def status_of(*arguments: str) -> Any:
    try:
        return penstock.cli.main.main(list(arguments))
    except SystemExit as ended:
        return ended.code


def test_ranks_that_have_not_converged_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were "verified yes", with status 0."""
    common = ["--executor", "cpu", "--cache-dir", str(tmp_path), "--iterations", "2", "--verify"]
    assert status_of("pagerank", "kron:8", *common) == penstock.cli.main.NOT_CONVERGED
    out, err = capsys.readouterr()
    out = flat(out)
    assert out.index("converged") < out.index("verified") < out.index("graph")
    assert "no: 2 iterations" in out
    assert "ranks that have not converged" in out
    assert err.startswith("penstock: rank ")
    assert "not converged: the last of 2 iterations changed the ranks by" in err
    assert err.count("\n") == 1
    assert status_of("pagerank", "kron:8", "--json", *common) == penstock.cli.main.NOT_CONVERGED
    assert json.loads(capsys.readouterr().out)["converged"] is False
    # As many iterations as asked for are no shortcoming.
    assert status_of("pagerank", "kron:8", "--tolerance", "0", *common) == 0
    assert "not asked for (tolerance 0): 2 iterations" in flat(capsys.readouterr().out)
    assert status_of("pagerank", "kron:8", *common[:4]) == 0


def test_tables_begin_with_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--executor", "cpu", "--cache-dir", str(tmp_path)]
    for command, first in (
        (["bfs"], ("vertices reached", "levels", "sum of depths")),
        (["cc"], ("components", "vertices of the largest")),
        (["pagerank"], ("converged", "sum of ranks", "weights")),
        (["sssp", "--parents"], ("vertices reached", "sum of distances", "farthest", "path to the farthest")),
    ):
        assert penstock.cli.main.main([*command, "kron:6", *common]) == 0
        rows = [line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if "│" in line]
        assert tuple(row for row in rows if row)[: len(first)] == first


def test_weights_left_out_are_mentioned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weights were left out without a word."""
    weights = np.array([1, 9], np.int32)
    graphs.write_folder(tmp_path / "g", 3, [0, 0], [1, 2], weights=weights, names=["a", "b=c", "d"])
    common = [str(tmp_path / "g"), "--executor", "cpu"]
    assert penstock.cli.main.main(["pagerank", *common]) == 0
    assert "left out, though the graph has some (--weighted uses them)" in capsys.readouterr().out
    assert penstock.cli.main.main(["pagerank", *common, "--weighted", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["weights"] == "used"
    arguments = ["--personalize", "b=c", "--personalize", "d=3", "--output", str(tmp_path / "r.npy")]
    assert penstock.cli.main.main(["pagerank", *common, "--dangling", "--dtype", "float64", *arguments]) == 0
    expected = graphs.pagerank(
        tmp_path / "g", personalization={"b=c": 1, "d": 3}, dangling=True, dtype="float64", executor="cpu"
    )
    np.testing.assert_array_equal(np.load(tmp_path / "r.npy"), np.asarray(expected.ranks))


def test_predecessors_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = np.array([1, 1, 5], np.int32)
    graphs.write_folder(tmp_path / "g", 4, [0, 1, 0], [1, 2, 2], weights=weights, names=["a", "b", "c", "d"])
    common = [str(tmp_path / "g"), "--source", "a", "--parents", "--verify", "--output"]
    assert penstock.cli.main.main(["sssp", *common, str(tmp_path / "out.csv")]) == 0
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert rows == ["vertex,distance,predecessor", "a,0,a", "b,1,a", "c,2,b", "d,-1,"]
    assert penstock.cli.main.main(["sssp", *common, str(tmp_path / "out.npy")]) == 0
    table = np.load(tmp_path / "out.npy")
    assert table["predecessors"].tolist() == [0, 0, 1, -1]
    assert table["distances"].tolist() == [0, 1, 2, -1]
    assert "a (0), b (1), c (2)" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(TypeError, match="delta 'x': it is no number: give a float"):
        graphs.sssp(tmp_path / "g", delta="x")  # type: ignore[arg-type]
    found = graphs.sssp(tmp_path / "g", source="a")
    with pytest.raises(ValueError, match="search with parents=True"):
        found.path_to(1)
    found = graphs.sssp(tmp_path / "g", source="a", parents=True)
    for target, part in ((3, "no path from vertex 0"), (4, "the vertices are 0 to 3")):
        with pytest.raises(ValueError, match=part):
            found.path_to(target)


def test_the_version_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock.cli.main.main(["--version"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"penstock {penstock.__version__} (")
    assert penstock.cli.main.main(["version"]) == 0
    assert capsys.readouterr().out == said

"""Algorithms over graphs against SciPy's, on hundreds of small graphs, wherever their edges lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock.cli.main
import pytest
from places import DEVICES
from scipy import sparse
from scipy.sparse import csgraph

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
from penstock import graph as graphs

# One for each graph.
STRATEGIES = [
    "auto",
    "thread",
    "merged",
    "merged_aligned",
    "transposed(7)",
    "coarsened(3)",
    "tiled(32)",
    "tiled(64,search)",
    "frontier",
    "tiled_frontier(32)",
    "tiled_frontier(sort)",
    "auto",
]
GRAPHS_EACH = len(STRATEGIES)
PLACEMENTS = ("storage", "host", "pinned", "host-cached", "hbm", "subgraph")
PLACES = [(device, place) for device in DEVICES for place in PLACEMENTS]
PLACES.remove(("cpu", "hbm"))


@pytest.fixture(params=PLACES, ids="-".join)
def how(request: pytest.FixtureRequest) -> dict[str, Any]:
    executor, placement = request.param
    how = {"executor": executor, "placement": placement, "verify": True}
    if placement in ("storage", "host-cached"):
        how |= {"cache": "1MiB", "line": 512}
    return how | ({"cache": "1MiB"} if placement == "subgraph" else {})


def strategy_of(how: dict[str, Any], number: int) -> str:
    return "auto" if how["placement"] == "subgraph" else STRATEGIES[number]


class Drawn:
    """A graph with self loops, edges that are there twice, and vertices without any."""

    def __init__(
        self, folder: Path, seed: int, *, directed: bool, weights: Any = None, wide: bool = False
    ) -> None:
        rng = np.random.default_rng(seed)
        self.n = int(rng.integers(1, 80))
        ends = rng.integers(0, self.n, (2, int(rng.integers(0, 4 * self.n))))
        ends = ends.astype(np.int64 if wide else np.int32)
        drawn = None if weights is None else rng.integers(0, 40, ends.shape[1]).astype(weights)
        if drawn is not None and weights is np.float32:
            drawn /= 7
        self.folder = graphs.write_folder(
            folder / f"graph{seed}",
            self.n,
            ends[0],
            ends[1],
            weights=drawn,
            directed=directed,
            symmetrise=not directed,
        )

    def edges(self) -> tuple[Any, Any]:
        degrees = np.diff(self.folder.offsets().astype(np.int64))
        return np.repeat(np.arange(self.n), degrees.tolist()), np.asarray(self.folder.edge_array())

    def distances(self, source: int) -> Any:
        """By Bellman and Ford, since SciPy takes weights of 0 for no edge."""
        a, b = self.edges()
        w = np.load(Path(self.folder.path) / "weights.npy")
        found = np.full(self.n, np.inf)
        found[source] = 0
        for _ in range(self.n):
            np.minimum.at(found, b, found[a] + w)
        return found


def ranks_of(a: Any, b: Any, n: int, dangling: bool, iterations: int) -> Any:
    degrees = np.bincount(a, minlength=n)
    ranks = np.full(n, 1 / n)
    for _ in range(iterations):
        shares = np.divide(ranks, degrees, out=np.zeros(n), where=degrees != 0)
        lost = ranks[degrees == 0].sum() if dangling else 0
        ranks = 0.15 / n + 0.85 * (np.bincount(b, shares[a], minlength=n) + lost / n)
    return ranks


@pytest.mark.parametrize("directed", [False, True])
def test_components_are_those_of_scipy(tmp_path: Path, how: dict[str, Any], directed: bool) -> None:
    for seed in range(GRAPHS_EACH):
        drawn = Drawn(tmp_path, seed, directed=directed, wide=seed % 2 == 1)
        result = graphs.cc(drawn.folder, strategy=strategy_of(how, seed), **how)
        assert result.verified, result.violation
        a, b = drawn.edges()
        matrix = sparse.coo_matrix((np.ones(len(a)), (a, b)), shape=(drawn.n, drawn.n))
        count, theirs = csgraph.connected_components(matrix, directed=True, connection="weak")
        labels = np.asarray(result.labels)
        assert result.components == count == len(np.unique(labels))
        assert result.largest == np.bincount(theirs).max()
        for label in range(count):
            members = np.flatnonzero(theirs == label)
            assert (labels[members] == members[0]).all()


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_ranks_are_those_of_the_definition(
    tmp_path: Path, how: dict[str, Any], directed: bool, dangling: bool
) -> None:
    for seed in range(GRAPHS_EACH):
        drawn = Drawn(tmp_path, seed, directed=directed, wide=seed % 2 == 1)
        dtype, near = ("float64", 1e-12) if seed % 3 else ("float32", 1e-5)
        wanted: dict[str, Any] = {"dangling": dangling, "dtype": dtype, "tolerance": 1e-6, "iterations": 300}
        result = graphs.pagerank(drawn.folder, strategy=strategy_of(how, seed), **wanted, **how)
        assert result.verified, result.violation
        assert result.converged
        a, b = drawn.edges()
        expected = ranks_of(a, b, drawn.n, dangling, result.iterations)
        np.testing.assert_allclose(np.asarray(result.ranks), expected, rtol=near, atol=near)
        if dangling:
            assert abs(float(np.asarray(result.ranks).sum()) - 1) < 1e-4


@pytest.mark.parametrize("weights", [np.int32, np.float32])
@pytest.mark.parametrize("directed", [False, True])
def test_distances_are_the_shortest(
    tmp_path: Path, how: dict[str, Any], directed: bool, weights: Any
) -> None:
    for seed in range(GRAPHS_EACH):
        drawn = Drawn(tmp_path, seed, directed=directed, weights=weights, wide=seed % 2 == 1)
        source = seed % drawn.n
        delta = (0, 1, 1000, float("inf"))[seed // 3]
        result = graphs.sssp(drawn.folder, source=source, delta=delta, strategy=strategy_of(how, seed), **how)
        assert result.verified, result.violation
        expected = drawn.distances(source)
        found = np.asarray(result.distances).astype(np.float64)
        if weights is np.int32:
            found[found < 0] = np.inf
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert result.reached == np.isfinite(expected).sum()
        assert result.farthest == pytest.approx(expected[np.isfinite(expected)].max())


@pytest.mark.parametrize("directed", [False, True])
def test_parents_of_a_search_make_a_tree(tmp_path: Path, how: dict[str, Any], directed: bool) -> None:
    for seed in range(GRAPHS_EACH):
        drawn = Drawn(tmp_path, seed, directed=directed)
        result = graphs.bfs(drawn.folder, source=seed % drawn.n, strategy=strategy_of(how, seed), **how)
        assert result.verified, result.violation
        assert (np.asarray(result.parents) >= 0).sum() == result.reached


def test_a_larger_graph_comes_and_goes_through_few_lines(tmp_path: Path) -> None:
    small: dict[str, Any] = {"cache": "64KiB", "verify": True, "cache_dir": tmp_path, "executor": "cpu"}
    for result in (
        graphs.cc("kron:12", **small),
        graphs.pagerank("kron:12", **small),
        graphs.sssp("kron:12", **small),
    ):
        assert result.verified, result.violation
        assert result.evictions > 0
        assert result.vertex_bytes >= 4 * result.vertices
        assert result.errors == 0
        assert "labels" not in result.as_dict()
        assert result.as_dict()["bytes_moved"] == result.bytes_moved


@pytest.mark.parametrize("executor", DEVICES)
@pytest.mark.parametrize("algorithm", [graphs.bfs, graphs.cc, graphs.pagerank, graphs.sssp])
def test_every_strategy_gives_the_same(tmp_path: Path, algorithm: Any, executor: str) -> None:
    where: dict[str, Any] = {"cache_dir": tmp_path, "executor": executor, "verify": True}
    looked_at = set()
    for strategy in STRATEGIES[1:-1]:
        result = algorithm("kron:10", placement="host", strategy=strategy, **where)
        assert result.verified, (strategy, result.violation)
        assert set(result.level_strategies) <= {strategy.partition("(")[0], "tiled", "frontier"}
        looked_at.add(result.edges_traversed)
    # Of distances it depends on who comes first.
    assert len(looked_at) == 1 or algorithm is graphs.sssp


@pytest.mark.parametrize("executor", DEVICES)
def test_auto_reads_fewer_edges(tmp_path: Path, executor: str) -> None:
    where: dict[str, Any] = {"placement": "host", "cache_dir": tmp_path, "executor": executor, "verify": True}
    for algorithm, way in ((graphs.bfs, "pull"), (graphs.cc, "neighbours")):
        few, all_of_them = algorithm("kron:12", **where), algorithm("kron:12", strategy="frontier", **where)
        assert few.verified
        assert all_of_them.verified
        assert few.edges_traversed < 0.5 * all_of_them.edges_traversed
        assert way in few.level_strategies


@pytest.mark.parametrize("executor", DEVICES)
@pytest.mark.parametrize("placement", ["host", "pinned", "storage", "hbm"])
def test_incoming_edges_serve_searches_and_ranks(tmp_path: Path, executor: str, placement: str) -> None:
    if (executor, placement) == ("cpu", "hbm"):
        pytest.skip("a CPU has no HBM")
    where: dict[str, Any] = {"placement": placement, "executor": executor, "verify": True}
    for seed in range(GRAPHS_EACH):
        drawn = Drawn(tmp_path, seed, directed=True, wide=seed % 2 == 1)
        pushed = graphs.bfs(drawn.folder, source=seed % drawn.n, **where)
        if placement == "storage":  # behind a cache a search does not use them
            with pytest.raises(
                ValueError, match="a search uses incoming edges where lists are read in place"
            ):
                graphs.bfs(drawn.folder, source=seed % drawn.n, incoming=True, **where)
        else:
            found = graphs.bfs(drawn.folder, source=seed % drawn.n, incoming=True, **where)
            assert found.verified, found.violation
            assert found.reached == pushed.reached
        a, b = drawn.edges()
        turned = drawn.folder.write_incoming()
        assert turned.edges == drawn.folder.edges
        assert turned.weights_place is None
        expected = b[np.lexsort((b, a))], a[np.lexsort((b, a))]
        order = np.lexsort((expected[1], expected[0]))
        np.testing.assert_array_equal(turned.edge_array(), expected[1][order])
        ranks = graphs.pagerank(drawn.folder, strategy=STRATEGIES[seed], dtype="float64", **where)
        assert ranks.verified, ranks.violation
        ends = ranks_of(a, b, drawn.n, False, ranks.iterations)
        np.testing.assert_allclose(np.asarray(ranks.ranks), ends, rtol=1e-12)


def test_an_undirected_graph_is_its_own_transpose(tmp_path: Path) -> None:
    folder = graphs.resolve("kron:8", cache_dir=tmp_path)
    assert folder.write_incoming() is folder
    with pytest.raises(ValueError, match="the graph is undirected: its lists are those of incoming edges"):
        graphs.bfs(folder, incoming=True, placement="host", executor="cpu")


def test_edges_are_read_once_for_components(tmp_path: Path) -> None:
    result = graphs.cc("urand:12", cache="64KiB", cache_dir=tmp_path, executor="cpu", threads=1)
    assert result.edges_traversed == result.edges
    assert result.bytes_moved <= 1.02 * result.edge_bytes + 2 * result.line_bytes


def test_bad_input_is_refused_in_one_sentence(tmp_path: Path) -> None:
    ends = np.array([0, 1], np.int32)
    graphs.write_folder(tmp_path / "plain", 2, ends, ends[::-1].copy())
    below = np.array([3, -1], np.int32)
    graphs.write_folder(tmp_path / "below", 2, ends, ends[::-1].copy(), weights=below)
    graphs.write_folder(tmp_path / "nan", 2, ends, ends[::-1].copy(), weights=[3.0, 0.5])
    np.load(tmp_path / "nan" / "weights.npy", mmap_mode="r+")[1] = np.nan  # as other programs may write it
    with pytest.raises(ValueError, match="its edges have no weights: convert a file that has some"):
        graphs.sssp(tmp_path / "plain", executor="cpu")
    for name, weight in (("below", "-1"), ("nan", "nan")):
        with pytest.raises(
            ValueError, match=f"the weight of edge 1, 1 -> 0, is {weight}: give finite weights"
        ):
            graphs.sssp(tmp_path / name, source=0, executor="cpu")
    with pytest.raises(ValueError, match="source 2: the vertices are 0 to 1"):
        graphs.sssp(tmp_path / "below", source=2, executor="cpu")
    with pytest.raises(ValueError, match="delta -1"):
        graphs.sssp(tmp_path / "below", delta=-1, executor="cpu")
    with pytest.raises(ValueError, match="damping 1"):
        graphs.pagerank(tmp_path / "plain", damping=1, executor="cpu")
    with pytest.raises(ValueError, match="tolerance nan"):
        graphs.pagerank(tmp_path / "plain", tolerance=float("nan"), executor="cpu")
    with pytest.raises(ValueError, match="iterations 0: it must be 1 or more"):
        graphs.pagerank(tmp_path / "plain", iterations=0, executor="cpu")
    with pytest.raises(ValueError, match="dtype 'int8'"):
        graphs.pagerank(tmp_path / "plain", dtype="int8", executor="cpu")
    for strategy, why in (
        ("best", "there is no such strategy"),
        ("tiled(33)", "power of two"),
        ("tiled(16)", "power of two"),
        ("tiled(sort)", "'sort': transposed takes a stride"),
        ("merged(3)", "'3': transposed takes a stride"),
        ("coarsened(0)", "'0': transposed takes a stride"),
        ("tiled(64", "there is no such strategy"),
        ("tiled()", "'': transposed takes a stride"),
    ):
        with pytest.raises(ValueError, match=why):
            graphs.cc(tmp_path / "plain", strategy=strategy, executor="cpu")
    with pytest.raises(ValueError, match="placement 'tape'"):
        graphs.cc(tmp_path / "plain", placement="tape", executor="cpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leave strategy auto"):
        graphs.cc(tmp_path / "plain", placement="subgraph", strategy="tiled", executor="cpu")
    with pytest.raises(ValueError, match="layout 'raid0': there is no such layout"):
        graphs.cc(tmp_path / "plain", layout="raid0", executor="cpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no GPU for placement hbm"):
        graphs.cc(tmp_path / "plain", placement="hbm", executor="cpu")


@pytest.mark.parametrize("arguments", [["cc"], ["pagerank", "--dangling"], ["sssp", "--delta", "3"]], ids=str)
def test_the_commands_tell_and_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    name, *options = arguments
    common = ["--verify", "--executor", "cpu", "--cache-dir", str(tmp_path), *options]
    assert penstock.cli.main.main([name, "kron:8", *common]) == 0
    out, err = capsys.readouterr()
    assert "yes (the check took" in out
    assert err == ""
    assert penstock.cli.main.main([name, "kron:8", "--json", "--placement", "host", *common]) == 0
    assert '"verified": true' in capsys.readouterr().out


def test_time_is_taken_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where: dict[str, Any] = {"cache_dir": tmp_path, "executor": "cpu", "cache": "64KiB", "verify": True}
    parts = graphs.breakdown(graphs.cc, "kron:10", **where)
    assert parts.verified
    assert parts.cache_bytes <= 64 << 10 < parts.edge_bytes
    assert sum(parts.parts.values()) == pytest.approx(parts.seconds)
    with pytest.raises(ValueError, match="placement is not to be chosen"):
        graphs.breakdown(graphs.cc, "kron:10", placement="host", **where)
    common = ["--cache-dir", str(tmp_path), "--executor", "cpu"]
    assert penstock.cli.main.main(["bfs", "kron:8", "--breakdown", *common]) == 0
    assert "a cache that has all edges" in capsys.readouterr().out
    assert penstock.cli.main.main(["cc", "kron:8", "--breakdown", "--json", *common]) == 0
    assert '"parts"' in capsys.readouterr().out
    assert penstock.cli.main.main(["cc", "kron:8", "--breakdown", "--placement", "host", *common]) != 0
    assert "leave --placement and --trials out" in capsys.readouterr().err
    assert penstock.cli.main.main(["cc", "kron:8", "--breakdown", "--plot", "x.svg", *common]) != 0


@pytest.mark.parametrize("placement", ["host", "storage"])
def test_rounds_are_drawn(tmp_path: Path, placement: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    image = tmp_path / "rounds.svg"
    common = ["--cache-dir", str(tmp_path), "--executor", "cpu", "--placement", placement]
    assert penstock.cli.main.main(["bfs", "kron:10", "--plot", str(image), *common]) == 0
    text = image.read_text()
    assert "Breadth-first search of kron:10" in text
    assert ("GB/s moved" in text) == (placement == "storage")
    assert penstock.cli.main.main(["bfs", "kron:10", "--plot", "x.bmp", *common]) != 0
    assert "choose a name that ends with" in capsys.readouterr().err


def test_traffic_of_rounds_is_that_of_the_run(tmp_path: Path) -> None:
    where: dict[str, Any] = {"cache_dir": tmp_path, "executor": "cpu", "cache": "64KiB", "trials": 2}
    result = graphs.bfs("kron:12", level_traffic=True, **where)
    assert len(result.level_bytes) == result.levels
    assert sum(result.level_bytes) == result.bytes_moved
    assert graphs.bfs("kron:12", **where).level_bytes == []


def test_sources_follow_the_papers(tmp_path: Path) -> None:
    # A chain: its ends have one neighbour, all others two, but for one.
    a = np.array([0, 1, 2, 3, 2], np.int32)
    b = np.array([1, 2, 3, 4, 5], np.int32)
    folder = graphs.write_folder(tmp_path / "chain", 8, a, b, directed=False, symmetrise=True)
    where: dict[str, Any] = {"executor": "cpu", "trials": 20}
    assert set(graphs.bfs(folder, sources="bam", **where).trial_sources) == {2}
    gap = graphs.bfs(folder, **where).trial_sources
    assert set(gap) <= set(range(6))
    assert len(set(gap)) > 2
    assert graphs.bfs(folder, sources="emogi", **where).trial_sources == gap
    pair = graphs.write_folder(tmp_path / "pair", 2, a[:1], b[:1], directed=False, symmetrise=True)
    with pytest.raises(ValueError, match="no vertex has more than two neighbours"):
        graphs.bfs(pair, sources="bam", **where)
    with pytest.raises(ValueError, match="rule for sources 'best'"):
        graphs.bfs(folder, sources="best", **where)  # type: ignore[arg-type]


def test_time_is_taken_apart_of_one_source(tmp_path: Path) -> None:
    begun: list[Any] = []

    def watched(graph: Any, **options: Any) -> Any:
        result = graphs.bfs(graph, **options)
        begun.append(set(result.trial_sources))
        return result

    graphs.breakdown(watched, "kron:8", cache_dir=tmp_path, executor="cpu", cache="64KiB")
    assert len(begun) == 3
    assert len(set.union(*begun)) == 1

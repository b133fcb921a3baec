"""The backend for NetworkX, against NetworkX itself."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("networkx", reason="networkx is not installed")
pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
import networkx as nx
from penstock.graph import write_folder
from penstock.networkx import open_graph
from penstock.networkx.backend import Interface
from penstock.networkx.graph import Graph, from_networkx
from penstock.networkx.info import CONFIG, FUNCTIONS, get_info

KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def drawn(kind: Any, seed: int) -> Any:
    """Nodes of several types, loops, weights of 0, some missing."""
    rng = np.random.default_rng(seed)
    made = kind()
    nodes: list[Any] = [*range(12), "a", ("b", 2), 3.5, frozenset({1})]
    made.add_nodes_from([nodes[k] for k in rng.permutation(len(nodes))])
    for a, b, w in rng.integers(0, len(nodes), (26, 3)).tolist():
        made.add_edge(nodes[a], nodes[b], **({} if w == 3 else {"weight": w % 7 / (1 + seed % 2)}))
    return made


def call(name: str, graph: Any, *args: Any, **kwargs: Any) -> Any:
    """As NetworkX dispatches: converted with what the function reads of edges."""
    assert Interface.can_run(name, (graph, *args), kwargs) is True
    weighted = name == "pagerank" or "dijkstra" in name
    attribute = kwargs.get("weight", "weight")
    attributes = {attribute: 1} if weighted and attribute is not None else None
    converted = Interface.convert_from_nx(graph, edge_attrs=attributes, name=name)
    return getattr(Interface, name)(converted, *args, **kwargs)


def result(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What it returns, or the exception's type and text."""
    try:
        found = function(*args, **kwargs)
        return list(found) if hasattr(found, "__next__") else found
    except Exception as problem:
        return type(problem), str(problem)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_results_and_exceptions_are_those_of_networkx(kind: Any, seed: int) -> None:
    theirs = drawn(kind, seed)
    directed = theirs.is_directed()
    nodes = [*list(theirs)[:5], "no node"]
    whole = ["weakly_connected_components", "number_weakly_connected_components", "is_weakly_connected"]
    if not directed:
        whole = ["connected_components", "number_connected_components", "is_connected"]
    for name in whole:
        assert result(call, name, theirs) == result(getattr(nx, name), theirs), name
    single = ["descendants", "ancestors", "single_source_shortest_path_length"]
    single += ["single_target_shortest_path_length", "single_source_dijkstra_path_length"]
    for node in nodes:
        for name in [*single, *([] if directed or node == "no node" else ["node_connected_component"])]:
            assert result(call, name, theirs, node) == result(getattr(nx, name), theirs, node), name
        for cutoff in (0, 1, 1.5, 2, -1):
            for name in ("single_source_shortest_path_length", "single_source_dijkstra_path_length"):
                expected = result(getattr(nx, name), theirs, node, cutoff)
                assert result(call, name, theirs, node, cutoff=cutoff) == expected, name
        for target in nodes:
            for name in ("has_path", "dijkstra_path_length"):
                expected = result(getattr(nx, name), theirs, node, target)
                if name == "has_path" and isinstance(expected, tuple):
                    continue  # NetworkX's sentence names both nodes
                assert result(call, name, theirs, node, target) == expected, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_paths_are_as_short_as_those_of_networkx(kind: Any, seed: int) -> None:
    theirs = drawn(kind, seed)
    for _, _, data in theirs.edges(data=True):
        data.setdefault("weight", 1)
    source = next(iter(theirs))
    for weight in ("weight", None):
        expected, _ = nx.single_source_dijkstra(theirs, source, weight=weight)
        lengths, paths = call("single_source_dijkstra", theirs, source, weight=weight)
        assert lengths == expected
        others = call("single_source_dijkstra_path", theirs, source, weight=weight)
        assert others.keys() == paths.keys()
        for target in paths:
            single = call("dijkstra_path", theirs, source, target, weight=weight)
            for path in (paths[target], others[target], single):
                assert (path[0], path[-1]) == (source, target)
                assert nx.is_path(theirs, path)
                length = len(path) - 1 if weight is None else nx.path_weight(theirs, path, weight)
                assert length == expected[target]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_ranks_are_those_of_networkx(kind: Any, seed: int) -> None:
    theirs = drawn(kind, seed)
    rng = np.random.default_rng(seed)
    nodes = list(theirs)
    some = {node: float(rng.random()) for node in nodes[: 4 + seed]}
    for options in (
        {},
        {"weight": None},
        {"alpha": 0.5, "personalization": some},
        {"nstart": some, "dangling": {nodes[-1]: 2}, "personalization": {**some, "elsewhere": 9}},
        {"tol": 1e-10, "max_iter": 300},
        {"max_iter": 2, "tol": 1e-14},
        {"max_iter": 0},
        {"personalization": {"elsewhere": 1}},
    ):
        expected = result(nx.pagerank, theirs, **options)
        found = result(call, "pagerank", theirs, **options)
        if isinstance(expected, tuple):
            assert found == expected
        else:
            assert list(found) == list(expected)
            assert found == pytest.approx(expected, abs=1e-12)


def test_the_null_graph_has_the_results_of_networkx() -> None:
    for name in ("is_connected", "number_connected_components", "connected_components", "pagerank"):
        assert result(call, name, nx.Graph()) == result(getattr(nx, name), nx.Graph()), name


@pytest.mark.parametrize(
    ("name", "kwargs", "weight", "reason"),
    [
        ("dijkstra_path_length", {"source": 0, "target": 1}, 0.1, "a weight is 0.1, which is no float32"),
        ("dijkstra_path_length", {"source": 0, "target": 1}, -1, "a weight is -1: .* numbers of 0 or more"),
        ("dijkstra_path_length", {"source": 0, "target": 1}, float("nan"), "a weight is nan"),
        ("dijkstra_path_length", {"source": 0, "target": 1}, float("inf"), "a weight is inf"),
        ("dijkstra_path_length", {"source": 0, "target": 1}, 2**31, "a weight is above 2147483647"),
        ("dijkstra_path_length", {"source": 0, "target": 1}, 10**400, "a weight is above 2147483647"),
        ("dijkstra_path_length", {"source": 0, "target": 1}, "x", "a weight is 'x'"),
        ("dijkstra_path_length", {"source": 0, "target": 1, "weight": lambda *_: 1}, 1, "by a function"),
        ("single_source_dijkstra_path_length", {"source": 0, "cutoff": "x"}, 1, "cutoff 'x' is no number"),
        ("pagerank", {"alpha": 1}, 1, "alpha 1: Penstock takes"),
        (
            "pagerank",
            {"personalization": {0: -1, 1: 3}},
            1,
            "personalization: .* finite numbers of 0 or more",
        ),
        ("pagerank", {"nstart": {0: 0}}, 1, "nstart: all values are 0"),
        ("pagerank", {"dangling": [1, 2]}, 1, "dangling: Penstock takes a mapping"),
        ("betweenness_centrality", {}, 1, "Penstock has no betweenness_centrality"),
    ],
)
def test_what_cannot_be_run_has_a_reason(name: str, kwargs: Any, weight: Any, reason: str) -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=weight)
    said = Interface.can_run(name, (graph,), kwargs)
    assert isinstance(said, str)
    assert re.search(reason, said), said
    if said.startswith("a weight"):
        with pytest.raises(NotImplementedError, match=reason):
            Interface.convert_from_nx(graph, edge_attrs={"weight": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_are_converted_there_and_back(kind: Any) -> None:
    theirs = drawn(kind, 3)
    for _, _, data in theirs.edges(data=True):
        data.setdefault("weight", 1)
    ours = from_networkx(theirs, "weight")
    for same in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        back = Interface.convert_to_nx(same)
        assert type(back) is kind
        assert list(back) == list(theirs)
        assert nx.utils.edges_equal(
            back.edges(data=True), theirs.edges(data=True), directed=back.is_directed()
        )
    assert [3] not in ours  # cannot be hashed
    assert len(ours) == len(theirs)


def test_views_are_converted_as_algorithms_see_them() -> None:
    theirs = drawn(nx.MultiDiGraph, 1)
    some = list(theirs)[:9]
    for view in (theirs.subgraph(some), theirs.reverse(copy=False)):
        for name in ("single_source_dijkstra_path_length", "single_source_shortest_path_length"):
            assert call(name, view, some[0]) == getattr(nx, name)(view, some[0])
        assert call("pagerank", view) == pytest.approx(nx.pagerank(view), abs=1e-12)
    both_ways = theirs.to_undirected(as_view=True)  # in which weights differ by direction
    assert list(call("connected_components", both_ways)) == list(nx.connected_components(both_ways))
    with pytest.raises(NotImplementedError, match="edges have other weights the other way round"):
        call("pagerank", both_ways)
    # A class whose adjacency is the complement's, and whose edges are not.
    anti = nx.algorithms.approximation.kcomponents._AntiGraph([("a", "b"), ("b", "c"), ("d", "e")])
    with pytest.raises(NotImplementedError, match="_AntiGraph has an adjacency of its own"):
        call("connected_components", anti)


def test_a_temporary_folder_goes_with_its_graph() -> None:
    ours = from_networkx(nx.path_graph(3), None)
    place = Path(ours.folder.path)
    assert place.exists()
    del ours
    assert not place.exists()


def test_graphs_are_opened_where_they_lie(tmp_path: Path) -> None:
    weights = np.array([2, 3, 9], np.int32)
    write_folder(tmp_path / "g", 3, [0, 1, 0], [1, 2, 2], weights=weights, names=["a", "b", "c"])
    ours = open_graph(tmp_path / "g")
    assert isinstance(ours, Graph)
    assert Interface.single_source_dijkstra(ours, "a", "c") == (5, ["a", "b", "c"])
    # An attribute that edges do not have counts 1, as in NetworkX.
    theirs = nx.MultiDiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    for function in ("pagerank", "single_source_dijkstra_path_length"):
        arguments = () if function == "pagerank" else ("a",)
        expected = getattr(nx, function)(theirs, *arguments)
        assert Interface.can_run(function, (ours, *arguments), {"weight": "cost"}) is True
        found = getattr(Interface, function)(ours, *arguments, weight="cost")
        assert found == pytest.approx(expected, abs=1e-12)
    with pytest.raises(NotImplementedError, match="edges have one attribute"):
        Interface.convert_from_nx(theirs, preserve_edge_attrs=True)
    assert list(open_graph("kron:4", cache_dir=tmp_path)) == list(range(16))
    write_folder(tmp_path / "twins", 2, [0], [1], names=["a", "a"])
    with pytest.raises(ValueError, match="vertices share names: give each its own"):
        open_graph(tmp_path / "twins")


def test_results_that_are_tensors_are_taken() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    theirs = drawn(nx.DiGraph, 2)
    source = next(iter(theirs))
    for name in ("single_source_shortest_path_length", "single_source_dijkstra_path_length", "descendants"):
        assert call(name, theirs, source) == getattr(nx, name)(theirs, source)
    assert call("pagerank", theirs) == pytest.approx(nx.pagerank(theirs), abs=1e-12)
    assert list(call("weakly_connected_components", theirs)) == list(nx.weakly_connected_components(theirs))


def test_info_names_what_there_is() -> None:
    info = get_info()
    assert info["default_config"] == CONFIG
    for name in info["functions"]:
        assert callable(getattr(Interface, name)), name
        assert name in nx.utils.backends._registered_algorithms
    public = {name for name in vars(Interface) if not name.startswith("_")}
    assert public == {*FUNCTIONS, "can_run", "convert_from_nx", "convert_to_nx"}


def test_networkx_finds_the_backend_by_the_entry_points(tmp_path: Path) -> None:
    """Those of pyproject.toml, also where the package is not installed."""
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    groups = ["networkx.backends", "networkx.backend_info"]
    lines = [project.split(f'[project.entry-points."{name}"]\n')[1].splitlines()[0] for name in groups]
    about = tmp_path / "penstock-0.1.0.dist-info"
    about.mkdir()
    points = [f"[{name}]\n{line.replace(chr(34), '')}" for name, line in zip(groups, lines, strict=True)]
    (about / "entry_points.txt").write_text("\n".join(points))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock\nVersion: 0.1.0\n")
    program = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import networkx as nx
        assert "penstock.graph" not in sys.modules, "NetworkX alone loads Penstock"
        G = nx.karate_club_graph()
        nx.config.warnings_to_ignore.add("cache")
        ranks = nx.pagerank(G, backend="penstock")
        assert max(abs(ranks[v] - r) for v, r in nx.pagerank(G).items()) < 1e-12
        assert list(nx.connected_components(G, backend="penstock")) == [set(G)]
        nx.config.backends.penstock.placement = "storage"
        found = nx.single_source_dijkstra_path_length(G, 0, backend="penstock")
        assert found == nx.single_source_dijkstra_path_length(G, 0)
        G.add_edge(0, 1, weight=0.1)
        try:
            nx.pagerank(G, backend="penstock")
        except NotImplementedError:
            print("refused")
        nx.config.backend_priority = ["penstock"]
        assert abs(sum(nx.pagerank(G).values()) - 1) < 1e-6  # NetworkX's own
        import penstock.networkx
        kron = penstock.networkx.open_graph("kron:8", cache_dir=sys.argv[1])
        print(nx.number_connected_components(kron) > 0, len(nx.pagerank(kron)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["refused", "True 256"]

"""Graphs in memory, wherever a path is taken."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
import scipy.sparse as sp
from graph_edges import edges_of, refusal
from penstock.graph import bfs, breakdown, cc, convert, pagerank, resolve, sssp
from scipy.sparse import csgraph


@pytest.fixture(name="place", autouse=True)
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


RNG = np.random.default_rng(11)
ENDS = RNG.integers(0, 60, (2, 150))
WEIGHTS = RNG.integers(1, 100, 150).astype(np.float32)


def forms() -> dict[str, Any]:
    """One graph in many forms, without names."""
    tensors: dict[str, Any] = {}
    torch = sys.modules.get("torch") or pytest.importorskip("torch")
    tensors["tensor"] = torch.from_numpy(ENDS)
    tensors["tensor int32"] = torch.from_numpy(ENDS.astype(np.int32))
    return {
        "array": ENDS,
        "fortran": np.asfortranarray(ENDS.astype(np.uint16)),
        "pair": (ENDS[0], ENDS[1]),
        "list of arrays": [ENDS[0], ENDS[1]],
        "matrix": sp.coo_array((np.ones(150, bool), tuple(ENDS)), shape=(60, 60)),
        **tensors,
    }


@pytest.mark.parametrize(
    "form", ["array", "fortran", "pair", "list of arrays", "matrix", "tensor", "tensor int32"]
)
def test_arrays_are_graphs(form: str) -> None:
    given = forms()[form]
    assert edges_of(resolve(given)) == sorted(map(tuple, ENDS.T.tolist()), key=repr)
    matrix = sp.csr_array((np.ones(150), tuple(ENDS)), shape=(60, 60))
    found = bfs(given, source=int(ENDS[0, 0]), verify=True)
    depth = csgraph.shortest_path(matrix, unweighted=True, indices=int(ENDS[0, 0]))
    assert (found.verified, found.reached) == (True, int(np.isfinite(depth).sum()))
    assert cc(given).components == csgraph.connected_components(matrix, directed=False)[0]


def test_weights_come_with_edges() -> None:
    with_weights = (ENDS[0], ENDS[1], WEIGHTS)
    assert edges_of(resolve(with_weights)) == sorted(
        zip(*ENDS.tolist(), WEIGHTS.tolist(), strict=True), key=repr
    )
    least = csgraph.shortest_path(resolve_min(), indices=3)
    assert np.allclose(np.asarray(sssp(with_weights, source=3).distances), least)


def resolve_min() -> Any:
    """Of parallel edges the lightest, where SciPy adds them up."""
    dense = np.full((60, 60), np.inf)
    np.minimum.at(dense, (ENDS[0], ENDS[1]), WEIGHTS)
    dense[np.isinf(dense)] = 0
    return sp.csr_matrix(dense)


def test_pyg_data_is_a_graph() -> None:
    data = pytest.importorskip("torch_geometric.data", reason="PyG is not installed")
    torch = pytest.importorskip("torch")
    graph = data.Data(
        edge_index=torch.tensor([[0, 2], [1, 0]]), edge_weight=torch.tensor([0.5, 2]), num_nodes=5
    )
    found = resolve(graph)
    assert (found.vertices, edges_of(found)) == (5, [(0, 1, 0.5), (2, 0, 2.0)])
    refusal(
        data.Data(edge_index=torch.tensor([[0], [7]]), num_nodes=5), "it has vertex 7, and num_nodes is 5"
    )


def test_networkx_graphs_keep_their_nodes() -> None:
    nx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(
        [("a", (1, 2), 0.5), ((1, 2), "b\n", 2.0), (7, "a", 1.0), ("a", "b\n", 3.0)]
    )
    graph.add_edge("b\n", frozenset({3}))  # without a weight: 1
    graph.add_node("alone")
    found = sssp(graph, source="a", verify=True)
    expected = nx.single_source_dijkstra_path_length(graph, "a")
    by_name = found.by_name()
    assert {node: d for node, d in by_name.items() if np.isfinite(d)} == expected
    assert list(by_name) == list(graph.nodes)
    parents = bfs(graph, source=(1, 2)).by_name()
    assert parents == {
        node: {"b\n": (1, 2), (1, 2): (1, 2), frozenset({3}): "b\n"}.get(node) for node in graph.nodes
    }
    labels = cc(graph).by_name()
    groups = {node: {n for n, label in labels.items() if label == labels[node]} for node in graph}
    for component in nx.weakly_connected_components(graph):
        assert all(groups[node] == component for node in component)
    bad: Any
    for bad in ("c", 1, (1,), ["a"]):
        with pytest.raises(ValueError, match=r"search DiGraph: source .*: it is no node of the graph"):
            bfs(graph, source=bad)
    assert breakdown(cc, graph, cache="64KiB").graph == "DiGraph"


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_networkx_ranks_and_components_are_those_of_networkx(kind: str) -> None:
    nx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    graph = getattr(nx, kind)()
    graph.add_nodes_from(range(100, 40, -1))
    graph.add_edges_from((int(a) + 41, int(b) + 41) for a, b in ENDS.T)
    found = resolve(graph)
    assert found.directed == graph.is_directed()
    both = [] if found.directed else [(b, a) for a, b in graph.edges() if a != b]
    assert edges_of(found) == sorted([*graph.edges(), *both], key=repr)
    ours = pagerank(graph, iterations=200, tolerance=1e-10, dangling=True, dtype="float64").by_name()
    theirs = nx.pagerank(graph, tol=1e-12, max_iter=500)
    assert all(abs(ours[node] - theirs[node]) < 1e-7 for node in graph)


def test_networkx_nodes_that_are_their_numbers_have_no_names() -> None:
    nx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    graph = resolve(nx.path_graph(4))
    assert (graph.names, graph.labels, graph.directed, graph.edges) == (None, None, False, 6)
    assert resolve(nx.Graph()).vertices == 0
    refusal(nx.Graph([(1, 2, {"weight": "x"})]), "read Graph: weight 'x' is no number")
    made = convert(nx.Graph([("x", "y")]), "g")
    assert (made.names, bfs("g", source="y").reached) == (["x", "y"], 2)


def test_dataframes_are_graphs_from_pandas_and_back_by_name() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    nx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pd.DataFrame(
        {"weight": [3, 4, 5], "dst": ["b", "c", "a"], "src": ["a", "b", "c"]}, index=[7, 8, 9]
    )
    found = sssp(table, source="a", verify=True)
    column = pd.Series(found.by_name())
    expected = nx.single_source_dijkstra_path_length(
        nx.from_pandas_edgelist(table, "src", "dst", "weight", nx.DiGraph), "a"
    )
    assert column.to_dict() == expected
    assert table["src"].map(column).tolist() == [0, 3, 7]
    assert pd.Series(np.asarray(found.distances), index=found.names).to_dict() == expected
    assert found.folder.vertex("c") == 2
    assert found.folder.names_of([2, -1, 0]) == ["c", None, "a"]
    assert edges_of(resolve(table, columns="dst,src")) == [("a", "c"), ("b", "a"), ("c", "b")]
    assert edges_of(resolve(table, columns=[2, 1, 0])) == edges_of(resolve(table))
    with pytest.raises(KeyError):
        found.folder.vertex("z")
    for bad, part in (
        (pd.DataFrame({"src": [1, None], "dst": ["a", "b"]}), "column 'src' of type double cannot be ids"),
        (pd.DataFrame({"src": ["a", None], "dst": ["a", "b"]}), "row 2: nothing in column 'src'"),
        (pd.DataFrame({"src": [1, "a"], "dst": [1, 2]}), "Arrow cannot read it"),
        (pd.DataFrame({"src": [1, 2], "dst": ["a", "b"]}), "one end is an integer, the other a string"),
        (pd.DataFrame({"src": [1, 2]}), "1 column (src)"),
        (pd.DataFrame([[1, 2], [2, 3]], columns=["a", "a"]), "several columns are called 'a'"),
        (pd.DataFrame({"src": [], "dst": []}, dtype=int), "has no rows"),
        (table.set_index(["src", "dst"]), "1 column (weight)"),
    ):
        refusal(bad, "read DataFrame: ", part)


@pytest.mark.parametrize("form", ["frame", "csv", "el", "parquet", "converted", "edge_index"])
def test_integer_ids_are_integers_by_name(form: str) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    nx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"src": [10, 50000, 7, 9], "dst": [50000, 7, 10, 10]})
    frame.to_csv("a.csv", index=False)
    frame.to_csv("a.el", index=False, header=False, sep=" ")
    frame.to_parquet("a.parquet")
    spec: Any = {"frame": frame, "edge_index": frame.to_numpy().T}.get(form, f"a.{form}")
    if form == "converted":
        spec = convert(convert("a.csv", "g"), "h")
    found = bfs(spec, source="10", renumber=True) if form == "edge_index" else bfs(spec, source="10")
    graph = nx.from_pandas_edgelist(frame, "src", "dst", create_using=nx.DiGraph)
    expected = {10: 10} | dict(nx.bfs_predecessors(graph, 10))
    assert found.by_name() == {node: expected.get(node) for node in graph}
    column = frame["src"].map(found.by_name())
    assert column.tolist()[:3] == [expected[node] for node in (10, 50000, 7)]
    folder = found.folder
    assert (folder.names, list(found.names or ())) == (["7", "9", "10", "50000"], [7, 9, 10, 50000])
    assert folder.vertex(10) == folder.vertex("10") == 2
    assert folder.names_of([3, -1]) == [50000, None]


def test_ids_that_are_text_stay_text() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"src": ["1", "10"], "dst": ["10", "2"]})
    assert bfs(frame, source="1").by_name() == {"1": "1", "10": "1", "2": "10"}


@pytest.mark.parametrize("library", ["pyarrow", "polars", "interchange"])
def test_so_is_what_gives_its_columns_to_arrow(library: str) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    columns = {"dst": ["ü", "c"], "src": ["a", "ü"], "w": [1.5, 2.0]}
    table: Any = pa.table(columns)
    if library == "polars":
        table = pytest.importorskip("polars", reason="polars is not installed").DataFrame(columns)
    elif library == "interchange":
        table = type(
            "Frame", (), {"__dataframe__": lambda self, **how: pa.table(columns).__dataframe__(**how)}
        )()
    assert edges_of(resolve(table)) == [("a", "ü", 1.5), ("ü", "c", 2.0)]


def test_what_is_no_graph_is_refused_in_one_sentence() -> None:
    for bad, kind, part in (
        (5, TypeError, "open int: it is no graph"), (None, TypeError, "open NoneType"),
        ({}, TypeError, "open dict"),
        (object(), TypeError, "open object"), ([1, 2], TypeError, "open list"),
        (ENDS.T, ValueError, "it has shape (150, 2): give (2, edges): transpose it"),
        (ENDS[0], ValueError, "it has shape (150,)"),
        (ENDS.astype(float), TypeError, "float64: give integers"),
        (np.zeros((2, 2, 2), int), ValueError, "it has shape (2, 2, 2)"),
        (-ENDS, ValueError, "it is below the first id"),
        ((ENDS[0], ENDS[1][:3]), ValueError, "150 sources and 3 targets"),
        ((ENDS[0], ENDS[1], WEIGHTS[:3]), ValueError, "3 weights for 150 edges"),
        (sp.csr_array((2, 3)), ValueError, "2 x 3 is no graph"),
        (np.array([["a"], ["b"]]), TypeError, "give integers"),
        (np.array([[2**63], [0]], np.uint64), ValueError, "it is no number of a vertex"),
    ):  # fmt: skip
        refusal(bad, part, kind=kind)
    hidden = np.ma.masked_array(ENDS, mask=np.arange(300).reshape(2, 150) == 7)
    refusal(hidden, "some of it is masked")
    for options in ({"format": "el"}, {"columns": "0,1"}, {"delimiter": ","}, {"header": True}):
        refusal(ENDS, "open edge_index: ", "leave", **options)
    assert edges_of(resolve(np.array([[1, 9], [9, 5]]), renumber=True)) == [("1", "9"), ("9", "5")]
    assert edges_of(resolve(np.array([[1, 2], [2, 3]]), first_id=1)) == [(0, 1), (1, 2)]


def test_the_folder_goes_with_its_last_use(place: Path) -> None:
    graph = resolve(ENDS)
    kept = [p.name for p in (place / "cache").iterdir()]
    assert len(kept) == 1
    found = bfs(graph, source=0)
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    incoming = graph.write_incoming()
    del graph, found, copy
    gc.collect()
    assert incoming.edge_array().shape == (150,)
    del incoming
    gc.collect()
    assert list((place / "cache").iterdir()) == []
    with pytest.raises(ValueError):
        resolve((ENDS[0] + 2**40, ENDS[1]), renumber=False)
    assert list((place / "cache").iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next(place: Path) -> None:
    program = textwrap.dedent("""
        import os, numpy as np
        from penstock.graph import resolve
        graph = resolve(np.array([[0], [1]]))
        if os.fork() == 0:
            raise SystemExit  # a copy of the process leaves it
        os.wait()
        print(graph.edge_array().tolist(), flush=True)
        os.kill(os.getpid(), 9)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert (done.stdout, done.returncode) == ("[1]\n", -9)
    assert len(list((place / "cache").iterdir())) == 1
    kept = resolve(ENDS)
    assert [p / "graph" for p in (place / "cache").iterdir()] == [kept.path]


def test_penstock_bfs_takes_them(place: Path) -> None:
    found = penstock.bfs(ENDS, source=int(ENDS[0, 0]))
    assert (found.graph, found.as_dict()["graph"]) == ("edge_index", "edge_index")
    with pytest.raises(ValueError, match="search edge_index: source 60: the vertices are 0 to"):
        penstock.bfs(ENDS, source=60)


def test_data_without_edges_and_ids_beyond_numbers_are_one_sentence() -> None:
    data = type("Data", (), {"edge_index": None, "num_nodes": 3})()
    refusal(data, "read Data.edge_index: it is None: give the edges", kind=TypeError)
    wide = np.array([[2**41], [5]])
    refusal(wide, f"id {2**41}: it is no number of a vertex: give renumber=True")
    assert edges_of(resolve(wide, renumber=True)) == [(str(2**41), "5")]


@pytest.mark.filterwarnings("error")
def test_weights_of_float16_are_those_of_numpy() -> None:
    values = np.array([0.1, 65504, 6e-8, 2048], np.float16)
    found = resolve((np.arange(4), np.arange(1, 5), values)).weight_array()
    assert found is not None
    assert found.tolist() == values.astype(np.float32).tolist()


def test_errors_call_a_graph_in_memory_what_the_user_does() -> None:
    for name in ("personalization", "dangling", "nstart"):
        for values in ([1, 2], {0: "x"}, {70: 1}, {0: -1}):
            given: Any = {name: values}
            with pytest.raises((ValueError, TypeError), match=f"^rank edge_index: {name} "):
                pagerank(ENDS, **given)
    found = sssp((*ENDS, WEIGHTS), source=int(ENDS[0, 0]), parents=True)
    with pytest.raises(ValueError, match=r"^search edge_index: target 99: the vertices are"):
        found.path_to(99)
    with pytest.raises(ValueError, match=r"^bfs edge_index: source 99 is no vertex"):
        resolve(ENDS).bfs_depths(99)
    ranks = pagerank(ENDS, iterations=1, tolerance=1e-9)
    assert ranks.shortcoming().startswith("rank edge_index: not converged")


def test_a_matrix_with_wrong_indices_is_refused() -> None:
    """SciPy's own conversions read beyond its arrays."""
    for place, wrong in ((1, 10**6), (1, -5), (1, 50)):
        matrix = sp.eye(2000, format="csr")
        matrix.indptr[place] = wrong
        with pytest.raises(ValueError, match=r"^read csr_matrix: .*: correct its indices$"):
            penstock.cc(matrix, executor="cpu")
    ends = sp.coo_matrix((np.ones(2), (np.array([0, 1]), np.array([1, 2]))), shape=(3, 3))
    ends.row[1] = 77
    with pytest.raises(ValueError, match=r"^read coo_matrix: an index is not from 0 to 2: correct its"):
        penstock.cc(ends, executor="cpu")


def test_few_edges_between_far_ids_are_asked_about() -> None:
    far = np.array([[0, 2**31], [1, 2]])
    with pytest.raises(ValueError, match="it has 2 edges, and vertices up to 2147483648: give renumber=True"):
        penstock.sssp(far, source=0, executor="cpu")
    assert penstock.cc(far, renumber=True, executor="cpu").components == 2


def test_a_cache_folder_that_is_no_path_is_one_sentence() -> None:
    with pytest.raises(TypeError, match="cache_dir 3: it is no path: name a folder, or leave it out"):
        penstock.bfs("kron:4", cache_dir=3, executor="cpu")  # type: ignore[arg-type]

"""penstock.graph against SciPy: each way to a graph gives SciPy's matrix, and bad input one sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.graph import GraphFolder, open_folder, resolve, write_folder
from scipy.sparse import csgraph

Matrix = Any  # a scipy.sparse array


def matrix_of(graph: GraphFolder) -> Matrix:
    """How often each edge is stored."""
    ones = np.ones(graph.edges, dtype=np.int64)
    shape = (graph.vertices, graph.vertices)
    csr = sp.csr_array(
        (ones, graph.edge_array().astype(np.int64), graph.offsets().astype(np.int64)), shape=shape
    )
    csr.sum_duplicates()
    return csr


def same(a: Matrix, b: Matrix) -> bool:
    return bool(a.shape == b.shape and (a != b).nnz == 0)


def depths_by_scipy(graph: GraphFolder, source: int) -> NDArray[np.int32]:
    distance = csgraph.shortest_path(matrix_of(graph), unweighted=True, indices=source)
    return np.where(np.isinf(distance), -1, distance).astype(np.int32)


@pytest.fixture(name="cache")
def fixture_cache(tmp_path: Path) -> Iterator[Path]:
    """A cache folder; nothing hidden may be left in it."""
    cache = tmp_path / "cache"
    yield cache
    assert not cache.exists() or not [p for p in cache.iterdir() if p.name.startswith(".")]


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    vertices = draw(st.integers(1, 30))
    vertex = st.integers(0, vertices - 1)
    pairs = draw(st.lists(st.tuples(vertex, vertex), min_size=1, max_size=120))
    from_, to = np.array(pairs, dtype=np.int64).T
    return vertices, from_, to


def by_case(tmp_path: Path) -> Path:
    """A fresh folder for each example of a hypothesis test."""
    folder = tmp_path / f"case-{time.monotonic_ns()}"
    folder.mkdir()
    return folder


quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(edges=edge_lists(), threads=st.sampled_from([1, 2, 7]), symmetrise=st.booleans(), simple=st.booleans())
def test_arrays_become_the_matrix_that_scipy_builds(
    tmp_path: Path, edges: Any, threads: int, symmetrise: bool, simple: bool
) -> None:
    vertices, from_, to = edges
    expected: Matrix = sp.coo_array(
        (np.ones(len(to), dtype=np.int64), (from_, to)), shape=(vertices, vertices)
    ).tocsr()
    if symmetrise:
        loops = sp.dia_array((expected.diagonal()[None, :], [0]), shape=expected.shape).tocsr()
        expected = expected + expected.T - loops
    if simple:
        expected = expected.astype(bool).astype(np.int64)
        expected = expected - sp.dia_array((expected.diagonal()[None, :], [0]), shape=expected.shape).tocsr()
    target = by_case(tmp_path) / "g"
    graph = write_folder(target, vertices, from_, to, symmetrise=symmetrise, simple=simple, threads=threads)
    assert same(matrix_of(graph), expected)
    lists = np.split(graph.edge_array(), graph.offsets()[1:-1].astype(np.int64))
    assert all((np.diff(neighbours) >= 0).all() for neighbours in lists)


@quick
@given(edges=edge_lists(), kind=st.sampled_from(["el", "mtx", "npz", "sg"]))
def test_every_file_format_gives_the_same_graph(tmp_path: Path, edges: Any, kind: str) -> None:
    vertices, from_, to = edges
    vertices = int(max(from_.max(), to.max())) + 1
    wanted = sp.coo_array((np.ones(len(to), dtype=np.int64), (from_, to)), shape=(vertices, vertices)).tocsr()
    folder = by_case(tmp_path)
    path = folder / f"g.{kind}"
    if kind == "el":
        np.savetxt(path, np.stack([from_, to], axis=1), fmt="%d", header="made by a test")
    elif kind == "sg":
        write_sg(path, from_, to, vertices)
    else:
        wanted = wanted.astype(bool).astype(np.int64)
        if kind == "npz":
            sp.save_npz(path, wanted)
        else:
            scipy.io.mmwrite(path, wanted, symmetry="general")
    graph = resolve(path, cache_dir=folder / "cache")
    assert same(matrix_of(graph), wanted)
    assert graph.directed
    assert np.array_equal(graph.bfs_depths(0), depths_by_scipy(graph, 0))


def write_sg(
    path: Path, from_: NDArray[np.int64], to: NDArray[np.int64], vertices: int, directed: bool = True
) -> None:
    order = np.argsort(from_, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(from_, minlength=vertices))]).astype("<i8")
    half = offsets.tobytes() + to[order].astype("<i4").tobytes()
    head = bytes([directed]) + np.array([len(to), vertices], dtype="<i8").tobytes()
    path.write_bytes(head + half * (2 if directed else 1))


@quick
@given(edges=edge_lists(), data=st.data())
def test_searches_and_their_verification_agree_with_scipy(
    tmp_path: Path, edges: Any, data: st.DataObject
) -> None:
    vertices, from_, to = edges
    graph = write_folder(by_case(tmp_path) / "g", vertices, from_, to)
    source = data.draw(st.integers(0, vertices - 1))
    depths = graph.bfs_depths(source)
    assert np.array_equal(depths, depths_by_scipy(graph, source))
    _, before = csgraph.breadth_first_order(matrix_of(graph), source)
    parents = np.where(before < 0, -1, before).astype(data.draw(st.sampled_from([np.int32, np.int64])))
    parents[source] = source
    assert graph.verify_bfs(source, parents) == ""
    victim, wrong = data.draw(st.integers(0, vertices - 1)), data.draw(st.integers(-1, vertices - 1))
    parents[victim] = wrong
    stays = (
        wrong == source
        if victim == source
        else (
            wrong < 0
            if depths[victim] < 0
            else wrong >= 0
            and depths[wrong] == depths[victim] - 1
            and bool(((from_ == wrong) & (to == victim)).any())
        )
    )
    assert (graph.verify_bfs(source, parents) == "") == stays


@pytest.mark.parametrize("spec", ["kron:12", "urand:12"])
def test_generated_graphs_are_simple_symmetric_and_kept(cache: Path, spec: str) -> None:
    graph = resolve(spec, cache_dir=cache)
    matrix = matrix_of(graph)
    assert graph.vertices == 4096
    assert not graph.directed
    assert same(matrix, matrix.T.tocsr())
    assert matrix.max() == 1
    assert matrix.diagonal().sum() == 0
    assert 0.5 < graph.edges / (2 * 16 * 4096) < 1
    assert graph.edges_place["data_offset"] % 4096 == 0
    open_folder(graph.path, validate_edges=True)
    before = (graph.path / "edges.npy").stat()
    assert resolve(spec + ":16", cache_dir=cache) == graph
    assert (graph.path / "edges.npy").stat() == before


def test_social_graphs_have_degrees_like_those_of_friendster(cache: Path) -> None:
    graph = resolve("social:15", cache_dir=cache)
    degrees = np.diff(graph.offsets().astype(np.int64))
    # A few of 54 per vertex are equal, most of them at the vertices with the largest degrees.
    assert 51 < degrees.mean() < 54
    assert 55 < degrees.max() / degrees.mean() < 94.7
    assert (degrees == 0).sum() == 0
    assert resolve("social:15:27", cache_dir=cache) == graph


def test_generated_graphs_do_not_depend_on_threads_and_carry_weights(tmp_path: Path) -> None:
    found = [resolve("kron:12", cache_dir=tmp_path / str(n), threads=n, weighted=True) for n in (1, 2, 7)]
    for name in ("offsets.npy", "edges.npy", "weights.npy", "graph.json"):
        assert len({(graph.path / name).read_bytes() for graph in found}) == 1
    weights = found[0].weight_array()
    assert weights is not None
    assert weights.dtype == np.int32
    assert (weights.min(), weights.max()) == (1, 255)
    csr = sp.csr_array((weights, found[0].edge_array(), found[0].offsets().astype(np.int64)))
    assert same(csr, csr.T.tocsr())


@pytest.mark.parametrize("kind", ["text", "generated"])
def test_a_memory_limit_changes_no_bytes_and_says_when_it_is_too_small(
    tmp_path: Path, cache: Path, kind: str
) -> None:
    spec = "urand:12:300"
    if kind == "text":
        path = tmp_path / "a.el"
        path.write_text("".join(f"{i * 7919 % 5003} {i * i % 5003}\n" for i in range(20000)))
        spec = str(path)
    with pytest.raises(ValueError, match=r"a memory limit of 3 MiB is too small .*: give at least 21 MiB$"):
        resolve(spec, cache_dir=cache, memory="3MiB")
    with pytest.raises(ValueError, match=r"a memory limit .* is too small .*: give at least 21 MiB$"):
        resolve(spec, cache_dir=cache, memory=0)
    with pytest.raises(ValueError, match="memory 'much'"):
        resolve(spec, cache_dir=cache, memory="much")
    limited = resolve(spec, cache_dir=cache / "limited", memory="21MiB", threads=2)
    free = resolve(spec, cache_dir=cache / "free")
    for name in ("offsets.npy", "edges.npy"):
        assert (limited.path / name).read_bytes() == (free.path / name).read_bytes()


def test_symmetric_matrices_give_both_directions_and_values_become_weights(
    tmp_path: Path, cache: Path
) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 0.5\n3 2 2\n3 3 1\n")
    graph = resolve(path, cache_dir=cache)
    assert not graph.directed
    assert graph.edge_array().tolist() == [1, 0, 2, 1, 2]
    weights = graph.weight_array()
    assert weights is not None
    assert weights.tolist() == [0.5, 0.5, 2, 2, 1]


def test_weighted_text_and_undirected_gap_files(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.wel").write_text("# c\n0 1 7\n1 0 -2\n")
    weights = resolve(tmp_path / "a.wel", cache_dir=cache).weight_array()
    assert weights is not None
    assert weights.tolist() == [7, -2]
    write_sg(tmp_path / "a.sg", np.array([0, 1]), np.array([1, 0]), 2, directed=False)
    assert not resolve(tmp_path / "a.sg", cache_dir=cache).directed


def test_a_changed_file_is_converted_again_and_a_damaged_cache_too(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "a.el"
    path.write_text("0 1\n")
    first = resolve(path, cache_dir=cache)
    assert resolve(path, cache_dir=cache).path == first.path
    path.write_text("0 1\n1 2\n")
    second = resolve(path, cache_dir=cache)
    assert (first.vertices, second.vertices) == (2, 3)
    (second.path / "edges.npy").write_bytes(b"")
    assert resolve(path, cache_dir=cache).edge_array().tolist() == [1, 2]
    (second.path / "graph.json").unlink()
    assert resolve(path, cache_dir=cache) == second


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "here"))
    assert resolve("urand:4").path.parent == tmp_path / "here"


def test_names_are_kept(tmp_path: Path) -> None:
    graph = write_folder(tmp_path / "g", 2, np.array([0]), np.array([1]), names=["é", "b c"])
    assert open_folder(graph.path).names == ["é", "b c"]
    (graph.path / "names.txt").write_text("a\n")
    with pytest.raises(ValueError, match="1 names for 2 vertices"):
        _ = open_folder(graph.path).names

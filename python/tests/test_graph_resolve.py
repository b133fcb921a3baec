"""penstock.graph against SciPy: each way to a graph gives SciPy's matrix, and bad input one sentence."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
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
from penstock.errors import Error
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


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "no edges": ("a.el", b"# nothing\n", "has no edges"),
    "not a number": ("a.el", b"0 1\nx 2\n", "line 2: 'x' is no vertex number"),
    "no weight": ("a.wel", b"0 1\n", "line 1: a third field"),
    "too short": ("a.sg", b"\0" * 16, "truncated"),
    "wrong size": ("a.wsg", b"\0" * 18, "which take 25 bytes, the file has 18"),
    "no magic": ("a.mtx", b"hello\n", "SciPy cannot read it"),
    "not square": ("a.mtx", b"%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1\n", "2 x 3"),
    "complex": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n",
        "complex values",
    ),
    "dense": ("a.mtx", b"%%MatrixMarket matrix array real general\n1 1\n1\n", "a dense matrix"),
    "skew": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 1\n",
        "a skew-symmetric matrix",
    ),
    "out of range": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 3\n",
        "cannot read it",
    ),
    "fewer than said": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n",
        "cannot read",
    ),
    "no archive": (
        "a.npz",
        b"PK\3\4 damaged",
        "a.npz: not a SciPy .npz archive: save the matrix with scipy.sparse.save_npz",
    ),
    "garbage": ("a.npz", bytes(range(256)), "not a SciPy .npz archive"),
    "empty": ("a.npz", b"", "not a SciPy .npz archive"),
    "unknown": ("a.pdf", b"0 1\n", "no known kind of graph file"),
}


@pytest.mark.parametrize(("name", "content", "part"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_are_value_errors_of_one_sentence(
    tmp_path: Path, cache: Path, name: str, content: bytes, part: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as caught:
        resolve(tmp_path / name, cache_dir=cache)
    sentence = str(caught.value)
    assert part in sentence
    assert name in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "matrix", [sp.csr_array((2, 3)), sp.csr_array(np.eye(2) * 1j), sp.csr_array(np.full((1, 1), 2**40))]
)
def test_bad_archives_are_value_errors(tmp_path: Path, cache: Path, matrix: Matrix) -> None:
    sp.save_npz(tmp_path / "a.npz", matrix)
    with pytest.raises(ValueError, match=r"a\.npz: "):
        resolve(tmp_path / "a.npz", cache_dir=cache)


@pytest.mark.parametrize(
    "arrays",
    [
        {"format": np.array({}, dtype=object)},
        {"weights": np.zeros(3)},
        {"format": b"csr", "shape": np.array([1, 1]), "data": np.array([None])},
    ],
    ids=lambda arrays: "-".join(arrays),
)
def test_archives_of_other_things_are_told_apart(tmp_path: Path, cache: Path, arrays: dict[str, Any]) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=r"a\.npz: ") as caught:
        resolve(tmp_path / "a.npz", cache_dir=cache)
    assert "allow_pickle" not in str(caught.value)
    assert "not a SciPy .npz archive" in str(caught.value)


@pytest.mark.parametrize("name", ["a.el", "a.sg", "a.mtx", "a.npz", "g/graph.json", "g/offsets.npy"])
def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path, cache: Path, name: str) -> None:
    write_folder(tmp_path / "g", 1, np.array([0]), np.array([0]))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match="is not a regular file"):
        resolve(tmp_path / ("g" if name.startswith("g/") else name), cache_dir=cache)


def test_offsets_of_int64_are_taken_and_others_told_what_is_expected(tmp_path: Path) -> None:
    graph = write_folder(tmp_path / "g", 2, np.array([0]), np.array([1]))
    np.save(graph.path / "offsets.npy", np.array([0, 1, 1], dtype=np.int64))
    opened = open_folder(graph.path)
    assert opened.offsets().dtype == np.uint64
    assert opened.bfs_depths(0).tolist() == [0, 1]
    np.save(graph.path / "offsets.npy", np.array([0, -1, 1], dtype=np.int64))
    with pytest.raises(ValueError, match=r"offsets\.npy: has a negative value"):
        open_folder(graph.path)
    np.save(graph.path / "offsets.npy", np.array([0, 1, 1], dtype=np.int32))
    with pytest.raises(ValueError, match=r"save it as uint64, shape \(vertices \+ 1,\)"):
        open_folder(graph.path)


@pytest.mark.parametrize("spec", ["kron:0", "kron:99", "urand:5:0", "kron:x", "social:41", "social:4:x"])
def test_bad_generators_are_value_errors(cache: Path, spec: str) -> None:
    with pytest.raises(ValueError, match="SCALE"):
        resolve(spec, cache_dir=cache)


def test_bad_arguments_are_value_errors(tmp_path: Path) -> None:
    one = np.array([0])
    with pytest.raises(ValueError, match="threads -1: it must be 0 or more"):
        resolve("kron:4", cache_dir=tmp_path, threads=-1)
    with pytest.raises(TypeError, match="threads '2': it is no whole number"):
        resolve("kron:4", cache_dir=tmp_path, threads="2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names vertex 1, the graph has 1"):
        write_folder(tmp_path / "g", 1, one, np.array([1]))
    with pytest.raises(ValueError, match="differ in length"):
        write_folder(tmp_path / "g", 1, one, np.array([0, 0]))
    with pytest.raises(ValueError, match="float64"):
        write_folder(tmp_path / "g", 1, one, np.array([0.0]))
    graph = write_folder(tmp_path / "g", 1, one, one)
    with pytest.raises(ValueError, match="source 1 is no vertex"):
        graph.verify_bfs(1, one)
    with pytest.raises(ValueError, match="float64"):
        graph.verify_bfs(0, np.zeros(1))
    with pytest.raises(ValueError, match="2 parents for 1"):
        graph.verify_bfs(0, np.zeros(2, dtype=np.int32))


def test_what_is_missing_or_forbidden_is_an_error_with_its_errno(tmp_path: Path) -> None:
    with pytest.raises(Error, match="no such file or graph") as caught:
        resolve(tmp_path / "a.el", cache_dir=tmp_path)
    assert caught.value.errno == errno.ENOENT
    (tmp_path / "d.el").mkdir()
    for spec, name in ((tmp_path, tmp_path), (tmp_path / "d.el", tmp_path / "d.el"), ("", "''")):
        with pytest.raises(Error) as caught:
            resolve(spec, cache_dir=tmp_path)
        start = f"open {name}: no graph folder (there is no graph.json in it): give a graph folder, "
        assert str(caught.value).startswith(start)
        assert caught.value.errno == errno.ENOENT
    with pytest.raises(Error, match="create /proc/penstock"):
        resolve("kron:4", cache_dir="/proc/penstock")
    if os.geteuid() == 0:
        return  # root is never refused
    for name in ("a.el", "a.mtx"):
        (tmp_path / name).touch(mode=0)
        with pytest.raises(Error, match="Permission denied"):
            resolve(tmp_path / name, cache_dir=tmp_path)


def test_an_exception_of_the_callback_stops_the_work_and_leaves_nothing(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        assert 0 <= done <= total
        raise StopError

    with pytest.raises(StopError):
        resolve("kron:18", cache_dir=tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stops_the_work_and_leaves_nothing(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import signal, sys
        from penstock.graph import resolve
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's background job
        def progress(done, total):
            if done: print("going", flush=True)
        try:
            resolve("kron:22", cache_dir=sys.argv[1], progress=progress)
        except KeyboardInterrupt:
            sys.exit(42)
    """)
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 42
    assert list(tmp_path.iterdir()) == []

"""Weights that int32 and float32 cannot hold are refused, whatever they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import scipy.sparse.csgraph
from graph_edges import edges_of, refusal
from penstock.graph import pagerank, resolve, sssp, write_folder


@pytest.fixture(autouse=True)
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def text(values: list[Any], line: str) -> str:
    return "".join(line.format(i=i, j=i + 1, w=repr(value)) for i, value in enumerate(values))


def write(kind: str, values: list[Any]) -> Any:
    """What resolve() takes for edges i -> i + 1 with these weights."""
    count = len(values)
    ends, floats = np.arange(count + 1), any(isinstance(value, float) for value in values)
    if kind == "wel":
        Path("a.wel").write_text(text(values, "{i} {j} {w}\n"))
    elif kind == "csv":
        pytest.importorskip("pyarrow")
        Path("a.csv").write_text("src,dst,w\n" + text(values, "{i},{j},{w}\n"))
    elif kind == "mtx":
        head = f"%%MatrixMarket matrix coordinate {'real' if floats else 'integer'} general\n"
        body = "".join(f"{i + 1} {i + 2} {value!r}\n" for i, value in enumerate(values))
        Path("a.mtx").write_text(f"{head}{count + 1} {count + 1} {count}\n{body}")
    elif kind in ("npz", "scipy"):
        matrix = sp.coo_array((np.array(values), (ends[:-1], ends[1:])), shape=(count + 1, count + 1))
        if kind == "scipy":
            return matrix
        sp.save_npz("a.npz", matrix)
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"src": ends[:-1], "dst": ends[1:], "w": values})
        pytest.importorskip("pyarrow.parquet").write_table(table, "a.parquet")
    elif kind == "pandas":
        pytest.importorskip("pyarrow")
        return pytest.importorskip("pandas").DataFrame({"src": ends[:-1], "dst": ends[1:], "w": values})
    elif kind == "networkx":
        graph = pytest.importorskip("networkx").DiGraph()
        graph.add_weighted_edges_from(zip(ends[:-1].tolist(), ends[1:].tolist(), values, strict=True))
        return graph
    else:
        return (ends[:-1], ends[1:], np.array(values))
    return f"a.{kind}"


KINDS = ["wel", "csv", "mtx", "npz", "scipy", "parquet", "pandas", "networkx", "edge_index"]
NOT_HELD: list[list[Any]] = [
    [5, 2**31], [5, 2**40 + 1], [-(2**31) - 1], [0.5, 2.0**40 + 1], [16777217.0, 1.0], [1e-50, 1.0],
    [0.5, 1e39], [1.5, -1e300], [0.5, 1e-45], [1.0, 3.0, 5e-324], [2.0**60 + 2.0**20, 0.5],
]  # fmt: skip
HELD: list[list[Any]] = [
    [5, -(2**31), 2**31 - 1], [16777217, 2], [0.1, 16777216.0], [2.0**40, 1.5], [1.401298464324817e-45, 1.0],
    [3.4028234663852886e38, -0.5], [1e30, 123456789.123], [1.1754943508222875e-38, 0.3],
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", NOT_HELD, ids=repr)
def test_what_they_cannot_hold_is_refused(kind: str, values: list[Any]) -> None:
    spec = write(kind, values)
    sentence = refusal(spec)
    assert "scale" in sentence
    assert not isinstance(spec, str) or f"read {spec}: " in sentence


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", HELD, ids=repr)
def test_what_they_hold_is_as_numpy_rounds_it(kind: str, values: list[Any]) -> None:
    graph = resolve(write(kind, values))
    whole = all(isinstance(value, int) for value in values)
    expected = np.array(values, np.int32 if whole else np.float32)
    found = graph.weight_array()
    assert found is not None
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ["wel", "csv", "networkx"])
def test_integers_beside_fractions_are_not_rounded(kind: str) -> None:
    refusal(write(kind, [16777217, 0.5]), "integer that float32 cannot hold exactly")
    refusal(write(kind, [0.5, -(2**24) - 1]), "integer that float32 cannot hold exactly")
    assert [edge[2] for edge in edges_of(resolve(write(kind, [2**24, 0.5])))] == [2.0**24, 0.5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_finite_number_is_refused(kind: str, bad: float) -> None:
    spec = write(kind, [0.5, bad])
    sentence = refusal(spec)
    assert "finite" in sentence or "no int32 or float32 weight" in sentence or "nothing in" in sentence


def test_arrays_of_write_folder_are_checked(tmp_path: Path) -> None:
    ends = np.array([0, 1])
    for values in (
        np.array([1, 2**40]), np.array([0.5, 1e-50]), np.array([1, np.nan], np.float32), [0.5, float("nan")],
        [2**53 + 1, 0.5], [1e400, 0.5], ["1", "2"], [True, False], np.array([1, 2j]), [2**70, 1],
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"weight|values of dtype") as caught:
            write_folder("g", 2, ends, ends, weights=values)
        assert "\n" not in str(caught.value)
        assert not Path("g").exists()
    graph = write_folder("g", 2, ends, ends, weights=np.array([3, 4], np.int64))
    assert edges_of(graph) == [(0, 0, 3), (1, 1, 4)]


def test_weights_of_a_folder_that_is_no_number_are_not_converted() -> None:
    from penstock.graph import convert

    write_folder("g", 2, [0, 1], [1, 0], weights=[0.5, 1.5])
    np.load("g/weights.npy", mmap_mode="r+")[1] = np.nan
    with pytest.raises(ValueError, match=r"weights\.npy: the weight of edge 1 is no finite number"):
        convert("g", "h")


def test_dimacs_and_matrix_market_name_the_line_or_the_weight() -> None:
    Path("a.gr").write_text("p sp 2 1\na 1 2 2147483648\n")
    refusal("a.gr", "read a.gr: line 2: '2147483648' is no int32 weight")
    scipy.io.mmwrite("a.mtx", sp.coo_array(([1e-60], ([0], [1])), shape=(2, 2)))
    refusal("a.mtx", "read a.mtx: weight 1e-60 is too small for float32: scale")


@pytest.mark.parametrize(
    ("entry", "shown"),
    [("1 2 1,5", "'1 2 1,5'"), ("1 2 3 4", "'1 2 3 4'"), ("1 2 3x", "'1 2 3x'"), ("1;2", "'1;2'")],
)
def test_entries_of_matrices_are_numbers_to_their_end(entry: str, shown: str) -> None:
    Path("a.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 1e0\n{entry}\n")
    refusal("a.mtx", f"read a.mtx: SciPy cannot read it (line 4: {shown} is no entry of a matrix)")


def test_a_matrix_that_ends_in_a_carriage_return_is_read() -> None:
    Path("a.mtx").write_bytes(
        b"%%MatrixMarket matrix coordinate real general\r\n2 2 2\r\n1 2 4.0\r\n2 1 -6.0\r"
    )
    assert edges_of(resolve("a.mtx")) == [(0, 1, 4.0), (1, 0, -6.0)]


@pytest.mark.parametrize("kind", ["mtx", "npz", "scipy"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_weights_of_a_matrix_may_all_be_1(kind: str, dtype: Any) -> None:
    matrix = sp.csr_array(([1, 1, 1], ([0, 1, 2], [1, 2, 0])), shape=(4, 4), dtype=dtype)
    found = sssp(saved(kind, matrix), source=1)
    expected = scipy.sparse.csgraph.dijkstra(matrix, indices=[1])[0]
    distances = np.asarray(found.distances, np.float64)
    assert np.where(distances < 0, np.inf, distances).tolist() == expected.tolist()
    assert pagerank(saved(kind, matrix)).weights == "left out"


@pytest.mark.parametrize("kind", ["mtx", "npz", "scipy"])
def test_a_matrix_without_entries_has_weights_and_one_of_bool_has_none(kind: str) -> None:
    for dtype, expected in ((np.int32, np.int32), (np.float64, np.float32)):
        weights = resolve(saved(kind, sp.coo_array((3, 3), dtype=dtype))).weight_array()
        assert weights is not None
        assert weights.dtype == expected
        assert weights.shape == (0,)
    plain = sp.coo_array(([True, True], ([0, 1], [1, 2])), shape=(3, 3))
    assert edges_of(resolve(saved(kind, plain))) == [(0, 1), (1, 2)]


def saved(kind: str, matrix: Any) -> Any:
    if kind == "mtx":
        field: Any = {"b": "pattern", "i": "integer", "f": "real"}[matrix.dtype.kind]
        scipy.io.mmwrite("b.mtx", matrix, field=field, symmetry="general")
        if not matrix.nnz:  # SciPy writes real, whatever is asked for
            Path("b.mtx").write_text(Path("b.mtx").read_text().replace(" real ", f" {field} "))
    elif kind == "npz":
        sp.save_npz("b.npz", matrix)
    else:
        return matrix
    return f"b.{kind}"

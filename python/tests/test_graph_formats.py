"""Each file format gives the edges that its file was made of, and each kind of damage one sentence."""

from __future__ import annotations

import bz2
import gzip
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.errors import Error
from penstock.graph import GraphFolder, open_folder, resolve, write_folder

Edge = tuple[Any, Any, float | None]
Edges = list[Edge]
Array = NDArray[Any]

quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def drawn_edges(draw: st.DrawFn) -> tuple[int, Edges]:
    """The number of vertices; edges with weights, no self loops, the last vertex among them."""
    vertices = draw(st.integers(2, 25))
    vertex = st.integers(0, vertices - 1)
    pair = st.tuples(vertex, vertex).filter(lambda ends: ends[0] != ends[1])
    pairs = [*draw(st.lists(pair, max_size=80)), (vertices - 1, 0)]
    weight = st.integers(-(2**31), 2**31 - 1)
    return vertices, [(a, b, draw(weight)) for a, b in pairs]


def edges_in(graph: GraphFolder) -> Edges:
    """All of the folder's edges, sorted, with names instead of numbers where there are names."""
    from_ = np.repeat(np.arange(graph.vertices), np.diff(graph.offsets().astype(np.int64)).tolist())
    ends = zip(from_.tolist(), graph.edge_array().tolist(), strict=True)
    weights = graph.weight_array()
    values = [None] * graph.edges if weights is None else weights.tolist()
    names = graph.names or range(graph.vertices)
    found: Edges = [(names[a], names[b], w) for (a, b), w in zip(ends, values, strict=True)]
    return sorted(found, key=repr)


def expected(edges: Edges, weighted: bool) -> Edges:
    return sorted([(a, b, w if weighted else None) for a, b, w in edges], key=repr)


def by_case(tmp_path: Path) -> Path:
    """A fresh folder for each example of a hypothesis test."""
    folder = tmp_path / f"case-{time.monotonic_ns()}"
    folder.mkdir()
    return folder


def csr_of(vertices: int, edges: Edges) -> tuple[Array, Array, Array]:
    ordered = sorted(edges, key=lambda edge: edge[0])
    from_, to, weights = (np.array(column, dtype=np.int64) for column in zip(*ordered, strict=True))
    return np.concatenate([[0], np.cumsum(np.bincount(from_, minlength=vertices))]), to, weights


def write_gr(path: Path, vertices: int, edges: Edges) -> None:
    arcs = "".join(f"a {a + 1} {b + 1} {w}\n" for a, b, w in edges)
    path.write_text(f"c made by a test\np sp {vertices} {len(edges)}\n{arcs}")


def write_metis(path: Path, vertices: int, edges: Edges) -> None:
    """Each edge at both ends."""
    lists: list[list[str]] = [[] for _ in range(vertices)]
    for a, b, w in edges:
        lists[a].append(f"{b + 1} {w}")
        lists[b].append(f"{a + 1} {w}")
    lines = [f"{vertices} {len(edges)} 001", *("  ".join(neighbours) for neighbours in lists)]
    path.write_text("% made by a test\n" + "\n".join(lines))


def write_bel(path: Path, vertices: int, edges: Edges, *, weighted: bool, count: int | None = None) -> None:
    offsets, to, weights = csr_of(vertices, edges)
    files = {".col": offsets.astype("<u8"), ".dst": to.astype("<u8")}
    if weighted:
        files[".val"] = weights.astype("<i4")
    for suffix, array in files.items():
        items = count if count is not None and suffix == ".col" else len(array)
        path.with_name(path.name + suffix).write_bytes(
            np.array([items, 0], "<u8").tobytes() + array.tobytes()
        )


def write_subway(path: Path, vertices: int, edges: Edges, *, weighted: bool) -> None:
    offsets, to, weights = csr_of(vertices, edges)
    items = np.stack([to, weights], axis=1) if weighted else to
    words = np.concatenate([[vertices, len(edges)], offsets[:-1], items.ravel()])
    path.write_bytes((words & 0xFFFFFFFF).astype("<u4").tobytes())


@quick
@given(drawn=drawn_edges(), threads=st.sampled_from([1, 3]))
@pytest.mark.parametrize("kind", ["gr", "graph", "bel", "bel weighted", "bcsr", "bwcsr"])
def test_a_file_gives_the_edges_it_was_made_of(tmp_path: Path, kind: str, drawn: Any, threads: int) -> None:
    vertices, edges = drawn
    folder = by_case(tmp_path)
    path = folder / f"g.{kind.split()[0]}"
    weighted = kind not in ("bel", "bcsr")
    if kind == "gr":
        write_gr(path, vertices, edges)
    elif kind == "graph":
        write_metis(path, vertices, edges)
        edges = edges + [(b, a, w) for a, b, w in edges]
    elif kind.startswith("bel"):
        write_bel(path, vertices, edges, weighted=weighted)
    else:
        edges = [(a, b, w & 0x7FFFFFFF) for a, b, w in edges]  # its weights have no sign
        write_subway(path, vertices, edges, weighted=weighted)
    graph = resolve(path, cache_dir=folder / "cache", threads=threads)
    assert graph.vertices == vertices
    assert graph.directed == (kind != "graph")
    assert edges_in(graph) == expected(edges, weighted)
    assert open_folder(graph.path, validate_edges=True) == graph


EDGES: Edges = [(0, 1, 5), (2, 0, -7), (1, 2, 0), (1, 2, 3)]


@pytest.mark.parametrize("name", ["g.bel", "g.bel.col", "g.bel.dst", "g.bel.val"])
def test_any_file_of_a_family_names_it(tmp_path: Path, name: str) -> None:
    write_bel(tmp_path / "g.bel", 3, EDGES, weighted=True)
    graph = resolve(tmp_path / name, cache_dir=tmp_path / "cache")
    assert edges_in(graph) == expected(EDGES, True)
    assert graph.path == resolve(tmp_path / "g.bel", cache_dir=tmp_path / "cache").path


def test_a_change_of_any_file_of_a_family_converts_again(tmp_path: Path) -> None:
    path, cache = tmp_path / "g.bel", tmp_path / "cache"
    write_bel(path, 3, EDGES, weighted=False)
    folders = {resolve(path, cache_dir=cache).path}
    write_bel(path, 3, EDGES, weighted=True)
    folders.add(resolve(path, cache_dir=cache).path)
    for suffix in (".col", ".dst", ".val"):
        file = path.with_name("g.bel" + suffix)
        later = file.stat().st_mtime_ns + 10**9
        os.utime(file, ns=(later, later))
        folders.add(resolve(path, cache_dir=cache).path)
    assert len(folders) == 5


def test_the_count_of_edges_at_the_head_of_offsets_is_put_right_and_told(tmp_path: Path) -> None:
    path = tmp_path / "g.bel"
    write_bel(path, 2, [(0, 1, 1), (1, 0, 2), (0, 0, 3)], weighted=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right = resolve(path, cache_dir=tmp_path / "right")
    edges: Edges = [(0, 1, 1), (1, 0, 2), (0, 0, 3), (0, 0, 4)]
    write_bel(path, 2, edges, weighted=False, count=4)
    with pytest.warns(
        UserWarning, match=r"g\.bel\.col: its header says 4 offsets, its size 3: .*size was taken"
    ):
        graph = resolve(path, cache_dir=tmp_path / "cache")
    assert (right.vertices, graph.vertices) == (2, 2)
    assert edges_in(graph) == expected(edges, False)
    write_bel(path, 2, edges, weighted=False, count=17)
    with pytest.raises(
        ValueError, match=r"g\.bel\.col: its header says 17 offsets, its size 3: get the file"
    ):
        resolve(path, cache_dir=tmp_path / "cache")


def test_a_family_without_its_offsets_or_neighbours_is_told_so(tmp_path: Path) -> None:
    for missing in (".col", ".dst"):
        write_bel(tmp_path / "g.bel", 3, EDGES, weighted=True)
        (tmp_path / f"g.bel{missing}").unlink()
        with pytest.raises(Error, match=rf"open .*g\.bel{missing}: no such file"):
            resolve(tmp_path / "g.bel.val", cache_dir=tmp_path)


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "no p line": ("a.gr", b"a 1 2 3\n", "line 1: 'a' begins no line 'p sp VERTICES ARCS'"),
    "arc out of range": ("a.gr", b"p sp 2 1\na 1 3 1\n", "line 2: '3' is no vertex number from 1 to 2"),
    "arcs are missing": ("a.gr", b"c\np sp 2 2\na 1 2 1\n", "line 2: it says 2 arcs, the file has 1"),
    "no header": ("a.graph", b"%\n", "has no header"),
    "lists are missing": ("a.graph", b"3 1\n2\n1", "lists for 2"),
    "one-sided": ("a.graph", b"2 1\n2 2\n\n", "line 2: vertex 1: an edge to a higher vertex"),
    "edges are missing": ("a.graph", b"2 2\n2\n1\n", "so 4 neighbours, the lists have 2"),
    "short csr": ("a.bcsr", b"\0" * 7, "truncated"),
    "wrong size": ("a.bwcsr", b"\1\0\0\0" * 2, "which take 20 bytes, the file has 8"),
}


def refusal(path: Path) -> str:
    with pytest.raises(ValueError) as caught:
        resolve(path, cache_dir=path.parent / "cache")
    sentence = str(caught.value)
    assert path.name in sentence
    assert "\n" not in sentence
    assert not list((path.parent / "cache").glob("*"))
    return sentence


@pytest.mark.parametrize(("name", "content", "part"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_are_value_errors_of_one_sentence(
    tmp_path: Path, name: str, content: bytes, part: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert part in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_tables_without_arrow_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_text("source,target\n0,1\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'penstock[arrow]'" in refusal(tmp_path / name)


@pytest.fixture(name="pa")
def fixture_pa() -> Any:
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


WriteTable = Callable[[Path, list[list[Any]]], None]


def write_parquet(path: Path, columns: list[list[Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    names = ["source", "target", "weight", "more"][: len(columns)]
    parquet.write_table(pa.table(dict(zip(names, columns, strict=True))), path, row_group_size=7)


def write_csv(path: Path, columns: list[list[Any]]) -> None:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    names = ["source", "target", "weight", "more"][: len(columns)]
    lines = [names, *zip(*columns, strict=True)]
    text = "".join(delimiter.join(str(field) for field in line) + "\n" for line in lines)
    pack: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress}
    path.write_bytes(pack.get(path.suffix, bytes)(text.encode()))


TABLES: dict[str, WriteTable] = {
    "g.parquet": write_parquet,
    "g.csv": write_csv,
    "g.csv.gz": write_csv,
    "g.csv.bz2": write_csv,
    "g.tsv": write_csv,
}
IDS = {
    "small integers": st.integers(0, 20),
    "integers": st.integers(-(2**63), 2**63 - 1),
    "large integers": st.integers(2**63, 2**64 - 1),
    "strings": st.text(
        st.characters(codec="utf-8", exclude_characters='\0\n\r\t,"'), min_size=1, max_size=6
    ).map(lambda text: "n" + text),
}


@quick
@given(data=st.data(), weights=st.sampled_from([None, "int", "float"]))
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_gives_the_edges_it_was_made_of(
    tmp_path: Path, pa: Any, name: str, ids: str, data: st.DataObject, weights: str | None
) -> None:
    value = st.integers(-(2**31), 2**31 - 1) if weights == "int" else st.floats(width=32, allow_nan=False)
    value = value if weights == "int" else value.filter(lambda each: abs(each) < 1e30)
    row = st.tuples(IDS[ids], IDS[ids], value)
    rows = data.draw(st.lists(row, min_size=1, max_size=60))
    columns = [list(column) for column in zip(*rows, strict=True)]
    if weights == "float":
        columns[2][0] = 0.5
        rows = list(zip(*columns, strict=True))
    if name == "g.parquet" and ids == "large integers":
        columns[:2] = [pa.array(column, pa.uint64()) for column in columns[:2]]
    folder = by_case(tmp_path)
    TABLES[name](folder / name, columns if weights else columns[:2])
    graph = resolve(folder / name, cache_dir=folder / "cache")
    ends: list[Any] = [end for a, b, _ in rows for end in (a, b)]
    distinct = sorted(set(ends), key=lambda end: str(end).encode() if ids == "strings" else end)
    plain = distinct == list(range(len(distinct)))
    assert graph.names == (None if plain else [str(end) for end in distinct])
    assert graph.directed
    assert edges_in(graph) == expected(
        [(a, b, w) if plain else (str(a), str(b), w) for a, b, w in rows], weights is not None
    )


def test_many_batches_are_one_table(tmp_path: Path, pa: Any) -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 50_000, (2, 300_000)) * 3
    weights = rng.integers(0, 100, 300_000)
    as_text = [[f"v{end}" for end in column] for column in ends.tolist()]
    for name, columns in (("g.parquet", ends.tolist()), ("g.csv", ends.tolist()), ("s.csv", as_text)):
        TABLES["g" + Path(name).suffix](tmp_path / name, [*columns, weights.tolist()])
        graph = resolve(tmp_path / name, cache_dir=tmp_path / "cache")
        text = name == "s.csv"
        distinct = sorted({f"v{end}" for end in ends.ravel()}) if text else np.unique(ends)
        assert graph.names == [str(each) for each in distinct]
        numbers = np.array([f"v{end}" for end in ends.ravel()]) if text else ends.ravel()
        from_, to = np.searchsorted(distinct, numbers).reshape(2, -1)
        order = np.lexsort((weights, to, from_))
        assert np.array_equal(graph.edge_array(), to[order])
        assert np.array_equal(np.asarray(graph.weight_array()), weights[order])


def test_text_that_turns_into_strings_or_fractions_late_is_read_as_such(tmp_path: Path, pa: Any) -> None:
    rows = 200_000
    source = [*("7" for _ in range(rows)), "x"]
    write_csv(tmp_path / "a.csv", [source, ["9"] * (rows + 1), ["1"] * rows + ["0.5"]])
    graph = resolve(tmp_path / "a.csv", cache_dir=tmp_path / "cache")
    assert graph.names == ["7", "9", "x"]
    weights = graph.weight_array()
    assert weights is not None
    assert weights.dtype == np.float32
    assert (weights.sum(), weights.min()) == (rows + 0.5, 0.5)


def test_a_dictionary_of_strings_is_strings(tmp_path: Path, pa: Any) -> None:
    ends = pa.array(["b", "a", "b"]).dictionary_encode()
    write_parquet(tmp_path / "a.parquet", [ends, pa.array(["c", "c", "a"])])
    graph = resolve(tmp_path / "a.parquet", cache_dir=tmp_path / "cache")
    assert edges_in(graph) == [("a", "c", None), ("b", "a", None), ("b", "c", None)]


BAD_TEXT: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.csv", b"", "Arrow cannot read it (Empty CSV file)"),
    "no rows": ("a.csv", b"source,target\n", "has no rows"),
    "perhaps a header": (
        "a.csv",
        b"ann,bob\nbob,eve\n",
        "its first line, 'ann,bob', may be a header or an edge",
    ),
    "one column": ("a.csv", b"source\n0\n", "1 column (source): give source, target and perhaps a weight"),
    "four columns": ("a.csv", b"a,b,c,d\n0,1,2,3\n", "4 columns (a, b, c, d): give source, target"),
    "wrong delimiter": ("a.tsv", b"a,b\n0,1\n", "1 column (a,b)"),
    "a row too long": (
        "a.csv",
        b"a,b\n0,1\n0,1,2\n",
        "Arrow cannot read it (CSV parse error: Expected 2 columns",
    ),
    "an empty field": ("a.csv", b"a,b\n0,1\n1,\n", "row 2: nothing in column 'b'"),
    "an empty weight": ("a.csv", b"a,b,c\n0,1,1\n1,0,2\n1,1,\n", "row 3: nothing in column 'c'"),
    "fractions": ("a.csv", b"a,b\n1.5,2\n3,4\n", "id '1.5' is neither an integer of 64 bits nor a name"),
    "an id with a plus": ("a.csv", b"src,dst\n+1,2\n3,4\n", "id '+1' is neither an integer of 64 bits nor"),
    "an id of 65 bits": (
        "a.csv",
        b"src,dst\n3,36893488147419103232\n",
        "id '36893488147419103232' is neither",
    ),
    "a weight of 64 bits": (
        "a.csv",
        b"a,b,w\n0,1,9223372036854775853\n1,2,1\n",
        "weight 9223372036854775853 does not fit int32",
    ),
    "a long integer beside fractions": (
        "a.csv",
        b"a,b,w\n0,1,0.5\n1,2,-18446744073709551617\n",
        "weight -18446744073709551617 does not fit int32",
    ),
    "no number": ("a.csv", b"a,b,w\n0,1,1\n0,1,heavy\n", "row 2: 'heavy' is no weight"),
    "a large weight": ("a.csv", b"a,b,w\n0,1,3000000000\n", "do not fit int32"),
    "a weight that is no number": ("a.csv", b"a,b,w\n0,1,nan\n", "no finite float32"),
    "not text": ("a.csv", b"a,b\n\xff\xfe,\x80\n", "Arrow cannot read it"),
    "not gzip": ("a.csv.gz", b"a,b\n0,1\n", "Arrow cannot read it"),
    "not parquet": ("a.parquet", b"PAR1 damaged", "Arrow cannot read it"),
    "cut off": ("a.csv.gz", gzip.compress(b"a,b\n" + b"0,1\n" * 1000)[:-12], "Arrow cannot read it"),
}


@pytest.mark.parametrize(("name", "content", "part"), BAD_TEXT.values(), ids=BAD_TEXT.keys())
def test_bad_tables_are_value_errors_of_one_sentence(
    tmp_path: Path, pa: Any, name: str, content: bytes, part: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert part in refusal(tmp_path / name)


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ([[0]], "1 column (source)"),
        ([[0], [1], [True]], "column 'weight' of type bool cannot be weights"),
        ([[0.5], [1]], "column 'source' of type double cannot be ids"),
        ([[0], [True]], "column 'target' of type bool cannot be ids"),
        ([[0], ["a"]], "one end is an integer, the other a string"),
        ([[0, None], [1, 2]], "row 2: nothing in column 'source'"),
        ([[0], [1], ["heavy"]], "column 'weight' of type string cannot be weights"),
        ([[0, 0], [1, 1], [1.5, None]], "row 2: nothing in column 'weight'"),
        ([["a\nb"], ["c"]], "id 'a\\nb' has a line break in it"),
    ],
)
def test_bad_columns_are_value_errors_of_one_sentence(
    tmp_path: Path, pa: Any, columns: list[list[Any]], part: str
) -> None:
    write_parquet(tmp_path / "a.parquet", columns)
    assert part in refusal(tmp_path / "a.parquet")


def test_a_folder_may_be_called_like_a_file(tmp_path: Path) -> None:
    graph = write_folder(tmp_path / "g.bel", 1, np.array([0]), np.array([0]))
    assert resolve(graph.path) == graph

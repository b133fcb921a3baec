"""What is said of a graph beside its name, and what graphs are taken from."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
import scipy.sparse as sp
from penstock.cli import main as cli
from penstock.errors import Error
from penstock.graph import bfs, cc, convert, open_folder, pagerank, resolve, sssp, write_folder

EDGES = "# SNAP\n0\t1\n1\t2\n2 1\n0 1\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.fixture(name="place")
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def lists_of(folder: penstock.graph.GraphFolder) -> list[list[int]]:
    edges = np.split(folder.edge_array(), folder.offsets()[1:-1].astype(np.int64))
    return [each.tolist() for each in edges]


def test_a_file_is_taken_both_ways_and_simple_on_demand(place: Path) -> None:
    Path("a.txt").write_text(EDGES + "2 2\n")
    assert lists_of(resolve("a.txt")) == [[1, 1], [2], [1, 2]]
    both = resolve("a.txt", undirected=True)
    assert (lists_of(both), both.directed) == ([[1], [0, 2], [1, 2]], False)
    assert lists_of(resolve("a.txt", undirected=True, simple=True)) == [[1], [0, 2], [1]]
    assert lists_of(resolve("a.txt", simple=True)) == [[1], [2], [1]]
    assert bfs("a.txt", source=2, undirected=True).reached == 3
    assert bfs("a.txt", source=2).reached == 2


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_so_are_matrices_and_tables(place: Path, kind: str) -> None:
    if kind == "npz":
        matrix = sp.coo_array(([5, 3], ([0, 1], [1, 0])), shape=(2, 2))
        sp.save_npz("a.npz", matrix)
    else:
        pytest.importorskip("pyarrow")
        Path("a.csv").write_text("from,to,weight\n0,1,5\n1,0,3\n")
    both = resolve(f"a.{kind}", undirected=True)
    weights = both.weight_array()
    assert weights is not None
    assert (lists_of(both), weights.tolist(), both.directed) == ([[1], [0]], [3, 3], False)


def test_format_says_what_a_file_is(place: Path) -> None:
    Path("a.txt").write_text("0 1 7\n")
    with pytest.raises(
        ValueError, match=r"read a\.txt: line 1: '7' after .* with weights, three.* format wel"
    ):
        resolve("a.txt")
    weights = resolve("a.txt", format="wel").weight_array()
    assert weights is not None
    assert weights.tolist() == [7]
    Path("graph.data").write_text("0 1\n")
    assert resolve("graph.data", format="el").edges == 1
    for spec, given, part in (
        ("graph.data", None, "no known kind of graph file: give its format"),
        ("graph.data", "xml", "format 'xml': there is no such"),
        ("kron:4", "el", "it is no file, so it has no format"),
        (".", "el", "it is no file, so it has no format"),
    ):
        with pytest.raises(ValueError, match=part):
            resolve(spec, format=given)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("kind", ["el", "txt", "graph"])
def test_packed_files(place: Path, packer: str, kind: str) -> None:
    text = "2 1\n2\n1\n" if kind == "graph" else EDGES
    path = Path(f"a.{kind}.{packer}")
    path.write_bytes(PACKERS[packer](text.encode()))
    told: list[tuple[int, int]] = []
    graph = resolve(path, progress=lambda done, total: told.append((done, total)))
    Path(f"b.{kind}").write_text(text)
    assert lists_of(graph) == lists_of(resolve(f"b.{kind}"))
    assert graph.source == str(path)
    assert told[-1] == (1000, 1000)
    assert told == sorted(told)
    assert len(list((place / "cache").iterdir())) == 2  # and nothing that was unpacked


@pytest.mark.parametrize("packer", PACKERS)
def test_damaged_packed_files(place: Path, packer: str) -> None:
    whole = PACKERS[packer](EDGES.encode() * 100)
    path = Path(f"a.el.{packer}")
    for bad in (whole[: len(whole) // 2], b"no archive at all", whole[:-4] + b"\0\1\2\3"):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=f"read {path}: what it packs is damaged .*: get the file again"):
            resolve(path)
    path.write_bytes(PACKERS[packer](b"0 1\n0 z\n"))
    with pytest.raises(ValueError, match=f"read {path}: line 2: 'z' is no vertex number"):
        resolve(path)
    assert [p for p in (place / "cache").glob("*") if p.name.startswith(".")] == []
    Path("a.npz.xz").write_bytes(whole)
    with pytest.raises(ValueError, match="not read packed like that: unpack it"):
        resolve("a.npz.xz")


def test_what_is_no_utf_8_is_quoted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.el").write_bytes(b"0 \xff1\n")
    with pytest.raises(ValueError, match=r"line 1: '\\xff1' is no vertex number"):
        resolve("a.el")
    with pytest.raises(ValueError, match="its name is no UTF-8: rename it"):
        resolve(os.fsdecode(b"\xff.el"))
    assert cli.main(["bfs", os.fsdecode(b"\xff.el")]) == cli.REFUSED
    assert "rename it" in capsys.readouterr().err


def test_blocks_of_a_matrix_are_filled_up_with_nothing(place: Path) -> None:
    dense = np.array([[0, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [2, 0, 0, 3]])
    sp.save_npz("a.npz", sp.bsr_array(dense, blocksize=(2, 2)))
    graph = resolve("a.npz")
    weights = graph.weight_array()
    assert weights is not None
    assert (lists_of(graph), weights.tolist()) == ([[1], [], [], [0, 3]], [4, 2, 3])


def test_lists_of_python_are_edges(place: Path) -> None:
    graph = write_folder("g", 3, [0, 1], (1, 2), weights=np.array([1, 2], np.int32))
    assert lists_of(graph) == [[1], [2], []]
    assert write_folder("none", 3, [], []).edges == 0
    with pytest.raises(ValueError, match="create bad: edges of dtype float64"):
        write_folder("bad", 3, [0.5], [1])
    assert not write_folder("both", 3, [0], [1], symmetrise=True).directed


def test_an_undirected_graph_has_each_edge_both_ways(place: Path) -> None:
    with pytest.raises(ValueError, match=r"read arrays: an undirected graph .* but 1 -> 2 is not there"):
        write_folder("g", 3, [0, 1, 1], [1, 0, 2], directed=False)
    assert not Path("g").exists()
    head = bytes([0]) + np.array([1, 2], "<i8").tobytes()
    Path("a.sg").write_bytes(head + np.array([0, 1, 1], "<i8").tobytes() + np.array([1], "<i4").tobytes())
    with pytest.raises(ValueError, match=r"read a\.sg: .* but 0 -> 1 is not there the other way round"):
        resolve("a.sg")
    assert lists_of(resolve("a.sg", undirected=True)) == [[1], [0]]


@pytest.mark.parametrize("placement", ["storage", "host"])
@pytest.mark.parametrize("vertices", [0, 3])
def test_graphs_without_edges(place: Path, placement: Any, vertices: int) -> None:
    write_folder("g", vertices, [], [], weights=np.empty(0, np.int32))
    found = cc("g", placement=placement, verify=True, trials=2)
    assert (found.components, len(found.labels), found.verified) == (vertices, vertices, True)
    assert len(found.trial_seconds) == 2
    for dtype in ("float32", "float64"):
        ranked = pagerank("g", placement=placement, verify=True, dtype=dtype)
        assert (len(ranked.ranks), ranked.converged, ranked.verified) == (vertices, True, True)
        assert str(ranked.ranks.dtype).endswith(dtype)
    for search in (bfs, sssp):
        if vertices:
            assert search("g", source=1, placement=placement, verify=True).reached == 1
        for source in () if vertices else (None, 0, "0"):
            with pytest.raises(ValueError, match="the graph has no vertices"):
                search("g", source=source, placement=placement)
    for name in ("cc", "pagerank", *(("bfs", "sssp") if vertices else ())):
        assert cli.main([name, "g", "--placement", placement]) == 0


def test_matrices_of_no_rows(place: Path) -> None:
    sp.save_npz("a.npz", sp.coo_array((0, 0), dtype=np.int8))
    assert resolve("a.npz").vertices == 0


def test_sources_have_names(place: Path) -> None:
    write_folder("g", 3, [0, 1], [1, 2], names=["10", "7", "ä b"])
    assert bfs("g", source="7").source == 1
    assert bfs("g", source=2).source == 2
    assert bfs("g", source="ä b").reached == 1
    with pytest.raises(ValueError, match=r"source '1': no vertex has this name; .* g/names\.txt"):
        bfs("g", source="1")
    write_folder("plain", 3, [0, 1], [1, 2], weights=np.array([1, 2], np.int32))
    assert sssp("plain", source="1").source == 1
    for bad, part in (("x", "its vertices have no names: give a number from 0 to 2"), ("3", "are 0 to 2")):
        with pytest.raises(ValueError, match=part):
            sssp("plain", source=bad)


def test_a_folder_is_converted_with_what_it_has(place: Path) -> None:
    write_folder("g", 3, [0, 1], [1, 2], weights=np.array([5, 6], np.int32), names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"open g: .* taken as it is: make another one of it"):
        bfs("g", undirected=True)
    with pytest.raises(ValueError, match="taken as it is"):
        bfs(open_folder("g"), undirected=True)
    both = convert("g", "both", undirected=True)
    weights = both.weight_array()
    assert weights is not None
    assert (lists_of(both), weights.tolist(), both.names) == (
        [[1], [0, 2], [1]],
        [5, 5, 6, 6],
        ["a", "b", "c"],
    )
    assert bfs(both, source="c").reached == 3
    with pytest.raises(ValueError, match="bfs both: undirected: it is of a graph that is converted"):
        bfs(both, undirected=True)
    with pytest.raises(ValueError, match="it exists already: name a new folder"):
        convert("g", "both")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_folder_that_is_too_small_is_told_before_the_work(place: Path) -> None:
    Path("small").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", "small"], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted: {mounted.stderr.strip()}")
    try:
        ids = np.arange(1 << 18, dtype=np.int32)
        with pytest.raises(Error, match=r"convert to small/g: .*262144 edges take .* are free: make room"):
            write_folder("small/g", 1 << 18, ids, ids)
        assert list(Path("small").iterdir()) == []
        packed = Path("a.el.gz")
        packed.write_bytes(gzip.compress(b"0 1\n" * (1 << 19)))
        with pytest.raises(Error, match=r"unpack a\.el\.gz to .*: make room"):
            convert(packed, "small/g")
        assert list(Path("small").iterdir()) == []
    finally:
        subprocess.run(["umount", "small"], check=True)


def test_what_a_folder_says_of_itself_is_checked(place: Path) -> None:
    write_folder("g", 4, [0, 1, 2], [1, 2, 3])
    facts = Path("g/graph.json")
    facts.write_text(facts.read_text().replace("true", "false"))
    wrong = (
        r"open g: its graph.json says that it is undirected, .* but 0 -> 1 is not there the other way round"
    )
    for algorithm in (bfs, cc, pagerank):
        assert algorithm("g").verified is None
        with pytest.raises(ValueError, match=wrong):
            algorithm("g", verify=True)
    with pytest.raises(ValueError, match=wrong):
        open_folder("g", validate_edges=True)
    assert cli.main(["pagerank", "g", "--verify"]) == cli.REFUSED


def test_a_file_that_is_another_one_is_converted_again(place: Path) -> None:
    file = Path("a.el")
    file.write_text("0 1\n")
    os.utime(file, (1, 1))
    assert resolve(file).vertices == 2
    file.write_text("0 3\n")
    os.utime(file, (1, 1))  # as copies do that keep times
    assert resolve(file).vertices == 4


def test_what_python_gives_is_checked_in_a_sentence(place: Path) -> None:
    folder = write_folder("g", 3, [0, 1], [1, 2], weights=[1.5, 2], names=["a", "a", "c"])
    weights = folder.weight_array()
    assert weights is not None
    assert weights.dtype == np.float32
    assert folder.verify_bfs(0, [0, 0, 1]) == ""
    assert folder.verify_bfs(0, bfs(folder, source=0).parents) == ""
    wrong: Any = write_folder
    search: Any = bfs
    for call, kind, part in (
        (lambda: wrong("w", -1, [], []), ValueError, "vertices -1: it must be 0 or more"),
        (lambda: wrong("w", 2.0, [0], [1]), TypeError, "vertices 2.0: it is no whole number"),
        (lambda: wrong("w", 1, [], [], names=[1]), TypeError, "name 1 is no text"),
        (lambda: wrong("w", 1, [], [], names=["a\r"]), ValueError, "has a line break in it"),
        (lambda: wrong("w", 1, [], [], names=["\udc80"]), ValueError, "is no UTF-8"),
        (lambda: wrong("w", 2, [0], [1], weights=[2**40]), ValueError, "do not fit int32"),
        (lambda: search("g", verify="yes"), TypeError, "verify 'yes': give True or False"),
        (lambda: search("g", bogus=3), TypeError, "bogus: there is no such option; there are ablate, cache"),
        (lambda: search(b"g"), TypeError, "bytes are no path here"),
        (lambda: search("g", source="a"), ValueError, "several vertices have this name"),
        (lambda: search(folder, format="el"), ValueError, "it is no file, so it has no format"),
        (lambda: sssp("g", delta=float("nan")), ValueError, "give 0 or more"),
        (lambda: folder.bfs_depths("0"), TypeError, "source '0': it is no whole number"),  # type: ignore[arg-type]
        (lambda: convert("g", ""), ValueError, "there is no name for the folder"),
        (lambda: convert("g", "h", weighted=True), ValueError, "drawn for generated graphs alone"),
    ):
        with pytest.raises(kind, match=part) as told:
            call()
        assert "\n" not in str(told.value)
    assert not Path("w").exists()


def test_fields_are_quoted_so_that_they_can_be_seen(place: Path) -> None:
    for content, shown in ((b"0 \x001\n", r"'\x001'"), (b"\xff\xfe0 1\n", r"'\xff\xfe0'")):
        Path("a.el").write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(shown) + " is no vertex number"):
            resolve("a.el")

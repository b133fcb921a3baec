"""Vertex names in Python, wherever the graph lies."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from penstock.cli import main as cli
from penstock.errors import Error, ForbiddenError, MissingError
from penstock.graph import bfs, cc, resolve, sssp, write_folder


@pytest.fixture(name="place", autouse=True)
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


NAMES = ["10", "ä b", "c,d", ""]


def test_graphs_on_volumes_have_names(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder("g", 4, [0, 1, 3], [1, 2, 3], weights=[0.5, 2.0, 1.0], names=NAMES)
    assert cli.main(["volume", "create", str(place / "v.img"), "--size", "64MiB", "--yes-overwrite"]) == 0
    assert cli.main(["volume", "import", str(place / "v.img"), "graph", "g"]) == 0
    capsys.readouterr()
    name = f"volume:graph@{place / 'v.img'}"
    graph = resolve(name)
    assert (graph.names, graph.names_path, graph.has_names, graph.on_volume) == (NAMES, None, True, True)
    found = sssp(name, source="ä b")
    assert (found.source, found.by_name()) == (1, {"10": float("inf"), "ä b": 0, "c,d": 2, "": float("inf")})
    with pytest.raises(ValueError, match=f"search {name}: source 'z': no vertex has this name"):
        bfs(name, source="z")
    for algorithm in ("bfs", "cc", "pagerank", "sssp"):
        source = ["--source", "10"] if algorithm in ("bfs", "sssp") else []
        assert cli.main([algorithm, name, *source, "--output", "out.csv"]) == 0
        with Path("out.csv").open(encoding="utf-8", newline="") as file:
            assert [row[0] for row in csv.reader(file)] == ["vertex", *NAMES]
    assert cli.main(["graph", "info", name]) == 0
    assert "which have names" in capsys.readouterr().out


def test_results_go_by_name() -> None:
    graph = write_folder("g", 4, [0, 1, 3], [1, 2, 3], names=NAMES)
    assert bfs(graph, source="10").by_name() == {"10": "10", "ä b": "10", "c,d": "ä b", "": None}
    assert cc(graph).by_name() == {"10": "10", "ä b": "10", "c,d": "10", "": ""}
    assert (graph.vertex("c,d"), graph.names_of([2, 0, -1])) == (2, ["c,d", "10", None])
    plain = write_folder("plain", 3, [0], [1])
    assert bfs(plain, source=0).by_name() == {0: 0, 1: 0, 2: None}
    assert (bfs(plain, source=0).names, plain.names_of([1, -1])) == (None, [1, None])
    twice = write_folder("twice", 3, [0], [1], names=["a", "b", "a"])
    with pytest.raises(ValueError, match="several vertices have one name: go by their numbers"):
        bfs(twice, source="b").by_name()
    with pytest.raises(ValueError, match="'a': several vertices have this name"):
        twice.vertex("a")


def test_errors_name_what_the_user_named() -> None:
    Path("a.wel").write_text("0 1 -5\n1 2 3\n")
    Path("a.el").write_text("0 1\n1 2\n")
    calls: list[tuple[Any, str]] = [
        (lambda: sssp("a.wel", source=0), "a.wel"),
        (lambda: sssp("a.el", source=0), "a.el"),
        (lambda: bfs("a.el", source=7), "search a.el: source 7"),
        (lambda: bfs("a.el", source="x"), "search a.el: source 'x'"),
        (lambda: resolve("a.el", memory="1MiB", undirected=True), "convert a.el: a memory limit of 1 MiB"),
        (lambda: resolve("kron:5", memory="1MiB"), "convert kron:5: a memory limit"),
    ]
    for call, part in calls:
        with pytest.raises(ValueError) as caught:
            call()
        assert part in str(caught.value)
        assert "cache" not in str(caught.value)


def test_a_bad_weight_is_named_by_file_and_ends() -> None:
    pytest.importorskip("pyarrow")
    Path("neg.csv").write_text("src,dst,w\nann,bob,3\nbob,eve,-1\n")
    with pytest.raises(ValueError, match=r"^search neg\.csv: the weight of edge 1, bob -> eve, is -1: give"):
        sssp("neg.csv", source="ann")
    Path("neg.wel").write_text("0 1 3\n1 2 -1\n")
    with pytest.raises(ValueError, match=r"^search neg\.wel: the weight of edge 1, 1 -> 2, is -1: give"):
        sssp("neg.wel", source=0)
    write_folder("g", 2, [0], [1], weights=[-1])
    with pytest.raises(ValueError, match=r"^search g/weights\.npy: the weight of edge 0, 0 -> 1, is -1"):
        sssp("g", source=0)


def test_the_command_names_what_the_user_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.el").write_text("0 1\n1 2\n2 0\n0 2\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["pagerank", "e.el", "--iterations", "1", "--json"])
    assert ended.value.code == cli.NOT_CONVERGED
    assert "penstock: rank e.el: not converged" in capsys.readouterr().err
    for arguments in (["graph", "convert", "e.el", ""], ["bfs", "e.el", "--cache-dir", ""]):
        assert cli.main(arguments) == cli.REFUSED
        assert capsys.readouterr().err.endswith(": '': it has no name: name a folder\n")
    with pytest.raises(ValueError, match=r"^cache_dir '': it has no name: name a folder"):
        resolve("e.el", cache_dir="")


def test_what_is_missing_or_forbidden_is_what_python_calls_so() -> None:
    for path in ("no.el", "no.csv", "no", "no/graph.json", "a\nb.csv", "a\0.el"):
        with pytest.raises(FileNotFoundError) as caught:
            resolve(path)
        assert isinstance(caught.value, Error)
        assert f"open {path if path.isprintable() else repr(path)}: " in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(Error, match=r"open x+: File name too long: check the path"):
        resolve("x" * 300)
    assert isinstance(Error("x", 2), MissingError)
    assert isinstance(Error("x", 13), ForbiddenError)
    assert isinstance(Error("x", 13), PermissionError)
    assert type(Error("x", 5)) is Error

"""Which columns of a table are ends and weights: by their names, by place, or as the user says."""

from __future__ import annotations

import gzip
import io
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_edges import edges_in, edges_of, refusal
from penstock.cli import main as cli
from penstock.graph import bfs, convert, resolve, sssp

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(autouse=True)
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


ENDS = [(10, 7, 3), (7, 5, 4), (5, 10, 9)]
NAMED = sorted([(str(a), str(b), w) for a, b, w in ENDS], key=repr)


def frame(*order: str) -> Any:
    columns = dict(zip(("src", "dst", "weight"), zip(*ENDS, strict=True), strict=True))
    return pd.DataFrame({name: columns[name] for name in order}, index=[100, 200, 300])


def written(table: Any, how: str) -> str:
    if how == "csv":
        table.to_csv("t.csv")
    else:
        table.to_parquet("t.parquet")
    return f"t.{how}"


@pytest.mark.parametrize("how", ["csv", "parquet"])
@pytest.mark.parametrize(
    "order", [("src", "dst", "weight"), ("weight", "dst", "src"), ("dst", "weight", "src")]
)
def test_the_index_of_pandas_is_no_column_and_names_say_which_is_which(
    how: str, order: tuple[str, ...]
) -> None:
    graph = resolve(written(frame(*order), how))
    assert edges_of(graph) == NAMED
    assert graph.reading.startswith("3 rows: source 'src', target 'dst', weight 'weight' (int32); left out: ")


@pytest.mark.parametrize("how", ["csv", "parquet"])
def test_an_index_becomes_no_weight(how: str) -> None:
    graph = resolve(written(frame("src", "dst"), how))
    assert edges_of(graph) == sorted((a, b) for a, b, _ in NAMED)
    with pytest.raises(ValueError, match="its edges have no weights"):
        sssp(graph, source="7")


def test_a_named_index_of_parquet_is_none_either_unless_it_is_named() -> None:
    table = frame("src", "dst", "weight").set_index("src")
    table.to_parquet("t.parquet")
    refusal(
        "t.parquet", "t.parquet: 3 columns (dst, weight, src)", "--columns", "'dst' is the source by place"
    )
    assert edges_of(resolve("t.parquet", columns="src,dst,weight")) == NAMED
    frame("src", "dst").set_index(["src", "dst"]).to_parquet("t.parquet")
    refusal("t.parquet", "it has no two columns besides indexes")
    index = frame("src", "dst", "weight").rename_axis("__index_level_0__").reset_index()
    index.to_parquet("t.parquet", index=False)  # without metadata that say so
    assert edges_of(resolve("t.parquet")) == NAMED


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("source,target", "7,8"), ("TARGET,SOURCE", "8,7"), ("to,from", "8,7"), ("v,u", "8,7"),
        ("u,v", "7,8"),
        ("head,tail", "7,8"), ("ToNodeId,FromNodeId", "8,7"), ("dst_id,src_id", "8,7"),
        (":END_ID,:START_ID", "8,7"),
        ("a,b", "7,8"), ("person,friend", "7,8"), ("Unnamed: 0,a,b", "1,7,8"), ("index,dst,src,w", "0,8,7,5"),
        ("cost,to,from", "5,8,7"), ("src,dst,time,weight", "7,8,1,5"), ("from,to,amount", "7,8,5"),
        ("# source,target", "7,8"), ('"dst","src"', '"8","7"'),
    ],
)  # fmt: skip
def test_columns_are_taken_by_name_and_else_by_place(header: str, row: str) -> None:
    weighted = row.count(",") - ("Unnamed" in header) - ("index" in header) > 1
    assert edges_in(f"{header}\n{row}\n") == [("7", "8", *([5] if weighted else []))]


@pytest.mark.parametrize(
    "header",
    [
        "tail,head", "dst,other", "weight,a", "a,weight,b", "src,dst,time", "id,src,dst", "src,dst,rel,label",
        "head,relation,tail", "source,src,target", "a,b,timestamp", "a,b,c,d", "src,dst,weight,cost",
        "src,dst,w,w",
        "src,src", "a,a", "a", ",a", "x,src",
    ],
)  # fmt: skip
def test_columns_that_are_not_understood_are_refused_with_their_names(header: str) -> None:
    names = header.split(",")
    Path("a.csv").write_text(header + "\n" + ",".join("123456"[: len(names)]) + "\n")
    sentence = refusal("a.csv", "read a.csv: ", "--columns")
    assert all(name in sentence for name in names)


def test_columns_may_be_named_or_numbered_from_0() -> None:
    text = "day,b,a,c\n1,8,7,5\n"
    for given in ("a,b,c", ["a", "b", "c"], (2, 1, 3), "2,1,3", ["a", 1, np.int64(3)]):
        assert edges_in(text, columns=given) == [("7", "8", 5)]
    assert edges_in(text, columns="b,day") == [("8", "1")]
    assert edges_in(text, columns="b,day", undirected=True) == [("1", "8"), ("8", "1")]
    refusal("a.csv", "there is no column 'x'", "has the columns day, b, a, c", columns="a,x")
    refusal("a.csv", "column 4: it has 4", columns=[0, 4])
    refusal("a.csv", "one is named twice", columns="a,2")
    for bad, part in (("a", "there are 1"), ("a,b,c,d", "there are 4"), (["a", -1], "its number from 0")):
        refusal("a.csv", part, columns=bad)
    refusal("a.csv", "no whole number", kind=TypeError, columns=[0.5, 1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0,1\n1,2\n", [(0, 1), (1, 2)]),
        ("0,1,0.5\n1,2,2\n", [(0, 1, 0.5), (1, 2, 2.0)]),
        ("\ufeff0,1\r\n1,2\r\n", [(0, 1), (1, 2)]),
        ('"0","1"\n"1","2"\n', [(0, 1), (1, 2)]),
        ("\n\n0,1\n\n1,2\n", [(0, 1), (1, 2)]),
        ("ann,bob,3\nbob,eve,4\n", [("ann", "bob", 3), ("bob", "eve", 4)]),
        ("\ufeffsrc,dst\n0,1\n", [(0, 1)]),
        ("\r\n\r\nsrc,dst\r\n0,1\r\n", [(0, 1)]),
        ("a,b\n0,1\n", [(0, 1)]),
        (",who,whom\n0,ann,bob\n", [("ann", "bob")]),
    ],
)
def test_a_first_line_of_numbers_is_an_edge(text: str, expected: list[Any]) -> None:
    assert edges_in(text) == expected
    reading = resolve("a.csv").reading
    assert ("without a header" in reading) == (text.strip("\ufeff\r\n\"")[0] in "0a" and "src" not in text
                                              and not text.startswith("a,b"))  # fmt: skip


def test_a_first_line_that_may_be_an_edge_is_asked_about() -> None:
    Path("a.csv").write_text("ann,bob\nbob,eve\n")
    refusal("a.csv", "its first line, 'ann,bob', may be a header or an edge", "--no-header")
    assert len(edges_of(resolve("a.csv", header=False))) == 2
    assert edges_of(resolve("a.csv", header=True)) == [("bob", "eve")]
    # What a DataFrame with numbers for names writes.
    Path("a.csv").write_text(pd.DataFrame([[5, 6], [6, 7]]).to_csv())
    refusal("a.csv", "its first line, ',0,1', has an empty field", "--header")
    assert edges_of(resolve("a.csv", header=True, columns="0,1")) == [("5", "6"), ("6", "7")]
    # Numbers below a first line say that it is a header, as long as all of them are.
    Path("a.csv").write_text("ann,bob\n" + "1,2\n" * 20000 + "bob,eve\n")
    refusal("a.csv", "may be a header or an edge")


def test_options_are_part_of_what_the_cache_keeps() -> None:
    text = "1,2,3\n2,3,4\n"
    seen = [
        edges_in(text), edges_in(text, columns="1,0"), edges_in(text, columns="0,1"),
        edges_in(text, first_id=1), edges_in(text, renumber=False), edges_in(text, header=True),
    ]  # fmt: skip
    assert len({repr(each) for each in seen}) == len(seen)
    assert edges_in(text) == seen[0]
    for options in (
        {"delimiter": ","},
        {"header": True},
        {"first_id": 1},
        {"columns": "0,1"},
        {"renumber": True},
    ):
        for spec in ("kron:4", "g", "a.gr"):
            if spec == "g" and not Path("g").exists():
                convert("kron:4", "g")
            Path("a.gr").write_text("p sp 2 1\na 1 2 3\n")
            refusal(spec, f"open {spec}: {next(iter(options))}", "it has no effect on", **options)


def test_delimiters() -> None:
    assert edges_in("src;dst\n7;8\n", delimiter=";") == [("7", "8")]
    assert edges_in("src dst\n7 8\n", delimiter="space") == [("7", "8")]
    assert edges_in("src|dst\n7|8\n", "a.tsv", delimiter="|") == [("7", "8")]
    assert edges_in("src\tdst\n7\t8\n", delimiter="\\t") == [("7", "8")]
    Path("a.csv").write_text("src;dst\n7;8\n")
    refusal("a.csv", "1 column (src;dst)", "--delimiter ';'")
    for bad in (",,", "", "1", "\n"):
        refusal("a.csv", "delimiter", delimiter=bad)


def test_lists_of_edges_have_columns_too() -> None:
    text = "# SNAP\n1 2 1082008561 0.5\n2 3 1082009400 2\n"
    assert edges_in(text, "a.txt", columns=(0, 1)) == [(1, 2), (2, 3)]
    assert edges_in(text, "a.txt", columns="1,0,3") == [(2, 1, 0.5), (3, 2, 2.0)]
    assert edges_in(text, "a.txt", columns="0,1", first_id=1) == [(0, 1), (1, 2)]
    assert edges_in("a,b,w\n1,2,7\n", "a.txt", delimiter=",", header=True, columns="b,a,w") == [(2, 1, 7)]
    assert edges_in("1,2\n2,3\n", "a.el", delimiter=",") == [(1, 2), (2, 3)]
    refusal("a.el", "'1,2' is no vertex number")
    Path("a.el").write_text("src dst\n1 2\n")
    refusal("a.el", "line 1: 'src' is no vertex number", "titles of columns need header")


def test_a_header_of_a_list_says_which_column_is_which() -> None:
    text = "# made by hand\n\nweight src dst\n5 0 1\n6 1 2\n"
    frame = pd.read_csv(io.StringIO(text), sep=" ", comment="#")
    expected = list(zip(frame["src"], frame["dst"], frame["weight"], strict=True))
    for name in ("a.wel", "a.el"):
        assert edges_in(text, name, header=True) == expected
    assert edges_in(gzip.compress(text.encode()), "a.wel.gz", header=True) == expected
    assert edges_in(text.replace(" ", ";"), "b.wel", header=True, delimiter=";") == expected
    assert edges_in(text, "a.el", header=True, columns="src,weight") == [(0, 5), (1, 6)]
    assert edges_in("one two\n0 1\n", "c.el", header=True) == [(0, 1)]  # by place
    Path("d.el").write_text("src dst timestamp\n0 1 7\n")
    refusal("d.el", "read d.el: 3 columns (src, dst, timestamp): give source", header=True)


@pytest.mark.parametrize("name", ["a.el", "a.csv"])
def test_wide_gaps_between_ids_take_no_room(name: str) -> None:
    comma = "," if name == "a.csv" else " "
    graph_edges = edges_in(f"100000000{comma}5\n5{comma}100000001\n", name)
    assert graph_edges == [("100000000", "5"), ("5", "100000001")]
    graph = resolve(name)
    assert (graph.vertices, graph.names) == (3, ["5", "100000000", "100000001"])
    assert bfs(graph, source="100000000").reached == 3
    assert edges_in(f"3{comma}5\n5{comma}7\n", name, renumber=False) == [(3, 5), (5, 7)]
    assert edges_in(f"3{comma}5\n5{comma}7\n", name, renumber=True) == [("3", "5"), ("5", "7")]


def test_ids_of_lists_are_renumbered_as_numpy_does(tmp_path: Path) -> None:
    ends = np.random.default_rng(3).integers(0, 2**40, (2, 5000))
    np.savetxt("a.el", ends.T, fmt="%d")
    graph = resolve("a.el", threads=3)
    distinct, numbers = np.unique(ends, return_inverse=True)
    assert graph.names == [str(each) for each in distinct]
    from_, to = numbers.reshape(2, -1)
    order = np.lexsort((to, from_))
    assert np.array_equal(graph.edge_array(), to[order])


def test_conversions_print_what_they_took_as_what(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("w,dst,src,day\n0.5,8,7,1\n")
    line = (
        "penstock: read a.csv: 1 row: source 'src', target 'dst', weight 'w' (float32); left out: 'day'; "
        "ids renumbered, and kept as names\n"
    )
    assert cli.main(["sssp", "a.csv", "--source", "7", "--json"]) == 0
    printed = capsys.readouterr()
    assert (printed.err, json.loads(printed.out)["reached"]) == (line, 2)
    assert cli.main(["graph", "info", "a.csv", "--json"]) == 0
    printed = capsys.readouterr()
    assert (printed.err, f"penstock: read a.csv: {json.loads(printed.out)['reading']}\n") == ("", line)
    assert cli.main(["graph", "convert", "a.csv", "g", "--columns", "src,day", "--no-renumber"]) == 0
    printed = capsys.readouterr()
    assert "source 'src', target 'day', no weight" in printed.err
    assert "read as" in printed.out
    Path("b.txt").write_text("s;t\n1;2\n")
    options = ["--delimiter", ";", "--header", "--first-id", "1", "--columns", "t,s"]
    assert cli.main(["bfs", "b.txt", *options, "--source", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reached"] == 2
    assert cli.main(["bfs", "b.txt", "--no-header", "--delimiter", ";"]) == cli.REFUSED
    assert "'s' is no vertex number" in capsys.readouterr().err


def test_python_logs_it_and_keeps_it(caplog: pytest.LogCaptureFixture) -> None:
    Path("a.csv").write_text("src,dst\n7,8\n")
    with caplog.at_level(logging.INFO, "penstock"):
        found = bfs("a.csv", source="7")
    assert caplog.messages == [
        "read a.csv: 1 row: source 'src', target 'dst', no weight; ids renumbered, and kept as names"
    ]
    assert found.folder.reading == caplog.messages[0].partition(": ")[2]
    assert json.loads((found.folder.path / "graph.json").read_text())["reading"] == found.folder.reading
    with caplog.at_level(logging.INFO, "penstock"):
        bfs("a.csv", source="7")
    assert len(caplog.messages) == 1

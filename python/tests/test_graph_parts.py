"""Tables in several parts, and packed files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from graph_edges import edges_of, refusal
from penstock.errors import Error
from penstock.graph import resolve

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")


@pytest.fixture(autouse=True)
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def put(name: str, **columns: object) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), name)


def test_a_folder_of_parts_is_one_table() -> None:
    put("edges/part-0.parquet", src=[1, 2], dst=[2, 3], w=[1, 2])
    put("edges/part-1.snappy.parquet", w=[0.5], dst=[9], src=[1])
    put("edges/day=2/part-0.parquet", dst=[1], src=[9], w=[7])
    put("edges/other/part-0.parquet", x=[1], y=[2])  # no partition
    Path("edges/_SUCCESS").write_text("")
    Path("edges/.part-0.parquet.crc").write_text("x")
    expected = [("1", "2", 1.0), ("1", "9", 0.5), ("2", "3", 2.0), ("9", "1", 7.0)]
    graph = resolve("edges")
    assert edges_of(graph) == expected
    assert (graph.source, graph.called) == ("edges", "edges")
    assert graph.reading == (
        "4 rows: source 'src', target 'dst', weight 'w' (float32); ids renumbered, and kept as names"
    )
    refusal("edges/**/part-*.parquet", "read edges/other/part-0.parquet: ", columns="src,dst")
    before = graph.path
    put("edges/part-2.parquet", src=[3], dst=[1], w=[1])
    assert resolve("edges").path != before
    assert len(edges_of(resolve("edges"))) == 5


def test_a_pattern_names_parts() -> None:
    put("a-0.parquet", src=["x"], dst=["y"])
    put("a-1.parquet", src=["y"], dst=["z"])
    put("b-0.parquet", src=[1], dst=[2])
    assert edges_of(resolve("a-*.parquet")) == [("x", "y"), ("y", "z")]
    assert edges_of(resolve("a-[0].parquet")) == [("x", "y")]
    put("c[1].parquet", src=[1], dst=[2])
    assert edges_of(resolve("c[1].parquet")) == [("1", "2")]
    refusal("?-0.parquet", "read b-0.parquet: column 'src' of type int64, and of type string in a-0.parquet")
    with pytest.raises(
        FileNotFoundError, match=r"open x-\*\.parquet: no file has a name like that"
    ) as caught:
        resolve("x-*.parquet")
    assert isinstance(caught.value, Error)
    put("a-2.parquet", src=["y"], other=["z"])
    refusal("a-*.parquet", "read a-2.parquet: its columns 'src', 'other' are not those of a-0.parquet")
    Path("a-3.csv").write_text("src,dst\n1,2\n")
    refusal("a-*", "a-3.csv: several files are read together where all are parts of one table")
    for i in range(2):
        Path(f"e{i}.el").write_text("0 1\n")
    refusal("e*.el", "e0.el: several files are read together where all are parts of one table")
    assert edges_of(resolve("e1*")) == [(0, 1)]


def test_parts_of_text_have_a_header_each_or_one_for_all() -> None:
    Path("spark").mkdir()
    Path("spark/part-0.csv").write_text("dst,src\n1,2\n2,3\n")
    Path("spark/part-1.csv").write_text("dst,src\n3,1\n")
    Path("spark/part-2.csv.gz").write_bytes(gzip.compress(b"4,1\n"))
    assert edges_of(resolve("spark")) == [("1", "3"), ("1", "4"), ("2", "1"), ("3", "2")]
    Path("spark/part-3.csv").write_text("src,dst\n3,1\n")
    refusal("spark", "read spark/part-3.csv: its columns are not those of spark/part-0.csv")
    Path("spark/part-3.csv").write_text("1,2\n3,x\n")
    assert ("x", "3") in edges_of(resolve("spark"))
    Path("spark/part-3.csv").write_text("1,2\n3,\n")
    refusal("spark", "read spark/part-3.csv: row 2: nothing in column 'src'")
    Path("spark/part-4.parquet").write_text("")
    refusal("spark", "several files are read together")
    Path("plain").mkdir()
    for i in range(3):
        Path(f"plain/{i}").write_text(f"{i};{i + 1}\n")
    assert edges_of(resolve("plain", format="csv", delimiter=";")) == [(0, 1), (1, 2), (2, 3)]
    refusal("plain", "no graph folder", kind=FileNotFoundError)


def zstd(data: bytes) -> bytes:
    """In two frames."""
    library = pytest.importorskip("zstandard", reason="zstandard is not installed")
    half = len(data) // 2
    packed: bytes = library.compress(data[:half]) + library.compress(data[half:])
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}
RANDOM = np.random.default_rng(5).integers(0, 300, (4000, 2))
TEXTS = {
    "el": "".join(f"{a} {b}\n" for a, b in RANDOM),
    "csv": "".join(f"{a},{b}\n" for a, b in RANDOM),
    "tsv": "src\tdst\n" + "".join(f"{a}\t{b}\n" for a, b in RANDOM),
    "gr": "p sp 300 4000\n" + "".join(f"a {a + 1} {b + 1} 1\n" for a, b in RANDOM),
    "mtx": "%%MatrixMarket matrix coordinate pattern general\n300 300 4000\n"
    + "".join(f"{a + 1} {b + 1}\n" for a, b in RANDOM),
}


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("kind", TEXTS)
def test_all_text_may_be_packed(kind: str, packer: str) -> None:
    name = f"a.{kind}.{packer}"
    packed = PACKERS[packer](TEXTS[kind].encode())
    Path(name).write_bytes(packed)
    found = [(int(a), int(b)) for a, b, *_ in edges_of(resolve(name))]
    assert sorted(found) == sorted(map(tuple, RANDOM.tolist()))
    for bad in (packed[: len(packed) // 2], packed[:-3], b"no archive at all", b""):
        Path(name).write_bytes(bad)
        refusal(name, f"read {name}: ")


def test_without_zstandard_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    Path("a.el.zst").write_bytes(zstd(b"0 1\n1 2\n"))
    for module in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    refusal("a.el.zst", "read a.el.zst: it is packed by Zstandard: pip install zstandard")


@pytest.mark.parametrize("packer", ["bz2", "xz"])
@pytest.mark.parametrize("kind", ["el", "csv"])
def test_streams_follow_each_other_and_none_is_dropped(kind: str, packer: str) -> None:
    pytest.importorskip("pyarrow")
    packers: dict[str, Callable[[bytes], bytes]] = {"bz2": bz2.compress, "xz": lzma.compress}
    pack = packers[packer]
    head, space = ("src,dst\n", ",") if kind == "csv" else ("", " ")
    first = pack(f"{head}0{space}1\n".encode())
    second = pack(f"1{space}2\n".encode() * 3)
    path = Path(f"a.{kind}.{packer}")
    for between in (b"", bytes(8)):
        path.write_bytes(first + between + second + between)
        assert edges_of(resolve(path)) == [(0, 1), (1, 2), (1, 2), (1, 2)]
    for damaged in (b"\7" + second[1:], second[:-9], second[:20] + b"\7\7" + second[22:], b"more"):
        path.write_bytes(first + damaged)
        refusal(path, f"read {path}: ", "damaged" if kind == "el" else "Arrow cannot read it")


def test_parts_with_other_types_of_ids_are_named_with_both() -> None:
    put("edges/part-0.parquet", src=[1, 2], dst=[2, 3])
    put("edges/part-1.parquet", src=["1"], dst=["2"])
    refusal(
        "edges",
        "read edges/part-1.parquet: column 'src' of type string, and of type int64 in edges/part-0.parquet: "
        "write all parts",
    )

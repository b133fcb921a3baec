"""Readers of penstock.gnn.data, on small sources made by hand."""

from __future__ import annotations

import gzip
import os
import pickle
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import penstock
import pytest
from penstock.drafts import LOCK
from penstock.gnn import data as gnn_data

Array = npt.NDArray[Any]

NODES = 5
EDGES = np.array(
    [[0, 3, 4, 2, 3], [1, 1, 0, 2, 1]]
)  # one edge is there twice, one leads from a node to itself
IN_LISTS = [[4], [0, 3, 3], [2], [], []]
BOTH_WAYS = [[1, 4], [0, 3, 3], [2], [1, 1], [0]]
FEATURES = np.arange(15, dtype=np.float32).reshape(NODES, 3) / 4
LABELS = [1, -1, 0, 3, -1]
SPLITS = {"train": [3, 0], "valid": [2], "test": [1, 4]}


def in_lists(found: gnn_data.Dataset) -> list[list[int]]:
    """Sources of the edges into each node."""
    pointers, neighbors = found.load("pointers"), found.load("neighbors")
    return [neighbors[a:b].tolist() for a, b in pairwise(pointers)]


def check(found: gnn_data.Dataset, lists: list[list[int]] = IN_LISTS) -> None:
    assert gnn_data.open(found.folder, verify=True) == found
    assert (found.nodes, found.classes, found.seed) == (NODES, 4, None)
    assert in_lists(found) == lists
    assert np.load(found.features).tolist() == FEATURES.tolist()
    assert found.load("labels").tolist() == LABELS
    assert {name: found.load(name).tolist() for name in SPLITS} == SPLITS


def is_one_sentence(text: str) -> bool:
    return "\n" not in text and ". " not in text and not text.endswith(".") and text.count(": ") >= 1


def zipped(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def stored(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, values)


def put_splits(root: Path, name: str = "time") -> None:
    for part, ids in SPLITS.items():
        zipped(root / "split" / name / f"{part}.csv.gz", "".join(f"{each}\n" for each in ids))


def float_labels() -> Array:
    return np.where(np.array(LABELS) < 0, np.nan, LABELS).astype(np.float32)


def write_text(root: Path) -> Path:
    """As ogbn-products is unpacked."""
    zipped(root / "raw" / "num-node-list.csv.gz", f"{NODES}\n")
    zipped(root / "raw" / "edge.csv.gz", "".join(f"{a},{b}\n" for a, b in EDGES.T))
    zipped(root / "raw" / "node-feat.csv.gz", "\r\n".join(",".join(map(str, row)) for row in FEATURES))
    zipped(root / "raw" / "node-label.csv.gz", "".join(f"{each}\n" for each in float_labels()))
    put_splits(root)
    return root


def write_binary(root: Path, save: Callable[..., None] = np.savez) -> Path:
    """As ogbn-papers100M is unpacked."""
    (root / "raw").mkdir(parents=True)
    save(
        root / "raw" / "data.npz",
        edge_index=EDGES,
        node_feat=FEATURES,
        node_year=np.zeros((NODES, 1), np.int64),
        num_nodes_list=np.array([NODES]),
        num_edges_list=np.array([EDGES.shape[1]]),
    )
    save(root / "raw" / "node-label.npz", node_label=float_labels()[:, None])
    put_splits(root)
    return root


def write_papers(root: Path, splits: Any = None) -> Path:
    """MAG240M's papers and citations; split_dict.pt as torch.save writes it."""
    stored(root / "processed" / "paper" / "node_feat.npy", FEATURES.astype(np.float16))
    stored(root / "processed" / "paper" / "node_label.npy", float_labels())
    stored(root / "processed" / "paper___cites___paper" / "edge_index.npy", EDGES)
    names = {"train": "train", "valid": "valid", "test": "test-dev"}
    arrays = {names[name]: np.array(ids) for name, ids in SPLITS.items()}
    with zipfile.ZipFile(root / "split_dict.pt", "w") as archive:
        archive.writestr("split_dict/data.pkl", pickle.dumps(splits or arrays, protocol=2))
    return root


def write_igb(root: Path) -> Path:
    stored(root / "processed" / "paper" / "node_feat.npy", np.ones((10, 1024), np.float32))
    stored(root / "processed" / "paper" / "node_label_19.npy", np.arange(10.0))
    stored(root / "processed" / "paper__cites__paper" / "edge_index.npy", EDGES.T.copy())
    return root


def torch_data(**changed: Any) -> Any:
    torch = pytest.importorskip("torch", reason="needs torch")
    geometric = pytest.importorskip("torch_geometric.data", reason="needs torch_geometric")

    def mask(name: str) -> Any:
        return torch.tensor([node in SPLITS[name] for node in range(NODES)])

    given = {
        "x": torch.tensor(FEATURES),
        "y": torch.tensor(LABELS),
        "edge_index": torch.tensor(EDGES),
        "train_mask": mask("train"),
        "val_mask": mask("valid"),
        "test_mask": mask("test"),
    }
    return geometric.Data(
        **{name: value for name, value in {**given, **changed}.items() if value is not None}
    )


# What is converted.


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("memory", ["1MiB", "1GiB"])
def test_ogb_text(tmp_path: Path, undirected: bool, memory: str) -> None:
    source = write_text(tmp_path / "ogbn_tiny")
    found = gnn_data.from_ogb(source, tmp_path / "g", undirected=undirected, memory=memory)
    check(found, BOTH_WAYS if undirected else IN_LISTS)
    assert found.source == "OGB ogbn_tiny"
    assert not list(found.folder.glob("*.tmp"))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("undirected", [False, True])
def test_ogb_archives(tmp_path: Path, save: Callable[..., None], undirected: bool) -> None:
    source = write_binary(tmp_path / "papers", save)
    found = gnn_data.from_ogb(source, tmp_path / "g", undirected=undirected)
    check(found, BOTH_WAYS if undirected else IN_LISTS)
    assert not found.features.is_symlink()
    assert {path.suffix for path in found.folder.iterdir()} == {".npy", ".json"}


def test_mag240m_papers_are_linked(tmp_path: Path) -> None:
    source = write_papers(tmp_path / "mag")
    found = gnn_data.from_ogb(source, tmp_path / "deep" / "g")
    check(found)
    assert found.dtype == "float16"
    assert found.features.is_symlink()
    assert not found.features.readlink().is_absolute()
    assert found.features.resolve() == (source / "processed" / "paper" / "node_feat.npy").resolve()


def test_copied_features_stay_when_the_source_goes(tmp_path: Path) -> None:
    source = write_papers(tmp_path / "mag")
    linked = gnn_data.from_ogb(source, tmp_path / "linked")
    copied = gnn_data.from_ogb(source, tmp_path / "copied", copy=True)
    (source / "processed" / "paper" / "node_feat.npy").unlink()
    check(gnn_data.open(copied.folder))
    with pytest.raises(FileNotFoundError, match=r"it links to .*node_feat.npy: put that file back") as caught:
        gnn_data.open(linked.folder)
    assert is_one_sentence(str(caught.value))


@pytest.mark.parametrize("change", [np.asfortranarray, lambda a: a.astype(float), lambda a: a.astype(">f4")])
def test_features_of_another_form_are_converted(tmp_path: Path, change: Callable[[Array], Array]) -> None:
    source = write_papers(tmp_path / "mag")
    stored(source / "processed" / "paper" / "node_feat.npy", change(FEATURES))
    found = gnn_data.from_ogb(source, tmp_path / "g")
    check(found)
    assert (found.dtype, found.features.is_symlink()) == ("float32", False)


@pytest.mark.parametrize("edges", [EDGES.astype(np.int32), np.asfortranarray(EDGES), EDGES.astype(np.uint64)])
def test_edges_of_another_form_are_read(tmp_path: Path, edges: Array) -> None:
    source = write_papers(tmp_path / "mag")
    stored(source / "processed" / "paper___cites___paper" / "edge_index.npy", edges)
    check(gnn_data.from_ogb(source, tmp_path / "g"))


def test_igb(tmp_path: Path) -> None:
    source = write_igb(tmp_path / "small")
    found = gnn_data.from_igb(source, tmp_path / "g")
    assert (found.nodes, found.width, found.classes, found.source) == (10, 1024, 19, "IGB small")
    assert in_lists(found)[:NODES] == IN_LISTS
    assert [found.load(name).tolist() for name in SPLITS] == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    assert found.features.is_symlink()


def test_igb_without_headers_is_copied(tmp_path: Path) -> None:
    source = write_igb(tmp_path / "large")
    for name in ("node_feat", "node_label_19"):
        path = source / "processed" / "paper" / f"{name}.npy"
        np.load(path).astype(np.float32).tofile(path.with_suffix(".raw"))
        path.with_suffix(".raw").rename(path)
    found = gnn_data.from_igb(source, tmp_path / "g")
    assert np.load(found.features).tolist() == np.ones((10, 1024)).tolist()
    assert found.load("labels").tolist() == list(range(10))


@pytest.mark.parametrize("undirected", [False, True])
def test_pyg(tmp_path: Path, undirected: bool) -> None:
    splits = {name: sorted(ids) for name, ids in SPLITS.items()}
    found = gnn_data.from_pyg(torch_data(), tmp_path / "g", undirected=undirected)
    assert in_lists(found) == (BOTH_WAYS if undirected else IN_LISTS)
    assert {name: found.load(name).tolist() for name in SPLITS} == splits
    assert found.load("labels").tolist() == LABELS
    assert np.load(found.features).tolist() == FEATURES.tolist()


def test_pyg_in_other_types(tmp_path: Path) -> None:
    data = torch_data(val_mask=None, test_mask=None)
    data.x, data.y = data.x.bfloat16(), data.y[:, None].float()
    found = gnn_data.from_pyg(data, tmp_path / "g")
    assert (found.dtype, len(found.load("valid"))) == ("float32", 0)
    assert found.load("labels").tolist() == LABELS


def test_an_interrupt_removes_what_was_written(tmp_path: Path) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if what == "sorting edges":
            raise KeyboardInterrupt

    source = write_papers(tmp_path / "mag")
    with pytest.raises(KeyboardInterrupt):
        gnn_data.from_ogb(source, tmp_path / "g", progress=interrupt)
    assert list(tmp_path.iterdir()) == [source]


def test_a_killed_conversion_is_removed_by_the_next(tmp_path: Path) -> None:
    source = write_papers(tmp_path / "mag")
    abandoned = tmp_path / ".g-00000000"
    (abandoned / "draft").mkdir(parents=True)
    (abandoned / LOCK).touch()
    (abandoned / "draft" / "neighbors.npy").write_bytes(bytes(100))
    check(gnn_data.from_ogb(source, tmp_path / "g"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "mag"]


def test_a_folder_that_another_run_made_meanwhile_stays(tmp_path: Path) -> None:
    def other_run(what: str, done: int, total: int) -> None:
        (tmp_path / "g").mkdir(exist_ok=True)
        (tmp_path / "g" / "theirs").touch()

    source = write_papers(tmp_path / "mag")
    with pytest.raises(ValueError, match="g: it exists and is not empty: name a new folder"):
        gnn_data.from_ogb(source, tmp_path / "g", progress=other_run)
    assert [path.name for path in (tmp_path / "g").iterdir()] == ["theirs"]
    assert not list(tmp_path.glob(".*"))


# What is refused.


def with_text(file: str, text: str) -> Callable[[Path], None]:
    return lambda root: zipped(root / file, text)


def cut(file: str, by: int) -> Callable[[Path], None]:
    return lambda root: os.truncate(root / file, (root / file).stat().st_size - by)


def without(file: str) -> Callable[[Path], None]:
    return lambda root: (root / file).unlink()


def replaced(file: str, values: Any) -> Callable[[Path], None]:
    return lambda root: stored(root / file, values)


def piped(file: str) -> Callable[[Path], object]:
    def change(root: Path) -> None:
        (root / file).unlink()
        os.mkfifo(root / file)

    return change


def archived(**arrays: Any) -> Callable[[Path], None]:
    return lambda root: np.savez(root / "raw" / "data.npz", **arrays)


class Malice:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("exit 1",))


def changed(file: str, before: bytes, after: bytes) -> Callable[[Path], object]:
    """Bytes of a file overwritten."""
    return lambda root: (root / file).write_bytes((root / file).read_bytes().replace(before, after))


PAPER, CITES = "processed/paper/", "processed/paper___cites___paper/edge_index.npy"
REFUSALS: list[tuple[Callable[[Path], Path], Callable[[Path], object], type[Exception], str]] = [
    (write_text, without("raw/edge.csv.gz"), FileNotFoundError, "name the folder that OGB's archive"),
    (write_text, without("raw/node-feat.csv.gz"), FileNotFoundError, "node-feat.csv.gz: there is no such"),
    (write_text, without("split/time/test.csv.gz"), FileNotFoundError, "test.csv.gz: there is no such"),
    (write_text, without("split/time/train.csv.gz"), FileNotFoundError, "fetch the dataset again"),
    (write_text, cut("raw/edge.csv.gz", 3), ValueError, "its gzip is damaged"),
    (write_text, with_text("raw/edge.csv.gz", "0,1\n2\n"), ValueError, "a line is no 2 numbers"),
    (write_text, with_text("raw/edge.csv.gz", "0,1\n2,b\n"), ValueError, "a line is no 2 numbers"),
    (write_text, with_text("raw/edge.csv.gz", "0,1\n2\n3,4,0\n"), ValueError, "a line is no 2 numbers"),
    (write_text, with_text("raw/edge.csv.gz", "0,1\n2,\n"), ValueError, "a line is no 2 numbers"),
    (write_text, with_text("raw/edge.csv.gz", "0,1,2\n"), ValueError, "lines have no two numbers"),
    (write_text, with_text("raw/edge.csv.gz", "0,5\n"), ValueError, "edge.csv.gz: an edge names node 5, "),
    (write_text, with_text("raw/edge.csv.gz", ""), ValueError, "it has no lines"),
    (write_text, with_text("raw/node-label.csv.gz", "1\n" * 4), ValueError, "4 lines, and there are 5 nodes"),
    (write_text, with_text("raw/node-label.csv.gz", "1.5\n" * 5), ValueError, "a label is no class number"),
    (write_text, with_text("raw/node-label.csv.gz", "1,0\n" * 5), ValueError, "nodes have several labels"),
    (write_text, with_text("raw/num-node-list.csv.gz", "2\n3\n"), ValueError, "it has 2 graphs"),
    (write_text, with_text("split/time/valid.csv.gz", "9\n"), ValueError, "valid has node 9"),
    (write_text, lambda root: put_splits(root, "sales"), ValueError, "choose split='sales' or 'time'"),
    (write_binary, cut("raw/data.npz", 30), ValueError, "it is damaged"),
    (write_binary, without("raw/node-label.npz"), FileNotFoundError, "node-label.npz: there is no such"),
    (write_binary, archived(num_nodes_list=[5]), ValueError, "no array node_feat"),
    (write_binary, archived(num_nodes_list=[5], node_feat=FEATURES), ValueError, "no array edge_index"),
    (
        write_papers,
        piped(CITES),
        ValueError,
        "edge_index.npy: it is no file: fetch",
    ),
    (write_papers, without("split_dict.pt"), FileNotFoundError, "split_dict.pt: there is no such"),
    (write_papers, cut("split_dict.pt", 30), ValueError, "it is damaged"),
    (write_papers, replaced(PAPER + "node_label.npy", np.zeros(4)), ValueError, "give each of 5 nodes one"),
    (
        write_papers,
        replaced(PAPER + "node_feat.npy", np.zeros(5)),
        ValueError,
        "give floating-point features",
    ),
    (write_papers, replaced(PAPER + "node_feat.npy", np.array([None] * 5)), ValueError, "no numbers"),
    (write_papers, cut(PAPER + "node_feat.npy", 1), ValueError, "of its header"),
    (write_papers, changed(CITES, b"), }", b"  , }"), ValueError, r"edge_index.npy: it is no .npy file"),
    (write_papers, changed(CITES, b"(2, 5)", b"(-2,5)"), ValueError, r"its shape is \(-2, 5\)"),
    (write_binary, changed("raw/data.npz", b"), }", b"  , }"), ValueError, r"it is no .npy file"),
    (
        write_binary,
        changed("raw/data.npz", b"PK\x01\x02-\x03-\0", b"PK\x01\x02-\x03\xad\0"),
        ValueError,
        r"it is damaged \(zip file version 17.3\)",
    ),
    (write_papers, replaced(CITES, EDGES.T), ValueError, r"integers of shape \(2, edges\)"),
    (write_papers, replaced(CITES, -EDGES), ValueError, "names node -"),
]


@pytest.mark.parametrize(("write", "damage", "kind", "part"), REFUSALS)
def test_a_damaged_source_is_one_sentence(
    tmp_path: Path,
    write: Callable[[Path], Path],
    damage: Callable[[Path], object],
    kind: type[Exception],
    part: str,
) -> None:
    source = write(tmp_path / "source")
    damage(source)
    with pytest.raises(kind, match=part) as caught:
        gnn_data.from_ogb(source, tmp_path / "g")
    assert is_one_sentence(str(caught.value)), caught.value
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("splits", "part"),
    [
        ({"train": Malice()}, "which is no NumPy array"),
        ([1], "holds no dictionary"),
        ({"train": np.array([1])}, "no node ids for valid"),
    ],
)
def test_splits_run_no_code(tmp_path: Path, splits: Any, part: str) -> None:
    source = write_papers(tmp_path / "mag", splits)
    with pytest.raises(ValueError, match=part) as caught:
        gnn_data.from_ogb(source, tmp_path / "g")
    assert is_one_sentence(str(caught.value))


def test_torch_writes_splits_that_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    source = write_papers(tmp_path / "mag")
    arrays = {"train": np.array([3, 0]), "valid": np.array([2]), "test-dev": np.array([1, 4])}
    for form, zipped_file in (("new", True), ("old", False)):
        torch.save(arrays, source / "split_dict.pt", _use_new_zipfile_serialization=zipped_file)
        check(gnn_data.from_ogb(source, tmp_path / form))


@pytest.mark.parametrize(
    ("damage", "kind", "part"),
    [
        (without("processed/paper/node_feat.npy"), FileNotFoundError, "node_feat.npy: there is no such"),
        (without("processed/paper__cites__paper/edge_index.npy"), FileNotFoundError, "edge_index.npy: there"),
        (replaced("processed/paper__cites__paper/edge_index.npy", EDGES), ValueError, r"shape \(edges, 2\)"),
        (
            lambda root: (root / PAPER / "node_feat.npy").write_bytes(b"x" * 99),
            ValueError,
            "rows of 4096 bytes",
        ),
        (replaced("processed/paper/node_label_19.npy", np.zeros(9)), ValueError, "give each of 10 nodes one"),
    ],
)
def test_a_damaged_igb_is_one_sentence(
    tmp_path: Path, damage: Callable[[Path], object], kind: type[Exception], part: str
) -> None:
    source = write_igb(tmp_path / "small")
    damage(source)
    with pytest.raises(kind, match=part) as caught:
        gnn_data.from_igb(source, tmp_path / "g")
    assert is_one_sentence(str(caught.value)), caught.value
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("changed", "kind", "part"),
    [
        ({"x": None}, ValueError, "it has no x"),
        ({"train_mask": None}, ValueError, "it has no train_mask"),
        ({"y": [1, 2]}, TypeError, "it is a list: give a tensor"),
        ({"edge_index": EDGES.T}, TypeError, "it is a ndarray: give a tensor"),
    ],
)
def test_data_without_its_parts_are_one_sentence(
    tmp_path: Path, changed: dict[str, Any], kind: type[Exception], part: str
) -> None:
    with pytest.raises(kind, match=part) as caught:
        gnn_data.from_pyg(torch_data(**changed), tmp_path / "g")
    assert is_one_sentence(str(caught.value)), caught.value
    assert not list(tmp_path.iterdir())


def test_data_of_other_shapes_are_one_sentence(tmp_path: Path) -> None:
    changes: list[tuple[str, Callable[[Any], Any]]] = [
        ("train_mask", lambda a: a[:4]),
        ("edge_index", lambda a: a.T),
        ("edge_index", lambda a: a + 1),
        ("x", lambda a: a[0]),
        ("y", lambda a: a + 0.5),
        ("y", lambda a: a[:4]),
    ]
    for name, change in changes:
        data = torch_data()
        data[name] = change(data[name])
        with pytest.raises(ValueError) as caught:
            gnn_data.from_pyg(data, tmp_path / "g")
        assert is_one_sentence(str(caught.value)), caught.value


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        ("x", lambda a: a.cfloat(), r"data\.x: it has complex64: give real numbers"),
        ("x", lambda a: a.to_sparse(), r"data\.x: it is a sparse_coo tensor: give a dense one"),
        ("x", lambda a: a.to("meta"), r"data\.x: it is a meta tensor: give a dense one"),
        ("y", lambda a: a[:4], r"data\.y: it has 4 values: give each of 5 nodes one"),
    ],
)
def test_data_without_real_numbers_for_each_node_are_refused(
    tmp_path: Path, name: str, change: Callable[[Any], Any], part: str
) -> None:
    data = torch_data()
    data[name] = change(data[name])
    with pytest.raises((TypeError, ValueError), match=part):
        gnn_data.from_pyg(data, tmp_path / "g")
    assert not list(tmp_path.iterdir())


def test_bad_arguments_are_one_sentence(tmp_path: Path) -> None:
    source = write_text(tmp_path / "ogb")
    with pytest.raises(ValueError, match=r"memory 64\.0 KiB: it is too small"):
        gnn_data.from_ogb(source, tmp_path / "g", memory="64KiB")
    with pytest.raises(ValueError, match=r"split 'sales': .* has time: choose"):
        gnn_data.from_ogb(source, tmp_path / "g", split="sales")
    with pytest.raises(ValueError, match="classes 20: choose 19 or 2983"):
        gnn_data.from_igb(source, tmp_path / "g", classes=20)
    with pytest.raises(penstock.Error, match="there is no such file"):
        gnn_data.from_ogb(tmp_path / "none", tmp_path / "g")

"""Datasets of several node and edge types: what readers convert, what is drawn, how folders are checked."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from penstock import tiering
from penstock.gnn import data as gnn_data

Array = npt.NDArray[Any]
EdgeType = tuple[str, str, str]
COUNTS = {"author": 30, "paper": 50, "topic": 7}
FIRST = {"author": 0, "paper": 30, "topic": 80}
SIZES: dict[EdgeType, int] = {
    ("author", "writes", "paper"): 150,
    ("paper", "cites", "paper"): 200,
    ("paper", "has", "topic"): 60,
}
SPLITS = {"train": [0, 3, 49], "valid": [2], "test": [1, 4]}
WIDTH = 3


class Library:
    def __init__(self) -> None:
        draw = np.random.default_rng(5)
        self.ends = {
            kind: np.stack([draw.integers(0, COUNTS[kind[0]], size), draw.integers(0, COUNTS[kind[2]], size)])
            for kind, size in SIZES.items()
        }
        self.features = {
            name: draw.integers(-8, 8, (COUNTS[name], WIDTH)).astype(np.float32) / 4
            for name in ("author", "paper")
        }
        self.labels = draw.integers(-1, 4, COUNTS["paper"])

    def triples(self, undirected: bool = False) -> list[tuple[EdgeType, int, int]]:
        """Type and ends of each edge, in the numbering of all nodes."""
        found = []
        for kind, (sources, targets) in self.ends.items():
            a, b = (sources + FIRST[kind[0]]).tolist(), (targets + FIRST[kind[2]]).tolist()
            found += [(kind, *pair) for pair in zip(a, b, strict=True)]
            if undirected:
                same = kind[0] == kind[2]
                back = kind if same else (kind[2], f"rev_{kind[1]}", kind[0])
                found += [(back, y, x) for x, y in zip(a, b, strict=True) if not same or x != y]
        return found

    def check(self, found: gnn_data.Dataset, undirected: bool = False) -> None:
        assert gnn_data.open(found.folder, verify=True) == found
        assert triples(found) == sorted(self.triples(undirected))
        assert {name: len(numbers) for name, numbers in found.node_types.items()} == COUNTS
        assert found.without_features == ("topic",)
        features = np.load(found.features)
        for name, numbers in found.node_types.items():
            rows = features[numbers.start : numbers.stop]
            assert rows.tolist() == self.features.get(name, np.zeros((COUNTS[name], WIDTH))).tolist()
        papers = found.node_types["paper"]
        labels = np.full(found.nodes, -1)
        labels[papers.start : papers.stop] = self.labels
        assert found.load("labels").tolist() == labels.tolist()
        for name, ids in SPLITS.items():
            assert (found.load(name) - papers.start).tolist() == ids

    def hetero_data(self) -> Any:
        torch = pytest.importorskip("torch", reason="needs torch")
        geometric = pytest.importorskip("torch_geometric.data", reason="needs torch_geometric")
        made = geometric.HeteroData()
        for name, count in COUNTS.items():
            made[name].num_nodes = count
            if name in self.features:
                made[name].x = torch.tensor(self.features[name])
        made["paper"].y = torch.tensor(self.labels)
        for name, mask in (("train", "train_mask"), ("valid", "val_mask"), ("test", "test_mask")):
            made["paper"][mask] = torch.zeros(COUNTS["paper"], dtype=torch.bool)
            made["paper"][mask][SPLITS[name]] = True
        for kind, ends in self.ends.items():
            made[kind].edge_index = torch.tensor(ends)
        return made

    def write_text(self, root: Path) -> Path:
        """As ogbn-mag is unpacked."""
        raw = root / "raw"
        zipped(raw / "num-node-dict.csv.gz", [list(COUNTS), list(COUNTS.values())])
        zipped(raw / "triplet-type-list.csv.gz", list(SIZES))
        for kind, ends in self.ends.items():
            zipped(raw / "relations" / "___".join(kind) / "edge.csv.gz", ends.T.tolist())
        for name, rows in self.features.items():
            zipped(raw / "node-feat" / name / "node-feat.csv.gz", rows.tolist())
        labels = np.where(self.labels < 0, np.nan, self.labels)
        zipped(raw / "node-label" / "paper" / "node-label.csv.gz", labels[:, None].tolist())
        for name, ids in SPLITS.items():
            zipped(root / "split" / "time" / "paper" / f"{name}.csv.gz", [[each] for each in ids])
        return root

    def write_mag240m(self, root: Path) -> Path:
        """Authors and topics have no features there."""
        papers = root / "processed" / "paper"
        stored(papers / "node_feat.npy", self.features["paper"].astype(np.float16))
        stored(papers / "node_label.npy", np.where(self.labels < 0, np.nan, self.labels))
        for kind, ends in self.ends.items():
            stored(root / "processed" / "___".join(kind) / "edge_index.npy", ends)
        splits = {name: np.array(ids) for name, ids in SPLITS.items()}
        for name, content in (("split_dict", splits), ("meta", {**COUNTS, "num_classes": 4})):
            with zipfile.ZipFile(root / f"{name}.pt", "w") as archive:
                archive.writestr(f"{name}/data.pkl", pickle.dumps(content, protocol=2))
        return root

    def write_igb(self, root: Path) -> Path:
        """Features are 1024 wide there, and all types have some."""
        for name, count in COUNTS.items():
            stored(root / "processed" / name / "node_feat.npy", np.full((count, 1024), count, np.float32))
        stored(root / "processed" / "paper" / "node_label_19.npy", np.maximum(self.labels, 0).astype(float))
        for kind, ends in self.ends.items():
            stored(root / "processed" / "__".join(kind) / "edge_index.npy", ends.T.copy())
        return root


def stored(path: Path, values: Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, values)


def zipped(path: Path, rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()))


def triples(found: gnn_data.Dataset) -> list[tuple[EdgeType, int, int]]:
    targets = np.repeat(np.arange(found.nodes), np.diff(found.load("pointers")))
    kinds = [found.edge_types[number] for number in found.load("relations")]
    return sorted(zip(kinds, found.load("neighbors").tolist(), targets.tolist(), strict=True))


def in_their_types(found: gnn_data.Dataset) -> list[tuple[EdgeType, int, int]]:
    first = {name: numbers.start for name, numbers in found.node_types.items()}
    return sorted((kind, a - first[kind[0]], b - first[kind[2]]) for kind, a, b in triples(found))


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


# What readers convert


@pytest.mark.parametrize("undirected", [False, True])
def test_hetero_data(library: Library, tmp_path: Path, undirected: bool) -> None:
    found = gnn_data.from_pyg(library.hetero_data(), tmp_path / "g", undirected=undirected)
    library.check(found, undirected)
    assert found.edge_types[:1] == (("author", "writes", "paper"),)
    assert found.node_types["topic"] == range(80, 87)


@pytest.mark.parametrize("undirected", [False, True])
def test_ogb_text_of_several_types(library: Library, tmp_path: Path, undirected: bool) -> None:
    source = library.write_text(tmp_path / "ogbn_mag")
    found = gnn_data.from_ogb(source, tmp_path / "g", undirected=undirected)
    library.check(found, undirected)
    assert found.source == "OGB ogbn_mag"
    assert [path.name for path in found.folder.iterdir() if path.is_dir() or path.suffix == ".tmp"] == []


def test_mag240m_of_all_types(library: Library, tmp_path: Path) -> None:
    source = library.write_mag240m(tmp_path / "mag240m")
    found = gnn_data.from_ogb(source, tmp_path / "g", hetero=True)
    assert (found.dtype, list(found.node_types)) == ("float16", ["paper", "author", "topic"])
    by_type = [(kind, a, b) for kind, pairs in library.ends.items() for a, b in pairs.T.tolist()]
    assert in_their_types(found) == sorted(by_type)
    features = np.load(found.features)
    assert features[:50].tolist() == library.features["paper"].tolist()
    assert not features[50:].any()
    assert found.load("labels")[:50].tolist() == library.labels.tolist()
    assert found.load("labels")[50:].max() == -1
    papers = gnn_data.from_ogb(source.rename(tmp_path / "again"), tmp_path / "papers", hetero=True)
    assert papers.edges == found.edges
    (tmp_path / "again" / "meta.pt").write_bytes((tmp_path / "again" / "split_dict.pt").read_bytes())
    with pytest.raises(ValueError, match=r"meta\.pt: it has no number of nodes for author"):
        gnn_data.from_ogb(tmp_path / "again", tmp_path / "h", hetero=True)
    with pytest.raises(ValueError, match="is not MAG240M"):
        gnn_data.from_ogb(tmp_path, tmp_path / "h", hetero=True)


def test_igb_of_all_types(library: Library, tmp_path: Path) -> None:
    found = gnn_data.from_igb(library.write_igb(tmp_path / "tiny"), tmp_path / "g", hetero=True)
    assert (found.classes, found.width, list(found.node_types)) == (19, 1024, ["paper", "author", "topic"])
    by_type = [(kind, a, b) for kind, pairs in library.ends.items() for a, b in pairs.T.tolist()]
    assert in_their_types(found) == sorted(by_type)
    counts = np.load(found.features)[:, 0]
    for name, numbers in found.node_types.items():
        assert (counts[numbers.start : numbers.stop] == COUNTS[name]).all()
    assert [len(found.load(name)) for name in SPLITS] == [30, 10, 10]


def test_edges_that_do_not_fit_memory_are_merged_in_parts(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    geometric = pytest.importorskip("torch_geometric.data", reason="needs torch_geometric")
    draw = np.random.default_rng(0)
    data = geometric.Data(
        x=torch.zeros(30_000, 1),
        y=torch.zeros(30_000, dtype=torch.long),
        edge_index=torch.tensor(draw.integers(0, 30_000, (2, 100_000))),
        edge_type=torch.tensor(draw.integers(0, 3, 100_000)),
        train_mask=torch.ones(30_000, dtype=torch.bool),
    )
    found, other = (
        gnn_data.from_pyg(data, tmp_path / memory, memory=memory) for memory in ("1MiB", "256MiB")
    )
    for name in ("pointers", "neighbors", "relations"):
        assert np.array_equal(found.load(name), other.load(name))
    sources, targets = data.edge_index.tolist()
    kinds = [("node", str(kind), "node") for kind in data.edge_type.tolist()]
    assert triples(found) == sorted(zip(kinds, sources, targets, strict=True))
    assert (found.edge_types, found.node_types) == (
        (("node", "0", "node"), ("node", "1", "node"), ("node", "2", "node")),
        {"node": range(30_000)},
    )


def test_wrong_data_of_types_is_one_sentence(library: Library, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")

    def changed(change: Callable[[Any], None]) -> Any:
        data = library.hetero_data()
        change(data)
        return data

    def wide(data: Any) -> None:
        data["author"].x = torch.zeros(30, 5)

    def few(data: Any) -> None:
        data["paper"].y = data["paper"].y[:4]

    def no_mask(data: Any) -> None:
        del data["paper"].train_mask

    def two_masks(data: Any) -> None:
        data["author"].train_mask = torch.ones(30, dtype=torch.bool)

    def no_node(data: Any) -> None:
        data["paper", "has", "topic"].edge_index[1, 3] = 7

    def no_count(data: Any) -> None:
        data["venue"].name = "none"

    cases = [
        (wide, r"features of paper: they are float32 of shape \(50, 3\): .* shape \(50, 5\), as wide as"),
        (few, "it has 4 values: give each of 50 nodes one"),
        (no_mask, "no type of nodes has train_mask"),
        (two_masks, "author and paper has train_mask"),
        (no_node, "names node 7 of topic, and these are 0 to 6"),
        (no_count, "neither x nor num_nodes"),
    ]
    for change, words in cases:
        with pytest.raises(ValueError, match=words) as raised:
            gnn_data.from_pyg(changed(change), tmp_path / "g")
        assert "\n" not in str(raised.value)
        assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("num-node-dict.csv.gz", "author,paper\n3\n", "no line of types and one of their numbers"),
        ("num-node-dict.csv.gz", "author,topic\n30,7\n", "no single type of nodes has labels"),
        ("num-node-dict.csv.gz", "author,paper\n30,50\n", "no nodes of type topic"),
        ("triplet-type-list.csv.gz", "author,paper\n", "a line is no three names"),
        ("relations/paper___has___topic/edge.csv.gz", "1,2,3\n", "lines have no two numbers"),
        (
            "relations/paper___has___topic/edge.csv.gz",
            "1,9\n",
            "has___topic/edge.csv.gz: .* names node 9 of topic",
        ),
        ("node-feat/paper/node-feat.csv.gz", "1,2,3\n", "features of paper: they are float32"),
    ],
)
def test_wrong_text_of_types_is_one_sentence(
    file: str, text: str, words: str, library: Library, tmp_path: Path
) -> None:
    source = library.write_text(tmp_path / "source")
    (source / "raw" / file).write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=words) as raised:
        gnn_data.from_ogb(source, tmp_path / "g")
    assert "\n" not in str(raised.value)


# What is drawn


def test_relations_shift_the_classes_of_neighbours(tmp_path: Path) -> None:
    options: dict[str, Any] = {"nodes": 20_000, "width": 4, "classes": 8, "homophily": 0.8, "relations": 4}
    found = gnn_data.generate(tmp_path / "a", threads=1, **options)
    other = gnn_data.generate(tmp_path / "b", threads=3, **options)
    for name in ("neighbors", "relations", "labels"):
        assert np.array_equal(found.load(name), other.load(name))
    assert gnn_data.open(found.folder, verify=True).edge_types[1] == ("node", "1", "node")
    labels, relations = found.load("labels"), found.load("relations")
    targets = np.repeat(np.arange(found.nodes), np.diff(found.load("pointers")))
    ahead = (labels[found.load("neighbors")] - labels[targets]) % 8
    for relation in range(4):
        of_relation = ahead[relations == relation]
        assert len(of_relation) == pytest.approx(found.edges / 4, rel=0.05)
        assert (of_relation == 2 * relation).mean() == pytest.approx(0.8, abs=0.01)
    one = gnn_data.generate(tmp_path / "c", **{**options, "relations": 1})
    assert (one.edge_types, one.node_types, one.relations.exists()) == ((), {}, False)
    with pytest.raises(ValueError, match="relations 257"):
        gnn_data.generate(tmp_path / "d", **{**options, "relations": 257})


# Folders


def test_a_reordered_dataset_keeps_the_types_of_edges(library: Library, tmp_path: Path) -> None:
    found = gnn_data.from_ogb(library.write_text(tmp_path / "mag"), tmp_path / "g")
    scores = np.random.default_rng(1).random(found.nodes)
    made = tiering.reorder(found, scores, tmp_path / "ordered")
    ordered = gnn_data.open(made, verify=True)
    assert (ordered.edge_types, ordered.node_types) == (found.edge_types, {})
    assert ordered.without_features == ()
    order = np.load(made.order)
    back = [(kind, int(order[a]), int(order[b])) for kind, a, b in triples(ordered)]
    assert sorted(back) == triples(found)


def test_damaged_types_are_refused(library: Library, tmp_path: Path) -> None:
    found = gnn_data.from_ogb(library.write_text(tmp_path / "mag"), tmp_path / "g")
    facts = json.loads((found.folder / "dataset.json").read_text())
    relations = found.load("relations")
    for change, words in (
        ({"node_types": {"paper": 3}}, "node_types have 3 nodes, and there are 87"),
        ({"node_types": {"paper": "3"}}, "no numbers of nodes"),
        ({"without_features": ["paper", "venue"]}, "no list of its node_types"),
        ({"without_features": "paper"}, "no list of its node_types"),
        ({"edge_types": [["a", "b"]]}, "no list of source type, name and target type"),
    ):
        (found.folder / "dataset.json").write_text(json.dumps({**facts, **change}))
        with pytest.raises(ValueError, match=words):
            gnn_data.open(found.folder)
    (found.folder / "dataset.json").write_text(json.dumps(facts))
    np.save(found.relations, relations + np.uint8(3))
    with pytest.raises(ValueError, match="numbers of edge types are 0 to 2"):
        gnn_data.open(found.folder, verify=True)
    np.save(found.relations, relations[:-1])
    with pytest.raises(ValueError, match="uint8 of shape"):
        gnn_data.open(found.folder)
    found.relations.unlink()
    with pytest.raises(FileNotFoundError, match=r"relations\.npy: there is no such file"):
        gnn_data.open(found.folder)

"""Datasets of the Open Graph Benchmark, as its archives unpack, to dataset folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from penstock.callbacks import Progress
from penstock.drafts import draft_folder

from .archives import npz_member, npz_names, read_torch_arrays
from .converting import Parts, Target, checked_options, write_parts
from .csv_gz import read_ids, read_words, store_columns
from .dataset import SPLITS, Dataset, EdgeType, open_dataset
from .edges import Edges, file_edges
from .npy import Npy, missing, read_npy, read_pieces
from .typed import NodeType, TypedParts, edges_of_types, write_typed_parts

Ids = npt.NDArray[np.int64]
_REMEDY = "fetch the dataset again"
_SPLITS = "split_dict.pt"  # of MAG240M


def from_ogb(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    undirected: bool = False,
    copy: bool = False,
    split: str | None = None,
    hetero: bool = False,
    memory: SupportsIndex | str = "1GiB",
    progress: Progress | None = None,
) -> Dataset:
    """Convert a dataset for node classification of the Open Graph Benchmark.

    It has one of four layouts: gzipped text (ogbn-products, ogbn-arxiv), gzipped text of several types
    (ogbn-mag), raw/data.npz (ogbn-papers100M), or MAG240M's files of papers and citations. Of several types,
    nodes without features get zeros.

    Args:
        source: The folder that the archive unpacks to, with `raw` and `split`, or with `processed`.
        folder: A new one; it appears when all is written.
        undirected: Add the reverse of each edge, once for an edge of a node to itself. An edge whose reverse
            is there already is then there twice. Reverses of edges between two node types are an edge type
            of their own, `rev_` and its name.
        copy: Copy features that are a .npy file already, in place of a link to it; those of several types are
            copied always.
        split: A folder of `split`, where there are several.
        hetero: Of MAG240M, convert authors and institutions, too; ogbn-mag is converted with all its types.
        memory: Bytes for edges that are sorted and numbers that are converted at once; 8 bytes for each node
            come on top.
        progress: Called with what is done, how much of it, and of how much.

    Returns:
        The dataset, opened.

    Raises:
        FileNotFoundError: A file of the source is missing.
        ValueError, TypeError: For a bad argument, a source that is damaged, or a folder that is not empty.
        penstock.Error: A file cannot be read or written.
    """
    options = checked_options(undirected, copy, memory, progress)
    root = Path(source)
    with draft_folder("convert to", folder) as draft:
        target = Target(draft, Path(folder).resolve(), options)
        name = f"OGB {root.name}"
        if (root / "raw" / "triplet-type-list.csv.gz").exists():
            write_typed_parts(target, _typed_text(root, split, target), name)
        elif hetero:
            write_typed_parts(target, _typed_papers(root), name)
        else:
            write_parts(target, _parts(root, split, target), name)
    return open_dataset(folder)


def _parts(root: Path, split: str | None, target: Target) -> Parts:
    if (root / "raw" / "data.npz").exists():
        return _binary(root, split, target)
    if (root / "raw" / "edge.csv.gz").exists():
        return _text(root, split, target)
    if (root / "processed" / "paper").is_dir():
        return _papers(root)
    raise missing(
        root / "raw" / "data.npz",
        "name the folder that OGB's archive unpacks to, with raw/data.npz, raw/edge.csv.gz, "
        "raw/triplet-type-list.csv.gz or processed/paper",
    )


def _typed_text(root: Path, split: str | None, target: Target) -> TypedParts:
    raw, memory = root / "raw", target.options.memory
    counts = _counts_of_types(raw / "num-node-dict.csv.gz")
    labels = sorted(raw.glob("node-label/*/node-label.csv.gz"))
    if len(labels) != 1 or labels[0].parent.name not in counts:
        raise ValueError(f"read {raw / 'node-label'}: no single type of nodes has labels: {_REMEDY}")
    own = labels[0].parent.name
    splits, where = _splits(root, split, memory, own)
    store_columns(labels[0], target.draft / "label.tmp", np.float64, memory)
    nodes = []
    for number, name in enumerate(counts):
        features = raw / "node-feat" / name / "node-feat.csv.gz"
        stored = target.draft / f"feat{number}.tmp"
        if features.exists():
            target.report(f"reading features of {name}", number, len(counts))
            store_columns(features, stored, np.float32, memory)
        nodes.append(NodeType(name, counts[name], read_npy(stored) if features.exists() else None))
    edges: dict[EdgeType, Edges] = {}
    triplets = read_words(raw / "triplet-type-list.csv.gz")
    for number, triplet in enumerate(triplets):
        if len(triplet) != 3:
            raise ValueError(f"read {raw / 'triplet-type-list.csv.gz'}: a line is no three names: {_REMEDY}")
        source, kind, sink = triplet
        path = raw / "relations" / "___".join(triplet) / "edge.csv.gz"
        target.report(f"reading edges {kind}", number, len(triplets))
        store_columns(path, target.draft / f"edge{number}.tmp", np.int64, memory)
        found = read_npy(target.draft / f"edge{number}.tmp")
        if found.shape[1] != 2:
            raise ValueError(f"read {path}: lines have no two numbers: {_REMEDY}")
        edges[source, kind, sink] = file_edges(found, pairs=True, read_from=path)
    return TypedParts(nodes, edges, own, read_npy(target.draft / "label.tmp"), splits, where)


def _counts_of_types(path: Path) -> dict[str, int]:
    """Nodes of each type."""
    lines = read_words(path)
    try:
        (names, counts) = lines
        return {name: int(count) for name, count in zip(names, counts, strict=True)}
    except ValueError:
        raise ValueError(f"read {path}: it is no line of types and one of their numbers: {_REMEDY}") from None


def _text(root: Path, split: str | None, target: Target) -> Parts:
    raw, memory = root / "raw", target.options.memory
    nodes = _one_graph(read_ids(raw / "num-node-list.csv.gz", memory), raw / "num-node-list.csv.gz")
    splits, where = _splits(root, split, memory)
    found: dict[str, Npy] = {}
    for name, file, dtype in (
        ("label", "node-label.csv.gz", np.float64),  # NaN where there is none
        ("feat", "node-feat.csv.gz", np.float32),
        ("edge", "edge.csv.gz", np.int64),
    ):
        target.report(f"reading {file}", len(found), 3)
        store_columns(raw / file, target.draft / f"{name}.tmp", dtype, memory)
        found[name] = read_npy(target.draft / f"{name}.tmp")
        rows = found[name].rows
        if name != "edge" and rows != nodes:
            raise ValueError(
                f"read {raw / file}: it has {rows} lines, and there are {nodes} nodes: {_REMEDY}"
            )
    if found["label"].shape[1] != 1:
        raise ValueError(
            f"read {raw / 'node-label.csv.gz'}: nodes have several labels: convert one with one label"
        )
    if found["edge"].shape[1] != 2:
        raise ValueError(f"read {raw / 'edge.csv.gz'}: lines have no two numbers: {_REMEDY}")
    edges = file_edges(found["edge"], pairs=True, read_from=raw / "edge.csv.gz")
    return Parts(nodes, edges, found["feat"], found["label"], splits, where)


def _binary(root: Path, split: str | None, target: Target) -> Parts:
    raw, draft = root / "raw", target.draft
    archive = raw / "data.npz"
    if "node_feat" not in npz_names(archive):
        raise ValueError(
            f"read {archive}: it has no array node_feat: convert a dataset whose nodes have features"
        )
    counts = npz_member(archive, "num_nodes_list", draft)
    nodes = _one_graph(np.concatenate([piece for _, piece in read_pieces(counts, 1 << 10)]), archive)
    splits, where = _splits(root, split, target.options.memory)
    labels = npz_member(raw / "node-label.npz", "node_label", draft)
    edges = file_edges(npz_member(archive, "edge_index", draft), pairs=False, read_from=archive)
    return Parts(nodes, edges, npz_member(archive, "node_feat", draft), labels, splits, where)


def _papers(root: Path) -> Parts:
    """MAG240M's papers and citations; authors and institutions are left out."""
    features, labels, splits = _papers_alone(root)
    cites = read_npy(root / "processed" / "paper___cites___paper" / "edge_index.npy", _REMEDY)
    return Parts(features.rows, file_edges(cites, pairs=False), features, labels, splits, root / _SPLITS)


def _typed_papers(root: Path) -> TypedParts:
    """All of MAG240M."""
    if not (root / "processed" / "paper").is_dir():
        raise ValueError(f"hetero: {root} is not MAG240M, whose folder has processed/paper: leave it out")
    features, labels, splits = _papers_alone(root)
    meta = read_torch_arrays(root / "meta.pt")
    edges = edges_of_types(root / "processed", "___", pairs=False)
    nodes = [NodeType("paper", features.rows, features)]
    for name in sorted({end for kind in edges for end in (kind[0], kind[2])} - {"paper"}):
        if not isinstance(meta.get(name), int):
            raise ValueError(f"read {root / 'meta.pt'}: it has no number of nodes for {name}: {_REMEDY}")
        nodes.append(NodeType(name, meta[name], None))
    return TypedParts(nodes, edges, "paper", labels, splits, root / _SPLITS)


def _papers_alone(root: Path) -> tuple[Npy, Npy, dict[str, Ids]]:
    """MAG240M's features, labels and splits."""
    papers, where = root / "processed" / "paper", root / _SPLITS
    found = read_torch_arrays(where)
    test = next((name for name in ("test", "test-dev", "test-whole") if name in found), "test")
    splits = {
        name: _ids(found, key, where) for name, key in zip(SPLITS, ("train", "valid", test), strict=True)
    }
    return read_npy(papers / "node_feat.npy", _REMEDY), read_npy(papers / "node_label.npy", _REMEDY), splits


def _ids(found: Mapping[str, object], name: str, where: Path) -> Ids:
    ids = found.get(name)
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(f"read {where}: it has no node ids for {name}: {_REMEDY}")
    return ids.astype(np.int64)


def _one_graph(counts: npt.NDArray[np.integer], where: Path) -> int:
    if counts.size != 1:
        raise ValueError(f"read {where}: it has {counts.size} graphs: convert a dataset of one graph")
    return int(counts.reshape(-1)[0])


def _splits(root: Path, split: str | None, memory: int, kind: str = "") -> tuple[dict[str, Ids], Path]:
    """Ids of each split, and the folder that they are from. kind: The type of nodes, of several."""
    place = root / "split"
    names = sorted(path.name for path in place.glob("*") if (path / kind / "train.csv.gz").exists())
    if split is not None and split not in names:
        raise ValueError(
            f"split '{split}': {place} has {', '.join(names) or 'none'}: choose one that is there"
        )
    if split is None and len(names) > 1:
        raise ValueError(f"read {place}: it has several splits: choose split={' or '.join(map(repr, names))}")
    if not names:
        raise missing(place / "*" / "train.csv.gz", _REMEDY)
    chosen = place / (split or names[0]) / kind
    return {name: read_ids(chosen / f"{name}.csv.gz", memory) for name in SPLITS}, chosen

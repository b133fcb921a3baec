"""The Illinois Graph Benchmark's papers and citations, to dataset folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import SupportsIndex

import numpy as np

from penstock.callbacks import Progress
from penstock.checks import checked_integer
from penstock.drafts import draft_folder

from .converting import Ids, Parts, Target, checked_options, has_header, write_parts
from .dataset import Dataset, open_dataset
from .edges import file_edges
from .npy import Npy, read_npy
from .typed import NodeType, TypedParts, edges_of_types, write_typed_parts

_REMEDY = "fetch the dataset again"
_WIDTH = 1024
_LABELS = {19: "node_label_19.npy", 2983: "node_label_2K.npy"}
# The full dataset's labelled papers come first; of the smaller ones all are labelled (IGB's dataloader.py).
_LABELLED = {(269_346_174, 19): 227_130_858, (269_346_174, 2983): 157_675_969}


def from_igb(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    classes: SupportsIndex = 19,
    hetero: bool = False,
    undirected: bool = False,
    copy: bool = False,
    memory: SupportsIndex | str = "1GiB",
    progress: Progress | None = None,
) -> Dataset:
    """Convert a dataset of the Illinois Graph Benchmark: papers and citations, or all of its types.

    The first 60 % of the labelled papers are for training, the next 20 % for validation, the rest for test,
    as in IGB's own loader. Features of igb-large and igb-full have no .npy header, and are copied.

    Args:
        source: A folder of one size, with `processed/paper` and `processed/paper__cites__paper`.
        folder: A new one; it appears when all is written.
        classes: 19 or 2983.
        hetero: Convert authors, institutes and whatever else `processed` has edges of, too.
        undirected: Add the reverse of each edge, once for an edge of a node to itself. An edge whose reverse
            is there already is then there twice. Reverses of edges between two node types are an edge type
            of their own, `rev_` and its name.
        copy: Copy features that are a .npy file already, in place of a link to it; those of several types are
            copied always.
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
    kind = checked_integer("classes", classes)
    if kind not in _LABELS:
        raise ValueError(f"classes {kind}: choose 19 or 2983")
    root = Path(source)
    with draft_folder("convert to", folder) as draft:
        target = Target(draft, Path(folder).resolve(), options)
        name = f"IGB {root.name}"
        papers = root / "processed" / "paper"
        features = _array(papers / "node_feat.npy", _WIDTH)
        labels = _array(papers / _LABELS[kind], 0)
        nodes = features.rows
        labelled = _LABELLED.get((nodes, kind), nodes)
        train, valid = int(labelled * 0.6), int(labelled * 0.2)
        splits = {
            "train": np.arange(train),
            "valid": np.arange(train, train + valid),
            "test": np.arange(train + valid, labelled),
        }
        if hetero:
            write_typed_parts(target, _typed(root / "processed", features, labels, splits, kind), name)
        else:
            cites = read_npy(root / "processed" / "paper__cites__paper" / "edge_index.npy", _REMEDY)
            edges = file_edges(cites, pairs=True)
            write_parts(target, Parts(nodes, edges, features, labels, splits, papers, kind), name)
    return open_dataset(folder)


def _typed(processed: Path, papers: Npy, labels: Npy, splits: dict[str, Ids], classes: int) -> TypedParts:
    edges = edges_of_types(processed, "__", pairs=True)
    nodes = [NodeType("paper", papers.rows, papers)]
    for name in sorted({end for kind in edges for end in (kind[0], kind[2])} - {"paper"}):
        features = _array(processed / name / "node_feat.npy", _WIDTH)
        nodes.append(NodeType(name, features.rows, features))
    return TypedParts(nodes, edges, "paper", labels, splits, processed / "paper", classes)


def _array(path: Path, width: int) -> Npy:
    """A .npy file, or float32 numbers without a header; `width` 0: of one dimension."""
    if has_header(path):
        return read_npy(path, _REMEDY)
    nbytes = path.stat().st_size
    row = 4 * max(width, 1)
    if nbytes == 0 or nbytes % row != 0:
        raise ValueError(f"read {path}: it is no .npy file, nor whole rows of {row} bytes: {_REMEDY}")
    return Npy(path, np.dtype(np.float32), (nbytes // row, width) if width else (nbytes // row,), 0)

"""Dataset folders: what is in one, and its checks.

pointers.npy   int64, nodes + 1: the edges into node v are numbers pointers[v] to pointers[v + 1]
neighbors.npy  int32, from 2 ** 31 nodes on int64: the source of each edge (compressed sparse columns)
features.npy   [nodes, width], float32 or float16; may be a link to a file elsewhere
labels.npy     int64, nodes: the class, or -1
train.npy, valid.npy, test.npy   int64: node ids
relations.npy  uint8, edges: the place of each edge's type in `edge_types`; only where there are several types
dataset.json   the facts, written last

Nodes of several types have one numbering, type after type, and one table of features.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import Error

from .npy import Npy, missing, read_npy, read_pieces, unread

FACTS = "dataset.json"
FORMAT = 1
FEATURE_DTYPES = ("float32", "float16")
MAX_RELATIONS = 256
SPLITS = ("train", "valid", "test")
_AT_ONCE = 1 << 20  # numbers that a check reads

EdgeType = tuple[str, str, str]


@dataclass(frozen=True)
class Dataset:
    """A dataset in a folder: its facts, and the paths of its files."""

    folder: Path
    name: str
    nodes: int
    edges: int
    width: int
    """Numbers of a node's features."""
    dtype: str
    """Of the features: float32 or float16."""
    classes: int
    seed: int | None
    """None where it was not drawn."""
    source: str
    node_types: Mapping[str, range] = field(default_factory=dict, hash=False)
    """The numbers of each type; empty where there is one type, or nodes have been numbered anew."""
    edge_types: tuple[EdgeType, ...] = ()
    """Type of the sources, name, type of the targets; empty where there is one type."""
    without_features: tuple[str, ...] = ()
    """Node types whose rows of the features are zeros, for there are none."""

    @property
    def pointers(self) -> Path:
        return self.folder / "pointers.npy"

    @property
    def neighbors(self) -> Path:
        return self.folder / "neighbors.npy"

    @property
    def relations(self) -> Path:
        """Of edges of several types."""
        return self.folder / "relations.npy"

    @property
    def features(self) -> Path:
        return self.folder / "features.npy"

    @property
    def labels(self) -> Path:
        return self.folder / "labels.npy"

    @property
    def train(self) -> Path:
        return self.folder / "train.npy"

    @property
    def valid(self) -> Path:
        return self.folder / "valid.npy"

    @property
    def test(self) -> Path:
        return self.folder / "test.npy"

    @property
    def feature_bytes(self) -> int:
        return self.nodes * self.width * np.dtype(self.dtype).itemsize

    def load(self, name: str) -> npt.NDArray[Any]:
        """A file other than the features, in memory: pointers, neighbors, labels, train, valid or test, and
        of a dataset with edge types relations.

        Raises:
            ValueError: For another name.
        """
        known = ("pointers", "neighbors", *(["relations"] if self.edge_types else []), "labels", *SPLITS)
        if name not in known:
            raise ValueError(f"load '{name}': choose {', '.join(known[:-1])} or {known[-1]}")
        facts = read_npy(self.folder / f"{name}.npy")
        return next((piece for _, piece in read_pieces(facts, max(1, facts.rows))), np.empty(0, facts.dtype))


def id_dtype(nodes: int) -> np.dtype[Any]:
    """Of neighbors.npy."""
    return np.dtype(np.int32 if nodes < 1 << 31 else np.int64)


def write_facts(
    folder: Path, *, name: str, nodes: int, edges: int, width: int, dtype: str, classes: int,
    seed: int | None, source: str, node_types: Mapping[str, int] | None = None,
    edge_types: Sequence[EdgeType] = (), without_features: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write dataset.json, which makes the folder a dataset: the last file.

    Args:
        node_types: How many nodes each type has, in the order of their numbers.
        without_features: Those of them whose features are zeros.
    """
    facts = {
        "format": FORMAT, "name": name, "nodes": nodes, "edges": edges, "width": width, "dtype": dtype,
        "classes": classes, "seed": seed, "source": source, "node_types": dict(node_types or {}),
        "edge_types": edge_types, "without_features": without_features,
    }  # fmt: skip
    (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n")


def open_dataset(folder: str | os.PathLike[str], *, verify: bool = False) -> Dataset:
    """A dataset folder, with the sizes and the consistency of its files checked.

    Reads headers, pointers and splits. Features are not read.

    Args:
        folder: Made by `generate` or a reader.
        verify: Read neighbours and labels, too, and check their range.

    Returns:
        Facts and paths.

    Raises:
        FileNotFoundError: There is no dataset, or a file of it is missing.
        ValueError: Files contradict each other or are damaged, with what to do.
        penstock.Error: A file cannot be read.
    """
    path = Path(folder)
    found = _read_facts(path)
    _check_shape(found.pointers, "int64", (found.nodes + 1,))
    _check_shape(found.neighbors, str(id_dtype(found.nodes)), (found.edges,))
    if found.edge_types:
        _check_shape(found.relations, "uint8", (found.edges,))
    _check_features(found)
    _check_shape(found.labels, "int64", (found.nodes,))
    _check_pointers(found)
    for name in SPLITS:
        _check_range(path / f"{name}.npy", 0, found.nodes, "node ids")
    if verify:
        _check_range(found.neighbors, 0, found.nodes, "node ids")
        _check_range(found.labels, -1, found.classes, "labels")
        if found.edge_types:
            _check_range(found.relations, 0, len(found.edge_types), "numbers of edge types")
    return found


def _read_facts(path: Path) -> Dataset:
    try:
        facts = json.loads((path / FACTS).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise Error(
            f"open {path}: there is no {FACTS} in it: make one with penstock.gnn.data.generate or a reader",
            errno.ENOENT,
        ) from None
    except OSError as problem:
        raise unread(path / FACTS, problem) from problem
    except ValueError as problem:
        raise ValueError(f"open {path}: {FACTS} is damaged: {problem}: make the dataset anew") from None
    try:
        if facts["format"] != FORMAT:
            raise ValueError(f"its format is {facts['format']}, and {FORMAT} is known")
        seed = None if facts["seed"] is None else _whole(facts, "seed")
        found = Dataset(
            path, str(facts["name"]), _whole(facts, "nodes"), _whole(facts, "edges"), _whole(facts, "width"),
            str(facts["dtype"]), _whole(facts, "classes"), seed, str(facts["source"]),
            _node_types(facts), _edge_types(facts), _without_features(facts),
        )  # fmt: skip
        if found.dtype not in FEATURE_DTYPES:
            raise ValueError(f"its dtype is {found.dtype}, and float32 and float16 are known")
    except KeyError as problem:
        raise ValueError(f"open {path}: {FACTS} has no {problem}: make the dataset anew") from None
    except (ValueError, TypeError) as problem:
        raise ValueError(f"open {path}: {FACTS} is damaged: {problem}: make the dataset anew") from None
    return found


def _whole(facts: Any, name: str) -> int:
    value = facts[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"its {name} is {value!r}, and no number of 0 or more")
    return value


def _node_types(facts: Any) -> dict[str, range]:
    counts = facts.get("node_types", {})
    if not isinstance(counts, dict) or any(type(count) is not int or count < 0 for count in counts.values()):
        raise ValueError(f"its node_types are {counts!r}, and no numbers of nodes")
    if counts and sum(counts.values()) != facts["nodes"]:
        raise ValueError(f"its node_types have {sum(counts.values())} nodes, and there are {facts['nodes']}")
    ends = list(accumulate(counts.values()))
    return {name: range(end - counts[name], end) for name, end in zip(counts, ends, strict=True)}


def _edge_types(facts: Any) -> tuple[EdgeType, ...]:
    given = facts.get("edge_types", [])
    right = isinstance(given, list) and len(given) <= MAX_RELATIONS
    if not right or any(not isinstance(each, list) or len(each) != 3 for each in given):
        raise ValueError(f"its edge_types are {given!r}, and no list of source type, name and target type")
    return tuple((str(source), str(name), str(target)) for source, name, target in given)


def _without_features(facts: Any) -> tuple[str, ...]:
    given, known = facts.get("without_features", []), facts.get("node_types", {})
    if not isinstance(given, list) or any(each not in known for each in given):
        raise ValueError(f"its without_features are {given!r}, and no list of its node_types")
    return tuple(given)


def _read(path: Path) -> Npy:
    if path.is_symlink() and not path.exists():
        remedy = "put that file back, or make the dataset anew with copy=True"
        raise missing(path, f"it links to {path.readlink()}: {remedy}")
    return read_npy(path, "make the dataset anew")


def _check_shape(path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    facts = _read(path)
    if (facts.dtype, facts.shape) != (np.dtype(dtype), shape):
        raise ValueError(
            f"open {path}: it has {facts.dtype} of shape {facts.shape}, not {dtype} of shape {shape}: "
            "make the dataset anew"
        )


def _check_features(found: Dataset) -> None:
    facts = _read(found.features)
    if len(facts.shape) == 2 and facts.shape[0] != found.nodes:
        raise ValueError(
            f"open {found.features}: it has {facts.shape[0]} rows, and there are {found.nodes} nodes: "
            "give each node a row"
        )
    if facts.fortran:
        raise ValueError(f"open {found.features}: it is stored by columns: write it by rows")
    _check_shape(found.features, found.dtype, (found.nodes, found.width))


def _check_pointers(found: Dataset) -> None:
    last = 0
    for first, piece in read_pieces(read_npy(found.pointers), _AT_ONCE):
        if first == 0 and piece[0] != 0:
            raise ValueError(
                f"open {found.pointers}: it begins with {piece[0]}, not 0: make the dataset anew"
            )
        steps = np.diff(piece, prepend=last)
        if (steps < 0).any():
            place = first + int(np.argmax(steps < 0))
            raise ValueError(f"open {found.pointers}: pointer {place} decreases: make the dataset anew")
        last = piece[-1]
    if last != found.edges:
        raise ValueError(
            f"open {found.pointers}: it ends at {last}, and there are {found.edges} neighbours: "
            "make the dataset anew"
        )


def _check_range(path: Path, least: int, end: int, what: str) -> None:
    facts = _read(path)
    if len(facts.shape) != 1 or facts.dtype.kind not in "iu":
        raise ValueError(
            f"open {path}: it has {facts.dtype} of shape {facts.shape}, not a list of {what}: "
            "make the dataset anew"
        )
    for _, piece in read_pieces(facts, _AT_ONCE):
        for bad in _outside(piece, least, end):
            raise ValueError(
                f"open {path}: it has {bad}, and {what} are {least} to {end - 1}: make the dataset anew"
            )


def _outside(values: npt.NDArray[Any], least: int, end: int) -> Iterator[int]:
    wrong = (values < least) | (values >= end)
    if wrong.any():
        yield int(values[np.argmax(wrong)])

"""What the readers share: labels, features, splits, and the draft that they go to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from penstock.callbacks import Progress
from penstock.sizes import format_bytes, parse_size

from .csc import MIN_MEMORY, Conversion
from .dataset import FEATURE_DTYPES, SPLITS, write_facts
from .edges import Edges
from .npy import Npy, NpyWriter, missing, read_pieces, unread, write_npy

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """What every reader takes."""

    undirected: bool
    copy: bool
    memory: int
    progress: Progress | None


def checked_options(
    undirected: bool, copy: bool, memory: SupportsIndex | str, progress: Progress | None
) -> Options:
    nbytes = parse_size(memory, "memory")
    if nbytes < MIN_MEMORY:
        raise ValueError(f"memory {format_bytes(nbytes)}: it is too small: give 1MiB or more")
    return Options(undirected, copy, nbytes, progress)


class Target:
    """A draft of a dataset folder, which a reader fills."""

    def __init__(self, draft: Path, folder: Path, options: Options) -> None:
        self.draft, self.folder, self.options = draft, folder, options

    def put_features(self, features: Npy, nodes: int) -> tuple[int, str]:
        """Link or copy features.

        Returns:
            Width and dtype of the features of the folder.

        Raises:
            ValueError: Their shape does not fit.
        """
        if len(features.shape) != 2 or features.shape[0] != nodes or features.dtype.kind != "f":
            raise ValueError(
                f"read {features.path}: it has {features.dtype} of shape {features.shape}: give "
                f"floating-point features of shape ({nodes}, width)"
            )
        width, dtype = features.shape[1], features.dtype.name
        as_it_is = dtype in FEATURE_DTYPES and features.dtype.isnative and not features.fortran
        place = self.draft / "features.npy"
        if as_it_is and features.path.parent == self.draft:
            features.path.rename(place)
            return width, dtype
        if as_it_is and not self.options.copy and has_header(features.path):
            # The draft gets the name of the folder, which has the same parent: the link stays right.
            place.symlink_to(os.path.relpath(features.path.resolve(), self.folder.parent.resolve() / "x"))
            return width, dtype
        if dtype not in FEATURE_DTYPES:
            dtype = "float32"
        rows = max(1, self.options.memory // 4 // max(1, features.row_bytes))
        with NpyWriter(place, dtype, features.shape) as writer:
            for first, piece in read_pieces(features, rows):
                writer.put(first, piece)
                self.report("copying features", first + len(piece), nodes)
        return width, dtype

    def put_labels(self, labels: Npy, count: int, *, first: int = 0, nodes: int | None = None) -> int:
        """Write labels as int64; NaN and negative ones become -1.

        Args:
            labels: Of the nodes from `first` on.
            count: How many they are to be.
            nodes: How many there are, where others have no labels.

        Returns:
            1 + the largest.

        Raises:
            ValueError: Their shape does not fit, or one is no whole number.
        """
        if labels.shape not in ((count,), (count, 1)):
            raise ValueError(
                f"read {labels.path}: labels have shape {labels.shape}: give each of {count} nodes one"
            )
        nodes = count if nodes is None else nodes
        classes = 0
        with NpyWriter(self.draft / "labels.npy", np.int64, (nodes,)) as writer:
            writer.put(0, np.full(first, -1))
            writer.put(first + count, np.full(nodes - first - count, -1))
            for place, piece in read_pieces(labels, max(1, self.options.memory // 64)):
                whole = as_labels(piece.reshape(-1), str(labels.path))
                writer.put(first + place, whole)
                classes = max(classes, int(whole.max(initial=-1)) + 1)
        return classes

    def put_splits(self, splits: Mapping[str, Ids], where: object, nodes: int, *, first: int = 0) -> None:
        """Write train.npy, valid.npy and test.npy, with numbers from `first` on.

        Raises:
            ValueError: Ids out of range.
        """
        for name in SPLITS:
            ids = splits[name]
            if len(ids) and (ids.min() < 0 or ids.max() >= nodes):
                bad = ids.min() if ids.min() < 0 else ids.max()
                raise ValueError(
                    f"read {where}: {name} has node {bad}, and nodes are 0 to {nodes - 1}: correct the split"
                )
            write_npy(self.draft / f"{name}.npy", ids.astype(np.int64) + first)

    def put_edges(self, edges: Edges, nodes: int) -> int:
        """Write pointers and neighbours; returns the number of edges."""
        options = self.options
        return Conversion(
            self.draft, edges, nodes, undirected=options.undirected, memory=options.memory,
            progress=options.progress,
        ).run()  # fmt: skip

    def report(self, what: str, done: int, total: int) -> None:
        if self.options.progress is not None:
            self.options.progress(what, done, total)


@dataclass(frozen=True)
class Parts:
    """What a reader found in its source."""

    nodes: int
    edges: Edges
    features: Npy
    labels: Npy
    splits: Mapping[str, Ids]
    splits_from: object
    """What errors name."""
    classes: int = 0
    """The least number of them; labels may have more."""


def write_parts(target: Target, parts: Parts, source: str) -> None:
    """Write all files of a draft. What can be wrong quickly comes first."""
    target.put_splits(parts.splits, parts.splits_from, parts.nodes)
    classes = max(parts.classes, target.put_labels(parts.labels, parts.nodes))
    width, dtype = target.put_features(parts.features, parts.nodes)
    edges = target.put_edges(parts.edges, parts.nodes)
    for temporary in target.draft.glob("*.tmp"):
        temporary.unlink()
    write_facts(
        target.draft, name=target.folder.name, nodes=parts.nodes, edges=edges, width=width, dtype=dtype,
        classes=classes, seed=None, source=source,
    )  # fmt: skip


def as_labels(values: npt.NDArray[Any], where: str) -> Ids:
    """int64, with -1 for NaN and what is below 0; raises ValueError for fractions."""
    if values.dtype.kind == "f":
        known = ~np.isnan(values) & (values >= 0)
        if (values[known] != np.floor(values[known])).any() or (values[known] > 1 << 40).any():
            raise ValueError(
                f"read {where}: a label is no class number: give whole numbers, NaN where there is none"
            )
        return np.where(known, values, -1).astype(np.int64)
    return np.maximum(values.astype(np.int64), -1)


def has_header(path: Path) -> bool:
    """Whether a file is a .npy of its own, not an archive or raw numbers."""
    try:
        with path.open("rb") as file:
            return file.read(6) == b"\x93NUMPY"
    except FileNotFoundError:
        raise missing(path, "fetch the dataset again") from None
    except OSError as problem:
        raise unread(path, problem) from problem

"""Graphs of PyTorch Geometric to dataset folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from penstock.arguments import reading
from penstock.callbacks import Progress

from .converting import Parts, Target, as_labels, checked_options, write_parts
from .dataset import FEATURE_DTYPES, Dataset, open_dataset
from .drafts import draft_folder
from .edges import MemoryEdges
from .npy import Npy, read_npy, write_npy

Array = npt.NDArray[Any]


def from_pyg(
    data: Any,
    folder: str | os.PathLike[str],
    *,
    undirected: bool = False,
    memory: SupportsIndex | str = "1GiB",
    progress: Progress | None = None,
) -> Dataset:
    """Write a graph of PyTorch Geometric as a dataset folder.

    Args:
        data: A torch_geometric.data.Data with x, y, edge_index and train_mask; val_mask and test_mask may be
            missing.
        folder: A new one; it appears when all is written.
        undirected: Add the reverse of each edge, once for an edge of a node to itself. An edge whose reverse
            is there already is then there twice.
        memory: Bytes for edges that are sorted at once.
        progress: Called with what is done, how much of it, and of how much.

    Returns:
        The dataset, opened.

    Raises:
        ValueError, TypeError: For a bad argument, data without these tensors or of other shapes, or a folder
            that is not empty.
        penstock.Error: The folder cannot be written.
    """
    options = checked_options(undirected, True, memory, progress)
    features = _array(data, "x", 2)
    nodes = len(features)
    edges = _array(data, "edge_index", 2)
    if len(edges) != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"data.edge_index: it has {edges.dtype} of shape {edges.shape}: give integers of (2, edges)"
        )
    splits = {
        "train": _masked(data, "train_mask", nodes),
        "valid": _masked(data, "val_mask", nodes),
        "test": _masked(data, "test_mask", nodes),
    }
    with draft_folder("convert to", folder) as draft, reading(f"convert to {folder}", data):
        target = Target(draft, Path(folder).resolve(), options)
        dtype = features.dtype if str(features.dtype) in FEATURE_DTYPES else np.dtype(np.float32)
        stored = _store(draft / "x.tmp", features.astype(dtype, copy=False))
        labels = _store(draft / "y.tmp", as_labels(_array(data, "y", 1), "data.y"))
        graph = MemoryEdges("data.edge_index", edges[0], edges[1])
        write_parts(target, Parts(nodes, graph, stored, labels, splits, "data"), "torch_geometric")
    return open_dataset(folder)


def _array(data: Any, name: str, dimensions: int) -> Array:
    """A tensor of the data as NumPy's array; (n, 1) counts as one dimension."""
    tensor = getattr(data, name, None)
    if tensor is None:
        raise ValueError(f"data: it has no {name}: give data with x, y, edge_index and train_mask")
    if not hasattr(tensor, "detach"):
        raise TypeError(f"data.{name}: it is a {type(tensor).__name__}: give a tensor")
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # which NumPy does not have
        tensor = tensor.float()
    array: Array = tensor.numpy()
    if dimensions == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != dimensions:
        raise ValueError(f"data.{name}: it has shape {array.shape}: give {dimensions} dimensions")
    return array


def _masked(data: Any, name: str, nodes: int) -> npt.NDArray[np.int64]:
    if name != "train_mask" and getattr(data, name, None) is None:
        return np.empty(0, np.int64)
    mask = _array(data, name, 1)
    if mask.dtype != np.bool_ or len(mask) != nodes:
        raise ValueError(f"data.{name}: it has {len(mask)} values of {mask.dtype}: give {nodes} of bool")
    return np.flatnonzero(mask)


def _store(path: Path, values: Array) -> Npy:
    write_npy(path, values)
    return read_npy(path)

"""Graphs of PyTorch Geometric to dataset folders."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from penstock.arguments import reading
from penstock.arrays.foreign import dense
from penstock.callbacks import Progress
from penstock.drafts import draft_folder

from .converting import Parts, Target, as_labels, checked_options, write_parts
from .dataset import FEATURE_DTYPES, MAX_RELATIONS, Dataset, EdgeType, open_dataset
from .edges import Edges, MemoryEdges
from .npy import Npy, read_npy, write_npy
from .typed import NodeType, TypedParts, write_typed_parts

Array = npt.NDArray[Any]
_SOURCE = "torch_geometric"
_NODE = "node"  # the one type of nodes


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
        data: A torch_geometric.data.Data with x, y, edge_index and train_mask; val_mask, test_mask and
            edge_type may be missing. Or a HeteroData, one of whose node types has y and train_mask; x of all
            types has one width, and types without x get zeros.
        folder: A new one; it appears when all is written.
        undirected: Add the reverse of each edge, once for an edge of a node to itself. An edge whose reverse
            is there already is then there twice. Reverses of edges between two node types are an edge type
            of their own, `rev_` and its name.
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
    with draft_folder("convert to", folder) as draft, reading(f"convert to {folder}", data):
        target = Target(draft, Path(folder).resolve(), options)
        if hasattr(data, "node_types") and hasattr(data, "edge_types"):
            write_typed_parts(target, _typed_parts(data, draft), _SOURCE)
        elif getattr(data, "edge_type", None) is not None:
            write_typed_parts(target, _parts_of_relations(data, draft), _SOURCE)
        else:
            write_parts(target, _parts(data, draft), _SOURCE)
    return open_dataset(folder)


def _parts(data: Any, draft: Path) -> Parts:
    features = _features(data, "data", draft / "x.tmp")
    edges = _edges(data, "data")
    labels, splits = _labels_and_splits(data, "data", features.rows, draft)
    return Parts(features.rows, edges, features, labels, splits, "data")


def _parts_of_relations(data: Any, draft: Path) -> TypedParts:
    """Of one type of nodes, whose edges have numbers of relations."""
    parts, kinds = _parts(data, draft), _array(data, "data", "edge_type", 1)
    edges = _edges(data, "data")
    if len(kinds) != edges.count or kinds.dtype.kind not in "iu":
        raise ValueError(
            f"data.edge_type: it has {len(kinds)} values of {kinds.dtype}: give {edges.count} integers"
        )
    least, most = (int(kinds.min()), int(kinds.max())) if len(kinds) else (0, 0)
    if least < 0 or most >= MAX_RELATIONS:
        wrong = least if least < 0 else most
        raise ValueError(f"data.edge_type: it has {wrong}: give numbers from 0 to {MAX_RELATIONS - 1}")
    of_types: dict[EdgeType, Edges] = {
        (_NODE, str(kind), _NODE): MemoryEdges(
            "data.edge_index", edges.sources[kinds == kind], edges.targets[kinds == kind]
        )
        for kind in range(most + 1)
    }
    nodes = [NodeType(_NODE, parts.nodes, parts.features)]
    return TypedParts(nodes, of_types, _NODE, parts.labels, parts.splits, "data")


def _typed_parts(data: Any, draft: Path) -> TypedParts:
    labelled = [name for name in data.node_types if "train_mask" in data[name]]
    if len(labelled) != 1:
        found = " and ".join(labelled) or "no type of nodes"
        raise ValueError(f"data: {found} has train_mask: give y and train_mask to one type")
    nodes = []
    for number, name in enumerate(data.node_types):
        features = (
            _features(data[name], f"data[{name!r}]", draft / f"x{number}.tmp") if "x" in data[name] else None
        )
        count = _count(data[name]) if features is None else features.rows
        if count is None:
            raise ValueError(f"data[{name!r}]: it has neither x nor num_nodes: give one of them")
        nodes.append(NodeType(name, int(count), features))
    own, where = labelled[0], f"data[{labelled[0]!r}]"
    count = next(each.count for each in nodes if each.name == own)
    labels, splits = _labels_and_splits(data[own], where, count, draft)
    edges: dict[EdgeType, Edges] = {kind: _edges(data[kind], f"data[{kind}]") for kind in data.edge_types}
    return TypedParts(nodes, edges, own, labels, splits, where)


def _count(data: Any) -> Any:
    """Nodes of a type as PyG counts them; None where it cannot, of which it would warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return data.num_nodes


def _features(data: Any, where: str, path: Path) -> Npy:
    features = _array(data, where, "x", 2)
    dtype = features.dtype if str(features.dtype) in FEATURE_DTYPES else np.dtype(np.float32)
    return _store(path, features.astype(dtype, copy=False))


def _edges(data: Any, where: str) -> MemoryEdges:
    edges = _array(data, where, "edge_index", 2)
    if len(edges) != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"{where}.edge_index: it has {edges.dtype} of shape {edges.shape}: give integers of (2, edges)"
        )
    return MemoryEdges(f"{where}.edge_index", edges[0], edges[1])


def _labels_and_splits(
    data: Any, where: str, nodes: int, draft: Path
) -> tuple[Npy, dict[str, npt.NDArray[np.int64]]]:
    splits = {
        name: _masked(data, where, mask, nodes)
        for name, mask in (("train", "train_mask"), ("valid", "val_mask"), ("test", "test_mask"))
    }
    labels = _array(data, where, "y", 1)
    if len(labels) != nodes:
        raise ValueError(f"{where}.y: it has {len(labels)} values: give each of {nodes} nodes one")
    return _store(draft / "y.tmp", as_labels(labels, f"{where}.y")), splits


def _array(data: Any, where: str, name: str, dimensions: int) -> Array:
    """A tensor of the data as NumPy's array; (n, 1) counts as one dimension."""
    tensor = getattr(data, name, None)
    if tensor is None:
        raise ValueError(f"{where}: it has no {name}: give data with x, y, edge_index and train_mask")
    if not hasattr(tensor, "detach"):
        raise TypeError(f"{where}.{name}: it is a {type(tensor).__name__}: give a tensor")
    tensor = dense(tensor.detach(), f"{where}.{name}: it").cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # which NumPy does not have
        tensor = tensor.float()
    array: Array = tensor.numpy()
    if array.dtype.kind == "c":
        raise TypeError(f"{where}.{name}: it has {array.dtype}: give real numbers")
    if dimensions == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != dimensions:
        raise ValueError(f"{where}.{name}: it has shape {array.shape}: give {dimensions} dimensions")
    return array


def _masked(data: Any, where: str, name: str, nodes: int) -> npt.NDArray[np.int64]:
    if name != "train_mask" and getattr(data, name, None) is None:
        return np.empty(0, np.int64)
    mask = _array(data, where, name, 1)
    if mask.dtype != np.bool_ or len(mask) != nodes:
        raise ValueError(f"{where}.{name}: it has {len(mask)} values of {mask.dtype}: give {nodes} of bool")
    return np.flatnonzero(mask)


def _store(path: Path, values: Array) -> Npy:
    write_npy(path, values)
    return read_npy(path)

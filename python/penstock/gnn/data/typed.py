"""What readers of several types share: nodes of all types as one numbering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .converting import Target
from .dataset import FEATURE_DTYPES, EdgeType, write_facts
from .edges import Edges, file_edges
from .npy import Npy, NpyWriter, read_npy, read_pieces
from .relations import Relation, put_relations, with_reverses

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NodeType:
    name: str
    count: int
    features: Npy | None
    """None: its rows are zeros."""


@dataclass(frozen=True)
class TypedParts:
    """What a reader found in its source."""

    nodes: Sequence[NodeType]
    edges: Mapping[EdgeType, Edges]
    """Numbered in their types."""
    labelled: str
    """The type that labels and splits are of."""
    labels: Npy
    splits: Mapping[str, Ids]
    splits_from: object
    """What errors name."""
    classes: int = 0
    """The least number of them; labels may have more."""


def write_typed_parts(target: Target, parts: TypedParts, source: str) -> None:
    """Write all files of a draft. What can be wrong quickly comes first."""
    counts = {each.name: each.count for each in parts.nodes}
    ends = list(accumulate(counts.values()))
    ranges = {name: range(end - counts[name], end) for name, end in zip(counts, ends, strict=True)}
    nodes, own = ends[-1], ranges[parts.labelled]
    relations = [_relation(kind, edges, ranges) for kind, edges in parts.edges.items()]
    if target.options.undirected:
        relations = with_reverses(relations)
    target.put_splits(parts.splits, parts.splits_from, len(own), first=own.start)
    labels = target.put_labels(parts.labels, len(own), first=own.start, nodes=nodes)
    width, dtype = _put_features(target, parts.nodes, nodes)
    edges = put_relations(target.draft, relations, nodes, target.options.memory, target.options.progress)
    for temporary in target.draft.glob("*.tmp"):
        temporary.unlink()
    write_facts(
        target.draft, name=target.folder.name, nodes=nodes, edges=edges, width=width, dtype=dtype,
        classes=max(parts.classes, labels), seed=None, source=source, node_types=counts,
        edge_types=[each.kind for each in relations],
        without_features=[each.name for each in parts.nodes if each.features is None],
    )  # fmt: skip


def edges_of_types(processed: Path, between: str, *, pairs: bool) -> dict[EdgeType, Edges]:
    """Edges of folders named by source type, name and target type, with `between` them.

    pairs: As of `file_edges`.
    """
    named = {tuple(path.parent.name.split(between)): path for path in processed.glob("*/edge_index.npy")}
    return {
        (names[0], names[1], names[2]): file_edges(read_npy(path, "fetch the dataset again"), pairs=pairs)
        for names, path in sorted(named.items())
        if len(names) == 3
    }


def _relation(kind: EdgeType, edges: Edges, ranges: Mapping[str, range]) -> Relation:
    for node_type in (kind[0], kind[2]):
        if node_type not in ranges:
            raise ValueError(
                f"read {edges.where}: there are no nodes of type {node_type}: give edges between types that "
                "are there"
            )
    return Relation(kind, edges, ranges[kind[0]], ranges[kind[2]])


def _put_features(target: Target, types: Sequence[NodeType], nodes: int) -> tuple[int, str]:
    """One table of all types; rows of those without features are zeros.

    Returns:
        Its width and dtype.
    """
    known = [(each, each.features) for each in types if each.features is not None]
    if not known:
        raise ValueError("features: no type of nodes has some: give at least one features")
    first, table = known[0]
    for each, features in known:
        right = len(features.shape) == 2 and features.rows == each.count and features.dtype.kind == "f"
        if not right or features.shape[1] != table.shape[1]:
            wanted = f"({each.count}, {table.shape[1] if len(table.shape) == 2 else 'width'})"
            raise ValueError(
                f"read features of {each.name}: they are {features.dtype} of shape {features.shape}: give "
                f"floating-point features of shape {wanted}, as wide as those of {first.name}"
            )
    names = {features.dtype.name for _, features in known}
    dtype = names.pop() if len(names) == 1 and names <= set(FEATURE_DTYPES) else "float32"
    rows = max(1, target.options.memory // 4 // max(1, table.row_bytes))
    begin = 0
    with NpyWriter(target.draft / "features.npy", dtype, (nodes, table.shape[1])) as writer:
        writer.fill()
        for each in types:
            for place, piece in read_pieces(each.features, rows) if each.features is not None else ():
                writer.put(begin + place, piece)
                target.report("copying features", begin + place + len(piece), nodes)
            begin += each.count
    return table.shape[1], dtype

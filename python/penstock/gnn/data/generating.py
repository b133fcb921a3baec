"""Datasets of the shapes of the papers, drawn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import SupportsFloat, SupportsIndex

import numpy as np

from penstock.callbacks import Progress
from penstock.checks import checked_count, checked_number
from penstock.drafts import draft_folder
from penstock.sizes import format_bytes, parse_size

from .blocks import in_order
from .dataset import MAX_RELATIONS, Dataset, id_dtype, open_dataset, write_facts
from .npy import NpyWriter
from .planted import EDGES_OF_BLOCK, FEATURE_ROWS, MAX_CLASSES, Edges, Facts, Features, Nodes
from .shapes import Shape, shape_named

DTYPES = ("float32", "float16")
_MAX_NODES = 1 << 40
_NODE_ROWS = 1 << 15
_NODE = "node"  # the one type of nodes
_EDGE_BYTES = 160  # of temporary arrays, for an edge of a block


def generate(
    folder: str | os.PathLike[str],
    like: str = "papers100M",
    *,
    nodes: SupportsIndex | None = None,
    scale: SupportsFloat | None = None,
    average_degree: SupportsFloat | None = None,
    width: SupportsIndex | None = None,
    dtype: str | None = None,
    classes: SupportsIndex | None = None,
    splits: tuple[float, float, float] | None = None,
    homophily: SupportsFloat = 0.7,
    accuracy: SupportsFloat = 0.5,
    hot_share: SupportsFloat | None = None,
    relations: SupportsIndex = 1,
    seed: SupportsIndex = 1,
    memory: SupportsIndex | str = "1GiB",
    threads: SupportsIndex = 0,
    progress: Progress | None = None,
) -> Dataset:
    """Draw a dataset with communities, and write it as a folder.

    Degrees and popularity follow power laws; ids are scattered. Features are the centroid of the node's class
    plus noise, so features alone classify mediocrely, and averages over neighbours well. The same arguments
    draw the same files on one machine, whatever `memory` and `threads` are; another kind of processor rounds
    powers otherwise, and may draw a few other edges. An edge may be there several times, as popular
    nodes are drawn often.

    Args:
        folder: A new one; it appears when all is written.
        like: A name of SHAPES. What the arguments below leave out is taken from it.
        nodes: How many; edges follow by the average degree.
        scale: In place of `nodes`: a factor, such as 0.01.
        average_degree: Edges of a node, on average.
        width: Numbers of a node's features.
        dtype: Of the features: float32 or float16.
        classes: How many labels there are, up to 4096. All nodes are labelled.
        splits: Shares of the nodes for training, validation and test.
        homophily: Share of the edges between nodes of one class, 0 to 1; no less than chance gives.
        accuracy: Share of the nodes that the nearest centroid classifies by features alone; less where
            `width` is not well above `classes`.
        hot_share: Share of the edges whose sources are the most popular 1 % of the nodes, 0.01 to 0.9; at
            0.01 all nodes are equally popular.
        relations: Types of edges, up to 256. For those of type r the class that `homophily` is about is not
            the node's own, but r / relations of all classes further on.
        seed: Of all that is drawn.
        memory: Bytes for arrays that are not written yet, such as "1GiB".
        threads: 0: one for each core.
        progress: Called with what is done, how much of it, and of how much.

    Returns:
        The dataset, opened.

    Raises:
        ValueError, TypeError: For a bad argument, or a folder that is not empty.
        penstock.Error: The folder cannot be written, or there is no room.
    """
    shape = shape_named(like)
    facts = Facts(
        nodes=(count := _nodes(shape, nodes, scale)),
        edges=_edges(shape, count, average_degree),
        classes=shape.classes if classes is None else checked_count("classes", classes, 1, MAX_CLASSES),
        width=shape.width if width is None else checked_count("width", width, 1, 1 << 20),
        dtype=shape.dtype if dtype is None else _dtype(dtype),
        homophily=_between("homophily", homophily, 0, 1),
        accuracy=_between("accuracy", accuracy, 0, 1),
        hot_share=_between("hot_share", shape.hot_share if hot_share is None else hot_share, 0.01, 0.9),
        seed=checked_count("seed", seed, 0, (1 << 64) - 1),
        splits=_splits(count, shape.splits if splits is None else splits),
        relations=checked_count("relations", relations, 1, MAX_RELATIONS),
    )
    if facts.nodes < facts.classes:
        raise ValueError(
            f"nodes {facts.nodes}: there are {facts.classes} classes: give at least as many nodes"
        )
    workers = _workers(facts, parse_size(memory, "memory"), checked_count("threads", threads, 0, 1024))
    with draft_folder("generate", folder, _nbytes(facts)) as draft:
        made = _Generation(draft, facts, workers, progress)
        made.write(Path(folder).resolve().name, f"generated like {like}")
    return open_dataset(folder)


class _Generation:
    """Files of a draft, one kind after another."""

    def __init__(self, draft: Path, facts: Facts, workers: int, progress: Progress | None) -> None:
        self.draft, self.facts, self.workers = draft, facts, workers
        self.progress = progress
        self.nodes = Nodes(facts)

    def write(self, name: str, source: str) -> None:
        self.write_nodes()
        self.write_edges()
        if self.facts.relations > 1:
            self.write_relations()
        self.write_features()
        facts = self.facts
        types = [(_NODE, str(number), _NODE) for number in range(facts.relations)]
        typed = facts.relations > 1
        write_facts(
            self.draft, name=name, nodes=facts.nodes, edges=facts.edges, width=facts.width, dtype=facts.dtype,
            classes=facts.classes, seed=facts.seed, source=source,
            node_types={_NODE: facts.nodes} if typed else None, edge_types=types if typed else (),
        )  # fmt: skip

    def write_nodes(self) -> None:
        count = self.facts.nodes
        train, valid, test = self.facts.splits
        with (
            NpyWriter(self.draft / "pointers.npy", np.int64, (count + 1,)) as pointers,
            NpyWriter(self.draft / "labels.npy", np.int64, (count,)) as labels,
            NpyWriter(self.draft / "train.npy", np.int64, (train,)) as train_ids,
            NpyWriter(self.draft / "valid.npy", np.int64, (valid,)) as valid_ids,
            NpyWriter(self.draft / "test.npy", np.int64, (test,)) as test_ids,
        ):

            def block(number: int) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
                ids = np.arange(number * _NODE_ROWS, min((number + 1) * _NODE_ROWS, count))
                return self.nodes.degrees(ids), self.nodes.labels(ids), self.nodes.splits(ids)

            before = np.int64(0)
            pointers.add(np.zeros(1, np.int64))
            for number, (degrees, classes, parts) in enumerate(
                in_order(block, -(-count // _NODE_ROWS), self.workers)
            ):
                ends = before + np.cumsum(degrees)
                before = ends[-1]
                pointers.add(ends)
                labels.add(classes)
                for writer, part in zip((train_ids, valid_ids, test_ids), parts, strict=True):
                    writer.add(part)
                self._report("drawing nodes", (number + 1) * _NODE_ROWS, count)

    def write_edges(self) -> None:
        edges = Edges(self.nodes)
        dtype = id_dtype(self.facts.nodes)
        done = 0
        with NpyWriter(self.draft / "neighbors.npy", dtype, (self.facts.edges,)) as neighbors:
            # Converted by the workers, written in order: a file system then lays the file out in one piece.
            for sources in in_order(
                lambda number: edges.block(number).astype(dtype), edges.blocks, self.workers
            ):
                neighbors.add(sources)
                done += len(sources)
                self._report("drawing edges", done, self.facts.edges)

    def write_relations(self) -> None:
        edges = Edges(self.nodes)
        with NpyWriter(self.draft / "relations.npy", np.uint8, (self.facts.edges,)) as writer:
            for relations in in_order(edges.relations, edges.blocks, self.workers):
                writer.add(relations)

    def write_features(self) -> None:
        features = Features(self.facts)
        count = self.facts.nodes
        with NpyWriter(self.draft / "features.npy", self.facts.dtype, (count, self.facts.width)) as writer:

            def block(number: int) -> None:
                ids = np.arange(number * FEATURE_ROWS, min((number + 1) * FEATURE_ROWS, count))
                writer.put(number * FEATURE_ROWS, features.block(number, self.nodes.labels(ids)))

            for number, _ in enumerate(in_order(block, features.blocks, self.workers)):
                self._report("drawing features", (number + 1) * FEATURE_ROWS, count)

    def _report(self, what: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(what, min(done, total), total)


def _nodes(shape: Shape, nodes: SupportsIndex | None, scale: SupportsFloat | None) -> int:
    if nodes is not None and scale is not None:
        raise ValueError(f"nodes {nodes} and scale {scale}: give one of both")
    if nodes is not None:
        return checked_count("nodes", nodes, 1, _MAX_NODES)
    factor = 1.0 if scale is None else checked_number("scale", scale)
    if not 0 < factor <= _MAX_NODES / shape.nodes:
        raise ValueError(f"scale {factor}: give a number above 0, such as 0.01")
    return max(1, round(shape.nodes * factor))


def _edges(shape: Shape, nodes: int, average_degree: SupportsFloat | None) -> int:
    if average_degree is None:
        return shape.edges * nodes // shape.nodes
    degree = checked_number("average_degree", average_degree)
    if not 0 <= degree <= 1e6:
        raise ValueError(f"average_degree {degree}: give a number from 0 to 1000000")
    return round(degree * nodes)


def _dtype(dtype: object) -> str:
    name = str(np.dtype(dtype)) if isinstance(dtype, (type, np.dtype)) else str(dtype)
    if name not in DTYPES:
        raise ValueError(f"dtype {name}: features are float32 or float16: choose one of them")
    return name


def _between(name: str, value: SupportsFloat, low: float, high: float) -> float:
    number = checked_number(name, value)
    if not low <= number <= high:
        raise ValueError(f"{name} {number}: give a number from {low} to {high}")
    return number


def _splits(nodes: int, shares: tuple[float, float, float]) -> tuple[int, int, int]:
    """Counts of the nodes; at least one of each share above 0, as far as there are nodes."""
    if not isinstance(shares, (tuple, list)) or len(shares) != 3:
        raise ValueError(f"splits {shares}: give three shares, for training, validation and test")
    numbers = [_between("splits", share, 0, 1) for share in shares]
    if sum(numbers) > 1 + 1e-9:
        raise ValueError(f"splits {shares}: their sum is above 1: give smaller shares")
    left = nodes
    counts = []
    for share in numbers:
        counts.append(min(left, max(round(share * nodes), int(share > 0))))
        left -= counts[-1]
    return counts[0], counts[1], counts[2]


def _workers(facts: Facts, memory: int, threads: int) -> int:
    """Threads whose blocks fit `memory`: one that is drawn, and two that wait to be written."""
    features = FEATURE_ROWS * facts.width * (2 + 4 + 4 + 2 * np.dtype(facts.dtype).itemsize)
    edges = min(facts.edges, EDGES_OF_BLOCK + Nodes(facts).largest_degree) * _EDGE_BYTES
    block = max(features, edges, 1 << 20)
    if memory < block:
        raise ValueError(f"memory {format_bytes(memory)}: a block takes {format_bytes(block)}: give more")
    return max(1, min(threads or len(os.sched_getaffinity(0)), memory // block))


def _nbytes(facts: Facts) -> int:
    per_node = 16 + facts.width * np.dtype(facts.dtype).itemsize
    per_edge = id_dtype(facts.nodes).itemsize + (facts.relations > 1)
    return facts.nodes * per_node + facts.edges * per_edge + 8 * sum(facts.splits)

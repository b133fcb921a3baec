"""Other folders of a graph's edges, made once beside it: ids of 8 bytes, vertices in another order."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from penstock import graph as graphs


def variant(graph: graphs.GraphFolder, name: str) -> graphs.GraphFolder:
    """Opens the folder of VARIANTS[name] of `graph`, or makes it; a folder that is there is whole."""
    folder = graph.path.with_name(f"{graph.path.name}-{name}")
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
            VARIANTS[name](graph, Path(beside) / name)
            (Path(beside) / name).rename(folder)
    return graphs.resolve(folder)


def wide(graph: graphs.GraphFolder, folder: Path) -> None:
    """The same edges, as int64."""
    shutil.copytree(graph.path, folder, ignore=shutil.ignore_patterns("edges.npy"))
    np.save(folder / "edges.npy", np.asarray(graph.edge_array(), np.int64))


def reordered(graph: graphs.GraphFolder, folder: Path) -> None:
    """Vertices numbered in the order of a search from the largest hub.

    Lists that a traversal reads together then lie together, from which pages that the driver moves (UVM)
    gain: a small version of HALO (Gera and others, VLDB 2020); its own order weighs centrality too.
    """
    from scipy import sparse
    from scipy.sparse import csgraph

    offsets, edges = graph.offsets().astype(np.int64), np.asarray(graph.edge_array())
    degrees = np.diff(offsets)
    matrix = sparse.csr_matrix(
        (np.ones(len(edges), np.int8), edges, offsets), (graph.vertices, graph.vertices)
    )
    reached = csgraph.breadth_first_order(matrix, int(degrees.argmax()), return_predecessors=False)
    rank = np.full(graph.vertices, -1, edges.dtype)
    rank[reached] = np.arange(len(reached), dtype=edges.dtype)
    rank[rank < 0] = np.arange(len(reached), graph.vertices, dtype=edges.dtype)
    graphs.write_folder(
        folder, graph.vertices, np.repeat(rank, degrees), rank[edges], directed=graph.directed
    )


VARIANTS: dict[str, Callable[[graphs.GraphFolder, Path], None]] = {"int64": wide, "reordered": reordered}

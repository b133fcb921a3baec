"""Makes a graph folder whose vertices are numbered in the order of a search from the largest hub.

    python benchmarks/reorder_graph.py GRAPH FOLDER
    python benchmarks/graph_algorithms.py --graph FOLDER --only bfs --placements managed

Lists that a traversal reads together then lie together, from which pages that the driver moves (UVM) gain: a
small version of HALO (Gera and others, VLDB 2020) as a baseline; its own order weighs centrality too.
"""

from __future__ import annotations

import argparse

import numpy as np
from penstock import graph as graphs
from scipy import sparse
from scipy.sparse import csgraph


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph")
    parser.add_argument("folder")
    parser.add_argument("--cache-dir", default=None, help="where graphs are kept")
    options = parser.parse_args()
    graph = graphs.resolve(options.graph, cache_dir=options.cache_dir)
    offsets, edges = graph.offsets().astype(np.int64), np.asarray(graph.edge_array())
    degrees = np.diff(offsets)
    matrix = sparse.csr_matrix(
        (np.ones(len(edges), np.int8), edges, offsets), (graph.vertices, graph.vertices)
    )
    reached = csgraph.breadth_first_order(matrix, int(degrees.argmax()), return_predecessors=False)
    rank = np.full(graph.vertices, -1, edges.dtype)
    rank[reached] = np.arange(len(reached), dtype=edges.dtype)
    rest = np.flatnonzero(rank < 0)
    rank[rest] = np.arange(len(reached), graph.vertices, dtype=edges.dtype)
    made = graphs.write_folder(
        options.folder, graph.vertices, np.repeat(rank, degrees), rank[edges], directed=graph.directed
    )
    print(f"{made.path}: {made.vertices} vertices, {len(reached)} of them reached, {made.edges} edges")


if __name__ == "__main__":
    main()

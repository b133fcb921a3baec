"""Names for the vertices of a search, where the graph has them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.cli.graph_report import NamedPlaces
from penstock.graph.results import BfsResult, GraphCost

MOST = 5
# Above this the names are not worth a second search.
MOST_EDGES = 10_000_000


def named_places(result: GraphCost) -> NamedPlaces | None:
    """The source by name, and the vertices that stand out: those that most edges of a breadth-first search
    lead to, or those that rank highest.

    None where vertices have no names.
    """
    # Here and not above: penstock.graph needs the compiled part.
    from penstock.graph import open_folder

    folder = result.folder or open_folder(result.path)
    names = folder.names
    if not names or result.edges > MOST_EDGES:
        return None
    if hasattr(result, "ranks"):
        ranks = np.asarray(result.ranks)
        best = np.argsort(-ranks, kind="stable")[:MOST]
        return NamedPlaces(None, [(names[v], f"{ranks[v]:.3g}") for v in best], "highest ranks")
    if path := getattr(result, "farthest_path", None):
        shown = path if len(path) <= 2 * MOST else [*path[:MOST], *path[-MOST:]]
        on_the_way = [(names[v], f"{float(result.distances[v]):g}") for v in shown]  # type: ignore[attr-defined]
        return NamedPlaces(names[path[0]], on_the_way, "path to the farthest, by name")
    if not isinstance(result, BfsResult):
        return NamedPlaces(names[result.source], []) if hasattr(result, "source") else None
    if folder.on_volume:
        return NamedPlaces(names[result.source], [])
    reached = folder.bfs_depths(result.source) >= 0
    counts = edges_into(folder.offsets(), folder.edge_array(), reached)
    top = np.argsort(-counts, kind="stable")[:MOST]
    return NamedPlaces(names[result.source], [(names[v], f"{counts[v]:,}") for v in top if counts[v]])


def edges_into(
    offsets: npt.NDArray[np.uint64], edges: npt.NDArray[np.signedinteger], reached: npt.NDArray[np.bool_]
) -> npt.NDArray[np.intp]:
    """How many edges that leave a reached vertex lead to each vertex."""
    degrees = (offsets[1:] - offsets[:-1]).astype(np.int64)
    return np.bincount(edges[np.repeat(reached, degrees)], minlength=len(reached))

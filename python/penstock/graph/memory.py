"""Graphs that are in memory: edge_index arrays, sparse matrices, NetworkX graphs, DataFrames.

What they become is a folder in the cache that goes with the last use of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import Error

from . import sparse, tables
from ._binding import Array
from .ids import IntegerIds, Numbering
from .reading import OF_IDS, OF_TABLES, Reading
from .sparse import CoordinateGraph
from .weights import of_numbers, weights_of

PREFIX = "memory-"
LOCK = "lock"
_MOST_GAPS = 1 << 27  # vertices: 1 GiB of offsets


def name_of(given: Any) -> str | None:
    """What sentences call a graph in memory; None of what is none."""
    if _is_networkx(given) or tables.is_frame(given) or _is_sparse(given):
        return type(given).__name__
    if hasattr(given, "edge_index"):
        return f"{type(given).__name__}.edge_index"
    if isinstance(given, np.ndarray) or _is_tensor(given):
        return "edge_index"
    if (
        isinstance(given, (tuple, list))
        and len(given) in (2, 3)
        and all(hasattr(each, "dtype") for each in given)
    ):
        return "edge_index"
    return None


def graph_of(
    given: Any, called: str, reading: Reading
) -> tuple[CoordinateGraph, tuple[Hashable, ...] | None]:
    """The edges of what name_of() knows, and the vertices as objects where they are nodes of NetworkX.

    Raises ValueError or TypeError for what is no graph, and for options without effect.
    """
    if _is_networkx(given):
        reading.allow(called, (), "graphs of NetworkX")
        return _from_networkx(given, called)
    if tables.is_frame(given):
        reading.allow(called, OF_TABLES, "DataFrames")
        return tables.read_frame(called, given, reading), None
    if _is_sparse(given):
        reading.allow(called, (), "sparse matrices")
        return sparse.from_matrix(called, given), None
    reading.allow(called, OF_IDS, "arrays of edges")
    return _from_edge_index(given, called, reading), None


def _is_networkx(given: Any) -> bool:
    return all(hasattr(given, name) for name in ("is_directed", "is_multigraph", "edges", "nodes", "adj"))


def _is_sparse(given: Any) -> bool:
    library = sys.modules.get("scipy.sparse")
    return library is not None and bool(library.issparse(given))


def _is_tensor(given: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.Tensor)


def _from_networkx(graph: Any, called: str) -> tuple[CoordinateGraph, tuple[Hashable, ...] | None]:
    """Nodes in their order. Edges without a weight have 1 where others have one, as in NetworkX's
    algorithms."""
    nodes = tuple(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    edges = list(graph.edges(data="weight"))
    ends = np.array([(number[a], number[b]) for a, b, _ in edges], np.int64).reshape(-1, 2)
    given = [weight for _, _, weight in edges]
    values = None
    if any(weight is not None for weight in given):
        values = of_numbers(called, [1 if weight is None else weight for weight in given])
    own = nodes == tuple(range(len(nodes))) and all(type(node) is int for node in nodes)
    weight = "no weight" if values is None else f"attribute 'weight' as weight ({values.dtype})"
    directed = bool(graph.is_directed())
    made = CoordinateGraph(
        len(nodes), np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]), values, directed,
        names=None if own else [_as_line(node) for node in nodes],
        reading=f"{len(edges)} edges of {called}, {weight}",
        symmetrise=not directed,
    )  # fmt: skip
    return made, None if own else nodes


def _as_line(node: Hashable) -> str:
    """In the file of names, which is for people: the graph keeps the node itself."""
    text = str(node).encode("utf-8", errors="backslashreplace").decode()
    return text.replace("\r", "\\r").replace("\n", "\\n")


def _from_edge_index(given: Any, called: str, reading: Reading) -> CoordinateGraph:
    weights = count = None
    if hasattr(given, "edge_index"):
        count, weights = given.num_nodes, getattr(given, "edge_weight", None)
        given = given.edge_index
        if given is None:
            raise TypeError(f"read {called}: it is None: give the edges as a tensor of shape (2, edges)")
    elif isinstance(given, (tuple, list)) and len(given) == 3:
        given, weights = given[:2], given[2]
    ends = _ends(given, called)
    values = None if weights is None else weights_of(called, _flat(weights, called))
    if values is not None and len(values) != len(ends[0]):
        raise ValueError(f"read {called}: {len(values)} weights for {len(ends[0])} edges: give one of each")
    ids = IntegerIds(str(ends[0].dtype))
    ids.add(*ends)
    found = ids.numbered(called, Numbering(reading.first_id or 0, gaps=not reading.renumber))
    vertices = found.vertices
    sparse_ids = vertices > _MOST_GAPS and vertices > 64 * len(found.from_)
    if sparse_ids and count is None and reading.renumber is None:
        raise ValueError(
            f"read {called}: it has {len(found.from_)} edges, and vertices up to {vertices - 1}: give "
            "renumber=True to number those that there are, or False to take all up to there"
        )
    if count is not None and found.names is None:
        if count < vertices:
            raise ValueError(
                f"read {called}: it has vertex {vertices - 1}, and num_nodes is {count}: correct it"
            )
        vertices = int(count)
    weight = "no weight" if values is None else f"weight ({values.dtype})"
    return CoordinateGraph(
        vertices, found.from_, found.to, values, directed=True, names=found.names,
        reading=f"{len(found.from_)} edges: source row 0, target row 1, {weight}{found.remark}",
    )  # fmt: skip


def _ends(given: Any, called: str) -> tuple[Array, Array]:
    rows = given if isinstance(given, (tuple, list)) else _numpy(given)
    shape = (len(rows), *np.shape(rows[0])) if len(rows) else (0,)
    if len(shape) != 2 or shape[0] != 2:
        turned = ": transpose it" if len(shape) == 2 and shape[1] == 2 else ""
        raise ValueError(f"read {called}: it has shape {shape}: give (2, edges){turned}")
    from_, to = _flat(rows[0], called), _flat(rows[1], called)
    if from_.dtype.kind not in "iu" or to.dtype.kind not in "iu":
        raise TypeError(f"read {called}: ids of dtype {from_.dtype}: give integers")
    if len(from_) != len(to):
        raise ValueError(f"read {called}: {len(from_)} sources and {len(to)} targets: give as many of each")
    wide = np.uint64 if np.uint64 in (from_.dtype, to.dtype) else np.int64
    return from_.astype(wide), to.astype(wide)


def _flat(given: Any, called: str) -> Array:
    array = _numpy(given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"read {called}: an array of shape {array.shape}: give one dimension")
    return array


def _numpy(given: Any) -> Array:
    if _is_tensor(given):
        given = given.detach().cpu()
        if str(given.layout) != "torch.strided":
            raise TypeError(
                f"read edge_index: a tensor of layout {given.layout}: give a dense one, shape (2, edges)"
            )
        given = (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()
    if np.ma.is_masked(given):
        raise ValueError("read edge_index: some of it is masked: leave those edges out")
    return np.asarray(given)


class Keeper:
    """As long as it lives, so does a folder."""


def keep_in(cache: Path, make: Callable[[str], object]) -> tuple[Path, Keeper]:
    """Makes a folder in `cache`, which goes with the second result, or with the process.

    A lock shows that it is in use; what killed processes left is removed on the way.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(cache)
        place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=cache))
    except OSError as error:
        code = error.errno or 0
        raise Error(f"create {cache}: {os.strerror(code)}: choose a folder (cache_dir)", code) from error
    lock = os.open(place / "new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # not every file system has locks
        fcntl.flock(lock, fcntl.LOCK_EX)
    (place / "new").rename(place / LOCK)
    owner = os.getpid()
    try:
        make(str(place / "graph"))
    except BaseException:
        _remove(place, lock, owner)
        raise
    keeper = Keeper()
    weakref.finalize(keeper, _remove, place, lock, owner)
    return place / "graph", keeper


def _remove(place: Path, lock: int, owner: int) -> None:
    if os.getpid() != owner:
        return  # a copy of the process that made it
    shutil.rmtree(place, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.close(lock)


def _remove_leftovers(cache: Path) -> None:
    for place in cache.glob(PREFIX + "*"):
        try:
            lock = os.open(place / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)

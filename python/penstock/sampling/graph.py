"""The edges of one type as lists of neighbours, in arrays that lie anywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays import from_tensor, open_array
from penstock.arrays.base import is_array
from penstock.arrays.messages import shown
from penstock.checks import checked_count
from penstock.sampling.host import on_host
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from penstock.arrays import Array

_MAX_NODES = 2**40
_INTEGERS = ("int32", "int64", "uint32", "uint64")
_TIMES = ("int32", "int64")
_REALS = ("float32", "float64")
_PARTS = ("pointers", "neighbors", "weights", "edge_times", "node_times")


class Graph:
    """Lists of neighbours: those of node v are `neighbors[pointers[v] : pointers[v + 1]]`.

    What a list means is the caller's. For training, as in PyG, node v lists the sources of the edges that
    lead to it (CSC), and samples go against the edges.

    Attributes:
        pointers: Array of integers, shape (nodes + 1,).
        neighbors: Array of integers, shape (edges,): numbers of nodes, below `sources`.
        weights: Array of float32 or float64, shape (edges,), or None: neighbours are drawn in proportion.
        edge_times, node_times: Arrays of int32 or int64, shape (edges,) or (sources,), or None: neighbours
            later than a seed's time are not drawn.
        edge_ids: int64 tensor or NumPy array, shape (edges,), or None: what the caller calls the edges.
        nodes: How many nodes have a list.
        sources: How many nodes neighbours are numbered among; `nodes` unless two types of nodes are joined.
    """

    def __init__(
        self,
        pointers: Any,
        neighbors: Any,
        *,
        sources: int | None = None,
        weights: Any = None,
        edge_times: Any = None,
        node_times: Any = None,
        edge_ids: Any = None,
        placement: str = "auto",
        device: Any = "auto",
        cache: int | str | None = None,
    ) -> None:
        """Over arrays, tensors, NumPy arrays, or paths of files.

        Args:
            pointers, neighbors, weights, edge_times, node_times: As the attributes. A penstock.Array is taken
                as it is; of the rest `placement`, `device` and `cache` say where it lies and where kernels
                run, as for `penstock.open`. Pointers and times of nodes, which every step looks up, lie in
                GPU memory where they fit ("auto").
            sources: Nodes that neighbours are numbered among, where these are of another type.
            edge_ids: Names of the edges, for samples; by default their positions in `neighbors`.

        Raises:
            TypeError, ValueError: What has another shape or type, pointers that are none of these neighbours,
                arrays of different devices.
        """
        place = {"placement": placement, "device": device, "cache": cache}
        beside = {"placement": "auto", "device": device}
        for name, given in (("pointers", pointers), ("neighbors", neighbors)):
            if given is None:
                raise TypeError(f"graph: {name}: None: give an array, a tensor or the path of a file")
        self.pointers = _numbers("pointers", pointers, beside, _INTEGERS)
        self.neighbors = _numbers("neighbors", neighbors, place, _INTEGERS)
        self.weights = _numbers("weights", weights, place, _REALS)
        self.edge_times = _numbers("edge_times", edge_times, place, _TIMES)
        self.node_times = _numbers("node_times", node_times, beside, _TIMES)
        self.edge_ids = _edge_ids(edge_ids)
        self.nodes = len(self.pointers) - 1
        self.sources = self.nodes if sources is None else checked_count("sources", sources, 0, _MAX_NODES)
        self._check()

    def _check(self) -> None:
        if self.nodes < 0:
            raise ValueError("graph: pointers has no element: give one more than there are nodes")
        first, last = (int(on_host(self.pointers[at : at + 1])[0]) for at in (0, self.nodes))
        edges = len(self.neighbors)
        if first != 0 or last != edges:
            raise ValueError(
                f"graph: pointers go from {first} to {last}, and there are {edges} neighbors: give the first "
                "edge of each node, and behind the last one the number of edges"
            )
        for name, wanted in (("weights", edges), ("edge_times", edges), ("node_times", self.sources)):
            array = getattr(self, name)
            if array is not None and len(array) != wanted:
                raise ValueError(f"graph: {len(array)} {name}: there are {wanted}: give one for each")
        if self.edge_ids is not None and len(self.edge_ids) != edges:
            raise ValueError(f"graph: {len(self.edge_ids)} edge_ids: there are {edges}: give one for each")
        if self.edge_times is not None and self.node_times is not None:
            raise ValueError("graph: edge_times and node_times: give one of them")
        executors = {id(array._executor): array for array in self.arrays()}
        if len(executors) > 1:
            names = " and ".join(sorted({array.device_name for array in executors.values()}))
            raise ValueError(f"graph: its arrays are of {names}: open all for one device")

    @classmethod
    def open(
        cls,
        folder: Any,
        *,
        placement: str = "auto",
        device: Any = "auto",
        cache: int | str | None = None,
    ) -> Graph:
        """The graph in a folder: `pointers.npy` and `neighbors.npy` as datasets have them (CSC), or
        `offsets.npy` and `edges.npy` of a graph folder (docs/GRAPHS.md), whose lists are outgoing edges:
        those of its folder `incoming` are the others.

        Args:
            folder: Its path, or an object with a path as `folder`.
            placement, device, cache: As for `penstock.open`.

        Raises:
            FileNotFoundError: No such files.
        """
        path = Path(getattr(folder, "folder", folder))
        for pointers, neighbors in (("pointers.npy", "neighbors.npy"), ("offsets.npy", "edges.npy")):
            if (path / pointers).exists() and (path / neighbors).exists():
                options = {"placement": placement, "device": device, "cache": cache}
                weights = path / "weights.npy"
                known = weights.exists() and pointers == "pointers.npy"
                return cls(path / pointers, path / neighbors, weights=weights if known else None, **options)
        raise FileNotFoundError(
            f"open the graph in {path}: it has neither pointers.npy and neighbors.npy nor offsets.npy and "
            "edges.npy: name the folder of a dataset or a graph"
        )

    @classmethod
    def from_edges(
        cls,
        sources: Any,
        targets: Any,
        nodes: int | tuple[int, int] | None = None,
        *,
        weights: Any = None,
        edge_times: Any = None,
        placement: str = "auto",
        device: Any = "auto",
        cache: int | str | None = None,
        **options: Any,
    ) -> Graph:
        """A graph in memory whose lists are the sources of the edges into each node.

        Args:
            sources, targets: Integers, shape (edges,): the ends of each edge.
            nodes: How many there are; of two types (sources, targets). By default one more than the greatest.
            weights, edge_times: Of the edges, in the same order.
            placement, device, cache, options: As for the constructor.

        Returns:
            A graph whose `edge_ids` are positions in `sources`.

        Raises:
            ValueError: A number that is no node, sides of different lengths.
        """
        row, column = (np.asarray(on_host(side)).reshape(-1) for side in (sources, targets))
        row, column = (side if len(side) else side.astype(np.int64) for side in (row, column))
        for name, side in (("sources", row), ("targets", column)):
            if len(side) and side.dtype.kind not in "iu":
                raise TypeError(f"graph: {name} of type {side.dtype}: give integers")
        if len(row) != len(column):
            raise ValueError(f"graph: {len(row)} sources and {len(column)} targets: give as many of both")
        for name, given in (("weights", weights), ("edge_times", edge_times)):
            if given is not None and len(given) != len(row):
                raise ValueError(f"graph: {len(given)} {name}: there are {len(row)} edges: give one for each")
        counts = _sizes(nodes, 1 + max((int(side.max()) for side in (row, column) if len(side)), default=-1))
        for name, side, count in (("source", row, counts[0]), ("target", column, counts[1])):
            if len(side) and not (side.min() >= 0 and side.max() < count):
                wrong = int(side.min()) if side.min() < 0 else int(side.max())
                raise ValueError(f"graph: {name} {wrong}: it is no node: give numbers from 0 to {count - 1}")
        order = np.argsort(column, kind="stable")
        pointers = np.zeros(counts[1] + 1, np.int64)
        np.cumsum(np.bincount(column.astype(np.int64), minlength=counts[1]), out=pointers[1:])
        sorted_values = [None if each is None else on_host(each)[order] for each in (weights, edge_times)]
        return cls(
            pointers,
            np.ascontiguousarray(row[order]).astype(np.int32 if counts[0] < 2**31 else np.int64),
            sources=counts[0],
            weights=sorted_values[0],
            edge_times=sorted_values[1],
            edge_ids=order.astype(np.int64),
            placement=placement,
            device=device,
            cache=cache,
            **options,
        )

    @property
    def edges(self) -> int:
        return len(self.neighbors)

    def arrays(self) -> list[Array]:
        """Those that it has."""
        all_arrays = (self.pointers, self.neighbors, self.weights, self.edge_times, self.node_times)
        return [array for array in all_arrays if array is not None]

    def close(self) -> None:
        """Gives back what it opened, and closes the arrays that it was given."""
        for array in self.arrays():
            array.close()

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self.neighbors.placement
        return f"Graph({self.nodes} nodes, {self.edges} edges, {where}, {self.neighbors.device_name})"

    def __reduce__(self) -> tuple[Any, ...]:
        """By reference to files; what lies in memory by value."""
        parts = {name: _portable(getattr(self, name)) for name in _PARTS}
        return _again, (parts, self.sources, self.edge_ids)

    def lent(self, target: int = 0, source: int = 0) -> dict[str, Any]:
        """Its arrays for the native classes, which keep them open no longer than these are.

        Args:
            target, source: Numbers of the node types.
        """

        def one(array: Array | None) -> Any:
            return None if array is None else (array._open(), array.dtype.itemsize)

        return {
            "target": target,
            "source": source,
            "pointers": one(self.pointers),
            "neighbors": one(self.neighbors),
            "weights": one(self.weights),
            "edge_times": one(self.edge_times),
            "node_times": one(self.node_times),
        }


def _edge_ids(given: Any) -> Any:
    if given is None:
        return None
    ids = given if is_torch(given) else np.asarray(given)
    if str(ids.dtype).rpartition(".")[2] not in _INTEGERS or ids.ndim != 1:
        raise TypeError(f"graph: edge_ids: {ids.dtype} of shape {tuple(ids.shape)}: give a list of integers")
    return ids


def _sizes(given: Any, least: int) -> tuple[int, int]:
    """Of sources and targets. least: one more than the greatest number."""
    if given is None and least > _MAX_NODES:
        raise ValueError(f"graph: node {least - 1}: give numbers below {_MAX_NODES}")
    counts = given if isinstance(given, tuple) else (least if given is None else given,) * 2
    if len(counts) != 2 or any(
        (whole_number(each) or 0) != each or not 0 <= each <= _MAX_NODES for each in counts
    ):
        raise ValueError(
            f"graph: nodes {shown(given)}: give how many there are, of two types (sources, targets)"
        )
    return int(counts[0]), int(counts[1])


def _portable(array: Any) -> Any:
    if array is None or array.path is not None:
        return array
    return np.array(on_host(array[:])), array.placement, array.opened.device


def _again(parts: dict[str, Any], sources: int, edge_ids: Any) -> Graph:
    made: dict[str, Any] = {
        name: from_tensor(part[0], part[1], device=part[2]) if isinstance(part, tuple) else part
        for name, part in parts.items()
    }
    return Graph(**made, sources=sources, edge_ids=edge_ids)


def _numbers(name: str, given: Any, place: dict[str, Any], kinds: tuple[str, ...]) -> Any:
    """An array over what was given. None for None."""
    if given is None:
        return None
    options = {key: value for key, value in place.items() if value is not None}
    if is_array(given):
        array = given
    elif isinstance(given, (str, os.PathLike)):
        if options["placement"] == "auto":
            options.pop("cache", None)
        array = open_array(given, **options)
    elif is_torch(given) or hasattr(given, "__array__") or isinstance(given, (list, tuple)):
        values = given if is_torch(given) else np.ascontiguousarray(given)
        if not is_torch(given) and values.shape == (0,) and not hasattr(given, "dtype"):
            values = values.astype(kinds[-1])
        if is_torch(given):
            values = given.detach().contiguous()
            if values.is_cuda:
                options["placement"] = "hbm"
        if options["placement"] == "storage":
            raise ValueError(f"graph: {name} in memory with placement storage: name a file, or choose host")
        if name == "pointers" and values.shape and (on_host(values[1:]) < on_host(values[:-1])).any():
            raise ValueError("graph: pointers decrease: give the first edge of each node, in order")
        array = from_tensor(values, **options)
    else:
        raise TypeError(f"graph: {name}: {shown(given)}: give an array, a tensor or the path of a file")
    if len(array.shape) != 1 or array.dtype.name not in kinds:
        raise TypeError(
            f"graph: {name}: {array.dtype} of shape {array.shape}: give {' or '.join(kinds)} in one dimension"
        )
    return array

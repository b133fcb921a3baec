"""Graph folders: opening, making from arrays, and checking a search's answer."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.arguments import reading
from penstock.checks import checked_count, checked_integer
from penstock.sizes import parse_size
from penstock.volume.names import is_volume

from ._binding import Array, ArrayPlace, FolderFacts, StepProgress, native
from .ids import RENUMBERED
from .weights import of_numbers, weights_of


@dataclass(frozen=True)
class GraphFolder:
    """An opened and checked graph folder.

    path: the folder.
    vertices, edges: numbers of vertices and of stored neighbours (an undirected edge counts twice).
    directed: False when every edge is stored in both directions.
    source: how the graph was made, for people.
    edges_place, weights_place: file, byte offset, dtype and length of the two arrays; no weights: None.
    names_path: file with one name per line and vertex, or None; on a volume always None.
    reading: which columns of the source were taken as what, and how many rows, for people; empty where not
    known.
    has_names: whether vertices have names, wherever these lie.
    called: what the user called the graph. labels: nodes of a NetworkX graph by vertex, or None.
    keeper: of a graph in memory, what keeps its folder.

    Of a graph on a volume (resolve), the arrays are no files: mapping them raises ValueError.
    """

    path: Path
    vertices: int
    edges: int
    directed: bool
    source: str
    edges_place: ArrayPlace
    weights_place: ArrayPlace | None
    names_path: Path | None
    reading: str = ""
    has_names: bool = False
    called: str = field(default="", compare=False)
    labels: tuple[Hashable, ...] | None = field(default=None, compare=False, repr=False)
    keeper: object = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """What sentences call the graph."""
        return self.called or str(self.path)

    @property
    def on_volume(self) -> bool:
        """Its arrays are no files then."""
        return is_volume(str(self.path))

    @property
    def edge_dtype(self) -> np.dtype[np.signedinteger]:
        """int32 or int64."""
        return np.dtype(self.edges_place["dtype"])

    @cached_property
    def names(self) -> list[str] | None:
        """The vertices' names in order, also of a graph on a volume, or None.

        Raises ValueError when there is not one for each, penstock.Error when they cannot be read.
        """
        if not self.has_names:
            return None
        text = native.graph_names(str(self.path)).decode("utf-8", errors="surrogateescape")
        names = text.split("\n")[:-1]
        if len(names) != self.vertices:
            counts = f"{len(names)} names for {self.vertices} vertices"
            raise ValueError(f"open {self.names_path or self.path}: {counts}: convert the graph again")
        return names

    @cached_property
    def ids(self) -> Sequence[Hashable] | None:
        """What the vertices are called where the graph comes from: nodes of NetworkX; integers where ids were
        integers; else names, or None. Raises as `names`."""
        names = self.labels or self.names
        if self.labels or names is None or RENUMBERED not in self.reading.split("; "):
            return names
        try:
            return [int(name) for name in names]  # type: ignore[call-overload]
        except ValueError:  # other names were written since
            return names

    @property
    def place_of_names(self) -> str:
        """Where to look names up, in words: their file, where the user knows of it."""
        own = self.called in ("", str(self.path))
        return str(self.names_path) if own and self.names_path else "GraphFolder.names"

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        """Of names and ids, or of labels, the vertices; -1 for what several vertices are called."""
        numbers: dict[Hashable, int] = {}
        for vertex, name in enumerate(self.labels or self.names or ()):
            numbers[name] = -1 if name in numbers else vertex
        if self.labels is None and self.ids is not self.names:
            numbers |= {each: vertex for vertex, each in enumerate(self.ids or ())}
        return numbers

    def vertex(self, name: Hashable) -> int:
        """The vertex of a name, also of an integer id (of a node, where the graph is one of NetworkX).

        Raises KeyError for a name that no vertex has, ValueError for one that several have.
        """
        found = self._numbers[name]
        if found < 0:
            raise ValueError(f"search {self.shown}: '{name}': several vertices have this name")
        return found

    def node_number(self, node: Hashable) -> int:
        """vertex() for a node of NetworkX. Raises ValueError for what is none."""
        try:
            return self.vertex(node)
        except (KeyError, TypeError):
            raise ValueError(f"search {self.shown}: source {node!r}: it is no node of the graph") from None

    def names_of(self, vertices: ArrayLike) -> list[Hashable]:
        """Of `ids` those of vertices, such as parents or labels of components; None for numbers below 0.
        Numbers where vertices have no names.

        vertices: integers, shape (n,).
        """
        names = self.ids
        numbers = np.asarray(vertices).tolist()
        return [None if v < 0 else v if names is None else names[v] for v in numbers]

    def offsets(self) -> NDArray[np.uint64]:
        """Map offsets.npy, read-only: uint64, shape (vertices + 1,).

        Vertex v has the edges from offsets[v] up to, not including, offsets[v + 1].
        """
        # They may be stored as int64; opening saw that none is negative.
        return self._map("offsets.npy").view(np.uint64)

    def edge_array(self) -> NDArray[np.signedinteger]:
        """Map edges.npy, read-only: shape (edges,), int32 or int64."""
        return self._map("edges.npy")

    def weight_array(self) -> Array | None:
        """Map weights.npy, read-only: shape (edges,), int32 or float32; None without weights."""
        return self._map("weights.npy") if self.weights_place else None

    def _map(self, name: str) -> Array:
        if self.on_volume:
            raise ValueError(f"map {name} of {self.shown}: the graph lies on a volume: export it")
        array: Array = np.load(self.path / name, mmap_mode="r", allow_pickle=False)
        return array

    def write_incoming(
        self,
        *,
        threads: int | None = None,
        memory: int | str | None = None,
        progress: StepProgress | None = None,
    ) -> GraphFolder:
        """The lists of incoming edges, without weights, as a graph of its own in the folder `incoming`.

        Makes them unless they are there; an undirected graph is its own. Searches of a directed graph go on
        from below with them, and ranks are pulled. memory: as for `write_folder`.
        Raises penstock.Error when the folder cannot be written.
        """
        if not self.directed:
            return self
        native.graph_write_incoming(
            str(self.path), threads=threads or 0, memory=memory_limit(memory), progress=progress
        )
        return replace(open_folder(self.path / "incoming"), labels=self.labels, keeper=self.keeper)

    def bfs_depths(self, source: int, *, progress: StepProgress | None = None) -> NDArray[np.int32]:
        """Depths by a serial search from `source`: int32, shape (vertices,), -1 where there is no path.

        Raises ValueError when `source` is no vertex or an edge leads out of the graph.
        """
        return native.graph_bfs_depths(str(self.path), self._checked(source), progress)

    def verify_bfs(self, source: int, parents: ArrayLike, *, progress: StepProgress | None = None) -> str:
        """Check a search's answer by GAP's rules.

        parents: int32 or int64, shape (vertices,); negative where the search did not arrive.
        Returns an empty string, or one sentence on the first vertex that breaks a rule.
        Raises ValueError when `source` is no vertex or `parents` does not fit.
        """
        start, parents = self._checked(source), np.asarray(parents)
        if parents.ndim != 1 or parents.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise ValueError(
                f"verify {self.shown}: parents of dtype {parents.dtype}, shape {parents.shape}: "
                "give one dimension of int32 or int64"
            )
        return native.graph_verify_bfs(str(self.path), start, np.ascontiguousarray(parents), progress)

    def _checked(self, source: int) -> int:
        start = checked_integer("source", source)
        if not 0 <= start < self.vertices:
            raise ValueError(
                f"bfs {self.shown}: source {start} is no vertex: the graph has {self.vertices}, from 0"
            )
        return start


def _from_facts(facts: FolderFacts) -> GraphFolder:
    return GraphFolder(
        path=Path(facts["path"]),
        vertices=facts["vertices"],
        edges=facts["edges"],
        directed=facts["directed"],
        source=facts["source"],
        edges_place=facts["edges_place"],
        weights_place=facts["weights_place"],
        names_path=Path(facts["names_path"]) if facts["names_path"] else None,
        reading=facts["reading"],
        has_names=facts["has_names"],
    )


def open_folder(
    path: str | os.PathLike[str], *, validate_edges: bool = False, progress: StepProgress | None = None
) -> GraphFolder:
    """Open a graph folder and check it; with `validate_edges`, read all edges, too: each must be a vertex,
    and in an undirected graph go both ways.

    Raises ValueError when something does not fit, penstock.Error when a file is missing or cannot be read.
    """
    try:
        facts = native.graph_open(os.fspath(path), validate_edges=validate_edges, progress=progress)
    except UnicodeDecodeError:
        raise ValueError(
            f"open {os.fspath(path)}: its graph.json is no UTF-8: convert the graph again"
        ) from None
    return _from_facts(facts)


def memory_limit(memory: int | str | None) -> int:
    """Bytes as the compiled part takes them: it finds out whether they suffice, and takes 0 for no limit."""
    return 0 if memory is None else max(parse_size(memory, "memory"), 1)


def write_folder(
    path: str | os.PathLike[str],
    vertices: int,
    from_: ArrayLike,
    to: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    directed: bool = True,
    symmetrise: bool = False,
    simple: bool = False,
    source: str = "arrays",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: StepProgress | None = None,
) -> GraphFolder:
    """Make the graph folder `path`, all at once or not at all, from a list of edges.

    from_, to: integers in [0, vertices), shape (n,). weights: integers that fit int32, or finite floats,
        which are kept as float32; shape (n,). An integer that these cannot hold exactly is refused.
    names: one string without newline per vertex.
    directed: False says that the list has each edge in both directions, which is checked.
    symmetrise: store each edge in both directions, whatever the list has; the graph is undirected then.
    simple: drop self loops and all but one of equal edges.
    memory: limit of what is taken besides the arrays; see resolve().
    Raises ValueError when the arrays do not fit together, penstock.Error when the folder cannot be written.
    """
    with reading(f"create {path}", from_, to, weights):
        build_folder(
            path,
            checked_count("vertices", vertices, 0, most=2**40),
            _ids(path, from_),
            _ids(path, to),
            weights=None if weights is None else _weights(path, weights),
            names=None if names is None else _names(path, names),
            directed=directed and not symmetrise,
            symmetrise=symmetrise,
            unique=False,
            simple=simple,
            source=source,
            threads=0 if threads is None else checked_count("threads", threads, 0),
            memory=memory_limit(memory),
            progress=progress,
        )
    return open_folder(path)


def _weights(path: str | os.PathLike[str], given: ArrayLike) -> Array:
    if isinstance(given, (list, tuple)):
        return of_numbers(os.fspath(path), given)
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"create {path}: weights of shape {array.shape}: give one for each edge, shape (n,)")
    return weights_of(os.fspath(path), array)


def _names(path: str | os.PathLike[str], names: Sequence[str]) -> list[str]:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"create {path}: name {name!r} is no text: give a str for each vertex")
        if "\n" in name or "\r" in name:
            raise ValueError(f"create {path}: name {name!r} has a line break in it: remove it")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(f"create {path}: name {name!r} is no UTF-8: change it") from None
    return list(names)


def _ids(path: str | os.PathLike[str], given: ArrayLike) -> Array:
    array = np.asarray(given)
    if array.size == 0 and array.ndim == 1:
        return array.astype(np.int32)  # of no list NumPy knows what it would hold
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"create {path}: edges of dtype {array.dtype}, shape {array.shape}: give integers, shape (n,)"
        )
    return array


def build_folder(
    path: str | os.PathLike[str],
    vertices: int,
    from_: Array,
    to: Array,
    *,
    weights: Array | None,
    names: Sequence[str] | None,
    directed: bool,
    symmetrise: bool,
    unique: bool,
    simple: bool,
    source: str,
    threads: int,
    memory: int,
    progress: StepProgress | None,
    reading: str = "",
    of: str = "",
) -> None:
    """write_folder() as the compiled part has it. from_, to: integers, shape (n,). unique: of equal edges
    keep one, that with the least weight. of: what errors say is converted, in place of the folder."""
    wide = vertices >= 2**31 or any(a.dtype.itemsize > 4 or a.dtype == np.uint32 for a in (from_, to))
    id_type = np.int64 if wide else np.int32
    native.graph_build(
        os.fspath(path),
        vertices=vertices,
        from_=np.ascontiguousarray(from_, dtype=id_type),
        to=np.ascontiguousarray(to, dtype=id_type),
        weights=None if weights is None else np.ascontiguousarray(weights),
        names=list(names or ()),
        directed=directed,
        symmetrise=symmetrise,
        unique=unique,
        simple=simple,
        source=source,
        reading=reading,
        threads=threads,
        memory=memory,
        of=of,
        progress=progress,
    )

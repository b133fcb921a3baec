"""Breadth-first search over a graph on disk."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from penstock.errors import Error
from penstock.sizes import parse_size, whole_number

if TYPE_CHECKING:
    from types import ModuleType

    from penstock.graph import GraphFolder

Executor = Literal["auto", "cpu", "cuda"]
Engine = Literal["auto", "io_uring", "pread"]
Directory = Literal["auto", "direct", "set"]
Progress = Callable[[str, int, int], None]
"""Called with what is being done ("prepare", "level 3", "verify"), how much is done, how much there is."""

EXECUTORS: tuple[Executor, ...] = ("auto", "cpu", "cuda")
ENGINES: tuple[Engine, ...] = ("auto", "io_uring", "pread")
DIRECTORIES: tuple[Directory, ...] = ("auto", "direct", "set")
RANDOM_SOURCE = -1
MOST = (1 << 31) - 1  # threads and entries of a queue that the compiled part can count


@dataclass(frozen=True)
class BfsResult:
    """What a search found and what it cost. Bytes are of edges read through the cache."""

    graph: str
    path: str
    vertices: int
    edges: int
    directed: bool

    source: int
    reached: int
    levels: int
    edges_traversed: int
    seconds: float
    teps: float
    """Traversed edges per second."""
    verified: bool | None
    """Whether the reference agrees; None when it was not asked."""
    violation: str
    """What it found wrong, as a sentence; empty where nothing is, or it was not asked."""

    executor: str
    device: str
    engine: str
    hits: int
    misses: int
    joins: int
    """Accesses that waited for a line that somebody else was already fetching."""
    fills: int
    prefetches: int
    evictions: int
    retries: int
    errors: int
    bytes_asked: int
    bytes_moved: int
    amplification: float
    """Bytes moved over bytes asked."""
    frames: int
    line_bytes: int
    cache_bytes: int
    metadata_bytes: int
    """Of the cache, besides its lines."""
    directory: str
    """How the cache finds a line. direct: an entry per line of the edges; set: one per line of its own."""
    directory_bytes_per_tib: int
    """Of edges, at this cache's ratio of directory to edges."""
    edge_bytes: int
    offset_bytes: int
    vertex_bytes: int
    load_seconds: float
    verify_seconds: float
    level_sizes: list[int]
    level_seconds: list[float]
    peak_rss_bytes: int
    file_rss_bytes: int
    """Pages of files in that; the system may take them back."""

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def bfs(
    graph: str | os.PathLike[str] | GraphFolder,
    *,
    source: SupportsIndex | None = None,
    cache: SupportsIndex | str = "16MiB",
    line: SupportsIndex | str = "4KiB",
    directory: Directory = "auto",
    executor: Executor = "auto",
    engine: Engine = "auto",
    direct: bool = False,
    threads: SupportsIndex = 0,
    queue_depth: SupportsIndex = 256,
    verify: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> BfsResult:
    """Search a graph level by level; its edges stay on storage, behind a cache.

    graph: a graph folder, a file (.el, .wel, .mtx, .sg, .npz), a generator (kron:20, urand:20:16), "debian",
        or a graph that penstock.graph opened. All but the first and the last are made once, in `cache_dir`.
    cache, line: bytes of the cache and of what one miss brings in; numbers, or text such as 16MiB.
    directory: how the cache finds a line; direct costs 8 bytes for each line of the edges, set 64 for each
        seven lines of the cache. auto takes direct while that is little beside the cache.
    source: a vertex; without one, a vertex with out-edges drawn with a fixed seed.
    threads: of the CPU executor; 0 takes as many as there are cores.
    Raises ValueError or TypeError for bad arguments and bad files, penstock.Error when the machine refuses.
    """
    cache_bytes, line_bytes = parse_size(cache, "cache"), parse_size(line, "line")
    _check(directory, DIRECTORIES, "directory")
    _check(executor, EXECUTORS, "executor")
    _check(engine, ENGINES, "engine")
    workers = _count("threads", threads, 0)
    depth = _count("queue_depth", queue_depth, 2)
    start = None if source is None else _integer("source", source)
    native = load_native()
    found = _resolve(graph, cache_dir, progress)
    name = str(found.path) if graph is found else str(graph)
    if start is not None and not 0 <= start < found.vertices:
        raise ValueError(f"search {found.path}: source {start}: the vertices are 0 to {found.vertices - 1}")
    result = native.bfs(
        path=str(found.path),
        source=RANDOM_SOURCE if start is None else start,
        cache_bytes=cache_bytes,
        line_bytes=line_bytes,
        directory=directory,
        executor=executor,
        engine=engine,
        direct=direct,
        threads=workers,
        queue_depth=depth,
        verify=verify,
        progress=progress,
    )
    return BfsResult(
        graph=name,
        path=str(found.path),
        vertices=found.vertices,
        edges=found.edges,
        directed=found.directed,
        **result,
    )


def load_native() -> ModuleType:
    """The compiled part. Raises Error where there is none."""
    try:
        from penstock import _native
    except ImportError as problem:
        sentence = f"import penstock._native: {problem}: reinstall Penstock with pip install ."
        raise Error(sentence) from problem
    return _native


def _resolve(
    graph: str | os.PathLike[str] | GraphFolder,
    cache_dir: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> GraphFolder:
    # Here and not above: penstock.graph needs the compiled part.
    from penstock.graph import GraphFolder, resolve

    if isinstance(graph, GraphFolder):
        return graph
    return resolve(graph, cache_dir=cache_dir, progress=_preparing(progress))


def _preparing(progress: Progress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress("prepare", done, total)


def _check(value: str, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} '{value}': there is no such {name}; choose one of {', '.join(allowed)}")


def _count(name: str, value: object, least: int) -> int:
    count = _integer(name, value)
    if count < least:
        raise ValueError(f"{name} {count}: it must be {least} or more")
    if count > MOST:
        raise ValueError(f"{name} {count}: it must be {MOST} or less")
    return count


def _integer(name: str, value: object) -> int:
    number = whole_number(value)
    if number is None:
        raise TypeError(f"{name} {value!r}: it is no whole number: give an int")
    return number

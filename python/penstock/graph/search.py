"""Breadth-first search over a graph on disk, and what it shares with the other algorithms."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsFloat, SupportsIndex, TypedDict

from penstock.effects import refuse_without_effect
from penstock.errors import Error
from penstock.graph_effects import OF_GRAPHS, OF_OPTIONS
from penstock.sizes import parse_size, whole_number

if TYPE_CHECKING:
    from types import ModuleType

    from typing_extensions import Unpack

    from penstock.graph import GraphFolder

GraphLike = Any
"""What penstock.graph.resolve takes: text or a path, a GraphFolder, or a graph in memory."""
Executor = Literal["auto", "cpu", "cuda"]
Engine = Literal["auto", "io_uring", "pread"]
Directory = Literal["auto", "direct", "set"]
Placement = Literal["storage", "host", "pinned", "host-cached", "hbm", "managed", "subgraph"]
Layout = Literal["striped", "replicated"]
Without = Literal["nothing", "cache", "coalescing", "validation", "read-ahead"]
Sources = Literal["gap", "emogi", "bam"]
MediaPlace = Literal["hbm", "host"]
Progress = Callable[[str, int, int], None]
"""Called with what is being done ("prepare", "level 3", "verify"; of arrays "copy"), how much of it is done,
how much there is."""

EXECUTORS: tuple[Executor, ...] = ("auto", "cpu", "cuda")
ENGINES: tuple[Engine, ...] = ("auto", "io_uring", "pread")
PLACEMENTS: tuple[Placement, ...] = (
    "storage",
    "host",
    "pinned",
    "host-cached",
    "hbm",
    "managed",
    "subgraph",
)
LAYOUTS: tuple[Layout, ...] = ("striped", "replicated")
WITHOUT: tuple[Without, ...] = ("nothing", "cache", "coalescing", "validation", "read-ahead")
SOURCES: tuple[Sources, ...] = ("gap", "emogi", "bam")
MEDIA_PLACES: tuple[MediaPlace, ...] = ("hbm", "host")
DIRECTORIES: tuple[Directory, ...] = ("auto", "direct", "set")
RANDOM_SOURCE = -1
CACHE, LINE = "16MiB", "4KiB"  # unless given
MOST = (1 << 31) - 1  # threads and entries of a queue that the compiled part can count


class GraphOptions(TypedDict, total=False):
    """What every algorithm takes; see `bfs`."""

    placement: Placement
    strategy: str
    cache: SupportsIndex | str | None
    line: SupportsIndex | str | None
    directory: Directory
    executor: Executor
    engine: Engine
    without: Without
    direct: bool
    threads: SupportsIndex
    queues: SupportsIndex
    queue_depth: SupportsIndex
    media: str
    drives: SupportsIndex
    media_place: MediaPlace
    layout: Layout
    server_sms: SupportsIndex
    trials: SupportsIndex
    sources: Sources
    level_traffic: bool
    verify: bool
    incoming: bool
    undirected: bool
    format: str | None
    columns: Sequence[str | int] | str | None
    delimiter: str | None
    header: bool | None
    first_id: SupportsIndex | None
    renumber: bool | None
    memory: SupportsIndex | str | None
    cache_dir: str | os.PathLike[str] | None


@dataclass(frozen=True, kw_only=True)
class GraphCost:
    """What a run over a graph cost; of several trials the last. Bytes are of edges, and of weights where they
    are read."""

    title: ClassVar[str] = ""
    VERTICES: ClassVar[bool] = False
    """Whether what is found for each vertex is a vertex."""

    graph: str
    path: str
    vertices: int
    edges: int
    directed: bool

    edges_traversed: int
    seconds: float
    teps: float
    """Traversed edges per second."""
    trial_seconds: list[float]
    trial_sources: list[int]
    """Empty where an algorithm has none."""
    verified: bool | None
    """Whether the reference agrees; None when it was not asked."""
    violation: str
    """What it found wrong, as a sentence; empty where nothing is, or it was not asked."""

    executor: str
    device: str
    engine: str
    placement: str
    strategy: str
    media: str
    """What storage was: file, or the preset of a modelled drive."""
    drives: int
    """Modelled ones; 0 for files."""
    media_bytes_per_second: float
    """What modelled drives were specified to read together; 0 for files."""
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
    sector_bytes: int
    """Of edges that a GPU reads in place: 32 for each sector that a group asked for at once."""
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
    tile_bytes: int
    """Of tables over tiles of edges."""
    tile_seconds: float
    """Part of load_seconds: finding the first vertex of each tile."""
    load_seconds: float
    verify_seconds: float
    level_sizes: list[int]
    """Vertices of each round."""
    level_seconds: list[float]
    level_strategies: list[str]
    """How edges were shared out in each round."""
    level_bytes: list[int]
    """Moved, or of sectors; empty without `level_traffic`, and where a CPU reads in place."""
    peak_rss_bytes: int
    file_rss_bytes: int
    """Pages of files in that; the system may take them back."""
    folder: Any = field(default=None, metadata={"of the graph": True}, repr=False, compare=False)
    """The GraphFolder that it ran over."""

    @property
    def names(self) -> list[str] | None:
        """Of the vertices, in order, or None; of a graph of NetworkX its nodes."""
        return None if self.folder is None else self.folder.labels or self.folder.names

    def by_name(self) -> dict[Hashable, Any]:
        """What was found for each vertex, by its name (its number, where vertices have no names). Parents and
        labels of components are names, too; None where there is none.

        `pandas.Series(result.by_name())` is a column with names as its index. Raises ValueError where several
        vertices have one name.
        """
        values = next(
            getattr(self, each.name) for each in dataclasses.fields(self) if each.metadata == PER_VERTEX
        ).tolist()
        names = self.names or range(self.vertices)
        if self.VERTICES:
            values = [None if value < 0 else names[value] for value in values]
        found = dict(zip(names, values, strict=True))
        if len(found) < len(values):
            raise ValueError(
                f"look {self.graph} up by name: several vertices have one name: go by their numbers"
            )
        return found

    def found(self) -> list[tuple[str, str]]:
        """Names and values of what is not cost, for a table, which begins with them."""
        return []

    def shortcoming(self) -> str:
        """Why the result is not what was asked for, though nothing of it is wrong; else empty."""
        return ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON: without what is as long as the graph has vertices."""
        return {
            each.name: getattr(self, each.name)
            for each in dataclasses.fields(self)
            if each.metadata != PER_VERTEX and each.name != "folder"
        }


PER_VERTEX = {"per vertex": True}
"""Metadata of a field that has something for each vertex."""


@dataclass(frozen=True, kw_only=True)
class BfsResult(GraphCost):
    """What a search found and what it cost."""

    title: ClassVar[str] = "Breadth-first search"
    VERTICES: ClassVar[bool] = True

    source: int
    reached: int
    levels: int
    parents: Any = field(metadata=PER_VERTEX, repr=False, compare=False)
    """int64; the source's is itself, -1 for what was not reached. A tensor where torch is in use."""

    def found(self) -> list[tuple[str, str]]:
        total = sum(level * vertices for level, vertices in enumerate(self.level_sizes))
        return [
            ("vertices reached", share_of(self.reached, self)),
            ("levels", f"{self.levels}"),
            ("sum of depths", f"{total:,}"),
        ]


def share_of(vertices: int, result: GraphCost) -> str:
    return f"{vertices:,} ({100 * vertices / max(result.vertices, 1):.1f} %)"


def bfs(
    graph: GraphLike,
    *,
    source: Hashable = None,
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> BfsResult:
    """Search a graph level by level; its edges stay where they are.

    graph: a graph folder, "volume:NAME@MEMBER,MEMBER" (docs/VOLUMES.md), a file (.el, .txt, .wel, .gr,
        .graph, .mtx, .npz, .sg, .bel, .bcsr, .parquet, .csv; packed, too), a folder or a pattern of parts of
        a table, a generator (kron:20, urand:20:16, social:20), "debian", or a graph that penstock.graph
        opened. Files and what is generated are made once, in `cache_dir`. Or a graph in memory: an
        edge_index, a sparse matrix, a graph of NetworkX, a DataFrame (`penstock.graph.resolve` has them).
    source: a vertex by its number, or as text by its name (by its number where vertices have no names); of a
        graph of NetworkX a node; without one, a vertex with out-edges drawn with a fixed seed.
    progress: called with what is being done, how much is done, how much there is.

    Options, of all algorithms (keywords):
    placement: where edges and weights lie. "storage": behind a cache; "host": their files mapped and read in
        place, which a GPU does over its link; "pinned": the same, once they are copied to pinned memory;
        "host-cached": behind a cache, into which whoever misses a line of the mapped file copies it; "hbm":
        copied to the GPU. Two more are baselines: "managed", moved there by the driver, page by page, anew
        in each trial, and "subgraph", where CPU threads put each round's lists together to be copied there.
    strategy: how groups of threads share out edges: "thread", "merged", "merged_aligned", "transposed(128)",
        "coarsened(8)", "tiled(256)", "tiled(256,search)", "frontier", "tiled_frontier(256)",
        "tiled_frontier(sort)"; docs/GRAPHS.md says what each does. "auto" chooses for each round, and reads
        fewer edges where an algorithm can do with fewer: a search from below, components by samples.
    cache, line: bytes of the cache and of what one miss brings in; numbers, or text; 16MiB and 4KiB unless
        given.
    directory: how the cache finds a line; direct costs 8 bytes for each line of the edges, set 64 for each
        seven lines of the cache. auto takes direct while that is little beside the cache.
    executor: "cpu", "cuda", or "auto". engine: of the controller's threads; "auto", "io_uring", "pread".
    without: of the cache, to see what it is worth: "cache", "coalescing", "validation" or
        "read-ahead".
    direct: past the page cache. queues, queue_depth: queue pairs of a controller (0: 32 for a GPU, one for
        each CPU thread), and the entries of each.
    media, drives, layout, media_place, server_sms: instead of "file" the preset of a drive that is modelled
        ("p5800x", "pm1735", "980pro", "gen5"), how many of them there are, whether the graph is "striped"
        over them or each has all of it ("replicated"), whether their bytes lie in "hbm" or "host", and the
        SMs that serve them (0: a third).
    threads: of the CPU executor, or those that put lists together; 0 takes as many as there are cores.
    trials: how often, once the graph is open, each time from the next source where none is given; what is
        told is of the last one, and the seconds of each. Later ones find in the cache what earlier ones left.
    sources: which vertices sources are drawn from: "gap" and "emogi", those that have edges; "bam", those
        with more than two. level_traffic: tells what each round moved, which takes a little time.
    verify: checks the last result by GAP's rules. cache_dir: where converted graphs are kept.
    incoming: of a directed graph, makes the lists of incoming edges too, once, in its folder. Where they are
        there, ranks are pulled, and "auto" searches from below if lists are read in place.
    undirected, format, memory: of a file that is converted, as `penstock.graph.resolve` has them: each edge
        is taken both ways; what it is, whatever its name; the memory that converting may take.
    columns, delimiter, header, first_id, renumber: of text, tables and DataFrames, as
        `penstock.graph.resolve` has them: which columns are source, target and weight, and how ids become
        vertices.

    Raises ValueError or TypeError for bad arguments and bad files, ValueError also for an option that would
    change nothing (penstock.graph_effects), penstock.Error when the machine refuses.
    """
    check_source(source, graph)
    job = prepare("bfs", graph, progress, options, source=source)
    found = job.native.bfs(job.options, source_number(job, source), progress)
    return BfsResult(**job.facts, **with_tensors(found, "parents"))


@dataclass(frozen=True)
class GraphJob:
    """A graph that is there, and the options of a run over it."""

    native: ModuleType
    options: dict[str, Any]
    facts: dict[str, Any]
    folder: GraphFolder


def prepare(
    algorithm: str,
    graph: GraphLike,
    progress: Progress | None,
    given: GraphOptions,
    *,
    source: Hashable = None,
    weighted: bool = False,
) -> GraphJob:
    """Checks the options of all algorithms, then finds or makes the graph."""
    if unknown := given.keys() - GraphOptions.__annotations__.keys():
        known = ", ".join(sorted(GraphOptions.__annotations__))
        raise TypeError(f"{sorted(unknown)[0]}: there is no such option; there are {known}")
    reading: dict[str, Any] = {name: value for name, value in given.items() if name in READING}
    others: dict[str, Any] = {name: value for name, value in given.items() if name not in READING}
    options = _options(**others)
    native = load_native()
    subject = f"{algorithm} {graph_name(graph)}"
    shown = {name: given.get(name) for name in ("cache", "line", "memory")}
    settings: dict[str, Any] = {**options, **shown, "algorithm": algorithm, "source": source}
    settings |= {"weighted": weighted, "gpu": _on_gpu(options["executor"], native)}
    refuse_without_effect(OF_OPTIONS, settings, subject)
    making = {name: options.pop(name) for name in ("cache_dir", "undirected", "format", "memory")} | reading
    incoming = options.pop("incoming")
    # Here and not above: penstock.graph needs the compiled part.
    from penstock.graph import resolve
    from penstock.graph_naming import called_by_its_name, named_calls

    found = resolve(graph, weighted=weighted, progress=preparing(progress), **making)
    settings |= {"directed": found.directed, "kind": _kind(graph)}
    refuse_without_effect(OF_GRAPHS, settings, subject)
    if incoming:
        with called_by_its_name(found):
            found.write_incoming(progress=preparing(progress))
    facts = {
        "graph": graph_name(graph),
        "path": str(found.path),
        "vertices": found.vertices,
        "edges": found.edges,
        "directed": found.directed,
        "folder": found,
    }
    return GraphJob(named_calls(native, found), {"path": str(found.path), **options}, facts, found)


READING = ("columns", "delimiter", "header", "first_id", "renumber")
"""Options that only penstock.graph.resolve looks at."""


def graph_name(graph: GraphLike) -> str:
    """As the user calls it."""
    if hasattr(graph, "on_volume"):
        return str(graph.called or graph.path)
    from penstock.graph.memory import name_of

    return str(graph) if isinstance(graph, (str, os.PathLike)) else name_of(graph) or type(graph).__name__


def _kind(graph: GraphLike) -> str:
    """What stands for a graph, for people."""
    from penstock.graph.folder import VOLUME
    from penstock.graph.kinds import GENERATORS

    if hasattr(graph, "on_volume"):
        return "graph that is open"
    if not isinstance(graph, (str, os.PathLike)):
        return "graph in memory"
    text = os.fspath(graph)
    if text.startswith(VOLUME):
        return "volume"
    if text.startswith(GENERATORS):
        return "generator"
    if text in ("debian", "debian:depends"):
        return "list of packages"
    made = os.path.isfile(os.path.join(os.fsdecode(text), "graph.json"))  # noqa: PTH113, PTH118 (text may be bytes)
    return "folder" if made else "file"


def _on_gpu(executor: Executor, native: ModuleType) -> bool:
    """Whether a run with this option is one of a GPU; where none is usable, "cuda" is refused later."""
    return executor == "cuda" or (executor == "auto" and bool(native.cuda_usable()[0]))


def _options(
    *,
    placement: Placement = "storage",
    strategy: str = "auto",
    cache: SupportsIndex | str | None = None,
    line: SupportsIndex | str | None = None,
    directory: Directory = "auto",
    executor: Executor = "auto",
    engine: Engine = "auto",
    without: Without = "nothing",
    direct: bool = False,
    threads: SupportsIndex = 0,
    queues: SupportsIndex = 0,
    queue_depth: SupportsIndex = 256,
    media: str = "file",
    drives: SupportsIndex = 1,
    media_place: MediaPlace = "hbm",
    layout: Layout = "striped",
    server_sms: SupportsIndex = 0,
    trials: SupportsIndex = 1,
    sources: Sources = "gap",
    level_traffic: bool = False,
    verify: bool = False,
    incoming: bool = False,
    undirected: bool = False,
    format: str | None = None,
    memory: SupportsIndex | str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    cache_bytes = parse_size(CACHE if cache is None else cache, "cache")
    line_bytes = parse_size(LINE if line is None else line, "line")
    for name, value in (("strategy", strategy), ("media", media)):
        if not isinstance(value, str):
            raise TypeError(f"{name} {value!r}: it is no text: give a name")
    switches = {"direct": direct, "level_traffic": level_traffic, "verify": verify, "incoming": incoming}
    for name, switch in (switches | {"undirected": undirected}).items():
        if not isinstance(switch, bool):
            raise TypeError(f"{name} {switch!r}: give True or False")
    _check(without, WITHOUT, "part to do without")
    _check(sources, SOURCES, "rule for sources")
    _check(media_place, MEDIA_PLACES, "media_place")
    _check(layout, LAYOUTS, "layout")
    _check(placement, PLACEMENTS, "placement")
    _check(directory, DIRECTORIES, "directory")
    _check(executor, EXECUTORS, "executor")
    _check(engine, ENGINES, "engine")
    return {
        "placement": placement,
        "strategy": strategy,
        "cache_bytes": cache_bytes,
        "line_bytes": line_bytes,
        "directory": directory,
        "executor": executor,
        "engine": engine,
        "without": without,
        "direct": direct,
        "threads": checked_count("threads", threads, 0),
        "queues": checked_count("queues", queues, 0),
        "queue_depth": checked_count("queue_depth", queue_depth, 2),
        "media": media,
        "drives": checked_count("drives", drives, 1),
        "media_place": media_place,
        "layout": layout,
        "server_sms": checked_count("server_sms", server_sms, 0),
        "trials": checked_count("trials", trials, 1),
        "sources": sources,
        "level_traffic": level_traffic,
        "verify": verify,
        "incoming": incoming,
        "undirected": undirected,
        "format": format,
        "memory": None if memory is None else parse_size(memory, "memory"),
        "cache_dir": cache_dir,
    }


def check_source(source: Hashable, graph: GraphLike = "") -> None:
    """Raises TypeError for what is neither a number nor a name, before any work. A node of NetworkX may be
    anything."""
    nodes = hasattr(graph, "adj") or getattr(graph, "labels", None) is not None
    if source is not None and not isinstance(source, str) and not nodes:
        checked_integer("source", source)


def source_number(job: GraphJob, source: Hashable) -> int:
    """As the compiled part takes it. Raises ValueError for what is no vertex."""
    if source is None:
        return RANDOM_SOURCE
    return vertex_numbers(job.folder, [source], f"search {job.folder.path}: source")[0]


def vertex_numbers(folder: GraphFolder, vertices: Iterable[Any], subject: str) -> list[int]:
    """Vertices by number or, as text, by name (by number where they have no names); of a graph of NetworkX
    its nodes. `subject` begins a sentence: operation, object, option. Raises ValueError for what is no
    vertex."""
    from penstock.graph_naming import called_by_its_name

    with called_by_its_name(folder):
        chosen = list(vertices)
        if folder.labels is not None:
            return [folder.node_number(vertex) for vertex in chosen]
        if chosen and folder.vertices == 0:
            raise ValueError(f"{subject} {chosen[0]}: the graph has no vertices")
        texts = any(isinstance(vertex, str) for vertex in chosen)
        numbers = _numbers_of(folder.names) if texts and folder.names is not None else None
        return [_vertex_number(folder, vertex, numbers, subject) for vertex in chosen]


SEVERAL = -1


def _numbers_of(names: list[str]) -> dict[str, int]:
    """The vertex of each name; SEVERAL where there is more than one."""
    numbers: dict[str, int] = {}
    for vertex, name in enumerate(names):
        numbers[name] = SEVERAL if name in numbers else vertex
    return numbers


def _vertex_number(
    folder: GraphFolder, vertex: SupportsIndex | str, numbers: dict[str, int] | None, subject: str
) -> int:
    if isinstance(vertex, str) and numbers is not None:
        if vertex not in numbers:
            raise ValueError(
                f"{subject} '{vertex}': no vertex has this name; those that there are, are in "
                f"{folder.place_of_names}"
            )
        if numbers[vertex] == SEVERAL:
            raise ValueError(f"{subject} '{vertex}': several vertices have this name: give a number")
        return numbers[vertex]
    try:
        number = int(vertex)
    except ValueError:
        raise ValueError(
            f"{subject} '{vertex}': its vertices have no names: give a number from 0 to {folder.vertices - 1}"
        ) from None
    if not 0 <= number < folder.vertices:
        raise ValueError(f"{subject} {number}: the vertices are 0 to {folder.vertices - 1}")
    return number


def with_tensors(found: dict[str, Any], *names: str) -> dict[str, Any]:
    """The arrays of these names as tensors, where torch is installed and this program uses it."""
    torch = sys.modules.get("torch")
    if torch is None:
        return found
    return found | {name: torch.from_numpy(found[name]) for name in names if found[name] is not None}


def load_native() -> ModuleType:
    """The compiled part. Raises Error where there is none."""
    try:
        from penstock import _native
    except ImportError as problem:
        sentence = f"import penstock._native: {problem}: reinstall Penstock with pip install ."
        raise Error(sentence) from problem
    return _native


def preparing(progress: Progress | None) -> Callable[[int, int], None] | None:
    """Of a whole run's progress, that of finding or making its graph."""
    if progress is None:
        return None
    return lambda done, total: progress("prepare", done, total)


def _check(value: str, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} '{value}': there is no such {name}; choose one of {', '.join(allowed)}")


def checked_count(name: str, value: object, least: int, most: int = MOST) -> int:
    count = checked_integer(name, value)
    if count < least:
        raise ValueError(f"{name} {count}: it must be {least} or more")
    if count > most:
        raise ValueError(f"{name} {count}: it must be {most} or less")
    return count


def checked_number(name: str, value: object) -> float:
    """Raises TypeError for what is no number; its range is checked with the run's other options."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (SupportsFloat, SupportsIndex)):
        raise TypeError(f"{name} {value!r}: it is no number: give a float")
    return float(value)


def checked_integer(name: str, value: object) -> int:
    number = whole_number(value)
    if number is None:
        raise TypeError(f"{name} {value!r}: it is no whole number: give an int")
    return number

"""From what a user calls a graph, and options, to a run over it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock.callbacks import Progress, preparing
from penstock.checks import checked_integer
from penstock.effects import refuse_without_effect
from penstock.graph.effects import OF_GRAPHS, OF_OPTIONS
from penstock.graph.folder import GraphFolder
from penstock.graph.kinds import GENERATORS
from penstock.graph.memory import name_of
from penstock.graph.naming import called_by_its_name, named_calls
from penstock.graph.opening import resolve
from penstock.graph.options import CACHE, MAKING, Executor, GraphOptions
from penstock.native import load_native
from penstock.options import checked
from penstock.sizes import parse_size
from penstock.volume.names import is_volume

if TYPE_CHECKING:
    from types import ModuleType

GraphLike = Any
"""What penstock.graph.resolve takes: text or a path, a GraphFolder, or a graph in memory."""
RANDOM_SOURCE = -1
SEVERAL = -1


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
    options = checked(GraphOptions, given)
    native = load_native()
    subject = f"{algorithm} {graph_name(graph)}"
    shown = {name: given.get(name) for name in ("cache", "line", "memory")}
    settings: dict[str, Any] = {**options, **shown, "algorithm": algorithm, "source": source}
    settings |= {"weighted": weighted, "gpu": _on_gpu(options["executor"], native)}
    refuse_without_effect(OF_OPTIONS, settings, subject)
    if options["cache"] is None:
        options["cache"] = parse_size(CACHE)
    making = {name: options.pop(name) for name in MAKING}
    incoming = options.pop("incoming")
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


def graph_name(graph: GraphLike) -> str:
    """As the user calls it."""
    if hasattr(graph, "on_volume"):
        return str(graph.called or graph.path)

    return str(graph) if isinstance(graph, (str, os.PathLike)) else name_of(graph) or type(graph).__name__


def _kind(graph: GraphLike) -> str:
    """What stands for a graph, for people."""

    if hasattr(graph, "on_volume"):
        return "graph that is open"
    if not isinstance(graph, (str, os.PathLike)):
        return "graph in memory"
    text = os.fspath(graph)
    if is_volume(text):
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

    with called_by_its_name(folder):
        chosen = list(vertices)
        if folder.labels is not None:
            return [folder.node_number(vertex) for vertex in chosen]
        if chosen and folder.vertices == 0:
            raise ValueError(f"{subject} {chosen[0]}: the graph has no vertices")
        texts = any(isinstance(vertex, str) for vertex in chosen)
        numbers = _numbers_of(folder.names) if texts and folder.names is not None else None
        return [_vertex_number(folder, vertex, numbers, subject) for vertex in chosen]


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

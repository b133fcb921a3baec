"""Options of every algorithm over graphs: their names, values and defaults."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, SupportsIndex, TypedDict, TypeVar

from penstock.checks import check_choice, checked_count
from penstock.sizes import parse_size

Executor = Literal["auto", "cpu", "cuda"]
Engine = Literal["auto", "io_uring", "pread"]
Directory = Literal["auto", "direct", "set"]
Placement = Literal["storage", "host", "pinned", "host-cached", "hbm", "managed", "subgraph"]
Layout = Literal["striped", "replicated"]
Ablation = Literal["nothing", "cache", "coalescing", "validation", "read-ahead"]
Sources = Literal["gap", "emogi", "bam"]
MediaPlace = Literal["hbm", "host"]
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
ABLATIONS: tuple[Ablation, ...] = ("nothing", "cache", "coalescing", "validation", "read-ahead")
SOURCES: tuple[Sources, ...] = ("gap", "emogi", "bam")
MEDIA_PLACES: tuple[MediaPlace, ...] = ("hbm", "host")
DIRECTORIES: tuple[Directory, ...] = ("auto", "direct", "set")
CACHE, LINE = "16MiB", "4KiB"  # unless given
READING = ("columns", "delimiter", "header", "first_id", "renumber")
"""Options that only penstock.graph.resolve looks at."""


class GraphOptions(TypedDict, total=False):
    """What every algorithm takes; see `bfs`."""

    placement: Placement
    strategy: str
    cache: SupportsIndex | str | None
    line: SupportsIndex | str | None
    directory: Directory
    executor: Executor
    engine: Engine
    ablate: Ablation
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


def parse_options(
    *,
    placement: Placement = "storage",
    strategy: str = "auto",
    cache: SupportsIndex | str | None = None,
    line: SupportsIndex | str | None = None,
    directory: Directory = "auto",
    executor: Executor = "auto",
    engine: Engine = "auto",
    ablate: Ablation = "nothing",
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
    check_choice(ablate, ABLATIONS, "feature to ablate")
    check_choice(sources, SOURCES, "rule for sources")
    check_choice(media_place, MEDIA_PLACES, "media_place")
    check_choice(layout, LAYOUTS, "layout")
    check_choice(placement, PLACEMENTS, "placement")
    check_choice(directory, DIRECTORIES, "directory")
    check_choice(executor, EXECUTORS, "executor")
    check_choice(engine, ENGINES, "engine")
    return {
        "placement": placement,
        "strategy": strategy,
        "cache_bytes": cache_bytes,
        "line_bytes": line_bytes,
        "directory": directory,
        "executor": executor,
        "engine": engine,
        "ablate": ablate,
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


Function = TypeVar("Function", bound=Callable[..., Any])


def show_options(function: Function) -> Function:
    """Puts GraphOptions with their defaults where the signature has `**options`, for help() and editors."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    shared = list(inspect.signature(parse_options).parameters.values())
    columns = inspect.Parameter("columns", inspect.Parameter.KEYWORD_ONLY, default=None)
    reading = [
        columns.replace(name=name, annotation=GraphOptions.__annotations__[name].__forward_arg__)
        for name in READING
    ]
    names = {each.name for each in own}
    parameters = [*own, *(each for each in (*shared, *reading) if each.name not in names)]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function

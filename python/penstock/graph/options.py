"""Options of every algorithm over graphs: their names, types and defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Literal, SupportsIndex, TypedDict

from penstock.options import CacheOptions, Choice, Count, Option, Size, StorageOptions, Switch, Text

Executor = Literal["auto", "cpu", "cuda"]
Placement = Literal["storage", "host", "pinned", "host-cached", "hbm", "managed", "subgraph"]
Layout = Literal["striped", "replicated"]
Ablation = Literal["nothing", "cache", "coalescing", "validation", "read-ahead"]
Sources = Literal["gap", "emogi", "bam"]
MediaPlace = Literal["hbm", "host"]
CACHE = "16MiB"  # unless given


class ReadingOptions(TypedDict, total=False):
    """How text and tables are read; see `penstock.graph.resolve`, which checks them."""

    columns: Annotated[Sequence[str | int] | str | None, Option()]
    delimiter: Annotated[str | None, Option()]
    header: Annotated[bool | None, Option()]
    first_id: Annotated[SupportsIndex | None, Option()]
    renumber: Annotated[bool | None, Option()]


class MakingOptions(ReadingOptions, total=False):
    """How a graph is made of a file; see `penstock.graph.resolve`."""

    undirected: Annotated[bool, Switch()]
    format: Annotated[str | None, Option()]
    memory: Annotated[SupportsIndex | str | None, Size()]


class ResolveOptions(MakingOptions, total=False):
    """What `penstock.graph.resolve` and `convert` take."""

    threads: Annotated[SupportsIndex | None, Option()]
    weighted: Annotated[bool, Switch()]
    simple: Annotated[bool, Switch()]


class GraphOptions(CacheOptions, StorageOptions, MakingOptions, total=False):
    """What every algorithm takes; see `bfs`."""

    placement: Annotated[Placement, Choice("storage")]
    strategy: Annotated[str, Text("auto")]
    executor: Annotated[Executor, Choice("auto")]
    ablate: Annotated[Ablation, Choice("nothing", "feature to ablate")]
    queues: Annotated[SupportsIndex, Count()]
    queue_depth: Annotated[SupportsIndex, Count(256, least=2)]
    media: Annotated[str, Text("file")]
    drives: Annotated[SupportsIndex, Count(1, least=1)]
    media_place: Annotated[MediaPlace, Choice("hbm")]
    layout: Annotated[Layout, Choice("striped")]
    server_sms: Annotated[SupportsIndex, Count()]
    trials: Annotated[SupportsIndex, Count(1, least=1)]
    sources: Annotated[Sources, Choice("gap", "rule for sources")]
    level_traffic: Annotated[bool, Switch()]
    verify: Annotated[bool, Switch()]
    incoming: Annotated[bool, Switch()]
    cache_dir: Annotated[str | os.PathLike[str] | None, Option()]


READING = tuple(ReadingOptions.__annotations__)
MAKING = (*MakingOptions.__annotations__, "cache_dir")
"""Options that only penstock.graph.resolve looks at."""

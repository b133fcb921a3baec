"""What a table is opened with, and what is refused of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, SupportsIndex, TypedDict

from penstock.columns.layout import TableLayout
from penstock.effects import effects, refuse_without_effect
from penstock.graph.options import Executor
from penstock.options import Choice, Count, Option, Size, Switch, Text

Compiled = Literal["auto", "always", "never"]
Place = Literal["auto", "host", "hbm", "storage", "host-cached", "pinned"]


class TableOptions(TypedDict, total=False):
    """What `Table` takes."""

    executor: Annotated[Executor, Choice("auto")]
    placement: Annotated[Place, Choice("auto")]
    cache: Annotated[SupportsIndex | str | None, Size(unless="256MiB", least=1)]
    line: Annotated[SupportsIndex | str | None, Size(unless="4KiB", least=1)]
    threads: Annotated[SupportsIndex, Count(most=1024)]
    media: Annotated[str, Text("file")]
    drives: Annotated[SupportsIndex, Count(1, least=1, most=64)]
    direct: Annotated[bool, Switch()]
    zone_maps: Annotated[bool, Switch(True)]
    compiled: Annotated[Compiled, Choice("auto")]
    columns: Annotated[Sequence[str] | None, Option()]
    memory: Annotated[SupportsIndex | str | None, Size(unless="1GiB")]
    progress: Annotated[Any, Option()]


_CACHED = ("host-cached", "storage")
_EFFECTS = (
    *effects(
        TableOptions,
        ("cache",),
        lambda given: given["placement"] in _CACHED,
        "placement {placement} has no cache: leave it out, or choose storage",
    ),
    *effects(
        TableOptions,
        ("media", "drives", "direct"),
        lambda given: given["placement"] == "storage",
        "placement {placement} reads no file by commands: leave it out, or choose storage",
    ),
)


def placement_of(layout: TableLayout, options: Mapping[str, Any]) -> str:
    if options["placement"] == "auto":
        return "storage" if layout.stored else "host"
    return str(options["placement"])


def check_options(layout: TableLayout, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """ValueError: options that this table cannot have, or that would change nothing.

    Args:
        layout: Of the table.
        given: Options as they were given.
        options: The same with what stands for those that were not.
    """
    placement, media = placement_of(layout, options), options["media"]
    if layout.stored and (placement, media) != ("storage", "file"):
        chosen = f"placement {placement}" if media == "file" else f"media {media}"
        raise ValueError(
            f"open {layout.name}: {chosen}: a table on a volume is read where it lies, through a cache: "
            "leave it out, or export the table"
        )
    refuse_without_effect(_EFFECTS, {**given, "placement": placement}, f"open {layout.name}")
    cache, line = options["cache"], options["line"]
    if placement in _CACHED and cache < line:
        raise ValueError(
            f"open {layout.name}: its cache of {cache} bytes holds no line of {line} bytes: make the cache "
            "larger or the lines smaller"
        )

"""When options of the algorithms over graphs have an effect, as tables for penstock.effects."""

from __future__ import annotations

from functools import partial

from penstock.effects import Effect, Settings
from penstock.effects import effects as effects_of
from penstock.graph.options import GraphOptions

CACHED = ("storage", "host-cached")
"""Placements whose edges lie behind a cache."""
IN_PLACE = ("host", "pinned", "hbm", "managed")
"""Placements whose lists are read where they lie."""
READ = ("file", "list of packages", "graph in memory")
"""What edges are read of, to make a folder."""
WITH_SOURCE = ("bfs", "sssp")

MODELLED = "it is of modelled drives: choose some (media), or leave it out"
OF_STORAGE = "it is of storage, and placement {placement} has none: leave it out"
OF_CACHES = "it is of a cache, and placement {placement} has none: leave it out"
CONVERTED = "it is of a graph that is converted, and this one is a {kind}: leave it out"


def _modelled(settings: Settings) -> bool:
    return bool(settings["media"] != "file")


def _on_storage(settings: Settings) -> bool:
    return bool(settings["placement"] == "storage")


def _cached(settings: Settings) -> bool:
    return settings["placement"] in CACHED


def _cpu_threads_work(settings: Settings) -> bool:
    """The executor's, a controller's of files, or those that put lists together."""
    place = settings["placement"]
    return not settings["gpu"] or place == "subgraph" or (place == "storage" and not _modelled(settings))


def _search_takes_incoming(settings: Settings) -> bool:
    in_place = settings["placement"] in IN_PLACE
    return settings["algorithm"] != "bfs" or (in_place and settings["strategy"] == "auto")


effects = partial(effects_of, GraphOptions)

OF_OPTIONS: tuple[Effect, ...] = (
    *effects(("drives", "layout", "media_place", "server_sms"), _modelled, MODELLED),
    *effects(
        ("layout",),
        lambda s: s["media"] == "file" or s["drives"] != 1,
        "one drive has all of the graph either way: choose more drives, or leave it out",
    ),
    *effects(
        ("media_place",),
        lambda s: bool(s["gpu"]),
        "without a GPU the bytes of modelled drives lie in host memory anyway: leave it out",
    ),
    *effects(
        ("direct", "engine"),
        lambda s: not _modelled(s),
        "it is of files, and the drives are modelled: leave it out",
    ),
    *effects(("direct", "engine", "queues", "queue_depth"), _on_storage, OF_STORAGE),
    *effects(("ablate",), _cached, OF_CACHES),
    *effects(
        ("ablate",),
        lambda s: s["ablate"] != "read-ahead" or _on_storage(s),
        "nothing is read ahead at placement {placement}: leave it out",
    ),
    *effects(("cache",), lambda s: _cached(s) or s["placement"] == "subgraph", OF_CACHES),
    *effects(("line", "directory"), _cached, OF_CACHES),
    *effects(
        ("threads",), _cpu_threads_work, "no CPU thread works at placement {placement} on a GPU: leave it out"
    ),
    *effects(
        ("sources",), lambda s: s["algorithm"] in WITH_SOURCE, "{algorithm} has no source: leave it out"
    ),
    *effects(
        ("sources",), lambda s: s["source"] is None, "none is drawn beside source {source}: leave one out"
    ),
    *effects(
        ("level_traffic",),
        lambda s: bool(s["gpu"]) or _cached(s) or s["placement"] == "subgraph",
        "nothing moves where a CPU reads in place: leave it out",
    ),
    *effects(
        ("incoming",),
        lambda s: s["algorithm"] in ("bfs", "pagerank"),
        "{algorithm} does not use lists of incoming edges: leave it out",
    ),
    *effects(
        ("incoming",), lambda s: not s["undirected"], "undirected edges lie both ways already: leave it out"
    ),
    *effects(
        ("incoming",),
        _search_takes_incoming,
        "a search uses incoming edges where lists are read in place (placement host, pinned, hbm), with "
        "strategy auto: choose these, or leave it out",
    ),
    *effects(
        ("incoming",),
        lambda s: not s["weighted"],
        "lists of incoming edges have no weights: leave it out, or leave weighted out",
    ),
)
"""Settings: all options, with `algorithm`, `source`, `weighted`, and `gpu`: whether the executor is a GPU."""

OF_GRAPHS: tuple[Effect, ...] = (
    *effects(
        ("incoming",),
        lambda s: bool(s["directed"]),
        "the graph is undirected: its lists are those of incoming edges, too: leave it out",
    ),
    *effects(("undirected",), lambda s: s["kind"] in READ, CONVERTED),
    *effects(("memory",), lambda s: s["kind"] in (*READ, "generator"), CONVERTED),
)
"""With facts of the graph besides: `directed`, and what `kind` of graph it is."""

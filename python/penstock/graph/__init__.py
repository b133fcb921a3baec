"""Graphs on disk: find, convert, generate, open and check them; algorithms over them.

`resolve` turns what a user calls a graph into a `GraphFolder`; programs use `open_folder` and `write_folder`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.graph.algorithms import cc, pagerank, sssp
    from penstock.graph.cache import default_cache_dir
    from penstock.graph.cost_breakdown import Breakdown, breakdown
    from penstock.graph.folder import GraphFolder, open_folder, write_folder
    from penstock.graph.folder import GraphFolder as Graph
    from penstock.graph.link import LinkRequests, link_requests
    from penstock.graph.opening import convert, resolve
    from penstock.graph.results import BfsResult, ComponentsResult, PagerankResult, SsspResult
    from penstock.graph.search import bfs

__all__ = [
    "BfsResult",
    "Breakdown",
    "ComponentsResult",
    "Graph",
    "GraphFolder",
    "LinkRequests",
    "PagerankResult",
    "SsspResult",
    "bfs",
    "breakdown",
    "cc",
    "convert",
    "default_cache_dir",
    "link_requests",
    "open_folder",
    "pagerank",
    "resolve",
    "sssp",
    "write_folder",
]

# Each module, and the names that come from it. No module has the name of a function: importing it
# would hide that.
_MODULES = {
    "algorithms": ("cc", "pagerank", "sssp"),
    "cache": ("default_cache_dir",),
    "cost_breakdown": ("Breakdown", "breakdown"),
    "folder": ("GraphFolder", "open_folder", "write_folder"),
    "link": ("LinkRequests", "link_requests"),
    "opening": ("convert", "resolve"),
    "results": ("BfsResult", "ComponentsResult", "PagerankResult", "SsspResult"),
    "search": ("bfs",),
}
_LAZY = {name: (module, name) for module, names in _MODULES.items() for name in names}
_LAZY["Graph"] = ("folder", "GraphFolder")


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import the compiled module only when a function needs it: options and their tables do not."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(f"penstock.graph.{module}"), attribute)

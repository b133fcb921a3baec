"""Graphs on disk: find, convert, generate, open and check them; algorithms over them.

`resolve` turns what a user calls a graph into a `GraphFolder`; programs use `open_folder` and `write_folder`.
"""

from __future__ import annotations

from penstock.breadth_first import BfsResult, bfs

from .algorithms import ComponentsResult, PagerankResult, SsspResult, cc, pagerank, sssp
from .breakdown import Breakdown, breakdown
from .folder import GraphFolder, open_folder, write_folder
from .resolve import convert, default_cache_dir, resolve

Graph = GraphFolder

__all__ = [
    "BfsResult",
    "Breakdown",
    "ComponentsResult",
    "Graph",
    "GraphFolder",
    "PagerankResult",
    "SsspResult",
    "bfs",
    "breakdown",
    "cc",
    "convert",
    "default_cache_dir",
    "open_folder",
    "pagerank",
    "resolve",
    "sssp",
    "write_folder",
]

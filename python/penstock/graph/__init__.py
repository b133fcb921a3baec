"""Graphs on disk: find, convert, generate, open and check them.

`resolve` turns what a user calls a graph into a `GraphFolder`; programs use `open_folder` and `write_folder`.
"""

from __future__ import annotations

from .folder import GraphFolder, open_folder, write_folder
from .resolve import default_cache_dir, resolve

Graph = GraphFolder

__all__ = ["Graph", "GraphFolder", "default_cache_dir", "open_folder", "resolve", "write_folder"]

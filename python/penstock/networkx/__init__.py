"""A backend for NetworkX: `nx.pagerank(G, backend="penstock")`.

`info` is what NetworkX reads when it is imported; `graph` has graphs, converted once or opened where they
lie; `backend` has the functions, which docs/GRAPHS.md lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph import Graph, open_graph

__all__ = ["Graph", "open_graph"]


def __getattr__(name: str) -> Any:
    # The compiled part is wanted for graphs, not for what NetworkX reads of every backend.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import graph

    return getattr(graph, name)

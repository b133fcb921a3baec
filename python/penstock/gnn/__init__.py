"""Training of graph neural networks on features and edges that do not fit (docs/tasks/GNN.md)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.gnn import data as data
    from penstock.gnn import training as training
    from penstock.gnn.loading import (
        Batch,
        HeteroBatch,
        HeteroLinkLoader,
        HeteroNeighborLoader,
        LinkLoader,
        NeighborLoader,
    )

__all__ = [
    "Batch",
    "HeteroBatch",
    "HeteroLinkLoader",
    "HeteroNeighborLoader",
    "LinkLoader",
    "NeighborLoader",
]


def __getattr__(name: str) -> Any:
    """Import torch only when a name that needs it is used."""
    if name in __all__:
        return getattr(importlib.import_module("penstock.gnn.loading"), name)
    if name in ("data", "training"):
        return importlib.import_module(f"penstock.gnn.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

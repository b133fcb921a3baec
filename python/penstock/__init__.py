"""Penstock: GPU threads that read and write data where it lives.

Importing needs neither a GPU nor a driver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.breadth_first import BfsResult, bfs
from penstock.errors import Error

if TYPE_CHECKING:
    from penstock import checkpoint as checkpoint
    from penstock import graph as graph
    from penstock import nn as nn
    from penstock import optim as optim
    from penstock import pyg as pyg
    from penstock.arrays import Array, GatherHandle, Plan, empty, from_tensor, gather_all, plan
    from penstock.arrays import open_array as open

__version__ = "0.1.0"

__all__ = [
    "Array",
    "BfsResult",
    "Error",
    "GatherHandle",
    "Plan",
    "__version__",
    "bfs",
    "empty",
    "from_tensor",
    "gather_all",
    "open",
    "plan",
]

_OF_ARRAYS = {"open": "open_array"} | {
    name: name for name in ("Array", "GatherHandle", "Plan", "empty", "from_tensor", "gather_all", "plan")
}

_MODULES = ("checkpoint", "graph", "nn", "optim", "pyg")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


def __getattr__(name: str) -> Any:
    """Arrays bring NumPy along, modules what they are for: they are loaded by whoever uses them."""
    if name in _MODULES:
        return importlib.import_module(f"penstock.{name}")
    if name not in _OF_ARRAYS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock import arrays

    return getattr(arrays, _OF_ARRAYS[name])

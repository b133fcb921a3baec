"""Penstock: GPU threads that read and write data where it lives.

Importing needs neither a GPU nor a driver.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from penstock.errors import Error

if TYPE_CHECKING:
    from penstock import checkpoint as checkpoint
    from penstock import columns as columns
    from penstock import fs as fs
    from penstock import gnn as gnn
    from penstock import graph as graph
    from penstock import kernels as kernels
    from penstock import nn as nn
    from penstock import optim as optim
    from penstock import pyg as pyg
    from penstock import sampling as sampling
    from penstock import tiering as tiering
    from penstock.arrays import Array, GatherHandle, Plan, empty, from_tensor, gather_all, plan
    from penstock.arrays.opening import open as open
    from penstock.columns import Table, col, open_table, sql
    from penstock.graph import BfsResult, bfs, cc, pagerank, sssp
    from penstock.kernels import Kernel, function, include_dirs, kernel

__version__ = "0.1.0"

# Without `open`: `from penstock import *` leaves Python's own alone.
__all__ = [
    "Array",
    "BfsResult",
    "Error",
    "GatherHandle",
    "Kernel",
    "Plan",
    "Table",
    "__version__",
    "bfs",
    "cc",
    "col",
    "empty",
    "from_tensor",
    "function",
    "gather_all",
    "include_dirs",
    "kernel",
    "open_table",
    "pagerank",
    "plan",
    "sql",
    "sssp",
]

_ARRAYS = ("Array", "GatherHandle", "Plan", "empty", "from_tensor", "gather_all", "plan")
_GRAPHS = ("BfsResult", "bfs", "cc", "pagerank", "sssp")
_KERNELS = ("Kernel", "function", "include_dirs", "kernel")
_COLUMNS = ("Table", "col", "open_table", "sql")
_LAZY = (
    {name: ("penstock.arrays", name) for name in _ARRAYS}
    | {name: ("penstock.columns", name) for name in _COLUMNS}
    | {name: ("penstock.graph", name) for name in _GRAPHS}
    | {name: ("penstock.kernels", name) for name in _KERNELS}
    | {"open": ("penstock.arrays.opening", "open")}
)
# Modules, and the package that each needs.
_MODULES = {
    "checkpoint": "torch",
    "columns": "numpy",
    "fs": "numpy",
    "gnn": "numpy",
    "graph": "numpy",
    "kernels": "numpy",
    "nn": "torch",
    "optim": "torch",
    "pyg": "torch_geometric",
    "sampling": "numpy",
    "tiering": "numpy",
}


def __dir__() -> list[str]:
    modules = [name for name, needed in _MODULES.items() if importlib.util.find_spec(needed) is not None]
    return sorted({*__all__, *_LAZY, *modules})


def __getattr__(name: str) -> Any:
    """Import NumPy, torch and the compiled module only when a name that needs them is used."""
    if name in _MODULES:
        return importlib.import_module(f"penstock.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)

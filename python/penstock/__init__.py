"""Penstock: GPU threads that read and write data where it lives.

Importing needs neither a GPU nor a driver.
"""

from __future__ import annotations

from penstock.breadth_first import BfsResult, bfs
from penstock.errors import Error

__version__ = "0.1.0"

__all__ = ["BfsResult", "Error", "__version__", "bfs"]

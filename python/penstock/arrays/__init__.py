"""Arrays that lie where their bytes are: HBM, host memory, files, drives."""

from __future__ import annotations

from penstock.arrays.array import Array
from penstock.arrays.gathers import GatherHandle, gather_all
from penstock.arrays.opening import Plan, empty, from_reference, from_tensor, open_array, plan

__all__ = [
    "Array",
    "GatherHandle",
    "Plan",
    "empty",
    "from_reference",
    "from_tensor",
    "gather_all",
    "open_array",
    "plan",
]

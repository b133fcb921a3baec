"""Arrays that lie where their bytes are: HBM, host memory, files, drives."""

from __future__ import annotations

from penstock.arrays.array import Array
from penstock.arrays.creating import empty
from penstock.arrays.gathers import GatherHandle, gather_all
from penstock.arrays.opening import from_reference, from_tensor
from penstock.arrays.opening import open as open_array
from penstock.arrays.peers import Peers
from penstock.arrays.planning import Plan, plan

__all__ = [
    "Array",
    "GatherHandle",
    "Peers",
    "Plan",
    "empty",
    "from_reference",
    "from_tensor",
    "gather_all",
    "open_array",
    "plan",
]

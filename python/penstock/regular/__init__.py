"""Regular workloads over arrays larger than the cache, beside explicit tiles.

What `penstock reduce` and `penstock vectoradd` do:

    result = penstock.regular.reduce("a.npy", cache="64MiB")
    for m in result.measurements:
        print(m.params["access"], m.value, m.unit, m.ratio)
"""

from __future__ import annotations

from penstock.regular.generate import generate_array
from penstock.regular.run import ReduceResult, VectorAddResult, reduce, vectoradd

__all__ = ["ReduceResult", "VectorAddResult", "generate_array", "reduce", "vectoradd"]

"""Regular workloads over arrays larger than the cache, beside explicit tiles: what `penstock reduce` does.

result = penstock.regular.reduce("a.npy", cache="64MiB")
for m in result.measurements:
    print(m.params["access"], m.value, m.unit, m.ratio)
"""

from __future__ import annotations

from penstock.regular.generate import generate_array
from penstock.regular.run import ReduceResult, reduce

__all__ = ["ReduceResult", "generate_array", "reduce"]

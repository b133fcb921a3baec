"""Which rows of a table are used most, and keeping those next to the kernels (docs/tasks/GNN.md).

>>> import numpy as np, penstock
>>> from penstock.sampling import Graph
>>> from penstock.tiering import score, tiered
>>> graph = Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 3])
>>> [float(each) for each in score(graph, "degree")]
[3.0, 1.0, 0.0, 0.0]
"""

from penstock.arrays import Peers
from penstock.arrays.tiers import hottest
from penstock.tiering.placing import TierPlan, plan, tiered
from penstock.tiering.reordering import Reordered, original, places, reorder
from penstock.tiering.scores import METHODS, score

__all__ = [
    "METHODS",
    "Peers",
    "Reordered",
    "TierPlan",
    "hottest",
    "original",
    "places",
    "plan",
    "reorder",
    "score",
    "tiered",
]

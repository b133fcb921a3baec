"""Which rows of a table are used most, and keeping those next to the kernels (docs/tasks/GNN.md).

>>> import numpy as np, penstock
>>> from penstock.sampling import Graph
>>> from penstock.tiering import score, tiered
>>> graph = Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 3])
>>> [float(each) for each in score(graph, "degree")]
[3.0, 1.0, 0.0, 0.0]
"""

from penstock.tiering.placing import TierPlan, hottest, plan, tiered
from penstock.tiering.scores import METHODS, score

__all__ = ["METHODS", "TierPlan", "hottest", "plan", "score", "tiered"]

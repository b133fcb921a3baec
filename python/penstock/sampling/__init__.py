"""Neighbour sampling over graphs that lie anywhere (docs/tasks/GNN.md).

>>> import numpy as np
>>> from penstock.sampling import Graph, NeighborSampler
>>> graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3])  # 0 -> 1, 0 -> 2, 1 -> 2, 2 -> 3
>>> sampler = NeighborSampler(graph, fanout=[2, 2])
>>> [int(node) for node in sampler.sample([3]).nodes]
[3, 2, 0, 1]
"""

from penstock.sampling.graph import Graph
from penstock.sampling.sample import HeteroSample, Sample
from penstock.sampling.sampler import HeteroNeighborSampler, NeighborSampler

__all__ = ["Graph", "HeteroNeighborSampler", "HeteroSample", "NeighborSampler", "Sample"]

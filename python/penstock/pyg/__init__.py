"""Stores and a sampler of PyTorch Geometric over arrays of Penstock. Needs torch_geometric.

PyG's own loaders take all three; none of them needs pyg-lib or torch-sparse:

    features, graph = FeatureStore(), GraphStore()
    features["paper", "x", None] = penstock.open("features.npy", placement="storage")
    graph[("paper", "cites", "paper"), "csc", True, (nodes, nodes)] = row, column_pointers
    sampler = NeighborSampler((features, graph), [10, 10])
    loader = NodeLoader((features, graph), sampler, input_nodes="paper")
"""

from penstock.pyg.sampling import NeighborSampler
from penstock.pyg.stores import FeatureStore, GraphStore

__all__ = ["FeatureStore", "GraphStore", "NeighborSampler"]

"""Stores of PyTorch Geometric whose features and edges are arrays of Penstock. Needs torch_geometric.

Sample from them as from PyG's own:

    features, graph = FeatureStore(), GraphStore()
    features["paper", "x", None] = penstock.open("features.npy", placement="storage")
    graph[("paper", "cites", "paper"), "csc", True, (nodes, nodes)] = row, column_pointers
    loader = NeighborLoader((features, graph), [10, 10], input_nodes="paper")
"""

from penstock.pyg.stores import FeatureStore, GraphStore

__all__ = ["FeatureStore", "GraphStore"]

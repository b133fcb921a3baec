"""Loaders that sample and gather ahead of the training."""

from penstock.gnn.loading.batch import Batch, HeteroBatch
from penstock.gnn.loading.hetero import HeteroLinkLoader, HeteroNeighborLoader
from penstock.gnn.loading.links import LinkLoader
from penstock.gnn.loading.neighbors import NeighborLoader

__all__ = [
    "Batch",
    "HeteroBatch",
    "HeteroLinkLoader",
    "HeteroNeighborLoader",
    "LinkLoader",
    "NeighborLoader",
]

"""Loaders that sample and gather ahead of the training."""

from penstock.gnn.loading.batch import Batch
from penstock.gnn.loading.links import LinkLoader
from penstock.gnn.loading.neighbors import NeighborLoader

__all__ = ["Batch", "LinkLoader", "NeighborLoader"]

"""Datasets for graph neural networks whose features do not fit memory.

A dataset is a folder of .npy files. It is drawn in the shape of a known one, or made of one that was fetched:

    dataset = penstock.gnn.data.generate("papers", like="papers100M", scale=0.01)
    dataset = penstock.gnn.data.from_ogb("ogbn_products", "products", undirected=True)
    dataset = penstock.gnn.data.open("products")
    features = penstock.open(dataset.features)
"""

from __future__ import annotations

from penstock.gnn.data.dataset import Dataset
from penstock.gnn.data.dataset import open_dataset as open
from penstock.gnn.data.generating import generate
from penstock.gnn.data.igb import from_igb
from penstock.gnn.data.ogb import from_ogb
from penstock.gnn.data.packages import from_debian
from penstock.gnn.data.pyg import from_pyg
from penstock.gnn.data.shapes import SHAPES, Shape

__all__ = [
    "SHAPES",
    "Dataset",
    "Shape",
    "from_debian",
    "from_igb",
    "from_ogb",
    "from_pyg",
    "generate",
    "open",
]

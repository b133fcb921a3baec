"""Training of graph neural networks on sampled neighbourhoods. Needs torch_geometric.

    from penstock.gnn.training import Options, train
    result = train(Options("papers", model="sage", fanout=(15, 10, 5), checkpoint="papers.pt"))

`train` draws batches by `penstock.gnn.NeighborLoader` (or `LinkLoader`), whose features stay where they lie,
and trains a model of PyTorch Geometric's layers. Started by torchrun, each process takes its share of the
seeds.
"""

from penstock.gnn.training.entry import train
from penstock.gnn.training.options import LINKS, MODELS, NODES, TASKS, Options
from penstock.gnn.training.results import Epoch, Interrupted, Result
from penstock.gnn.training.timeline import Overlap, Timeline

__all__ = [
    "LINKS",
    "MODELS",
    "NODES",
    "TASKS",
    "Epoch",
    "Interrupted",
    "Options",
    "Overlap",
    "Result",
    "Timeline",
    "train",
]

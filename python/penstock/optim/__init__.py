"""Optimizers for `penstock.nn` tables: each step reads the rows that have a gradient, and stores them
changed.

They take tables and nothing else: a model's other parameters have an optimizer of torch.
"""

from penstock.optim.optimizer import Optimizer
from penstock.optim.rules import SGD, Adagrad, RowWiseAdagrad, RowWiseAdam, SparseAdam

__all__ = ["SGD", "Adagrad", "Optimizer", "RowWiseAdagrad", "RowWiseAdam", "SparseAdam"]

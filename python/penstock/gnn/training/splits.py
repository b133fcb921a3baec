"""The seeds of a training, checked before torch is imported, which takes seconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.gnn import data
from penstock.gnn.training.options import NODES, Options

TRAIN, VALID, TEST = "train", "valid", "test"
Ids = npt.NDArray[np.int64]


class Splits:
    """The dataset in the folder `options.dataset`, and the seeds of its splits.

    Attributes:
        dataset: What `penstock.gnn.data.open` found.
        labels: Of the nodes, mapped; None where links are predicted.
    """

    def __init__(self, options: Options) -> None:
        """
        Raises:
            ValueError: An empty training set, or a seed whose label is no class.
        """
        self.dataset = data.open(options.dataset)
        self._ids: dict[str, Ids] = {
            split: np.load(getattr(self.dataset, split)) for split in (TRAIN, VALID, TEST)
        }
        if not len(self._ids[TRAIN]):
            raise ValueError(f"train {self.dataset.folder}: its training set is empty: choose another one")
        self.labels = self._checked_labels() if options.task == NODES else None

    def __getitem__(self, split: str) -> Ids:
        return self._ids[split]

    def _checked_labels(self) -> Ids:
        labels: Ids = np.load(self.dataset.labels, mmap_mode="r")
        for split, ids in self._ids.items():
            found = labels[ids]
            if (bad := (found < 0) | (found >= self.dataset.classes)).any():
                node, label = int(ids[bad][0]), int(found[bad][0])
                raise ValueError(
                    f"train {self.dataset.folder}: node {node} of {split} has the label {label}, and there "
                    f"are {self.dataset.classes} classes: leave it out of the split, or train --task links"
                )
        return labels

"""Trainings in a process of their own, one after the other: `python gnn_training_run.py RESULT PLANS`.

PLANS is a JSON list of objects with the options of `train`, in "port" that of the process group, and in
"signal" the number of a signal, an epoch and a batch of it: the process sends itself the signal when it is
asked for that batch. RESULT.N.RANK gets losses, weights and the test set's accuracy of plan N.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import torch
from penstock.gnn import NeighborLoader
from penstock.gnn.training import Options, train


def send(number: int, epoch: int, batch: int, patch: Any = None) -> None:
    """Sends this process a signal when a loader is asked for a batch of an epoch.

    patch: pytest's monkeypatch, which ends that.
    """
    iterate = NeighborLoader.__iter__

    def iterate_and_send(loader: NeighborLoader) -> Iterator[Any]:
        for each in iterate(loader):
            if (loader.state_dict()["epoch"], each.number) == (epoch, batch):
                signal.raise_signal(number)
            yield each

    setattr_of = setattr if patch is None else patch.setattr
    setattr_of(NeighborLoader, "__iter__", iterate_and_send)


def main(output: str, plans: str) -> None:
    torch.set_num_threads(1)
    for number, plan in enumerate(json.loads(plans)):
        os.environ["MASTER_PORT"] = str(plan.pop("port", 0))
        if "signal" in plan:
            send(*plan.pop("signal"))
        result = train(Options(**plan))
        found = {"losses": result.losses, "state": result.state, "test": result.test}
        torch.save(found, f"{output}.{number}.{os.environ.get('RANK', '0')}")


if __name__ == "__main__":
    main(*sys.argv[1:])

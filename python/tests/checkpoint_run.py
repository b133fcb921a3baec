"""A run whose checkpoints are taken: a model of a table and a layer, with optimizers and a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import penstock
import penstock.nn
import penstock.optim
import torch

ROWS, WIDTH = 60, 5
STEPS = 40  # of a run that is killed


class Run:
    """A model of a table and a layer, with optimizers and a scheduler."""

    def __init__(self, folder: Path, kind: str = "Adagrad", device: str = "cpu", rows: int = ROWS) -> None:
        torch.manual_seed(3)
        head = torch.nn.Linear(WIDTH, 1).to(device)
        table = penstock.nn.Embedding(rows, WIDTH, path=folder / "t.npy", device=device, cache="1MiB")
        self.model = torch.nn.ModuleDict({"table": table, "head": head})
        self.sparse = getattr(penstock.optim, kind)(table, lr=0.1)
        self.dense = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.sparse, step_size=3, gamma=0.7)
        self.folder = folder

    @property
    def all(self) -> dict[str, Any]:
        optimizers = {"sparse": self.sparse, "dense": self.dense, "rate": self.scheduler}
        return {"model": self.model, "optimizers": optimizers}

    def train(self, steps: range) -> None:
        for k in steps:
            self.sparse.zero_grad(), self.dense.zero_grad()
            rows = (torch.rand(30, generator=torch.Generator().manual_seed(k)) ** 2 * ROWS).long()
            self.model["head"](self.model["table"](rows)).square().mean().backward()
            self.sparse.step(), self.dense.step(), self.scheduler.step()

    def numbers(self) -> list[Any]:
        array = self.model["table"].array
        dense = [parameter.detach().cpu() for parameter in self.model.parameters()]
        return [array.gather(torch.arange(len(array))).cpu(), *dense]

    def close(self) -> None:
        self.model["table"].array.close()
        self.sparse.close()


def by_torch(drawn: Any, kind: str, steps: int) -> Any:
    """The same run, by modules and optimizers of torch, without interruption."""
    table = torch.nn.Embedding(ROWS, WIDTH, sparse=True, _weight=drawn.clone())
    torch.manual_seed(3)
    head = torch.nn.Linear(WIDTH, 1)
    sparse = getattr(torch.optim, kind)(table.parameters(), lr=0.1)
    dense = torch.optim.Adam(head.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(sparse, step_size=3, gamma=0.7)
    for k in range(steps):
        sparse.zero_grad(), dense.zero_grad()
        rows = (torch.rand(30, generator=torch.Generator().manual_seed(k)) ** 2 * ROWS).long()
        head(table(rows)).square().mean().backward()
        sparse.step(), dense.step(), scheduler.step()
    return table.weight.detach()

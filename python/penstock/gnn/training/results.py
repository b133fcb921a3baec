"""What a training gives back."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from penstock.gnn.training.timeline import Overlap


@dataclass
class Account:
    """Where the time of an epoch went, and what was read. Seconds are of the wall clock of one process.

    Sampling and gathering run ahead of the training: their seconds are part of the epoch's only where the
    training waited for them.
    """

    seconds: float = 0.0
    waiting: float = 0.0
    sampling: float = 0.0
    gather: float = 0.0
    bytes: dict[str, int] = field(default_factory=dict)
    """Of features that were gathered, by tier; empty where the loader counts none."""

    def since(self, before: Account) -> Account:
        """What has come on top of an earlier account."""
        return Account(
            self.seconds - before.seconds,
            self.waiting - before.waiting,
            self.sampling - before.sampling,
            self.gather - before.gather,
            {tier: count - before.bytes.get(tier, 0) for tier, count in self.bytes.items()},
        )

    def add(self, other: Account) -> None:
        self.seconds += other.seconds
        self.waiting += other.waiting
        self.sampling += other.sampling
        self.gather += other.gather
        for tier, count in other.bytes.items():
            self.bytes[tier] = self.bytes.get(tier, 0) + count


@dataclass(frozen=True)
class Epoch:
    """One pass over the training set."""

    number: int
    """From 1."""
    steps: int
    loss: float
    """Mean over the steps and the processes."""
    valid: dict[str, float] | None
    """What was measured on the validation set, by name: accuracy, or auc and mrr; None where it was not."""
    account: Account

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Epoch:
        return cls(**{**values, "account": Account(**values["account"])})


def estimated_overlap(epochs: list[Epoch]) -> Overlap:
    """Takes all loading that the training did not wait for as hidden by it."""
    loading = sum(epoch.account.sampling + epoch.account.gather for epoch in epochs)
    waiting = sum(epoch.account.waiting for epoch in epochs)
    training = sum(epoch.account.seconds for epoch in epochs) - waiting
    return Overlap(loading, training, max(0.0, loading - waiting))


@dataclass(frozen=True)
class Result:
    """Of a training."""

    options: dict[str, Any]
    device: str
    processes: int
    parameters: int
    """Numbers that were trained."""
    epochs: list[Epoch]
    losses: list[float]
    """One for each step since the first, mean over the processes."""
    test: dict[str, float] | None
    """As `Epoch.valid`, on the test set after the last epoch; None where it is empty."""
    seconds: float
    """Of this run: those before a resumption are not in it."""
    resumed_at: tuple[int, int] | None
    """Epoch (from 1) and steps of it that were done before; None where nothing was."""
    overlap: Overlap
    """Of the spans of a timeline; without them, estimated by `estimated_overlap`."""
    state: dict[str, Any] = field(default_factory=dict, repr=False)
    """The model's `state_dict()`, on the CPU."""

    def as_dict(self) -> dict[str, Any]:
        """What JSON has: all but the losses of the steps and the model."""
        return {
            "options": self.options,
            "device": self.device,
            "processes": self.processes,
            "parameters": self.parameters,
            "epochs": [epoch.as_dict() for epoch in self.epochs],
            "test": self.test,
            "seconds": self.seconds,
            "resumed_at": None if self.resumed_at is None else list(self.resumed_at),
            "overlap": self.overlap.as_dict(),
        }


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. The training ended after a whole step.

    Attributes:
        epoch: From 1.
        step: Steps of the epoch that are done.
        saved: Whether a checkpoint of exactly this step was written.
    """

    def __init__(self, epoch: int, step: int, saved: bool) -> None:
        super().__init__(f"interrupted in epoch {epoch} after step {step}")
        self.epoch = epoch
        self.step = step
        self.saved = saved

"""What all loaders take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.arrays.messages import shown
from penstock.sizes import whole_number


@dataclass(frozen=True)
class Options:
    """See NeighborLoader. Numbers are checked when an object is made."""

    batch_size: int
    shuffle: bool
    seed: int
    device: Any
    prefetch: int
    drop_last: bool
    sms: int

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("prefetch", 1), ("sms", 0)):
            given = getattr(self, name)
            number = whole_number(given)
            if number is None or number < least:
                raise ValueError(f"loader: {name} {shown(given)}: give a whole number from {least} on")

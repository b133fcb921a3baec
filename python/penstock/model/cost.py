"""What a gigabyte costs, from a dated table of prices as data: `prices.json`."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

BASE = "dram"


@dataclasses.dataclass(frozen=True)
class Media:
    name: str
    title: str
    dollars_per_gb: float
    """With the expansion hardware that drives need, where `expansion` says so."""
    writes_per_day: float
    """Of its whole capacity, that it is made for; of DRAM at least."""
    expansion: bool

    @property
    def gain(self) -> float:
        """How many times cheaper than DRAM a gigabyte is."""
        return media(BASE).dollars_per_gb / self.dollars_per_gb


def media(name: str) -> Media:
    """Raises ValueError for a name that has no price."""
    for each in _table()["media"]:
        if each["name"] == name:
            return Media(**each)
    known = ", ".join(each.name for each in all_media())
    raise ValueError(f"model: there is no price of {name}: choose one of {known}")


def all_media() -> list[Media]:
    return [Media(**each) for each in _table()["media"]]


def dated() -> str:
    """Of when the prices are, and where they are from."""
    table = _table()
    return f"prices of {table['date']}: {table['source']}"


def per_dollar(speed: float, name: str) -> float:
    """Performance per dollar over a system with all data in DRAM, of one capacity (BaM dissertation, 7.1.2).

    speed: over that system's.
    """
    return speed * media(name).gain


def _table() -> Any:
    return json.loads((resources.files(__package__) / "prices.json").read_text(encoding="utf-8"))

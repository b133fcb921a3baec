"""What data cost where they lie, from a dated table of prices as data: `prices.json`."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

BASE, POOLED = "dram", "hbm"
DRIVES = ("p5800x", "pm1735", "980pro")
DAY_S = 86_400


@dataclasses.dataclass(frozen=True)
class Media:
    name: str
    title: str
    dollars_per_gb: float
    """With the expansion hardware that it needs, where `expansion` says so. A GB has 10^9 bytes."""
    writes_per_day: float
    """Of its whole capacity, that it is made for; of DRAM and HBM at least."""
    expansion: bool
    prices: str
    """Which part of the table says when the price was, and where it is from."""

    @property
    def gain(self) -> float:
        """How many times cheaper than DRAM a gigabyte is."""
        return media(BASE).dollars_per_gb / self.dollars_per_gb


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a plan's bytes cost, and the same data in DRAM alone or in pooled HBM.

    Attributes:
        dollars: By media: "hbm", "dram", and the drive's name.
        drive: What stands for storage.
        dram_dollars, hbm_dollars: Of all the data, and nothing else, there.
        drive_writes_per_day: How often what is written fills the stored bytes in a day; 0 without a rate.
    """

    dollars: dict[str, float]
    drive: str
    dram_dollars: float
    hbm_dollars: float
    drive_writes_per_day: float

    @property
    def total(self) -> float:
        return sum(self.dollars.values())

    @property
    def endures(self) -> bool:
        """Whether the drive is made for so many writes."""
        return self.drive_writes_per_day <= media(self.drive).writes_per_day

    def per_dollar(self, speed: float = 1.0, base: str = BASE) -> float:
        """Performance per dollar over a system with all data in `base`: "dram", or "hbm", which is pooled.

        speed: over that system's.

        Source: BaM dissertation, Section 7.1.2.
        """
        if base not in (BASE, POOLED):
            raise ValueError(f"cost: base {base}: choose {BASE} or {POOLED}")
        return speed * (self.dram_dollars if base == BASE else self.hbm_dollars) / self.total

    def __str__(self) -> str:
        lines = [
            f"  {media(name).title:<26} {value:12.4f} dollars"
            for name, value in self.dollars.items()
            if value
        ]
        lines += [
            f"  {'all of it in DRAM':<26} {self.dram_dollars:12.4f} dollars, {self.per_dollar():.2f} times",
            f"  {'all of it in pooled HBM':<26} {self.hbm_dollars:12.4f} dollars, "
            f"{self.per_dollar(base=POOLED):.2f} times",
        ]
        if self.drive_writes_per_day:
            made_for = f"of {media(self.drive).writes_per_day:g} that it is made for"
            lines.append(f"  {'drive writes a day':<26} {self.drive_writes_per_day:12.4f}, {made_for}")
        return "\n".join([*lines, f"  {dated()}"])


def cost_of(
    data_bytes: int,
    *,
    hbm_bytes: int,
    dram_bytes: int,
    storage_bytes: int,
    drive: str,
    bytes_written_per_s: float = 0.0,
) -> Cost:
    """Of bytes by where they lie.

    data_bytes: what a system without storage would hold in memory.
    drive: what storage is, "p5800x", "pm1735" or "980pro".

    Raises ValueError for another drive, no data, or a negative rate.
    """
    if drive not in DRIVES:
        raise ValueError(f"cost: there is no price of drive {drive}: choose one of {', '.join(DRIVES)}")
    if data_bytes <= 0:
        raise ValueError("cost: there are no data to compare the costs of")
    if bytes_written_per_s < 0:
        raise ValueError(f"cost: bytes_written_per_s {bytes_written_per_s}: it is 0 or more")
    dollars = {
        name: size / 1e9 * media(name).dollars_per_gb
        for name, size in ((POOLED, hbm_bytes), (BASE, dram_bytes), (drive, storage_bytes))
    }
    everything = data_bytes / 1e9
    return Cost(
        dollars,
        drive,
        dram_dollars=everything * media(BASE).dollars_per_gb,
        hbm_dollars=everything * media(POOLED).dollars_per_gb,
        drive_writes_per_day=bytes_written_per_s * DAY_S / storage_bytes if storage_bytes else 0.0,
    )


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
    parts: dict[str, list[str]] = {each.prices: [] for each in all_media()}
    for each in all_media():
        parts[each.prices].append(each.name)
    return "; ".join(
        f"prices of {table[part]['date']} ({', '.join(names)}): {table[part]['source']}"
        for part, names in parts.items()
    )


def per_dollar(speed: float, name: str, base: str = BASE) -> float:
    """Performance per dollar over a system with all data in `base`, of one capacity.

    speed: over that system's.

    Source: BaM dissertation, Section 7.1.2.
    """
    return speed * media(base).dollars_per_gb / media(name).dollars_per_gb


def _table() -> Any:
    return json.loads((resources.files(__package__) / "prices.json").read_text(encoding="utf-8"))

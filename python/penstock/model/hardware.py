"""GPUs, links and drives by name, as data: `hardware.json`, each with its source."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any, TypeVar

PACKET_BYTES = 256
"""Of payload in a packet that a drive writes; a GPU's reads have at most 128."""


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    title: str
    sms: int
    warps_per_sm: int
    memory_gb_per_s: float
    source: str


@dataclasses.dataclass(frozen=True)
class Link:
    """One direction of it."""

    name: str
    title: str
    gb_per_s: float
    """After the line's coding, headers and all."""
    header_bytes: int
    """Of a packet."""
    outstanding: int | None
    """Reads that a device may have on their way; None: they limit nothing."""
    round_trip_us: float
    source: str

    def payload_gb_per_s(self, packet_bytes: int) -> float:
        """What of the bandwidth is data where packets carry so much (zero-copy dissertation, 2.3.3)."""
        return self.gb_per_s * packet_bytes / (packet_bytes + self.header_bytes)


@dataclasses.dataclass(frozen=True)
class Drive:
    name: str
    title: str
    latency_us: float
    reads_512: float
    """Random reads per second of 512 bytes, at most."""
    reads_4096: float
    source: str

    def reads_per_s(self, block_bytes: int) -> float:
        """Of that size: the rate of the next size that is known, with 4 KiB's bandwidth above it."""
        if block_bytes <= 512:
            return self.reads_512
        return self.reads_4096 * min(1.0, 4096 / block_bytes)


Part = TypeVar("Part", Gpu, Link, Drive)


def gpu(name: str) -> Gpu:
    """Raises ValueError for a name that is not known; so do link and drive."""
    return _named(Gpu, "gpus", name)


def link(name: str) -> Link:
    return _named(Link, "links", name)


def drive(name: str) -> Drive:
    return _named(Drive, "drives", name)


def names(kind: str) -> list[str]:
    """Of "gpus", "links" or "drives"."""
    return [str(each["name"]) for each in _data()[kind]]


def _named(part: type[Part], kind: str, name: str) -> Part:
    for each in _data()[kind]:
        if each["name"] == name:
            return part(**each)
    known = ", ".join(names(kind))
    raise ValueError(f"model: there is no {kind.removesuffix('s')} {name}: choose one of {known}")


def _data() -> Any:
    return json.loads((resources.files(__package__) / "hardware.json").read_text(encoding="utf-8"))

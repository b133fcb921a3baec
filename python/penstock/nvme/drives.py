"""The drives of this machine as the kernel lists them."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.native import load_native
from penstock.nvme.topology import name_of, slower_than_could_be

SHORT_ADDRESS = re.compile(r"[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
USER_DRIVER = "vfio-pci"


def _place(name: str, default: str) -> str:
    return os.environ.get(name) or default


@dataclass(frozen=True)
class Places:
    """Where the kernel's files are: a tree to try things on, or a container's view of its host."""

    sysfs: str = field(default_factory=lambda: _place("PENSTOCK_SYSFS", "/sys"))
    proc: str = field(default_factory=lambda: _place("PENSTOCK_PROC", "/proc"))
    dev: str = field(default_factory=lambda: _place("PENSTOCK_DEV", "/dev"))


@dataclass(frozen=True)
class Drive:
    address: str
    """As "0000:01:00.0"."""
    vendor: int
    device: int
    model: str
    """Of the kernel's driver; empty where that has not got it. Likewise the serial number."""
    serial: str
    driver: str
    iommu_group: str
    """Its number; empty: no IOMMU."""
    group_others: list[str]
    link: str
    """As it is, and "of" what it could be: "16.0 GT/s PCIe x4 of 16.0 GT/s PCIe x4"."""
    numa_node: int
    """The socket that it hangs on; -1: unknown, or there is one."""
    block_devices: list[str]
    uses: list[str]
    """What its block devices are in use for, in words."""

    @property
    def slow_link(self) -> bool:
        return slower_than_could_be(self.link)

    @property
    def ours(self) -> bool:
        """Nothing stands between it and Penstock: vfio-pci has it, or nobody where there is no IOMMU."""
        return self.driver == USER_DRIVER or not (self.driver or self.iommu_group)

    def as_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "slow_link": self.slow_link}


def full_address(text: str) -> str:
    """ "01:00.0" as "0000:01:00.0"."""
    return ("0000:" + text if SHORT_ADDRESS.fullmatch(text) else text).lower()


def list_drives(at: Places | None = None) -> list[Drive]:
    """By address. Raises penstock.Error where there is no compiled part."""
    places = at or Places()
    return [_drive(facts, places) for facts in load_native().nvme_list(places.sysfs, places.proc)]


def find_drive(address: str, at: Places | None = None) -> Drive:
    """Raises ValueError where there is no such device, or it is no NVMe controller."""
    places = at or Places()
    return _drive(load_native().nvme_find(full_address(address), places.sysfs, places.proc), places)


def _drive(facts: dict[str, Any], places: Places) -> Drive:
    model, serial = name_of(Path(places.sysfs), facts["address"])
    return Drive(model=model, serial=serial, **facts)

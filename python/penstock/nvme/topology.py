"""Where a PCI device hangs, read from sysfs. Nothing here raises for what is not there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ROOT = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
NVIDIA = "0x10de"
NVME_CLASS = "0x010802"
DISPLAY_CLASSES = ("0x0300", "0x0302")


@dataclass(frozen=True)
class Hop:
    """A place on the way from a root of the processor's down to a device."""

    name: str
    """An address, or "pci0000:00" of a root."""
    link: str
    """Of an address: as it is, and what it could be; empty where it is no PCI Express."""

    @property
    def slow(self) -> bool:
        return slower_than_could_be(self.link)


def slower_than_could_be(link: str) -> bool:
    """Whether a link "8.0 GT/s PCIe x4 of 16.0 GT/s PCIe x4" is below its most."""
    now, _, most = link.partition(" of ")
    return bool(most) and now != most and "Unknown" not in link


def short_link(link: str) -> str:
    """For people: "16.0 GT/s x4", and where it could be more, "8.0 GT/s x2 of 16.0 GT/s x4"."""
    short = link.replace(" PCIe", "")
    return short if slower_than_could_be(link) else short.partition(" of ")[0]


def text_of(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def device_folder(sysfs: Path, address: str) -> Path:
    return sysfs / "bus/pci/devices" / address


def name_of(sysfs: Path, address: str) -> tuple[str, str]:
    """Model and serial number, where the kernel's driver has the drive."""
    try:
        controllers = sorted((device_folder(sysfs, address) / "nvme").iterdir())
    except OSError:
        controllers = []
    if not controllers:
        return "", ""
    return text_of(controllers[0] / "model"), text_of(controllers[0] / "serial")


def driver_of(sysfs: Path, address: str) -> str:
    try:
        return (device_folder(sysfs, address) / "driver").readlink().name
    except OSError:
        return ""


def numa_node(sysfs: Path, address: str) -> int:
    text = text_of(device_folder(sysfs, address) / "numa_node")
    return int(text) if re.fullmatch(r"-?\d+", text) else -1


def path_to(sysfs: Path, address: str) -> list[Hop]:
    """From the root down to the device itself."""
    parts = Path(os.path.realpath(device_folder(sysfs, address))).parts
    names = [part for part in parts if ROOT.fullmatch(part) or ADDRESS.fullmatch(part)]
    return [Hop(name, "" if ROOT.fullmatch(name) else link_of(device_folder(sysfs, name))) for name in names]


def link_of(folder: Path) -> str:
    now, width = text_of(folder / "current_link_speed"), text_of(folder / "current_link_width")
    if not now or width in ("", "0"):
        return ""
    return f"{now} x{width} of {text_of(folder / 'max_link_speed')} x{text_of(folder / 'max_link_width')}"


def gpus(sysfs: Path) -> list[str]:
    """Addresses of NVIDIA's GPUs."""
    return [
        folder.name
        for folder in _devices(sysfs)
        if text_of(folder / "vendor") == NVIDIA and text_of(folder / "class")[:6] in DISPLAY_CLASSES
    ]


def nvme_addresses(sysfs: Path) -> list[str]:
    return [folder.name for folder in _devices(sysfs) if text_of(folder / "class") == NVME_CLASS]


def _devices(sysfs: Path) -> list[Path]:
    try:
        return sorted((sysfs / "bus/pci/devices").iterdir())
    except OSError:
        return []


def draw(hops: list[Hop], leaf: str) -> list[str]:
    """The way as lines, each hop below the one that it hangs on; `leaf` names the last."""
    lines = []
    for depth, hop in enumerate(hops):
        indent = "" if depth == 0 else "   " * (depth - 1) + "`- "
        what = "root" if depth == 0 else leaf if depth == len(hops) - 1 else "bridge"
        lines.append(f"{indent}{hop.name} {what}" + (f", {short_link(hop.link)}" if hop.link else ""))
    return lines

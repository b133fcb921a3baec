"""A tree of sysfs, proc and dev with PCI devices, and a kernel that moves them between drivers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NVME_CLASS, SATA_CLASS, BRIDGE_CLASS, GPU_CLASS = "0x010802", "0x010601", "0x060400", "0x030200"
FAST = ("16.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "4")
SLOW = ("8.0 GT/s PCIe", "2", "16.0 GT/s PCIe", "4")
PATIENCE_S = 20


class FakeKernel:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs, self.proc, self.dev = root / "sys", root / "proc", root / "dev"
        (self.sysfs / "bus/pci/devices").mkdir(parents=True)
        (self.proc / "self").mkdir(parents=True)
        (self.dev / "vfio").mkdir(parents=True)
        (self.proc / "self/mounts").write_text("proc /proc proc rw 0 0\n")
        os.mkfifo(self.sysfs / "bus/pci/drivers_probe")
        for driver in ("nvme", "vfio-pci", "ahci", "pcieport"):
            self.add_driver(driver)

    def add_driver(self, name: str) -> Path:
        folder = self.sysfs / "bus/pci/drivers" / name
        folder.mkdir(parents=True)
        os.mkfifo(folder / "unbind")
        return folder

    def device(self, address: str) -> Path:
        return self.sysfs / "bus/pci/devices" / address

    def add(
        self,
        address: str,
        *,
        below: tuple[str, ...] = ("pci0000:00",),
        driver: str = "",
        group: str = "",
        kind: str = NVME_CLASS,
        vendor: str = "0x144d",
        link: tuple[str, str, str, str] | None = FAST,
        node: int = -1,
    ) -> Path:
        folder = self.sysfs.joinpath("devices", *below, address)
        folder.mkdir(parents=True)
        self.device(address).symlink_to(folder)
        files = {
            "vendor": vendor,
            "device": "0xa80c",
            "class": kind,
            "numa_node": str(node),
            "driver_override": "",
        }
        if link:
            names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
            files |= dict(zip(names, link, strict=True))
        for name, text in files.items():
            (folder / name).write_text(text + "\n")
        if driver:
            self.set_driver(address, driver)
        if group:
            members = self.sysfs / "kernel/iommu_groups" / group / "devices"
            members.mkdir(parents=True, exist_ok=True)
            (members / address).symlink_to(folder)
            (folder / "iommu_group").symlink_to(members.parent)
        return folder

    def add_drive(
        self, address: str, *, model: str = "Samsung SSD 990 PRO 2TB", group: str = "14", node: int = -1
    ) -> Path:
        """One that the kernel's driver has, behind a bridge, as nvme0 with namespaces 1 and 2."""
        bridge = "0000:00:01.0"
        if not self.device(bridge).exists():
            self.add(bridge, driver="pcieport", kind=BRIDGE_CLASS)
        folder = self.add(address, below=("pci0000:00", bridge), driver="nvme", group=group, node=node)
        controller = folder / "nvme/nvme0"
        for block in ("nvme0n1", "nvme0n2"):
            (controller / block).mkdir(parents=True)
            (self.sysfs / "class/block" / block / "holders").mkdir(parents=True)
        (controller / "model").write_text(f"{model:40}\n")
        (controller / "serial").write_text("S6Z1NF0W\n")
        return folder

    def mount(self, block: str, folder: str) -> None:
        with (self.proc / "self/mounts").open("a") as mounts:
            mounts.write(f"/dev/{block} {folder} ext4 rw 0 0\n")

    def set_driver(self, address: str, name: str) -> None:
        link = self.device(address) / "driver"
        link.unlink(missing_ok=True)
        if name:
            link.symlink_to(self.sysfs / "bus/pci/drivers" / name)

    def add_group_file(self, group: str) -> Path:
        file = self.dev / "vfio" / group
        file.write_text("")
        return file

    def add_own_file(self, address: str, name: str) -> Path:
        """As iommufd has it."""
        (self.device(address) / "vfio-dev" / name).mkdir(parents=True)
        file = self.dev / "vfio/devices" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
        return file

    def hold(self, process: int, file: Path) -> None:
        handles = self.proc / str(process) / "fd"
        handles.mkdir(parents=True)
        (handles / "5").symlink_to(file)

    @contextmanager
    def moving(self, address: str, old: str, new: str, *, probe: bool = True) -> Iterator[list[str]]:
        """Lets the device go when `old` is asked to, and has `new` take it. Gives what was written.

        Each step is a FIFO, which its writer opens only when this side does: nothing here waits for a time.
        """
        said: list[str] = []
        first = self.sysfs / "bus/pci/drivers" / old / "unbind"
        if not old:  # then what is written first is which driver is wanted
            first = self.device(address) / "driver_override"
            first.unlink()
            os.mkfifo(first)

        def serve() -> None:
            said.append(first.read_text())
            self.set_driver(address, new)
            if probe:
                said.append((self.sysfs / "bus/pci/drivers_probe").read_text())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield said
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"only this was written: {said}"

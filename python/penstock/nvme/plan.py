"""What binding and unbinding will do, shown before it is done, and what stands in their way."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Error
from penstock.native import load_native
from penstock.nvme.drives import USER_DRIVER, Drive, Places, find_drive, full_address
from penstock.nvme.topology import driver_of

KERNEL_DRIVER = "nvme"
# Drivers of devices that may stay in a group whose others VFIO gives away.
HARMLESS = ("", USER_DRIVER, "pcieport")
NO_IOMMU = (
    "WARNING: this machine has no IOMMU, or it is off (intel_iommu=on, amd_iommu=on). A drive that Penstock"
    " drives then reaches ALL of this machine's memory, the kernel's and every program's: one wrong address"
    " in a command, or a drive with bad firmware, overwrites anything. Only root may drive it, and it needs"
    " free huge pages of 2 MiB."
)


@dataclass(frozen=True)
class Owner:
    name: str
    uid: int


def find_owner(name: str) -> Owner:
    """A user by name or number. Raises ValueError where there is none."""
    try:
        return Owner(name, int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid)
    except KeyError:
        raise ValueError(f"--owner {name}: there is no such user: name one of this machine") from None


def find_drives(addresses: tuple[str, ...], places: Places) -> list[Drive]:
    """Each once, in the order given."""
    return [find_drive(address, places) for address in dict.fromkeys(map(full_address, addresses))]


def group_file(drive: Drive, places: Places) -> Path:
    return Path(places.dev) / "vfio" / drive.iommu_group


def opening_file(drive: Drive, places: Places) -> Path:
    """What opens a drive that is bound: its group's file, or on a kernel without those (iommufd) its own."""
    group, own = group_file(drive, places), _own_files(drive, places)
    return own[0] if own and not group.exists() else group


def _own_files(drive: Drive, places: Places) -> list[Path]:
    folder = Path(places.sysfs) / "bus/pci/devices" / drive.address / "vfio-dev"
    return [Path(places.dev) / "vfio/devices" / each.name for each in sorted(folder.glob("vfio*"))]


def check_bind(drives: list[Drive], force: bool, owner: Owner | None, places: Places) -> None:
    """Raises ValueError for the first thing that stands in the way."""
    together = {drive.address for drive in drives}
    for drive in drives:
        if owner and not drive.iommu_group:
            raise ValueError(
                f"bind {drive.address}: --owner: without an IOMMU only root may drive it: leave --owner out"
            )
        if drive.uses and not force and not drive.ours:
            raise ValueError(
                f"bind {drive.address}: it is in use: {'; '.join(drive.uses)}: end that first, or"
                " --force and lose what is not written"
            )
        for other in drive.group_others:
            driver = driver_of(Path(places.sysfs), other)
            if other not in together and driver not in HARMLESS and not force:
                raise ValueError(
                    f"bind {drive.address}: its IOMMU group {drive.iommu_group} has {other}, too, which the"
                    f" driver {driver} has, and VFIO gives groups away as a whole: bind that one as well if"
                    " it is a drive, or put this one into another slot"
                )


def tell_bind(drives: list[Drive], owner: Owner | None, places: Places) -> list[str]:
    lines = []
    for drive in drives:
        lines.append(_heading(drive))
        if drive.ours:
            lines.append("  is bound already, and stays so")
        elif drive.iommu_group:
            lines.append(f"  {_loser(drive)}; {USER_DRIVER} gets it")
        else:
            lines.append(f"  {_loser(drive)}; nobody gets it, so that root's programs may drive it")
        if drive.block_devices:
            lines.append(f"  block devices that go away: {', '.join(drive.block_devices)}")
        lines += [f"  FORCED although {use}" for use in drive.uses]
        if drive.iommu_group:
            lines.append(
                f"  afterwards {group_file(drive, places)} opens for {_openers(drive, owner, places)}"
            )
            if drive.group_others:
                lines.append(f"  and with it goes the rest of the group: {', '.join(drive.group_others)}")
    return lines


def bind(drive: Drive, force: bool, owner: Owner | None, places: Places) -> str:
    """Does it, and says what came of it."""
    load_native().nvme_bind(drive.address, force, places.sysfs, places.proc)
    if not drive.iommu_group:
        return f"{drive.address}: nobody has it now; root's programs may drive it"
    file = opening_file(drive, places)
    if owner:
        try:
            os.chown(file, owner.uid, -1)
        except OSError as problem:
            raise Error(
                f"bind {drive.address}: {USER_DRIVER} has it, but {file} was not given to {owner.name}:"
                f" {problem.strerror}: chown it as root",
                problem.errno or 0,
            ) from None
    needs = "" if file == group_file(drive, places) else f", who may open {places.dev}/iommu, too"
    return f"{drive.address}: {USER_DRIVER} has it now; it opens for {_openers(drive, owner, places)}{needs}"


def check_unbind(drives: list[Drive], places: Places) -> None:
    for drive in drives:
        if drive.driver not in ("", KERNEL_DRIVER, USER_DRIVER):
            raise ValueError(
                f"unbind {drive.address}: the driver {drive.driver} has it, which is neither {USER_DRIVER}"
                " nor the kernel's for NVMe: take it from that one by its own means"
            )
        if drive.driver == USER_DRIVER and (holder := _holder(drive, places)):
            raise ValueError(
                f"unbind {drive.address}: process {holder} drives it: end that first, for the kernel"
                " would wait for it"
            )


def tell_unbind(drives: list[Drive]) -> list[str]:
    lines = []
    for drive in drives:
        lines.append(_heading(drive))
        if drive.driver == KERNEL_DRIVER:
            lines.append("  is the kernel's already, and stays so")
        else:
            lines.append(f"  {_loser(drive)}; the kernel's driver gets it, and its block devices appear")
    return lines


def unbind(drive: Drive, places: Places) -> str:
    load_native().nvme_unbind(drive.address, places.sysfs)
    after = find_drive(drive.address, places)
    if after.driver in ("", USER_DRIVER):
        raise Error(f"unbind {drive.address}: no driver of the kernel's took it: modprobe {KERNEL_DRIVER}")
    blocks = f" as {', '.join(after.block_devices)}" if after.block_devices else ""
    return f"{drive.address}: {after.driver} has it now{blocks}"


def _heading(drive: Drive) -> str:
    name = " ".join(word for word in (drive.model, f"({drive.serial})" if drive.serial else "") if word)
    return f"{drive.address} {name}".rstrip() + ":"


def _loser(drive: Drive) -> str:
    return f"{drive.driver} loses it" if drive.driver else "no driver has it"


def _openers(drive: Drive, owner: Owner | None, places: Places) -> str:
    if owner:
        return f"{owner.name} and root"
    try:
        uid = opening_file(drive, places).stat().st_uid
    except OSError:
        uid = 0
    if uid == 0:
        return "root alone, unless a rule of udev says otherwise (--owner USER gives it to a user)"
    try:
        return f"{pwd.getpwuid(uid).pw_name} and root"
    except KeyError:
        return f"user {uid} and root"


def _holder(drive: Drive, places: Places) -> str:
    """A process that has the group or the drive open, as far as this user may know; empty: none."""
    wanted = {str(file) for file in (group_file(drive, places), *_own_files(drive, places))}
    for process in sorted(Path(places.proc).glob("[0-9]*")):
        try:
            if any(str(handle.readlink()) in wanted for handle in (process / "fd").iterdir()):
                return process.name
        except OSError:
            continue
    return ""

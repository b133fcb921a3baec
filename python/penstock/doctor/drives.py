"""NVMe drives, who drives them, and how kernels would reach them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.doctor.rows import REINSTALL, STATES, Row, State
from penstock.machine import DriverMissing, Machine
from penstock.nvme import topology

# As the compiled part names them.
KERNELS_RING = "doorbells rung by kernels"
STRAIGHT_TO_GPU = "data straight to the GPU, doorbells rung by kernels"


def probe_vfio(machine: Machine) -> Row:
    gives = "drives driven from user space, without a kernel module of ours"
    device = machine.path("/dev/vfio/vfio").exists()
    groups = len(machine.listing("/sys/kernel/iommu_groups"))
    module = machine.path("/sys/module/vfio_pci").exists()
    parts = [
        "/dev/vfio/vfio" if device else "no /dev/vfio/vfio",
        f"{groups} IOMMU groups",
        "vfio_pci loaded" if module else "vfio_pci not loaded",
    ]
    found = ", ".join(parts)
    if device and groups and module:
        return Row("VFIO", "ok", found, gives)
    remedy = "as root: modprobe vfio-pci"
    if not groups:
        remedy = "turn on the IOMMU (firmware, and intel_iommu=on), then as root: modprobe vfio-pci"
    return Row("VFIO", "limited" if device or groups else "missing", found, gives, remedy)


def probe_drives(machine: Machine) -> Row:
    gives = "storage that answers a million requests a second; files on any disk work too"
    sysfs = machine.path("/sys")
    drives = []
    for address in topology.nvme_addresses(sysfs):
        model, _ = topology.name_of(sysfs, address)
        driver = topology.driver_of(sysfs, address) or "nobody"
        drives.append(f"{address}: {model or 'unknown model'}, {driver} has it")
    if drives:
        return Row("NVMe drives", "ok", "\n".join(drives), gives)
    return Row("NVMe drives", "missing", "none on the PCI buses", gives, "any file system serves meanwhile")


def probe_drive_access(machine: Machine) -> Row:
    gives = (
        "commands from the program straight to the drive. Data go to the machine's memory, or straight to a"
        " GPU's where that is mapped for the drive (the kernel module penstock_p2p, docs/NVME.md), best with"
        " both below one PCIe switch"
    )
    if not topology.nvme_addresses(machine.path("/sys")):
        return Row("drive access", "missing", "no NVMe drive", gives, "needs one that nothing else uses")
    try:
        drives = machine.nvme_drives(machine.root)
    except ImportError as problem:
        return Row("drive access", "limited", f"no compiled part: {problem}", gives, REINSTALL)
    tiers = [drive_tier(drive) for drive in drives]
    found = "\n".join(f"{d['address']}: {t.what}" for d, t in zip(drives, tiers, strict=True))
    state = min((t.state for t in tiers), key=STATES.index)
    return Row(
        "drive access", state, found, gives, "; ".join(dict.fromkeys(t.remedy for t in tiers if t.remedy))
    )


@dataclass(frozen=True)
class Tier:
    """How Penstock could drive a drive, and what is to be done for it."""

    what: str
    state: State
    remedy: str = ""


def drive_tier(drive: dict[str, Any]) -> Tier:
    if drive["uses"]:
        return Tier(f"none: {drive['uses'][0]}", "missing", "a drive that is in use stays with the kernel")
    if drive["driver"] == "vfio-pci":
        return Tier(f"VFIO, group {drive['iommu_group']}", "ok")
    bind = "as root: penstock nvme bind ADDRESS --owner USER"
    if drive["iommu_group"]:
        return Tier(f"VFIO once it is bound (IOMMU group {drive['iommu_group']})", "limited", bind)
    remedy = (
        "turn the IOMMU on (firmware, and intel_iommu=on), or as root: penstock nvme bind ADDRESS, with"
        " free huge pages of 2 MiB"
    )
    if drive["driver"]:
        return Tier("huge pages, as root, once it is bound: there is no IOMMU", "limited", remedy)
    return Tier("huge pages, as root: there is no IOMMU", "limited", remedy)


def probe_gpu_drives(machine: Machine) -> Row:
    gives = (
        "drives driven by a GPU's threads: rings and data in the GPU's memory where that is mapped for the"
        " drive, else in host memory that both reach; doorbells stored to by kernels (or, where CUDA does not"
        " map them, by one host thread)"
    )
    what = "GPU to drive"
    if not topology.nvme_addresses(machine.path("/sys")):
        return Row(what, "missing", "no NVMe drive", gives, "needs one that nothing else uses")
    if reason := _why_no_kernels(machine):
        return Row(what, "missing", reason, gives, "threads of the CPU drive it meanwhile")
    try:
        drives = machine.nvme_drives(machine.root)
    except ImportError as problem:
        return Row(what, "limited", f"no compiled part: {problem}", gives, REINSTALL)
    reached = [gpu_tier(machine, drive) for drive in drives]
    found = "\n".join(f"{d['address']}: {t.what}" for d, t in zip(drives, reached, strict=True))
    state = min((t.state for t in reached), key=STATES.index)
    return Row(what, state, found, gives, "; ".join(dict.fromkeys(t.remedy for t in reached if t.remedy)))


def gpu_tier(machine: Machine, drive: dict[str, Any]) -> Tier:
    """Tried, where vfio-pci has the drive: it is opened, which resets it, and let go."""
    if drive["driver"] != "vfio-pci":
        bind = "as root: penstock nvme bind ADDRESS --owner USER"
        return Tier(f"not tried: {drive['driver'] or 'nobody'} has it", "limited", bind)
    try:
        tier, reason = machine.gpu_path(drive["address"])
    except OSError as problem:
        return Tier(f"not tried: {problem}", "limited", "end what drives it, or let this user open it")
    if tier == STRAIGHT_TO_GPU:
        return Tier(tier, "ok")
    good = tier == KERNELS_RING
    remedy = "" if good else "a thread of the host forwards: no less right, but slower"
    return Tier(f"{tier}, data in host memory: {reason}", "ok" if good else "limited", remedy)


def _why_no_kernels(machine: Machine) -> str:
    """Why no kernel could drive a drive; empty where one could."""
    try:
        if not machine.built_cuda():
            return "built without CUDA"
        return "" if machine.driver().gpus else "no GPU"
    except (DriverMissing, ImportError) as reason:
        return str(reason)


def probe_drive_paths(machine: Machine) -> Row:
    gives = "what lies between a drive and the processor: the narrowest link bounds it"
    sysfs = machine.path("/sys")
    drives = topology.nvme_addresses(sysfs)
    if not drives:
        return Row("drive paths", "missing", "no NVMe drive", gives, "needs one")
    lines, remedies = [], []
    gpu_nodes = {gpu: topology.numa_node(sysfs, gpu) for gpu in topology.gpus(sysfs)}
    for address in drives:
        node = topology.numa_node(sysfs, address)
        hops = topology.path_to(sysfs, address)
        lines += topology.draw(hops, "drive" + (f" on socket {node}" if node >= 0 else ""))
        remedies += [
            f"{hop.name} runs at {topology.short_link(hop.link)}: try another slot"
            for hop in hops[-1:]
            if hop.slow
        ]
        remedies += [
            f"{address} (socket {node}) and GPU {gpu} (socket {other}) hang on different sockets: what goes"
            " between them crosses the processors; put them on one"
            for gpu, other in gpu_nodes.items()
            if min(node, other) >= 0 and node != other
        ]
    return Row("drive paths", "limited" if remedies else "ok", "\n".join(lines), gives, "; ".join(remedies))

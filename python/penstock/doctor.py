"""What this machine has for Penstock, and what each missing thing would give.

Nothing here raises, needs root or changes anything; but where there is a GPU, a drive that vfio-pci has is
opened, which resets it, and let go, to see how kernels would reach it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from penstock.machine import Driver, DriverMissing, Machine
from penstock.nvme import topology
from penstock.sizes import format_bytes

State = Literal["ok", "limited", "missing"]
STATES: tuple[State, ...] = get_args(State)

# What Penstock's default cache pins on the CUDA executor: frames, rings and bounce buffers, rounded up.
PINNED_BYTES = 64 << 20
# A converted kron:22 with its temporary files.
WORKING_BYTES = 4 << 30
CAP_IPC_LOCK = 14
OLDEST_GPU = (8, 0)
DRIVER_WITH_SM_SHARES = (12, 5)  # streams of green contexts
# As the compiled part names them.
KERNELS_RING = "doorbells rung by kernels"
STRAIGHT_TO_GPU = "data straight to the GPU, doorbells rung by kernels"
REINSTALL = "reinstall Penstock: pip install --force-reinstall --no-deps ."
TRANSPARENT_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
KERNEL_WITH_IO_URING = (5, 11)  # earlier ones lack what liburing 2 expects of a ring


@dataclass(frozen=True)
class Row:
    what: str
    state: State
    found: str
    gives: str
    """What it is good for; for a missing thing, what it would give."""
    remedy: str = ""
    """How to get it; empty where nothing is to be done."""


Probe = Callable[[Machine], Row]


def probe_gpu(machine: Machine) -> Row:
    gives = "kernels on the CUDA executor"
    try:
        driver = machine.driver()
    except DriverMissing as reason:
        remedy = "install NVIDIA's driver where there is a GPU; all works on the CPU executor meanwhile"
        return Row("GPU", "missing", str(reason), gives, remedy)
    if not driver.gpus:
        return Row(
            "GPU", "missing", f"driver for CUDA {driver.version}, no GPU", gives, "give the process a GPU"
        )
    texts = [
        f"{g.name} (sm_{g.capability[0]}{g.capability[1]}, {format_bytes(g.memory_bytes)})"
        for g in driver.gpus
    ]
    found = f"{', '.join(texts)}; driver for CUDA {driver.version}"
    nodes = sorted({g.numa_node for g in driver.gpus if g.numa_node >= 0})
    if nodes:
        found += f"; pinned memory from NUMA node {', '.join(map(str, nodes))}, the GPU's"
    if all(g.capability < OLDEST_GPU for g in driver.gpus):
        return Row("GPU", "limited", found, gives, "Penstock needs compute capability 8.0 (A100) or newer")
    return Row("GPU", "ok", found, gives)


def probe_build(machine: Machine) -> Row:
    gives = "the CUDA executor in this installation"
    try:
        built = machine.built_cuda()
    except ImportError as problem:
        return Row("CUDA build", "missing", f"no compiled part: {problem}", gives, REINSTALL)
    if not built:
        remedy = f"install the CUDA toolkit (nvcc) and {REINSTALL}"
        return Row("CUDA build", "missing", "built without CUDA", gives, remedy)
    try:
        driver = machine.driver()
    except DriverMissing:
        return Row("CUDA build", "ok", f"CUDA {built}, unused without a driver", gives)
    if _version(driver.version)[:1] < _version(built)[:1]:
        remedy = f"update the driver to one for CUDA {built}"
        return Row(
            "CUDA build", "limited", f"CUDA {built}, the driver is for {driver.version}", gives, remedy
        )
    return Row("CUDA build", "ok", f"CUDA {built}", gives)


def probe_sm_shares(machine: Machine) -> Row:
    gives = "executors bounded to some SMs of a GPU, so that others have the rest"
    try:
        driver = machine.driver()
    except DriverMissing as reason:
        return Row(
            "SM shares", "missing", str(reason), gives, "needs a GPU; a CPU executor takes so many threads"
        )
    gpus = [g for g in driver.gpus if g.capability >= OLDEST_GPU]
    if not gpus:
        return Row("SM shares", "missing", "no GPU of compute capability 8.0 or newer", gives, "needs one")
    if _version(driver.version) < DRIVER_WITH_SM_SHARES:
        remedy = "update the driver to one for CUDA 12.5 or newer; until then an executor takes all SMs"
        return Row("SM shares", "missing", f"driver for CUDA {driver.version}", gives, remedy)
    texts = []
    for gpu in gpus:
        least, step = (8, 8) if gpu.capability >= (9, 0) else (4, 2)
        texts.append(f"{gpu.multiprocessors} SMs, from {least} on by {step}")
    return Row("SM shares", "ok", "; ".join(texts), gives)


def probe_peers(machine: Machine) -> Row:
    gives = "modelled drives on a second GPU; arrays spread over the memory of several"
    try:
        driver = machine.driver()
    except DriverMissing:
        driver = Driver("")
    count = len(driver.gpus)
    if count < 2:
        remedy = "needs two GPUs, best with NVLink"
        return Row("peer-to-peer", "missing", f"{count} GPU{'' if count == 1 else 's'}", gives, remedy)
    pairs = count * (count - 1)
    found = f"{len(driver.peers)} of {pairs} ordered pairs of GPUs reach each other"
    if len(driver.peers) == pairs:
        return Row("peer-to-peer", "ok", found, gives)
    remedy = "GPUs behind one PCIe switch or NVLink reach each other; turn off ACS where it is safe"
    return Row("peer-to-peer", "limited" if driver.peers else "missing", found, gives, remedy)


def probe_io_uring(machine: Machine) -> Row:
    gives = "many reads in flight from one thread; without it a pool of threads uses pread"
    usable, reason = machine.io_uring()
    if usable:
        return Row("io_uring", "ok", "usable", gives)
    disabled = (machine.text("/proc/sys/kernel/io_uring_disabled") or "").strip()
    if disabled in ("1", "2"):
        return Row(
            "io_uring",
            "missing",
            f"turned off: {reason}",
            gives,
            "as root: sysctl kernel.io_uring_disabled=0",
        )
    remedy = "install liburing-dev and reinstall Penstock; in a container, allow io_uring_setup (seccomp)"
    return Row("io_uring", "missing", reason or "not usable", gives, remedy)


def probe_kernel(machine: Machine) -> Row:
    gives = "io_uring, direct I/O"
    release = (machine.text("/proc/sys/kernel/osrelease") or "").strip()
    found = f"Linux {release or 'of unknown version'}, {machine.architecture}"
    if release and _version(release) < KERNEL_WITH_IO_URING:
        return Row("kernel", "limited", found, gives, "Linux 5.11 has all that is used of io_uring")
    return Row("kernel", "ok" if release else "limited", found, gives)


def probe_huge_pages(machine: Machine) -> Row:
    gives = "fewer TLB misses in frames and directory of the CPU executor, where they take 2 MiB or more"
    text = machine.text(TRANSPARENT_HUGE_PAGES)
    chosen = re.search(r"\[(\w+)\]", text or "")
    if chosen is None:
        remedy = "a kernel with CONFIG_TRANSPARENT_HUGEPAGE has them"
        return Row("huge pages", "missing", "no transparent huge pages", gives, remedy)
    found = f"transparent: {chosen.group(1)}"
    if chosen.group(1) in ("madvise", "always"):
        return Row("huge pages", "ok", found, gives)
    return Row("huge pages", "missing", found, gives, f"as root: echo madvise > {TRANSPARENT_HUGE_PAGES}")


def probe_locked_memory(machine: Machine) -> Row:
    gives = f"registered buffers and pinned memory ({format_bytes(PINNED_BYTES)} are enough to begin with)"
    effective = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", machine.text("/proc/self/status") or "", re.MULTILINE)
    capable = effective is not None and bool(int(effective.group(1), 16) >> CAP_IPC_LOCK & 1)
    limit = re.search(r"^Max locked memory\s+(\S+)", machine.text("/proc/self/limits") or "", re.MULTILINE)
    if capable:
        return Row("locked memory", "ok", "no limit: the process has CAP_IPC_LOCK", gives)
    if limit is None:
        return Row("locked memory", "limited", "the limit cannot be read", gives)
    if limit.group(1) == "unlimited":
        return Row("locked memory", "ok", "no limit", gives)
    found = f"limit {format_bytes(int(limit.group(1)))}"
    if int(limit.group(1)) >= PINNED_BYTES:
        return Row("locked memory", "ok", found, gives)
    return Row("locked memory", "limited", found, gives, "raise memlock in /etc/security/limits.conf")


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


def probe_pages(machine: Machine) -> Row:
    gives = "lines and NVMe pages of 4 KiB that match the system's"
    found = format_bytes(machine.page_bytes)
    if machine.page_bytes == 4096:
        return Row("page size", "ok", found, gives)
    return Row("page size", "limited", found, gives, "reads from the page cache come in pieces of that size")


def probe_disk(machine: Machine) -> Row:
    gives = f"room for converted graphs (kron:22 wants about {format_bytes(WORKING_BYTES)})"
    free = machine.free(machine.cache_dir)
    found = f"{format_bytes(free)} free for {machine.cache_dir}"
    if free >= WORKING_BYTES:
        return Row("disk space", "ok", found, gives)
    return Row("disk space", "limited", found, gives, "choose a place with --cache-dir or PENSTOCK_CACHE")


def probe_packages(machine: Machine) -> Row:
    gives = "the graph `debian`: this machine's packages and what they depend on"
    lists = [n for n in machine.listing("/var/lib/apt/lists") if "_Packages" in n]
    if lists:
        return Row("package lists", "ok", f"{len(lists)} in /var/lib/apt/lists", gives)
    if machine.path("/var/lib/dpkg/status").exists():
        return Row("package lists", "limited", "installed packages only", gives, "as root: apt-get update")
    return Row("package lists", "missing", "no apt, no dpkg", gives, "any Debian or Ubuntu has them")


PROBES: dict[str, Probe] = {
    "GPU": probe_gpu,
    "CUDA build": probe_build,
    "SM shares": probe_sm_shares,
    "peer-to-peer": probe_peers,
    "io_uring": probe_io_uring,
    "kernel": probe_kernel,
    "huge pages": probe_huge_pages,
    "locked memory": probe_locked_memory,
    "VFIO": probe_vfio,
    "NVMe drives": probe_drives,
    "drive access": probe_drive_access,
    "GPU to drive": probe_gpu_drives,
    "drive paths": probe_drive_paths,
    "page size": probe_pages,
    "disk space": probe_disk,
    "package lists": probe_packages,
}


def examine(machine: Machine | None = None) -> list[Row]:
    """One row a probe, in a fixed order."""
    seen = machine or Machine()
    return [_run(what, probe, seen) for what, probe in PROBES.items()]


def _run(what: str, probe: Probe, machine: Machine) -> Row:
    try:
        return probe(machine)
    except Exception as problem:  # a doctor that dies of one symptom is of no use
        return Row(what, "limited", f"could not be determined: {type(problem).__name__}: {problem}", "")


def _version(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: (6, 1) of "6.1.0-18-amd64"."""
    return tuple(int(n) for n in re.findall(r"\d+", text)[:2])

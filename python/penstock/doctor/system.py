"""The kernel, memory, disk space and packages."""

from __future__ import annotations

import re

from penstock.doctor.rows import Row, version_of
from penstock.machine import Machine
from penstock.sizes import format_bytes

# What Penstock's default cache pins on the CUDA executor: frames, rings and bounce buffers, rounded up.
PINNED_BYTES = 64 << 20
# A converted kron:22 with its temporary files.
WORKING_BYTES = 4 << 30
CAP_IPC_LOCK = 14
TRANSPARENT_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
KERNEL_WITH_IO_URING = (5, 11)  # earlier ones lack what liburing 2 expects of a ring


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
    if release and version_of(release) < KERNEL_WITH_IO_URING:
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

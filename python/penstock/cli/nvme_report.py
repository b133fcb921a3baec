"""Drives, what they say of themselves, and how they are, as tables for people."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from penstock.nvme.drives import Drive
from penstock.nvme.topology import short_link
from penstock.sizes import format_bytes

KEPT_USES = 3


def drives_table(drives: list[Drive]) -> Table:
    table = Table(title="NVMe drives", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("address", "id", "model", "driver", "IOMMU group", "link", "socket", "block devices, uses"):
        table.add_column(name, overflow="fold")
    for drive in drives:
        table.add_row(*(escape(cell) for cell in _cells(drive)))
    return table


def _cells(drive: Drive) -> list[str]:
    uses = drive.uses[:KEPT_USES] + (
        [f"and {len(drive.uses) - KEPT_USES} more"] if drive.uses[KEPT_USES:] else []
    )
    others = (
        f"{drive.iommu_group} with {', '.join(drive.group_others)}"
        if drive.group_others
        else drive.iommu_group
    )
    return [
        drive.address,
        f"{drive.vendor:04x}:{drive.device:04x}",
        "\n".join(word for word in (drive.model, drive.serial) if word) or "unknown",
        drive.driver or "none",
        others or "no IOMMU",
        short_link(drive.link).replace(" of ", "\nof ") or "unknown",
        "" if drive.numa_node < 0 else str(drive.numa_node),
        "\n".join([", ".join(drive.block_devices), *uses]).strip() or "none",
    ]


def notes(drives: list[Drive]) -> list[str]:
    """What one should know about them."""
    facts = [
        f"{drive.address}: its link is slower than it could be ({short_link(drive.link)}): try another slot,"
        " and look for lanes that are shared"
        for drive in drives
        if drive.slow_link
    ]
    if any(not drive.iommu_group for drive in drives):
        facts.append(
            "no IOMMU: a drive that Penstock drives here reaches all of the machine's memory, and needs root"
        )
    return facts


def facts_table(facts: dict[str, Any]) -> Table:
    table = _pairs(f"{facts['model']} at {facts['address']}")
    atomic = (
        f"{facts['atomic_write_blocks']:,} blocks, {facts['atomic_power_fail_blocks']:,} when power fails"
    )
    limit = facts["transfer_bytes"]
    pages = format_bytes(facts["least_page_bytes"])
    if facts["most_page_bytes"] != facts["least_page_bytes"]:
        pages += f" to {format_bytes(facts['most_page_bytes'])}"
    for name, value in (
        ("serial", facts["serial"]),
        ("firmware", facts["firmware"]),
        ("NVMe version", facts["version"]),
        ("PCI vendor", f"{facts['vendor']:04x}"),
        ("entries of a queue", f"{facts['queue_entries']:,} at most"),
        ("I/O queue pairs", f"{facts['queues_granted']:,} granted, {facts['queues_asked']:,} asked for"),
        ("ready within", f"{facts['timeout_ms'] / 1000:g} s"),
        ("doorbell stride", format_bytes(facts["doorbell_stride"])),
        ("memory pages", pages),
        ("largest transfer", "no limit" if limit is None else format_bytes(limit)),
        ("written as a whole", atomic),
        (
            "volatile write cache",
            "yes: what is not flushed is lost with the power" if facts["volatile_write_cache"] else "no",
        ),
    ):
        table.add_row(name, escape(value))
    return table


def namespaces_table(namespaces: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("namespace", "size", "bytes", "blocks", "block", "LBA formats (* in use)"):
        table.add_column(name, justify="left" if name.startswith("LBA") else "right", overflow="fold")
    for each in namespaces:
        formats = ", ".join(_format(f) for f in each["formats"])
        protected = " (write protected)" if each["write_protected"] else ""
        table.add_row(
            f"{each['id']}{protected}",
            format_bytes(each["bytes"]),
            f"{each['bytes']:,}",
            f"{each['blocks']:,}",
            str(each["block_bytes"]),
            formats,
        )
    return table


def problems(namespaces: list[dict[str, Any]]) -> list[str]:
    """A line for each namespace that Penstock neither reads nor writes, with the reason and the remedy."""
    return [f"namespace {each['id']}: {each['problem']}" for each in namespaces if each["problem"]]


def _format(facts: dict[str, Any]) -> str:
    metadata = f" + {facts['metadata_bytes']} of metadata" if facts["metadata_bytes"] else ""
    return f"{facts['block_bytes']}{metadata}{'*' if facts['in_use'] else ''}"


def health_table(facts: dict[str, Any]) -> Table:
    table = _pairs(f"Health of {facts['address']}")
    warnings = facts["warnings"]
    table.add_row("critical warnings", f"[red]{escape('; '.join(warnings))}[/]" if warnings else "none")
    spare = f"{facts['available_spare_percent']} % (it warns below {facts['spare_threshold_percent']} %)"
    for name, value in (
        ("temperature", f"{facts['temperature_celsius']} C"),
        ("spare capacity", spare),
        ("used of its life", f"{facts['percentage_used']} %"),
        ("data read", _amount(facts["bytes_read"])),
        ("data written", _amount(facts["bytes_written"])),
        ("host commands", f"{facts['host_reads']:,} reads, {facts['host_writes']:,} writes"),
        ("busy", f"{facts['busy_minutes']:,} minutes"),
        ("powered on", f"{facts['power_on_hours']:,} hours, {facts['power_cycles']:,} times"),
        ("unsafe shutdowns", f"{facts['unsafe_shutdowns']:,}"),
        ("media errors", f"{facts['media_errors']:,}"),
        ("error log", f"{facts['error_log_entries']:,} entries"),
    ):
        table.add_row(name, value)
    return table


def _amount(count: int) -> str:
    return f"{format_bytes(count)} ({count:,} bytes, to the next {512_000:,})"


def _pairs(title: str) -> Table:
    table = Table(title=escape(title), title_justify="left", show_header=False)
    table.add_column(justify="left", style="bold")
    table.add_column(justify="left", overflow="fold")
    return table

"""What a GPU, a link and drives can do together, which of them is the bound, and other hardware instead."""

from __future__ import annotations

import dataclasses
from typing import Any

from penstock.model import laws
from penstock.model.hardware import PACKET_BYTES, Drive, Gpu, Link, link

STACK_US = 10.0
"""What the software adds to a drive's latency (BaM dissertation, 5.5.1: 22 us in all)."""


@dataclasses.dataclass(frozen=True)
class System:
    gpu: Gpu
    link: Link
    drive: Drive
    drives: int
    line_bytes: int = 4096
    element_bytes: int = 8
    stack_us: float = STACK_US


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Random reads of whole lines, no reuse. Bandwidths in GB/s."""

    drives_gb_per_s: float
    link_gb_per_s: float
    """Of data, in packets of 256 bytes."""
    needed: float
    """Lines on their way that the slower of the two needs (the ridge)."""
    by_elements: float
    """Lines on their way where neighbouring threads read neighbouring elements."""
    by_warps: float
    """Where each warp has a line."""
    gb_per_s_by_elements: float
    gb_per_s_by_warps: float
    bound_by_elements: str
    """"drives", "link" or "latency"."""
    bound_by_warps: str
    drives_to_fill_link: float
    least_cache_bytes: int

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def predict(system: System) -> Prediction:
    """Raises ValueError where a size or a number of drives is not positive."""
    _check(system)
    line, latency = system.line_bytes, (system.drive.latency_us + system.stack_us) * 1e-6
    each = system.drive.reads_per_s(line) * line
    of_link = system.link.payload_gb_per_s(min(PACKET_BYTES, line)) * 1e9
    bandwidth = min(each * system.drives, of_link)
    slower = "drives" if each * system.drives <= of_link else "link"
    needed = laws.ridge(line, latency, bandwidth)
    by_elements = laws.lines_by_elements(system.gpu, system.element_bytes, line)
    by_warps = laws.lines_by_warps(system.gpu)
    return Prediction(
        drives_gb_per_s=each * system.drives / 1e9,
        link_gb_per_s=of_link / 1e9,
        needed=needed,
        by_elements=by_elements,
        by_warps=by_warps,
        gb_per_s_by_elements=laws.roofline(by_elements, line, latency, bandwidth) / 1e9,
        gb_per_s_by_warps=laws.roofline(by_warps, line, latency, bandwidth) / 1e9,
        bound_by_elements=slower if by_elements >= needed else "latency",
        bound_by_warps=slower if by_warps >= needed else "latency",
        drives_to_fill_link=of_link / each,
        least_cache_bytes=laws.least_cache_bytes(system.gpu, line),
    )


def alternatives(system: System) -> list[tuple[str, System]]:
    """The system, and the hardware that the BaM dissertation asks for (8.4), one change at a time."""
    return [
        ("as it is", system),
        ("drives of twice the reads", _faster(system, 2)),
        ("drives of four times the reads", _faster(system, 4)),
        ("x16 drives (four times), one instead of four", _faster(_with_drives(system, system.drives / 4), 4)),
        *(
            (part.title, dataclasses.replace(system, link=part))
            for part in map(link, ("gen5x16", "gen6x16", "c2c"))
            if part.gb_per_s > system.link.gb_per_s
        ),
        *(
            (
                f"{part.title} and drives of four times the reads",
                dataclasses.replace(_faster(system, 4), link=part),
            )
            for part in map(link, ("gen6x16", "c2c"))
            if part.gb_per_s > system.link.gb_per_s
        ),
    ]


def _faster(system: System, times: float) -> System:
    part = system.drive
    faster = dataclasses.replace(part, reads_512=part.reads_512 * times, reads_4096=part.reads_4096 * times)
    return dataclasses.replace(system, drive=faster)


def _with_drives(system: System, drives: float) -> System:
    return dataclasses.replace(system, drives=max(1, round(drives)))


def _check(system: System) -> None:
    for name in ("drives", "line_bytes", "element_bytes"):
        if getattr(system, name) < 1:
            raise ValueError(
                f"model: {name.replace('_', ' ')} {getattr(system, name)}: it has to be positive"
            )
    if system.stack_us < 0:
        raise ValueError(f"model: stack {system.stack_us} us: it cannot be negative")
    if system.element_bytes > system.line_bytes:
        raise ValueError(
            f"model: elements of {system.element_bytes} bytes do not fit lines of {system.line_bytes}"
        )

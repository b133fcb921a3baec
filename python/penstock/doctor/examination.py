"""All probes, in their order."""

from __future__ import annotations

from penstock.doctor.drives import (
    probe_drive_access,
    probe_drive_paths,
    probe_drives,
    probe_gpu_drives,
    probe_vfio,
)
from penstock.doctor.gpus import probe_build, probe_gpu, probe_peers, probe_sm_shares
from penstock.doctor.rows import Probe, Row
from penstock.doctor.system import (
    probe_disk,
    probe_huge_pages,
    probe_io_uring,
    probe_kernel,
    probe_locked_memory,
    probe_packages,
    probe_pages,
)
from penstock.machine import Machine

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

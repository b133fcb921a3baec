"""What this machine has for Penstock, and what each missing thing would give.

Nothing here raises, needs root or changes anything; but where there is a GPU, a drive that vfio-pci has is
opened, which resets it, and let go, to see how kernels would reach it.
"""

from __future__ import annotations

from penstock.doctor.drives import KERNELS_RING, STRAIGHT_TO_GPU
from penstock.doctor.examination import PROBES, examine
from penstock.doctor.rows import STATES, Probe, Row, State
from penstock.doctor.system import PINNED_BYTES, TRANSPARENT_HUGE_PAGES

__all__ = [
    "KERNELS_RING",
    "PINNED_BYTES",
    "PROBES",
    "STATES",
    "STRAIGHT_TO_GPU",
    "TRANSPARENT_HUGE_PAGES",
    "Probe",
    "Row",
    "State",
    "examine",
]

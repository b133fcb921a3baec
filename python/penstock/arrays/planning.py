"""What arrays will take, counted before anything is allocated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.arrays.layout import path_text
from penstock.arrays.messages import naming
from penstock.arrays.placement import described
from penstock.arrays.spec import ArrayOptions
from penstock.options import show_options
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Plan:
    """What an array will take, in bytes. transit: rings, and buffers that data on their way pass through; for
    a GPU nearly all of it pinned host memory. mapping: page tables of the GPU for what it reads in place, an
    estimate."""

    placement: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    hbm_bytes: int
    host_bytes: int
    storage_bytes: int
    metadata_bytes: int
    transit_bytes: int
    mapping_bytes: int

    def __str__(self) -> str:
        lines = [f"{self.dtype} {self.shape}, placement {self.placement}, on {self.device}"]
        parts = [
            ("in GPU memory", self.hbm_bytes),
            ("in host memory", self.host_bytes),
            ("left on storage", self.storage_bytes),
            ("directory and records", self.metadata_bytes),
            ("rings and buffers", self.transit_bytes),
            ("page tables of the GPU", self.mapping_bytes),
        ]
        return "\n".join(lines + [f"  {what:<24} {format_bytes(count)}" for what, count in parts if count])


@show_options(ArrayOptions)
def plan(
    path: str | os.PathLike[str],
    **options: Unpack[ArrayOptions],
) -> Plan:
    """Count what `open` with the same arguments will put where, before anything is allocated or converted.

    Args:
        path: and all others, as for `open`.

    Returns:
        The placement and device that `open` would choose, and bytes by where they lie.

    Raises:
        ValueError, TypeError, OSError: those of `open` that can be known without opening.
    """
    from penstock import _native

    where = path_text(path)
    with naming("open", where, str(Path(where).absolute())):
        _, opened = described(where, options)
        counts = _native.plan_rows(
            opened.executor, opened.shape[0], opened.row_bytes, str(opened.path), opened.native_options()
        )
        return Plan(opened.placement, opened.executor.device, opened.shape, opened.dtype.name, **counts)

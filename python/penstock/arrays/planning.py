"""What arrays will take, counted before anything is allocated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.arrays.layout import path_text
from penstock.arrays.messages import naming
from penstock.arrays.placement import described, tiers_of
from penstock.arrays.spec import ArrayOptions
from penstock.arrays.tiers import TIERED
from penstock.model.cost import Cost, cost_of
from penstock.options import checked, show_options
from penstock.sizes import format_bytes
from penstock.volume.names import absolute

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SLOT_BYTES = 4  # of the look-up table of kept rows


@dataclass(frozen=True)
class Plan:
    """What an array will take, in bytes. transit: rings, and buffers that data on their way pass through; for
    a GPU nearly all of it pinned host memory. mapping: page tables of the GPU for what it reads in place, an
    estimate. hit_rate: of placement tiered the share of the reads that the rows which are kept next to the
    kernels are expected to have, which is their share of the scores; None where none are kept, as by the CPU
    of rows in memory. peer_rate: of these, the share of the reads that goes to other processes. data_bytes:
    of the array itself. on_gpu: whether the device is one."""

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
    data_bytes: int
    on_gpu: bool
    hit_rate: float | None = None
    peer_rate: float = 0.0

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
        lines += [f"  {what:<24} {format_bytes(count)}" for what, count in parts if count]
        if self.hit_rate is not None:
            lines.append(f"  {'reads of kept rows':<24} {self.hit_rate:.1%}, by the scores")
        if self.peer_rate:
            lines.append(f"  {'of them from peers':<24} {self.peer_rate:.1%} of the reads")
        return "\n".join(lines)

    def cost(self, drive: str = "p5800x", *, bytes_written_per_s: float = 0.0) -> Cost:
        """What the bytes of the plan cost, beside all data in DRAM or in pooled HBM.

        Args:
            drive: What storage is: "p5800x", "pm1735" or "980pro". Page tables cost nothing.
            bytes_written_per_s: To storage, for drive writes per day.

        Returns:
            Dollars by media; `str` of it has the dates and sources of the prices, too.

        Raises:
            ValueError: A drive without a price, an array without data, a negative rate.
        """
        return cost_of(
            self.data_bytes,
            **self._bytes_by_media(),
            drive=drive,
            bytes_written_per_s=bytes_written_per_s,
        )

    def _bytes_by_media(self) -> dict[str, int]:
        own = self.hbm_bytes + self.metadata_bytes
        host = self.host_bytes + self.transit_bytes
        hbm, dram = (own, host) if self.on_gpu else (0, own + host)
        return {"hbm_bytes": hbm, "dram_bytes": dram, "storage_bytes": self.storage_bytes}


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
    with naming("open", where, absolute(where)):
        found, opened = described(where, options)
        native = opened.native_options()
        if (peers := opened.peers) is not None:  # a plan makes no parts
            native |= {"parts": [-1] * peers.size, "processes": peers.size, "own": peers.rank}
        counts = _native.plan_rows(
            opened.executor, opened.shape[0], opened.row_bytes, str(opened.path), native
        )
        placement = opened.placement
        rates: dict[str, float] = {}
        if options.get("placement") == TIERED:
            tiers = tiers_of(found, checked(ArrayOptions, options))
            placement = f"{TIERED} over {placement}"
        if opened.kept is not None:
            rates = {"hit_rate": tiers.hit_rate, "peer_rate": tiers.peer_rate}
            counts["hbm_bytes" if opened.executor.cuda else "host_bytes"] += tiers.kept * opened.row_bytes
            counts["metadata_bytes"] += _SLOT_BYTES * opened.shape[0]
        return Plan(
            placement,
            opened.executor.device,
            opened.shape,
            opened.dtype.name,
            **counts,
            data_bytes=opened.shape[0] * opened.row_bytes,
            on_gpu=opened.executor.cuda,
            hit_rate=rates.get("hit_rate"),
            peer_rate=rates.get("peer_rate", 0.0),
        )

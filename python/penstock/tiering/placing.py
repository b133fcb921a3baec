"""Tables whose hottest rows lie in GPU memory, and what that will save."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays import Array, from_tensor, open_array
from penstock.arrays.layout import find_layout, path_text
from penstock.arrays.messages import shown
from penstock.arrays.tiers import TIERED, Tiers
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from penstock.arrays import Peers
    from penstock.callbacks import Progress


@dataclass(frozen=True)
class TierPlan:
    """What a tiered table will take, and what its rows in GPU memory are expected to save.

    Attributes:
        rows, kept: Rows of the table, and those in GPU memory.
        hbm_bytes: What these take, with the look-up table of all rows.
        below: Placement of the others.
        below_bytes: Bytes of all rows there.
        hit_rate: Share of the reads that these rows are expected to have, 0 to 1: their share of the scores.
            As good as the scores are: those of "frequency" are counts of reads.
        peer_rate: Of these, the share of the reads that goes to the memory of other GPUs.
        together: Rows in the memory of any of the GPUs.
    """

    rows: int
    kept: int
    hbm_bytes: int
    below: str
    below_bytes: int
    hit_rate: float
    peer_rate: float
    together: int

    def __str__(self) -> str:
        share = self.kept / self.rows if self.rows else 0.0
        with_peers = f", {self.together:,} with peers" if self.together != self.kept else ""
        from_peers = f" ({self.peer_rate:.1%} from peers)" if self.peer_rate else ""
        return (
            f"{self.kept:,} of {self.rows:,} rows ({share:.1%}) in GPU memory{with_peers}, "
            f"{format_bytes(self.hbm_bytes)}: {self.hit_rate:.1%} of the reads expected there{from_peers}; "
            f"{format_bytes(self.below_bytes)} in placement {self.below}"
        )


def plan(
    table: Any,
    scores: Any,
    hot: int | str | float,
    *,
    below: str = "host",
    peers: Peers | None = None,
    replicated: float | None = None,
) -> TierPlan:
    """What `tiered` with the same arguments will keep on a GPU, before anything is allocated. The CPU
    executor keeps rows of storage alone: `penstock.plan` counts for either.

    Args:
        table: A path or a tensor, as for `tiered`.
        scores: Numbers, shape (rows,).
        hot: Bytes, such as "4GiB", or a share of the rows below 1.
        below: Placement of the other rows.
        peers, replicated: As for `tiered`.

    Raises:
        TypeError, ValueError: What cannot be.
    """
    rows, row_bytes = _shape_of(table)
    tiers = Tiers.of(rows, row_bytes, scores, hot, below, peers, replicated)
    return TierPlan(
        rows=rows,
        kept=tiers.kept,
        hbm_bytes=tiers.kept * row_bytes + 4 * rows,
        below=below,
        below_bytes=rows * row_bytes,
        hit_rate=tiers.hit_rate,
        peer_rate=tiers.peer_rate,
        together=tiers.together,
    )


def tiered(
    table: Any,
    scores: Any,
    hot: int | str | float,
    *,
    below: str = "host",
    device: Any = "auto",
    cache: int | str | None = None,
    peers: Peers | None = None,
    replicated: float | None = None,
    progress: Progress | None = None,
) -> Array:
    """Open a table with its rows of the highest scores in GPU memory and the others where they are.

    The rows keep their numbers: a look-up table of 4 bytes a row in GPU memory says where each lies. One
    gather reads all of them. On the CPU the hottest rows are kept in memory before a file's cache. Of a file
    it is the same as `penstock.open(path, placement="tiered", scores=scores, hot=hot, below=below)`.

    Args:
        table: The path of a file, as for `penstock.open`, or a tensor in host memory.
        scores: Numbers, shape (rows,), such as those of `score`.
        hot: How much is kept in GPU memory: bytes, such as "4GiB", or a share of the rows below 1.
        below: Where the others lie: "host", "host-cached" or "storage".
        device, cache: As for `penstock.open`.
        peers: Processes that keep the hot rows together (`Peers`): each keeps as much as `hot` says, and
            reads what the others keep over the link between the GPUs. All call this, with the same table,
            scores and sizes. Where a link is no faster than that to the host, each keeps its rows alone, and
            `opened.notes` says so.
        replicated: With peers: share of what each keeps that all keep, 0 to 1. Unless it is given, what is
            read so much more often than the coldest row that is kept that it pays.
        progress: As for `penstock.open`, while the hot rows are copied.

    Returns:
        An array that is only read; `bytes_by_tier()` says what came from where.

    Raises:
        TypeError, ValueError: What cannot be.
        penstock.Error: No room for the hot rows.

    Source: the zero-copy dissertation, 4.3.
    """
    options = {"device": device, **({} if cache is None else {"cache": cache})}
    if isinstance(table, (str, os.PathLike)):
        return open_array(
            table,
            placement=TIERED,
            scores=scores,
            hot=hot,
            below=below,
            peers=peers,
            replicated=replicated,
            progress=progress,
            **options,
        )
    tiers = Tiers.of(*_shape_of(table), scores, hot, below, peers, replicated)
    array = from_tensor(table, below, writable=False, **options)
    try:
        if tiers.keeps and array.on_gpu:
            array.keep_rows(tiers.rows(), peers=peers, everywhere=tiers.everywhere, progress=progress)
    except BaseException:
        array.close()
        raise
    return array


def _shape_of(table: Any) -> tuple[int, int]:
    """Rows, and bytes of each."""
    if isinstance(table, (str, os.PathLike)):
        found = find_layout(path_text(table))
        return found.shape[0], math.prod(found.shape[1:]) * found.dtype.itemsize
    if is_torch(table) or hasattr(table, "__array__"):
        values: Any = table if is_torch(table) else np.asarray(table)
        each = values.element_size() if is_torch(values) else values.itemsize
        return int(values.shape[0]), math.prod(int(n) for n in values.shape[1:]) * int(each)
    raise TypeError(f"tiered: {shown(table)}: give the path of a table, or a tensor")

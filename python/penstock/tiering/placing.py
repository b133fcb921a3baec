"""Tables whose hottest rows lie in GPU memory, and what that will save."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.arguments import is_torch
from penstock.arrays import Array, from_tensor, open_array
from penstock.arrays.messages import shown
from penstock.sampling.host import on_host
from penstock.sizes import format_bytes, parse_size

if TYPE_CHECKING:
    from penstock.callbacks import Progress

_BELOW = ("host", "host-cached", "storage")


def hottest(scores: Any, count: int) -> NDArray[np.int64]:
    """The rows with the highest scores, the highest first; of equal ones the lower number first.

    Args:
        scores: Numbers, shape (rows,).
        count: How many rows; all if there are fewer.

    Returns:
        int64, shape (count,).
    """
    values = _scores(scores)
    count = min(max(int(count), 0), len(values))
    if count == 0:
        return np.zeros(0, np.int64)
    if count < len(values):
        least = np.partition(values, len(values) - count)[len(values) - count]
        above = np.flatnonzero(values > least)
        equal = np.flatnonzero(values == least)[: count - len(above)]
        chosen = np.concatenate([above, equal])
    else:
        chosen = np.arange(len(values))
    order = np.lexsort((chosen, -values[chosen].astype(np.float64)))
    ranked: NDArray[np.int64] = chosen[order].astype(np.int64)
    return ranked


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
    """

    rows: int
    kept: int
    hbm_bytes: int
    below: str
    below_bytes: int
    hit_rate: float

    def __str__(self) -> str:
        share = self.kept / self.rows if self.rows else 0.0
        return (
            f"{self.kept:,} of {self.rows:,} rows ({share:.1%}) in GPU memory, "
            f"{format_bytes(self.hbm_bytes)}: {self.hit_rate:.1%} of the reads expected there; "
            f"{format_bytes(self.below_bytes)} in placement {self.below}"
        )


def plan(table: Any, scores: Any, hot: int | str | float, *, below: str = "host") -> TierPlan:
    """What `tiered` with the same arguments will keep, before anything is allocated.

    Args:
        table: A path or a tensor, as for `tiered`.
        scores: Numbers, shape (rows,).
        hot: Bytes, such as "4GiB", or a share of the rows below 1.
        below: Placement of the other rows.

    Raises:
        TypeError, ValueError: What cannot be.
    """
    rows, row_bytes = _shape_of(table)
    values = _checked(scores, rows)
    kept = _kept(hot, rows, row_bytes)
    total = float(values.sum())
    chosen = float(values[hottest(values, kept)].sum())
    return TierPlan(
        rows=rows,
        kept=kept,
        hbm_bytes=kept * row_bytes + 4 * rows,
        below=below,
        below_bytes=rows * row_bytes,
        hit_rate=chosen / total if total > 0 else kept / rows if rows else 0.0,
    )


def tiered(
    table: Any,
    scores: Any,
    hot: int | str | float,
    *,
    below: str = "host",
    device: Any = "auto",
    cache: int | str | None = None,
    progress: Progress | None = None,
) -> Array:
    """Open a table with its rows of the highest scores in GPU memory and the others where they are.

    The rows keep their numbers: a look-up table of 4 bytes a row in GPU memory says where each lies. One
    gather reads all of them. On the CPU the hottest rows are kept in memory before a file's cache.

    Args:
        table: The path of a file, as for `penstock.open`, or a tensor in host memory.
        scores: Numbers, shape (rows,), such as those of `score`.
        hot: How much is kept in GPU memory: bytes, such as "4GiB", or a share of the rows below 1.
        below: Where the others lie: "host", "host-cached" or "storage".
        device, cache: As for `penstock.open`.
        progress: As for `penstock.open`, while the hot rows are copied.

    Returns:
        An array that is only read; `bytes_by_tier()` says what came from where.

    Raises:
        TypeError, ValueError: What cannot be.
        penstock.Error: No room for the hot rows.

    Source: the zero-copy dissertation, 4.3.
    """
    if below not in _BELOW:
        raise ValueError(f"tiered: below {shown(below)}: choose {', '.join(_BELOW)}")
    rows, row_bytes = _shape_of(table)
    values = _checked(scores, rows)
    kept = _kept(hot, rows, row_bytes)
    options = {"device": device, **({} if cache is None else {"cache": cache})}
    if isinstance(table, (str, os.PathLike)):
        array = open_array(table, placement=below, **options)
    else:
        array = from_tensor(table, below, writable=False, **options)
    try:
        if kept and (array._cuda or below == "storage"):
            array.keep_rows(hottest(values, kept), progress=progress)
    except BaseException:
        array.close()
        raise
    return array


def _shape_of(table: Any) -> tuple[int, int]:
    """Rows, and bytes of each."""
    if isinstance(table, (str, os.PathLike)):
        from penstock.arrays.layout import find_layout, path_text

        found = find_layout(path_text(table))
        return found.shape[0], math.prod(found.shape[1:]) * found.dtype.itemsize
    if is_torch(table) or hasattr(table, "__array__"):
        values: Any = table if is_torch(table) else np.asarray(table)
        each = values.element_size() if is_torch(values) else values.itemsize
        return int(values.shape[0]), math.prod(int(n) for n in values.shape[1:]) * int(each)
    raise TypeError(f"tiered: {shown(table)}: give the path of a table, or a tensor")


def _kept(hot: Any, rows: int, row_bytes: int) -> int:
    if isinstance(hot, float):
        if not 0 <= hot <= 1:
            raise ValueError(f"tiered: hot {hot}: give a share of the rows from 0 to 1, or bytes")
        return math.floor(hot * rows)
    size = parse_size(hot, "hot")
    return min(size // max(row_bytes, 1), rows)


def _scores(given: Any) -> NDArray[Any]:
    values = on_host(given)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise TypeError(f"tiered: scores: {values.dtype} of shape {values.shape}: give a number for each row")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("tiered: scores: one is no finite number: give a finite one for each row")
    return values


def _checked(scores: Any, rows: int) -> NDArray[Any]:
    values = _scores(scores)
    if len(values) != rows:
        raise ValueError(f"tiered: {len(values)} scores: the table has {rows} rows: give one for each")
    return values

"""Bags of rows: what torch.nn.functional.embedding_bag takes, checked, and reduced as it reduces. Loaded
where torch is.

Torch believes its offsets: those that decrease, begin late or are missing make it read memory that is not its
own, and end the process.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from penstock.arguments import reading
from penstock.arrays.tracing import sees_operators_alone, traces

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = ("sum", "mean", "max")
_FAULTS = (
    "begin at {first}: the first bag begins at 0",
    "decrease: give the position where each bag begins, in order",
    "go beyond the end of the {count} rows: give positions from 0 to {count}",
    "end at {last} of {count} rows: with include_last_offset the last one is the number of rows",
)


def checked_rows(rows: Any, what: str) -> Tensor:
    """Row numbers as modules of torch take them: a tensor of integers. TypeError for others."""
    if not isinstance(rows, Tensor):
        raise TypeError(f"{what}: input of type {type(rows).__name__}: give a tensor of int64 or int32")
    if rows.dtype.is_floating_point or rows.dtype.is_complex or rows.dtype == torch.bool:
        raise TypeError(f"{what}: input of {rows.dtype}: give a tensor of int64 or int32")
    return rows


def _fault_of(offsets: Tensor, count: int, last_is_end: bool) -> Tensor:
    """Which of _FAULTS the offsets have, as booleans on their device. REQUIRES: there is an offset."""
    last = offsets[-1]
    wrong_end = last != count if last_is_end else torch.zeros_like(last, dtype=torch.bool)
    decreases = (offsets[1:] < offsets[:-1]).any()
    return torch.stack([offsets[0] != 0, decreases, last > count, wrong_end])


def _refuse_fault(fault: Tensor, ends: Tensor, count: int, what: str) -> None:
    for has, sentence in zip(fault.tolist(), _FAULTS, strict=True):
        if has:
            first, last = ends.tolist()
            raise ValueError(f"{what}: the offsets " + sentence.format(first=first, last=last, count=count))


def _check_there(offsets: Tensor, count: int, last_is_end: bool, what: str) -> bool:
    """Whether there are bags. ValueError where there must be."""
    if offsets.numel() == 0 and (last_is_end or count != 0):
        raise ValueError(
            f"{what}: there are no offsets, and {count} rows: give the position where each bag begins, from "
            "0 on"
        )
    return bool(offsets.numel())


def safe_offsets(
    offsets: Tensor,
    count: int,
    last_is_end: bool,
    what: str,
    later: Callable[[Callable[[], None]], None] | None = None,
) -> Tensor:
    """Offsets that torch may believe.

    Args:
        offsets: int64 or int32, of one dimension, of `count` rows.
        last_is_end: whether the last one is where the last bag ends.
        what: the operation and its object, for the message.
        later: takes a check that is made once the GPU has the numbers; None: it is waited for here.

    Returns:
        The offsets; where they are wrong, and that is reported later, ones of empty bags.

    Raises:
        ValueError: the first offset is not 0, they decrease, go beyond the rows, or end before them.
    """
    if not _check_there(offsets, count, last_is_end, what):
        return offsets
    fault = _fault_of(offsets, count, last_is_end)
    ends = torch.stack([offsets[0], offsets[-1]])
    if later is None or not offsets.is_cuda:
        _refuse_fault(fault, ends, count, what)
        return offsets
    later(lambda: _refuse_fault(fault, ends, count, what))
    empty = torch.zeros_like(offsets)
    if last_is_end:
        empty[-1] = count
    return torch.where(fault.any(), empty, offsets)


def _checked_offsets(
    rows: Tensor,
    offsets: Any,
    last_is_end: bool,
    device: torch.device,
    what: str,
    later: Callable[[Callable[[], None]], None] | None,
) -> Tensor:
    """For rows of one dimension, on the device of the table."""
    if offsets is None:
        raise ValueError(
            f"{what}: rows of one dimension need offsets, the position where each bag begins: give offsets"
        )
    if not isinstance(offsets, Tensor) or offsets.dtype not in (torch.int64, torch.int32):
        has = offsets.dtype if isinstance(offsets, Tensor) else type(offsets).__name__
        raise TypeError(f"{what}: offsets of {has}: give a tensor of int64 or int32")
    if offsets.ndim != 1:
        raise ValueError(f"{what}: offsets of {offsets.ndim} dimensions: give one")
    _check_device(offsets, "offsets", device, what)
    count = rows.numel()
    if sees_operators_alone():
        checked = torch.ops.penstock.checked_offsets(offsets, count, last_is_end, what)
    else:
        checked = safe_offsets(offsets, count, last_is_end, what, later)
    return checked.to(device, torch.int64)


def _check_device(given: Tensor, name: str, device: torch.device, what: str) -> None:
    if given.device.type != "cpu" and given.device != device:
        places = " or ".join(sorted({"cpu", str(device)}))
        raise ValueError(f"{what}: {name} on {given.device}: give them on {places}")


def _checked_weights(weights: Any, rows: Tensor, mode: str, kind: torch.dtype, what: str) -> Tensor:
    if not isinstance(weights, Tensor):
        raise TypeError(f"{what}: per_sample_weights of type {type(weights).__name__}: give a tensor")
    if mode != "sum":
        raise ValueError(f"{what}: per_sample_weights with mode {mode!r}: they are for mode 'sum'")
    if weights.shape != rows.shape:
        raise ValueError(
            f"{what}: per_sample_weights of shape {tuple(weights.shape)}: give one for each row, of shape "
            f"{tuple(rows.shape)}"
        )
    if weights.dtype != kind:
        raise TypeError(
            f"{what}: per_sample_weights of {weights.dtype}: the table holds {kind}: convert them"
        )
    return weights.reshape(-1)


def _even_offsets(rows: Tensor) -> Tensor:
    """Of bags of one size: rows of two dimensions."""
    if rows.shape[1] == 0:
        return torch.zeros(rows.shape[0], dtype=torch.int64, device=rows.device)
    return torch.arange(0, rows.numel(), rows.shape[1], device=rows.device)


def bags_of(
    gather_rows: Callable[[Tensor], Tensor],
    rows: Any,
    offsets: Any,
    mode: str,
    weights: Any,
    include_last_offset: bool,
    padding: int | None,
    *,
    kind: torch.dtype,
    device: torch.device,
    what: str,
    later: Callable[[Callable[[], None]], None] | None = None,
) -> Tensor:
    """Bags of rows, reduced as torch reduces them: of what was gathered, each row in its place, so that sums
    are made in the same order.

    Args:
        gather_rows: gives the rows with these numbers.
        rows: integers of one dimension, with offsets, or of two, a bag each.
        offsets: where each bag begins in rows of one dimension, from 0 on.
        mode: sum, mean or max.
        weights: floats of `kind` and of the shape of `rows`, with mode sum; or None.
        include_last_offset: whether the last offset is the number of rows, and begins no bag.
        padding: a row from 0 on that counts for nothing.
        kind, device: of what gather_rows gives.
        what: the operation and its object, for messages.
        later: as for `safe_offsets`.

    Raises:
        TypeError: for tensors of other types than these.
        ValueError: for offsets that torch must not believe, for other shapes and devices.
    """
    rows = checked_rows(rows, what)
    if mode not in MODES:
        raise ValueError(f"{what}: mode {mode!r}: choose sum, mean or max")
    if not kind.is_floating_point:
        raise TypeError(f"{what}: the table holds {kind}: bags are of floating-point numbers")
    with nullcontext() if traces(rows) else reading(what, rows, offsets, weights):
        if weights is not None:
            weights = _checked_weights(weights, rows, mode, kind, what)
            _check_device(weights, "per_sample_weights", device, what)
        if rows.ndim == 2:
            if offsets is not None:
                raise ValueError(f"{what}: rows of two dimensions are bags of one size: leave out offsets")
            if include_last_offset:
                raise ValueError(
                    f"{what}: include_last_offset is for rows of one dimension with offsets: give those"
                )
            offsets = _even_offsets(rows).to(device)
        elif rows.ndim != 1:
            raise ValueError(f"{what}: rows of {rows.ndim} dimensions: give one or two")
        else:
            offsets = _checked_offsets(rows, offsets, include_last_offset, device, what, later)
        return _reduced(gather_rows, rows, offsets, mode, weights, include_last_offset, padding)


def _reduced(
    gather_rows: Callable[[Tensor], Tensor],
    rows: Tensor,
    offsets: Tensor,
    mode: str,
    weights: Tensor | None,
    include_last_offset: bool,
    padding: int | None,
) -> Tensor:
    numbers = torch.arange(rows.numel(), device=rows.device)
    if padding is not None:
        # One row more than was asked for, for torch to leave out wherever a number leads to it.
        asked = rows.reshape(-1)
        numbers = numbers.masked_fill(asked == padding, asked.numel())
        rows = torch.cat([asked, asked.new_full((1,), padding)])
    taken = gather_rows(rows).flatten(0, rows.ndim - 1)
    reduced: Tensor = F.embedding_bag(
        numbers.to(taken.device),
        taken,
        offsets,
        mode=mode,
        per_sample_weights=None if weights is None else weights.to(taken.device),
        include_last_offset=include_last_offset,
        padding_idx=None if padding is None else taken.shape[0] - 1,
    )
    return reduced

"""Checks of the arguments of gathers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.foreign import dense
from penstock.arrays.memory import takes_stores
from penstock.arrays.messages import shown
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from penstock.arrays.dtypes import DType
    from penstock.arrays.libraries import Library


def checked_sms(sms: int) -> int:
    count = whole_number(sms)
    if count is None:
        raise TypeError(f"sms {shown(sms)}: give how many multiprocessors it may take, 0 for all")
    if not 0 <= count < 1 << 32:
        raise ValueError(f"sms {shown(sms)}: give how many multiprocessors it may take, 0 for all")
    return count


def checked_out(out: Any, shape: tuple[int, ...], dtype: DType, library: Library) -> Any:
    """ValueError for what the rows cannot be written to."""
    one_of_its_kind = library.empty((0,), dtype)
    if is_torch(out):
        dense(out, "out")
    if hasattr(out, "dtype") and hasattr(out, "shape"):
        name = str(out.dtype).removeprefix("torch.")  # NumPy's has a mark for the other byte order
        if tuple(out.shape) != shape or name not in (dtype.name, dtype.numpy.name):
            raise ValueError(f"out of {name} {tuple(out.shape)}: the rows are {dtype} {shape}")
    mapped = type(out) is np.memmap and type(one_of_its_kind) is np.ndarray
    if type(out) is not type(one_of_its_kind) and not mapped:
        kind = type(one_of_its_kind)
        its_name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        raise ValueError(f"out of type {type(out).__name__}: give a {its_name}, as gather gives it")
    if is_torch(out) and out.requires_grad:
        raise ValueError("out requires gradients, which a gather gives none: give out.detach()")
    flags = getattr(out, "flags", None)
    whole = out.is_contiguous() if is_torch(out) else flags is None or flags.c_contiguous
    if not whole or library.nbytes(out) != math.prod(shape) * dtype.itemsize:
        raise ValueError("out is not contiguous: give a contiguous one")
    if is_torch(out) and out.device != one_of_its_kind.device:
        raise ValueError(f"out on {out.device}: the rows come to {one_of_its_kind.device}")
    if (is_torch(out) or flags is not None) and not takes_stores(out):
        raise ValueError("out is read-only: give one that may be written to, such as a copy of it")
    return out


def check_apart(out: range, others: dict[str, range]) -> None:
    """ValueError where `out` shares bytes with what is read while it is written. Ranges are addresses."""
    for what, there in others.items():
        if max(out.start, there.start) < min(out.stop, there.stop):
            raise ValueError(f"out overlaps {what}: give memory of its own")

"""Files of tables: how they are made, and what a state tells of one."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from penstock.arrays import Array, empty

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_BYTES_AT_ONCE = 64 << 20


def is_open(array: Array) -> bool:
    return array._native is not None


def told_by(state: Any, whose: str) -> tuple[tuple[int, ...], str]:
    """Shape and type of the array that a state refers to. ValueError for what refers to none."""
    names = ("path", "shape", "dtype")
    if not isinstance(state, dict) or not all(name in state for name in names):
        raise ValueError(
            f"the state of an {whose} refers to an array, with a path, a shape and a dtype: this does not"
        )
    if not isinstance(state["path"], str) or not isinstance(state["shape"], (tuple, list)):
        raise ValueError(
            f"the state of an {whose} has a path and a shape: {state!r} has others in their place"
        )
    return tuple(state["shape"]), str(state["dtype"])


def make_table(
    path: Path,
    shape: tuple[int, ...],
    dtype: Any,
    how: dict[str, Any],
    rows_from: Callable[[int, int, torch.device], Tensor],
) -> None:
    """A .npy file of rows_from(first, count, device), for a few rows at a time. how: as for `penstock.empty`.

    Under a name of its own until it is whole: half a table would be opened as one the next time.

    Errors: FileExistsError for a path that is taken, were it meanwhile.
    """
    draft = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.draft.npy")
    try:
        with empty(draft, shape, dtype, **how) as made:
            at_once = max(1, _BYTES_AT_ONCE // (shape[1] * made.dtype.itemsize))
            where, kind = made.torch_device, getattr(torch, made.dtype.name)
            for first in range(0, shape[0], at_once):
                count = min(at_once, shape[0] - first)
                rows = torch.arange(first, first + count, device=where)
                made.scatter(rows, rows_from(first, count, where).to(kind))
        _name_finally(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _name_finally(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)  # unlike rename it takes no name that another process has taken meanwhile
    except FileExistsError:
        raise FileExistsError(f"{path} was made by somebody else meanwhile: open that one") from None
    except OSError:  # a file system without hard links
        draft.rename(path)

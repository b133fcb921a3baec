"""Adding to rows whose numbers are not aligned to their size, as they may lie in a raw file: there no atomic
takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch

if TYPE_CHECKING:
    from penstock.arrays.array import Array

_SIGNED = {"uint32": "int32", "uint64": "int64"}  # torch adds those: the bits of the sum are the same


def add_by_copies(array: Array, rows: Any, values: Any, **how: Any) -> int | None:
    """Adds `values[k]` to row `rows[k]`: each row is read once, added to in the order of the list, and stored
    once.

    rows, values: of the array's library, values of shape `rows.shape + row_shape`. The lowest position out of
    range; the other rows are done. how: stream and sms of the copies.
    REQUIRES: nothing else stores into these rows meanwhile.
    """
    return (_add_tensors if is_torch(rows) else _add_host_arrays)(array, rows, values, how)


def _add_tensors(array: Array, rows: Any, values: Any, how: dict[str, Any]) -> int | None:
    import torch

    rows, count = rows.reshape(-1).to(torch.int64), len(array)
    there = (rows >= -count) & (rows < count)
    each, place = torch.unique(rows[there].remainder(count), return_inverse=True)
    kind = getattr(torch, _SIGNED.get(array.dtype.name, array.dtype.name))
    sums = array.gather(each, **how)
    sums.view(kind).index_add_(0, place, values.reshape(-1, *array.row_shape).view(kind)[there])
    array.scatter(each, sums, **how)
    return None if bool(there.all()) else int((~there).nonzero()[0])


def _add_host_arrays(array: Array, rows: Any, values: Any, how: dict[str, Any]) -> int | None:
    rows, values = _on_host(rows).reshape(-1), _on_host(values).reshape(-1, *array.row_shape)
    count = len(array)
    there = (rows >= -count) & (rows < count)
    each, place = np.unique(rows[there] % count, return_inverse=True)
    sums = _on_host(array.gather(each, **how))
    np.add.at(sums, place.reshape(-1), values[there])
    array.scatter(each, sums, **how)
    return None if there.all() else int(np.flatnonzero(~there)[0])


def _on_host(given: Any) -> np.ndarray[Any, Any]:
    return given if isinstance(given, np.ndarray) else np.asarray(given.numpy())

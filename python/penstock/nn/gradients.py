"""What is to be added to rows of a table: parts, joined and summed."""

from __future__ import annotations

import torch
from torch import Tensor


def joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Parts of what is to be added to rows, as one."""
    if len(parts) == 1:
        return parts[0]
    return torch.cat([rows for rows, _ in parts]), torch.cat([values for _, values in parts])


def summed(rows: Tensor, values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Of what is to be added to rows, of `count`: these ascending, each once, and the sums."""
    if not values.is_cuda:
        size = (count, values.shape[1])
        sums = torch.sparse_coo_tensor(rows[None], values, size, check_invariants=False).coalesce()
        return sums.indices()[0], sums.values()
    # Where coalesce takes ten times as long: it gives a row that was asked for very often to one warp.
    each, place = torch.unique(rows, return_inverse=True)
    return each, torch.ops.aten.embedding_dense_backward(values, place, len(each), -1, False)

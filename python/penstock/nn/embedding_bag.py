"""Bags of rows of a table."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from penstock.arrays import Array
from penstock.arrays.bags import MODES, bags_of
from penstock.arrays.tracing import is_symbol, traces
from penstock.nn import table_files
from penstock.nn.embedding import Embedding, shape_of


class EmbeddingBag(Embedding):
    """`torch.nn.EmbeddingBag` over a `penstock.Array`: see `Embedding` for the table.

    Args:
        mode: "sum", "mean" or "max".
        include_last_offset: offsets have one more, where the last bag ends: the number of rows.

    Input: rows (n) with offsets (bags), or rows (bags, n); per_sample_weights of the shape of the rows and
    the table's dtype, with mode "sum". Output: (bags, embedding_dim), summed in the order of the rows as
    torch does.

    Raises:
        TypeError, ValueError: for offsets that do not begin at 0, decrease, or go beyond the rows, and for
            tensors of other types and shapes. On a GPU the optimizer's step, or another call that takes the
            gradients, raises for offsets that lie there, as for rows out of range.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        **table: Any,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"EmbeddingBag: mode {mode!r}: choose sum, mean or max")
        super().__init__(num_embeddings, embedding_dim, padding_idx, **table)
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        array: Array,
        freeze: bool = True,
        padding_idx: int | None = None,
        mode: str = "mean",
        include_last_offset: bool = False,
    ) -> EmbeddingBag:
        """Over an array that is there: of floats, of two dimensions; writable unless frozen."""
        rows, width = shape_of(array)
        return cls(rows, width, mode, include_last_offset, padding_idx, array=array, freeze=freeze)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Bags of the rows with these numbers, of shape (bags, embedding_dim)."""
        if is_symbol(input):
            return self._leaf(input, offsets, per_sample_weights)
        reported_later = torch.is_grad_enabled() and self._anchor.requires_grad and not traces(input)
        return bags_of(
            self._rows,
            input,
            offsets,
            self.mode,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
            kind=getattr(torch, self._array.dtype.name),
            device=self._array.device,
            what=self._what,
            later=self._checks.append if reported_later else None,
        )

    def to_torch(self) -> nn.Module:
        """A copy in memory: a torch.nn.EmbeddingBag on the CPU; see `Embedding.to_torch`."""
        made = nn.EmbeddingBag(
            self.num_embeddings,
            self.embedding_dim,
            mode=self.mode,
            sparse=self.mode != "max",  # which torch has no sparse gradients of
            _weight=table_files.read_table(self._array),
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )
        made.weight.requires_grad_(not self.freeze)
        return made

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"

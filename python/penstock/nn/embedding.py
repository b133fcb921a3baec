"""Embeddings whose tables lie where there is room for them: in host memory, in a file, on a drive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from penstock.arrays import Array, from_reference, open_array
from penstock.arrays import operators as ops
from penstock.arrays.dtypes import DType, dtype_named
from penstock.arrays.functions import bags_of, checked_padding
from penstock.arrays.layout import find_layout
from penstock.arrays.untraced import leave_untraced
from penstock.nn.tables import is_open, make_table, told_by


class _Rows(torch.autograd.Function):
    """What `ops.embedding` does, for calls that nobody traces: an operator costs each way a tenth of a
    millisecond of the host's time. What is wrong with the rows is told by whoever asks for the gradients."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, rows: Tensor, table: Embedding) -> Tensor:
        ctx.table = table
        ctx.save_for_backward(anchor, rows)
        taken: Tensor = table.array.gather(rows, from_end=False, wait=False)
        return taken

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        anchor, rows = ctx.saved_tensors
        ctx.table.keep_gradient(rows, gradient, owned=True)
        return torch.zeros_like(anchor), None, None


class Embedding(nn.Module):
    """`torch.nn.Embedding` over a `penstock.Array`: rows are gathered, and what an optimizer of
    `penstock.optim` changes is stored through the same cache.

    num_embeddings, embedding_dim: the shape of the table. path: its .npy file, made and drawn from N(0, 1)
    where there is none yet; array: instead of a path, a writable one of floats with two dimensions.
    padding_idx: the row that gets no gradient, and is zero in a new table. freeze: rows get no gradients.
    placement, device, cache, line: as for `penstock.open`.

    Input: integers of any shape, from 0 on, on the CPU or the GPU. Output: their shape, then embedding_dim;
    on the array's device. The weight is no parameter: `parameters()` has nothing of it, and neither has the
    `zero_grad()` of a model that the table is part of. `gradient()` gives what the backward passes left since
    the `zero_grad()` of the table, or of its optimizer.

    A state_dict holds the table by reference, its path and placement, never its bytes: saving flushes the
    table. Loading one keeps the table that the module has open, wherever that lies by now, if its shape and
    type are those of the state, and opens the path of the state where the module's own was closed.

    Errors: ValueError for a file, or a state, of another shape or type, or a state for a table that was drawn
    just now; IndexError as `Array.gather`, also for negative rows.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        array: Array | None = None,
        freeze: bool = False,
        dtype: Any = torch.float32,
        placement: str = "storage",
        device: str = "auto",
        cache: int | str | None = None,
        line: int | str = 4096,
    ) -> None:
        super().__init__()
        if (path is None) == (array is None):
            raise ValueError("an embedding takes a path or an array, and not both")
        shape = (num_embeddings, embedding_dim)
        self.num_embeddings, self.embedding_dim, self.freeze = num_embeddings, embedding_dim, freeze
        self.padding_idx = checked_padding(padding_idx, num_embeddings)
        self._drawn = False
        _check_kind(dtype_named(dtype) if array is None else array.dtype)
        self._how: dict[str, Any] = {"placement": placement, "device": device, "cache": cache, "line": line}
        if array is None:
            array = self._opened(Path(os.fspath(path)), shape, dtype) if path is not None else None
        assert array is not None
        self._take(array, shape)
        self._name = ops.name_table(self)
        self._anchor = torch.zeros(1, requires_grad=not freeze)
        self._kept: list[tuple[Tensor, Tensor]] = []

    @classmethod
    def from_pretrained(cls, array: Array, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """Over an array that is there: of two dimensions, of floats; writable unless frozen."""
        rows, width = _shape_of(array)
        return cls(rows, width, padding_idx, array=array, freeze=freeze)

    @property
    def array(self) -> Array:
        """The table."""
        return self._array

    def forward(self, rows: Tensor) -> Tensor:
        taken: Tensor
        if _is_traced(rows):
            taken = ops.embedding(self._anchor, rows, self._name)
        elif self._anchor.requires_grad and torch.is_grad_enabled():
            taken = _Rows.apply(self._anchor, rows, self)
        else:
            taken = self._array.gather(rows, from_end=False)
        return taken

    def prefetch(self, rows: Tensor) -> None:
        """Brings the rows of a later batch into the cache, while this one is worked on: as
        `Array.prefetch(rows, wait=False)`."""
        self._array.prefetch(rows, wait=False)

    @property
    def anchor(self) -> Tensor:
        """A tensor of one number that autograd knows the table by, and stands for it where torch wants a
        parameter. It never changes, and its gradient tells nothing."""
        return self._anchor

    @property
    def has_gradient(self) -> bool:
        """Whether a backward pass has left one."""
        return bool(self._kept)

    def keep_gradient(self, rows: Tensor, gradient: Tensor, owned: bool = False) -> None:
        """What the backward pass calls: rows of any shape, gradient of that shape and embedding_dim. Keeps
        copies: the next batch may come in the memory of these rows, and a compiled pass puts something else
        into that of its gradient. owned: by autograd alone, which leaves it as it is: none is made."""
        kept = gradient.detach().reshape(-1, self.embedding_dim)
        self._kept.append((rows.detach().reshape(-1).clone(), kept if owned else kept.clone()))

    def parts(self) -> tuple[Tensor, Tensor] | None:
        """The rows that have a gradient, as often as they were asked for, and what each time adds to it
        (n, embedding_dim); None before a backward pass."""
        if not self._kept:
            return None
        self._array.check_calls()  # what was gathered wrong gives no gradient
        rows, values = joined([(rows.to(values.device, torch.int64), values) for rows, values in self._kept])
        if self.padding_idx is not None:
            kept = rows != self.padding_idx
            rows, values = rows[kept], values[kept]
        return rows, values

    def changes(self) -> tuple[Tensor, Tensor] | None:
        """The rows that have a gradient, ascending, each once, and their gradients (n, embedding_dim); None
        before a backward pass."""
        parts = self.parts()
        if parts is None:
            return None
        return summed(*parts, self.num_embeddings)

    def gradient(self) -> Tensor | None:
        """A coalesced sparse tensor of the table's shape, as weight.grad of torch.nn.Embedding(sparse=True);
        None before a backward pass."""
        changes = self.changes()
        if changes is None:
            return None
        rows, values = changes
        size = (self.num_embeddings, self.embedding_dim)
        return torch.sparse_coo_tensor(rows[None], values, size, is_coalesced=True, check_invariants=False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        self._kept.clear()

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._name = ops.name_table(self)  # a copy is another table to the operators

    def get_extra_state(self) -> dict[str, Any]:
        if self._array.path is None:
            raise ValueError(f"{self._array!r}: a table in memory has no path to refer to: save it to a file")
        self._array.flush()
        return self._array.opened.reference()

    def set_extra_state(self, state: Any) -> None:
        dtype, shape = self._array.dtype, (self.num_embeddings, self.embedding_dim)
        told = told_by(state, "embedding")
        if told != (shape, dtype.name):
            raise ValueError(
                f"the state is of a table of {told[1]} {told[0]} at {state['path']}, this embedding is of "
                f"{dtype} {shape}: give it the state of such a table"
            )
        if is_open(self._array):
            self._check_is_meant(state["path"])
            return
        there = from_reference(state, device=self._array.opened.device, writable=not self.freeze)
        try:
            self._take(there, shape)
        except BaseException:
            there.close()
            raise

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}, {self._array!r}"

    def _take(self, array: Array, shape: tuple[int, int]) -> None:
        if array.shape != shape:
            raise ValueError(f"{array!r}: the embedding has shape {shape}")
        if not (self.freeze or array.writable):
            raise ValueError(
                f"{array!r}: it is read-only, and cannot be trained: open it as writable, or freeze=True"
            )
        self._array = array

    def _check_is_meant(self, path: str) -> None:
        """A state holds no numbers: those of the table that is open must be the ones that it tells of."""
        own = self._array.path
        if own is None:
            raise ValueError(
                f"the state refers to the table at {path}, and this embedding has one in memory: make it "
                "over that file"
            )
        if self._drawn and own != path:
            raise ValueError(
                f"the state refers to the table at {path}, and {own} was drawn anew: make the embedding with "
                "the path where the table lies"
            )

    def _opened(self, path: Path, shape: tuple[int, int], dtype: Any) -> Array:
        if not path.exists():
            self._draw(path, shape, dtype)
            self._drawn = True
        kind, found = dtype_named(dtype), find_layout(path).dtype
        if found.name not in (kind.name, kind.numpy.name):  # a .npy file has bfloat16 as uint16
            raise ValueError(f"{path} holds {found}: the embedding is of {kind}")
        return open_array(path, writable=not self.freeze, dtype=dtype, **self._how)

    def _draw(self, path: Path, shape: tuple[int, int], dtype: Any) -> None:
        def drawn(first: int, count: int, where: torch.device) -> Tensor:
            rows = torch.randn((count, shape[1]), device=where)
            if self.padding_idx is not None and first <= self.padding_idx < first + count:
                rows[self.padding_idx - first] = 0
            return rows

        make_table(path, shape, dtype, self._how, drawn)


leave_untraced(Embedding, "parts", "changes", "gradient")


class EmbeddingBag(Embedding):
    """`torch.nn.EmbeddingBag` over a `penstock.Array`: see `Embedding` for the table.

    mode: "sum", "mean" or "max". include_last_offset: offsets have one more, where the last bag ends.

    Input: rows (n) with offsets (bags), or rows (bags, n); per_sample_weights as rows, with mode "sum".
    Output: (bags, embedding_dim), summed in the order of the rows as torch does.
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
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"mode {mode!r}: choose sum, mean or max")
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
        rows, width = _shape_of(array)
        return cls(rows, width, mode, include_last_offset, padding_idx, array=array, freeze=freeze)

    def forward(
        self, rows: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return bags_of(
            super().forward,
            rows,
            offsets,
            self.mode,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"


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


def _is_traced(rows: Tensor) -> bool:
    transformed: bool = torch._C._are_functorch_transforms_active()
    return transformed or torch.compiler.is_compiling() or type(rows) is not Tensor


def _shape_of(array: Array) -> tuple[int, int]:
    if not isinstance(array, Array):
        raise TypeError(
            f"a table is a penstock.Array, not a {type(array).__name__}: see penstock.from_tensor"
        )
    if len(array.shape) != 2:
        raise ValueError(f"{array!r}: a table has two dimensions")
    return array.shape[0], array.shape[1]


def _check_kind(dtype: DType) -> None:
    if not getattr(torch, dtype.name).is_floating_point:
        raise ValueError(f"a table of {dtype}: it holds floating-point numbers")

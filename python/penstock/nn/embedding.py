"""Embeddings whose tables lie where there is room for them: in host memory, in a file, on a drive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from penstock.arguments import is_foreign, reading
from penstock.arrays import Array
from penstock.arrays import operators as ops
from penstock.arrays.bags import checked_rows
from penstock.arrays.foreign import dense
from penstock.arrays.functions import checked_padding
from penstock.arrays.tracing import is_symbol, traces
from penstock.arrays.untraced import leave_untraced
from penstock.nn import table_files
from penstock.nn.gradients import joined, summed
from penstock.nn.table_files import name_of
from penstock.nn.table_module import TableModule


class _Rows(torch.autograd.Function):
    """What `ops.embedding` does, for calls that nobody traces: an operator costs each way a tenth of a
    millisecond of the host's time. What is wrong with the rows is raised where the gradients are taken."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, rows: Tensor, table: Embedding) -> Tensor:
        ctx.table = table
        ctx.save_for_backward(anchor, rows)
        taken: Tensor = table.array.gather(rows, negative_indices=False, wait=False)
        return taken

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        anchor, rows = ctx.saved_tensors
        ctx.table.keep_gradient(rows, gradient, owned=True)
        return torch.zeros_like(anchor), None, None


class Embedding(TableModule):
    """`torch.nn.Embedding` over a `penstock.Array`: rows are gathered, and what an optimizer of
    `penstock.optim` changes is stored through the same cache.

    Args:
        num_embeddings, embedding_dim: the shape of the table.
        padding_idx: the row that gets no gradient, and is zero in a new table.
        path: its .npy file, made and drawn from N(0, 1) where there is none yet, or another file that
            `penstock.open` opens by its path alone.
        array: instead of a path, an array of two dimensions; of floats and writable unless frozen.
        freeze: rows get no gradients. A frozen table may hold integers.
        dtype: of a new table; an old one holds it.
        placement, device, cache, line: as for `penstock.open`.

    Input: integers of any shape, from 0 on, on the CPU or the GPU. Output: their shape, then embedding_dim;
    on the array's device. The weight is no parameter: `parameters()` has nothing of it, and neither has the
    `zero_grad()` of a model that the table is part of. `gradient()` gives what the backward passes left since
    the `zero_grad()` of the table, or of its optimizer.

    A state_dict holds the table by reference, its path, placement and generation, never its bytes: saving
    flushes the table. Loading one keeps the table that the module has open, wherever that lies by now, if its
    shape and type are those of the state and it has not changed since, and opens the path of the state where
    the module's own was closed. A state_dict of torch.nn.Embedding, which has a weight, is stored in the
    table.

    `copy.deepcopy` opens the file of a frozen table once more, and copies a table in memory. It raises
    ValueError for a table in a file that is trained, which has one writer, unless `penstock.nn.copies_in`
    says where copies go.

    Raises:
        ValueError: a file, or a state, of another shape or type; a state of an older or another table, or for
            one that was drawn just now.
        IndexError: as `Array.gather`, also for negative rows.
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
        line: int | str | None = None,
    ) -> None:
        super().__init__()
        what = f"{type(self).__name__} over {path if array is None else name_of(_checked_array(array))}"
        if (path is None) == (array is None):
            raise ValueError(f"{type(self).__name__}: a table is in a path or an array: give one of them")
        rows = table_files.checked_count(num_embeddings, "num_embeddings", what, least=0)
        shape = (rows, table_files.checked_count(embedding_dim, "embedding_dim", what))
        self.embedding_dim, self.freeze = shape[1], bool(freeze)
        self._drawn = False
        how: dict[str, Any] = {"placement": placement, "device": device, "cache": cache, "line": line}
        with table_files.said_of(what, path):
            self.padding_idx = checked_padding(padding_idx, rows)
            if array is None:
                array = self._opened(Path(os.fsdecode(path)), shape, dtype, how)  # type: ignore[arg-type]
        try:
            self._take(array, shape)
        except BaseException:
            if path is not None:
                array.close()
            raise
        self._begin()

    @classmethod
    def from_pretrained(cls, array: Array, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """Over an array that is there: of two dimensions; of floats and writable unless frozen."""
        rows, width = shape_of(array)
        return cls(rows, width, padding_idx, array=array, freeze=freeze)

    @property
    def array(self) -> Array:
        """The table."""
        return self._array

    @property
    def num_embeddings(self) -> int:
        """Rows of the table, which `append_rows` adds to."""
        return self._array.shape[0]

    def forward(self, input: Tensor) -> Tensor:
        """The rows with these numbers, of shape `input.shape + (embedding_dim,)`."""
        return self._leaf(input) if is_symbol(input) else self._rows(checked_rows(input, self._what))

    def _rows(self, rows: Tensor) -> Tensor:
        taken: Tensor
        if not (self._anchor.requires_grad and torch.is_grad_enabled()):
            taken = self._array.gather(rows, negative_indices=False)
        elif traces(rows):
            self._check_recorder()
            taken = ops.embedding(self._anchor, rows, self._name)
        else:
            taken = _Rows.apply(self._anchor, rows, self)
        return taken

    def _check_recorder(self) -> None:
        """The anchor is a constant to torch.jit.trace, which takes none that needs a gradient."""
        if not torch.compiler.is_compiling() and torch._C._get_tracing_state() is not None:
            raise ValueError(
                f"torch.jit.trace of {self._what}: what it records does not train a table: trace it under "
                "torch.no_grad(), or train with torch.compile"
            )

    def _leaf(self, *given: Any) -> Any:
        """For torch.fx.symbolic_trace: a node that calls this module, as there is for modules of torch.nn."""
        tracer = given[0].tracer
        path = tracer.path_of_module(self)
        if not path and len(given) == 1:
            return ops.embedding(self._anchor, given[0], self._name)
        if not path:
            raise ValueError(
                f"torch.fx.symbolic_trace of {self._what}: it is one node of a graph: trace a module that "
                "holds it"
            )
        return tracer.create_proxy("call_module", path, given, {})

    def prefetch(self, rows: Tensor) -> None:
        """Brings the rows of a later batch into the cache, while this one is worked on: as
        `Array.prefetch(rows, wait=False)`."""
        self._array.prefetch(rows, wait=False)

    # Gradients

    @property
    def anchor(self) -> Tensor:
        """A tensor of one number that autograd knows the table by, and stands for it where torch wants a
        parameter. It never changes, and its gradient says nothing."""
        return self._anchor

    @property
    def has_gradient(self) -> bool:
        """Whether a backward pass has left one."""
        return bool(self._kept)

    def keep_gradient(self, rows: Tensor, gradient: Tensor, owned: bool = False) -> None:
        """What the backward pass calls: rows of any shape, gradient of that shape and embedding_dim. Keeps
        copies: the next batch may come in the memory of these rows, and a compiled pass puts something else
        into that of its gradient. owned: by autograd alone, which leaves it as it is: none is made where
        torch allocated it; the caller of a backward pass may give memory that maps a file."""
        with reading(f"keep the gradient of {self._what}", rows, gradient):
            kept = gradient.detach().reshape(-1, self.embedding_dim)
            if not owned or is_foreign(kept):
                kept = kept.clone()
            self._kept.append((rows.detach().reshape(-1).clone(), kept))

    def scale_gradient(self, by: Tensor) -> None:
        """Multiplies the gradient by a tensor of one number. What backward passes were given stays."""
        scaled = [(rows, values * by.to(values.device, values.dtype)) for rows, values in self._kept]
        self._kept[:] = scaled

    def check_errors(self) -> None:
        """Waits for the forward passes, and raises what was wrong with their rows and offsets: what was
        gathered wrong gives no gradient."""
        self._array.check_errors()
        while self._checks:
            self._checks.pop(0)()

    def parts(self) -> tuple[Tensor, Tensor] | None:
        """The rows that have a gradient, as often as they were asked for, and what each time adds to it
        (n, embedding_dim); None before a backward pass."""
        if not self._kept:
            return None
        self.check_errors()
        rows, values = joined([(rows.to(values.device, torch.int64), values) for rows, values in self._kept])
        if self.padding_idx is not None:
            kept = rows != self.padding_idx
            rows, values = rows[kept], values[kept]
        return rows, values

    def changes(self) -> tuple[Tensor, Tensor] | None:
        """The rows that have a gradient, ascending, each once, and theirs; None before a backward pass."""
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

    # All of it

    def to_torch(self) -> nn.Module:
        """A copy in memory: a torch.nn.Embedding on the CPU, with this table's numbers, padding and freeze.
        Its state_dict is what programs without Penstock load. MemoryError where there is no room for it."""
        return nn.Embedding(
            self.num_embeddings,
            self.embedding_dim,
            padding_idx=self.padding_idx,
            sparse=True,
            _weight=table_files.read_table(self._array),
            _freeze=self.freeze,
        )

    def load_weight(self, weight: Tensor) -> None:
        """Stores a whole weight, as that of torch.nn.Embedding, in the table, a part at a time.

        Args:
            weight: of shape (num_embeddings, embedding_dim), on any device, or a memory-mapped one of
                `torch.load(mmap=True)`; converted to the table's type, within floats and within integers.

        Raises:
            TypeError: no tensor, or integers for floats and the reverse.
            ValueError: another shape, or a table that is read-only.
        """
        what = f"load a weight into {name_of(self._array)}"
        if not isinstance(weight, Tensor):
            raise TypeError(f"{what}: a {type(weight).__name__}: give a tensor")
        dense(weight, f"{what}: the weight")
        if tuple(weight.shape) != self._array.shape:
            raise ValueError(
                f"{what}: a weight of shape {tuple(weight.shape)}: the table has {self._array.shape}"
            )
        kind = getattr(torch, self._array.dtype.name)
        alike = weight.is_floating_point() == kind.is_floating_point and not weight.dtype.is_complex
        if not alike:
            raise TypeError(f"{what}: a weight of {weight.dtype}: the table holds {kind}: convert it first")
        if not self._array.writable:
            raise ValueError(f"{what}: it was opened read-only: make the embedding with freeze=False")
        table_files.store_table(self._array, weight)
        self._drawn = False

    def append_rows(self, values: Tensor | int) -> None:
        """Adds rows at the end of a table in a .npy file, which grows in place. Other modules over the same
        array have them, too, and what an optimizer keeps of them begins as it began for the others; arrays
        that were opened elsewhere keep the rows that they had.

        Args:
            values: a tensor of shape (n, embedding_dim), or a number of rows to be drawn from N(0, 1).

        Raises:
            TypeError: values of another kind of type. ValueError: another shape, or a table that is frozen,
            in memory, or in a file of another format.
        """
        what = f"append rows to {name_of(self._array)}"
        if self.freeze:
            raise ValueError(f"{what}: it is frozen: make the embedding with freeze=False")
        if not isinstance(values, Tensor):
            kind = getattr(torch, self._array.dtype.name)
            count = table_files.checked_count(values, "rows", what)
            table_files.append_rows(self._array, count, lambda _, n, where: self._draw(n, kind, where))
            return
        if not values.is_floating_point():
            raise TypeError(
                f"{what}: rows of {values.dtype}: the table holds {self._array.dtype}: convert them"
            )
        if values.ndim != 2 or values.shape[1] != self.embedding_dim:
            raise ValueError(
                f"{what}: rows of shape {tuple(values.shape)}: give (n, {self.embedding_dim}), as the table "
                "has"
            )
        with reading(what, values):
            table_files.append_rows(self._array, len(values), lambda first, n, _: values[first : first + n])

    def _draw(self, count: int, kind: torch.dtype, where: torch.device) -> Tensor:
        return table_files.draw(count, self.embedding_dim, kind, where)

    # States

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """A state of torch.nn.Embedding has a weight in the place of a reference."""
        weight, own = f"{prefix}weight", f"{prefix}_extra_state"
        if weight not in state_dict or own in state_dict:
            super()._load_from_state_dict(state_dict, prefix, *others)
            return
        _, _, missing, _, errors = others
        try:
            self.load_weight(state_dict[weight])
        except (TypeError, ValueError) as problem:
            errors.append(f"{weight}: {problem}")
        rest = {key: value for key, value in state_dict.items() if key != weight}
        super()._load_from_state_dict(rest, prefix, *others)
        if own in missing:
            missing.remove(own)

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            raise AttributeError(
                f"a {type(self).__name__} of penstock.nn has no weight: its numbers are table.array, and "
                "table.to_torch().weight is a copy of them"
            )
        return super().__getattr__(name)

    def __prepare_scriptable__(self) -> Any:
        raise TypeError(
            f"torch.jit.script of {self._what}: TorchScript has no tables: use torch.compile, torch.export, "
            "or "
            "torch.jit.trace under torch.no_grad()"
        )

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}, {self._array!r}"


leave_untraced(
    Embedding, "parts", "changes", "gradient", "load_weight", "append_rows", "to_torch", "scale_gradient"
)


def _checked_array(array: Any) -> Array:
    if not isinstance(array, Array):
        raise TypeError(
            f"a table is a penstock.Array, not a {type(array).__name__}: see penstock.from_tensor"
        )
    return array


def shape_of(array: Any) -> tuple[int, int]:
    if len(_checked_array(array).shape) != 2:
        raise ValueError(f"{array!r}: a table has two dimensions: give an array of two")
    return array.shape[0], array.shape[1]

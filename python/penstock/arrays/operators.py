"""What torch needs to know of arrays: operators that `torch.compile` traces, and functions of torch that
take an array for a weight. Loaded where torch is."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.arrays.array import Array


class Trained(Protocol):
    """What keeps the gradients of a table."""

    @property
    def array(self) -> Array: ...
    def keep_gradient(self, rows: Tensor, gradient: Tensor) -> None: ...


_Kept = TypeVar("_Kept")
_NUMBERS = itertools.count(1)
# Makes tensors of which a compiler knows that no two are one: of empty ones it did not in torch 2.4.
_RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
_OWN: Callable[[int], Tensor] = torch.empty if _RELEASE >= (2, 13) else torch.rand
_ARRAYS: weakref.WeakValueDictionary[str, Array] = weakref.WeakValueDictionary()
_TABLES: weakref.WeakValueDictionary[str, Trained] = weakref.WeakValueDictionary()


def _name(kind: str, array: Array) -> str:
    """What operators know an array or a table by. A word: a compiler takes numbers for sizes, which vary. It
    tells what the operator gives: compiled graphs are kept on disk by their text, for other processes,
    too, which count from one again."""
    shape = "x".join(map(str, array.shape))
    return f"{kind}-{next(_NUMBERS)}-{array.dtype.name}-{shape}-{array.torch_device}"


def name_array(array: Array) -> str:
    name = _name("array", array)
    _ARRAYS[name] = array
    return name


def name_table(table: Trained) -> str:
    name = _name("table", table.array)
    _TABLES[name] = table
    return name


def _named(kept: weakref.WeakValueDictionary[str, _Kept], name: str) -> _Kept:
    found = kept.get(name)
    if found is None:
        raise ValueError(f"penstock: {name} of a compiled function is gone: keep it as long as the function")
    return found


def _fake_rows(array: Array, rows: Tensor) -> Tensor:
    kind = getattr(torch, array.dtype.name)
    return torch.empty((*rows.shape, *array.row_shape), dtype=kind, device=array.torch_device)


# Schemas are written out: torch 2.4 cannot read annotations that are not evaluated.
@torch.library.custom_op("penstock::gather", mutates_args=(), schema="(Tensor rows, str array) -> Tensor")
def gather(rows: Tensor, array: str) -> Tensor:
    """The rows of an array; see Array.gather."""
    taken: Tensor = _named(_ARRAYS, array).gather(rows)
    return taken


@gather.register_fake
def _(rows: Tensor, array: str) -> Tensor:
    return _fake_rows(_named(_ARRAYS, array), rows)


@torch.library.custom_op(
    "penstock::embedding", mutates_args=(), schema="(Tensor anchor, Tensor rows, str table) -> Tensor"
)
def embedding(anchor: Tensor, rows: Tensor, table: str) -> Tensor:
    """The rows of a table that is trained. anchor: one number, which is not looked at; that it needs a
    gradient makes autograd come back to the table. (Of none a compiler would leave out the way back.)"""
    taken: Tensor = _named(_TABLES, table).array.gather(rows)
    return taken


@embedding.register_fake
def _(anchor: Tensor, rows: Tensor, table: str) -> Tensor:
    return _fake_rows(_named(_TABLES, table).array, rows)


@torch.library.custom_op(
    "penstock::embedding_grad",
    mutates_args=(),
    schema="(Tensor anchor, Tensor rows, Tensor gradient, Tensor own, str table) -> Tensor",
)
def embedding_grad(anchor: Tensor, rows: Tensor, gradient: Tensor, own: Tensor, table: str) -> Tensor:
    """Keeps the gradient of rows with their table, and gives that of the anchor. own: made for this call, or
    a compiler would take two calls with equal gradients for one."""
    _named(_TABLES, table).keep_gradient(rows, gradient)
    return torch.zeros_like(anchor)


@embedding_grad.register_fake
def _(anchor: Tensor, rows: Tensor, gradient: Tensor, own: Tensor, table: str) -> Tensor:
    return torch.empty_like(anchor)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, str], output: Tensor) -> None:
    anchor, rows, ctx.table = inputs
    ctx.save_for_backward(anchor, rows)


def _back(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
    anchor, rows = ctx.saved_tensors
    return embedding_grad(anchor, rows, gradient.contiguous(), _OWN(1), ctx.table), None, None


embedding.register_autograd(_back, setup_context=_save)


# Functions of torch with an array in the place of a weight


def _refuse_renorm(name: str, max_norm: float | None) -> None:
    if max_norm is not None:
        raise ValueError(
            f"{name}: max_norm stores into the weight, which an array is not changed by: leave it out"
        )


def _index_select(input: Array, dim: int, index: Tensor) -> Any:
    if dim not in (0, -input.ndim):
        raise ValueError(f"index_select: dimension {dim} of {input!r}: rows are taken along dimension 0")
    if index.ndim > 1:
        raise ValueError(f"index_select: an index of {index.ndim} dimensions: give one")
    return input.gather(index.reshape(-1))


def _embedding(
    input: Tensor,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    _refuse_renorm("embedding", max_norm)
    return weight.gather(input)


def _embedding_bag(
    input: Tensor,
    weight: Array,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    _refuse_renorm("embedding_bag", max_norm)
    return bags_of(
        weight.gather, len(weight), input, offsets, mode, per_sample_weights, include_last_offset, padding_idx
    )


def bags_of(
    gather_rows: Callable[[Tensor], Tensor],
    count: int,
    rows: Tensor,
    offsets: Tensor | None,
    mode: str,
    weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Tensor:
    """Bags of rows, reduced as torch reduces them: of what was gathered, each row in its place, so that sums
    are made in the same order."""
    if rows.ndim == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: rows of two dimensions are bags of one size: leave out offsets")
        if include_last_offset:
            raise ValueError("embedding_bag: include_last_offset is for rows of one dimension with offsets")
        offsets = torch.arange(0, rows.numel(), max(1, rows.shape[1]), device=rows.device)[: rows.shape[0]]
        if rows.shape[1] == 0:
            offsets = torch.zeros(rows.shape[0], dtype=torch.int64, device=rows.device)
        weights = None if weights is None else weights.reshape(-1)
        rows = rows.reshape(-1)
    elif rows.ndim != 1:
        raise ValueError(f"embedding_bag: rows of {rows.ndim} dimensions: give one or two")
    if offsets is None:
        raise ValueError(
            "embedding_bag: rows of one dimension need offsets, the position where each bag begins"
        )
    if padding_idx is not None:
        kept = rows != (padding_idx + count if padding_idx < 0 else padding_idx)
        before = torch.cat([kept.new_zeros(1, dtype=torch.int64), kept.cumsum(0)])
        offsets = before[offsets.long()]
        rows = rows[kept]
        weights = None if weights is None else weights[kept]
    taken = gather_rows(rows)
    numbers = torch.arange(rows.numel(), device=taken.device)
    return F.embedding_bag(
        numbers,
        taken,
        offsets.to(taken.device, torch.int64),
        mode=mode,
        per_sample_weights=None if weights is None else weights.to(taken.device),
        include_last_offset=include_last_offset,
    )


# By name: other libraries put wrappers in the place of some.
_TAKES_ARRAYS: dict[str, Callable[..., Any]] = {
    "index_select": _index_select,
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
}


def call(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A function of torch, called with an array."""
    name = getattr(function, "__name__", str(function))
    taken = _TAKES_ARRAYS.get(name)
    if taken is None:
        raise TypeError(
            f"torch.{name} does not take a penstock.Array: take rows of it (array[rows]), or array.tensor() "
            "where it lies in memory"
        )
    return taken(*args, **keywords)

"""What torch needs to know of arrays: operators that `torch.compile` traces, and methods that it leaves
to the interpreter. Loaded where torch is."""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import torch
from torch import Tensor

from penstock.arrays import array_tensor as array_tensor
from penstock.arrays.bags import safe_offsets
from penstock.arrays.gathers import GatherHandle
from penstock.arrays.untraced import leave_untraced

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

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
    says what the operator returns: compiled graphs are kept on disk by their text, for other processes,
    too, which count from one again."""
    shape = "x".join(map(str, array.shape))
    return f"{kind}-{next(_NUMBERS)}-{array.dtype.name}-{shape}-{array.device}"


@functools.cache
def _leave_methods_untraced(kind: Any) -> None:
    leave_untraced(
        kind,
        *(
            "_take",
            "_gather",
            "__getitems__",
            "gather_async",
            "_asked",
            "prefetch",
            "check_replays",
            "tensor",
        ),
        *(
            "numpy",
            "__array__",
            "__array_function__",
            "__array_wrap__",
            "check_file",
            "scatter",
            "__setitem__",
        ),
        *("flush", "stats", "close", "__repr__"),
    )


def name_array(array: Array) -> str:
    _leave_methods_untraced(cast("Hashable", type(array)))
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
    return torch.empty((*rows.shape, *array.row_shape), dtype=kind, device=array.device)


# Schemas are written out: torch 2.4 cannot read annotations that are not evaluated.
@torch.library.custom_op(
    "penstock::gather",
    mutates_args=(),
    schema="(Tensor rows, str array, bool negative_indices=True) -> Tensor",
)
def gather(rows: Tensor, array: str, negative_indices: bool = True) -> Tensor:
    """The rows of an array; see Array.gather."""
    taken: Tensor = _named(_ARRAYS, array).gather(rows, negative_indices=negative_indices)
    return taken


def _register_vmap(operator: Any, rule: Callable[..., Any]) -> None:
    """Without a rule, as before torch 2.5, vmap calls an operator for each element."""
    if hasattr(operator, "register_vmap"):
        operator.register_vmap(rule)


def _gather_of_many(
    info: Any, in_dims: tuple[Any, ...], rows: Tensor, array: str, negative_indices: bool = True
) -> Any:
    return gather(rows, array, negative_indices), in_dims[0]


_register_vmap(gather, _gather_of_many)


@gather.register_fake
def _(rows: Tensor, array: str, negative_indices: bool = True) -> Tensor:
    return _fake_rows(_named(_ARRAYS, array), rows)


@torch.library.custom_op(
    "penstock::embedding", mutates_args=(), schema="(Tensor anchor, Tensor rows, str table) -> Tensor"
)
def embedding(anchor: Tensor, rows: Tensor, table: str) -> Tensor:
    """The rows of a table that is trained. anchor: one number, which is not looked at; that it needs a
    gradient makes autograd come back to the table. (Of none a compiler would leave out the way back.)
    Negative rows are out of range, as torch.nn has it."""
    taken: Tensor = _named(_TABLES, table).array.gather(rows, negative_indices=False)
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


def _rows_of_many(info: Any, in_dims: tuple[Any, ...], anchor: Tensor, rows: Tensor, table: str) -> Any:
    return embedding(anchor, rows, table), in_dims[1]


def _gradients_of_many(
    info: Any,
    in_dims: tuple[Any, ...],
    anchor: Tensor,
    rows: Tensor,
    gradient: Tensor,
    own: Tensor,
    table: str,
) -> Any:
    """Each element of the batch adds its own, also where all have the same rows."""
    rows, gradient = (
        given.expand(info.batch_size, *given.shape) if dim is None else given.movedim(dim, 0)
        for given, dim in ((rows, in_dims[1]), (gradient, in_dims[2]))
    )
    return embedding_grad(anchor, rows, gradient, _OWN(1), table), None


_register_vmap(embedding, _rows_of_many)
_register_vmap(embedding_grad, _gradients_of_many)


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


# Offsets have numbers when a traced call is made, not when it is traced.
@torch.library.custom_op(
    "penstock::checked_offsets",
    mutates_args=(),
    schema="(Tensor offsets, SymInt count, bool last_is_end, str what) -> Tensor",
)
def checked_offsets(offsets: Tensor, count: int, last_is_end: bool, what: str) -> Tensor:
    """`safe_offsets`, as an operator."""
    return safe_offsets(offsets, count, last_is_end, what).clone()


@checked_offsets.register_fake
def _(offsets: Tensor, count: int, last_is_end: bool, what: str) -> Tensor:
    return torch.empty_like(offsets)


# What a compiler cannot look into.
leave_untraced(GatherHandle, "wait", "order_before")

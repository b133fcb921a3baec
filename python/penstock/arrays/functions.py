"""Functions of torch that are called with an array. Loaded where torch is."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from penstock.arrays.bags import bags_of
from penstock.arrays.base import is_array
from penstock.arrays.tracing import is_symbol
from penstock.arrays.whole import in_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.arrays.array import Array


def checked_padding(padding_idx: int | None, rows: int) -> int | None:
    """From 0 on. TypeError for what is no number, ValueError for a row that there is not."""
    if padding_idx is None:
        return None
    if not isinstance(padding_idx, int):
        raise TypeError(f"padding_idx {padding_idx!r}: give the number of a row, or None")
    if not -rows <= padding_idx < rows:
        raise ValueError(f"padding_idx {padding_idx}: the table has {rows} rows")
    return padding_idx % rows


# With an array in the place of a weight. What is called with one elsewhere is not implemented here.


def _refuse_renorm(name: str, max_norm: float | None) -> None:
    if max_norm is not None:
        raise ValueError(
            f"{name}: max_norm stores into the weight, which an array is not changed by: leave it out"
        )


def _rows_of(array: Array, rows: Tensor) -> Tensor:
    taken: Tensor = array.gather(rows, negative_indices=False)
    return taken


def _index_select(input: Any, dim: int, index: Tensor, *, out: Tensor | None = None) -> Any:
    if not is_array(input):
        return NotImplemented
    if dim not in (0, -input.ndim):
        raise ValueError(f"index_select: dimension {dim} of {input!r}: rows are taken along dimension 0")
    if is_symbol(index):  # its dimensions are not known
        return _rows_of(input, index)
    if index.ndim > 1:
        raise ValueError(f"index_select: an index of {index.ndim} dimensions: give one")
    rows = index.reshape(-1)
    if out is None:
        return _rows_of(input, rows)
    if out.numel() == 0:  # as torch makes room in them
        out.resize_(rows.numel(), *input.row_shape)
    return input.gather(rows, out=out, negative_indices=False)


def _embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if not is_array(weight):
        return NotImplemented
    _refuse_renorm("embedding", max_norm)
    checked_padding(padding_idx, len(weight))
    return _rows_of(weight, input)


def _aten_embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """torch.embedding, which has its arguments the other way round."""
    return _rows_of(weight, indices) if is_array(weight) else NotImplemented


def _embedding_bag(
    input: Any,
    weight: Any,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    if not is_array(weight):
        return NotImplemented
    _refuse_renorm("embedding_bag", max_norm)
    padding = checked_padding(padding_idx, len(weight))

    def gather(rows: Tensor) -> Tensor:
        return _rows_of(weight, rows)

    return bags_of(
        gather,
        input,
        offsets,
        mode,
        per_sample_weights,
        include_last_offset,
        padding,
        kind=getattr(torch, weight.dtype.name),
        device=weight.device,
        what=f"embedding_bag of {weight.path or 'an array in memory'}",
    )


def _aten_embedding_bag(weight: Any, *arguments: Any, **keywords: Any) -> Any:
    if not is_array(weight):
        return NotImplemented
    raise TypeError("torch.embedding_bag: give the array to torch.nn.functional.embedding_bag")


# By name: other libraries put wrappers in the place of some.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "index_select": _index_select,
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
}
_BUILTINS = {**_FUNCTIONS, "embedding": _aten_embedding, "embedding_bag": _aten_embedding_bag}


# With arrays elsewhere: as the tensors that they are where they lie in memory


def _tensors_of(name: str, given: Any, taken: list[Array]) -> Any:
    """What was given, with tensors in the place of arrays, which are added to `taken`."""
    if is_array(given):
        taken.append(given)
        return in_place(given, f"torch.{name}").tensor()
    if type(given) in (list, tuple):
        return type(given)(_tensors_of(name, one, taken) for one in given)
    return given


def _refuse_stores(name: str, written: Any) -> None:
    """Into memory that the system keeps from being stored into, a fault of which ends the program."""
    if is_array(written) and not written.writable:
        raise ValueError(f"torch.{name} stores into {written!r}, which was opened read-only: give a tensor")
    if type(written) in (list, tuple):
        for one in written:
            _refuse_stores(name, one)


def call(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A function of torch, called with an array."""
    name = getattr(function, "__name__", str(function))
    special = (_BUILTINS if isinstance(function, BuiltinFunctionType) else _FUNCTIONS).get(name)
    result = NotImplemented if special is None else special(*args, **keywords)
    if result is not NotImplemented:
        return result
    _refuse_stores(name, keywords.get("out"))
    if (name.endswith("_") and not name.endswith("__")) or keywords.get("inplace"):
        _refuse_stores(name, args[0] if args else keywords.get("input"))
    arrays: list[Array] = []
    operands = _tensors_of(name, args, arrays)
    options = {key: _tensors_of(name, value, arrays) for key, value in keywords.items()}
    result = function(*operands, **options)
    for array in arrays:
        array.check_file()  # cut short meanwhile, it was read as zeros
    return result

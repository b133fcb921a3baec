"""An array as a whole: an operand of Python's operators, and a NumPy array."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.numpy_functions import TakenByNumPy
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.arrays.array import Array

_BYTES_AT_ONCE = 64 << 20


def in_place(array: Array, what: str) -> Array:
    """The same. TypeError unless it lies in memory, where `what` can take all of it at once."""
    if array.placement not in ("hbm", "host"):
        raise TypeError(
            f"{what} takes a whole tensor, and {array!r} lies behind a cache: take rows of it (array[rows], "
            "array.gather(rows)), or open it with placement='host' or 'hbm'"
        )
    return array


def _operand(given: Any, what: str) -> Any:
    if not isinstance(given, Whole):
        return given
    array = in_place(cast("Array", given), what)
    return array.tensor() if is_torch(array._kind) else array.numpy()  # as its rows are


def _checked(result: Any, *operands: Any) -> Any:
    """The result. penstock.Error where the file of an operand was cut short, which was read as zeros."""
    for each in operands:
        if isinstance(each, Whole):
            cast("Array", each).check_file()
    return result


def _beside(other: Any, operand: Any) -> Any:
    """torch takes no NumPy arrays beside its tensors."""
    if isinstance(other, np.ndarray) and is_torch(operand):
        import torch

        return torch.as_tensor(other, device=operand.device)
    return other


def _binary(
    sign: str, operation: Callable[[Any, Any], Any]
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Of the array and another, of another and the array, and in place. The last is refused: Python would put
    a tensor in the place of the array, which would not change."""

    def forward(self: Any, other: Any) -> Any:
        mine = _operand(self, sign)
        return _checked(operation(mine, _beside(_operand(other, sign), mine)), self, other)

    def backward(self: Any, other: Any) -> Any:
        mine = _operand(self, sign)
        return _checked(operation(_beside(other, mine), mine), self)

    def refused(self: Any, other: Any) -> Any:
        raise TypeError(
            f"{sign}= does not change {self!r}: store into it by array[rows] = values, or scatter"
        )

    return forward, backward, refused


def _unary(sign: str, operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of(self: Any) -> Any:
        return _checked(operation(_operand(self, sign)), self)

    return of


class Whole(TakenByNumPy):
    """What Python and NumPy do with all of an array. Its operators give new tensors, as those of `tensor()`;
    without torch NumPy arrays. `==` compares, as for any object, whether two are the same."""

    __add__, __radd__, __iadd__ = _binary("+", operator.add)
    __sub__, __rsub__, __isub__ = _binary("-", operator.sub)
    __mul__, __rmul__, __imul__ = _binary("*", operator.mul)
    __truediv__, __rtruediv__, __itruediv__ = _binary("/", operator.truediv)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("//", operator.floordiv)
    __mod__, __rmod__, __imod__ = _binary("%", operator.mod)
    __pow__, __rpow__, __ipow__ = _binary("**", operator.pow)
    __matmul__, __rmatmul__, __imatmul__ = _binary("@", operator.matmul)
    __and__, __rand__, __iand__ = _binary("&", operator.and_)
    __or__, __ror__, __ior__ = _binary("|", operator.or_)
    __xor__, __rxor__, __ixor__ = _binary("^", operator.xor)
    __lt__, __le__ = _binary("<", operator.lt)[0], _binary("<=", operator.le)[0]
    __gt__, __ge__ = _binary(">", operator.gt)[0], _binary(">=", operator.ge)[0]
    __neg__, __pos__ = _unary("-", operator.neg), _unary("+", operator.pos)
    __abs__, __invert__ = _unary("abs", operator.abs), _unary("~", operator.invert)

    def __fx_create_arg__(self, tracer: Any) -> Any:
        """What torch.fx.symbolic_trace puts into its graph for an argument: there is nothing for an array."""
        raise TypeError(
            f"torch.fx.symbolic_trace of a function with {self!r} as its argument: trace array[rows] or "
            "array.gather(rows), or a module that holds a penstock.nn.Embedding"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """All of it, for NumPy: its memory where that is the host's, else a copy, read in parts.

        Errors: MemoryError where there is no room for one; TypeError for a type that NumPy does not have;
        penstock.Error for a file that is shorter than the array.
        """
        array = cast("Array", self)
        if array.dtype.numpy.name != array.dtype.name:
            raise TypeError(
                f"{array!r}: NumPy has no {array.dtype}: take rows of it as tensors, or array.numpy(), which "
                f"shows their bytes as {array.dtype.numpy}"
            )
        wanted = array.dtype.numpy if dtype is None else np.dtype(dtype)
        there = array.placement == "host"
        if copy is False and not (there and wanted == array.dtype.numpy):
            raise ValueError(f"{array!r}: as {wanted} for NumPy it has to be copied: leave out copy=False")
        whole = array.numpy() if there else _read_all(array)
        return cast("np.ndarray[Any, Any]", _checked(whole.astype(wanted, copy=bool(copy) and there), self))


def _read_all(array: Array) -> np.ndarray[Any, Any]:
    free = free_memory()
    if array.nbytes > free:
        raise MemoryError(
            f"{array!r}: the machine has {format_bytes(free)} of memory left: take rows of it (array[rows])"
        )
    whole = np.empty(array.shape, array.dtype.numpy)
    at_once = max(1, _BYTES_AT_ONCE * len(array) // max(1, array.nbytes))
    for first in range(0, len(array), at_once):
        rows = array[first : first + at_once]
        if is_torch(rows):
            rows = rows.cpu()
        whole[first : first + at_once] = rows if isinstance(rows, np.ndarray) else rows.numpy()
    return whole


def free_memory() -> int:
    """In bytes, with what the system would give back of its page cache."""
    values = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(values["MemAvailable"].split()[0]) * 1024

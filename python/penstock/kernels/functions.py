"""`penstock.function`: a kernel from a Python expression, element by element or reduced to one number."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.base import is_array
from penstock.arrays.dtypes import dtype_named
from penstock.arrays.messages import shown
from penstock.kernels.expressions import C_TYPES, HELPERS, Value, c_type, text_of
from penstock.kernels.launching import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.arrays.array import Array
    from penstock.kernels.launching import Kernel

_ELEMENTS = """
extern "C" __global__ void {name}({parameters}, {type}* out, unsigned long long count) {{
  penstock::for_each_index(count, [&](unsigned long long i) {{
    {reads}
    out[i] = {value};
  }});
}}
"""
_REDUCTION = """
extern "C" __global__ void __launch_bounds__(256)
    {name}({parameters}, {type}* out, unsigned char* any, unsigned long long count) {{
  __shared__ {type} parts[256];
  __shared__ bool has[256];
  {type} all = 0;
  bool begun = false;
  const auto join = [&]({type} v) {{
    all = !begun ? v : {joined};
    begun = true;
  }};
  penstock::for_each_index(count, [&](unsigned long long i) {{
    {reads}
    join(({type})({value}));
  }});
  parts[threadIdx.x] = all;
  has[threadIdx.x] = begun;
  __syncthreads();
  if (threadIdx.x != 0) return;
  begun = false;
  for (unsigned k = 0; k < blockDim.x; ++k) {{
    if (has[k]) join(parts[k]);
  }}
  out[blockIdx.x] = all;
  any[blockIdx.x] = begun;
}}
"""
_JOINED = {
    "sum": "all + v",
    "mean": "all + v",
    "min": "v < all || v != v ? v : all",
    "max": "all < v || v != v ? v : all",
}


_Needs = dict[int, set[np.dtype[Any]]]  # by the position of an argument


class Function:
    """Made by `penstock.function`. Called with arrays of one shape it gives the values, in memory; `sum`,
    `mean`, `min` and `max` reduce them on the way. Numbers among the arguments are the same for all elements.
    """

    def __init__(self, expression: Callable[..., Any]) -> None:
        self._expression = expression
        self._kernels: dict[Any, tuple[Kernel, np.dtype[Any], _Needs]] = {}
        functools.update_wrapper(self, expression)
        self.name = getattr(expression, "__name__", "of an expression")
        self._signature = inspect.signature(expression)

    def __call__(self, *arguments: Any, stream: Any = None) -> Any:
        """Compute the values of all elements.

        Args:
            arguments: Arrays of one shape and device, and numbers.
            stream: As `Array.gather`.

        Returns:
            A tensor where torch is installed, else what `Array.gather` gives, of the arrays' shape.

        Raises:
            TypeError, ValueError: Arguments that do not fit each other, or an expression that is no kernel.
            penstock.Error: What could not be read.
        """
        arrays = self._arrays_of(arguments)
        made, dtype = self._kernel_for("elements", arguments, arrays)
        first = arrays[0]
        out = first._library.empty(first.shape, dtype_named(dtype))
        if first.nbytes:
            made(*arguments, out, first.nbytes // first.dtype.itemsize, stream=stream).wait()
        return out

    def sum(self, *arguments: Any) -> Any:
        """Of all values: integers in 64 bits, floating point in double."""
        return self._reduced("sum", arguments)

    def mean(self, *arguments: Any) -> float:
        """Their sum over their number. ValueError: there are none."""
        count = self._count(arguments)
        return float(self._reduced("mean", arguments)) / count

    def min(self, *arguments: Any) -> Any:
        """The least; NaN where there is one. ValueError: there are none."""
        self._count(arguments)
        return self._reduced("min", arguments)

    def max(self, *arguments: Any) -> Any:
        """The greatest; likewise."""
        self._count(arguments)
        return self._reduced("max", arguments)

    # Inside

    def _count(self, arguments: tuple[Any, ...]) -> int:
        first = self._arrays_of(arguments)[0]
        if first.nbytes == 0:
            raise ValueError(f"function {self.name}: {first!r} has no elements: give one that has")
        return first.nbytes // first.dtype.itemsize

    def _arrays_of(self, arguments: tuple[Any, ...]) -> list[Array]:
        try:
            self._signature.bind(*arguments)
        except TypeError:
            takes = ", ".join(self._signature.parameters)
            raise TypeError(f"function {self.name}: {len(arguments)} arguments: it takes {takes}") from None
        arrays = []
        for k, one in enumerate(arguments):
            if is_array(one):
                arrays.append(one)
            elif not _is_plain(one) and np.size(one) != 1:
                raise TypeError(
                    f"function {self.name}: {self._name(k)} is {shown(one)}: give a penstock.Array or a "
                    "number"
                )
        if not arrays:
            raise TypeError(f"function {self.name}: give a penstock.Array among its arguments")
        for one in arrays:
            if one.shape != arrays[0].shape:
                raise ValueError(
                    f"function {self.name}: arrays of shapes {arrays[0].shape} and {one.shape}: give "
                    "arrays of one shape"
                )
        return arrays

    def _name(self, position: int) -> str:
        names = list(self._signature.parameters)
        return names[min(position, len(names) - 1)]

    def _reduced(self, how: str, arguments: tuple[Any, ...]) -> Any:
        arrays = self._arrays_of(arguments)
        made, dtype = self._kernel_for(how, arguments, arrays)
        first = arrays[0]
        count = first.nbytes // first.dtype.itemsize
        if count == 0:
            return dtype.type(0)
        facts = made.report(256)
        blocks = max(1, (facts["blocks_per_unit"] or 4) * facts["units"])
        out = first._library.empty((blocks,), dtype_named(dtype))
        any_ = first._library.empty((blocks,), dtype_named("uint8"))
        made(*arguments, out, any_, count, grid=blocks).wait()
        values, has = (_on_host(one) for one in (out, any_))
        parts = values[has != 0]
        return parts.sum(dtype=dtype) if how in ("sum", "mean") else getattr(parts, how)()

    def _kernel_for(
        self, how: str, arguments: tuple[Any, ...], arrays: list[Array]
    ) -> tuple[Kernel, np.dtype[Any]]:
        types = tuple(
            one.dtype.name
            if is_array(one)
            else np.asarray(one).dtype.name
            if not _is_plain(one)
            else type(one)
            for one in arguments
        )
        device = str(arrays[0].device)
        key = (how, types, device)
        if key not in self._kernels:
            self._kernels[key] = self._compiled(how, arguments, device)
        made, dtype, needs = self._kernels[key]
        for k, types_needed in needs.items():
            for needed in types_needed:
                if needed.kind in "iu":
                    np.asarray(arguments[k], needed)  # OverflowError, as NumPy's
        return made, dtype

    def _compiled(
        self, how: str, arguments: tuple[Any, ...], device: str
    ) -> tuple[Kernel, np.dtype[Any], _Needs]:
        """The kernel, the type of its values, and the types that its numbers are converted to."""
        values, parameters, reads = [], [], []
        needs: _Needs = {}
        for k, one in enumerate(arguments):
            word = f"p{k}"
            if is_array(one):
                if one.dtype.name not in C_TYPES:
                    raise TypeError(
                        f"function {self.name}: {self._name(k)} holds {one.dtype}: convert it first"
                    )
                to = C_TYPES[one.dtype.name]
                parameters.append(f"penstock::array<const {to}> {word}_")
                reads.append(f"const {to} {word} = {word}_[i];")
                values.append(Value(word, np.ones(1, one.dtype.numpy)))
                continue
            if _is_plain(one):
                to = {bool: "bool", int: "long long", float: "double"}[type(one)]
                needs[k] = set()
                values.append(Value(word, type(one)(1), needs[k]))
            else:
                kind = np.asarray(one).dtype
                to = c_type(kind)
                values.append(Value(word, np.ones((), kind)[()]))
            parameters.append(f"{to} {word}")
        result = self._expression(*values)
        if not isinstance(result, Value):
            what = type(result).__name__ if isinstance(result, (list, tuple, dict)) else shown(result)
            raise TypeError(
                f"function {self.name}: it returns {what}, which depends on no argument: return an "
                "expression of its elements"
            )
        dtype = np.asarray(result._like).dtype
        if how == "mean":
            dtype = np.dtype("float64")
        if how == "sum":
            dtype = np.dtype({"f": "float64", "u": "uint64"}.get(dtype.kind, "int64"))
        text = (_ELEMENTS if how == "elements" else _REDUCTION).format(
            name=f"penstock_{how}",
            parameters=", ".join(parameters),
            type=c_type(dtype),
            reads=" ".join(reads),
            value=text_of(result, dtype),
            joined=_JOINED.get(how, ""),
        )
        return kernel(HELPERS + text, f"penstock_{how}", device=device), dtype, needs


def _is_plain(one: Any) -> bool:
    return type(one) in (int, float, bool)


def _on_host(made: Any) -> np.ndarray[Any, Any]:
    if isinstance(made, np.ndarray):
        return made
    return np.asarray(made.cpu().numpy() if hasattr(made, "cpu") else made.numpy())


def function(expression: Callable[..., Any]) -> Function:
    """A kernel from a Python expression over elements.

    The function is called once for each combination of types, with stand-ins for elements, and what it takes
    from outside (globals, closures) stays as it was then: operators and NumPy's functions (`numpy.sqrt`,
    `numpy.where`, ...) on them become a kernel, with NumPy's types.

    >>> import numpy as np, penstock
    >>> @penstock.function
    ... def distance(x, y):
    ...     return np.sqrt(x * x + y * y)
    >>> x = penstock.from_tensor(np.array([3.0, 6.0]), "host", device="cpu")
    >>> y = penstock.from_tensor(np.array([4.0, 8.0]), "host", device="cpu")
    >>> [float(d) for d in distance(x, y)]
    [5.0, 10.0]
    >>> float(distance.sum(x, y))
    15.0

    Args:
        expression: Of one or more elements; a lambda will do. An argument that is left out has its default.

    Returns:
        What is called with arrays and numbers.
    """
    if not callable(expression):
        raise TypeError(f"penstock.function: {shown(expression)}: give a Python function of elements")
    try:
        return Function(expression)
    except ValueError:  # of inspect.signature
        raise TypeError(
            f"penstock.function: {shown(expression)}: its arguments cannot be seen: give lambda x: ..."
        ) from None

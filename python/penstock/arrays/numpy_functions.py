"""Functions and ufuncs of NumPy that are called with an array."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.arrays.array import Array

# Name and position of the parameter that a function stores into, where its signature does not have it as
# `out`: those of NumPy 1 that are written in C have none.
_DESTINATIONS: dict[Callable[..., Any], tuple[str, int | None]] = {
    np.copyto: ("dst", 0),
    np.put: ("a", 0),
    np.place: ("arr", 0),
    np.putmask: ("a", 0),
    np.fill_diagonal: ("a", 0),
    np.concatenate: ("out", 2),
    np.dot: ("out", 2),
}
# What needs no elements; and what stores by `array[...] = values`, as a user would.
_TAKE_ARRAYS = {np.shape, np.ndim, np.size, np.put_along_axis}


class TakenByNumPy:
    """An array that NumPy reads where it lies, or reads a copy of. Where its file is cut short NumPy reads
    zeros there: these look at the file again once a function or a ufunc has returned.

    Of `numpy.ufunc.at`, `numpy.ufunc.outer` and a ufunc with `out=` they learn nothing, nor of functions that
    NumPy lets nobody override, as those of numpy.random: there the file is checked before, and `check_file`
    checks it afterwards. `__array_ufunc__` would learn of more, and of `ndarray + array` as `numpy.add`, for
    which it would have to return a NumPy array, where operators return tensors.
    """

    __array_priority__ = 1001  # NumPy leaves operators to it; above a tensor's, which checks no file

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: Any, keywords: dict[str, Any]
    ) -> Any:
        """NumPy's result for the arrays as NumPy arrays.

        Raises: TypeError for a function that stores into one; penstock.Error where a file was cut short.
        """
        implementation = getattr(function, "_implementation", function)  # `like=` gives one without
        if function in _TAKE_ARRAYS:
            return implementation(*args, **keywords)
        _refuse_stores(function, args, keywords)
        taken: list[TakenByNumPy] = []
        operands = [_as_numpy(one, taken) for one in args]
        options = {key: _as_numpy(value, taken) for key, value in keywords.items()}
        if not taken:  # they are in a container of a type of its own, which NumPy reads by itself
            return implementation(*args, **keywords)
        try:
            return function(*operands, **options)
        finally:  # zeros may also be what made it fail
            _check_files(taken)

    def __array_wrap__(
        self, made: np.ndarray[Any, Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        """What a ufunc has made: a tensor if one of its operands is, else as NumPy returns it."""
        operands = (self,) if context is None else context[1]
        _check_files(one for one in operands if isinstance(one, TakenByNumPy))
        for one in operands:
            if hasattr(one, "__array_wrap__") and not isinstance(one, (TakenByNumPy, np.ndarray, np.generic)):
                return one.__array_wrap__(made)
        return made if made.ndim else made[()]


def _check_files(arrays: Iterable[TakenByNumPy]) -> None:
    for array in arrays:
        cast("Array", array).check_file()


def _as_numpy(given: Any, taken: list[TakenByNumPy]) -> Any:
    """What was given, with NumPy arrays in the place of arrays, which are added to `taken`."""
    if isinstance(given, TakenByNumPy):
        taken.append(given)
        return given.__array__()
    if type(given) in (list, tuple):
        return type(given)([_as_numpy(one, taken) for one in given])
    return given


@functools.cache
def _destination_of(function: Callable[..., Any]) -> tuple[str, int | None]:
    """The name of the parameter that a function stores into, and its position if it may be given by that."""
    if function in _DESTINATIONS:
        return _DESTINATIONS[function]
    try:
        known = inspect.signature(function).parameters
    except ValueError:
        return "out", None
    by_position = "out" in known and known["out"].kind != inspect.Parameter.KEYWORD_ONLY
    return "out", list(known).index("out") if by_position else None


def _refuse_stores(function: Callable[..., Any], args: Any, keywords: dict[str, Any]) -> None:
    name, position = _destination_of(function)
    given = position is not None and position < len(args)
    written: Any = args[position] if given else keywords.get(name)
    for one in written if type(written) in (list, tuple) else (written,):
        if isinstance(one, TakenByNumPy):
            raise TypeError(
                f"numpy.{function.__name__} stores into {one!r}: store by array[rows] = values, or scatter"
            )

"""What `array[rows] = values` stores: values of the array's kind, cast as NumPy casts within a kind."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.foreign import as_values, dense
from penstock.arrays.libraries import DeviceArray

if TYPE_CHECKING:
    from penstock.arrays.dtypes import DType

_TAKEN = {"b": "b", "i": "biu", "u": "biu", "f": "biuf"}  # kinds of Python's numbers, by the array's


def values_for(given: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """`given` in the array's type, repeated to `shape`.

    Arrays and tensors are cast where NumPy's `casting="same_kind"` casts; Python's numbers, and lists of
    them, where they fit.
    Errors: TypeError for another kind, ValueError for a number that does not fit or for another shape.
    """
    values = cast_values(given, dtype)
    if isinstance(values, DeviceArray):
        return values
    try:
        more = len(values.shape) - len(shape)
        if more > 0 and all(count == 1 for count in values.shape[:more]):
            values = values.reshape(values.shape[more:])
        return values.expand(shape) if is_torch(values) else np.broadcast_to(values, shape)
    except (RuntimeError, ValueError):
        raise ValueError(f"values of shape {tuple(values.shape)}: the rows take {shape}") from None


def cast_values(given: Any, dtype: DType) -> Any:
    """`given` in the array's type and its own shape. Errors: as `values_for`."""
    if isinstance(given, DeviceArray):
        return given
    return _cast_tensor(given, dtype) if is_torch(given) else _cast(given, dtype)


def _refused(has: str, dtype: DType) -> TypeError:
    return TypeError(f"values of type {has}: the array holds {dtype}: convert them first")


def _in_numpy(dtype: DType) -> bool:
    return str(dtype.numpy.name) == dtype.name


def _cast_tensor(given: Any, dtype: DType) -> Any:
    import torch

    dense(given, "the value")
    has, wanted = str(given.dtype).removeprefix("torch."), getattr(torch, dtype.name)
    if has in (dtype.name, dtype.numpy.name):
        return given
    if _in_numpy(dtype) and given.dtype not in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        castable = np.can_cast(np.dtype(has), dtype.numpy, "same_kind")
    else:
        castable = torch.can_cast(given.dtype, wanted)
    if not castable:
        raise _refused(has, dtype)
    return given.to(wanted)


def _cast(given: Any, dtype: DType) -> np.ndarray[Any, Any]:
    values = as_values(given)
    has = values.dtype.name
    if hasattr(given, "dtype") and has in (dtype.name, dtype.numpy.name):
        return values
    if not _in_numpy(dtype):
        raise TypeError(f"values of type {has}: NumPy has no {dtype}: give a tensor of it")
    if not hasattr(given, "dtype"):
        return _fitted(_whole(given, values, dtype), dtype)
    if not np.can_cast(values.dtype, dtype.numpy, "same_kind"):
        raise _refused(has, dtype)
    return values.astype(dtype.numpy)


def _whole(given: Any, values: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Python's integers in an array's integers. NumPy makes floats of them where some are from 2**63 on and
    others are not, and objects where one has more than 64 bits."""
    if values.dtype.kind not in "fO" or dtype.numpy.kind not in "iu":
        return values
    exact = np.asarray(given, np.object_)
    if not all(isinstance(number, Integral) for number in exact.flat):
        return values
    limits = np.iinfo(dtype.numpy)
    for number in exact.flat:
        if not limits.min <= number <= limits.max:
            raise _unfit(number, dtype)
    return exact.astype(dtype.numpy)


def _unfit(value: Any, dtype: DType) -> ValueError:
    return ValueError(f"value {value}: it does not fit the array's {dtype}")


def _fitted(values: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    if values.size != 0 and values.dtype.kind not in _TAKEN[dtype.numpy.kind]:
        raise _refused(values.dtype.name, dtype)
    with np.errstate(all="ignore"):
        cast = values.astype(dtype.numpy)
    unlike = np.isinf(cast) & ~np.isinf(values) if dtype.numpy.kind == "f" else cast != values
    if unlike.any():
        raise _unfit(values[unlike].flat[0], dtype)
    return cast

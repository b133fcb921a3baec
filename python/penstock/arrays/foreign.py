"""Objects of other libraries, as arrays take them: tensors, NumPy arrays, streams."""

from __future__ import annotations

import importlib.util
import operator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.messages import shown

PAST_ALL_ROWS = 2**63 - 1  # stands for every row number above: all are out of range


def shown_number(row: int) -> str:
    return f"{row} or more" if row == PAST_ALL_ROWS else str(row)


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def address_of(memory: Any) -> int:
    """Of a tensor's or a NumPy array's first element."""
    if is_torch(memory):
        return int(memory.data_ptr())
    return int(memory.ctypes.data)


def dense(tensor: Any, what: str) -> Any:
    """The same tensor. TypeError for one that has no elements in memory: sparse, quantised, nested, meta.
    ValueError for one whose memory has other numbers: negated, conjugated."""
    kinds = [str(tensor.layout).removeprefix("torch.")] * (str(tensor.layout) != "torch.strided")
    kinds += ["quantised"] * tensor.is_quantized + ["nested"] * tensor.is_nested
    kinds += [tensor.device.type] * (tensor.device.type not in ("cpu", "cuda"))
    if kinds:
        raise TypeError(f"{what} is a {kinds[0]} tensor: give a dense one on the CPU or the GPU")
    for view in ("neg", "conj"):  # its elements are other numbers than those that lie there
        if getattr(tensor, f"is_{view}")():
            raise ValueError(f"{what} is a {view} view: give its .resolve_{view}()")
    if type(tensor).__name__ != "FakeTensor" and tensor.numel() != 0 and tensor.data_ptr() == 0:
        raise ValueError(
            f"{what} is a tensor whose storage was resized to nothing: give one that has elements"
        )
    return tensor


def handle_of(stream: Any) -> int:
    """Of a torch.cuda.Stream, or a cudaStream_t as a number. TypeError for what is neither."""
    try:
        return operator.index(getattr(stream, "cuda_stream", stream))
    except TypeError:
        raise TypeError(
            f"stream {shown(stream)}: give a torch.cuda.Stream, or the handle of a CUDA stream as a number"
        ) from None


def no_stream(stream: Any) -> AbstractContextManager[int]:
    """Of calls of the CPU executor, which have none: what programs for both kinds of executors give is
    checked, and has no effect."""
    if stream is not None:
        handle_of(stream)
    return nullcontext(0)


def finish_tensor(tensor: Any) -> None:
    """Waits until a CUDA tensor has been computed."""
    import torch

    torch.cuda.current_stream(tensor.device).synchronize()


def checked_numbers(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Row numbers as int32 or int64, from any integers. IndexError for what is none."""
    if rows.size == 0 and rows.dtype.kind == "f":  # numpy.asarray([])
        return rows.astype(np.int64)
    if rows.dtype.kind not in "iu":
        raise IndexError(f"rows of type {rows.dtype}: give integers, or array[mask] a mask")
    wanted = np.dtype(np.int32) if rows.dtype == np.int32 else np.dtype(np.int64)
    if rows.dtype == np.uint64:
        rows = np.minimum(rows, np.uint64(PAST_ALL_ROWS))  # not negative ones, which count from the end
    return packed(np.ascontiguousarray(rows, dtype=wanted))


def packed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Contiguous and writable, as torch takes arrays: it refuses a negative stride, which one element or none
    may have in an array that NumPy calls contiguous."""
    plain = array.flags.c_contiguous and array.flags.writeable and min(array.strides, default=0) >= 0
    return array if plain else array.copy(order="C")


def _as_array(given: Any, what: str, error: type[Exception]) -> np.ndarray[Any, Any]:
    """As numpy.asarray, whose sentences know nothing of what the array is for."""
    if isinstance(given, np.ma.MaskedArray):
        raise error(f"{what} of type MaskedArray: an array has no mask: give {what}.filled(...)")
    try:
        return np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as problem:
        reason = str(problem).partition(". ")[0].splitlines()[0]
        raise error(
            f"{what} of type {type(given).__name__}: {reason}: give an array or a list of numbers"
        ) from None


def as_rows(given: Any) -> np.ndarray[Any, Any]:
    return _as_array(given, "rows", IndexError)


def as_values(given: Any) -> np.ndarray[Any, Any]:
    return _as_array(given, "values", ValueError)


def host_values(given: Any) -> np.ndarray[Any, Any]:
    """In this machine's byte order, contiguous, and free to be written to."""
    values = as_values(given)
    if values.dtype.kind not in "biufc":
        raise TypeError(f"values of type {values.dtype.name}: give numbers")
    return packed(np.asarray(values, values.dtype.newbyteorder("=")))

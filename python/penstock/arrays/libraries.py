"""What results are made of: torch tensors where torch is installed, else NumPy arrays, or buffers that others
take through `__cuda_array_interface__`."""

from __future__ import annotations

import functools
import math
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays import foreign
from penstock.arrays.exports import CUDA, share
from penstock.arrays.foreign import (
    PAST_ALL_ROWS,
    as_rows,
    checked_numbers,
    dense,
    handle_of,
    host_values,
    no_stream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock import _native
    from penstock.arrays.array import Array
    from penstock.arrays.dtypes import DType


class Library(Protocol):
    """How one library makes results, and takes row numbers and values.

    `stream` is the CUDA stream that calls go to, 0 for the legacy default stream or without a GPU.
    """

    device: Any  # where results lie: a torch.device, or its name as the array API has it
    iterates: bool  # whether results give their rows in turn
    # Whether memory that is given back is another's only after what the stream has to do.
    reuses_in_order: bool

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any: ...
    def address(self, made: Any) -> int: ...
    def nbytes(self, made: Any) -> int: ...
    def rows(self, given: Any) -> Any:
        """A contiguous int32 or int64 array that kernels reach; IndexError for another type."""
        ...

    def item(self, rows: Any, position: int) -> int: ...
    def item_bytes(self, rows: Any) -> int: ...
    def values(self, given: Any, shape: tuple[int, ...], dtype: DType) -> Any: ...
    def name_of(self, array: Array) -> str:
        """What the library's operators know an array by; nothing without operators."""
        ...

    def takes_at_once(self, rows: Any) -> bool:
        """Whether these are rows as kernels take them: `torch.int64`, contiguous, on the device."""
        ...

    def fills_at_once(self, out: Any, shape: Any, kind: Any) -> bool:
        """Whether `out` takes the result, which no look at its memory has to say."""
        ...

    def current_stream(self) -> int: ...
    def kind_of(self, dtype: DType) -> Any:
        """The library's own type of elements."""
        ...

    def new(self, shape: tuple[int, ...], kind: Any) -> Any:
        """As `empty`."""
        ...

    def traces(self, rows: Any) -> bool:
        """Whether a call with these rows is recorded or transformed, and goes by `traced_gather`."""
        ...

    def check_not_recorded(self, what: str) -> None:
        """ValueError where a tracer records, which sees no native call."""
        ...

    def traced_gather(self, rows: Any, name: str, count: int | None, negative_indices: bool = True) -> Any:
        """Rows, a slice or one row of the array of that name by an operator; by a mask, too, where `count`
        gives its length."""
        ...

    def order_after_current(self, stream: int) -> None:
        """Lets a stream wait for all that is on the current one."""
        ...

    def on(self, stream: Any) -> AbstractContextManager[int]:
        """Makes what is allocated and converted inside belong to a stream, after all that was before, and
        gives its handle. None: the current one."""
        ...


def _checked_values(shape: tuple[int, ...], found: tuple[int, ...], dtype: DType, has: str) -> None:
    if found != shape:
        raise ValueError(f"values of shape {found}: the rows take {shape}")
    if has not in (dtype.name, dtype.numpy.name):
        raise TypeError(f"values of type {has}: the array holds {dtype}: convert them first")


class _Untraced:
    """Of libraries that compile nothing."""

    iterates = True
    device: Any
    reuses_in_order = False

    def name_of(self, array: Array) -> str:
        return ""

    def takes_at_once(self, rows: Any) -> bool:
        return False

    def fills_at_once(self, out: Any, shape: Any, kind: Any) -> bool:
        return False

    def kind_of(self, dtype: DType) -> Any:
        return dtype.numpy

    def new(self, shape: tuple[int, ...], kind: Any) -> Any:
        raise NotImplementedError

    def current_stream(self) -> int:
        raise NotImplementedError

    def order_after_current(self, stream: int) -> None:
        """They have one stream."""

    def check_not_recorded(self, what: str) -> None:
        """Nothing records their calls."""

    def traces(self, rows: Any) -> bool:
        return False

    def traced_gather(self, rows: Any, name: str, count: int | None, negative_indices: bool = True) -> Any:
        raise NotImplementedError


class NumpyLibrary(_Untraced):
    """Results in plain memory, for the CPU executor."""

    device = "cpu"

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return np.empty(shape, dtype.numpy)

    def address(self, made: Any) -> int:
        return int(made.ctypes.data)

    def nbytes(self, made: Any) -> int:
        return int(made.nbytes)

    def rows(self, given: Any) -> Any:
        return checked_numbers(as_rows(given))

    def item(self, rows: Any, position: int) -> int:
        return int(rows.flat[position])

    def item_bytes(self, rows: Any) -> int:
        return int(rows.itemsize)

    def values(self, given: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        values = host_values(given)
        _checked_values(shape, values.shape, dtype, values.dtype.name)
        return values

    def on(self, stream: Any) -> AbstractContextManager[int]:
        return no_stream(stream)


class DeviceArray:
    """A result in GPU memory, for consumers of `__cuda_array_interface__` or DLPack (CuPy, Numba, JAX)."""

    def __init__(self, executor: _native.Executor, shape: tuple[int, ...], dtype: DType) -> None:
        from penstock import _native

        self.shape, self.dtype = shape, dtype
        self._device = (CUDA, executor.gpu)
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.buffer = _native.RowBuffer(executor, self.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = (self.buffer.address if self.nbytes else 0, False)
        return {
            "shape": self.shape,
            "typestr": self.dtype.numpy.str,
            "data": data,
            "version": 3,
            "strides": None,
        }

    def __dlpack__(self, **options: Any) -> Any:
        address = self.buffer.address if self.nbytes else 0
        return share(self.buffer, address, self, self._device, read_only=False).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        made = np.empty(self.shape, self.dtype.numpy)
        if self.nbytes:
            self.buffer.read(made.ctypes.data, made.nbytes)
        return made


class DeviceLibrary(_Untraced):
    """Results in GPU memory without torch."""

    iterates = False

    def __init__(self, executor: _native.Executor) -> None:
        self._executor = executor
        self.device = f"cuda:{executor.gpu}"

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return DeviceArray(self._executor, shape, dtype)

    def address(self, made: Any) -> int:
        return int(made.buffer.address) if made.nbytes else 0

    def nbytes(self, made: Any) -> int:
        return int(made.nbytes)

    def _on_device(self, host: np.ndarray[Any, Any], dtype: DType) -> DeviceArray:
        made = DeviceArray(self._executor, host.shape, dtype)
        if made.nbytes:
            made.buffer.write(host.ctypes.data, made.nbytes)
        return made

    def rows(self, given: Any) -> Any:
        from penstock.arrays.dtypes import dtype_named

        host = checked_numbers(given.numpy() if isinstance(given, DeviceArray) else as_rows(given))
        return self._on_device(host, dtype_named(host.dtype))

    def item(self, rows: Any, position: int) -> int:
        return int(rows.numpy().flat[position])

    def item_bytes(self, rows: Any) -> int:
        return int(rows.dtype.itemsize)

    def values(self, given: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        if isinstance(given, DeviceArray):
            _checked_values(shape, given.shape, dtype, given.dtype.name)
            return given
        host = host_values(given)
        _checked_values(shape, host.shape, dtype, host.dtype.name)
        return self._on_device(host, dtype)

    def on(self, stream: Any) -> AbstractContextManager[int]:
        return nullcontext(self._executor.stream if stream is None else handle_of(stream))


class TorchLibrary:
    """Results as tensors, on the device of the executor and on torch's current stream."""

    iterates = True
    reuses_in_order = True

    def __init__(self, gpu: int) -> None:
        import torch

        from penstock.arrays import tracing

        self._torch, self._tracing = torch, tracing
        self._gpu, self._cuda = gpu, gpu >= 0
        self.device = torch.device("cuda", gpu) if self._cuda else torch.device("cpu")

    def name_of(self, array: Array) -> str:
        from penstock.arrays import operators

        return operators.name_array(array)

    def traces(self, rows: Any) -> bool:
        tracing = self._tracing
        taken = type(rows) is slice or type(rows) is int or is_torch(rows)  # a compiler reads no further
        return taken and (tracing.sees_operators_alone() or tracing.is_symbol(rows))

    def check_not_recorded(self, what: str) -> None:
        self._tracing.check_not_recorded(what)

    def traced_gather(self, rows: Any, name: str, count: int | None, negative_indices: bool = True) -> Any:
        symbol = self._tracing.is_symbol(rows)  # of which nothing is known
        if isinstance(rows, slice):
            taken = range(count or 0)[rows]  # slice.indices is nothing that every torch traces
            begin, step = taken.start, taken.step
            rows = self._torch.arange(begin, begin + len(taken) * step, step, device=self.device)
        elif isinstance(rows, int):
            rows = self._torch.full((), rows, device=self.device)
        elif count is not None and not symbol and rows.dtype == self._torch.bool:
            if tuple(rows.shape) != (count,):
                raise IndexError(f"a mask of shape {tuple(rows.shape)}: the array has {count} rows")
            rows = rows.nonzero().reshape(-1)
        return self._torch.ops.penstock.gather(rows, name, negative_indices)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return self.new(shape, self.kind_of(dtype))

    def new(self, shape: tuple[int, ...], kind: Any) -> Any:
        return self._torch.empty(shape, dtype=kind, device=self.device)

    def kind_of(self, dtype: DType) -> Any:
        return getattr(self._torch, dtype.name)

    def takes_at_once(self, rows: Any) -> bool:
        torch = self._torch
        return (
            type(rows) is torch.Tensor
            and rows.dtype is torch.int64
            and rows.device == self.device
            and not rows.is_nested
            and rows.is_contiguous()
            and not self._tracing.sees_operators_alone()
        )

    def fills_at_once(self, out: Any, shape: Any, kind: Any) -> bool:
        return (
            self._cuda
            and type(out) is self._torch.Tensor
            and out.dtype is kind
            and out.shape == shape
            and out.device == self.device
            and out.is_contiguous()
            and not out.requires_grad
        )

    def current_stream(self) -> int:
        # What torch's compiler asks, too: a Stream object costs a microsecond.
        return int(self._torch._C._cuda_getCurrentRawStream(self._gpu)) if self._cuda else 0

    def address(self, made: Any) -> int:
        return int(made.data_ptr())

    def nbytes(self, made: Any) -> int:
        return int(made.nbytes)

    def rows(self, given: Any) -> Any:
        torch = self._torch
        if is_torch(given):
            self._tracing.check_has_numbers(given, "rows of an array")
            rows = dense(given, "the index")
        else:
            rows = torch.from_numpy(checked_numbers(as_rows(given)))
            self._tracing.check_has_numbers(rows, "rows of an array")
        if rows.dtype not in (torch.int32, torch.int64):
            whole = not (rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool)
            if not whole and rows.numel() != 0:
                raise IndexError(f"rows of type {rows.dtype}: give integers, or array[mask] a mask")
            unsigned = rows.dtype == torch.uint64
            rows = rows.to(torch.int64)
            if unsigned:
                rows = rows.masked_fill(rows < 0, PAST_ALL_ROWS)  # they were 2**63 and more
        return rows.to(self.device).contiguous()

    def item(self, rows: Any, position: int) -> int:
        return int(rows.reshape(-1)[position])

    def item_bytes(self, rows: Any) -> int:
        return int(rows.itemsize)

    def values(self, given: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        values = given if is_torch(given) else self._torch.from_numpy(host_values(given))
        self._tracing.check_has_numbers(values, "values for an array")
        dense(values, "the value")
        _checked_values(shape, tuple(values.shape), dtype, str(values.dtype).removeprefix("torch."))
        return values.detach().to(self.device).contiguous()

    def on(self, stream: Any) -> AbstractContextManager[int]:
        if not self._cuda:
            return no_stream(stream)
        now = self.current_stream()
        if stream is None or handle_of(stream) == now:
            return nullcontext(now)
        return self._on_other(handle_of(stream))

    def order_after_current(self, stream: int) -> None:
        self._ordered_after_current(stream)

    def _ordered_after_current(self, stream: int) -> Any:
        cuda = self._torch.cuda
        other = cuda.ExternalStream(stream, device=self.device)
        other.wait_stream(cuda.current_stream(self.device))
        return other

    @contextmanager
    def _on_other(self, handle: int) -> Iterator[int]:
        other = self._ordered_after_current(handle)
        with self._torch.cuda.stream(other):
            yield handle


def _torch_has_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


@functools.cache
def _torch_library(gpu: int) -> TorchLibrary:
    return TorchLibrary(gpu)


def library_for(executor: _native.Executor) -> Library:
    """Torch's where it is installed, and has CUDA if the executor does."""
    if foreign.has_torch() and (not executor.cuda or _torch_has_cuda()):
        return _torch_library(executor.gpu)
    return DeviceLibrary(executor) if executor.cuda else NumpyLibrary()

"""Memory of arguments while Python's side of a call reads it. It may map a file that others cut short, where
NumPy and torch end the process; the compiled part watches for itself what it reads."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from penstock.errors import Error

_PARTS = ("data", "indices", "indptr", "row", "col", "edge_index", "edge_weight", "edge_attr")


def is_torch(given: Any) -> bool:
    """Whether torch made it: a tensor, of whatever class, or one of its types."""
    if type(given).__module__.partition(".")[0] == "torch":
        return True
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, getattr(torch, "Tensor", ()))


def owner_of(memory: Any) -> Any:
    """The array or tensor whose allocation `memory` is a view of: a NumPy view keeps the address that it was
    made with, while its owner may move."""
    base = getattr(memory, "base", None)
    while isinstance(base, np.ndarray) or is_torch(base):
        memory, base = base, getattr(base, "base", None)
    return memory


def is_foreign(memory: Any) -> bool:
    """Whether a tensor or a NumPy array has memory that neither torch nor NumPy allocated."""
    return any(True for _ in _spans(memory))


def reading(what: str, *arguments: Any) -> AbstractContextManager[None]:
    """Watches the memory of arguments, and of their parts, that NumPy or torch did not allocate.

    Args:
        what: The operation and its object, which begin the sentence.
        arguments: Tensors and NumPy arrays; tuples and lists of them; SciPy's matrices and PyG's data. Others
            are let pass.

    Raises:
        penstock.Error: Within it or at its end, where memory of one maps a file that was cut short.
    """
    spans = [span for argument in arguments for span in _spans(argument)]
    return _watched(what, spans) if spans else nullcontext()


@contextmanager
def _watched(what: str, spans: list[tuple[int, int]]) -> Iterator[None]:
    from penstock import _native

    watches = [_native.WatchedMemory(begin, nbytes) for begin, nbytes in spans]
    cut = Error(
        f"{what}: the memory of an argument maps a file that was cut short: write that file anew", errno.EIO
    )
    try:
        if any(watch.is_cut() for watch in watches):
            raise cut
        yield
    except Exception as problem:
        if problem is not cut and any(watch.is_cut() for watch in watches):
            raise cut from problem
        raise
    else:
        if any(watch.is_cut() for watch in watches):
            raise cut
    finally:
        for watch in watches:
            watch.close()


def _spans(argument: Any, depth: int = 0) -> Iterator[tuple[int, int]]:
    """Address and bytes of what others allocated."""
    if is_torch(argument):
        yield from _of_tensor(argument)
    elif isinstance(argument, np.ndarray):
        owner = owner_of(argument)
        if is_torch(owner):
            yield from _of_tensor(owner)
        elif not owner.flags.owndata and owner.nbytes and owner.flags.forc:
            yield owner.__array_interface__["data"][0], owner.nbytes
    elif depth < 2 and isinstance(argument, (tuple, list)):
        if len(argument) <= 8:  # a list of numbers has no memory of others
            for one in argument:
                yield from _spans(one, depth + 1)
    elif depth < 2 and type(argument).__module__.partition(".")[0] in ("scipy", "torch_geometric"):
        for name in _PARTS:
            yield from _spans(getattr(argument, name, None), depth + 1)
    elif depth < 2 and type(argument).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
        for column in _columns_of(argument):
            yield from _spans(column, depth + 1) if isinstance(column, np.ndarray) else _of_arrow(column)


def _columns_of(given: Any) -> Iterator[Any]:
    """Of a DataFrame, a Table or one column, as they lie in memory: NumPy arrays and Arrow's; no copies."""
    columns: Iterable[Any] = (given,)
    if hasattr(given, "get_columns"):
        columns = given.get_columns()
    elif hasattr(given, "itercolumns"):
        columns = given.itercolumns()
    elif hasattr(given, "items") and getattr(given, "ndim", 1) == 2:
        columns = (column for _, column in given.items())
    for column in columns:
        if hasattr(column, "buffers") or hasattr(column, "chunks"):
            yield column
        elif hasattr(column, "to_arrow"):  # polars; its strings would be copied
            yield from (column.to_arrow(),) if column.dtype.is_numeric() else ()
        elif isinstance(getattr(column, "dtype", None), np.dtype):
            yield column.to_numpy(copy=False)
        elif hasattr(getattr(column, "array", None), "__arrow_array__"):
            yield column.array.__arrow_array__()


def _of_arrow(column: Any) -> Iterator[tuple[int, int]]:
    for part in getattr(column, "chunks", (column,)):
        for memory in part.buffers() if hasattr(part, "buffers") else ():
            if memory is not None and memory.size:
                yield memory.address, memory.size


def _of_tensor(tensor: Any) -> Iterator[tuple[int, int]]:
    try:
        if tensor.device.type != "cpu" or tensor.layout is not _strided():
            return
        storage = tensor.untyped_storage()
        if storage.nbytes() and not storage.resizable():  # not by torch's allocator
            yield storage.data_ptr(), storage.nbytes()
    except (AttributeError, NotImplementedError, RuntimeError):  # one of torch's types, or without memory
        return


def _strided() -> Any:
    import torch

    return torch.strided

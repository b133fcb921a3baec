"""Where an array lies in a file, whatever the file's format."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.arrays.dtypes import DType, dtype_named
from penstock.arrays.formats import arrow, hdf5, npy_header, npz, raw, safetensors, zarr
from penstock.arrays.formats.kinds import kind_of, kind_on_volume
from penstock.arrays.formats.place import Layout, check_shape, checked_sizes, opened
from penstock.arrays.messages import naming, shown, shown_path, system_error
from penstock.volume.names import FIXED, is_volume

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Layout",
    "check_layout",
    "check_permission",
    "check_shape",
    "checked_sizes",
    "find_layout",
    "path_text",
]

_READERS: dict[str, Callable[[str, str | None], Layout]] = {
    "npy": npy_header.find,
    "npz": npz.find,
    "safetensors": safetensors.find,
    "sharded": safetensors.find_sharded,
    "arrow": arrow.find,
    "parquet": arrow.find_parquet,
    "hdf5": hdf5.find,
    "zarr": zarr.find,
}


def path_text(path: str | bytes | os.PathLike[Any], operation: str = "open") -> str:
    """TypeError for what is no path."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        remedy = (
            "give it to penstock.from_tensor" if hasattr(path, "__array__") else "give text or a PathLike"
        )
        raise TypeError(f"{operation} {shown(path)}: it is no path: {remedy}") from None
    if "\0" in text:
        raise ValueError(f"{operation} {shown(text)}: no path has a zero byte: take it out")
    if not text:
        raise system_error(f"{operation} '': it is no path: name a file", errno.ENOENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{operation} {shown_path(text)}: its name is no UTF-8: rename it") from None
    return text


def find_layout(
    path: str | bytes | os.PathLike[Any],
    *,
    dtype: Any = None,
    shape: Sequence[int] | int | None = None,
    offset: int | None = None,
    name: str | None = None,
) -> Layout:
    """What a file holds, by its first bytes and its ending (docs/ARRAYS.md lists the formats); any other is
    raw.

    Raw files need `dtype`; without `shape` they are as many elements as the file has. `name`: the tensor,
    column or dataset, where the file has names; not needed where there is one only. `dtype` for the others:
    another type of the same size, for what the format has no name for (bfloat16 in a .npy file of uint16).
    Nothing is converted: `converted.laid` does that.

    Raises ValueError for a file that is not what its ending says, or a layout that needs more bytes than it
    has; TypeError for a shape, an offset, a name or a path that is none; FileNotFoundError, IsADirectoryError
    and PermissionError as `open` of Python.
    """
    where = path_text(path)
    with naming("open", where):
        on_volume = is_volume(where)
        if not on_volume:
            _check_readable(where)
        element = None if dtype is None else dtype_named(dtype)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name {shown(name)}: give text")
        if on_volume:
            with opened(where) as file:
                kind = kind_on_volume(file.read(8), offset is not None)
        else:
            kind = kind_of(where, dtype is not None, offset is not None)
        if name is not None and kind in ("npy", "raw"):
            raise ValueError(f"name {shown(name)!r}: it holds one array without a name: leave name out")
        if kind == "raw":
            found = raw.find(where, element, shape, offset)
        elif shape is not None or offset is not None:
            raise ValueError("its header says shape and offset: leave them out")
        else:
            found = _READERS[kind](where, name)
            found = found if element is None else _retyped(found, element)
        return replace(found, fixed=FIXED) if on_volume else found


def check_layout(expected: Layout) -> Layout:
    """What the file holds now. ValueError unless it is this array, of this shape and type, in this place."""
    header = expected.stored is not None
    where: dict[str, Any] = (
        {} if header else {"dtype": expected.dtype, "shape": expected.shape, "offset": expected.offset}
    )
    found = find_layout(expected.path, name=expected.name, **where)

    def seen(layout: Layout) -> str:
        return f"{layout.stored or layout.dtype} of shape {layout.shape} from byte {layout.offset}"

    if seen(found) != seen(expected):
        raise ValueError(
            f"open {shown_path(expected.path)}: it holds {seen(found)}, and what refers to it says "
            f"{seen(expected)}: it was written anew: open the file by its path"
        )
    return replace(found, dtype=expected.dtype)


def _check_readable(path: str) -> None:
    # Looked at before it is opened: opening a pipe would wait for its other end.
    kind = Path(path).stat().st_mode
    if stat.S_ISDIR(kind):
        check_permission(path, os.R_OK | os.X_OK, "read")
        if not zarr.is_store(path):
            raise system_error(
                f"open {shown_path(path)}: it is a directory, and no Zarr store: name a file", errno.EISDIR
            )
        return
    if not stat.S_ISREG(kind) and not stat.S_ISBLK(kind):
        raise ValueError("it is neither a file nor a block device: name one of these")
    check_permission(path, os.R_OK, "read")


def check_permission(path: str, access: int, verb: str) -> None:
    """PermissionError for what this user may not do with a file."""
    if not os.access(path, access, effective_ids=True):
        remedy = ", or open it read-only" if access == os.W_OK else ""
        raise system_error(
            f"open {shown_path(path)}: this user may not {verb} it: give them the permission{remedy}",
            errno.EACCES,
        )


def _retyped(found: Layout, dtype: DType) -> Layout:
    if dtype.itemsize != found.dtype.itemsize:
        raise ValueError(
            f"its elements are {found.dtype}, of {found.dtype.itemsize} bytes: {dtype} has {dtype.itemsize}; "
            "leave dtype out"
        )
    return replace(found, dtype=dtype)

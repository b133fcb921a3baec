"""New arrays in files of zeros."""

from __future__ import annotations

import errno
import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.arrays.dtypes import dtype_named
from penstock.arrays.layout import check_shape, checked_sizes, path_text
from penstock.arrays.messages import naming, shown, shown_path, system_error
from penstock.arrays.opening import open as open_array
from penstock.sizes import LIMIT, format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.arrays.array import Array

_MAX_HEADER = 1 << 16  # of a .npy file, with room to spare
_NO_ROOM = {
    errno.ENOSPC: "make room, or choose another folder",
    errno.EDQUOT: "this user's quota has no room: raise it, or choose another folder",
    errno.EFBIG: "no file may be as large: raise the limit (ulimit -f), or choose another file system",
}


def _create(path: str) -> None:
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        raise system_error(
            f"create {shown_path(path)}: it exists: open it as writable, or name a new file", errno.EEXIST
        ) from None


def _write_zeros(path: Path, header: bytes, nbytes: int) -> None:
    """A header, and a hole behind it. penstock.Error where there is no room for them."""
    try:
        with path.open("r+b") as file:
            file.write(header)
            file.truncate(len(header) + nbytes)
    except OSError as problem:
        code = problem.errno or 0
        if code not in _NO_ROOM:
            raise
        free = format_bytes(shutil.disk_usage(path.parent).free)
        raise system_error(
            f"it takes {format_bytes(len(header) + nbytes)}, and its file system has {free} free: "
            f"{_NO_ROOM[code]}",
            code,
        ) from None


def empty(
    path: str | os.PathLike[str],
    shape: Sequence[int] | int,
    dtype: Any,
    *,
    placement: str = "storage",
    device: Any = "auto",
    cache: int | str | None = None,
    line: int | str | None = None,
) -> Array:
    """Make a .npy file of zeros, and open it to write. The file takes space as rows are stored.

    Args:
        path: a name that is free and ends with .npy.
        shape: whole numbers, or one; at least one dimension, and rows of at least one element.
        dtype: a name, NumPy's text for one ("f4"), or a dtype of NumPy or PyTorch.
        placement, device, cache, line: as for `open`.

    Returns:
        The array, writable.

    Raises:
        FileExistsError: for a path that is taken.
        ValueError, TypeError: for a shape without elements, with more than a file can have, or that is none,
            and for arguments that `open` refuses. Nothing is left of a file that could not be opened.
    """
    from penstock import _native

    where = path_text(path, "create")
    what = f"create {shown_path(where)}"
    with naming("create", where, str(Path(where).absolute())):
        element, sizes = dtype_named(dtype), checked_sizes(what, shape)
        if Path(where).suffix != ".npy":
            raise ValueError("its name does not end with .npy: give one that does")
        check_shape(what, sizes, element.itemsize)
        nbytes = math.prod(sizes) * element.itemsize
        if nbytes >= LIMIT - _MAX_HEADER:
            raise ValueError(f"shape {shown(sizes)}: more bytes than a file can have: give less rows")
        header = _native.npy_header(element.npy_kind, element.itemsize, list(sizes))
        how: dict[str, Any] = {"placement": placement, "device": device, "cache": cache, "line": line}
        _create(where)
        try:
            _write_zeros(Path(where), header, nbytes)
            return open_array(where, writable=True, dtype=element, **how)
        except BaseException:
            Path(where).unlink()  # it would be taken for an array of zeros that were stored
            raise

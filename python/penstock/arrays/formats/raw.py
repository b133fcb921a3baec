"""Raw files: elements of one type from some byte on."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from penstock.arrays.formats.place import Layout, bytes_of, checked, checked_sizes
from penstock.arrays.messages import shown, shown_path

if TYPE_CHECKING:
    from penstock.arrays.dtypes import DType


def find(path: str, element: DType | None, shape: Any, offset: Any) -> Layout:
    """Of as many elements as the file has, unless `shape` says how many."""
    where = f"open {shown_path(path)}"
    if element is None:
        raise ValueError(f"{where}: a raw file does not say what it holds: give dtype, and shape for rows")
    try:
        begin = 0 if offset is None else operator.index(offset)
    except TypeError:
        raise TypeError(f"{where}: offset {shown(offset)}: give a whole number of bytes") from None
    if begin < 0:
        raise ValueError(f"{where}: offset {shown(begin)}: give a number of bytes from 0")
    if shape is not None:
        return checked(Layout(path, checked_sizes(where, shape), element, begin))
    there = bytes_of(path)
    if begin > there:
        raise ValueError(f"{where}: offset {shown(begin)}: the file has {there} bytes: give less")
    count, over = divmod(there - begin, element.itemsize)
    if over:
        raise ValueError(
            f"{where}: the {there - begin} bytes from byte {begin} are {count} elements of {element} and "
            f"{over} bytes over: give shape, or the dtype that it was written in"
        )
    return Layout(path, (count,), element, begin)

"""NumPy's .npy files."""

from __future__ import annotations

import threading
import warnings
from typing import IO, Any

import numpy as np

from penstock.arrays.dtypes import DTYPES, DType
from penstock.arrays.formats.place import Layout, checked, checked_sizes, opened
from penstock.arrays.messages import line_of, shown, shown_path

_VERSIONS = ((1, 0), (2, 0), (3, 0))
_MAX_HEADER = 10_000  # NumPy reads no longer one, for it is parsed as Python
_ONE_AT_ONCE = threading.Lock()
"""Filters of warnings are all threads', and the parser of Python before 3.11.8 and 3.12.2 counts its depth
for all of them (CPython's gh-106905), so that two at once fail."""
_TRIES = 5  # beside threads of others, which read without the lock


def find(path: str, name: str | None = None) -> Layout:
    del name
    with opened(path) as file:
        shape, element = read_header(file, f"open {shown_path(path)}")
        return checked(Layout(path, shape, element, file.tell(), stored=element))


def find_times(path: str) -> tuple[Layout, str] | None:
    """An array of datetime64 as one of its ticks, and NumPy's name of the unit, such as us or 10us; None: it
    has other elements.

    Raises:
        ValueError: It is no .npy file, or is cut short.
    """
    where = f"open {shown_path(path)}"
    with opened(path) as file:
        shape, kind, _ = _read(file, where)
        if kind.kind != "M" or kind.byteorder == ">":
            return None
        ticks = DTYPES["int64"]
        found = checked(Layout(path, checked_sizes(where, shape), ticks, file.tell(), stored=ticks))
    unit, count = np.datetime_data(kind)
    return found, unit if count == 1 else f"{count}{unit}"


def read_header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], DType]:
    """Leaves the file at the first element."""
    shape, kind, fortran = _read(file, where)
    return checked_sizes(where, shape), _element(kind, fortran and len(shape) > 1, where)


def _read(file: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape, elements, and whether they lie in Fortran's order."""
    head = file.read(8)
    if len(head) < 8 or not head.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError(f"{where}: it is no .npy file: write it with numpy.save")
    version = (head[6], head[7])
    if version not in _VERSIONS:
        raise ValueError(
            f"{where}: it is of version {version[0]}.{version[1]} of .npy, and NumPy writes 1.0 to 3.0: "
            "write it with numpy.save"
        )
    size = file.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(size, "little")
    if length > _MAX_HEADER:
        raise ValueError(
            f"{where}: its header has {length} bytes, and NumPy reads {_MAX_HEADER} at most: save it as one "
            "of the plain types"
        )
    file.seek(-len(size), 1)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    begin = file.tell()
    try:
        with _ONE_AT_ONCE, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers by Python 2, and of what the parser finds odd
            for left in reversed(range(_TRIES)):
                try:
                    shape, fortran, kind = read(file)
                    break
                except SystemError:
                    if left == 0:
                        raise
                    file.seek(begin)
            return shape, kind, fortran
    except Exception as problem:  # a header is Python text: anything may be wrong with it
        raise ValueError(
            f"{where}: it is no .npy file that NumPy would read: {line_of(problem)}: write it with numpy.save"
        ) from None


def _element(kind: np.dtype[Any], fortran: bool, where: str) -> DType:
    if fortran:
        raise ValueError(f"{where}: its array is in Fortran order: save numpy.ascontiguousarray of it")
    if kind.byteorder == ">" or kind.hasobject or kind.fields or kind.name not in DTYPES:
        name = kind.name if kind.isnative else kind.str
        raise ValueError(
            f"{where}: elements of dtype {shown(name)}: save it as one of the plain little-endian types, "
            "such as float32"
        )
    return DTYPES[kind.name]

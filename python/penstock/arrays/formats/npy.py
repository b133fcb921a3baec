"""NumPy's .npy files, and .npz archives of them."""

from __future__ import annotations

import math
import struct
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.converted import PART_BYTES, Conversion, kept_or_planned
from penstock.arrays.dtypes import DTYPES, DType
from penstock.arrays.formats.place import Layout, checked, checked_sizes, chosen
from penstock.arrays.messages import line_of, shown, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSIONS = ((1, 0), (2, 0), (3, 0))
_MAX_HEADER = 10_000  # NumPy reads no longer one, for it is parsed as Python
_ARCHIVE_CHECKED = "an .npz archive has check sums of what is in it: save the array as .npy to store into it"


def find(path: str, name: str | None = None) -> Layout:
    del name
    with Path(path).open("rb") as file:
        shape, element = _read_header(file, f"open {shown_path(path)}")
        return checked(Layout(path, shape, element, file.tell(), stored=element))


def _read_header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], DType]:
    """Leaves the file at the first element."""
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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers by Python 2, and of what the parser finds odd
            shape, fortran, kind = read(file)
    except Exception as problem:  # a header is Python text: anything may be wrong with it
        raise ValueError(
            f"{where}: it is no .npy file that NumPy would read: {line_of(problem)}: write it with numpy.save"
        ) from None
    return checked_sizes(where, shape), _element(kind, fortran and len(shape) > 1, where)


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


def find_npz(path: str, name: str | None) -> Layout:
    """An array of numpy.savez lies in place; one of numpy.savez_compressed is converted."""
    where = f"open {shown_path(path)}"
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist()]
            name = chosen(path, name, names, "arrays")
            member = archive.infolist()[names.index(name)]
            with archive.open(member) as file:
                shape, element = _read_header(file, f"{where}: array {shown(name)}")
                header = file.tell()
    except ValueError:
        raise
    except Exception as problem:
        raise ValueError(
            f"{where}: it is no archive that NumPy would read: {line_of(problem)}: write it with numpy.savez"
        ) from None
    if member.compress_type == zipfile.ZIP_STORED:
        begin = _first_byte(path, member.header_offset) + header
        if header + element.itemsize * math.prod(shape) > member.file_size:
            raise ValueError(f"{where}: array {shown(name)} is cut short: write it with numpy.savez")
        return checked(Layout(path, shape, element, begin, name, element, fixed=_ARCHIVE_CHECKED))
    return kept_or_planned(
        Conversion(
            path, name, f"array {shown(name)} is compressed", (path,), element, shape[1:], lambda: shape[0],
            lambda: _inflated(path, member, shape, element, where),
        )
    )  # fmt: skip


def _first_byte(path: str, header: int) -> int:
    """Of a member, behind its own header: its name and what else it has there may be of another length than
    in the archive's directory."""
    with Path(path).open("rb") as file:
        file.seek(header)
        name, extra = struct.unpack("<26x2H", file.read(30))
    return header + 30 + int(name) + int(extra)


def _inflated(
    path: str, member: zipfile.ZipInfo, shape: Sequence[int], element: DType, where: str
) -> Iterator[np.ndarray[Any, Any]]:
    row = math.prod(shape[1:]) * element.itemsize
    rows = max(1, PART_BYTES // max(1, row))
    with zipfile.ZipFile(path) as archive, archive.open(member) as file:
        _read_header(file, where)
        for first in range(0, shape[0], rows):
            count = min(rows, shape[0] - first)
            part = file.read(count * row)
            if len(part) < count * row:
                raise ValueError("it is cut short")
            yield np.frombuffer(part, element.numpy).reshape(count, *shape[1:])

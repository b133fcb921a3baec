"""Archives of .npy files (.npz)."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.converted import PART_BYTES, Conversion, kept_or_planned
from penstock.arrays.dtypes import DType
from penstock.arrays.formats.npy_header import read_header
from penstock.arrays.formats.place import Layout, checked, chosen
from penstock.arrays.messages import line_of, shown, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence

_ARCHIVE_CHECKED = "an .npz archive has check sums of what is in it: save the array as .npy to store into it"


def find(path: str, name: str | None) -> Layout:
    """An array of numpy.savez lies in place; one of numpy.savez_compressed is converted."""
    where = f"open {shown_path(path)}"
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist()]
            name = chosen(path, name, names, "arrays")
            member = archive.infolist()[names.index(name)]
            with archive.open(member) as file:
                shape, element = read_header(file, f"{where}: array {shown(name)}")
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
    if not shape:
        raise ValueError(f"{where}: array {shown(name)} has no dimensions: an array needs at least one")
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
        read_header(file, where)
        for first in range(0, shape[0], rows):
            count = min(rows, shape[0] - first)
            part = file.read(count * row)
            if len(part) < count * row:
                raise ValueError("it is cut short")
            yield np.frombuffer(part, element.numpy).reshape(count, *shape[1:])

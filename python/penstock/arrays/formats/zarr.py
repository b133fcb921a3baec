"""Arrays of Zarr stores in a directory, of format 3 and 2."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from penstock.arrays.converted import PART_BYTES, Conversion, kept_or_planned
from penstock.arrays.dtypes import DTYPES, DType
from penstock.arrays.formats.place import Layout, checked, checked_sizes, chosen, needed
from penstock.arrays.messages import shown, shown_path

_V3, _V2_ARRAY, _V2_GROUP = "zarr.json", ".zarray", ".zgroup"
_BLOSC_HEAD = 16  # the last four bytes of which are its length
_V2_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float"}


@dataclass(frozen=True)
class _About:
    """What an array's metadata say of how it is stored."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    plain: bool  # little-endian numbers in C order, and no more
    first: str  # the file of its first chunk
    blosc: bool  # each of its chunks is a Blosc frame


def is_store(folder: str) -> bool:
    return any((Path(folder) / name).is_file() for name in (_V3, _V2_ARRAY, _V2_GROUP))


def find(path: str, name: str | None) -> Layout:
    """In place where the array is one chunk without codecs; else converted."""
    where = f"open {shown_path(path)}"
    folder = Path(path)
    if name is not None and (
        PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name
    ):
        raise ValueError(f"{where}: name {shown(name)}: name an array inside the store")
    if name is None and _is_array(folder):
        at, what = folder, "the array"
    elif name is not None and _is_array(folder / name):
        at, what = folder / name, f"array {shown(name)}"
    else:
        name = chosen(path, name, _arrays(folder), "arrays")
        at, what = folder / name, f"array {shown(name)}"
    try:
        about = _read_v3(at) if (at / _V3).is_file() else _read_v2(at)
        shape = checked_sizes(where, about.shape)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{where}: the metadata of {what} are malformed: write it with zarr") from None
    if about.dtype not in DTYPES:
        raise ValueError(f"{where}: {what} has elements of {shown(about.dtype)}: give one of numbers")
    if not shape:
        raise ValueError(f"{where}: {what} has no dimensions: an array needs at least one")
    element = DTYPES[about.dtype]
    one = len(about.chunks) == len(shape) and about.chunks[0] >= shape[0] and about.chunks[1:] == shape[1:]
    chunk = at / about.first
    if about.plain and (0 in shape or (one and chunk.is_file())):
        data = str(chunk if 0 not in shape else at / (_V3 if (at / _V3).is_file() else _V2_ARRAY))
        return checked(Layout(path, shape, element, 0, name, element, data=data))
    several = "has a chunk that was not written" if one else "is in several chunks"
    why = f"{what} {several}" if about.plain else f"{what} is compressed or of another order"
    sources = tuple(str(file) for file in _files(at))
    odd = next((file for file in sources if not Path(file).is_file()), None)
    if odd is not None:
        raise ValueError(f"{where}: {shown_path(odd)} is not a regular file: write {what} anew")
    return kept_or_planned(
        Conversion(
            path, name, why, sources, element, shape[1:], lambda: shape[0],
            lambda: _parts(path, at, about, element),
        )
    )  # fmt: skip


def _is_array(folder: Path) -> bool:
    if (folder / _V2_ARRAY).is_file():
        return True
    if not (folder / _V3).is_file():
        return False
    try:
        return bool(json.loads((folder / _V3).read_bytes())["node_type"] == "array")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # What is no group is an array, and then refused.
        return b'"group"' not in (folder / _V3).read_bytes()


def _arrays(folder: Path) -> list[str]:
    """The names of the arrays of a group; folders of chunks are not gone into."""
    names = []
    for at, folders, _ in os.walk(folder):
        if Path(at) != folder and _is_array(Path(at)):
            names.append(Path(at).relative_to(folder).as_posix())
            folders.clear()
    return sorted(names)


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        folders.sort()
        yield from (Path(at) / file for file in sorted(files))


def _numbers(given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(n) is int and n >= 0 for n in given):
        raise ValueError("no list of numbers")
    return tuple(given)


def _read_v3(folder: Path) -> _About:
    about = json.loads((folder / _V3).read_bytes())
    shape, dtype = _numbers(about["shape"]), about["data_type"]
    grid, keys, codecs = about["chunk_grid"], about["chunk_key_encoding"], about["codecs"]
    if about["zarr_format"] != 3 or grid["name"] != "regular" or not isinstance(codecs, list):
        raise ValueError("of another kind")
    plain = len(codecs) == 1 and codecs[0]["name"] == "bytes" and not about.get("storage_transformers")
    plain = plain and (codecs[0].get("configuration") or {}).get("endian", "little") == "little"
    options, default = keys.get("configuration") or {}, keys["name"] == "default"
    separator = options.get("separator", "/" if default else ".")
    first = separator.join((["c"] if default else []) + ["0"] * len(shape))
    plain = plain and separator in ("/", ".") and keys["name"] in ("default", "v2")
    blosc = bool(codecs) and codecs[-1]["name"] == "blosc"
    return _About(
        shape, _numbers(grid["configuration"]["chunk_shape"]), shown_type(dtype), plain, first, blosc
    )


def shown_type(dtype: Any) -> str:
    return dtype if isinstance(dtype, str) else str(dtype["name"])


def _read_v2(folder: Path) -> _About:
    about = json.loads((folder / _V2_ARRAY).read_bytes())
    shape, chunks = _numbers(about["shape"]), _numbers(about["chunks"])
    dtype = str(about["dtype"])
    bits = 8 * int(dtype[2:]) if dtype[2:].isdigit() else 0
    name = "bool" if dtype[1:] == "b1" else f"{_V2_KINDS.get(dtype[1:2], dtype)}{bits}"
    plain = about["compressor"] is None and not about["filters"] and about["order"] == "C"
    plain = plain and (dtype[0] != ">" or dtype[2:] == "1")
    separator = about.get("dimension_separator", ".")
    plain = plain and separator in ("/", ".")
    blosc = bool((about["compressor"] or {}).get("id") == "blosc")
    return _About(shape, chunks, name, plain, separator.join(["0"] * len(shape)), blosc)


def _check_blosc(where: str, files: Iterable[Path]) -> None:
    """ValueError for a chunk that is shorter than its header has it: Blosc would decompress what lies behind
    its end."""
    for file in files:
        if file.name in (_V3, _V2_ARRAY, _V2_GROUP, ".zattrs"):
            continue
        with file.open("rb") as chunk:
            head = chunk.read(_BLOSC_HEAD)
            size = os.fstat(chunk.fileno()).st_size
        wanted = int.from_bytes(head[12:16], "little") if len(head) == _BLOSC_HEAD else _BLOSC_HEAD
        if size < wanted:
            raise ValueError(
                f"{where}: chunk {shown_path(str(file))} is cut to {size} of {wanted} bytes: write it anew"
            )


def _parts(path: str, folder: Path, about: _About, element: DType) -> Iterator[np.ndarray[Any, Any]]:
    zarr = needed("zarr", path, "Zarr arrays in several or compressed chunks", "zarr")
    if about.blosc:
        _check_blosc(f"open {shown_path(path)}", _files(folder))
    array = zarr.open_array(str(folder), mode="r")
    fit = PART_BYTES // max(1, math.prod(about.shape[1:]) * element.itemsize)
    chunk = max(1, about.chunks[0])
    rows = max(1, fit // chunk) * chunk  # no chunk is decompressed twice
    for first in range(0, about.shape[0], rows):
        part = np.asarray(array[first : first + rows])
        if element.numpy.name != element.name:  # a type that NumPy does not have
            part = part.view(element.numpy)
        yield part.astype(element.numpy, copy=False)

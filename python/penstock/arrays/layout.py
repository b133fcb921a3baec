"""Where an array lies in a file: .npy, raw binary, safetensors, a column of an Arrow IPC file."""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.dtypes import DType, dtype_named

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAFETENSORS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
    "F64": "float64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
_MOST_HEADER = 100 << 20  # safetensors' own limit


@dataclass(frozen=True)
class Layout:
    """An array in C order, `offset` bytes into a file."""

    path: str
    shape: tuple[int, ...]
    dtype: DType
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def find_layout(
    path: str | os.PathLike[str],
    *,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    offset: int | None = None,
    name: str | None = None,
) -> Layout:
    """What a file holds, by its ending: .npy, .safetensors, .arrow or .feather; any other is raw.

    Raw files need `dtype`; without `shape` they are as many elements as the file has. `name`: the tensor of
    a safetensors file, the column of an Arrow file; not needed where there is one only. `dtype` for the
    others: another type of the same size, for what the format has no name for (bfloat16 in a .npy file of
    uint16).

    Errors: ValueError for a file that is not what its ending says, or a layout that needs more bytes than
    it has.
    """
    where = os.fspath(path)
    ending = Path(where).suffix.lower()
    if ending not in (".npy", ".safetensors", ".arrow", ".feather"):
        return _raw(where, dtype, shape, offset or 0)
    if shape is not None or offset is not None:
        raise ValueError(f"open {where}: its header says shape and offset: leave them out")
    if ending == ".npy":
        found = _npy(where)
    elif ending == ".safetensors":
        found = _safetensors(where, name)
    else:
        found = _arrow(where, name)
    return found if dtype is None else _retyped(found, dtype_named(dtype))


def _retyped(found: Layout, dtype: DType) -> Layout:
    if dtype.itemsize != found.dtype.itemsize:
        raise ValueError(
            f"open {found.path}: its elements are {found.dtype}, of {found.dtype.itemsize} bytes: "
            f"{dtype} has {dtype.itemsize}; leave dtype out"
        )
    return Layout(found.path, found.shape, dtype, found.offset)


def _checked(found: Layout) -> Layout:
    bytes_there = Path(found.path).stat().st_size
    if found.offset + found.nbytes > bytes_there:
        raise ValueError(
            f"open {found.path}: {found.dtype} of shape {found.shape} from byte {found.offset} needs "
            f"{found.offset + found.nbytes} bytes, and the file has {bytes_there}: correct the layout"
        )
    return found


def _raw(path: str, dtype: Any, shape: Sequence[int] | None, offset: int) -> Layout:
    if dtype is None:
        raise ValueError(
            f"open {path}: a raw file does not say what it holds: give dtype, and shape for rows"
        )
    element = dtype_named(dtype)
    if offset < 0:
        raise ValueError(f"open {path}: offset {offset}: give a number of bytes from 0")
    if shape is None:
        return Layout(path, ((Path(path).stat().st_size - offset) // element.itemsize,), element, offset)
    return _checked(Layout(path, tuple(int(n) for n in shape), element, offset))


def _npy(path: str) -> Layout:
    with Path(path).open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, kind = read(file)
        except ValueError as problem:
            raise ValueError(f"open {path}: it is no .npy file that NumPy would read: {problem}") from None
        offset = file.tell()
    if fortran and len(shape) > 1:
        raise ValueError(f"open {path}: its array is in Fortran order: save numpy.ascontiguousarray of it")
    if kind.byteorder == ">" or kind.hasobject or kind.fields:
        raise ValueError(f"open {path}: elements of {kind}: save it as one of the plain little-endian types")
    return _checked(Layout(path, tuple(shape), dtype_named(kind), offset))


def _chosen(path: str, name: str | None, names: Sequence[str], what: str) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    listed = ", ".join(list(names)[:8]) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"open {path}: name one of its {len(names)} {what} ({listed}), not {name}")


def _safetensors(path: str, name: str | None) -> Layout:
    with Path(path).open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else _MOST_HEADER + 1
        if length > _MOST_HEADER:
            raise ValueError(
                f"open {path}: it is no safetensors file: its first 8 bytes are no header's length"
            )
        try:
            header = json.loads(file.read(length))
            tensors = {key: value for key, value in header.items() if key != "__metadata__"}
            about = tensors[_chosen(path, name, list(tensors), "tensors")]
            shape, kind = tuple(int(n) for n in about["shape"]), str(about["dtype"])
            begin, end = (int(n) for n in about["data_offsets"])
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as problem:
            raise ValueError(f"open {path}: its safetensors header is malformed: {problem!r}") from None
    if kind not in _SAFETENSORS:
        raise ValueError(f"open {path}: elements of type {kind}: there is no such array type")
    found = Layout(path, shape, dtype_named(_SAFETENSORS[kind]), 8 + length + begin)
    if found.nbytes != end - begin or begin < 0:
        raise ValueError(
            f"open {path}: its header gives {end - begin} bytes to {found.dtype} of shape {shape}"
        )
    return _checked(found)


def _arrow(path: str, name: str | None) -> Layout:
    try:
        import pyarrow as pa
    except ImportError:
        raise ValueError(
            f"open {path}: pyarrow is needed to read Arrow files: pip install penstock[arrow]"
        ) from None
    try:
        with pa.memory_map(path) as source:
            whole = source.read_buffer()
        reader = pa.ipc.open_file(whole)
        column = _chosen(path, name, reader.schema.names, "columns")
        if reader.num_record_batches != 1:
            raise ValueError(
                f"open {path}: it has {reader.num_record_batches} record batches, whose columns do not "
                "follow each other: write it as one"
            )
        values = reader.get_batch(0).column(column)
        shape: tuple[int, ...] = (len(values),)
        while pa.types.is_fixed_size_list(values.type):
            shape = (*shape, values.type.list_size)
            values = values.flatten()
        if values.null_count or not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            raise ValueError(
                f"open {path}: column {column} of {values.type}: give one of numbers, or of lists of one "
                "length of them, without nulls"
            )
        begin = values.buffers()[1].address + values.offset * (values.type.bit_width // 8)
        element = dtype_named(values.type.to_pandas_dtype())
    except pa.ArrowInvalid as problem:
        raise ValueError(f"open {path}: it is no Arrow IPC file: {problem}") from None
    found = Layout(path, shape, element, begin - whole.address)
    if not 0 <= found.offset <= whole.size - found.nbytes:
        raise ValueError(f"open {path}: column {column} is compressed: write the file without compression")
    return found

"""Where an array lies in a file: .npy, raw binary, safetensors, a column of an Arrow IPC file."""

from __future__ import annotations

import errno
import json
import math
import operator
import os
import stat
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
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
HEADERS = (".npy", ".safetensors", ".arrow", ".feather")  # others are raw
_MOST_HEADER = 100 << 20  # safetensors' own limit


@dataclass(frozen=True)
class Layout:
    """An array in C order, `offset` bytes into a file."""

    path: str
    shape: tuple[int, ...]
    dtype: DType
    offset: int = 0
    name: str | None = None  # of the tensor or column, where the file has names
    stored: DType | None = None  # what its header calls the elements; None: a raw file, which has no header

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def path_text(path: str | bytes | os.PathLike[Any]) -> str:
    """TypeError for what is no path."""
    return os.fsdecode(path)


def checked_sizes(what: str, shape: Any) -> tuple[int, ...]:
    """A shape of whole numbers from 0, from a sequence or one number. TypeError and ValueError."""
    try:
        sizes = tuple(operator.index(n) for n in (shape if hasattr(shape, "__iter__") else (shape,)))
    except TypeError:
        raise TypeError(f"{what}: shape {shape!r}: give whole numbers") from None
    if any(n < 0 for n in sizes):
        raise ValueError(f"{what}: shape {sizes}: give numbers from 0")
    return sizes


def find_layout(
    path: str | bytes | os.PathLike[Any],
    *,
    dtype: Any = None,
    shape: Sequence[int] | int | None = None,
    offset: int | None = None,
    name: str | None = None,
) -> Layout:
    """What a file holds, by its ending: .npy, .safetensors, .arrow or .feather; any other is raw.

    Raw files need `dtype`; without `shape` they are as many elements as the file has. `name`: the tensor of
    a safetensors file, the column of an Arrow file; not needed where there is one only. `dtype` for the
    others: another type of the same size, for what the format has no name for (bfloat16 in a .npy file of
    uint16).

    Errors: ValueError for a file that is not what its ending says, or a layout that needs more bytes than
    it has; TypeError for a shape, an offset or a path that is none; PermissionError for one that this user
    may not read.
    """
    where = path_text(path)
    ending = Path(where).suffix.lower()
    _check_readable(where)
    if name is not None and ending not in HEADERS[1:]:
        raise ValueError(f"open {where}: name {name!r}: it holds one array without a name: leave name out")
    if ending not in HEADERS:
        return _raw(where, dtype, shape, offset)
    if shape is not None or offset is not None:
        raise ValueError(f"open {where}: its header says shape and offset: leave them out")
    if ending == ".npy":
        found = _npy(where)
    elif ending == ".safetensors":
        found = _safetensors(where, name)
    else:
        found = _arrow(where, name)
    found = replace(found, stored=found.dtype)
    return found if dtype is None else _retyped(found, dtype_named(dtype))


def check_layout(expected: Layout) -> None:
    """ValueError unless the file still holds this array, of this shape and type, and in this place."""
    header = expected.stored is not None
    where: dict[str, Any] = (
        {} if header else {"dtype": expected.dtype, "shape": expected.shape, "offset": expected.offset}
    )
    found = find_layout(expected.path, name=expected.name, **where)

    def told(layout: Layout) -> str:
        return f"{layout.stored or layout.dtype} of shape {layout.shape} from byte {layout.offset}"

    if told(found) != told(expected):
        raise ValueError(
            f"open {expected.path}: it holds {told(found)}, and what refers to it says {told(expected)}: "
            "somebody has written it anew: open the file by its path"
        )


def _check_readable(path: str) -> None:
    # Looked at before it is opened: opening a pipe would wait for its other end.
    kind = Path(path).stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISBLK(kind):
        raise ValueError(f"open {path}: it is neither a file nor a block device: name one of these")
    check_permission(path, os.R_OK, "read")


def check_permission(path: str, access: int, verb: str) -> None:
    """PermissionError for what this user may not do with a file."""
    if not os.access(path, access, effective_ids=True):
        problem = PermissionError(
            f"open {path}: this user may not {verb} it: give them the permission"
            + (", or open it read-only" if access == os.W_OK else "")
        )
        problem.errno = errno.EACCES  # with a filename its text would be another
        raise problem


def _retyped(found: Layout, dtype: DType) -> Layout:
    if dtype.itemsize != found.dtype.itemsize:
        raise ValueError(
            f"open {found.path}: its elements are {found.dtype}, of {found.dtype.itemsize} bytes: "
            f"{dtype} has {dtype.itemsize}; leave dtype out"
        )
    return replace(found, dtype=dtype)


def _bytes_of(path: str) -> int:
    with Path(path).open("rb") as file:  # its end, and not stat: of a block device, too
        return file.seek(0, os.SEEK_END)


def _checked(found: Layout) -> Layout:
    bytes_there = _bytes_of(found.path)
    if found.offset + found.nbytes > bytes_there:
        raise ValueError(
            f"open {found.path}: {found.dtype} of shape {found.shape} from byte {found.offset} needs "
            f"{found.offset + found.nbytes} bytes, and the file has {bytes_there}: correct the layout"
        )
    return found


def _raw(path: str, dtype: Any, shape: Any, offset: Any) -> Layout:
    if dtype is None:
        raise ValueError(
            f"open {path}: a raw file does not say what it holds: give dtype, and shape for rows"
        )
    element = dtype_named(dtype)
    try:
        begin = 0 if offset is None else operator.index(offset)
    except TypeError:
        raise TypeError(f"open {path}: offset {offset!r}: give a whole number of bytes") from None
    if begin < 0:
        raise ValueError(f"open {path}: offset {begin}: give a number of bytes from 0")
    if shape is not None:
        return _checked(Layout(path, checked_sizes(f"open {path}", shape), element, begin))
    there = _bytes_of(path)
    if begin > there:
        raise ValueError(f"open {path}: offset {begin}: the file has {there} bytes: give less")
    count, over = divmod(there - begin, element.itemsize)
    if over:
        raise ValueError(
            f"open {path}: the {there - begin} bytes from byte {begin} are {count} elements of {element} and "
            f"{over} bytes over: give shape, or the dtype that it was written in"
        )
    return Layout(path, (count,), element, begin)


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
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, TokenError) as problem:
            raise ValueError(
                f"open {path}: it is no .npy file that NumPy would read: {problem}: write it with numpy.save"
            ) from None
        offset = file.tell()
    if fortran and len(shape) > 1:
        raise ValueError(f"open {path}: its array is in Fortran order: save numpy.ascontiguousarray of it")
    if kind.byteorder == ">" or kind.hasobject or kind.fields:
        raise ValueError(f"open {path}: elements of {kind}: save it as one of the plain little-endian types")
    return _checked(Layout(path, checked_sizes(f"open {path}", shape), dtype_named(kind), offset))


def _chosen(path: str, name: str | None, names: Sequence[str], what: str) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    listed = ", ".join(list(names)[:8]) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"open {path}: name one of its {len(names)} {what} ({listed}), not {name}")


def _safetensors_header(path: str) -> tuple[int, dict[str, Any]]:
    """Its length, and what it says."""
    with Path(path).open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else _MOST_HEADER + 1
        if length > _MOST_HEADER:
            raise ValueError(
                f"open {path}: it is no safetensors file: its first 8 bytes are no header's length"
            )
        try:
            header = json.loads(file.read(length))
            return length, {key: value for key, value in header.items() if key != "__metadata__"}
        except (ValueError, AttributeError, RecursionError) as problem:
            raise _malformed(path, problem) from None


def _malformed(path: str, problem: object) -> ValueError:
    return ValueError(
        f"open {path}: its safetensors header is malformed: {problem}: write it with safetensors"
    )


def _safetensors(path: str, name: str | None) -> Layout:
    length, tensors = _safetensors_header(path)
    name = _chosen(path, name, list(tensors), "tensors")
    about = tensors[name]
    try:
        shape, kind, (begin, end) = about["shape"], about["dtype"], about["data_offsets"]
        numbers = [*shape, begin, end]
    except (KeyError, TypeError, ValueError):
        numbers, kind = [None], None
    if not all(type(n) is int and n >= 0 for n in numbers) or not isinstance(kind, str):
        raise _malformed(path, f"tensor {name} is {str(about)[:80]}")
    if kind not in _SAFETENSORS:
        raise ValueError(
            f"open {path}: tensor {name} of type {kind}: there is no such array type: store it in one of "
            f"{', '.join(_SAFETENSORS)}"
        )
    found = Layout(path, tuple(shape), dtype_named(_SAFETENSORS[kind]), 8 + length + begin, name)
    if found.nbytes != end - begin:
        raise _malformed(
            path, f"it gives {end - begin} bytes to tensor {name}, {found.dtype} of shape {shape}"
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
        schema = reader.schema
        column = _chosen(path, name, schema.names, "columns")
        batches, kind = reader.num_record_batches, schema.field(column).type
        values = reader.get_batch(0).column(column) if batches == 1 else None
    except pa.ArrowInvalid as problem:
        raise ValueError(f"open {path}: it is no Arrow IPC file: {problem}") from None
    if batches > 1:
        raise ValueError(
            f"open {path}: it has {batches} record batches, whose columns do not follow each other: write it "
            "as one, as write_feather(table.combine_chunks(), path, 'uncompressed', chunksize=len(table))"
        )
    shape: tuple[int, ...] = (0 if values is None else len(values),)
    nulls = 0 if values is None else values.null_count
    while pa.types.is_fixed_size_list(kind):
        shape, kind = (*shape, kind.list_size), kind.value_type
        if values is not None and not nulls:
            values = values.flatten()
            nulls = values.null_count
    if nulls or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        has = f", with {nulls} nulls" if nulls else ""
        raise ValueError(
            f"open {path}: column {column} of {schema.field(column).type}{has}: give one of numbers, or of "
            "lists of one length of them, without nulls"
        )
    element = dtype_named(kind.to_pandas_dtype())
    if values is None or math.prod(shape) == 0:
        return Layout(path, shape, element, 0, column)
    begin = values.buffers()[1].address + values.offset * element.itemsize
    found = Layout(path, shape, element, begin - whole.address, column)
    if not 0 <= found.offset <= whole.size - found.nbytes:
        raise ValueError(
            f"open {path}: column {column} is compressed: write the file without compression, as "
            "write_feather(table, path, 'uncompressed')"
        )
    return found

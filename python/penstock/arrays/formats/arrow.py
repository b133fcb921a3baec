"""Columns of Arrow IPC files and streams, and of Parquet files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from penstock.arrays.converted import PART_BYTES, Conversion, kept, kept_or_planned
from penstock.arrays.dtypes import DType, dtype_named
from penstock.arrays.formats.place import Layout, checked, chosen, needed
from penstock.arrays.messages import line_of, shown, shown_path

_FILE_MAGIC = b"ARROW1"
_FILE_HEAD = 8  # the magic, and two bytes of padding


@contextmanager
def _reading(path: str, what: str) -> Iterator[None]:
    """Whatever pyarrow raises about a file is a ValueError; ours pass."""
    try:
        yield
    except Exception as problem:
        where = f"open {shown_path(path)}: "
        if isinstance(problem, ValueError) and str(problem).startswith(where):
            raise
        raise ValueError(
            f"{where}it is no {what} that pyarrow would read: {line_of(problem)}: write it anew"
        ) from None


def _row(path: str, column: str, given: Any) -> tuple[tuple[int, ...], DType]:
    """The shape and the elements of a column's rows."""
    import pyarrow as pa

    shape: tuple[int, ...] = ()
    kind = given
    if isinstance(kind, pa.FixedShapeTensorType):
        order = list(kind.permutation or ())
        if order == sorted(order):
            shape, kind = tuple(kind.shape), kind.value_type
    while pa.types.is_fixed_size_list(kind):
        shape, kind = (*shape, kind.list_size), kind.value_type
    if min(shape, default=0) < 0 or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise _refused(path, column, f"of {shown(str(given))}")
    return shape, dtype_named(kind.to_pandas_dtype())


def _refused(path: str, column: str, has: str) -> ValueError:
    return ValueError(
        f"open {shown_path(path)}: column {shown(column)} {has}: give one of numbers, or of "
        "lists of one length of them, without nulls"
    )


def _values(path: str, column: str, values: Any) -> Any:
    """The innermost numbers of a column, one behind the other."""
    import pyarrow as pa

    values.validate()
    if isinstance(values, pa.ExtensionArray):  # tensors of one shape
        values = values.storage
    while True:
        if values.null_count:
            raise _refused(path, column, f"of {shown(str(values.type))}, with {values.null_count} nulls")
        if not pa.types.is_fixed_size_list(values.type):
            return values
        values = values.flatten()


def _is_file(whole: Any) -> bool:
    """Else it is a stream."""
    return bool(whole.slice(0, len(_FILE_MAGIC)).to_pybytes() == _FILE_MAGIC)


def _mapped(path: str) -> Any:
    import pyarrow as pa

    with pa.memory_map(path) as source:
        return source.read_buffer()


def _streamed(whole: Any, index: int) -> Iterator[Any]:
    """The record batches in turn, with this column alone: nothing else is decompressed, nothing copied. A
    file is a stream behind its magic."""
    import pyarrow as pa

    stream = whole.slice(_FILE_HEAD) if _is_file(whole) else whole
    for batch in pa.ipc.open_stream(stream, options=pa.ipc.IpcReadOptions(included_fields=[index])):
        batch.validate()
        yield batch


def _batches(whole: Any, index: int) -> Iterator[Any]:
    """The same, of a file as its footer has them."""
    import pyarrow as pa

    if not _is_file(whole):
        yield from _streamed(whole, index)
        return
    reader = pa.ipc.open_file(whole, options=pa.ipc.IpcReadOptions(included_fields=[index]))
    for k in range(reader.num_record_batches):
        batch = reader.get_batch(k)
        batch.validate()
        yield batch


def find(path: str, name: str | None) -> Layout:
    """In place where the column is one uncompressed record batch, else converted."""
    pa = needed("pyarrow", path, "Arrow files", "arrow")
    with _reading(path, "Arrow IPC file or stream"):
        if Path(path).stat().st_size == 0:
            raise ValueError("it is empty")
        whole = _mapped(path)
        reader = pa.ipc.open_file(whole) if _is_file(whole) else pa.ipc.open_stream(whole)
        names = list(reader.schema.names)
        column = chosen(path, name, names, "columns")
        index = names.index(column)
        row, element = _row(path, column, reader.schema.field(index).type)
        batches = reader.num_record_batches if _is_file(whole) else None
        plan = Conversion(
            path, column, f"column {shown(column)} {_why(batches)}", (path,), element, row,
            lambda: sum(batch.num_rows for batch in _batches(_mapped(path), index)),
            lambda: _parts(path, column, row, element, _batches(_mapped(path), index)),
        )  # fmt: skip
        if batches == 0:
            return Layout(path, (0, *row), element, 0, column, element)
        found = kept(plan)
        if found is None and batches in (None, 1):
            found = _in_place(path, column, row, element, whole, index)
        return found or kept_or_planned(plan)


def _why(batches: int | None) -> str:
    if batches is None:
        return "is compressed, or lies in several record batches"
    return "is compressed" if batches == 1 else f"lies in {batches} record batches"


def _in_place(
    path: str, column: str, row: tuple[int, ...], element: DType, whole: Any, index: int
) -> Layout | None:
    """None where the bytes are not in the file as they are."""
    found = _first_two(whole, index)
    if not found:
        return Layout(path, (0, *row), element, 0, column, element)
    first = found[0]
    if first is None or len(found) > 1:
        return None
    values = _values(path, column, first.column(0))
    shape = (first.num_rows, *row)
    if math.prod(shape) == 0:
        return Layout(path, shape, element, 0, column, element)
    begin = values.buffers()[1].address + values.offset * element.itemsize - whole.address
    place = Layout(path, shape, element, begin, column, element)
    return checked(place) if 0 <= begin <= whole.size - place.nbytes else None


def _first_two(whole: Any, index: int) -> list[Any]:
    """Record batches, or None in the place of one that is compressed."""
    import pyarrow as pa

    try:
        return list(itertools.islice(_streamed(whole, index), 2))
    except (pa.ArrowInvalid, OSError):
        if not _is_file(whole):
            raise
    # What lies before the footer is no stream, as in files of polars. A reader of some columns would copy
    # them, and one of all decompresses all.
    (batch,) = _batches(whole, index)
    reader = pa.ipc.open_file(whole)
    numbers = [
        kind for kind in reader.schema.types if pa.types.is_integer(kind) or pa.types.is_floating(kind)
    ]
    if batch.num_rows * sum(kind.bit_width for kind in numbers) > 8 * whole.size:
        return [None]
    return [reader.get_batch(0).select([index])]


def _parts(
    path: str, column: str, row: tuple[int, ...], element: DType, batches: Iterator[Any]
) -> Iterator[np.ndarray[Any, Any]]:
    for batch in batches:
        values = _values(path, column, batch.column(0))
        whole = values.to_numpy(zero_copy_only=False).astype(element.numpy, copy=False)
        whole = whole.reshape(batch.num_rows, *row)
        rows = max(1, PART_BYTES // max(1, math.prod(row) * element.itemsize))
        for first in range(0, batch.num_rows, rows):
            yield whole[first : first + rows]


def find_parquet(path: str, name: str | None) -> Layout:
    """Converted: Parquet encodes its pages."""
    parquet = needed("pyarrow.parquet", path, "Parquet files", "arrow")
    with _reading(path, "Parquet file"):
        with parquet.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        column = chosen(path, name, list(schema.names), "columns")
        row, element = _row(path, column, schema.field(schema.names.index(column)).type)

        def parts() -> Iterator[np.ndarray[Any, Any]]:
            with parquet.ParquetFile(path) as file:
                yield from _parts(path, column, row, element, file.iter_batches(columns=[column]))

        why = f"column {shown(column)} is encoded, as all of Parquet"
        return kept_or_planned(Conversion(path, column, why, (path,), element, row, lambda: rows, parts))

"""Arrow's types and files: columns in place, and whole tables converted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from penstock.columns.folders import FolderWriter
from penstock.columns.layout import ColumnPlace, Piece, TableLayout, check_names
from penstock.columns.types import MOST_DIGITS, ColumnType

Progress = Callable[[str, int, int], None]


def type_of(kind: Any) -> ColumnType | str:
    """The type of an Arrow column, or why there is none."""
    import pyarrow as pa

    t = pa.types
    text = kind.value_type if t.is_dictionary(kind) else kind
    if t.is_string(text) or t.is_large_string(text) or t.is_string_view(text):
        return ColumnType("string")
    if t.is_boolean(kind):
        return ColumnType("boolean")
    if t.is_integer(kind):
        return ColumnType("integer", kind.bit_width, t.is_signed_integer(kind))
    if t.is_floating(kind) and kind.bit_width >= 32:
        return ColumnType("float", kind.bit_width)
    if t.is_date32(kind):
        return ColumnType("date")
    if t.is_timestamp(kind):
        return ColumnType("timestamp", unit=kind.unit, zone=kind.tz)
    if t.is_decimal128(kind):
        if 0 <= kind.scale <= MOST_DIGITS:
            return ColumnType("decimal", scale=kind.scale)
        return f"it is {kind}: decimals have up to {MOST_DIGITS} digits behind the point here"
    return f"it is {kind}: cast it to a number, a date, a time or a text"


def is_stream(path: Path) -> bool:
    """Whether an Arrow file is a stream, without the magic and the footer of a file."""
    with path.open("rb") as file:
        return file.read(4) == b"\xff\xff\xff\xff"


def open_ipc(path: str) -> TableLayout | None:
    """The columns of an uncompressed Arrow IPC file, where they lie; None where a column that can be used
    does not: it is compressed, or text without a dictionary.

    Raises:
        ValueError: It is damaged.
    """
    import pyarrow as pa

    try:
        with pa.memory_map(path) as source:
            whole = source.read_buffer()
        reader = pa.ipc.open_file(whole)
        batches = [reader.get_batch(k) for k in range(reader.num_record_batches)]
        for batch in batches:
            batch.validate()
    except (pa.ArrowInvalid, OSError) as problem:
        raise ValueError(
            f"open {path}: it is no Arrow IPC file that pyarrow would read: {problem}: write it anew"
        ) from None
    check_names(reader.schema.names, path)
    begin, end = whole.address, whole.address + whole.size
    layout = TableLayout(path, [batch.num_rows for batch in batches], [])

    def piece(buffer: Any, offset_bits: int) -> Piece | None:
        if buffer is None or buffer.size == 0:
            return Piece(path, 0, 0)
        if not begin <= buffer.address <= buffer.address + buffer.size <= end:
            return None
        byte, bit = divmod(offset_bits, 8)
        return Piece(path, buffer.address - begin + byte, buffer.size - byte, bit)

    for number, field in enumerate(reader.schema):
        kind = type_of(field.type)
        if isinstance(kind, str):
            layout.refused[field.name] = kind
            continue
        if kind.kind == "string" and not pa.types.is_dictionary(field.type):
            return None
        column = ColumnPlace(field.name, kind, _encoding_of(kind, field.type))
        words: Any = None
        for batch in batches:
            values = batch.column(number)
            if pa.types.is_dictionary(field.type):
                if words is not None and not words.equals(values.dictionary):
                    return None
                words, values = values.dictionary, values.indices
            validity, data = values.buffers()[:2]
            place = piece(data, values.offset * column.bits)
            valid = piece(validity, values.offset) if validity is not None and values.null_count else None
            if place is None or (validity is not None and values.null_count and valid is None):
                return None
            column.pieces.append(Piece(place.path, place.offset, place.nbytes, place.first_bit, valid))
        if words is not None:
            listed = tuple(words.to_pylist())
            if len(set(listed)) < len(listed) or None in listed:  # a text has one code
                return None
            column.type = ColumnType("string", words=listed)
        layout.columns.append(column)
    return layout


def _encoding_of(kind: ColumnType, arrow: Any) -> str:
    match kind.kind:
        case "boolean":
            return "bits"
        case "decimal":
            return "int128"
        case "date":
            return "int32"
        case "timestamp":
            return "int64"
        case "string":
            index = arrow.index_type
            return f"{'' if str(index).startswith('i') else 'u'}int{index.bit_width}"
        case "float":
            return f"float{kind.width}"
        case _:
            return f"{'' if kind.signed else 'u'}int{kind.width}"


def convert(
    batches: Iterable[Any],
    schema: Any,
    folder: str | os.PathLike[str],
    rows: int = 0,
    progress: Progress | None = None,
) -> dict[str, str]:
    """Write record batches as a folder of columns, some rows at a time.

    Returns the columns that were left out, with why.
    """
    kinds, refused = {}, {}
    check_names(schema.names, "a table")
    for field in schema:
        kind = type_of(field.type)
        if isinstance(kind, str):
            refused[field.name] = kind
        else:
            kinds[field.name] = kind
    if not kinds and refused:
        why = "; ".join(f"{name!r}: {reason}" for name, reason in [*refused.items()][:3])
        raise ValueError(f"convert: there is no column that can be used ({why})")
    if refused:
        shown = ", ".join(f"{name!r} ({reason})" for name, reason in [*refused.items()][:4])
        warnings.warn(f"{len(refused)} columns are left out: {shown}", stacklevel=2)
    done = 0
    with FolderWriter(folder, kinds, refused=refused) as writer:
        for batch in batches:
            values, valid = {}, {}
            for name, kind in kinds.items():
                values[name], valid[name] = _numbers(batch.column(name), kind, writer, name)
            writer.add(values, valid)
            done += batch.num_rows
            if progress is not None:
                progress("converting rows", done, max(rows, done))
    return refused


def _numbers(array: Any, kind: ColumnType, writer: FolderWriter, name: str) -> tuple[Any, Any]:
    """A batch's values as they are stored, and which there are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    valid = (
        np.ones(len(array), bool)
        if array.null_count == 0
        else pc.is_valid(array).to_numpy(zero_copy_only=False)
    )
    match kind.kind:
        case "string":
            if not pa.types.is_dictionary(array.type):
                array = array.dictionary_encode()
            codes = writer.columns[name].codes(array.dictionary.to_pylist())
            index = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
            return (codes[index] if len(codes) else np.zeros(len(array), np.int64)), valid
        case "decimal":
            wide = np.frombuffer(array.buffers()[1] or b"", np.int64)[
                2 * array.offset : 2 * (array.offset + len(array))
            ]
            low, high = wide[::2], wide[1::2]
            if not np.array_equal(high[valid], low[valid] >> 63):
                raise ValueError(
                    f"convert: column {name!r} has decimals beyond 64 bits: leave it out, or cast it"
                )
            return low, valid
        case "date":
            array = array.cast(pa.int32())
        case "timestamp":
            array = array.cast(pa.int64())
    if array.null_count:
        array = array.fill_null(False if kind.kind == "boolean" else 0)
    return array.to_numpy(zero_copy_only=False), valid


def read_file(path: Path, memory: int) -> tuple[Any, Iterator[Any], int]:
    """Schema, record batches of some MiB, and rows (0: not known) of a Parquet, ORC, CSV or Arrow file.

    Raises:
        ValueError: It is damaged, or of another kind.
    """
    import pyarrow as pa

    try:
        match path.suffix.lower():
            case ".parquet" | ".pq":
                import pyarrow.parquet as pq

                file = pq.ParquetFile(path)
                return (
                    file.schema_arrow,
                    _checked(path, file.iter_batches(_rows_for(file.schema_arrow, memory))),
                    file.metadata.num_rows,
                )
            case ".orc":
                from pyarrow import orc

                stripes = orc.ORCFile(path)
                return (
                    stripes.schema,
                    _checked(path, (stripes.read_stripe(k) for k in range(stripes.nstripes))),
                    stripes.nrows,
                )
            case ".csv" | ".tsv" | ".gz":
                from pyarrow import csv

                block = max(1 << 16, min(memory // 16, 64 << 20))
                parse = csv.ParseOptions(delimiter="\t" if ".tsv" in path.suffixes else ",")
                table = csv.open_csv(path, csv.ReadOptions(block_size=block), parse)
                return table.schema, _checked(path, iter(table)), 0
            case _:
                reader = _ipc(path)
                return reader.schema, _checked(path, iter(reader)), 0
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as problem:
        raise ValueError(
            f"open {path}: pyarrow cannot read it: {str(problem).splitlines()[0]}: write it anew"
        ) from None


def _checked(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    try:
        yield from batches
    except (pa.ArrowException, OSError) as problem:
        raise ValueError(
            f"open {path}: pyarrow cannot read it: {str(problem).splitlines()[0]}: write it anew"
        ) from None


def _ipc(path: Path) -> Any:
    import pyarrow as pa

    source = pa.memory_map(str(path))
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(source)
    return pa.RecordBatchReader.from_batches(
        file.schema, (file.get_batch(k) for k in range(file.num_record_batches))
    )


def _rows_for(schema: Any, memory: int) -> int:
    """Of a batch: an eighth of what a conversion may take, where a value takes 16 bytes."""
    return max(1024, min(1 << 20, memory // max(1, 8 * 16 * len(schema))))

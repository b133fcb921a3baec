"""Arrow's types and files: columns in place, and record batches converted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.columns.folders import FolderWriter, UnusableError
from penstock.columns.layout import ColumnPlace, Piece, TableLayout, check_names
from penstock.columns.messages import one_line
from penstock.columns.packing import PACK_ROWS, ColumnWriter
from penstock.columns.types import MOST_DIGITS, ColumnType
from penstock.native import load_native

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
    return f"it is {kind}: write it as a number, a date, a timestamp or a text"


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
        names = reader.schema.names  # they may be no UTF-8
    except (pa.ArrowException, ValueError, OSError) as problem:
        damaged = _damaged_column(path)
        where = (
            f"column {damaged!r} is damaged"
            if damaged is not None
            else "it is no Arrow IPC file that pyarrow would read"
        )
        raise ValueError(f"open {path}: {where}: {one_line(problem)}: write it anew") from None
    check_names(names, path)
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


def _damaged_column(path: str) -> str | None:
    """The first column that cannot be read where others can; None where none can."""
    import pyarrow as pa

    try:
        with pa.memory_map(path) as source:
            whole = source.read_buffer()
        names = pa.ipc.open_file(whole).schema.names
    except (pa.ArrowException, ValueError, OSError):
        return None
    damaged = [name for number, name in enumerate(names) if not _is_readable(whole, number)]
    return damaged[0] if 0 < len(damaged) < len(names) else None


def _is_readable(whole: Any, column: int) -> bool:
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(whole, options=pa.ipc.IpcReadOptions(included_fields=[column]))
        for k in range(reader.num_record_batches):
            reader.get_batch(k).validate()
    except (pa.ArrowException, ValueError, OSError):
        return False
    return True


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
    threads: int = 0,
    progress: Progress | None = None,
) -> None:
    """Write record batches as a folder of columns: those of one batch by several threads, while the next is
    decoded.

    The types are the schema's; texts may come with dictionaries that it does not have.
    """
    kinds, refused = {}, {}
    check_names(schema.names, "a table")
    for field in schema:
        kind = type_of(field.type)
        if isinstance(kind, str):
            refused[field.name] = kind
        else:
            kinds[field.name] = kind
    done = 0
    with FolderWriter(folder, kinds, refused=refused, threads=threads) as writer:
        columns = {name: _Column(writer.columns[name], schema.field(name).type) for name in kinds}
        for batch in batches:
            writer.put(partial(_add, columns, batch))
            done += batch.num_rows
            if progress is not None:
                progress("converting rows", done, max(rows, done))
        writer.put(lambda column: columns[column.name].finish())
    if writer.refused:
        shown = ", ".join(f"{name!r} ({reason})" for name, reason in [*writer.refused.items()][:4])
        many = len(writer.refused)
        warnings.warn(f"{many} column{'s are' if many > 1 else ' is'} left out: {shown}", stacklevel=2)


def _add(columns: dict[str, _Column], batch: Any, writer: ColumnWriter) -> None:
    columns[writer.name].add(batch.column(writer.name))


class _Column:
    """An Arrow column on its way into a folder."""

    def __init__(self, writer: ColumnWriter, kind: Any) -> None:
        import pyarrow as pa

        self.writer = writer
        self.listed = pa.types.is_dictionary(kind)
        """Whether the source's dictionary says which texts there are, used or not, and their order."""
        self._texts = load_native().ColumnTexts()
        self._words: Any = None
        """Of the batch."""
        self._codes: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        """Of these; -1: not seen yet."""

    def add(self, array: Any) -> None:
        """The rows of a batch. Nulls are stored as its first value."""
        import pyarrow.compute as pc

        filler = None
        if array.null_count and (first := pc.index(pc.is_valid(array), True).as_py()) >= 0:
            filler = self._numbers(array.slice(first, 1), None)[0]
        for first in range(0, max(1, len(array)), PACK_ROWS):
            part = array.slice(first, PACK_ROWS)
            valid = _valid(part)
            self.writer.add(self._numbers(part, valid), valid, filler)

    def _numbers(self, array: Any, valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[Any]:
        """Values as they are stored, anything in the place of nulls."""
        match self.writer.type.kind:
            case "string":
                return self._coded(array, valid)
            case "decimal":
                return self._units(array, valid)
            case "boolean":
                return _stored(array.cast("uint8"), np.uint8)
            case "date":
                return _stored(array, np.int32)
            case _:
                return _stored(array, self.writer.stored)

    def _units(self, array: Any, valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
        halves = _stored(array, np.dtype([("low", np.int64), ("high", np.int64)]))
        low, high = halves["low"], halves["high"]
        wrong = high != low >> 63
        if bool((wrong if valid is None else wrong & valid).any()):
            raise UnusableError("it has decimals beyond 64 bits: write it as float64")
        return np.ascontiguousarray(low)

    def _coded(self, array: Any, valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
        import pyarrow as pa

        if not pa.types.is_dictionary(array.type):
            return self._encode(array, valid, words=False)
        if self._words is None or not array.dictionary.equals(self._words):
            self._words = array.dictionary
            self._codes = self._codes_of(self._words) if self.listed else np.full(len(self._words), -1)
        if not len(self._words):
            return np.zeros(len(array), np.int64)
        index = array.indices.fill_null(0) if array.null_count else array.indices
        index = _stored(index, np.dtype(index.type.to_pandas_dtype()))
        codes: npt.NDArray[np.int64] = self._codes[index]
        if codes.size and codes.min() < 0:
            self._add_words(index if valid is None else index[valid])
            codes = self._codes[index]
        return codes

    def _add_words(self, index: npt.NDArray[Any]) -> None:
        """Gives codes to words that have none, in the order in which they appear."""
        unseen, first = np.unique(index[self._codes[index] < 0], return_index=True)
        unseen = unseen[np.argsort(first)]
        self._codes[unseen] = self._codes_of(self._words.take(unseen))

    def _codes_of(self, words: Any) -> npt.NDArray[np.int64]:
        return self._encode(words, _valid(words), words=True)

    def _encode(
        self, texts: Any, valid: npt.NDArray[np.bool_] | None, *, words: bool
    ) -> npt.NDArray[np.int64]:
        """Codes of texts, new ones added."""
        import pyarrow as pa

        if not len(texts):
            return np.zeros(0, np.int64)
        texts = texts.cast(pa.large_string())
        _, ends, letters = texts.buffers()
        offsets = np.frombuffer(ends, np.int64, len(texts) + 1, 8 * texts.offset)
        codes: npt.NDArray[np.int64] = self._texts.encode(
            offsets, np.frombuffer(letters or b"", np.uint8), valid, words
        )
        return codes

    def finish(self) -> None:
        """Hands over the words."""
        self.writer.words = self._texts.texts()


def _valid(array: Any) -> npt.NDArray[np.bool_] | None:
    """Which values there are; None: all."""
    import pyarrow.compute as pc

    return _stored(pc.is_valid(array).cast("uint8"), np.uint8).view(bool) if array.null_count else None


def _stored(array: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An Arrow array's values in place, anything where there are nulls."""
    dtype = np.dtype(dtype)
    if not len(array):
        return np.zeros(0, dtype)
    values: npt.NDArray[Any] = np.frombuffer(
        array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize
    )
    return values

"""CSV files: record batches whose types are those of the whole file, whatever fits a block of it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.columns.layout import check_names

MAX_BLOCK = 1 << 30
LEAST_BLOCK = 1 << 16
NULLS = {"null_values": [""], "strings_can_be_null": True}
"""An empty field is a null, of texts too, and no word is: as DuckDB has it."""
WIDE = "decimal128(38, 0)"
"""The type that stands for integers of which the reader has made floating-point numbers, until the whole file
is known: they are beyond 64 bits, or have a plus."""


@dataclass
class CsvForm:
    """What is known of a file: it changes where a later block does not fit the types of those before."""

    block: int
    """Bytes that are parsed at once."""
    types: dict[str, Any] = field(default_factory=dict)
    """Of columns that have been looked at as a whole; others are inferred from the first block."""
    one_column: bool = False
    """An empty line is a row then, whose value is a null."""


class ReadAgainError(Exception):
    """The file is to be read from its beginning: its form has changed."""


def open_csv(path: Path, form: CsvForm, one_thread: bool) -> tuple[Any, Iterator[Any]]:
    """Schema and batches. A column without a value is one of texts.

    Raises:
        ReadAgainError: By the batches, when `form` has changed.
        pyarrow.ArrowInvalid: It is no CSV file.
    """
    import pyarrow as pa

    try:
        reader = _reader(path, form, form.types, one_thread)
        if len(reader.schema) == 1 and not form.one_column:
            form.one_column = True
            reader = _reader(path, form, form.types, one_thread)
    except pa.ArrowInvalid as problem:
        _change(path, form, form.types, problem)
        raise ReadAgainError from None
    check_names(reader.schema.names, str(path))
    if wide := _wide_integers(path, form, reader.schema):
        form.types.update(wide)
        raise ReadAgainError
    text = [
        pa.field(each.name, pa.string()) if pa.types.is_null(each.type) else each for each in reader.schema
    ]
    schema = pa.schema(text)
    return schema, _batches(path, form, reader, schema)


def _batches(path: Path, form: CsvForm, reader: Any, schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    try:
        for batch in reader:
            yield batch.cast(schema)
    except pa.ArrowInvalid as problem:
        _change(path, form, {each.name: each.type for each in reader.schema}, problem)
        raise ReadAgainError from None


def _change(path: Path, form: CsvForm, types: dict[str, Any], problem: Exception) -> None:
    """Changes a form that has not fit the file.

    Args:
        path: Of the file.
        form: What is changed.
        types: What the file has been read as.
        problem: What the reader has raised; raised again if no form helps.
    """
    if _grown(form, problem):
        return
    wrong = re.match(r"In CSV column #(\d+): CSV conversion error to ", str(problem))
    if wrong is None or int(wrong[1]) >= len(types):
        raise problem
    _widen(path, form, types, [*types][int(wrong[1])])


def _reader(path: Path, form: CsvForm, types: dict[str, Any], one_thread: bool, **options: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    parse = csv.ParseOptions(
        delimiter="\t" if ".tsv" in path.suffixes else ",",
        newlines_in_values=True,
        ignore_empty_lines=not form.one_column,
    )
    convert = csv.ConvertOptions(column_types=types, **NULLS, **options)
    skipped = _empty_lines_before_names(path) if form.one_column else 0
    while True:
        read = csv.ReadOptions(use_threads=not one_thread, block_size=form.block, skip_rows=skipped)
        try:
            return csv.open_csv(path, read, parse, convert)
        except pa.ArrowInvalid as problem:
            if _grown(form, problem):
                continue
            with pa.input_stream(path) as file:
                line = file.read(LEAST_BLOCK)
            if not line.strip() or len(line) == LEAST_BLOCK or b"\n" in line:
                raise
            return csv.open_csv(io.BytesIO(line + b"\n"), read, parse, convert)  # a header alone


def _empty_lines_before_names(path: Path) -> int:
    import pyarrow as pa

    with pa.input_stream(path) as file:
        begin = bytes(file.read(LEAST_BLOCK))
    return len(begin[: len(begin) - len(begin.lstrip(b"\r\n"))].splitlines())


def _grown(form: CsvForm, problem: Exception) -> bool:
    """Whether the problem is a row that is longer than a block, and blocks can be longer."""
    if "straddling object" not in str(problem) or form.block >= MAX_BLOCK:
        return False
    form.block = min(4 * form.block, MAX_BLOCK)
    return True


def _widen(path: Path, form: CsvForm, before: dict[str, Any], wrong: str) -> None:
    """Looks at the whole file, and sets the types of all columns; `wrong` has another than before."""
    import pyarrow as pa

    form.types = dict(before)
    if _is_text(before[wrong]):
        form.types[wrong] = pa.binary()
        return
    open_types = [name for name, kind in before.items() if not _is_text(kind)]
    long: set[str] = set()
    while True:
        try:
            found = dict.fromkeys(open_types, pa.null())
            for batch in _reader(
                path, form, dict.fromkeys(before, pa.binary()), False, include_columns=open_types
            ):
                for each in _inferred(batch):
                    texts = batch.column(each.name)
                    wide = each.type == pa.float64() and _is_whole(texts)
                    if (wide or each.type == pa.int64()) and _has_long_integer(texts):
                        long.add(each.name)
                    found[each.name] = joined(found[each.name], pa.decimal128(38) if wide else each.type)
            break
        except pa.ArrowInvalid as problem:
            if not _grown(form, problem):
                raise
    whole = {name: pa.string() if name in long else pa.float64() for name in found}
    form.types.update({name: whole[name] if str(kind) == WIDE else kind for name, kind in found.items()})
    if form.types[wrong] == before[wrong]:  # what fits each block does not fit all of them
        form.types[wrong] = pa.string()


def _inferred(batch: Any) -> Any:
    """The schema of a batch of texts by the reader's own rules."""
    from pyarrow import csv

    if not batch.num_rows:
        return []
    text = io.BytesIO()
    csv.write_csv(batch, text)
    read = csv.ReadOptions(block_size=min(max(text.tell(), LEAST_BLOCK), MAX_BLOCK))
    text.seek(0)
    parse, convert = csv.ParseOptions(newlines_in_values=True), csv.ConvertOptions(**NULLS)
    return csv.read_csv(text, read, parse, convert).schema


def _wide_integers(path: Path, form: CsvForm, schema: Any) -> dict[str, Any]:
    """Columns that the reader has as floating-point numbers, where all values are integers, and one has
    more digits than these: as texts. Others have another value in the first block, and no more is looked at
    then.
    """
    import pyarrow as pa

    left = [each.name for each in schema if each.type == pa.float64() and each.name not in form.types]
    every = dict.fromkeys(schema.names, pa.binary())
    long: set[str] = set()
    while True:
        try:
            for batch in _reader(path, form, every, False, include_columns=left) if left else ():
                left = [name for name in left if _is_whole(batch.column(name))]
                if not left:
                    break
                long |= {name for name in left if _has_long_integer(batch.column(name))}
            return {name: pa.string() for name in left if name in long}
        except pa.ArrowInvalid as problem:
            if not _grown(form, problem):
                raise


def _is_whole(texts: Any) -> bool:
    """Whether all are integers, however long."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, r"^[ \t]*[+-]?[0-9]+[ \t]*$"), min_count=0).as_py())


def _has_long_integer(texts: Any) -> bool:
    """Whether one is an integer of more digits than every floating-point number keeps."""
    import pyarrow.compute as pc

    long = r"^[ \t]*[+-]?0*[1-9][0-9]{15,}[ \t]*$"
    return bool(pc.any(pc.match_substring_regex(texts, long)).as_py())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def joined(one: Any, other: Any) -> Any:
    """The narrowest type that may hold values of two: the order of both does not matter.

    Integers become integers beyond 64 bits, both become floating-point numbers, dates timestamps, seconds
    nanoseconds, all else texts. 0 and 1 may be truth values: the next reading finds other integers.
    """
    import pyarrow as pa

    t = pa.types
    if one == other or t.is_null(other):
        return one
    if t.is_null(one):
        return other
    if t.is_binary(one) or t.is_binary(other):
        return pa.binary()
    pair = {str(one), str(other)}
    if pair in ({"int64", "double"}, {WIDE, "double"}):
        return pa.float64()
    if pair == {"int64", WIDE}:
        return pa.decimal128(38)
    if pair == {"int64", "bool"}:
        return pa.bool_()
    times = [kind for kind in (one, other) if t.is_timestamp(kind)]
    if len(times) == 2 and times[0].tz == times[1].tz:
        return pa.timestamp("ns", times[0].tz)
    if len(times) == 1 and times[0].tz is None and "date32[day]" in pair:
        return times[0]
    return pa.string()

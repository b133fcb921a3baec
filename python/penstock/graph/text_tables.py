"""Tables of edges as text: a row in each line, fields with a delimiter between them, quoted where need be."""

from __future__ import annotations

import csv
import importlib
import io
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .columns import Chosen, choose, is_unnamed, kind_of
from .reading import Reading
from .sparse import CoordinateGraph, check_readable
from .tables import Rows, arrow, ids_of, numbered, unreadable
from .unpacking import READERS, opened
from .weights import of_numbers

SAMPLE = 1 << 16
"""Bytes from the beginning of a file that are looked at to know whether it begins with a header."""
LONG_INTEGER = r"^[+-]?[0-9]{16,}$"
"""What a float may not hold."""
OTHER_DELIMITERS = {";": ";", "\t": "tab", "|": "|", " ": "space", ",": ","}


@dataclass(frozen=True)
class _Part:
    """One file. header: the fields of its first line, if that is one; guessed: because numbers are below
    it."""

    path: str
    count: int
    header: list[str] | None
    guessed: bool
    blank_lines: int


def read_text(called: str, paths: Sequence[str], delimiter: str, reading: Reading) -> CoordinateGraph:
    """Read one file, or several parts of a table.

    Ids are integers if all of them are, else strings; weights are integers if all of them are, else floats.

    Raises ValueError where it is not known whether the first line is a header, for columns that are not
    understood, other numbers of fields, empty fields, ids with a fraction, and text that Arrow cannot read.
    """
    pa = arrow("pyarrow", called)
    for path in paths:
        check_readable(path)
    parts: list[_Part] = []
    for path in paths:
        parts.append(_looked_at(path, delimiter, reading.header, parts[0].header if parts else None))
    first = parts[0]
    chosen = _chosen(called if len(parts) == 1 else first.path, first, delimiter, reading)
    for part in parts[1:]:
        if part.count != first.count or (part.header is not None and part.header != first.header):
            raise ValueError(
                f"read {part.path}: its columns are not those of {first.path}: give parts of one table"
            )
    # What a column is taken for while all that was read fits; the first of each that does.
    ids, weights = [pa.int64(), pa.uint64(), pa.large_string()], [pa.int64(), pa.float64()]
    while True:
        try:
            batches = _parsed(parts, chosen, delimiter, [ids[0], ids[0], weights[0]])
            graph = numbered(called, ids_of(ids[0]), batches, chosen, reading.numbering())
        except _MisfitError as misfit:
            kinds = ids if misfit.column < 2 else weights
            if len(kinds) == 1:
                raise ValueError(f"read {misfit.path}: {misfit} is no weight: write a number") from None
            del kinds[0]
        else:
            if graph.names and len(ids) == 1:
                _check_no_fractions(called, graph.names)
                if any(part.guessed for part in parts):
                    raise _unknown_header(first.path, first.header or [])
            if reading.header is None and first.header is None:
                return _with_remark(graph, "; without a header")
            return graph


def places_by_header(called: str, path: str, delimiter: str | None) -> list[int]:
    """Of a list of edges with a header the places of source, target and perhaps weight; none where its names
    do not say which are the ends. Raises ValueError as choose()."""
    first = ""
    with suppress(EOFError, OSError, zlib.error, lzma.LZMAError), opened(path) as file:  # is refused later
        while not first and (line := file.readline(SAMPLE)):
            first = line.decode("utf-8-sig", errors="replace").strip()
            first = "" if first.startswith(("#", "%")) else first
    names = [name.strip() for name in (first.split(delimiter) if delimiter else first.split())]
    return choose(called, names, len(names), ()).places if _names_ends(names) else []


def _with_remark(graph: CoordinateGraph, remark: str) -> CoordinateGraph:
    return CoordinateGraph(**{**vars(graph), "reading": graph.reading + remark})


class _MisfitError(Exception):
    """A field of a text column that is not of the type tried."""

    def __init__(self, path: str, column: int, row: int, value: str) -> None:
        super().__init__(f"row {row}: {value!r}")
        self.path = path
        self.column = column


def _looked_at(path: str, delimiter: str, header: bool | None, known: list[str] | None) -> _Part:
    rows, blank_lines = _sample(path, delimiter)
    if not rows:
        raise ValueError(f"read {path}: Arrow cannot read it (Empty CSV file): write a row for each edge")
    first, rest = rows[0], rows[1:]
    guessed = False
    if header is None:
        if len(first) < 2:
            header = not _is_number(first[0])  # wrong all the same
        elif known is not None:
            header = first == known or _names_ends(first)  # another header is refused below
        else:
            header, guessed = _has_header(path, first, rest)
    return _Part(path, len(first), first if header else None, guessed, blank_lines)


def _sample(path: str, delimiter: str) -> tuple[list[list[str]], int]:
    """The first rows, and how many empty lines are before them."""
    try:
        with opened(path) as file:
            data = file.read(SAMPLE)
            while b"\n" not in data and len(data) < 1 << 24 and (more := file.read(SAMPLE)):
                data += more
            whole = not file.read(1)
    except (EOFError, OSError) as error:
        raise unreadable(path, error) from error
    except Exception as error:
        if isinstance(error, ValueError):
            raise
        raise unreadable(path, error) from error  # zlib's and lzma's errors have no type in common
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if whole or error.start < len(data) - 4:  # or else the sample ends in a character
            problem = ValueError(f"no UTF-8 at byte {error.start}")
            raise unreadable(path, problem, "write it as UTF-8") from None
    text = data.decode("utf-8-sig", errors="replace")
    lines = text.splitlines()
    blank = next((i for i, line in enumerate(lines) if line.strip("\r")), 0)
    if not whole and len(lines) > 1:
        text = text[: text.rfind("\n") + 1]
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row], blank
    except csv.Error as error:
        raise unreadable(path, error) from error


def _names_ends(first: list[str]) -> bool:
    kinds = [kind_of(name) for name in first]
    return any(k in ("source", "head") for k in kinds) and any(k in ("target", "tail") for k in kinds)


def _has_header(path: str, first: list[str], rest: list[list[str]]) -> tuple[bool, bool]:
    """Whether the first row is a header, and whether only numbers below it say so. What may be an edge is
    none."""
    if _names_ends(first):
        return True, False
    fields = [field for field in first if not is_unnamed(field)]
    numbers = [_is_number(field) for field in fields]
    if fields and all(numbers):
        if len(fields) < len(first):
            line = ",".join(first)
            raise _unknown_header(path, first, f"its first line, {line!r}, has an empty field")
        return False, False
    columns = [
        all(len(row) > i and _is_number(row[i]) for row in rest) for i in range(len(first))
    ]  # fmt: skip
    below = [i for i, field in enumerate(first) if rest and columns[i] and not is_unnamed(field)]
    if not any(numbers) and below:
        return True, True
    unnamed_index = is_unnamed(first[0]) and bool(rest) and columns[0]
    if not any(numbers) and (unnamed_index or not rest):
        return True, False
    if any(numbers) and rest and all(not c or _is_number(f) for c, f in zip(columns, first, strict=True)):
        return False, False  # "ann,bob,3" above "bob,eve,5"
    raise _unknown_header(path, first)


def _unknown_header(path: str, first: list[str], why: str = "") -> ValueError:
    line = ",".join(first)[:80]
    why = why or f"its first line, {line!r}, may be a header or an edge"
    return ValueError(f"read {path}: {why}: pass header=True or False (--header, --no-header)")


def _chosen(called: str, part: _Part, delimiter: str, reading: Reading) -> Chosen:
    try:
        return choose(called, part.header, part.count, reading.columns)
    except ValueError as error:
        only = part.header[0] if part.header else ""
        found = next((d for d in OTHER_DELIMITERS if d in only and d != delimiter), None)
        if part.count > 1 or found is None:
            raise
        name = OTHER_DELIMITERS[found]
        raise ValueError(
            f"{error}; if a {name} is between its fields: delimiter, --delimiter '{name}'"
        ) from None


def _parsed(parts: list[_Part], chosen: Chosen, delimiter: str, kinds: list[Any]) -> Iterator[list[Any]]:
    for part in parts:
        for first, columns in _text_batches(part, chosen, delimiter):
            yield [
                _parse(part.path, i, first, column, kind)
                for i, (column, kind) in enumerate(zip(columns, kinds, strict=False))
            ]


def _text_batches(part: _Part, chosen: Chosen, delimiter: str) -> Iterator[tuple[int, list[Any]]]:
    """The number of the first row, and columns of strings."""
    pa, csv_reader = arrow("pyarrow", part.path), arrow("pyarrow.csv", part.path)
    names = [f"f{i}" for i in range(part.count)]
    taken = [names[i] for i in chosen.places]
    rows = Rows(part.path, chosen.names)
    try:
        with (
            _stream(pa, part.path) as stream,
            csv_reader.open_csv(
                stream,
                read_options=csv_reader.ReadOptions(
                    column_names=names,
                    skip_rows=part.blank_lines,
                    skip_rows_after_names=0 if part.header is None else 1,
                ),
                parse_options=csv_reader.ParseOptions(delimiter=delimiter, newlines_in_values=False),
                convert_options=csv_reader.ConvertOptions(
                    include_columns=taken,
                    column_types=dict.fromkeys(taken, pa.large_string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            ) as reader,
        ):
            for batch in reader:
                first = rows.before + 1
                yield first, rows.checked([batch.column(name) for name in taken])
    except (pa.ArrowException, OSError) as error:
        raise unreadable(part.path, error) from error


@contextmanager
def _stream(pa: Any, path: str) -> Iterator[Any]:
    """The file, unpacked: by Arrow, which is faster, where it can and sees each damage."""
    suffix = Path(path).suffix.lower()
    packer = {".gz": "gzip", ".zst": "zstd"}.get(suffix)
    if packer is None and suffix in READERS:
        with opened(path) as file:
            yield pa.PythonFile(file, mode="r")
    else:
        with pa.input_stream(path, compression=packer) as stream:
            yield stream


def _parse(path: str, index: int, first_row: int, column: Any, kind: Any) -> Any:
    """Raises _MisfitError with the first field that is not of this kind."""
    if column.type == kind:
        return column
    compute = importlib.import_module("pyarrow.compute")
    trimmed = compute.utf8_trim_whitespace(column)
    if (
        "int" in str(kind)
        and (hexadecimal := compute.match_substring(trimmed, "x", ignore_case=True)).true_count
    ):
        row = hexadecimal.index(True).as_py()  # 0x5, which Arrow reads as 5
        raise _MisfitError(path, index, first_row + row, trimmed[row].as_py())
    if kind == importlib.import_module("pyarrow").float64():
        _check_long_integers(path, trimmed.filter(compute.match_substring_regex(trimmed, LONG_INTEGER)))
    try:
        return trimmed.cast(kind)
    except ValueError:
        row = next(i for i in range(len(trimmed)) if not _casts(trimmed.slice(i, 1), kind))
        raise _MisfitError(path, index, first_row + row, trimmed[row].as_py()) from None


def _check_long_integers(path: str, fields: Any) -> None:
    """As integers of a type would be refused: Arrow reads them as the nearest float."""
    for field in fields:
        number = int(field.as_py())
        if int(float(number)) != number:
            of_numbers(path, [number])


def _casts(field: Any, kind: Any) -> bool:
    try:
        field.cast(kind)
    except ValueError:
        return False
    return True


def _check_no_fractions(called: str, names: list[str]) -> None:
    """Ids that are all numbers, but not all integers, are a mistake more often than names."""
    if all(_is_number(name) for name in names):
        odd = next((name for name in names if not _is_id(name.strip())), names[-1])
        raise ValueError(
            f"read {called}: id {odd!r} is neither an integer of 64 bits nor a name: change the ids"
        )


def _is_id(text: str) -> bool:
    return text.lstrip("-").isdigit() and -(2**63) <= int(text) < 2**64


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text

"""Tables of edges, through Arrow: Parquet files, and text with commas or tabs and a header line.

The first two columns name the ends of an edge, by integers or by strings; a third one is its weight. Vertices
are numbered in ascending order of their ids (integers as numbers, strings by their bytes), and the ids become
the vertices' names, unless they are the numbers anyway. Tables are read batch by batch: text of ids is never
held but once for each vertex.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from ._binding import Array
from .sparse import CoordinateGraph, check_readable, weights_of

NamedGraph = tuple[CoordinateGraph, "list[str] | None"]


def read_parquet(path: str) -> NamedGraph:
    """Read a Parquet file of two or three columns; integers of any width, or strings, name vertices.

    Raises ValueError for other columns, empty fields, and files that Arrow cannot read.
    """
    pa, parquet = _arrow("pyarrow", path), _arrow("pyarrow.parquet", path)
    check_readable(path)
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            _check_columns(path, schema.names)
            ids = _id_type(path, schema)
            types = [ids, ids, *(_weight_type(path, field) for field in list(schema)[2:])]
            rows = _Rows(path, schema.names)
            batches = (
                [_cast(column, kind) for column, kind in zip(rows.checked(batch), types, strict=True)]
                for batch in file.iter_batches()
            )
            return _numbered(path, _ids(pa, ids), batches)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def read_text(path: str, delimiter: str) -> NamedGraph:
    """Read lines of two or three fields below a header line.

    Ids are integers if all of them are, else strings; weights are integers if all of them are, else floats.

    Raises ValueError for a missing header, other numbers of fields, empty fields, ids with a fraction, and
    text that Arrow cannot read.
    """
    pa = _arrow("pyarrow", path)
    check_readable(path)
    # What a column is taken for while all that was read fits; the first of each that does.
    ids, weights = [pa.int64(), pa.uint64(), pa.large_string()], [pa.int64(), pa.float64()]
    while True:
        try:
            text = _text_batches(path, delimiter)
            batches = (_parsed(batch, [ids[0], ids[0], weights[0]]) for batch in text)
            graph, names = _numbered(path, _ids(pa, ids[0]), batches)
        except _MisfitError as misfit:
            kinds = ids if misfit.column < 2 else weights
            if len(kinds) == 1:
                raise ValueError(f"read {path}: {misfit} is no weight: write a number") from None
            del kinds[0]
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error
        else:
            if names and len(ids) == 1:
                _check_no_fractions(path, names)
            return graph, names


class _MisfitError(Exception):
    """A field of a text column that is not of the type tried."""

    def __init__(self, column: int, row: int, value: str) -> None:
        super().__init__(f"row {row}: {value!r}")
        self.column = column


class _Rows:
    """Counts rows, so that an empty field can be told by its place. Rows count from 1, without the header."""

    def __init__(self, path: str, names: list[str]) -> None:
        self.path = path
        self.names = names
        self.before = 0

    def checked(self, batch: Any) -> list[Any]:
        """The batch's columns, none of them with an empty field."""
        for name, column in zip(self.names, batch.columns, strict=True):
            if column.null_count:
                row = self.before + column.is_null().index(True).as_py() + 1
                problem = f"row {row}: nothing in column '{name}'"
                raise ValueError(f"read {self.path}: {problem}: fill it in, or leave the row out")
        self.before += batch.num_rows
        return list(batch.columns)


class _Ids(Protocol):
    """Collects the ends of edges; then numbers the vertices."""

    def add(self, from_: Any, to: Any) -> None:
        """Two Arrow arrays of one length."""

    def numbered(self) -> tuple[Array, Array, int, list[str] | None]:
        """from_, to, the number of vertices, and their names."""


class _IntegerIds:
    """Keeps the ids of all rows, 8 bytes each, and apart from them each id once."""

    def __init__(self, dtype: str) -> None:
        self.batches: list[tuple[Array, Array]] = []
        self.distinct: Array = np.empty(0, dtype)
        self.recent: list[Array] = []
        self.recent_size = 0

    def add(self, from_: Any, to: Any) -> None:
        ends = (_array(from_), _array(to))
        self.batches.append(ends)
        self.recent.append(_distinct(np.concatenate(ends)))
        self.recent_size += len(self.recent[-1])
        # As much as there is already at a time: each id is sorted a few times, not once for each batch.
        if self.recent_size > len(self.distinct):
            self.merge()

    def merge(self) -> None:
        self.distinct = _distinct(np.concatenate([self.distinct, *self.recent]))
        self.recent, self.recent_size = [], 0

    def numbered(self) -> tuple[Array, Array, int, list[str] | None]:
        self.merge()
        count = len(self.distinct)
        plain = count > 0 and self.distinct[0] == 0 and self.distinct[-1] == count - 1
        from_, to = _joined(
            self.batches, count, lambda ends: ends if plain else np.searchsorted(self.distinct, ends)
        )
        return from_, to, count, None if plain else [str(each) for each in self.distinct.tolist()]


class _StringIds:
    """Keeps each string once, and for the rows the numbers of strings in the order in which they came."""

    def __init__(self) -> None:
        self.batches: list[tuple[Array, Array]] = []
        self.seen: dict[str, int] = {}

    def add(self, from_: Any, to: Any) -> None:
        self.batches.append((self.codes(from_), self.codes(to)))

    def codes(self, column: Any) -> Array:
        encoded, seen = column.dictionary_encode(), self.seen
        known = [seen.setdefault(name, len(seen)) for name in encoded.dictionary.to_pylist()]
        dtype = np.int32 if len(seen) < 2**31 else np.int64
        codes: Array = np.array(known, dtype)[encoded.indices.to_numpy()]
        return codes

    def numbered(self) -> tuple[Array, Array, int, list[str] | None]:
        # By code points, which is by the bytes of UTF-8.
        names = sorted(self.seen)
        rank = np.empty(len(names), np.int64)
        rank[[self.seen[name] for name in names]] = np.arange(len(names))
        from_, to = _joined(self.batches, len(names), lambda codes: rank[codes])
        return from_, to, len(names), names


def _distinct(ids: Array) -> Array:
    """Each once, ascending; sorts `ids` in place. np.unique hashes, which takes eight times as long here."""
    ids.sort()
    first = np.ones(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=first[1:])
    return ids[first]


def _ids(pa: Any, kind: Any) -> _Ids:
    return _IntegerIds(str(kind)) if pa.types.is_integer(kind) else _StringIds()


def _joined(batches: list[tuple[Array, Array]], vertices: int, number: Any) -> tuple[Array, Array]:
    """Both columns in one piece, as vertices; empties `batches` on the way, to hold nothing twice."""
    rows = sum(len(from_) for from_, _ in batches)
    dtype = np.int32 if vertices < 2**31 else np.int64
    ends = np.empty(rows, dtype), np.empty(rows, dtype)
    while batches:
        batch = batches.pop()
        for whole, part in zip(ends, batch, strict=True):
            whole[rows - len(part) : rows] = number(part)
        rows -= len(batch[0])
    return ends


def _numbered(path: str, ids: _Ids, batches: Iterable[list[Any]]) -> NamedGraph:
    parts = []
    for from_, to, *weights in batches:
        ids.add(from_, to)
        parts += [_array(column) for column in weights]
    from_ends, to_ends, vertices, names = ids.numbered()
    if not vertices:
        raise ValueError(f"read {path}: has no rows: a graph needs at least one edge")
    for name in names or ():
        if "\n" in name or "\r" in name:
            raise ValueError(f"read {path}: id {name!r} has a line break in it: remove it")
    found = weights_of(path, np.concatenate(parts)) if parts else None
    return CoordinateGraph(vertices, from_ends, to_ends, found, directed=True), names


def _array(column: Any) -> Array:
    """A copy, so that the batch's memory can go."""
    return np.array(column.to_numpy(zero_copy_only=False))


def _check_columns(path: str, names: list[str]) -> None:
    if len(names) not in (2, 3):
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        problem = f"{len(names)} column{'' if len(names) == 1 else 's'} ({shown})"
        raise ValueError(f"read {path}: {problem}: give source, target and perhaps a weight, in this order")


def _id_type(path: str, schema: Any) -> Any:
    """int64, uint64 or large_string, for both ends."""
    pa = _arrow("pyarrow", path)
    kinds = []
    for field in (schema.field(0), schema.field(1)):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not pa.types.is_integer(kind) and str(kind) not in ("string", "large_string", "string_view"):
            problem = f"column '{field.name}' of type {kind} cannot be ids"
            raise ValueError(f"read {path}: {problem}: convert it to integers or strings")
        kinds.append(kind if pa.types.is_integer(kind) else pa.large_string())
    if pa.types.is_integer(kinds[0]) != pa.types.is_integer(kinds[1]):
        raise ValueError(
            f"read {path}: one end is an integer, the other a string: convert one of the columns"
        )
    if pa.large_string() in kinds:
        return pa.large_string()
    return pa.uint64() if pa.uint64() in kinds else pa.int64()


def _weight_type(path: str, field: Any) -> Any:
    pa = _arrow("pyarrow", path)
    if not pa.types.is_integer(field.type) and not pa.types.is_floating(field.type):
        problem = f"column '{field.name}' of type {field.type} cannot be weights"
        raise ValueError(f"read {path}: {problem}: convert it to integers or floats, or leave it out")
    return field.type


def _cast(column: Any, kind: Any) -> Any:
    return column if column.type == kind else column.cast(kind)


def _text_batches(path: str, delimiter: str) -> Iterator[tuple[int, list[Any]]]:
    """The number of the first row, and columns of strings."""
    pa, csv = _arrow("pyarrow", path), _arrow("pyarrow.csv", path)
    parse = csv.ParseOptions(delimiter=delimiter)

    def opened(names: list[str]) -> Any:
        stream = pa.input_stream(path, compression="detect")
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), null_values=[""], strings_can_be_null=True
        )
        return csv.open_csv(stream, parse_options=parse, convert_options=convert)

    with opened([]) as reader:
        names = reader.schema.names
    _check_columns(path, names)
    if any(_is_number(name) for name in names):
        line = delimiter.join(names)
        raise ValueError(
            f"read {path}: its first line, {line!r}, is no header: write one, such as 'source,target'"
        )
    rows = _Rows(path, names)
    with opened(names) as reader:
        for batch in reader:
            first = rows.before + 1
            yield first, rows.checked(batch)


def _parsed(batch: tuple[int, list[Any]], kinds: list[Any]) -> list[Any]:
    first, columns = batch
    return [
        _parse(i, first, column, kind) for i, (column, kind) in enumerate(zip(columns, kinds, strict=False))
    ]


def _parse(index: int, first_row: int, column: Any, kind: Any) -> Any:
    """Raises _MisfitError with the first field that is not of this kind."""
    if column.type == kind:
        return column
    compute = importlib.import_module("pyarrow.compute")
    trimmed = compute.utf8_trim_whitespace(column)
    try:
        return trimmed.cast(kind)
    except ValueError:
        row = next(i for i in range(len(trimmed)) if not _casts(trimmed.slice(i, 1), kind))
        raise _MisfitError(index, first_row + row, trimmed[row].as_py()) from None


def _casts(field: Any, kind: Any) -> bool:
    try:
        field.cast(kind)
    except ValueError:
        return False
    return True


def _check_no_fractions(path: str, names: list[str]) -> None:
    """Ids that are all numbers, but not all integers, are a mistake more often than names."""
    if all(_is_number(name) for name in names):
        odd = next((name for name in names if not name.strip().lstrip("+-").isdigit()), names[-1])
        raise ValueError(
            f"read {path}: id {odd!r} is neither an integer of 64 bits nor a name: change the ids"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unreadable(path: str, error: BaseException) -> ValueError:
    return ValueError(
        f"read {path}: Arrow cannot read it ({' '.join(str(error).split())}): write the file again"
    )


def _arrow(module: str, path: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"read {path}: this format needs Arrow: pip install 'penstock[arrow]'") from error

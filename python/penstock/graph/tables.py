"""Tables of edges, through Arrow: Parquet files, text of rows, and DataFrames.

Which columns are the ends of an edge, and which is its weight, `columns.choose` finds out; `ids` numbers the
vertices. Tables are read batch by batch.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import weights
from ._binding import Array
from .columns import Chosen, choose
from .ids import Ids, IntegerIds, Numbering, StringIds, array_of
from .reading import Reading
from .sparse import CoordinateGraph, check_readable

Batches = Iterable[list[Any]]
"""Of each batch the source, the target and perhaps the weight, as Arrow arrays of one length without
nulls."""


def read_parquet(called: str, paths: Sequence[str], reading: Reading) -> CoordinateGraph:
    """Read a Parquet file, or several with the same columns; integers of any width, or strings, name
    vertices.

    called: what the user calls them. Raises ValueError for columns that are not understood, empty fields, and
    files that Arrow cannot read.
    """
    pa, parquet = arrow("pyarrow", called), arrow("pyarrow.parquet", called)
    for path in paths:
        check_readable(path)
    parts: list[tuple[str, Chosen, Any]] = []
    for path in paths:
        with _sentences(pa, path):
            schema = parquet.read_schema(path)
        chosen = choose(path, schema.names, len(schema.names), reading.columns, _indexes(schema))
        parts.append((path, chosen, schema))
        if chosen.names != parts[0][1].names:
            raise _other_columns(path, chosen, parts[0][0])
    _check_same_ids(pa, parts)
    ids = _id_type(called, [schema.field(i) for _, chosen, schema in parts for i in chosen.places[:2]])

    def batches() -> Iterator[list[Any]]:
        for path, chosen, schema in parts:
            types = _types(path, chosen, schema, ids)
            names = [schema.names[i] for i in chosen.places]
            twice = len(set(names)) < len(names)
            rows = Rows(path, chosen.names)
            with _sentences(pa, path), parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=None if twice else names):
                    places = chosen.places if twice else [batch.schema.get_field_index(n) for n in names]
                    columns = rows.checked([batch.column(i) for i in places])
                    yield [_cast(column, kind) for column, kind in zip(columns, types, strict=True)]

    return numbered(called, ids_of(ids), batches(), parts[0][1], reading.numbering())


def read_frame(called: str, frame: Any, reading: Reading) -> CoordinateGraph:
    """Read a DataFrame of pandas, or what gives its columns to Arrow (pyarrow, polars, DuckDB, cuDF, ...).

    The index of pandas is no column. Raises ValueError as read_parquet().
    """
    pa = arrow("pyarrow", called)
    with _sentences(pa, called, "give columns of integers or strings, and numbers for weights"):
        if type(frame).__module__.partition(".")[0] == "pandas":
            names = [str(name) for name in frame.columns]
            chosen = choose(called, names, len(names), reading.columns)
            columns = [pa.array(frame.iloc[:, i], from_pandas=True) for i in chosen.places]
        else:
            table = _table_of(pa, frame)
            chosen = choose(
                called, table.column_names, table.num_columns, reading.columns, _indexes(table.schema)
            )
            columns = [table.column(i) for i in chosen.places]
        columns = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
        columns = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
        fields = [pa.field(name.strip("'"), c.type) for name, c in zip(chosen.names, columns, strict=True)]
        ids = _id_type(called, fields[:2])
        types = [ids, ids, *(_weight_type(called, field) for field in fields[2:])]
        rows = Rows(called, chosen.names).checked(columns)
        batch = [_cast(column, kind) for column, kind in zip(rows, types, strict=True)]
        return numbered(called, ids_of(ids), [batch], chosen, reading.numbering())


def is_frame(given: Any) -> bool:
    """Whether read_frame() takes it."""
    if type(given).__module__.partition(".")[0] == "pandas":
        return hasattr(given, "columns")
    return any(hasattr(given, name) for name in ("__arrow_c_stream__", "__dataframe__", "to_arrow"))


def _table_of(pa: Any, frame: Any) -> Any:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if hasattr(frame, "__dataframe__"):
        return importlib.import_module("pyarrow.interchange").from_dataframe(frame)
    return frame.to_arrow()


def _indexes(schema: Any) -> set[str]:
    """The columns that the metadata of pandas calls an index."""
    try:
        said = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return set()
    return {each for each in said if isinstance(each, str)} if isinstance(said, list) else set()


def _check_same_ids(pa: Any, parts: Sequence[tuple[str, Chosen, Any]]) -> None:
    """Raises ValueError, with a part and a type of each kind, where some have integers and others strings."""
    first, chosen, schema = parts[0]
    known = schema.field(chosen.source)
    for path, chosen, schema in parts[1:]:
        field = schema.field(chosen.source)
        if pa.types.is_integer(_plain(pa, field.type)) != pa.types.is_integer(_plain(pa, known.type)):
            raise ValueError(
                f"read {path}: column '{field.name}' of type {field.type}, and of type {known.type} in "
                f"{first}: write all parts with ids of one type"
            )


def _plain(pa: Any, kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _other_columns(path: str, chosen: Chosen, first: str) -> ValueError:
    return ValueError(
        f"read {path}: its columns {', '.join(chosen.names)} are not those of {first}: "
        "give parts of one table, or name the columns"
    )


class Rows:
    """Counts rows, to name an empty field by its place. Rows count from 1, without the header."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.path = path
        self.names = names
        self.before = 0

    def checked(self, columns: list[Any]) -> list[Any]:
        """The columns of a batch, none of them with an empty field."""
        for name, column in zip(self.names, columns, strict=True):
            if column.null_count:
                row = self.before + column.is_null().index(True).as_py() + 1
                where = name if name.startswith("column ") else f"column {name}"
                problem = f"row {row}: nothing in {where}"
                raise ValueError(f"read {self.path}: {problem}: fill it in, or leave the row out")
        self.before += len(columns[0])
        return columns


def ids_of(kind: Any) -> Ids:
    return StringIds() if "string" in str(kind) else IntegerIds(str(kind))


def numbered(called: str, ids: Ids, batches: Batches, chosen: Chosen, how: Numbering) -> CoordinateGraph:
    """All batches as a graph. Raises ValueError for a table without rows, names with line breaks, and weights
    that int32 and float32 cannot hold."""
    parts: list[Array] = []
    for from_, to, *more in batches:
        ids.add(from_, to)
        parts += [array_of(column) for column in more]
    found = ids.numbered(called, how)
    if not len(found.from_):
        raise ValueError(f"read {called}: has no rows: a graph needs at least one edge")
    for name in found.names or ():
        if "\n" in name or "\r" in name:
            raise ValueError(f"read {called}: id {name!r} has a line break in it: remove it")
    values = weights.joined(called, parts) if parts else None
    reading = chosen.reading(len(found.from_), None if values is None else str(values.dtype)) + found.remark
    return CoordinateGraph(
        found.vertices, found.from_, found.to, values, directed=True, names=found.names, reading=reading
    )


def _types(path: str, chosen: Chosen, schema: Any, ids: Any) -> list[Any]:
    more = [] if chosen.weight is None else [_weight_type(path, schema.field(chosen.weight))]
    return [ids, ids, *more]


def _id_type(called: str, fields: Sequence[Any]) -> Any:
    """int64, uint64 or large_string, for all of these columns."""
    pa = arrow("pyarrow", called)
    kinds = []
    for field in fields:
        kind = _plain(pa, field.type)
        if not pa.types.is_integer(kind) and str(kind) not in ("string", "large_string", "string_view"):
            problem = f"column '{field.name}' of type {kind} cannot be ids"
            raise ValueError(f"read {called}: {problem}: convert it to integers or strings")
        kinds.append(kind if pa.types.is_integer(kind) else pa.large_string())
    if len({pa.types.is_integer(kind) for kind in kinds}) > 1:
        raise ValueError(
            f"read {called}: one end is an integer, the other a string: convert one of the columns"
        )
    if pa.large_string() in kinds:
        return pa.large_string()
    return pa.uint64() if pa.uint64() in kinds else pa.int64()


def _weight_type(called: str, field: Any) -> Any:
    pa = arrow("pyarrow", called)
    if not pa.types.is_integer(field.type) and not pa.types.is_floating(field.type):
        problem = f"column '{field.name}' of type {field.type} cannot be weights"
        raise ValueError(
            f"read {called}: {problem}: convert it to integers or floats, or leave it out (columns)"
        )
    return field.type


def _cast(column: Any, kind: Any) -> Any:
    return column if column.type == kind else column.cast(kind)


class _sentences:  # noqa: N801, used as a function
    """Turns the errors of Arrow into one sentence."""

    def __init__(self, pa: Any, called: str, remedy: str = "write the file again") -> None:
        self.pa, self.called, self.remedy = pa, called, remedy

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        ours = isinstance(error, ValueError) and str(error).startswith("read ")
        if isinstance(error, (self.pa.ArrowException, OSError, OverflowError)) and not ours:
            raise unreadable(self.called, error, self.remedy) from error


def unreadable(called: str, error: BaseException, remedy: str = "write the file again") -> ValueError:
    reason = " ".join(str(error).split()).partition(". ")[0].rstrip(".")[:300]
    return ValueError(f"read {called}: Arrow cannot read it ({reason}): {remedy}")


def arrow(module: str, called: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"read {called}: this format needs Arrow: pip install 'penstock[arrow]'") from error

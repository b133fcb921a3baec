"""Tables: columns in files, queried by the threads of an executor."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, SupportsIndex, TypedDict

import numpy as np
import numpy.typing as npt

from penstock.checks import checked_count
from penstock.columns.as_array import column_array
from penstock.columns.conversions import cache_root, written_folder
from penstock.columns.expressions import Expr
from penstock.columns.folders import is_folder, open_folder
from penstock.columns.joining import Columns, How
from penstock.columns.layout import ColumnPlace, Piece, TableLayout, check_names
from penstock.columns.messages import one_line
from penstock.columns.query import GroupBy, Query
from penstock.columns.results import Result
from penstock.columns.types import ColumnType, Kind
from penstock.errors import Error
from penstock.graph.options import Executor
from penstock.native import load_native
from penstock.options import Choice, Count, Option, Size, Switch, Text, checked, show_options
from penstock.sizes import parse_size

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from penstock._native import ColumnTable
    from penstock.arrays.array import Array

KNOWN = (".arrow", ".arrows", ".feather", ".ipc", ".parquet", ".pq", ".orc", ".csv", ".tsv", ".gz")
DRIVE_FILES = 16
"""Namespaces of an emulated drive (src/controller/served_records.hpp)."""

MAKE_ROOM = "make room, or set TMPDIR to another folder"
ON_HOST = (1, 3)
"""DLPack's devices in memory that the host reaches: CPU, CUDA host."""

Place = Literal["auto", "host", "hbm", "storage", "host-cached", "pinned"]


class TableOptions(TypedDict, total=False):
    """What `Table` takes."""

    executor: Annotated[Executor, Choice("auto")]
    placement: Annotated[Place, Choice("auto")]
    cache: Annotated[SupportsIndex | str | None, Size(unless="256MiB")]
    line: Annotated[SupportsIndex | str | None, Size(unless="4KiB")]
    threads: Annotated[SupportsIndex, Count(most=1024)]
    media: Annotated[str, Text("file")]
    drives: Annotated[SupportsIndex, Count(1, least=1, most=64)]
    direct: Annotated[bool, Switch()]
    zone_maps: Annotated[bool, Switch(True)]
    columns: Annotated[Sequence[str] | None, Option()]
    memory: Annotated[SupportsIndex | str | None, Size(unless="1GiB")]
    progress: Annotated[Any, Option()]


class Table:
    """Columns in files, and queries of them: see `open_table`."""

    def __init__(self, layout: TableLayout, options: Mapping[str, Any]) -> None:
        self.name = layout.name
        self.layout = layout
        self.line_aware = True
        self.zone_maps = bool(options["zone_maps"])
        self._options = dict(options)
        self._numbers = {column.name: k for k, column in enumerate(layout.columns)}
        self._native: ColumnTable | None = None
        self._closed = False
        self._stamps: dict[str, tuple[int, int, int]] = {}
        self._lock = threading.Lock()

    @property
    def columns(self) -> list[str]:
        """Names, in order."""
        return [column.name for column in self.layout.columns]

    @property
    def schema(self) -> dict[str, ColumnType]:
        """Types by name."""
        return {column.name: column.type.without_words() for column in self.layout.columns}

    @property
    def rows(self) -> int:
        return self.layout.total

    def __len__(self) -> int:
        return self.rows

    @property
    def executor(self) -> str:
        return self.native.executor

    @property
    def device(self) -> str:
        return self.native.device

    @property
    def placement(self) -> str:
        place = str(self._options["placement"])
        return "host" if place == "auto" else place

    @property
    def line_bytes(self) -> int:
        """Of the cache, of placements that have one."""
        return int(self._options["line"])

    @property
    def native(self) -> ColumnTable:
        """The columns opened on the executor."""
        with self._lock:
            if self._closed:
                raise ValueError(f"query {self.name}: the table is closed: open it again")
            if self._native is None:
                options = {**self._options, "placement": self.placement}
                for name in ("columns", "memory", "progress", "zone_maps"):
                    options.pop(name)
                whole = self.placement not in ("hbm", "pinned")
                extents, pieces, columns = self.layout.native(whole)
                if options["media"] != "file" and len(extents) > DRIVE_FILES:
                    raise ValueError(
                        f"open {self.name}: its columns lie in {len(extents)} files, and an emulated drive "
                        f"takes {DRIVE_FILES}: name those that are asked for with columns="
                    )
                self._stamps = self._stamped()
                self._native = load_native().ColumnTable(extents, pieces, columns, options)
            return self._native

    def _stamped(self) -> dict[str, tuple[int, int, int]]:
        paths = {piece.path for column in self.layout.columns for piece in column.pieces}
        stats = {path: Path(path).stat() for path in paths if Path(path).exists()}
        return {path: (each.st_ino, each.st_size, each.st_mtime_ns) for path, each in stats.items()}

    def check_files(self) -> None:
        """Refuses files that have changed since they were opened: layout and zone maps are of what they had.

        Raises:
            ValueError: One has, with its name.
        """
        if self._native is None:
            return
        now = self._stamped()
        for path, stamp in self._stamps.items():
            if path in now and now[path] != stamp:
                raise ValueError(
                    f"query {self.name}: {path} has changed since it was opened: open the table again"
                )

    def column(self, name: str) -> tuple[int, ColumnType, bool]:
        """Number, type, and whether there are nulls.

        Raises:
            KeyError: There is no such column, or none that can be used.
        """
        if name in self.layout.refused:
            raise KeyError(f"column {name!r} of {self.name} cannot be used: {self.layout.refused[name]}")
        if name not in self._numbers:
            close = [each for each in self.columns if each.lower() == str(name).lower()]
            others = close or self.columns[:8]
            more = "" if close or len(self.columns) <= 8 else f" and {len(self.columns) - 8} more"
            raise KeyError(f"there is no column {name!r} in {self.name}: it has {', '.join(others)}{more}")
        number = self._numbers[name]
        place = self.layout.columns[number]
        return number, place.type, place.nullable

    def place_of(self, name: str) -> ColumnPlace:
        return self.layout.columns[self.column(name)[0]]

    def bytes_of(self, name: str) -> int:
        """Of a column's values, at the width of its type."""
        return self.rows * self.column(name)[1].nbytes

    def bytes_stored(self, name: str) -> int:
        """Of a column, as it lies."""
        return self.rows * self.place_of(name).bits // 8

    def has_zone_map(self, name: str) -> bool:
        """Whether a query has left the extremes of the column's runs of rows."""
        return self.native.has_zone_map(self.column(name)[0])

    def filter(self, *conditions: Expr) -> Query:
        return Query(self).filter(*conditions)

    def join(
        self,
        other: Any,
        on: str | Sequence[str] | None = None,
        how: How = "inner",
        *,
        left_on: Expr | str | Sequence[Expr | str] | None = None,
        right_on: str | Sequence[str] | None = None,
        suffix: str = "_right",
    ) -> Query:
        """See `Query.join`."""
        return Query(self).join(other, on, how, left_on=left_on, right_on=right_on, suffix=suffix)

    def select(self, *expressions: Expr | str, **named: Expr) -> Query:
        return Query(self).select(*expressions, **named)

    def agg(self, *expressions: Expr, **named: Expr) -> Query:
        return Query(self).agg(*expressions, **named)

    def group_by(self, *keys: Expr | str) -> GroupBy:
        return Query(self).group_by(*keys)

    def head(self, rows: int) -> Query:
        return Query(self).head(rows)

    def top_k(self, k: int, by: Expr | str, *, reverse: bool = False) -> Query:
        return Query(self).top_k(k, by, reverse=reverse)

    def take(self, numbers: npt.ArrayLike, *expressions: Expr | str) -> Result:
        """Rows by their numbers, in the order of the list: all columns, or some and expressions.

        Raises:
            ValueError: A row that the table does not have.
        """
        rows = np.asarray(numbers)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ValueError(f"take from {self.name}: give a row of whole numbers")
        if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= self.rows):
            wrong = next(int(row) for row in rows if not 0 <= int(row) < self.rows)
            raise ValueError(f"take row {wrong} of {self.name}: it has {self.rows} rows")
        query = Query(self).select(*expressions) if expressions else Query(self)
        return query.taken(rows.astype(np.uint64))

    def array(
        self,
        name: str,
        *,
        placement: str = "auto",
        device: Any = "auto",
        cache: int | str | None = None,
        line: int | None = None,
    ) -> Array:
        """A column as an array, such as `penstock.kernel` takes.

        It reads the values where they lie, if they lie in one piece as numbers; else a copy in the cache
        directory, made once.

        Args:
            name: Of a column of numbers or truth values.
            placement: As of `penstock.open`; so are the others.
            device: Where kernels run.
            cache: Bytes.
            line: Bytes.

        Returns:
            An array of shape (rows,), of the column's type. It outlives the table.

        Raises:
            KeyError: There is no such column.
            ValueError: It has nulls, or holds no numbers; or what `penstock.open` refuses.
        """
        sizes = {key: size for key, size in (("cache", cache), ("line", line)) if size is not None}
        return column_array(self, name, {"placement": placement, "device": device, **sizes})

    def join_columns(self) -> Columns:
        return Query(self).join_columns()

    @staticmethod
    def opened(source: Any, executor: Executor = "auto") -> Table:
        """What is no table yet, for a join or a condition of groups."""
        return open_table(source, executor=executor)

    def collect(self) -> Result:
        """All rows."""
        return Query(self).collect()

    def close(self) -> None:
        """Let go of files and memory."""
        with self._lock:
            self._native = None
            self._closed = True
        self.layout.owner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        count = len(self.layout.columns)
        return f"<penstock.Table {self.name!r}: {self.rows} rows, {count} columns, {self.placement}>"


@show_options(TableOptions)
def open_table(source: Any, **given: Unpack[TableOptions]) -> Table:
    """Open columns to query them.

    Args:
        source: A folder that `convert` or `penstock taxi` has written; an Arrow IPC file (Feather), in place
            where it is not compressed; a Parquet, ORC or CSV file, which is converted once into
            `~/.cache/penstock`; a dict of `.npy` files by column name; or what lies in memory and is written
            to a temporary folder: an object with Arrow's stream interface (a table of PyArrow, Polars, pandas
            or DuckDB, a result), a dict of arrays (NumPy, or with DLPack's interface: tensors).
        executor: auto, cpu, cuda.
        placement: host (the files mapped, read in place, over the link on a GPU), hbm (copied to the GPU),
            storage (behind a cache), host-cached, pinned.
        cache: Bytes of the cache, of the placements that have one.
        line: Bytes of a line of it.
        threads: Of the CPU executor, or the software controller.
        media: Of the placement storage: file, or the preset of an emulated SSD.
        drives: Emulated SSDs.
        direct: Bypass the page cache.
        zone_maps: Keep the extremes of runs of rows that conditions have read, and leave runs out by them.
        columns: Names of those to be opened; None: all. What is not opened is not copied to a GPU.
        memory: Bytes that a conversion may take.
        progress: Called with what is done, how much of it, and of how much.

    Returns:
        A `Table`; close it, or use it in a `with`.

    Raises:
        ValueError: The source is damaged, or none of these, with what to do.
        penstock.Error: A file that cannot be read.
    """
    options = checked(TableOptions, given)
    layout = _layout_of(source, options)
    if options["columns"] is not None:
        known = {column.name: column for column in layout.columns}
        for name in options["columns"]:
            if name not in known:
                why = layout.refused.get(name, f"it has {', '.join([*known][:8])}")
                raise ValueError(f"open {layout.name}: there is no column {name!r} to open: {why}")
        layout.columns = [known[name] for name in dict.fromkeys(options["columns"])]
    return Table(layout, options)


def _layout_of(source: Any, options: Mapping[str, Any]) -> TableLayout:
    if isinstance(source, (str, os.PathLike)):
        path = Path(os.fspath(source))
        if path.is_dir():
            if is_folder(path):
                return open_folder(path)
            raise ValueError(
                f"open {path}: there is no table in this folder: name a file, or convert one to it"
            )
        if not path.is_file():
            raise ValueError(f"open {path}: there is no such file")
        return _of_file(path, options)
    if isinstance(source, Result):
        return _of_result(source)
    if isinstance(source, Mapping) and not hasattr(source, "__arrow_c_stream__"):
        paths = [isinstance(each, (str, os.PathLike)) for each in source.values()]
        if all(paths):
            return _of_arrays(source)
        if any(paths):
            raise TypeError(
                "open a table of a dict: give paths of .npy files for all columns, or arrays for all"
            )
        layout = _of_stream(_as_arrow(source), options)
        layout.name = "arrays"
        return layout
    return _of_stream(source, options)


def _of_file(path: Path, options: Mapping[str, Any]) -> TableLayout:
    from penstock.columns import arrow

    if path.suffix.lower() not in KNOWN:
        raise ValueError(
            f"open {path}: its name ends in {path.suffix!r}: the ending says what it is: {', '.join(KNOWN)}"
        )
    if path.suffix.lower() in (".arrow", ".feather", ".ipc") and not arrow.is_stream(path):
        found = arrow.open_ipc(str(path))
        if found is not None:
            return found
    facts = path.stat()
    key = f"{path.resolve()}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ctime_ns}:{facts.st_ino}"
    kept = cache_root() / f"{path.stem[:64]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not is_folder(kept):
        if kept.exists() and not is_folder(kept):  # what another thread puts there is complete
            shutil.rmtree(kept, ignore_errors=True)
        remedy = f"make room, set XDG_CACHE_HOME to another folder, or convert {path} to one and open that"
        with contextlib.suppress(FileExistsError):  # of another thread or process: as good as this one
            made = {"memory": options["memory"], "progress": options["progress"]}
            _convert(path, kept, made, f"open {path}", remedy)
    layout = open_folder(kept)
    layout.name = str(path)
    return layout


def convert(
    source: Any,
    folder: str | os.PathLike[str],
    *,
    memory: SupportsIndex | str = "1GiB",
    threads: SupportsIndex = 0,
    progress: Any = None,
) -> None:
    """Write a table as a folder of columns, streaming.

    Args:
        source: A Parquet, ORC, CSV or Arrow file, or an object with Arrow's stream interface.
        folder: A new one.
        memory: Bytes that this may take, about: a number, or text such as 64MiB.
        threads: That write, beside those that decode; 0: one per core. 1: one thread decodes, too.
        progress: As of `open_table`.

    Raises:
        ValueError: The source is damaged, or the folder not empty.
        penstock.Error: The folder cannot be written.
    """
    target = Path(folder)
    options = {
        "memory": parse_size(memory, "memory"),
        "threads": checked_count("threads", threads, 0, 1024),
        "progress": progress,
    }
    if isinstance(source, (str, os.PathLike)) and not Path(os.fspath(source)).is_file():
        raise ValueError(f"convert {os.fspath(source)}: there is no such file")
    there = f"convert to {target}: it is there already: name a new folder"
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(there)
    try:
        _convert(source, target, options, f"convert to {target}", "make room, or name another folder")
    except FileExistsError as problem:
        if problem.filename != str(target):
            raise
        raise ValueError(there) from None


def _convert(source: Any, target: Path, options: Mapping[str, Any], operation: str, remedy: str) -> None:
    from penstock.columns import arrow

    threads = options.get("threads", 0)
    with written_folder(target, operation, remedy) as made:
        if isinstance(source, (str, os.PathLike)):
            path = Path(os.fspath(source))
            arrow.convert_file(path, made, options["memory"], threads, options["progress"])
        else:
            schema, batches, rows = _stream(source)
            arrow.convert(batches, schema, made, rows, threads, options["progress"])


def _stream(source: Any) -> tuple[Any, Any, int]:
    import pyarrow as pa

    of_stream = hasattr(source, "__arrow_c_stream__")
    if not of_stream and not type(source).__module__.startswith("pandas"):
        raise TypeError(
            f"open a table of a {type(source).__name__}: give a path, a dict of .npy files or of arrays "
            "by column name, or a table of PyArrow, Polars, pandas or DuckDB"
        )
    try:
        reader = (
            pa.RecordBatchReader.from_stream(source)
            if of_stream
            else pa.Table.from_pandas(source).to_reader()
        )
        schema = reader.schema
        _ = schema.names  # they may be no UTF-8
    except Exception as problem:
        raise _stream_failed(source, problem) from problem
    return schema, _batches_of(source, reader), 0


def _batches_of(source: Any, reader: Any) -> Iterator[Any]:
    while True:
        try:
            batch = next(reader)
        except StopIteration:
            return
        except Exception as problem:
            raise _stream_failed(source, problem) from problem
        yield batch


def _stream_failed(source: Any, problem: Exception) -> ValueError:
    return ValueError(
        f"open a table of a {type(source).__name__}: its Arrow stream has failed: {one_line(problem)}: mend "
        "what makes it, and open the table again"
    )


def _of_stream(source: Any, options: Mapping[str, Any]) -> TableLayout:
    what = f"open a table of a {type(source).__name__}"
    with _temporary_folder(what) as folder:
        kept = {"memory": options["memory"], "progress": options["progress"]}
        _convert(source, Path(folder) / "table", kept, what, MAKE_ROOM)
        layout = open_folder(Path(folder) / "table")
    layout.name = type(source).__name__
    layout.owner = _TemporaryFolder(folder)
    return layout


def _of_result(source: Result) -> TableLayout:
    """As its columns are: what is read once or twice is not packed for it."""
    with _temporary_folder("open a table of a Result") as folder:
        columns = []
        for k, column in enumerate(source.columns):
            piece = Piece(f"{folder}/{k}.values", 0, column.bits.nbytes)
            try:
                column.bits.tofile(piece.path)
                if not column.valid.all():
                    marks = np.packbits(column.valid, bitorder="little")
                    piece = replace(piece, validity=Piece(f"{folder}/{k}.valid", 0, marks.nbytes))
                    marks.tofile(f"{folder}/{k}.valid")
            except OSError as problem:
                why = os.strerror(problem.errno or 0)
                raise Error(
                    f"open a table of a Result: {folder} cannot be written: {why}: {MAKE_ROOM}"
                ) from None
            encoding = "float64" if column.type.is_number else "int64"
            columns.append(ColumnPlace(column.name, column.type, encoding, [piece]))
    check_names([column.name for column in columns], "a Result")
    return TableLayout("Result", [source.row_count], columns, owner=_TemporaryFolder(folder))


@contextlib.contextmanager
def _temporary_folder(what: str) -> Iterator[str]:
    """A folder that is removed when the block ends with an error."""
    try:
        folder = tempfile.mkdtemp(prefix="penstock-table-")
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        raise Error(f"{what}: {tempfile.gettempdir()} cannot be written: {why}: {MAKE_ROOM}") from None
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _as_arrow(source: Mapping[str, Any]) -> Any:
    """Arrays in memory, NumPy's or with DLPack's interface, as an Arrow table."""
    import pyarrow as pa

    columns = {}
    for name, given in source.items():
        if not isinstance(given, np.ndarray) and hasattr(given, "__dlpack_device__"):
            if int(given.__dlpack_device__()[0]) not in ON_HOST:
                given = given.cpu() if hasattr(given, "cpu") else given.get()  # torch, CuPy
            given = np.from_dlpack(given)
        values = np.asarray(given)
        if values.ndim != 1:
            raise ValueError(
                f"open a table: column {name!r} has shape {values.shape}: a column is one row of values"
            )
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, TypeError) as problem:
            raise ValueError(
                f"open a table: column {name!r} has elements of {values.dtype}: {one_line(problem)}: give "
                "numbers, truth values, dates or texts"
            ) from None
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("open a table: its columns have different lengths: give all as many rows")
    return pa.table(columns)


class _TemporaryFolder:
    """Removes a folder when nothing names it any more."""

    def __init__(self, path: str) -> None:
        self._end = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)


def _of_arrays(source: Mapping[str, Any]) -> TableLayout:
    from penstock.arrays.formats.npy_header import find

    kinds: dict[str, Kind] = {"i": "integer", "u": "integer", "f": "float", "b": "boolean"}
    columns, rows = [], set()
    for name, given in source.items():
        path = os.fspath(given)
        place = find(path)
        dtype = place.dtype.numpy
        if len(place.shape) != 1 or dtype.kind not in kinds or (dtype.itemsize == 2 and dtype.kind == "f"):
            raise ValueError(
                f"open {path}: column {name!r}: it has shape {place.shape} and elements of {dtype}: a column "
                "is one row of integers, float32, float64 or truth values"
            )
        width = 8 * dtype.itemsize
        kind = ColumnType(kinds[dtype.kind], 64 if dtype.kind == "b" else width, dtype.kind != "u")
        piece = Piece(path, place.offset, place.nbytes)
        columns.append(ColumnPlace(name, kind, "uint8" if dtype.kind == "b" else dtype.name, [piece]))
        rows.add(place.shape[0])
    if len(rows) > 1:
        raise ValueError(f"open a table: its columns have {sorted(rows)} rows: give all as many")
    return TableLayout("arrays", [rows.pop()] if rows else [0], columns)

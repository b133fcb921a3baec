"""Tables: columns in files, queried by the threads of an executor."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock.columns import compiling
from penstock.columns.as_array import column_array
from penstock.columns.compiling import QueryCompiler
from penstock.columns.expressions import Expr
from penstock.columns.file_states import state_of
from penstock.columns.joining import How
from penstock.columns.layout import ColumnPlace, TableLayout
from penstock.columns.opening import layout_of
from penstock.columns.other_tables import Columns
from penstock.columns.query import GroupBy, Query
from penstock.columns.results import Result
from penstock.columns.selecting import taken
from penstock.columns.table_options import TableOptions, check_options, placement_of
from penstock.columns.types import ColumnType
from penstock.graph.options import Executor
from penstock.native import load_native
from penstock.options import checked, show_options
from penstock.volume.names import is_volume

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from penstock._native import ColumnTable
    from penstock.arrays.array import Array

DRIVE_FILES = 16
"""Namespaces of an emulated drive (src/controller/served_records.hpp)."""


class Table:
    """Columns in files, and queries of them: see `open_table`."""

    def __init__(self, layout: TableLayout, options: Mapping[str, Any]) -> None:
        self.name = layout.name
        self.layout = layout
        self.line_aware = True
        self.zone_maps = bool(options["zone_maps"])
        placement = placement_of(layout, options)
        self._options = {**options, "placement": placement}
        self._numbers = {column.name: k for k, column in enumerate(layout.columns)}
        self._native: ColumnTable | None = None
        self.compiler: QueryCompiler | None = None
        """Of its queries, on a GPU."""
        self._closed = False
        pieces = (piece.path for column in layout.columns for piece in column.pieces)
        members = (member for file in layout.stored.values() for member in file.members)
        self._paths = {path: Path(layout.folder, path) for path in (*pieces, *members) if not is_volume(path)}
        self._states = {
            name: layout.states[name] if name in layout.states else state_of(path)
            for name, path in self._paths.items()
        }
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
        return str(self._options["placement"])

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
                options = dict(self._options)
                for name in ("columns", "compiled", "memory", "progress", "zone_maps"):
                    options.pop(name)
                whole = self.placement not in ("hbm", "pinned")
                extents, pieces, columns = self.layout.native(whole)
                if options["media"] != "file" and len(extents) > DRIVE_FILES:
                    raise ValueError(
                        f"open {self.name}: its columns lie in {len(extents)} files, and an emulated drive "
                        f"takes {DRIVE_FILES}: name those that are asked for with columns="
                    )
                self.check_files()
                native = load_native().ColumnTable(extents, pieces, columns, options)
                self.compiler = self._compiler_of(native)
                self._native = native
            return self._native

    def _compiler_of(self, native: ColumnTable) -> QueryCompiler | None:
        always = self._options["compiled"] == "always"
        if native.architecture == 0:
            if always:
                raise ValueError(
                    f"open {self.name}: compiled='always': the executor {native.executor} interprets "
                    "queries: choose executor='cuda', or leave it at auto"
                )
            return None
        if self._options["compiled"] == "never":
            return None
        compiler = QueryCompiler(native.architecture, always)
        native.compile_with(compiler, compiling.LEAST_SECONDS)
        return compiler

    def check_files(self) -> None:
        """Refuses files that have changed since they were opened: layout and zone maps are of what they had.

        Raises:
            ValueError: One has, with its name.
        """
        for name, path in self._paths.items():
            if state_of(path) not in (self._states[name], None):
                raise ValueError(
                    f"query {self.name}: {name} has changed since it was opened: open the table again"
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
        return taken(query, rows.astype(np.uint64))

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
        self.layout.stored = {}

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
            `~/.cache/penstock`; several Parquet files that have the same columns, one behind the other: a
            list, or a pattern of names ("data/*.parquet", in their order); a dict of `.npy` files by column
            name; "volume:NAME@MEMBER,MEMBER" for a folder on a volume (docs/VOLUMES.md), as of these files;
            or what lies in memory and is written to a temporary folder: an object with Arrow's stream
            interface (a table of PyArrow, Polars, pandas or DuckDB, a result), a dict of arrays (NumPy, or
            with DLPack's interface: tensors).
        executor: auto, cpu, cuda.
        placement: host (the files mapped, read in place, over the link on a GPU), hbm (copied to the GPU),
            storage (behind a cache; of what is on a volume always so), host-cached, pinned.
        cache: Bytes of the cache, of the placements that have one.
        line: Bytes of a line of it.
        threads: Of the CPU executor, or the software controller.
        media: Of the placement storage: file, or the preset of an emulated SSD.
        drives: Emulated SSDs.
        direct: Bypass the page cache.
        zone_maps: Keep the extremes of runs of rows that conditions have read, and leave runs out by them.
        compiled: Kernels of a query's own on a GPU: auto (interpreted first, compiled in the background where
            a pass takes 20 ms, and used from the next run on), always (before the first run), never.
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
    layout = layout_of(source, options)
    check_options(layout, given, options)
    if isinstance(options["columns"], str):
        raise TypeError(f"open {layout.name}: columns={options['columns']!r}: give a list of names")
    if options["columns"] is not None:
        known = {column.name: column for column in layout.columns}
        for name in options["columns"]:
            if name not in known:
                why = layout.refused.get(name, f"it has {', '.join([*known][:8])}")
                raise ValueError(f"open {layout.name}: there is no column {name!r} to open: {why}")
        layout.columns = [known[name] for name in dict.fromkeys(options["columns"])]
    return Table(layout, options)

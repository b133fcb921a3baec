"""What a table is made of: files, folders, arrays and streams, and their conversion to folders of columns."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from penstock.arrays.layout import path_text
from penstock.checks import checked_count
from penstock.columns.conversions import cache_root, written_folder
from penstock.columns.file_states import FileState, state_of
from penstock.columns.folders import is_folder, open_folder, open_stored
from penstock.columns.layout import ColumnPlace, Piece, TableLayout, check_names
from penstock.columns.messages import one_line, pyarrow_for
from penstock.columns.npy_columns import of_npy_files
from penstock.columns.results import Result
from penstock.columns.temporary import MAKE_ROOM, TemporaryFolder, temporary_folder, write_array
from penstock.sizes import parse_size
from penstock.volume.names import is_volume

PARQUET = (".parquet", ".pq")
IN_PLACE = (".arrow", ".feather", ".ipc")
KNOWN = (".arrow", ".arrows", ".feather", ".ipc", ".parquet", ".pq", ".orc", ".csv", ".tsv", ".gz")
RULES = 3
"""Version of the rules of conversion: a file that was converted by others is converted again."""
ON_HOST = (1, 3)
"""DLPack's devices in memory that the host reaches: CPU, CUDA host."""


def layout_of(source: Any, options: Mapping[str, Any]) -> TableLayout:
    if isinstance(source, (list, tuple)) and _is_of_files(source):
        files = files_named(source)
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        return _of_files(files, options, f"{files[0]}{more}" if files else "a list of files")
    if isinstance(source, (str, os.PathLike)):
        if is_volume(os.fspath(source)):
            return open_stored(path_text(source))
        path = Path(os.fspath(source))
        if _is_pattern(path):
            return _of_files(files_named(source), options, str(path))
        if os.path.isdir(path):  # noqa: PTH112, Path.is_dir raises for a name that is too long
            if is_folder(path):
                return open_folder(path)
            raise ValueError(
                f"open {path}: there is no table in this folder: name a file, or convert one to it"
            )
        if not os.path.isfile(path):  # noqa: PTH113, likewise
            raise ValueError(f"open {path}: there is no such file")
        return _of_files([path], options, str(path))
    if isinstance(source, Result):
        return _of_result(source)
    if isinstance(source, Mapping) and not hasattr(source, "__arrow_c_stream__"):
        paths = [isinstance(each, (str, os.PathLike)) for each in source.values()]
        if all(paths):
            return of_npy_files(source)
        if any(paths):
            raise TypeError(
                "open a table of a dict: give paths of .npy files for all columns, or arrays for all"
            )
        layout = _of_stream(_as_arrow(source), options)
        layout.name = "arrays"
        return layout
    return _of_stream(source, options)


def files_named(source: Any) -> list[Path]:
    """The files that a path, a pattern such as "data/*.parquet", or a list of these stands for: those of a
    pattern in the order of their names, `**` stands for folders in folders.

    Raises:
        ValueError: A pattern that no file's name is like.
    """
    if isinstance(source, (list, tuple)):
        return [file for each in source for file in files_named(each)]
    path = Path(os.fspath(source))
    if is_volume(str(path)) or not _is_pattern(path):
        return [path]
    found = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207, of any root
    files = [Path(each) for each in found if os.path.isfile(each)]  # noqa: PTH113
    if not files:
        raise ValueError(f"open {path}: there is no file with such a name: mend the pattern, or name a file")
    return files


def _is_of_files(source: Any) -> bool:
    names = source if isinstance(source, (list, tuple)) else [source]
    return all(isinstance(each, (str, os.PathLike)) for each in names)


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path)) and not os.path.lexists(path)


def _of_files(paths: Sequence[Path], options: Mapping[str, Any], name: str) -> TableLayout:
    from penstock.columns import arrow

    _check_files(paths, name)
    path = paths[0]
    pyarrow_for(f"open {path}")
    states = [state_of(each) for each in paths]
    if len(paths) == 1 and path.suffix.lower() in IN_PLACE and not arrow.is_stream(path):
        found = arrow.open_ipc(str(path))
        if found is not None:
            found.states = {str(path): states[0]}
            return found
    facts = (
        ":".join(map(str, [each.resolve(), *(state or ())]))
        for each, state in zip(paths, states, strict=True)
    )
    key = ":".join([str(RULES), *facts])
    kept = cache_root() / f"{path.stem[:64]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not is_folder(kept):
        if kept.exists() and not is_folder(kept):  # what another thread puts there is complete
            shutil.rmtree(kept, ignore_errors=True)
        remedy = f"make room, set XDG_CACHE_HOME to another folder, or convert {name} to one and open that"
        with contextlib.suppress(FileExistsError):  # of another thread or process: as good as this one
            made = {"memory": options["memory"], "progress": options["progress"]}
            _convert_files(paths, states, kept, made, f"open {name}", remedy)
    layout = open_folder(kept)
    layout.name = name
    return layout


def _check_files(paths: Sequence[Path], name: str) -> None:
    if not paths:
        raise ValueError(f"open {name}: it is empty: name Parquet files")
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112, as above
            if is_folder(path):
                raise ValueError(f"open {path}: it is a folder of columns: open it by itself")
            files = path / "*.parquet"
            raise ValueError(f"open {path}: it is a folder: name its files, as in '{files}'")
        if not os.path.isfile(path):  # noqa: PTH113, as above
            raise ValueError(f"open {path}: there is no such file")
        suffix = path.suffix.lower()
        if suffix not in KNOWN:
            raise ValueError(
                f"open {path}: its name ends in {path.suffix!r}: the ending says what it is: "
                f"{', '.join(KNOWN)}"
            )
        if len(paths) > 1 and suffix not in PARQUET:
            raise ValueError(
                f"open {name}: {path} is no Parquet file, and several files are a table where all are: write "
                "it as one, or open one at a time"
            )


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
        source: A Parquet, ORC, CSV or Arrow file, several Parquet files (a list, or "data/*.parquet"), or an
            object with Arrow's stream interface.
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
    files = files_named(source) if _is_of_files(source) else None
    if files is not None:
        _check_files(files, "a list of files")
    there = f"convert to {target}: it is there already: name a new folder"
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(there)
    operation, remedy = f"convert to {target}", "make room, or name another folder"
    try:
        if files is None:
            _convert_stream(source, target, options, operation, remedy)
        else:
            _convert_files(files, [*map(state_of, files)], target, options, operation, remedy)
    except FileExistsError as problem:
        if problem.filename != str(target):
            raise
        raise ValueError(there) from None


def _convert_files(
    paths: Sequence[Path], states: Sequence[FileState | None], target: Path, options: Mapping[str, Any],
    operation: str, remedy: str,
) -> None:  # fmt: skip
    """`states`: of the files, when they were looked at. Nothing is left where one is another now."""
    from penstock.columns import reading

    pyarrow_for(f"convert {paths[0]}")
    with written_folder(target, operation, remedy) as made:
        reading.convert_files(paths, made, options["memory"], options.get("threads", 0), options["progress"])
        for path, state in zip(paths, states, strict=True):
            if state_of(path) != state:
                raise ValueError(
                    f"{operation}: {path} has changed while it was read: try again when it is written"
                )


def _convert_stream(
    source: Any, target: Path, options: Mapping[str, Any], operation: str, remedy: str
) -> None:
    from penstock.columns import arrow

    with written_folder(target, operation, remedy) as made:
        schema, batches, rows = _stream(source)
        arrow.convert(batches, schema, made, rows, options.get("threads", 0), options["progress"])


def _stream(source: Any) -> tuple[Any, Any, int]:
    pa = pyarrow_for(f"open a table of a {type(source).__name__}")
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
    with temporary_folder(what) as folder:
        kept = {"memory": options["memory"], "progress": options["progress"]}
        _convert_stream(source, Path(folder) / "table", kept, what, MAKE_ROOM)
        layout = open_folder(Path(folder) / "table")
    layout.name = type(source).__name__
    layout.owner = TemporaryFolder(folder)
    return layout


def _of_result(source: Result) -> TableLayout:
    """As its columns are: what is read once or twice is not packed for it."""
    with temporary_folder("open a table of a Result") as folder:
        columns = []
        for k, column in enumerate(source.columns):
            piece = Piece(f"{folder}/{k}.values", 0, column.bits.nbytes)
            write_array(piece.path, column.bits, "open a table of a Result")
            if not column.valid.all():
                marks = np.packbits(column.valid, bitorder="little")
                piece = replace(piece, validity=Piece(f"{folder}/{k}.valid", 0, marks.nbytes))
                write_array(f"{folder}/{k}.valid", marks, "open a table of a Result")
            encoding = "float64" if column.type.is_number else "int64"
            columns.append(ColumnPlace(column.name, column.type, encoding, [piece]))
    check_names([column.name for column in columns], "a Result")
    return TableLayout("Result", [source.row_count], columns, owner=TemporaryFolder(folder))


def _as_arrow(source: Mapping[str, Any]) -> Any:
    """Arrays in memory, NumPy's or with DLPack's interface, as an Arrow table."""
    pa = pyarrow_for("open a table of arrays in memory")
    columns = {}
    for name, given in source.items():
        if not isinstance(given, np.ndarray) and hasattr(given, "__dlpack_device__"):
            if int(given.__dlpack_device__()[0]) not in ON_HOST:
                given = given.cpu() if hasattr(given, "cpu") else given.get()  # torch, CuPy
            given = np.from_dlpack(given)
        values = np.asanyarray(given)  # nulls where an array is masked
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

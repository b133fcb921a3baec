"""Tables in folders of their own, also on volumes: a file for each column, and `table.json` that describes
them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.arrays.messages import naming
from penstock.columns.layout import ColumnPlace, Piece, TableLayout
from penstock.columns.packing import MAX_BITS, ColumnWriter, packed_bytes
from penstock.columns.types import ColumnType
from penstock.errors import Error
from penstock.volume.names import absolute, file_in, open_files

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock._native import VolumeFile

FACTS = "table.json"
FORMAT = 1


def is_folder(path: Path) -> bool:
    return (path / FACTS).is_file()


class DamagedError(Exception):
    """A file of a folder other than its facts, with the file's name."""


@dataclass(frozen=True)
class Files:
    """The files of a table, by their names in its folder."""

    text: Callable[[str], str]
    """What is in one. Raises OSError, ValueError."""
    path: Callable[[str], str]
    """Where the values of a column are."""


def open_folder(path: Path) -> TableLayout:
    """The table of a folder.

    Raises:
        ValueError: It is damaged, with what to do.
    """
    return _opened(str(path), Files(lambda file: (path / file).read_text(), lambda file: str(path / file)))


def open_stored(name: str) -> TableLayout:
    """The table of a folder on a volume, which stays open with it.

    Raises:
        ValueError: It is damaged, or none, with what to do.
        penstock.Error: The volume cannot be read.
    """
    whole = absolute(name)
    with naming("open", name):
        files = open_files(whole)
        if FACTS not in files:
            raise ValueError("it is no table: write one with penstock.columns.convert, and import that")

    def found(file: str) -> VolumeFile:
        if file not in files:
            raise DamagedError(f"it has no file {file}")
        return files[file]

    def path(file: str) -> str:
        found(file)
        return file_in(whole, file)

    layout = _opened(name, Files(lambda file: found(file).read(0, found(file).size).decode(), path))
    layout.stored = {file_in(whole, file): stored for file, stored in files.items()}
    return layout


def _opened(path: str, files: Files) -> TableLayout:
    try:
        facts = json.loads(files.text(FACTS))
        if facts["format"] != FORMAT:
            raise ValueError(f"its format is {facts['format']}, and {FORMAT} is known")
        rows = int(facts["rows"])
        columns = [_column(files, each, rows) for each in facts["columns"]]
    except DamagedError as problem:
        raise ValueError(f"open {path}: {problem}: write the table anew") from None
    except KeyError as problem:
        raise ValueError(
            f"open {path}: {FACTS} is damaged: it has no {problem}: write the table anew"
        ) from None
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        raise ValueError(f"open {path}: {FACTS} is damaged: {problem}: write the table anew") from None
    return TableLayout(path, [rows], columns, dict(facts.get("refused", {})))


def _words(files: Files, file: str) -> tuple[str | None, ...]:
    """Raises DamagedError."""
    try:
        words = json.loads(files.text(file))
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise DamagedError(f"{file}, the texts of a column, cannot be read: {why}") from None
    if not isinstance(words, list) or not all(isinstance(word, (str, type(None))) for word in words):
        raise DamagedError(f"{file} is no list of texts")
    return tuple(words)


def _column(files: Files, facts: Mapping[str, Any], rows: int) -> ColumnPlace:
    kind = dict(facts["type"])
    words = facts.get("words")
    if words is not None:
        kind["words"] = _words(files, words)
    column = ColumnPlace(
        str(facts["name"]), ColumnType(**kind), str(facts["encoding"]), [], int(facts["bits"]),
        int(facts["base"]), float(facts["divisor"]),
    )  # fmt: skip
    if column.encoding == "packed" and not 0 <= column.packed_bits <= MAX_BITS:
        raise ValueError(f"values of column {column.name!r} have {column.packed_bits} bits")
    nbytes = (
        packed_bytes(rows, column.bits) if column.encoding in ("packed", "bits") else rows * column.bits // 8
    )
    validity = None
    if facts.get("validity") is not None:
        validity = Piece(files.path(facts["validity"]), 0, packed_bytes(rows, 1))
    column.pieces.append(Piece(files.path(facts["file"]), 0, nbytes, 0, validity))
    return column


class UnusableError(ValueError):
    """Why a column cannot be stored, known from its values."""


class FolderWriter:
    """Writes a table into a new folder, some rows at a time, each column by one thread at a time.

    The folder is complete when the `with` ends without an error; else it has no facts, and is refused.

    Args:
        folder: A new one.
        columns: Types by name.
        pack: Store values in as few bits as their column needs.
        refused: Columns that are left out, and why.
        threads: 0: one per core.
    """

    def __init__(
        self, folder: str | os.PathLike[str], columns: Mapping[str, ColumnType], pack: bool = True,
        refused: Mapping[str, str] | None = None, threads: int = 0,
    ) -> None:  # fmt: skip
        self.folder = Path(folder)
        self.refused = dict(refused or {})
        self._check_usable(columns)
        self.columns: dict[str, ColumnWriter] = {}
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            if any(self.folder.iterdir()):
                raise ValueError(f"write {self.folder}: the folder is not empty: name a new one")
            for number, (name, kind) in enumerate(columns.items()):
                self.columns[name] = ColumnWriter(self.folder, number, name, kind, pack)
        self._pool = ThreadPoolExecutor(threads or len(os.sched_getaffinity(0)))
        self._pending: list[Future[None]] = []

    def _check_usable(self, columns: Mapping[str, Any]) -> None:
        if self.refused and not columns:
            why = "; ".join(f"{name!r}: {reason}" for name, reason in [*self.refused.items()][:3])
            raise ValueError(f"convert: there is no column that can be used ({why})")

    def put(self, add: Callable[[ColumnWriter], None]) -> None:
        """Start to add rows to every column; returns once the rows before these are added. A column for which
        the call raises UnusableError is left out.

        Raises:
            Exception: What the call before this raised, of the first column that failed.
            Error: The folder cannot be written.
        """
        self._wait()
        self._pending = [self._pool.submit(self._add, add, column) for column in self.columns.values()]

    def _add(self, add: Callable[[ColumnWriter], None], column: ColumnWriter) -> None:
        if column.name in self.refused:
            return
        try:
            add(column)
        except UnusableError as problem:
            self.refused[column.name] = str(problem)

    def _wait(self) -> None:
        wait(self._pending)
        done, self._pending = self._pending, []
        with self._writing():
            for each in done:
                each.result()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raises Error for OSError."""
        try:
            yield
        except OSError as problem:
            if isinstance(problem, Error) or not problem.errno:
                raise
            why = os.strerror(problem.errno)
            raise Error(
                f"write {self.folder}: {why}: make room, or choose another folder", problem.errno
            ) from problem

    def close(self) -> None:
        self._wait()
        with self._writing():
            self._close()

    def _close(self) -> None:
        for name in [name for name in self.columns if name in self.refused]:
            self.columns.pop(name).discard()
        self._check_usable(self.columns)
        facts = list(self._pool.map(ColumnWriter.close, self.columns.values()))
        rows = {writer.rows for writer in self.columns.values()}
        if len(rows) > 1:
            raise ValueError(f"write {self.folder}: its columns have {sorted(rows)} rows: give all as many")
        whole: dict[str, Any] = {"format": FORMAT, "rows": rows.pop() if rows else 0, "columns": facts}
        whole["refused"] = self.refused
        written = self.folder / (FACTS + ".new")
        written.write_text(json.dumps(whole, indent=1))
        written.replace(self.folder / FACTS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.close()
            elif isinstance(error, Exception):
                self._wait()  # an error in rows before it is the one to report
        finally:
            self._pool.shutdown(cancel_futures=True)
            for writer in self.columns.values():
                writer.abandon()

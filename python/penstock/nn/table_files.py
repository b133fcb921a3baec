"""Files of tables: how they are made, opened, grown and copied, and what a state says of one."""

from __future__ import annotations

import errno
import operator
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from penstock.arrays import Array, empty, open_array
from penstock.arrays.dtypes import dtype_named
from penstock.arrays.formats.kinds import kind_of
from penstock.arrays.layout import find_layout
from penstock.nn.generations import beside, generation_of
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO

_BYTES_AT_ONCE = 64 << 20


def is_open(array: Array) -> bool:
    return array._native is not None


def name_of(array: Array) -> str:
    """Of a table, for messages."""
    return array.path or "a table in memory"


def how_opened(array: Array) -> dict[str, Any]:
    """The arguments of `penstock.open` that say where it lies."""
    return array.opened.placing()


def referred_by(state: Any, whose: str) -> tuple[tuple[int, ...], str]:
    """Shape and type of the array that a state refers to. ValueError for what refers to none."""
    names = ("path", "shape", "dtype")
    if not isinstance(state, dict) or not all(name in state for name in names):
        raise ValueError(
            f"the state of an {whose} refers to an array, with a path, a shape and a dtype: this does not"
        )
    if not isinstance(state["path"], str) or not isinstance(state["shape"], (tuple, list)):
        raise ValueError(
            f"the state of an {whose} has a path and a shape: {state!r} has others in their place"
        )
    return tuple(state["shape"]), str(state["dtype"])


def checked_count(given: Any, name: str, what: str, least: int = 1) -> int:
    """A number of rows or columns. TypeError for no whole number, ValueError for less than `least`."""
    try:
        if isinstance(given, bool):
            raise TypeError
        count = operator.index(given)
    except TypeError:
        raise TypeError(f"{what}: {name} of type {type(given).__name__}: give a whole number") from None
    if count < least:
        raise ValueError(f"{what}: {name} {count}: give at least {least}")
    return count


# Made and opened


@contextmanager
def said_of(what: str, path: Any) -> Iterator[None]:
    """Bad input that does not name the user's path is said of `what`, which does."""
    try:
        yield
    except (TypeError, ValueError) as problem:
        if path is not None and str(path) not in str(problem):
            problem.args = (f"{what}: {problem}",)
        raise


@contextmanager
def _named_as(draft: Path, path: Path) -> Iterator[None]:
    """What goes wrong with a draft is said of the path that it was to have."""
    try:
        yield
    except (OSError, ValueError) as problem:
        problem.args = tuple(
            part.replace(str(draft), str(path)) if isinstance(part, str) else part for part in problem.args
        )
        if isinstance(problem, OSError) and problem.filename == str(draft):
            problem.filename = str(path)
        raise


def make_table(
    path: Path,
    shape: tuple[int, ...],
    dtype: Any,
    how: dict[str, Any],
    rows_from: Callable[[int, int, torch.device], Tensor],
) -> None:
    """A .npy file of rows_from(first, count, device), for a few rows at a time. how: as for `penstock.empty`.

    Under a name of its own until it is whole: half a table would be opened as one the next time.

    Errors: FileExistsError for a path that is taken, were it meanwhile.
    """
    draft = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.draft.npy")
    try:
        with _named_as(draft, path), empty(draft, shape, dtype, **how) as made:
            at_once = max(1, _BYTES_AT_ONCE // (shape[1] * made.dtype.itemsize))
            where, kind = made.device, getattr(torch, made.dtype.name)
            for first in range(0, shape[0], at_once):
                count = min(at_once, shape[0] - first)
                rows = torch.arange(first, first + count, device=where)
                made.scatter(rows, rows_from(first, count, where).to(kind))
        _name_finally(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _name_finally(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)  # unlike rename it takes no name that another process has taken meanwhile
    except FileExistsError:
        raise FileExistsError(
            f"create {path}: another process has made it meanwhile: open that one"
        ) from None
    except OSError:  # a file system without hard links
        draft.rename(path)


def _check_can_be_made(path: Path, dtype: Any) -> None:
    if path.suffix != ".npy":
        raise ValueError(
            f"create {path}: new tables are .npy files, and there is none of that name: end it with .npy, or "
            "give "
            "the path of a table that is there"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"create {path}: there is no folder {path.parent}: make it first")
    if not getattr(torch, dtype_named(dtype).name).is_floating_point:
        raise ValueError(
            f"create {path}: a table of {dtype_named(dtype)}: new tables are drawn from N(0, 1): give a "
            "floating-"
            "point dtype, or the path of a table that is there"
        )


def draw(count: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Rows from N(0, 1), as torch.nn.Embedding begins with, where torch draws numbers of that type."""
    kind = dtype if dtype.itemsize > 1 else torch.float32
    return torch.randn((count, width), device=device, dtype=kind).to(dtype)


def draw_table(
    path: Path, shape: tuple[int, int], dtype: Any, how: dict[str, Any], padding: int | None
) -> None:
    """A new table from N(0, 1), with zeros in the row `padding`.

    Errors: ValueError for a name or a type that new tables do not have, FileNotFoundError for a folder that
    is not there, before anything is written.
    """
    _check_can_be_made(path, dtype)
    kind = getattr(torch, dtype_named(dtype).name)

    def drawn(first: int, count: int, where: torch.device) -> Tensor:
        rows = draw(count, shape[1], kind, where)
        if padding is not None and first <= padding < first + count:
            rows[padding - first] = 0
        return rows

    path.with_name(f"{path.stem}.generation").unlink(missing_ok=True)  # of a table that is gone
    make_table(path, shape, dtype, how, drawn)


def open_table(path: Path, dtype: Any, writable: bool, how: dict[str, Any]) -> Array:
    """A table that is there. ValueError for one of another type."""
    if path.is_dir():
        raise IsADirectoryError(f"open {path}: it is a folder: name a .npy file in it")
    if kind_of(str(path), typed=False, described=True) == "raw":
        raise ValueError(
            f"open {path}: a raw file does not say what it holds: give array=penstock.open({str(path)!r}, "
            "dtype=..., shape=..., writable=True)"
        )
    kind, found = dtype_named(dtype), find_layout(path).dtype
    if found.name not in (kind.name, kind.numpy.name):  # a .npy file has bfloat16 as uint16
        raise ValueError(f"open {path}: it holds {found}, and the embedding is of {kind}: give dtype={found}")
    return open_array(path, writable=writable, dtype=dtype, **how)


# Read and stored as a whole


def _parts(array: Array, rows: int) -> Iterator[tuple[int, int]]:
    at_once = max(1, _BYTES_AT_ONCE // array.opened.row_bytes)
    for first in range(0, rows, at_once):
        yield first, min(at_once, rows - first)


def read_table(array: Array) -> Tensor:
    """All of it, in a tensor on the CPU. MemoryError where there is no room for one."""
    from penstock.arrays.whole import free_memory

    free = free_memory()
    if array.nbytes > free:
        raise MemoryError(
            f"copy {name_of(array)} into memory: it has {format_bytes(array.nbytes)}, and "
            f"{format_bytes(free)} are "
            "left: take rows of it (table.array[rows])"
        )
    whole = torch.empty(array.shape, dtype=getattr(torch, array.dtype.name))
    for first, count in _parts(array, len(array)):
        rows = torch.arange(first, first + count, device=array.device)
        whole[first : first + count] = array.gather(rows).cpu()
    return whole


def store_table(array: Array, values: Tensor) -> None:
    """Stores rows of the table's shape in all of it, and flushes."""
    kind = getattr(torch, array.dtype.name)
    for first, count in _parts(array, len(array)):
        rows = torch.arange(first, first + count, device=array.device)
        array.scatter(rows, values[first : first + count].detach().to(array.device, kind))
    if array.path is not None:
        array.flush()


# Grown

_FIRST_OF_SHAPE = re.compile(rb"('shape'\s*:\s*\(\s*)\d+(\s*,)")


def _header_with(header: bytes, rows: int, path: str) -> bytes:
    """A .npy header of the same length that says so many rows."""
    start = 10 if header[6] == 1 else 12  # magic, version and the header's length
    text, changed = _FIRST_OF_SHAPE.subn(rb"\g<1>%d\g<2>" % rows, header[start:].rstrip())
    room = len(header) - start - 1
    if changed != 1 or len(text) > room:
        raise ValueError(
            f"append rows to {path}: its header has no room for a longer shape: write it again with "
            "numpy.save"
        )
    return header[:start] + text.ljust(room) + b"\n"


def _check_grows(array: Array) -> Path:
    if array.path is None:
        raise ValueError(
            "append rows to a table in memory: it cannot grow: save it to a .npy file and open that"
        )
    if not array.writable:
        raise ValueError(f"append rows to {array.path}: it was opened read-only: open it with writable=True")
    path = Path(array.path)
    if path.suffix.lower() != ".npy":
        raise ValueError(f"append rows to {path}: only .npy files grow: save the table as one")
    return path


def _write(file: FileIO, content: memoryview) -> None:
    """All of it; one call may write a part."""
    while content:
        content = content[file.write(content) :]


def _no_room(path: Path, needed: int) -> OSError:
    free = shutil.disk_usage(path.parent).free
    problem = OSError(
        f"append rows to {path}: they take {format_bytes(needed)}, and the disk has {format_bytes(free)} "
        "free: make room, the table is as it was"
    )
    problem.errno = errno.ENOSPC  # with a filename its text would be another
    return problem


def append_rows(array: Array, count: int, rows_from: Callable[[int, int, torch.device], Tensor]) -> None:
    """Appends rows_from(first, count, device), for a few rows at a time, to a table in a .npy file.

    The rows are on the device for good before the header counts them: a process that is killed meanwhile
    leaves the table as it was. The file grows in place; arrays that others have open over it keep the rows
    that they had.

    Errors: ValueError for a table that lies elsewhere, or is read-only.
    """
    path, rows = _check_grows(array), len(array)
    kind, row_bytes, begin = getattr(torch, array.dtype.name), array.opened.row_bytes, array.opened.offset
    if generation := generation_of(array):
        generation.begin()

    def grow() -> int:
        end = begin + rows * row_bytes
        # Unbuffered: what a full disk refuses fails here, and not when the file is closed.
        with path.open("r+b", buffering=0) as file:
            header = _header_with(file.read(begin), rows + count, str(path))
            file.seek(end)
            try:
                for first, some in _parts(array, count):
                    values = rows_from(first, some, torch.device("cpu")).detach().to("cpu", kind).contiguous()
                    _write(file, memoryview(values.view(torch.uint8).numpy()).cast("B"))
                file.truncate()
                os.fsync(file.fileno())
            except BaseException as problem:
                file.truncate(end)
                if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
                    raise _no_room(path, count * row_bytes) from None
                raise
            file.seek(0)
            _write(file, memoryview(header))
            os.fsync(file.fileno())
        return rows + count

    array.rewrite(grow)


def sums_path(table: Array, what: str) -> Path:
    """Of what an optimizer keeps of each element of a table."""
    return beside(table, f"{what}.npy")

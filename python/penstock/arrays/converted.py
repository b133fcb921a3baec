"""Arrays that lie in no file as they are: converted once, to a .npy file in the cache directory."""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.formats import npy_header
from penstock.arrays.formats.place import Layout
from penstock.arrays.messages import line_of, shown_path, system_error
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from penstock.arrays.dtypes import DType
    from penstock.callbacks import Progress

PART_BYTES = 16 << 20
_FORMAT = 1  # part of every name: raised when conversion changes, so that copies are made anew
_DATA_OFFSET = 4096  # of the copies' elements: their headers are padded
_LOG = logging.getLogger("penstock")


@dataclass(frozen=True)
class Conversion:
    """How an array is read from a file that does not hold it in one piece."""

    path: str  # as the user gave it
    name: str | None
    why: str
    sources: tuple[str, ...]  # what makes another copy of it when it changes
    dtype: DType
    row_shape: tuple[int, ...]
    rows: Callable[[], int]
    parts: Callable[[], Iterator[np.ndarray[Any, Any]]]  # of rows, in their order

    @functools.cached_property
    def target(self) -> Path:
        """The copy, of the sources as they were when it was first looked for."""
        return self.target_now()

    def target_now(self) -> Path:
        """The copy. Its name changes when a source does."""
        digest = hashlib.sha256(f"{_FORMAT}\0{self.name}\0{self.dtype}\0{self.row_shape}".encode())
        for source in self.sources:
            about = Path(source).stat()
            # What copies keep of times, they do not keep of these.
            digest.update(os.fsencode(Path(source).resolve()))
            digest.update(
                f"\0{about.st_size}\0{about.st_mtime_ns}\0{about.st_ctime_ns}\0{about.st_ino}\0".encode()
            )
        stem = "-".join([Path(self.path).name, *([self.name] if self.name else [])])
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", stem)[:100].lstrip(".")
        return cache_dir() / f"{stem}-{digest.hexdigest()[:16]}.npy"


def cache_dir() -> Path:
    """$PENSTOCK_CACHE/arrays if that is set, else ~/.cache/penstock/arrays ($XDG_CACHE_HOME is respected)."""
    if given := os.environ.get("PENSTOCK_CACHE"):
        return Path(given).absolute() / "arrays"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "arrays"


def kept_or_planned(conversion: Conversion) -> Layout:
    """Where the copy lies, or will lie when `laid` has made it."""
    return kept(conversion) or _layout(conversion, conversion.target, conversion.rows())


def kept(conversion: Conversion) -> Layout | None:
    """Where the copy lies, None unless it has been made."""
    target = conversion.target
    try:
        found = npy_header.find(str(target))
    except (OSError, ValueError):
        return None  # damaged: it can be made again
    same = found.dtype.name == conversion.dtype.numpy.name and found.shape[1:] == conversion.row_shape
    return _layout(conversion, target, found.shape[0]) if same else None


def _layout(conversion: Conversion, target: Path, rows: int) -> Layout:
    fixed = f"{conversion.why}, so that it is read from a copy: save it as .npy to store into it"
    return Layout(
        conversion.path, (rows, *conversion.row_shape), conversion.dtype, _DATA_OFFSET, conversion.name,
        conversion.dtype, str(target), fixed, conversion,
    )  # fmt: skip


def laid(found: Layout, progress: Progress | None) -> Layout:
    """The same, with its bytes where it says. progress: called with "convert", bytes done and bytes in all.

    Errors: ValueError for a file that is damaged, penstock.Error where there is no room. Nothing is left of
    a copy that was not finished.
    """
    if found.conversion is None:
        return found
    if kept(found.conversion) is None:
        try:
            _make(found, found.conversion, progress)
        except OSError as problem:
            if problem.strerror is None or getattr(progress, "raised", None) is problem:
                raise
            raise _no_room(found.path, problem.errno or 0, line_of(OSError(problem.strerror))) from None
        _LOG.info("%s: %s", found.path, notice(found))
    return replace(found, conversion=None)


def notice(found: Layout) -> str:
    """One sentence on the copy."""
    assert found.conversion is not None
    return f"{found.conversion.why}: converted once, to {found.data} ({format_bytes(found.nbytes)})"


def _no_room(path: str, code: int, problem: str) -> OSError:
    return system_error(
        f"open {shown_path(path)}: its copy cannot be written to {shown_path(str(cache_dir()))}: {problem}: "
        "name a folder with room in PENSTOCK_CACHE",
        code,
    )


def _make(found: Layout, conversion: Conversion, progress: Progress | None) -> None:
    target = Path(str(found.data))
    target.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target.parent).free
    if found.nbytes > free:
        raise _no_room(
            found.path,
            errno.ENOSPC,
            f"it takes {format_bytes(found.nbytes)}, and {format_bytes(free)} are free",
        )
    part = target.with_name(f".{target.name}.part")
    while kept(conversion) is None:
        with part.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another process that makes the same copy is waited for
            if _is_at(file, part):  # else that one has finished, or failed
                _finish(file, part, target, found, conversion, progress)


def _is_at(file: IO[bytes], path: Path) -> bool:
    return path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino


def _finish(
    file: IO[bytes],
    part: Path,
    target: Path,
    found: Layout,
    conversion: Conversion,
    progress: Progress | None,
) -> None:
    try:
        if kept(conversion) is None:
            _write(file, found, conversion, progress)
            if conversion.target_now() != target:
                raise ValueError(
                    f"open {shown_path(found.path)}: it was changed while it was converted: open it again"
                )
            part.replace(target)
        else:
            part.unlink()
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write(file: IO[bytes], found: Layout, conversion: Conversion, progress: Progress | None) -> None:
    from penstock import _native

    element = conversion.dtype  # found.dtype may be another name for the same bytes
    header = _native.npy_header(element.npy_kind, element.itemsize, list(found.shape))
    assert len(header) == _DATA_OFFSET
    file.truncate(0)
    file.write(header)
    done = 0
    for part in _read(conversion):
        if part.size:
            file.write(np.ascontiguousarray(part, element.numpy).data.cast("B"))
        done += part.nbytes
        if progress is not None:
            progress("convert", done, found.nbytes)
    if done != found.nbytes:
        raise ValueError(
            f"open {shown_path(found.path)}: it has {done} bytes of elements, and its header says "
            f"{found.nbytes}: write it anew"
        )
    file.flush()
    os.fsync(file.fileno())


def _read(conversion: Conversion) -> Iterator[np.ndarray[Any, Any]]:
    """The parts. ValueError for what the library that reads them cannot read."""
    parts = iter(conversion.parts())
    while True:
        try:
            part = next(parts)
        except StopIteration:
            return
        except Exception as problem:  # whatever decompression raises
            where = f"open {shown_path(conversion.path)}"
            text = str(problem)
            if isinstance(problem, ValueError) and text.startswith(where) and "\n" not in text:
                raise
            raise ValueError(f"{where}: it is damaged: {line_of(problem)}: write it anew") from None
        yield part

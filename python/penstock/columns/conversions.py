"""Folders that conversions write: hidden until they are complete, removed if their process is killed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import Error

LOCK = "penstock.lock"
"""In a hidden folder, locked as long as the process that writes the folder runs."""


def cache_root() -> Path:
    """The folder of the tables that open_table converts."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "columns"


@contextmanager
def written_folder(target: Path, operation: str, remedy: str) -> Iterator[Path]:
    """A folder that becomes `target` after the block; after an error nothing is left of it.

    Removes what killed processes have left beside `target`.

    Args:
        target: Does not exist, or is an empty folder.
        operation: What the sentences of errors begin with.
        remedy: What to do if the folder cannot be written.

    Raises:
        Error: The folder cannot be written.
        FileExistsError: There is something at `target` after the block.
    """
    with _explained(target.parent, operation, remedy):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent)
        place = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with _explained(target.parent, operation, remedy, Error), _locked(place):
            try:
                yield place / "table"
                _move(place / "table", target)
            finally:
                shutil.rmtree(place, ignore_errors=True)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def remove_leftovers(folder: Path) -> None:
    """Removes hidden folders of conversions whose processes have ended."""
    for lock in folder.glob(f".*-*/{LOCK}"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:
            pass  # its process runs, or the file system has no locks
        finally:
            os.close(descriptor)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """The lock gets its name after it is locked: one that is not locked is of a process that has ended."""
    descriptor = -1
    try:
        try:
            descriptor = os.open(place / "new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            (place / "new").rename(place / LOCK)
            (place / "table").mkdir()
        except OSError as problem:
            raise Error(f"write {place}: {problem.strerror}", problem.errno or 0) from None
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _move(made: Path, target: Path) -> None:
    try:
        made.rename(target)
    except OSError as problem:
        if problem.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, "there is something already", str(target)) from None
        raise Error(f"write {target}: {os.strerror(problem.errno or 0)}", problem.errno or 0) from None


@contextmanager
def _explained(folder: Path, operation: str, remedy: str, kind: type[OSError] = OSError) -> Iterator[None]:
    try:
        yield
    except kind as problem:
        code = problem.errno or 0
        if not code:
            raise
        why = os.strerror(code)
        raise Error(f"{operation}: {folder} cannot be written: {why}: {remedy}", code) from None

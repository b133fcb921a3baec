"""New folders that appear whole or not at all, and are removed where a run was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.arrays.messages import Watched, naming, shown_path
from penstock.errors import Error
from penstock.sizes import format_bytes

LOCK = "penstock.lock"
"""Beside a draft, locked as long as the process that writes it runs."""


class Draft:
    """A new folder in a hidden one beside its target, whose name it gets when it is kept; else it is removed.

    The lock gets its name after it is locked, so a named one without a lock belongs to a process that has
    ended. Threads and processes may each have drafts for one target: the first that is kept is the target.
    """

    def __init__(self, target: Path) -> None:
        """Also removes what killed processes have left beside the target. OSErrors stay as they are."""
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target.parent)
        self._target = target
        self._place = Path(tempfile.mkdtemp(prefix=f".{target.name[:32]}-", dir=target.parent))
        self._lock = -1
        self.folder = self._place / "draft"
        try:
            new = self._place / "new"
            self._lock = os.open(new, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            with suppress(OSError):  # not every file system has locks
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            new.rename(self._place / LOCK)
            self.folder.mkdir()
        except BaseException:
            self.close()
            raise

    def keep(self) -> bool:
        """Give it the target's name. False: there is something already. Other OSErrors stay as they are."""
        try:
            self.folder.rename(self._target)
        except OSError as problem:
            if problem.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                return False
            raise
        return True

    def close(self) -> None:
        """Remove what was not kept."""
        _remove(self._place)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def draft_folder(
    operation: str, to: str | os.PathLike[str], nbytes: int = 0, progress: Watched | None = None
) -> Iterator[Path]:
    """A new folder, which becomes `to` after the block; removed where the block fails (see Draft).

    Args:
        operation: What errors begin with, before `to`.
        to: The new folder.
        nbytes: What it takes, as far as it is known.
        progress: Its own errors stay as they are.

    Raises:
        ValueError: `to` exists and is not empty.
        penstock.Error: An OSError of the block, or `nbytes` do not fit.
    """
    target = Path(to).resolve()
    name = shown_path(os.fspath(to))
    try:
        check_new(operation, to)
        draft = Draft(target)
        try:
            free = shutil.disk_usage(target.parent).free
            if nbytes > free:
                raise Error(
                    f"{operation} {name}: it takes {format_bytes(nbytes)}, and {format_bytes(free)} are "
                    "free: make room, or choose another folder",
                    errno.ENOSPC,
                )
            yield draft.folder
            if not draft.keep():
                raise _not_new(operation, to)
        finally:
            draft.close()
    except OSError as problem:
        own = progress is not None and progress.raised is problem
        if own or isinstance(problem, Error) or not problem.errno or problem.strerror is None:
            raise
        why = os.strerror(problem.errno)
        raise Error(
            f"{operation} {name}: {why}: make room, or choose another folder", problem.errno
        ) from problem


def check_new(operation: str, to: str | os.PathLike[str]) -> None:
    """ValueError for a folder that is not empty, and for a file; OSError where nobody can say."""
    target = Path(to)
    with naming(operation, os.fspath(to)):
        new = not target.exists() or (target.is_dir() and not any(target.iterdir()))
    if not new:
        raise _not_new(operation, to)


def _not_new(operation: str, to: str | os.PathLike[str]) -> ValueError:
    return ValueError(
        f"{operation} {shown_path(os.fspath(to))}: it exists and is not empty: name a new folder"
    )


def _remove_leftovers(folder: Path) -> None:
    """Removes drafts whose processes have ended."""
    for lock in folder.glob(f".*-*/{LOCK}"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(lock.parent)
        except OSError:
            pass  # its process runs, or the file system has no locks
        finally:
            os.close(descriptor)


def _remove(place: Path) -> None:
    """The lock last: without it nobody would remove the rest, were this process killed meanwhile."""
    shutil.rmtree(place / "draft", ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)

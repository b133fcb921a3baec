"""New folders that appear whole or not at all, and are removed where a run was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.arrays.messages import Watched, shown_path
from penstock.errors import Error
from penstock.sizes import format_bytes


@contextmanager
def draft_folder(
    operation: str, to: str | os.PathLike[str], nbytes: int = 0, progress: Watched | None = None
) -> Iterator[Path]:
    """A new folder beside `to`, which gets that name after the block; removed where the block fails.

    The process locks its draft. Drafts for `to` without a lock are those of killed runs, and are removed.

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
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        check_new(operation, to)
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        free = shutil.disk_usage(target.parent).free
        if nbytes > free:
            raise Error(
                f"{operation} {name}: it takes {format_bytes(nbytes)}, and {format_bytes(free)} are free: "
                "make room, or choose another folder",
                errno.ENOSPC,
            )
        draft.mkdir()
        lock = -1
        try:
            with suppress(OSError):  # a file system without locks: no process removes the draft of another
                lock = _locked(draft)
            yield draft
            check_new(operation, to)  # another run may have made it meanwhile
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            if lock >= 0:
                os.close(lock)
    except OSError as problem:
        own = progress is not None and progress.raised is problem
        if own or isinstance(problem, Error) or not problem.errno or problem.strerror is None:
            raise
        why = os.strerror(problem.errno)
        raise Error(
            f"{operation} {name}: {why}: make room, or choose another folder", problem.errno
        ) from problem


def check_new(operation: str, to: str | os.PathLike[str]) -> None:
    """ValueError for a folder that is not empty, and for a file."""
    target = Path(to)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ValueError(
            f"{operation} {shown_path(os.fspath(to))}: it exists and is not empty: name a new folder"
        )


def _locked(folder: Path) -> int:
    """A descriptor that holds a folder's lock; BlockingIOError where another process has it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _remove_abandoned(target: Path) -> None:
    name = re.compile(rf"\.{re.escape(target.name)}\.\d+\.draft")
    for draft in [path for path in target.parent.iterdir() if name.fullmatch(path.name)]:
        with suppress(OSError):
            lock = _locked(draft)
            shutil.rmtree(draft, ignore_errors=True)
            os.close(lock)

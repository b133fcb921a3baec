"""Folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import Error
from penstock.sizes import format_bytes


@contextmanager
def draft_folder(operation: str, folder: str | os.PathLike[str], nbytes: int = 0) -> Iterator[Path]:
    """A new folder beside `folder`, which gets that name after the block; removed where the block fails.

    A run that is killed leaves the draft, a hidden folder without dataset.json.

    nbytes: What will be written, as far as it is known.

    Raises:
        ValueError: `folder` exists and is not empty.
        penstock.Error: For an OSError from the block, or where `nbytes` do not fit.
    """
    target = Path(folder).resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise ValueError(f"{operation} {target}: it exists and is not empty: name a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        _check_room(operation, target, nbytes)
        draft.mkdir()
        try:
            yield draft
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as problem:
        if isinstance(problem, Error) or not problem.errno:
            raise
        why = os.strerror(problem.errno)
        raise Error(
            f"{operation} {target}: {why}: make room, or choose another folder", problem.errno
        ) from problem


def _check_room(operation: str, target: Path, nbytes: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if nbytes > free:
        raise Error(
            f"{operation} {target}: it takes {format_bytes(nbytes)}, and {format_bytes(free)} are free: make "
            "room, or choose another folder",
            errno.ENOSPC,
        )

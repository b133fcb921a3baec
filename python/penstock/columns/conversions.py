"""Folders that conversions write: hidden until they are complete, removed if their process is killed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from penstock.drafts import Draft
from penstock.errors import Error


def cache_root() -> Path:
    """The folder of the tables that open_table converts."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "columns"


@contextmanager
def written_folder(target: Path, operation: str, remedy: str) -> Iterator[Path]:
    """A folder that becomes `target` after the block; after an error nothing is left of it (see Draft).

    Args:
        target: Does not exist, or is an empty folder.
        operation: What the sentences of errors begin with.
        remedy: What to do if the folder cannot be written.

    Raises:
        Error: The folder cannot be written.
        FileExistsError: There is something at `target` after the block.
    """
    with _explained(target.parent, operation, remedy):
        draft = Draft(target)
    with closing(draft):
        with _explained(target.parent, operation, remedy, Error):
            yield draft.folder
        with _explained(target.parent, operation, remedy):
            kept = draft.keep()
    if not kept:
        raise FileExistsError(errno.EEXIST, "there is something already", str(target))


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

"""Whether a file is still the one that was looked at."""

from __future__ import annotations

import os
from typing import NamedTuple


class FileState(NamedTuple):
    """Another one when the file has changed, also where its time of writing was set back."""

    nbytes: int
    modified_ns: int
    changed_ns: int
    """When its facts have changed, which no program sets."""
    inode: int


def state_of(path: str | os.PathLike[str]) -> FileState | None:
    """None: there is no such file."""
    try:
        found = os.stat(path)  # noqa: PTH116, of any length
    except FileNotFoundError:
        return None
    return FileState(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)

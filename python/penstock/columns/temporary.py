"""Temporary folders that tables in memory are written to."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import Error

MAKE_ROOM = "make room, or set TMPDIR to another folder"


@contextlib.contextmanager
def temporary_folder(what: str) -> Iterator[str]:
    """A folder that is removed when the block ends with an error."""
    try:
        folder = tempfile.mkdtemp(prefix="penstock-table-")
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        raise Error(f"{what}: {tempfile.gettempdir()} cannot be written: {why}: {MAKE_ROOM}") from None
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def write_array(path: str, values: npt.NDArray[Any], operation: str) -> None:
    """A file in such a folder. numpy.tofile has no reason why it fails.

    Raises:
        Error: It cannot be written.
    """
    try:
        Path(path).write_bytes(np.ascontiguousarray(values).data)
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        folder = Path(path).parent
        raise Error(
            f"{operation}: {folder} cannot be written: {why}: {MAKE_ROOM}", problem.errno or 0
        ) from None


class TemporaryFolder:
    """Removes a folder when nothing names it any more."""

    def __init__(self, path: str) -> None:
        self._end = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)

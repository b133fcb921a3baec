"""What callers give as folders."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def folder_text(folder: str | os.PathLike[str]) -> str:
    """The name of a folder, as the compiled part takes it.

    Raises:
        ValueError, TypeError: For a name that is no UTF-8, or bytes.
    """
    text = os.fspath(folder)
    if not isinstance(text, str):
        raise TypeError(f"folder {text!r}: give a str or a path")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"folder {os.fsencode(text)!r}: its name is no UTF-8: rename it") from None
    return text


@contextlib.contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Waits until no other thread or process writes to the folder, where it is there and has locks."""
    descriptor = -1
    try:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)

"""Compressed graph files, unpacked to a file without a name: whatever ends the process, nothing is left."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from penstock.errors import Error

from ._binding import Progress

READERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
PIECE = 1 << 20
SHARE = 300
"""Of 1000 steps of the whole work, those that unpacking is told as."""


@contextmanager
def unpacked(path: Path, folder: Path, progress: Progress | None) -> Iterator[tuple[str, Progress | None]]:
    """The path of the unpacked file in `folder`, while this lasts, and what tells the progress of the rest.

    path: a file whose name ends in one of READERS.
    Raises ValueError when it is damaged, penstock.Error when `folder` cannot hold what is in it.
    """
    reader = READERS[path.suffix.lower()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as plain:
            with path.open("rb") as file:
                _copy(path, reader(file), file, plain, progress)
            plain.flush()
            yield f"/proc/self/fd/{plain.fileno()}", _rest_of(progress)
    except OSError as error:
        if isinstance(error, Error):
            raise
        code = error.errno or 0
        sentence = f"unpack {path} to {folder}: {os.strerror(code)}: make room, or choose another folder"
        raise Error(sentence, code) from error


def _copy(path: Path, source: Any, file: IO[bytes], to: IO[bytes], progress: Progress | None) -> None:
    size = max(os.fstat(file.fileno()).st_size, 1)
    while True:
        try:
            piece = source.read(PIECE)
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            said = " ".join(str(error).split())
            raise ValueError(f"read {path}: what it packs is damaged ({said}): get the file again") from error
        if not piece:
            return
        to.write(piece)
        if progress is not None:
            progress(min(SHARE * file.tell() // size, SHARE), 1000)


def _rest_of(progress: Progress | None) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(SHARE + (1000 - SHARE) * done // max(total, 1), 1000)

"""Compressed graph files, unpacked to a file without a name: whatever ends the process, nothing is left."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from penstock.errors import Error

from ._binding import StepProgress


class _Zstandard(io.RawIOBase):
    """What frames of Zstandard pack, one after another. Raises EOFError where the last one is cut off."""

    WORDS = 1 << 16
    """Bytes that are unpacked at once: each may become many."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.new_frame = _zstandard()
        self.frame: Any = None
        self.left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, to: Any) -> int:
        while not self.left:
            packed = self.frame.unused_data if self.frame is not None and self.frame.eof else b""
            if self.frame is None or self.frame.eof:
                self.frame = None
            packed = packed or self.file.read(self.WORDS)
            if not packed:
                if self.frame is not None:
                    raise EOFError("it ends in the middle of a frame")
                return 0
            self.frame = self.frame or self.new_frame()
            try:
                self.left = self.frame.decompress(packed)
            except Exception as error:  # each library has a type of its own
                raise OSError(str(error)) from error
        size = min(len(to), len(self.left))
        to[:size], self.left = self.left[:size], self.left[size:]
        return size


class _Streams(io.RawIOBase):
    """What streams of bzip2 or xz pack, one after another; zeros may follow each of them.

    Raises EOFError where the last one is cut off, OSError where one is damaged; BZ2File and LZMAFile take a
    damaged stream behind another for the end."""

    def __init__(self, file: IO[bytes], new_stream: Callable[[], Any]) -> None:
        self.file = file
        self.new_stream = new_stream
        self.stream = new_stream()
        self.packed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, to: Any) -> int:
        while True:
            if self.stream.eof and not self.next_stream():
                return 0
            if self.stream.needs_input and not self.packed:
                self.packed = self.file.read(PIECE)
                if not self.packed:
                    raise EOFError("it ends in the middle of a stream")
            try:
                found = self.stream.decompress(self.packed, len(to))
            except (lzma.LZMAError, OSError, ValueError) as error:
                raise OSError(str(error)) from error
            self.packed = b""
            if found:
                to[: len(found)] = found
                return len(found)

    def next_stream(self) -> bool:
        packed = self.stream.unused_data.lstrip(b"\0")
        while not packed:
            packed = self.file.read(PIECE)
            if not packed:
                return False
            packed = packed.lstrip(b"\0")
        self.stream, self.packed = self.new_stream(), packed
        return True


def _zstandard() -> Callable[[], Any]:
    """Makes what unpacks one frame."""
    try:
        return cast("Callable[[], Any]", importlib.import_module("compression.zstd").ZstdDecompressor)
    except ImportError:  # before Python 3.14
        pass
    try:
        library = importlib.import_module("zstandard")
    except ImportError:
        raise ValueError("it is packed by Zstandard: pip install zstandard") from None
    return lambda: library.ZstdDecompressor().decompressobj()


READERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": lambda file: io.BufferedReader(_Streams(file, bz2.BZ2Decompressor), PIECE),
    ".xz": lambda file: io.BufferedReader(_Streams(file, lzma.LZMADecompressor), PIECE),
    ".zst": lambda file: io.BufferedReader(_Zstandard(file), PIECE),
}
PIECE = 1 << 20
SHARE = 300
"""Of 1000 steps of the whole work, those that unpacking is reported as."""


def _reader(path: Path, file: IO[bytes]) -> Any:
    try:
        return READERS[path.suffix.lower()](file)
    except ValueError as error:
        raise ValueError(f"read {path}: {error}") from None


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The file, unpacked while it is read where its name ends in one of READERS."""
    place = Path(path)
    with place.open("rb") as file:
        yield _reader(place, file) if place.suffix.lower() in READERS else file


@contextmanager
def unpacked(
    path: Path, folder: Path, progress: StepProgress | None
) -> Iterator[tuple[str, StepProgress | None]]:
    """The path of the unpacked file in `folder`, while this lasts, and what reports the progress of the rest.

    path: a file whose name ends in one of READERS.
    Raises ValueError when it is damaged, penstock.Error when `folder` cannot hold what is in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as plain:
            with path.open("rb") as file:
                _copy(path, _reader(path, file), file, plain, progress)
            plain.flush()
            yield f"/proc/self/fd/{plain.fileno()}", _rest_of(progress)
    except OSError as error:
        if isinstance(error, Error):
            raise
        code = error.errno or 0
        sentence = f"unpack {path} to {folder}: {os.strerror(code)}: make room, or choose another folder"
        raise Error(sentence, code) from error


def _copy(path: Path, source: Any, file: IO[bytes], to: IO[bytes], progress: StepProgress | None) -> None:
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


def _rest_of(progress: StepProgress | None) -> StepProgress | None:
    if progress is None:
        return None
    return lambda done, total: progress(SHARE + (1000 - SHARE) * done // max(total, 1), 1000)

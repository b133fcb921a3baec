"""Tables of numbers in gzipped text with commas, read as a stream."""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .npy import NpyWriter, missing, unread

_LARGEST = 16 << 20  # bytes of text at once; numbers of it take some 8 times as many
_REMEDY = "fetch the dataset again"


def read_columns(path: Path, dtype: npt.DTypeLike, memory: int) -> Iterator[npt.NDArray[Any]]:
    """Rows of a table in pieces of shape (rows, columns).

    Raises:
        penstock.Error: It is missing or cannot be read.
        ValueError: It is damaged, or rows have different numbers of columns.
    """
    columns = 0
    for text in _whole_lines(path, max(1 << 12, min(_LARGEST, memory // 32))):
        columns = columns or text.split(b"\n", 1)[0].count(b",") + 1
        values, widths = _parse(text, np.dtype(dtype)), _columns_of(text)
        if values is None or len(values) != widths.sum() or (widths != columns).any():
            raise ValueError(
                f"read {path}: a line is no {columns} numbers with commas between them: {_REMEDY}"
            )
        yield values.reshape(-1, columns)


def _columns_of(text: bytes) -> npt.NDArray[np.intp]:
    """Of each line."""
    characters = np.frombuffer(text, np.uint8)
    commas, ends = (np.flatnonzero(characters == each) for each in b",\n")
    return np.diff(np.searchsorted(commas, ends), prepend=0) + 1


def _parse(text: bytes, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """None where it is not all numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # which NumPy has for text that it cannot read
        try:
            return np.fromstring(text[:-1].replace(b"\n", b","), dtype, sep=",")
        except (DeprecationWarning, ValueError, OverflowError):
            return None


def _whole_lines(path: Path, nbytes: int) -> Iterator[bytes]:
    """Text that ends with a newline; some `nbytes` at a time."""
    rest = b""
    try:
        with gzip.open(path, "rb") as file:
            while read := file.read(nbytes):
                text = rest + read
                end = text.rfind(b"\n") + 1
                rest = text[end:]
                if end:
                    yield text[:end].replace(b"\r\n", b"\n")
    except FileNotFoundError:
        raise missing(path, _REMEDY) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        reason = " ".join(str(problem).split()).rstrip(".")
        raise ValueError(f"read {path}: its gzip is damaged ({reason}): {_REMEDY}") from None
    except OSError as problem:
        raise unread(path, problem) from problem
    if rest:
        yield rest + b"\n"


def read_words(path: Path) -> list[list[str]]:
    """Lines of a short table, in memory."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [line.split(",") for line in file.read().split("\n") if line]
    except FileNotFoundError:
        raise missing(path, _REMEDY) from None
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as problem:
        reason = " ".join(str(problem).split()).rstrip(".")
        raise ValueError(f"read {path}: its gzip is damaged ({reason}): {_REMEDY}") from None
    except OSError as problem:
        raise unread(path, problem) from problem


def read_ids(path: Path, memory: int) -> npt.NDArray[np.int64]:
    """The first column of a table of integers, in memory."""
    return np.concatenate(
        [np.empty(0, np.int64), *(piece[:, 0] for piece in read_columns(path, np.int64, memory))]
    )


def store_columns(path: Path, draft: Path, dtype: npt.DTypeLike, memory: int) -> None:
    """Write a table as the .npy file `draft`, a row for each line. Its length is known at the end."""
    rows, width = 0, 0
    writer = None
    try:
        for piece in read_columns(path, dtype, memory):
            if writer is None:
                width = piece.shape[1]
                writer = NpyWriter(draft, dtype, (0, width))
            writer.put(rows, piece)
            rows += len(piece)
        if writer is None:
            raise ValueError(f"read {path}: it has no lines: {_REMEDY}")
        writer.set_rows(rows)
    finally:
        if writer is not None:
            writer.close()

"""Records, and the index over them."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsFloat, SupportsIndex, TypedDict

import numpy as np
import numpy.typing as npt

from penstock.arguments import reading
from penstock.callbacks import Progress
from penstock.checks import checked_count, checked_number
from penstock.errors import Error
from penstock.graph.options import Executor
from penstock.lsh.folders import folder_text, one_writer
from penstock.lsh.index import IndexFacts, header_of
from penstock.lsh.vectors import as_vectors
from penstock.native import load_native
from penstock.options import Choice, Count, Option, Size, checked, show_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

RECORDS = "records"
INDEX = "lsh.index"
MOST_DIMENSIONS = 1 << 20
MOST_RECORD_BYTES = 1 << 40
LEAST_WIDTH, MOST_WIDTH = float(np.finfo(np.float32).tiny), 1e38
WRITTEN_AT_ONCE = 1 << 24  # bytes


class BuildOptions(TypedDict, total=False):
    """What `build` takes."""

    tables: Annotated[SupportsIndex, Count(32, least=1, most=256)]
    projections: Annotated[SupportsIndex, Count(8, least=1, most=64)]
    width: Annotated[SupportsFloat, Option(0.0)]
    candidates: Annotated[SupportsFloat, Option(256.0)]
    seed: Annotated[SupportsIndex, Count(1)]
    executor: Annotated[Executor, Choice("auto")]
    memory: Annotated[SupportsIndex | str | None, Size(unless="4GiB")]
    threads: Annotated[SupportsIndex, Count(most=1024)]


def write_records(folder: str | os.PathLike[str], vectors: Any, *, record_bytes: int | None = None) -> int:
    """Write vectors as the records of a folder, which is made.

    Args:
        folder: Gets a file `records`; what was there is replaced when all is written, and its index removed.
        vectors: Numbers of shape (n, dimensions), also a memory-mapped array: rows are converted to float32 a
            few at a time.
        record_bytes: Of a record, a multiple of 16; None takes 4 * dimensions, rounded up.

    Returns:
        Bytes of a record.

    Raises:
        ValueError, TypeError: For what is no vectors or not finite, or records too short for them.
        penstock.Error: Where it cannot be written.
    """
    path = Path(folder_text(folder))
    array, size = _checked_vectors(vectors, record_bytes)
    _make(path)
    with one_writer(path):
        _replace_records(path, array, size)
    return size


def _checked_vectors(vectors: Any, record_bytes: int | None) -> tuple[npt.NDArray[Any], int]:
    """The vectors, and the bytes of a record of them."""
    array = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"vectors of shape {array.shape}: give (n, dimensions), one or more of each")
    least = 4 * array.shape[1]
    size = -(-least // 16) * 16 if record_bytes is None else _checked_bytes(record_bytes)
    if size % 16 != 0 or size < least:
        raise ValueError(f"record_bytes {size}: give a multiple of 16 of at least {least}")
    return array, size


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> Error:
    code = error.errno or 0
    return Error(f"write {path}: {os.strerror(code)}: make room, or choose another folder", code)


def _replace_records(path: Path, array: npt.NDArray[Any], size: int) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix=f".{RECORDS}.", suffix=".part", dir=path) as drafts:
            draft = Path(drafts) / RECORDS
            with reading(f"write {path / RECORDS}", array):
                _write(draft, array, size)
            (path / INDEX).unlink(missing_ok=True)  # of other records
            draft.replace(path / RECORDS)
    except Error:
        raise
    except OSError as error:
        raise _unwritten(path / RECORDS, error) from error


def _write(path: Path, array: npt.NDArray[Any], size: int) -> None:
    at_once = max(1, WRITTEN_AT_ONCE // size)
    with path.open("wb") as file:
        for first in range(0, len(array), at_once):
            some = as_vectors(array[first : first + at_once], "vectors", first=first)
            padded = np.zeros((len(some), size // 4), np.float32)
            padded[:, : some.shape[1]] = some
            file.write(padded.data)  # tofile() has no errno


def _checked_bytes(record_bytes: object) -> int:
    return checked_count("record_bytes", record_bytes, 16, MOST_RECORD_BYTES)


@show_options(BuildOptions)
def build(
    folder: str | os.PathLike[str],
    vectors: Any = None,
    *,
    dimensions: int | None = None,
    record_bytes: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[BuildOptions],
) -> IndexFacts:
    """Build the index of a folder of records (Datar et al., SCG 2004; SYSTOR 2016, section 2.3).

    Records are hashed by the executor's threads, which read them where they lie. The index replaces an older
    one when it is complete. Another build of the same folder waits until this one has ended.

    Args:
        folder: With a file `records`; it gets a file `lsh.index` of some 8 * tables bytes for each record.
        vectors: Written as the records first (`write_records`, which removes an older index); None takes
            those that are there.
        dimensions: Numbers of a record, float32; None takes those of `vectors`.
        record_bytes: From one record to the next; None takes 4 * dimensions, rounded up to a multiple of 16.
        tables: Hash tables. More find more of the nearest, and take more room and time.
        projections: Hash functions that select a bucket of a table.
        width: Of a cell of a hash function, in units of distance; 0 chooses it for `candidates`.
        candidates: How many records share a bucket with one of them on average, counted once for each table.
        seed: Of the hash functions.
        executor: "cpu", "cuda", or "auto".
        memory: Of the host, for tables that are built at once.
        threads: Of the host, and of the CPU executor; 0: one for each core.
        progress: Called with what is done, how far it is, and of how much.

    Returns:
        What the index has.

    Raises:
        ValueError, TypeError: For a bad argument.
        penstock.Error: For what cannot be read or written.
    """
    given = checked(BuildOptions, options)
    text = folder_text(folder)
    settings: dict[str, Any] = {**given, "width": _width(given), "candidates": _candidates(given)}
    if dimensions is not None:
        settings["dimensions"] = checked_count("dimensions", dimensions, 1, MOST_DIMENSIONS)
    if vectors is not None:
        vectors, record_bytes = _checked_vectors(vectors, record_bytes)
        if settings.setdefault("dimensions", vectors.shape[1]) != vectors.shape[1]:
            raise ValueError(f"vectors of shape {vectors.shape}: dimensions are {dimensions}: leave them out")
    if "dimensions" not in settings:
        raise ValueError("dimensions: give them, or vectors")
    settings["record_bytes"] = 0 if record_bytes is None else _checked_bytes(record_bytes)
    if vectors is not None:
        _make(Path(text))
    with one_writer(Path(text)):
        if vectors is not None:
            _replace_records(Path(text), vectors, settings["record_bytes"])
        return header_of(load_native().lsh_build(text, settings, progress))


def _width(given: Any) -> float:
    width = checked_number("width", given["width"])
    if width != 0 and not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise ValueError(f"width {width}: give 0, or a number from {LEAST_WIDTH:.2g} to {MOST_WIDTH:g}")
    return width


def _candidates(given: Any) -> float:
    candidates = checked_number("candidates", given["candidates"])
    if not 0 < candidates < math.inf:
        raise ValueError(f"candidates {candidates}: give a number above 0")
    return candidates

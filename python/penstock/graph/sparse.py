"""Matrices as graphs, through SciPy: Matrix Market files and archives of scipy.sparse.save_npz.

An entry (r, c) is an edge from r to c.
"""

from __future__ import annotations

import importlib
import io
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from penstock.errors import Error

from ._binding import Array
from .matrix_lines import PIECE, MatrixLines
from .unpacking import opened
from .weights import weights_of


@dataclass(frozen=True)
class CoordinateGraph:
    """n edges. from_, to: int32 or int64, shape (n,); weights: int32 or float32, shape (n,), or None.

    symmetrise: each edge stands for both directions. reading: what was taken as what, and how much, for
    people."""

    vertices: int
    from_: Array
    to: Array
    weights: Array | None
    directed: bool
    names: list[str] | None = None
    reading: str = ""
    symmetrise: bool = False


def read_mtx(path: str) -> CoordinateGraph:
    """Read a Matrix Market coordinate file; a symmetric one gives both directions.

    Raises ValueError when it is dense, not square, complex, skew-symmetric, hermitian or malformed.
    """
    scipy_io = _scipy("scipy.io", path)
    check_readable(path)
    try:
        with _lines(path, check=False) as source:
            rows, columns, _, layout, field, symmetry = scipy_io.mminfo(source)
    except (ValueError, OverflowError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise _malformed(path, error) from error
    if layout != "coordinate":
        raise ValueError(f"read {path}: a dense matrix ('{layout}'): write it in coordinate form")
    if symmetry not in ("general", "symmetric"):
        raise ValueError(f"read {path}: a {symmetry} matrix: only general and symmetric ones are graphs")
    if field not in ("pattern", "integer", "unsigned-integer", "real", "double"):
        raise ValueError(f"read {path}: {field} values are no weights: write pattern, integer or real")
    _check_square(path, rows, columns)
    try:
        with _lines(path, check=True) as source:
            matrix = scipy_io.mmread(source, spmatrix=False)
    except (ValueError, OverflowError, EOFError, OSError, MemoryError, zlib.error,
            lzma.LZMAError) as error:  # fmt: skip
        raise _malformed(path, error) from error
    weights = None if field == "pattern" else matrix.data
    return _from_coo(path, matrix, weights, directed=symmetry == "general")


@contextmanager
def _lines(path: str, *, check: bool) -> Iterator[IO[bytes]]:
    with opened(path) as file:
        yield io.BufferedReader(MatrixLines(file, check=check), PIECE)


def read_npz(path: str) -> CoordinateGraph:
    """Read an archive of scipy.sparse.save_npz, as from_matrix().

    Raises ValueError when it holds no sparse matrix, one that is not square or complex, or is malformed.
    """
    sparse = _scipy("scipy.sparse", path)
    check_readable(path)
    if not _is_archive(path):
        raise _no_archive(path)
    try:
        # NumPy leaves a damaged archive open when it opens the file by itself.
        with Path(path).open("rb") as archive:
            matrix = sparse.load_npz(archive)
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)
        coo = matrix.tocoo()
        if matrix.format == "bsr":
            coo.eliminate_zeros()  # what fills up its blocks
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, EOFError, OSError,
            NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error) as error:  # fmt: skip
        # NumPy's advice on pickles would have a stranger's file run as a program.
        raise (_no_archive(path) if "pickle" in str(error) else _malformed(path, error)) from error
    return from_matrix(path, coo)


def from_matrix(called: str, matrix: Any) -> CoordinateGraph:
    """A sparse matrix or array of SciPy: each stored entry is an edge, whose value is its weight, also where
    all are 1 or there are none; of bool the values are no weights.

    Raises ValueError when it is not square, or its values are no weights."""
    if matrix.ndim != 2:
        raise ValueError(f"read {called}: an array of {matrix.ndim} dimensions is no graph: give a matrix")
    _check_square(called, *matrix.shape)
    _check_indices(called, matrix)
    coo = matrix.tocoo()
    return _from_coo(called, coo, None if coo.data.dtype == np.bool_ else coo.data, directed=True)


def _check_indices(called: str, matrix: Any) -> None:
    """ValueError for indices outside of the matrix, which SciPy's conversions believe."""
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif hasattr(matrix, "coords") or hasattr(matrix, "row"):
            ends = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
            for end, size in zip(ends, matrix.shape, strict=True):
                if len(end) != len(matrix.data) or (len(end) and not 0 <= end.min() <= end.max() < size):
                    raise ValueError(f"an index is not from 0 to {size - 1}")
    except ValueError as problem:
        reason = str(problem).partition(". ")[0]
        raise ValueError(f"read {called}: {reason}: correct its indices") from None


def _is_archive(path: str) -> bool:
    """Whether it is a zip archive with the entry that save_npz, and no other, writes."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "format.npy" in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        return False


def _no_archive(path: str) -> ValueError:
    return ValueError(f"open {path}: not a SciPy .npz archive: save the matrix with scipy.sparse.save_npz")


def _from_coo(path: str, coo: Any, weights: Array | None, *, directed: bool) -> CoordinateGraph:
    from_, to = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    found = None if weights is None else weights_of(path, weights)
    values = "no weight" if found is None else f"values as weight ({found.dtype})"
    reading = f"{len(from_)} entries: source row, target column, {values}"
    return CoordinateGraph(coo.shape[0], from_, to, found, directed, reading=reading)


def _check_square(path: str, rows: int, columns: int) -> None:
    if rows != columns:
        raise ValueError(f"read {path}: a matrix of {rows} x {columns} is no graph: it must be square")


def check_readable(path: str) -> None:
    """Missing files and permissions as penstock.Error, before SciPy turns them into other things.

    Raises ValueError for what is no regular file: opening a FIFO would wait for its writer.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise ValueError(f"open {path}: is not a regular file: name a file")
        with Path(path).open("rb"):
            pass
    except OSError as error:
        code = error.errno or 0
        sentence = f"open {path}: {os.strerror(code)}: check the path and its permissions"
        raise Error(sentence, code) from error


def _malformed(path: str, error: BaseException) -> ValueError:
    reason = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
    return ValueError(f"read {path}: SciPy cannot read it ({reason}): write the file again")


def _scipy(module: str, path: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"read {path}: this format needs SciPy: pip install scipy") from error

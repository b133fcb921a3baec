"""Matrices as graphs, through SciPy: Matrix Market files and archives of scipy.sparse.save_npz.

An entry (r, c) is an edge from r to c.
"""

from __future__ import annotations

import importlib
import os
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import Error

from ._binding import Array


@dataclass(frozen=True)
class CoordinateGraph:
    """n edges. from_, to: int32 or int64, shape (n,); weights: int32 or float32, shape (n,), or None."""

    vertices: int
    from_: Array
    to: Array
    weights: Array | None
    directed: bool


def read_mtx(path: str) -> CoordinateGraph:
    """Read a Matrix Market coordinate file; a symmetric one gives both directions.

    Raises ValueError when it is dense, not square, complex, skew-symmetric, hermitian or malformed.
    """
    io = _scipy("scipy.io", path)
    check_readable(path)
    try:
        rows, columns, _, layout, field, symmetry = io.mminfo(path)
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        raise _malformed(path, error) from error
    if layout != "coordinate":
        raise ValueError(f"read {path}: a dense matrix ('{layout}'): write it in coordinate form")
    if symmetry not in ("general", "symmetric"):
        raise ValueError(f"read {path}: a {symmetry} matrix: only general and symmetric ones are graphs")
    if field not in ("pattern", "integer", "unsigned-integer", "real", "double"):
        raise ValueError(f"read {path}: {field} values are no weights: write pattern, integer or real")
    _check_square(path, rows, columns)
    try:
        matrix = io.mmread(path, spmatrix=False)
    except (ValueError, OverflowError, EOFError, OSError, MemoryError, zlib.error) as error:
        raise _malformed(path, error) from error
    weights = None if field == "pattern" else matrix.data
    return _from_coo(path, matrix, weights, directed=symmetry == "general")


def read_npz(path: str) -> CoordinateGraph:
    """Read an archive of scipy.sparse.save_npz; stored values that are all 1, or bool, are no weights.

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
        rows, columns = matrix.shape
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)
        coo = matrix.tocoo()
        if matrix.format == "bsr":
            coo.eliminate_zeros()  # what fills up its blocks
    except (ValueError, TypeError, KeyError, IndexError, EOFError, OSError, NotImplementedError, MemoryError,
            zipfile.BadZipFile, zlib.error) as error:  # fmt: skip
        # NumPy's advice on pickles would have a stranger's file run as a program.
        raise (_no_archive(path) if "pickle" in str(error) else _malformed(path, error)) from error
    _check_square(path, rows, columns)
    plain = coo.data.dtype == np.bool_ or bool(np.all(coo.data == 1))
    return _from_coo(path, coo, None if plain else coo.data, directed=True)


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
    return CoordinateGraph(
        coo.shape[0], from_, to, None if weights is None else weights_of(path, weights), directed
    )


def weights_of(path: str, values: Array) -> Array:
    """Weights as int32, or finite float32. Raises ValueError when they do not fit."""
    if values.dtype.kind in "iu":
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        if low >= -(2**31) and high < 2**31:
            return values.astype(np.int32)
        raise ValueError(f"read {path}: weights from {low} to {high} do not fit int32: scale them")
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        if np.isfinite(narrow).all():
            return narrow
        raise ValueError(f"read {path}: a weight is no finite float32 number: scale or remove it")
    raise ValueError(
        f"read {path}: values of dtype {values.dtype} are no weights: convert them to integers or floats"
    )


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
    return ValueError(
        f"read {path}: SciPy cannot read it ({' '.join(str(error).split())}): write the file again"
    )


def _scipy(module: str, path: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"read {path}: this format needs SciPy: pip install scipy") from error

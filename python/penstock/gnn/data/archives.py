"""Arrays in .npz archives and in torch's .pt files, without loading them whole and without torch."""

from __future__ import annotations

import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .npy import Npy, missing, parse_header, read_npy, unread

_REMEDY = "fetch the dataset again"


def npz_names(path: Path) -> set[str]:
    """Names of the arrays of an archive; raises as npz_member."""
    with _opened(path) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


def npz_member(path: Path, name: str, draft: Path) -> Npy:
    """An array of an archive, where it lies; one that is compressed is unpacked to a file of `draft`.

    Raises:
        penstock.Error: The archive is missing or cannot be read.
        ValueError: It is damaged, or has no such array.
    """
    with _opened(path) as archive:
        try:
            member = archive.getinfo(f"{name}.npy")
        except KeyError:
            raise ValueError(f"read {path}: it has no array {name}: {_REMEDY}") from None
        if member.compress_type == zipfile.ZIP_STORED:
            return _stored(path, member)
        unpacked = draft / f"{name}.tmp"
        try:
            with archive.open(member) as file, unpacked.open("xb") as target:
                shutil.copyfileobj(file, target, 1 << 20)
        except OSError:
            raise
        except Exception as problem:  # what unpacking damaged bytes raises is anything
            raise _damaged(path, problem) from None
    return read_npy(unpacked, _REMEDY)


def _stored(path: Path, member: zipfile.ZipInfo) -> Npy:
    with path.open("rb") as file:
        file.seek(member.header_offset)
        local = file.read(30)  # ends with the lengths of the name and of the extra field, which follow
        start = member.header_offset + 30 + int.from_bytes(local[26:28], "little")
        start += int.from_bytes(local[28:30], "little")
        file.seek(start)
        facts = parse_header(file, path, start, _REMEDY)
    if facts.offset + facts.nbytes > start + member.file_size:
        raise ValueError(f"read {path}: {member.filename} is shorter than its header promises: {_REMEDY}")
    return facts


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError:
        raise missing(path, _REMEDY) from None
    except OSError as problem:
        raise unread(path, problem) from problem
    except Exception as problem:  # what the directory of a damaged archive raises is anything
        raise _damaged(path, problem) from None


def _damaged(path: Path, problem: Exception) -> ValueError:
    reason = " ".join(str(problem).split()).rstrip(".")
    return ValueError(f"read {path}: it is damaged ({reason}): {_REMEDY}")


def read_torch_arrays(path: Path) -> dict[str, Any]:
    """The dictionary of NumPy arrays and numbers that torch.save wrote.

    Unpickles nothing but those: a file that was fetched can run no code.

    Raises:
        penstock.Error: It is missing or cannot be read.
        ValueError: It is damaged, or holds something else.
    """
    try:
        if zipfile.is_zipfile(path):
            with _opened(path) as archive:
                name = next((name for name in archive.namelist() if name.endswith("/data.pkl")), "data.pkl")
                with archive.open(name) as file:
                    found = _Unpickler(file).load()
        else:
            with path.open("rb") as plain:  # before torch 1.6: three pickles of torch's own come first
                found = [_Unpickler(plain).load() for _ in range(4)][-1]
    except FileNotFoundError:
        raise missing(path, _REMEDY) from None
    except OSError as problem:
        raise unread(path, problem) from problem
    except Exception as problem:  # what unpickling damaged bytes raises is anything
        raise _damaged(path, problem) from None
    if not isinstance(found, dict):
        raise ValueError(f"read {path}: it holds no dictionary: {_REMEDY}")
    return found


# Where these functions are differs between versions of NumPy.
_NUMPY = {"_reconstruct": np.empty(0).__reduce__()[0], "scalar": np.int64(0).__reduce__()[0]}


class _Unpickler(pickle.Unpickler):
    """Of NumPy's arrays and scalars alone."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name in _NUMPY:
            return _NUMPY[name]
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):  # how Python 2's protocol writes bytes
            return lambda text, encoding: str(text).encode(encoding)
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no NumPy array")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it holds tensors, not NumPy arrays")

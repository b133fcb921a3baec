"""The element types of arrays, by one name for NumPy, PyTorch and files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.arrays.messages import shown


@dataclass(frozen=True, eq=False)
class DType:
    """An element type. Equal to whatever names the same one: "float32", numpy.float32, torch.float32.

    `numpy` holds the same bytes where NumPy has no such type: bfloat16 as uint16, float8 as uint8.
    """

    name: str
    itemsize: int
    numpy: np.dtype[Any]
    npy_kind: str

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if other is None:  # NumPy's name for float64
            return NotImplemented
        try:
            return self.name == dtype_named(other).name
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)


_PLAIN = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_PLAIN += ["float16", "float32", "float64"]
_AS_BYTES = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
DTYPES = {name: DType(name, np.dtype(name).itemsize, np.dtype(name), np.dtype(name).kind) for name in _PLAIN}
DTYPES |= {
    name: DType(name, np.dtype(like).itemsize, np.dtype(like), "u") for name, like in _AS_BYTES.items()
}


_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "b": 6, "bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12}


def dlpack_type(dtype: DType) -> tuple[int, int]:
    """Code and bits of DLPack's DLDataType."""
    return _DLPACK_CODES.get(dtype.name, _DLPACK_CODES[dtype.npy_kind]), 8 * dtype.itemsize


_CODES = re.compile(r"[<>=|]?([?bBhHiIlLqQefd]|[biuf][1248])|[a-z]+")


def dtype_named(given: Any) -> DType:
    """From a name, a NumPy dtype or its text ("f4", "<i8", "half"), or a torch.dtype.

    Raises ValueError for a type that arrays do not have, TypeError for what names none.
    """
    if isinstance(given, DType):
        return given
    if isinstance(given, str):
        name = _name_of_text(given)
    elif type(given).__module__ == "torch":
        name = str(given).removeprefix("torch.")
    else:
        name = _name_of(given)
    if name not in DTYPES:
        raise ValueError(f"dtype {shown(name)}: arrays have none such: choose one of {', '.join(DTYPES)}")
    return DTYPES[name]


def _name_of_text(text: str) -> str:
    name = text.removeprefix("torch.")
    if name in DTYPES or _CODES.fullmatch(name) is None or name == "a":
        return name
    try:
        return _native_name(np.dtype(name))
    except TypeError:
        return name


def _name_of(given: Any) -> str:
    try:
        if given is None:
            raise TypeError
        kind = np.dtype(given)
    except Exception:  # objects that look like a dtype fail in ways of their own
        raise TypeError(
            f"dtype {shown(given)}: give a name such as float32, or a dtype of NumPy or PyTorch"
        ) from None
    return _native_name(kind)


def _native_name(kind: np.dtype[Any]) -> str:
    if not kind.isnative:
        raise ValueError(
            f"dtype {kind.str} is of the other byte order: convert it to little-endian first, as "
            f"array.astype({kind.newbyteorder('<').str!r})"
        )
    return str(kind.name)

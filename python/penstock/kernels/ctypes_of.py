"""The element types of CUDA C++ that kernels take, as NumPy knows them."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ElementType:
    """A scalar, or a vector type such as float4: `count` numbers of one dtype."""

    name: str  # as the source has it
    dtype: str  # of arrays (penstock.arrays.dtypes)
    count: int = 1

    @property
    def number(self) -> str:
        """As parameters.hpp names it."""
        if self.count > 1 or self.dtype in ("float16", "bfloat16"):
            return "no_number"
        kind = np.dtype(self.dtype).kind
        return {"f": "floating_number", "i": "signed_number"}.get(kind, "unsigned_number")

    @functools.cached_property
    def alignment(self) -> int:
        """As CUDA has it: vectors of two and four are loaded at once."""
        return self.itemsize // self.count if self.count % 2 else min(self.itemsize, 16)

    @functools.cached_property
    def itemsize(self) -> int:
        one = {"bfloat16": 2, "float16": 2}.get(self.dtype)
        return (one or np.dtype(self.dtype).itemsize) * self.count


_SCALARS = {
    "bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long": "int64",
    "unsigned long": "uint64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "size_t": "uint64",
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "half": "float16",
    "__nv_bfloat16": "bfloat16",
}
_SCALARS |= {f"{kind}{bits}_t": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_VECTORS = {
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "longlong": "int64",
    "ulonglong": "uint64",
    "float": "float32",
    "double": "float64",
}
_TYPES = {name: ElementType(name, dtype) for name, dtype in _SCALARS.items()}
_TYPES |= {
    f"{name}{count}": ElementType(f"{name}{count}", dtype, count)
    for name, dtype in _VECTORS.items()
    for count in (2, 4)
    if np.dtype(dtype).itemsize * count <= 16
}


def element_type(text: str) -> ElementType | None:
    """Of a type as the source names it, without const; None for any other."""
    words = re.sub(r"\bstd\s*::\s*", "", text).split()
    words = [word for word in words if word not in ("const", "volatile", "struct")]
    if "long" in words or "short" in words or "char" in words or "unsigned" in words:
        kinds = [w for w in ("signed", "unsigned") if w in words and (w == "unsigned" or "char" in words)]
        rest = [w for w in words if w not in ("signed", "unsigned", "int")]
        words = kinds + (rest or ["int"])
    elif words and words[0] == "signed":
        words = words[1:] or ["int"]
    return _TYPES.get(" ".join(words))

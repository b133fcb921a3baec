"""Arrays that a reference describes: their files are looked into again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.arrays.devices import device_name
from penstock.arrays.dtypes import DType, dtype_named
from penstock.arrays.layout import Layout, check_layout
from penstock.arrays.placement import check_storable, data_of
from penstock.arrays.spec import REFERENCE, Opened

_NAMED = (".safetensors", ".arrow", ".feather")  # what references without `stored` may refer to


def referred(reference: dict[str, Any], *, device: Any, writable: bool) -> Opened:
    """What it takes to open the array that `Opened.reference` describes.

    Errors: ValueError for what refers to none, or to a file that holds another array now: its header is read
    again, and its shape, its type and the place of its first byte are what the reference says.
    """
    try:
        dtype, shape = dtype_named(reference["dtype"]), tuple(reference["shape"])
        path, offset, name = reference["path"], reference["offset"], reference.get("name")
        called = reference.get("stored")
        facts = {key: reference[key] for key in REFERENCE if key != "name"}
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"{reference!r} does not refer to an array: {problem!r}") from None
    stored = _stored_as(path, dtype) if called is None else dtype_named(called)
    found = check_layout(Layout(path, shape, dtype, offset, name, stored))
    facts |= {"shape": shape, "dtype": dtype, "name": name, "stored": stored}
    if writable:
        check_storable(found)
    facts |= data_of(found)
    return Opened(device=device_name(device), writable=writable, **facts)


def _stored_as(path: str, dtype: DType) -> DType | None:
    """What a header calls the elements that a reference does not have."""
    if Path(path).suffix.lower() != ".npy":
        return None if Path(path).suffix.lower() not in _NAMED else dtype
    return dtype_named(dtype.numpy)

"""Datasets of HDF5 files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.arrays.converted import PART_BYTES, Conversion, kept_or_planned
from penstock.arrays.dtypes import DTYPES, DType
from penstock.arrays.formats.place import Layout, checked, chosen, needed
from penstock.arrays.messages import line_of, shown, shown_path


def find(path: str, name: str | None) -> Layout:
    """In place where the dataset is contiguous, or one chunk without filters; else converted."""
    h5py = needed("h5py", path, "HDF5 files", "hdf5")
    where = f"open {shown_path(path)}"
    try:
        with h5py.File(path, "r") as file:
            dataset = file.get(name) if name is not None else None
            if not isinstance(dataset, h5py.Dataset):
                dataset = file[chosen(path, name, _datasets(h5py, file), "datasets")]
            key = dataset.name.lstrip("/") if name is None else name
            return _found(path, key, dataset)
    except Exception as problem:  # whatever the HDF5 library finds damaged
        if isinstance(problem, ValueError) and str(problem).startswith(where):
            raise
        raise ValueError(
            f"{where}: it is no HDF5 file that h5py would read: {line_of(problem)}: write it anew"
        ) from None


def _datasets(h5py: Any, file: Any) -> list[str]:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


def _found(path: str, name: str, dataset: Any) -> Layout:
    where = f"open {shown_path(path)}: dataset {shown(name)}"
    kind, shape = dataset.dtype.newbyteorder("="), dataset.shape
    if kind.hasobject or kind.fields or kind.subdtype or kind.name not in DTYPES:
        raise ValueError(f"{where} has elements of {shown(str(dataset.dtype))}: give one of numbers")
    if not shape:
        raise ValueError(f"{where} has no dimensions: an array needs at least one")
    if dataset.is_virtual or dataset.external:
        raise ValueError(f"{where} has its elements in other files: open those")
    element = DTYPES[kind.name]
    begin = 0 if 0 in shape else _offset(dataset)
    if begin is not None:
        return checked(Layout(path, shape, element, begin, name, element))
    why = "is of another byte order or layout"
    if dataset.chunks is not None:
        filters = dataset.id.get_create_plist().get_nfilters()
        why = "is compressed" if filters else "is in several chunks"
    return kept_or_planned(
        Conversion(
            path, name, f"dataset {shown(name)} {why}", (path,), element, shape[1:], lambda: int(shape[0]),
            lambda: _parts(path, name, element),
        )
    )  # fmt: skip


def _offset(dataset: Any) -> int | None:
    """Of the first byte in the file; None unless all bytes follow it, as NumPy has them."""
    import h5py

    if not dataset.id.get_type().equal(h5py.h5t.py_create(dataset.dtype, logical=True)):
        return None  # of a type that h5py converts as it reads
    if not dataset.dtype.isnative or not dataset.id.get_storage_size():
        return None  # the latter: nothing has been written yet
    if dataset.chunks is None:
        at = dataset.id.get_offset()
        return None if at is None else int(at)
    about, plain = dataset.id, dataset.id.get_create_plist().get_nfilters() == 0
    whole = dataset.chunks[0] >= dataset.shape[0] and dataset.chunks[1:] == dataset.shape[1:]
    if not plain or not whole or about.get_num_chunks() != 1:
        return None
    at = about.get_chunk_info(0).byte_offset
    return None if at is None else int(at)


def _parts(path: str, name: str, element: DType) -> Iterator[np.ndarray[Any, Any]]:
    import h5py

    with h5py.File(path, "r") as file:
        dataset = file[name]
        chunk = dataset.chunks[0] if dataset.chunks else 1
        fit = PART_BYTES // max(1, math.prod(dataset.shape[1:]) * element.itemsize)
        rows = max(1, fit // chunk) * chunk  # no chunk is decompressed twice
        for first in range(0, dataset.shape[0], rows):
            yield dataset[first : first + rows].astype(element.numpy, copy=False)

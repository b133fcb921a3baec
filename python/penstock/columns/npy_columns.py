"""Columns that are `.npy` files, read in place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.arrays.formats.npy_header import find, find_times
from penstock.arrays.formats.place import Layout
from penstock.arrays.layout import path_text
from penstock.arrays.messages import naming
from penstock.columns.file_states import FileState, state_of
from penstock.columns.layout import ColumnPlace, Piece, TableLayout
from penstock.columns.temporary import TemporaryFolder, temporary_folder, write_array
from penstock.columns.types import DATE, ColumnType, Kind, TimeUnit
from penstock.volume.names import absolute, is_volume, open_each

KINDS: dict[str, Kind] = {"i": "integer", "u": "integer", "f": "float", "b": "boolean"}
UNITS: tuple[TimeUnit, ...] = ("s", "ms", "us", "ns")
TIMES: dict[str, ColumnType] = {"D": DATE, **{unit: ColumnType("timestamp", unit=unit) for unit in UNITS}}
NAT = np.iinfo(np.int64).min
DAYS = 1 << 31
PART = 1 << 20
"""Times that are looked through at once."""


def of_npy_files(source: Mapping[str, Any]) -> TableLayout:
    """A table of files by the names of its columns. Files of times are looked through once, for NaT, which is
    a null.

    Raises:
        ValueError: One is no column, or has another length than the others.
        penstock.Error: One cannot be read, or the nulls of one not be written.
    """
    columns, rows = [], set()
    states: dict[str, FileState | None] = {}
    for name, given in source.items():
        path = path_text(given)
        if is_volume(path):
            path = absolute(path)
        else:
            states.setdefault(path, state_of(path))
        with naming("open", os.fspath(given), path):
            place, column = _column(name, path)
        columns.append(column)
        rows.add(place.shape[0])
    if len(rows) > 1:
        raise ValueError(f"open a table: its columns have {sorted(rows)} rows: give all as many")
    paths = {piece.path for column in columns for piece in column.pieces}
    on_volumes = [path for path in paths if is_volume(path)]
    stored = open_each(on_volumes) if on_volumes else {}
    layout = TableLayout("arrays", [rows.pop()] if rows else [0], columns, stored=stored, states=states)
    _mark_nulls(layout)
    return layout


def _column(name: str, path: str) -> tuple[Layout, ColumnPlace]:
    times = None if is_volume(path) else find_times(path)  # volumes take no arrays of times
    if times is None:
        place = find(path)
        dtype = place.dtype.numpy
        stored = str(dtype)
        kind = None
        if dtype.kind in KINDS and dtype != np.float16:
            width = 64 if dtype.kind == "b" else 8 * dtype.itemsize
            kind = ColumnType(KINDS[dtype.kind], width, dtype.kind != "u")
    else:
        place, unit = times
        stored, kind = f"datetime64[{unit}]", TIMES.get(unit)
    if len(place.shape) != 1 or kind is None:
        raise ValueError(
            f"open {path}: column {name!r}: it has shape {place.shape} and elements of {stored}: a column is "
            "one row of integers, float32, float64, truth values, or datetime64 of s, ms, us, ns or D"
        )
    encoding = "uint8" if kind.kind == "boolean" else place.dtype.name
    return place, ColumnPlace(name, kind, encoding, [Piece(path, place.offset, place.nbytes)])


def _mark_nulls(layout: TableLayout) -> None:
    times = [column for column in layout.columns if column.type in TIMES.values() and layout.total]
    marks = {k: found for k, each in enumerate(times) if (found := _valid(each, layout)) is not None}
    if not marks:
        return
    with temporary_folder("open a table") as folder:
        for k, bits in marks.items():
            (piece,) = times[k].pieces
            path = f"{folder}/{k}.valid"
            write_array(path, bits, "open a table")
            times[k].pieces = [replace(piece, validity=Piece(path, 0, bits.nbytes))]
    layout.owner = TemporaryFolder(folder)


def _valid(column: ColumnPlace, layout: TableLayout) -> npt.NDArray[np.uint8] | None:
    """A bit for each row that has a time; None: all have."""
    parts, all_there = [], True
    for ticks in _parts(column, layout):
        there = ticks != NAT
        all_there &= bool(there.all())
        parts.append(np.packbits(there, bitorder="little"))
        if column.type == DATE and (((ticks < -DAYS) | (ticks >= DAYS)) & there).any():
            raise ValueError(
                f"open {column.pieces[0].path}: column {column.name!r} has days beyond 32 bits: save it as "
                "datetime64[s]"
            )
    return None if all_there else np.concatenate(parts)


def _parts(column: ColumnPlace, layout: TableLayout) -> Iterator[npt.NDArray[np.int64]]:
    (piece,) = column.pieces
    with naming("open", piece.path):
        for first in range(0, layout.total, PART):
            count = min(PART, layout.total - first)
            ticks = np.fromfile(piece.path, np.int64, count, offset=piece.offset + 8 * first)
            if len(ticks) < count:
                raise ValueError("it has become shorter while it was read: write it anew")
            yield ticks

"""A column of a table as an array, for kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from penstock.arrays.array import Array
from penstock.arrays.converted import PART_BYTES, Conversion, kept_or_planned
from penstock.arrays.dtypes import dtype_named
from penstock.arrays.formats.place import Layout
from penstock.arrays.messages import naming
from penstock.arrays.placement import data_of, laid_out
from penstock.volume.names import FIXED, is_volume

if TYPE_CHECKING:
    from penstock.arrays.spec import ArrayOptions
    from penstock.columns.table import Table

_ALIKE = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"float32", "float64"}


def column_array(table: Table, name: str, options: dict[str, Any]) -> Array:
    """Errors: those of Table.array."""
    place = table.place_of(name)
    operation = f"open column {name!r} of"
    if place.nullable:
        raise ValueError(
            f"{operation} {table.name}: it has nulls, and an array has a number in each row: write them out "
            "with a value that stands for none"
        )
    if place.type.kind not in ("integer", "float", "boolean"):
        raise ValueError(
            f"{operation} {table.name}: it holds {place.type}, and an array numbers: query it, or convert it"
        )
    with naming(operation, table.name):
        found, opened = laid_out(_layout(table, name), cast("ArrayOptions", options))
        made = Array(replace(opened, **data_of(found)))
    if table.layout.owner is not None:
        made._open()  # its file is removed when the table is closed
    return made


def _layout(table: Table, name: str) -> Layout:
    """In place where all values lie one behind the other as an array has them, else converted."""
    place, rows = table.place_of(name), (table.rows,)
    pieces = [piece for piece in place.pieces if piece.nbytes]
    if place.encoding in _ALIKE and len(pieces) == 1:
        element = dtype_named("bool" if place.type.kind == "boolean" else place.encoding)
        fixed = FIXED if is_volume(pieces[0].path) else None
        return Layout(pieces[0].path, rows, element, pieces[0].offset, name, element, fixed=fixed)
    kind = {"integer": "int" if place.type.signed else "uint", "float": "float"}.get(place.type.kind)
    element = dtype_named("bool" if kind is None else f"{kind}{place.type.width}")
    if not pieces or table.rows == 0:
        raise ValueError("it has no rows: give a table that has")
    if table.layout.owner is not None:
        raise ValueError(
            "it lies packed in a temporary folder: write the table with penstock.columns.convert, and open "
            "what that wrote"
        )
    if is_volume(pieces[0].path):
        raise ValueError("it lies packed on a volume: query it, or export the table")
    how = "packed" if len(pieces) == 1 else f"in {len(pieces)} pieces"
    paths = tuple(sorted({piece.path for piece in pieces}))
    return kept_or_planned(
        Conversion(
            paths[0], name, f"column {name!r} lies {how}", paths, element, (), lambda: table.rows,
            lambda: _parts(table, name, element.numpy),
        )
    )  # fmt: skip


def _parts(table: Table, name: str, dtype: npt.DTypeLike) -> Iterator[npt.NDArray[Any]]:
    step = PART_BYTES // 8
    for first in range(0, table.rows, step):
        numbers = np.arange(first, min(first + step, table.rows))
        yield np.asarray(table.take(numbers, name)[name]).astype(dtype)

"""What an algorithm found for each vertex, written to a file."""

from __future__ import annotations

import csv
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click
import numpy as np
import numpy.typing as npt

from penstock.graph.results import PER_VERTEX, GraphCost
from penstock.report.whole_files import written_whole

SUFFIXES = (".npy", ".csv")
OF_VERTICES = ("parents", "labels", "predecessors")
"""Fields whose values are vertices, with names where these have some."""
PIECE = 1 << 16


class Output(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if path.suffix not in SUFFIXES:
            self.fail(f"'{path}': results are written as {' or '.join(SUFFIXES)}", param, ctx)
        if problem := cannot_be_written(path):
            self.fail(problem, param, ctx)
        return path


def cannot_be_written(path: Path) -> str:
    """Why a file of that name cannot be made, said before the work; empty where it can."""
    if path.is_dir():
        return f"'{path}': it is a folder: name a file"
    folder = path.parent
    if not folder.exists():
        return f"'{path}': there is no folder {folder}: make it, or name another"
    if not folder.is_dir():
        return f"'{path}': {folder} is no folder: choose another one"
    if not os.access(folder, os.W_OK):
        return f"'{path}': {folder} cannot be written: choose another folder"
    return ""


def write_result(result: GraphCost, path: Path) -> None:
    """.npy: an array of shape (vertices,), structured where there is more than one value for each vertex.
    .csv: a line for each vertex, by its name if there are names.

    All at once: what was there stays until all is written. Raises penstock.Error where it cannot be.
    """
    columns = columns_of(result)
    with written_whole("write", path) as beside, beside.open("wb") as file:
        if path.suffix == ".npy":
            _write_npy(file, _as_array(columns))
        else:
            _write_csv(file, result, columns)


def _write_npy(file: IO[bytes], array: npt.NDArray[Any]) -> None:
    """As numpy.save, whose error of a full disk has neither a reason nor a number."""
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    for begin in range(0, len(array), PIECE):
        file.write(np.ascontiguousarray(array[begin : begin + PIECE]).tobytes())


def columns_of(result: GraphCost) -> dict[str, npt.NDArray[Any]]:
    """What was found for each vertex, by the names of the result's fields."""
    names = [each.name for each in dataclasses.fields(result) if each.metadata == PER_VERTEX]
    return {name: np.asarray(value) for name in names if (value := getattr(result, name)) is not None}


def _as_array(columns: dict[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    first, *others = columns.values()
    if not others:
        return first
    rows = np.empty(len(first), [(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        rows[name] = values
    return rows


def _write_csv(file: IO[bytes], result: GraphCost, columns: dict[str, npt.NDArray[Any]]) -> None:
    # Here and not above: penstock.graph needs the compiled part.
    from penstock.graph import open_folder

    names = (result.folder or open_folder(result.path)).names
    rows = csv.writer(_Text(file), lineterminator="\n")
    rows.writerow(["vertex", *(field.removesuffix("s") for field in columns)])
    for vertex, values in enumerate(zip(*map(_listed, columns.values()), strict=True)):
        if names is None:
            rows.writerow([vertex, *values])
        else:
            named = zip(columns, values, strict=True)
            rows.writerow([names[vertex], *(_by_name(names, field, value) for field, value in named)])


def _by_name(names: list[str], field: str, value: Any) -> Any:
    if field not in OF_VERTICES:
        return value
    return names[value] if value >= 0 else ""


def _listed(values: npt.NDArray[Any]) -> Iterator[Any]:
    """As Python's numbers, a piece at a time. float32 with the digits that it has."""
    for begin in range(0, len(values), PIECE):
        piece = values[begin : begin + PIECE]
        yield from piece if values.dtype == np.float32 else piece.tolist()


class _Text:
    """What csv writes to: names may hold any bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write(self, text: str) -> int:
        return self.file.write(text.encode("utf-8", errors="surrogateescape"))

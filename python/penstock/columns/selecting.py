"""The passes of a query over its table, and the rows that they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock.columns.assembling import Program, TooManyValuesError, assemble
from penstock.columns.expressions import Expr, name_of
from penstock.columns.graph import Typed
from penstock.columns.results import Account, Result, ResultColumn

if TYPE_CHECKING:
    from penstock._native import ColumnRows
    from penstock.columns.query import Query

MOST_OUTPUTS = 12
"""Of a pass."""
ERRORS = {
    1: "an integer is beyond 64 bits, or beyond the type that it is cast to: cast to float before",
    2: "a value does not fit a signed integer of 64 bits: leave the column out, or what is cast",
    4: "rows changed while they were read: keep the files as they are",
}


@dataclass(frozen=True)
class Pass:
    """What is computed of each row that meets a query's condition, and how."""

    outputs: Sequence[Expr]
    typed: list[Typed]
    program: Program
    named: list[str]
    """Columns of the table that it names."""


def selected(query: Query, outputs: Sequence[Expr]) -> Result:
    """Of the rows that meet the condition, as many outputs a pass as it has registers for."""
    few = len(outputs) <= MOST_OUTPUTS
    if few:
        try:
            return Result(*_select(query, outputs))
        except TooManyValuesError:
            if len(outputs) < 2:
                raise
    half = len(outputs) // 2 if few else MOST_OUTPUTS
    first, second = selected(query, outputs[:half]), selected(query, outputs[half:])
    return Result(first.columns + second.columns, second.account)


def kept_columns(query: Query, names: Sequence[str]) -> list[ColumnRows]:
    """Columns of the result in the executor's memory, the first and as many more as one pass finds."""
    query.table.check_files()
    try:
        program = _pass(query, [query.output(name) for name in names]).program
    except TooManyValuesError:
        if len(names) == 1:
            raise
        return kept_columns(query, names[: len(names) // 2])
    kept = query.table.native.select_kept(program.native, program.outputs)
    if not kept and len(names) > 1:
        return kept_columns(query, names[:1])
    if not kept:
        query.result_column(names[0])  # raises what was met
        raise RuntimeError(f"query {query.table.name}: its rows could not be kept: ask again")
    return kept


def taken(query: Query, numbers: npt.NDArray[np.uint64]) -> Result:
    """Of rows by their numbers in the table, in that order."""
    query.table.check_files()
    outputs = query.results()
    parts, account = [], Account()
    for first in range(0, max(len(outputs), 1), MOST_OUTPUTS):
        some = outputs[first : first + MOST_OUTPUTS]
        graph = query.graph()
        typed = [graph.lower(output) for output in some]
        program = assemble(graph, None, [value.node for value in typed])
        values, valid, native = query.table.native.take(program.native, program.outputs, numbers)
        account = account_of(query, native, query.named(*some))
        parts += _columns_of(some, typed, values, valid)
    return Result(parts, account)


def account_of(query: Query, native: dict[str, Any], named: Sequence[str]) -> Account:
    """What a run cost that has read these columns. Raises what rows had wrong."""
    _raise_errors(native["errors"], query)
    return Account(
        seconds=native["seconds"], set_up_seconds=native["set_up_seconds"],
        run_seconds=native["run_seconds"],
        rows=query.table.rows, rows_met=native["rows_met"], zones=native["zones"],
        zones_skipped=native["zones_skipped"], bytes_moved=native["bytes_moved"],
        bytes_named=sum(query.table.bytes_of(name) for name in named),
        bytes_stored=sum(query.table.bytes_stored(name) for name in named),
        passes=tuple(native["passes"]),
    )  # fmt: skip


def _select(query: Query, outputs: Sequence[Expr]) -> tuple[list[ResultColumn], Account]:
    made = _pass(query, outputs)
    program = made.program
    values, valid, native = query.table.native.select(program.native, program.outputs)
    return _columns_of(outputs, made.typed, values, valid), account_of(query, native, made.named)


def _pass(query: Query, outputs: Sequence[Expr]) -> Pass:
    """Of outputs that the query keeps."""

    def made() -> Pass:
        graph = query.graph()
        typed = [graph.lower(output) for output in outputs]
        program = query.assembled(graph, [value.node for value in typed])
        return Pass(outputs, typed, program, query.named(*outputs))

    return query.once(tuple(map(id, outputs)), made)


def _columns_of(
    outputs: Sequence[Expr],
    typed: Sequence[Typed],
    values: npt.NDArray[np.uint64],
    valid: npt.NDArray[np.uint8],
) -> list[ResultColumn]:
    return [
        ResultColumn(name_of(output), value.type, bits, there.astype(bool))
        for output, value, bits, there in zip(outputs, typed, values, valid, strict=True)
    ]


def _raise_errors(found: int, query: Query) -> None:
    for bit, sentence in ERRORS.items():
        if found & bit:
            kind = OverflowError if bit < 4 else RuntimeError
            raise kind(f"query {query.table.name}: {sentence}")

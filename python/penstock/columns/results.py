"""What a query gives: columns in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.columns.messages import pyarrow_for
from penstock.columns.types import ColumnType, values_as


@dataclass
class ResultColumn:
    """Values of one type: 64 bits each, as the engine has them, and whether there is one."""

    name: str
    type: ColumnType
    bits: npt.NDArray[np.uint64]
    valid: npt.NDArray[np.bool_]

    def values(self) -> Any:
        return values_as(self.type, self.bits, self.valid)

    def __dlpack__(self, **how: Any) -> Any:
        """For `torch.from_dlpack` and others, where the values are numbers and none is null.

        Raises:
            ValueError: They are not, with what to do.
        """
        values = self.values()
        if values.dtype.kind not in "iufb" or not self.valid.all():
            nulls = "" if self.valid.all() else " with nulls"
            raise ValueError(
                f"column {self.name!r} is {self.type}{nulls}, which DLPack does not have: cast it, or "
                "fill_null() before"
            )
        return values.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # memory of the host

    def order_keys(self, descending: bool) -> npt.NDArray[np.int64]:
        """Integers that order as the values do, or the other way; NaN is the greatest."""
        if self.type.kind == "string":
            words = self.type.words or ()
            rank = np.zeros(max(len(words), 1), np.int64)
            rank[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
            keys = rank[np.where(self.valid, self.bits.view(np.int64), 0)]
        elif self.type.is_number:
            number = self.bits.view(np.float64)
            most = np.iinfo(np.int64).max
            whole = np.where(number == 0, 0.0, number).view(np.int64)
            keys = np.where(np.isnan(number), most, np.where(whole < 0, whole ^ most, whole))
        else:
            keys = self.bits.view(np.int64)
        return np.where(self.valid, ~keys if descending else keys, 0)

    def to_pylist(self) -> list[Any]:
        """Python values, None for a null; dates and timestamps as pyarrow has them."""
        if self.type.kind in ("date", "timestamp"):
            try:
                return self.to_arrow().to_pylist()  # type: ignore[no-any-return]
            except OverflowError as problem:
                raise OverflowError(
                    f"column {self.name!r}: Python has times of the years 1 to 9999 alone ({problem}): filter"
                    " before, or take the column as NumPy's, result[name]"
                ) from None
        values = self.values().tolist()
        if self.valid.all():
            return values  # type: ignore[no-any-return]
        return [value if known else None for value, known in zip(values, self.valid, strict=True)]

    def to_arrow(self) -> Any:
        pa = pyarrow_for("a column as Arrow has it")
        mask = None if self.valid.all() else ~self.valid
        whole = self.bits.view(np.int64)
        match self.type.kind:
            case "date":
                days = whole.astype(np.int32)
                if (self.valid & (days != whole)).any():
                    raise OverflowError(
                        f"column {self.name!r}: a date is more than 2^31 days from 1970: filter before"
                    )
                return pa.array(days, mask=mask).cast(pa.date32())
            case "timestamp":
                return pa.array(whole, pa.int64(), mask=mask).cast(
                    pa.timestamp(self.type.unit, self.type.zone)
                )
            case "decimal":
                scale = self.type.scale
                return pa.array(list(self.values()), pa.decimal128(max(38, scale), scale))
            case "string":
                codes = pa.array(np.where(self.valid, whole, 0).astype(np.int32), mask=mask)
                return pa.DictionaryArray.from_arrays(codes, pa.array(self.type.words or [], pa.string()))
            case "float":
                return pa.array(self.bits.view(np.float64).astype(f"f{self.type.width // 8}"), mask=mask)
            case "boolean":
                return pa.array(whole.astype(bool), mask=mask)
            case _:
                width = f"{'i' if self.type.signed else 'u'}{self.type.width // 8}"
                return pa.array(np.where(self.valid, whole, 0).astype(width), mask=mask)


@dataclass
class Account:
    """What a query cost."""

    seconds: float = 0.0
    """With what it set up and read back."""
    set_up_seconds: float = 0.0
    """Before the first kernel."""
    run_seconds: float = 0.0
    """Of the kernels."""
    rows: int = 0
    """Of the table."""
    rows_met: int = 0
    """That meet the condition."""
    zones: int = 0
    """Runs of 2048 rows of the table."""
    zones_skipped: int = 0
    """That zone maps have ruled out."""
    bytes_named: int = 0
    """Of the columns that the query names, all rows, at the widths of their types."""
    bytes_stored: int = 0
    """The same, as they lie."""
    bytes_moved: int = 0
    """Into the cache; 0 where columns are read in place."""
    groups: int = 0
    """Of group_by."""
    slots: int = 0
    """Of the hash table that they were found with; 0: there was none."""
    passes: tuple[tuple[str, bool, float], ...] = ()
    """Launches of kernels: what they do, whether the query's own kernel was compiled, and seconds."""
    columns: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def effective_bytes_per_second(self) -> float:
        """Bytes of the columns that the query names, over its time."""
        return self.bytes_named / self.seconds if self.seconds else 0.0


class Result(Mapping[str, Any]):
    """Columns by name, as NumPy arrays; `rows()` for Python values, `to_arrow()` and others for libraries."""

    def __init__(self, columns: list[ResultColumn], account: Account) -> None:
        self.columns, self.account = columns, account

    def __getitem__(self, name: str) -> Any:
        return self.column(name).values()

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def sorted(self, by: Sequence[tuple[str, bool, bool]], most: int | None = None) -> Result:
        """The rows in the order of columns: name, whether the greatest comes first, whether nulls do.

        Args:
            by: The columns.
            most: Rows that are wanted, the first; None: all.
        """
        named = {column.name: column for column in self.columns}
        some = self._at_least(named[by[0][0]], by[0][1], by[0][2], most) if by else None
        keys: list[npt.NDArray[Any]] = []
        for name, descending, nulls_first in reversed(by):
            column = named[name]
            marks = column.valid if nulls_first else ~column.valid
            both = (column.order_keys(descending), marks)
            keys += both if some is None else (each[some] for each in both)
        order = np.lexsort(keys) if keys else np.arange(self.row_count)
        return self.rows_at((order if some is None else some[order])[:most])

    @staticmethod
    def _at_least(
        first: ResultColumn, descending: bool, nulls_first: bool, most: int | None
    ) -> npt.NDArray[np.int64] | None:
        """Numbers of rows that have the first `most` by one column among them, so that no more are sorted;
        None: all."""
        keys = first.order_keys(descending)
        if not most or most >= first.valid.sum() or (nulls_first and not first.valid.all()):
            return None
        last = np.partition(keys[first.valid], most - 1)[most - 1]
        return np.flatnonzero(first.valid & (keys <= last))

    def rows_at(self, numbers: npt.NDArray[np.int64]) -> Result:
        """Some rows, by their numbers."""
        return Result(
            [ResultColumn(c.name, c.type, c.bits[numbers], c.valid[numbers]) for c in self.columns],
            self.account,
        )

    @property
    def row_count(self) -> int:
        return len(self.columns[0].bits) if self.columns else 0

    def rows(self) -> list[tuple[Any, ...]]:
        """Python values, None for a null."""
        return list(zip(*(column.to_pylist() for column in self.columns), strict=True))

    def item(self) -> Any:
        """The only value."""
        rows = self.rows()
        if len(rows) != 1 or len(rows[0]) != 1:
            raise ValueError(
                f"the result has {len(rows)} rows and {len(self.columns)} columns, not one value"
            )
        return rows[0][0]

    def to_arrow(self) -> Any:
        """A pyarrow.Table."""
        pa = pyarrow_for("a result as Arrow has it")
        return pa.table({column.name: column.to_arrow() for column in self.columns})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        import polars

        return polars.from_arrow(self.to_arrow())

    def column(self, name: str) -> ResultColumn:
        """A column with its nulls and its type; it has DLPack's interface."""
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(column.name for column in self.columns)
        raise KeyError(f"{name!r}: there is no such column in the result, which has {names}")

    def to_torch(self) -> dict[str, Any]:
        """Tensors of the numeric columns.

        Raises:
            ValueError: A column has nulls.
        """
        import torch

        tensors = {}
        for column in self.columns:
            if not column.valid.all():
                raise ValueError(
                    f"column {column.name!r} has nulls, which no tensor has: fill_null() them first"
                )
            values = column.values()
            tensors[column.name] = torch.as_tensor(
                values.astype(np.int64) if values.dtype.kind == "M" else np.ascontiguousarray(values)
            )
        return tensors

    def __repr__(self) -> str:
        shown = 10
        lines = [" ".join(f"{column.name:>16}" for column in self.columns)]
        head = [ResultColumn(c.name, c.type, c.bits[:shown], c.valid[:shown]) for c in self.columns]
        values = [[v if ok else None for v, ok in zip(c.values(), c.valid, strict=True)] for c in head]
        lines += [" ".join(f"{_text(v):>16}" for v in row) for row in zip(*values, strict=True)]
        if self.row_count > shown:
            lines.append(f"... {self.row_count} rows")
        return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    return "null" if value is None else str(value)

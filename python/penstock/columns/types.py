"""Types of columns: what a value is for the engine, and for who asks."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["integer", "float", "boolean", "date", "timestamp", "decimal", "string"]
TimeUnit = Literal["s", "ms", "us", "ns"]

PER_SECOND: dict[str, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH = datetime.datetime(1970, 1, 1)
MOST_DIGITS = 18
"""Of a decimal: as many fit 64 bits."""


@dataclass(frozen=True)
class ColumnType:
    """What the values of a column or of an expression are.

    All but floating-point numbers are int64 for the engine: days, ticks, units of the last digit, codes.
    """

    kind: Kind
    width: int = 64
    """Bits, of integers and floating-point numbers."""
    signed: bool = True
    unit: TimeUnit = "us"
    """Of timestamps."""
    zone: str | None = None
    """Of timestamps."""
    scale: int = 0
    """Of decimals: digits behind the point."""
    words: tuple[str, ...] | None = None
    """Of strings: what the codes stand for."""

    @property
    def is_number(self) -> bool:
        """Whether it is a double for the engine."""
        return self.kind == "float"

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("integer", "float", "decimal")

    def __str__(self) -> str:
        match self.kind:
            case "integer":
                return f"{'' if self.signed else 'u'}int{self.width}"
            case "float":
                return f"float{self.width}"
            case "timestamp":
                return f"timestamp[{self.unit}{', ' + self.zone if self.zone else ''}]"
            case "decimal":
                return f"decimal({MOST_DIGITS}, {self.scale})"
            case _:
                return self.kind

    @property
    def nbytes(self) -> int:
        """Of a value, as an array of the type has it."""
        if self.kind in ("integer", "float"):
            return self.width // 8
        return {"boolean": 1, "date": 4, "string": 4}.get(self.kind, 8)

    def without_words(self) -> ColumnType:
        return replace(self, words=None)


INTEGER = ColumnType("integer")
FLOAT = ColumnType("float")
BOOLEAN = ColumnType("boolean")
DATE = ColumnType("date")


def literal_type(value: Any) -> ColumnType:
    """Of a Python value.

    Raises:
        TypeError: For one that no column has.
    """
    if isinstance(value, (bool, np.bool_)):
        return BOOLEAN
    if isinstance(value, (int, np.integer)):
        return INTEGER
    if isinstance(value, (float, np.floating)):
        return FLOAT
    if isinstance(value, decimal.Decimal):
        return ColumnType("decimal", scale=max(0, -int(value.as_tuple().exponent)))
    if isinstance(value, (datetime.datetime, np.datetime64)):
        return ColumnType("timestamp", unit="us")
    if isinstance(value, datetime.date):
        return DATE
    if isinstance(value, str):
        return ColumnType("string")
    raise TypeError(
        f"{value!r}: no column has values of type {type(value).__name__}: give a number, a text, a date or a "
        "truth value"
    )


def ticks_of(value: Any, unit: TimeUnit) -> int | None:
    """A date or time in ticks of a unit since 1970; None where it lies between two."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    since = value - EPOCH
    microseconds = (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
    ticks, rest = divmod(microseconds * PER_SECOND[unit], 10**6)
    return ticks if rest == 0 else None


def values_as(kind: ColumnType, bits: npt.NDArray[np.uint64], valid: npt.NDArray[np.bool_]) -> Any:
    """The engine's 64 bits as a NumPy array of the type; where there is a null what it has instead.

    Integers with nulls stay integers, with 0 in their places; of texts it is None, of dates NaT, of
    floating-point numbers NaN.
    """
    whole = bits.view(np.int64)
    match kind.kind:
        case "float":
            numbers = bits.view(np.float64).astype(f"f{kind.width // 8}")
            return numbers if valid.all() else np.where(valid, numbers, np.nan)
        case "boolean":
            return whole.astype(bool)
        case "date":
            return _dated(whole.astype("datetime64[D]"), valid)
        case "timestamp":
            return _dated(whole.astype(f"datetime64[{kind.unit}]"), valid)
        case "string":
            words = np.asarray([*(kind.words or ()), None], dtype=object)
            return words[np.where(valid, whole, len(words) - 1)]
        case "decimal":
            unit = decimal.Decimal(1).scaleb(-kind.scale)
            return np.asarray(
                [decimal.Decimal(int(v)) * unit if ok else None for v, ok in zip(whole, valid, strict=True)],
                dtype=object,
            )
        case _:
            return whole.astype(f"{'i' if kind.signed else 'u'}{kind.width // 8}")


def numbers_of_sorted(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """As number_of in libs/columns/column_view.hpp."""
    whole = bits.view(np.int64)
    most = np.iinfo(np.int64).max
    numbers = np.where(whole < 0, whole ^ most, whole)
    return np.where(whole == most, np.array(np.nan).view(np.int64), numbers).view(np.uint64)


def _dated(values: Any, valid: npt.NDArray[np.bool_]) -> Any:
    return values if valid.all() else np.where(valid, values, np.array("NaT", values.dtype))

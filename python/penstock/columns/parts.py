"""What stands behind `.dt` and `.str` of an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from penstock.columns.types import BOOLEAN, INTEGER, ColumnType

TEXT = ColumnType("string")
UNITS = ("1w", "1d", "1mo", "1q", "1y", "1h", "1m", "1s")


Made = TypeVar("Made")
Make = Callable[[str, Any], Made]
"""An expression of the one that these stand behind: its name, and more."""


@dataclass(frozen=True)
class TextFunction:
    """What is made of one text, or of several together: a text, a number or a truth value; None: a null.

    Of each dictionary it is made once: a name and arguments stand for one function.
    """

    name: str
    args: tuple[Any, ...]
    type: ColumnType
    apply: Callable[..., Any] = field(compare=False)
    is_of_all: bool = False
    """It takes a list of texts and gives an array."""

    @property
    def is_text(self) -> bool:
        return self.type.kind == "string"


@dataclass(frozen=True)
class DateParts(Generic[Made]):
    """`col("t").dt.year()` and the like."""

    make: Make[Made]

    def _part(self, name: str) -> Made:
        return self.make(name, None)

    def year(self) -> Made:
        return self._part("year")

    def quarter(self) -> Made:
        return self._part("quarter")

    def month(self) -> Made:
        return self._part("month")

    def week(self) -> Made:
        """Of ISO 8601: the first one has the year's first Thursday."""
        return self._part("week")

    def day(self) -> Made:
        return self._part("day")

    def ordinal_day(self) -> Made:
        """Of the year, from 1."""
        return self._part("ordinal_day")

    def weekday(self) -> Made:
        """Monday is 1."""
        return self._part("weekday")

    def hour(self) -> Made:
        """Of timestamps, in their own time (UTC where they have a zone)."""
        return self._part("hour")

    def minute(self) -> Made:
        return self._part("minute")

    def second(self) -> Made:
        return self._part("second")

    def date(self) -> Made:
        """The day of a timestamp."""
        return self._part("date")

    def epoch(self) -> Made:
        """Seconds since 1970 in UTC, a floating-point number."""
        return self._part("epoch")

    def truncate(self, every: str) -> Made:
        """When the unit began.

        Args:
            every: 1y, 1q, 1mo, 1w (Monday) or 1d, which give dates; 1h, 1m or 1s, which give times.
        """
        if every not in UNITS:
            raise ValueError(f"truncate to {every!r}: choose one of {', '.join(UNITS)}")
        return self.make("truncate", every)

    def offset_by(self, number: int, unit: str) -> Made:
        """So many units later; a day that a month does not have is its last.

        Args:
            number: How many; negative: earlier.
            unit: day, week, month, quarter or year; of timestamps, hour, minute or second, too.
        """
        return self.make("offset", (int(number), unit.lower()))


@dataclass(frozen=True)
class Texts(Generic[Made]):
    """`col("name").str.starts_with("a")` and the like. Characters are Unicode's code points."""

    make: Make[Made]

    def _made(self, name: str, kind: ColumnType, apply: Callable[[str], Any], *args: Any) -> Made:
        return self.make(name, TextFunction(name, args, kind, apply))

    def starts_with(self, prefix: str) -> Made:
        return self._made("starts_with", BOOLEAN, lambda text: text.startswith(prefix), prefix)

    def ends_with(self, suffix: str) -> Made:
        return self._made("ends_with", BOOLEAN, lambda text: text.endswith(suffix), suffix)

    def contains(self, part: str) -> Made:
        """Whether a text has another in it, letter for letter."""
        return self._made("contains", BOOLEAN, lambda text: part in text, part)

    def to_lowercase(self) -> Made:
        return self._made("to_lowercase", TEXT, str.lower)

    def to_uppercase(self) -> Made:
        return self._made("to_uppercase", TEXT, str.upper)

    def len_chars(self) -> Made:
        return self._made("len_chars", INTEGER, len)

    def slice(self, offset: int, length: int | None = None) -> Made:
        """Characters from one on, the first is 0, negative: from the end; at most so many."""

        def part(text: str) -> str:
            first = offset if offset >= 0 else len(text) + offset
            last = len(text) if length is None else first + length
            return text[max(first, 0) : max(last, 0)]

        return self._made("slice", TEXT, part, offset, length)

    def replace_all(self, part: str, by: str) -> Made:
        """All occurrences, letter for letter."""
        return self._made(
            "replace_all", TEXT, lambda text: text.replace(part, by) if part else text, part, by
        )

    def replace(self, part: str, by: str) -> Made:
        """The first occurrence, letter for letter."""
        return self._made("replace", TEXT, lambda text: text.replace(part, by, 1), part, by)

    def strip_chars(self, characters: str | None = None) -> Made:
        """Without characters at both ends; None: white space."""
        return self._made("strip_chars", TEXT, lambda text: text.strip(characters), characters)

    def strip_chars_start(self, characters: str | None = None) -> Made:
        return self._made("strip_chars_start", TEXT, lambda text: text.lstrip(characters), characters)

    def strip_chars_end(self, characters: str | None = None) -> Made:
        return self._made("strip_chars_end", TEXT, lambda text: text.rstrip(characters), characters)

"""What a user says of how edges are written, where that is not known from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from penstock.checks import checked_count, checked_integer

from .ids import Numbering

Columns = Sequence[str | int] | str | None
ALL = ("columns", "delimiter", "header", "first_id", "renumber")
OF_TABLES = ("columns", "first_id", "renumber")
OF_IDS = ("first_id", "renumber")


@dataclass(frozen=True)
class Reading:
    """Options of resolve() by their names; None and empty ones are as the data says."""

    columns: tuple[str | int, ...] = ()
    delimiter: str | None = None
    header: bool | None = None
    first_id: int | None = None
    renumber: bool | None = None

    @property
    def key(self) -> str:
        """Part of a name in the cache: empty where nothing is said."""
        given = [(each.name, getattr(self, each.name)) for each in fields(self)]
        return "" if self == Reading() else repr(given)

    def numbering(self) -> Numbering:
        """Of tables, whose ids are numbered anew unless that is refused."""
        return Numbering(self.first_id or 0, gaps=self.renumber is False)

    def allow(self, called: str, names: Sequence[str], of: str) -> None:
        """Raises ValueError for what has no effect on `of`, of which only `names` are said."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in names and value not in ((), None):
                shown = ",".join(str(v) for v in value) if isinstance(value, tuple) else value
                raise ValueError(
                    f"open {called}: {each.name} {shown}: it has no effect on {of}: leave it out"
                )


def checked_reading(
    columns: Columns,
    delimiter: str | None,
    header: bool | None,
    first_id: Any,
    renumber: bool | None,
) -> Reading:
    """Raises TypeError or ValueError for what cannot be meant."""
    for name, switch in (("header", header), ("renumber", renumber)):
        if switch is not None and not isinstance(switch, bool):
            raise TypeError(f"{name} {switch!r}: give True or False, or leave it out")
    first = None if first_id is None else checked_count("first_id", first_id, 0, most=1)
    return Reading(_columns(columns), _delimiter(delimiter), header, first, renumber)


def _columns(given: Columns) -> tuple[str | int, ...]:
    if given is None:
        return ()
    each = [part.strip() for part in given.split(",")] if isinstance(given, str) else list(given)
    names = tuple(name if isinstance(name, str) else checked_integer("columns", name) for name in each)
    if len(names) not in (2, 3):
        raise ValueError(
            f"columns {given!r}: there are {len(names)}: name source, target and perhaps a weight"
        )
    if any(name == "" or (isinstance(name, int) and name < 0) for name in names):
        raise ValueError(f"columns {given!r}: name each, or give its number from 0")
    return names


_WORDS = {"\\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}


def _delimiter(given: str | None) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise TypeError(f"delimiter {given!r}: it is no text: give one character")
    one = _WORDS.get(given.lower(), given)
    if len(one) != 1 or not one.isascii() or one.isalnum() or one in "\r\n\"'.+-":
        raise ValueError(f"delimiter {given!r}: give one character that is in no number, such as ',' or tab")
    return one

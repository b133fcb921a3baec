"""Options without effect are refused: when each option has one is a table, which one function applies.

Giving an option expects a change, so one that changes nothing is an error and not a remark. A table has a
row for each option and condition: `needs` looks at all settings of the call (option names to values, those
not given at their defaults, and facts of the object that the caller adds), and `why` ends the sentence.

>>> on_storage = lambda settings: settings["placement"] == "storage"
>>> table = [Effect("line", on_storage, "placement {placement} has no cache: leave it out")]
>>> refuse_without_effect(table, {"placement": "host", "line": None}, "open x.npy")
>>> refuse_without_effect(table, {"placement": "host", "line": "4KiB"}, "open x.npy")
Traceback (most recent call last):
ValueError: open x.npy: line 4KiB: placement host has no cache: leave it out
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.options import defaults_of

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Effect:
    """When an option has an effect."""

    option: str
    """Its name, a key of the settings."""
    needs: Callable[[Settings], bool]
    """Whether giving the option changes anything under these settings."""
    why: str
    """What is missing and what to do, without a full stop; `{name}` is the setting of that name."""
    default: object = None
    """Its value where it is not given; a value equal to it is never refused."""


def effects(
    options: type, names: tuple[str, ...], needs: Callable[[Settings], bool], why: str
) -> tuple[Effect, ...]:
    """The rows of options that share a condition; their defaults are those of a class of options."""
    default = defaults_of(options)
    return tuple(Effect(name, needs, why, default[name]) for name in names)


def is_given(value: object, default: object) -> bool:
    """Whether a value differs from the option's default; where that is None, whether there is a value."""
    return value is not None if default is None else bool(value != default)


def without_effect(table: Iterable[Effect], settings: Settings) -> Iterator[Effect]:
    """The rows of the table whose options are given and change nothing, in its order.

    A row whose option is not among the settings counts as one that is not given.
    """
    for row in table:
        if is_given(settings.get(row.option, row.default), row.default) and not row.needs(settings):
            yield row


def refuse_without_effect(table: Iterable[Effect], settings: Settings, subject: str = "") -> None:
    """Refuse the first option of the table that is given and changes nothing.

    Args:
        table: Rows, in the order in which options are looked at.
        settings: All options of the call, and facts of its object; a row whose option is missing is skipped.
        subject: Operation and object, such as "open x.npy", which begin the sentence.

    Raises:
        ValueError: One sentence: subject, option and value, the row's `why`.
    """
    for row in without_effect(table, settings):
        value = settings[row.option]
        option = row.option if value is True else f"{row.option} {value}"
        raise ValueError(f"{f'{subject}: ' if subject else ''}{option}: {row.why.format_map(settings)}")

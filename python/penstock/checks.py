"""Checks of arguments that several parts of the package take."""

from __future__ import annotations

from typing import SupportsFloat, SupportsIndex

from penstock.sizes import whole_number

MOST = (1 << 31) - 1  # threads and entries of a queue that the compiled part can count


def check_choice(value: str, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} '{value}': there is no such {name}; choose one of {', '.join(allowed)}")


def checked_count(name: str, value: object, least: int, most: int = MOST) -> int:
    count = checked_integer(name, value)
    if count < least:
        raise ValueError(f"{name} {count}: it must be {least} or more")
    if count > most:
        raise ValueError(f"{name} {count}: it must be {most} or less")
    return count


def checked_number(name: str, value: object) -> float:
    """Raises TypeError for what is no number; its range is checked with the run's other options."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (SupportsFloat, SupportsIndex)):
        raise TypeError(f"{name} {value!r}: it is no number: give a float")
    return float(value)


def checked_integer(name: str, value: object) -> int:
    number = whole_number(value)
    if number is None:
        raise TypeError(f"{name} {value!r}: it is no whole number: give an int")
    return number

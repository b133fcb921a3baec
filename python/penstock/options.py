"""Options of calls, each declared once: its type, its default, and how its value is checked.

A class of options is a TypedDict, which type checkers take for `**options: Unpack[...]`. What `Annotated`
adds is for `checked`, which refuses and completes what a call was given, and for `show_options`, by which
help() and editors show the options of a function with their defaults.

>>> class Cooking(TypedDict, total=False):
...     minutes: Annotated[SupportsIndex, Count(10, least=1)]
...     pot: Annotated[Literal["small", "large"], Choice("small")]
>>> checked(Cooking, {"minutes": 3})
{'minutes': 3, 'pot': 'small'}
>>> checked(Cooking, {"pot": "huge"})
Traceback (most recent call last):
ValueError: pot 'huge': there is no such pot; choose one of small, large
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, SupportsIndex, TypedDict, TypeVar, get_args, get_type_hints

from penstock.checks import MOST, check_choice, checked_count
from penstock.sizes import parse_size

Engine = Literal["auto", "io_uring", "pread"]
Directory = Literal["auto", "direct", "set"]


@dataclass(frozen=True)
class Option:
    """One whose value is taken as it is: it is checked where it is used."""

    default: Any = None
    """Where it is not given."""

    def check(self, name: str, value: Any, hint: Any) -> Any:
        """The value as it is used.

        Args:
            name: Of the option.
            value: Given, or the default.
            hint: The option's type.

        Raises:
            ValueError, TypeError: One sentence with name and value.
        """
        return value


@dataclass(frozen=True)
class Choice(Option):
    """One of several names: those of its type, a Literal, or where that is text `names`."""

    noun: str = ""
    """What they are names of, where that is not the option's own."""
    names: tuple[str, ...] = ()

    def check(self, name: str, value: Any, hint: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name} {value!r}: it is no text: give a name")
        check_choice(value, self.choices(hint), self.noun or name)
        return value

    def choices(self, hint: Any) -> tuple[str, ...]:
        return self.names or get_args(hint)


@dataclass(frozen=True)
class Text(Option):
    """A name that is looked up where it is used."""

    def check(self, name: str, value: Any, hint: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name} {value!r}: it is no text: give a name")
        return value


@dataclass(frozen=True)
class Switch(Option):
    """True or False, also NumPy's."""

    default: bool = False

    def check(self, name: str, value: Any, hint: Any) -> bool:
        if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
            raise TypeError(f"{name} {value!r}: give True or False")
        return bool(value)


@dataclass(frozen=True)
class Count(Option):
    """A whole number."""

    default: int = 0
    least: int = 0
    most: int = MOST

    def check(self, name: str, value: Any, hint: Any) -> int:
        return checked_count(name, value, self.least, self.most)


@dataclass(frozen=True)
class Few(Option):
    """A whole number, or None where it is chosen."""

    most: int = MOST

    def check(self, name: str, value: Any, hint: Any) -> int | None:
        return None if value is None else checked_count(name, value, 0, self.most)


@dataclass(frozen=True)
class Size(Option):
    """Bytes, or text such as 16MiB. Not given, or None, it is `unless`."""

    unless: str | None = None
    least: int = 0

    def check(self, name: str, value: Any, hint: Any) -> int | None:
        given = self.unless if value is None else value
        size = None if given is None else parse_size(given, name)
        if size is not None and size < self.least:
            raise ValueError(f"{name} {given}: it must be {self.least} or more")
        return size


class CacheOptions(TypedDict, total=False):
    """Of the cache before files and memory."""

    cache: Annotated[SupportsIndex | str | None, Size(least=1)]
    line: Annotated[SupportsIndex | str | None, Size(unless="4KiB", least=1)]
    directory: Annotated[Directory, Choice("auto")]


class StorageOptions(TypedDict, total=False):
    """How files are read by commands."""

    engine: Annotated[Engine, Choice("auto")]
    direct: Annotated[bool, Switch()]
    threads: Annotated[SupportsIndex, Count(most=1024)]


@functools.cache
def declared(options: type) -> Mapping[str, tuple[Any, Option]]:
    """Type and option by name, in the order of their declaration."""
    hints = get_type_hints(options, include_extras=True)
    return {name: (get_args(hint)[0], hint.__metadata__[0]) for name, hint in hints.items()}


@functools.cache
def defaults_of(options: type) -> Mapping[str, Any]:
    """The value of each option where it is not given."""
    return {name: option.default for name, (_, option) in declared(options).items()}


def checked(options: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a call was given, complete.

    Args:
        options: A class of options.
        given: By name.

    Returns:
        The value of every option.

    Raises:
        TypeError, ValueError: One sentence, for a name that there is not and a value that it cannot have.
    """
    known = declared(options)
    if unknown := sorted(given.keys() - known.keys()):
        raise TypeError(f"{unknown[0]}: there is no such option; there are {', '.join(sorted(known))}")
    return {
        name: option.check(name, given.get(name, option.default), hint)
        for name, (hint, option) in known.items()
    }


def _as_shown(hint: Any) -> Any:
    """What stands for an int is shown as one."""
    if isinstance(hint, types.UnionType):
        return functools.reduce(operator.or_, map(_as_shown, get_args(hint)))
    return int if hint is SupportsIndex else hint


Function = TypeVar("Function", bound=Callable[..., Any])


def show_options(options: type) -> Callable[[Function], Function]:
    """Puts a class of options, with their defaults, where a signature has `**options`."""
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=_as_shown(hint)
        )
        for name, (hint, option) in declared(options).items()
    ]

    def show(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [
            each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return function

    return show

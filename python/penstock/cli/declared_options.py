"""Options of commands that are options of calls: type and default are those that penstock.options has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from penstock.cli.size_option import Size as SizeText
from penstock.options import Choice, Count, Size, Switch, Text, declared

Command = TypeVar("Command", bound=Callable[..., Any])


def option_of(options: type, name: str, about: str = "") -> Callable[[Command], Command]:
    """An option of a command, `--queue-depth` for `queue_depth`.

    Args:
        options: A class of options.
        name: Of one of them.
        about: Its help text. A default is added where it says something: not False, 0 or None.
    """
    hint, option = declared(options)[name]
    default = option.default
    how: dict[str, Any] = {"default": default, "help": about or None}
    if isinstance(option, Switch):
        how["is_flag"] = True
    elif isinstance(option, Choice):
        how |= {"type": click.Choice(option.choices(hint)), "show_default": True}
    elif isinstance(option, Count):
        how |= {"type": int, "show_default": default != 0}
    elif isinstance(option, Text):
        how |= {"metavar": "NAME", "show_default": True}
    elif isinstance(option, Size):
        how["type"] = SizeText()
        if option.unless is not None:
            how["help"] = f"{about}  [default: {option.unless}]"
    return click.option(f"--{name.replace('_', '-')}", **how)

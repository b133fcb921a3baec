"""Help texts in groups: options under headings, and commands, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def group_of(heading: str, *options: Decorator[Any]) -> Decorator[Any]:
    """These options as one decorator, listed in this order under a heading of a help text."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
            command.__click_params__[-1].heading = heading  # type: ignore[attr-defined]
        return command

    return decorate


def _write(formatter: click.HelpFormatter, groups: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    for heading, rows in groups.items():
        with formatter.section(heading):
            formatter.write_dl(rows)


class GroupedCommand(click.Command):
    """A command whose options stand under their headings; those without one come first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        for option in options:
            if row := option.get_help_record(ctx):
                groups.setdefault(getattr(option, "heading", "Options"), []).append(row)
        _write(formatter, groups)


class GroupedProgram(click.Group):
    """A group whose commands stand under headings: {heading: names}. Its commands group their options."""

    command_class = GroupedCommand

    def __init__(self, *arguments: Any, headings: Mapping[str, Sequence[str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.headings = headings

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        texts = {name: self.commands[name].get_short_help_str(80) for name in self.list_commands(ctx)}
        groups = {
            heading: [(name, texts.pop(name)) for name in names] for heading, names in self.headings.items()
        }
        assert not texts, f"commands without a heading: {', '.join(texts)}"
        _write(formatter, groups)

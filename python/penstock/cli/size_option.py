"""Sizes as options of a command."""

from __future__ import annotations

from typing import Any

import click

from penstock.sizes import parse_size


class Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_size(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)

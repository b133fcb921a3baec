"""`penstock grep`."""

from __future__ import annotations

import dataclasses
import errno
import sys
from collections import Counter
from contextlib import nullcontext
from functools import partial
from typing import Any

import click

from penstock.cli.declared_options import option_of
from penstock.cli.progress_bar import progress_bar
from penstock.fs.search import GrepOptions, GrepResult, Match, grep, is_gone

FOUND, NOT_FOUND, NOT_ALL_READ = 0, 1, 2

_option = partial(option_of, GrepOptions)


@click.command("grep", short_help="Find a text in the files below a folder, read by the threads that look.")
@click.argument("pattern")
@click.argument("folder")
@_option("ignore_case", "a to z stand for A to Z, too.")
@click.option("--count", is_flag=True, help="Only how many lines of each file.")
@click.option("--files", "names_only", is_flag=True, help="Only the names of files.")
@click.option("--stats", is_flag=True, help="What it took, on stderr.")
@_option("executor")
@_option("cache", "Memory for lines of files.  [default: 64MiB, on a GPU 1GiB]")
@_option("line", "How much of a file comes at once.")
@_option("threads", "Of the CPU executor.  [default: one per core]")
def grep_command(
    pattern: str, folder: str, count: bool, names_only: bool, stats: bool, **options: Any
) -> None:
    """Prints the lines of text files below FOLDER that contain PATTERN, as it is, with path and number, as
    they are found, in the order of their paths.

    Files with a zero byte are left out, links are not followed. What cannot be read is
    reported on stderr. Exit status: 0, 1 where nothing was found, 2 where something could not be read.

    \b
    penstock grep printf src                    every line with printf
    penstock grep --count --ignore-case gpu .   how many lines of each file
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed: open it", "standard output")
    output = sys.stdout
    lines_of = counts_of if count else names_of if names_only else matches_of
    below = folder.rstrip("/") + "/"

    def show(matches: list[Match]) -> None:
        text = "".join(f"{below}{path}{rest}\n" for path, rest in lines_of(matches))
        output.buffer.write(text.encode(errors="surrogateescape"))
        output.buffer.flush()

    # A bar would be drawn over the lines.
    with nullcontext() if output.isatty() else progress_bar() as progress:
        found = grep(pattern, folder, progress=progress, found=show, **options)
    problems = [problem for problem in found.errors if not is_gone(problem)]
    for problem in problems:
        click.echo(f"penstock: {problem.filename}: {problem.strerror}", err=True)
    if stats:
        click.echo(cost_of(found), err=True)
    sys.exit(NOT_ALL_READ if problems else FOUND if found.matches else NOT_FOUND)


def matches_of(matches: list[Match]) -> list[tuple[str, str]]:
    return [(match.path, f":{match.line}:{match.text}") for match in matches]


def counts_of(matches: list[Match]) -> list[tuple[str, str]]:
    return [(path, f":{lines}") for path, lines in Counter(match.path for match in matches).items()]


def names_of(matches: list[Match]) -> list[tuple[str, str]]:
    return [(path, "") for path in dict.fromkeys(match.path for match in matches)]


def cost_of(found: GrepResult) -> str:
    cost = dataclasses.asdict(dataclasses.replace(found, matches=[], errors=[]))
    rate = found.bytes / found.seconds / 1e9 if found.seconds else 0.0
    kept = {name: value for name, value in cost.items() if name not in ("matches", "errors")}
    words = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in kept.items()
    )
    return f"{words}, {rate:.2f} GB/s"

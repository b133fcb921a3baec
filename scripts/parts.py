"""One part of a list that is too long for one run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", metavar="K/N", type=parse, default=(1, 1), help="the K-th of N parts")


def parse(text: str) -> tuple[int, int]:
    """(K, N) of "K/N". Raises argparse.ArgumentTypeError unless 1 <= K <= N."""
    first, _, second = text.partition("/")
    if first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second):
        return int(first), int(second)
    raise argparse.ArgumentTypeError(f"'{text}' is no part: give K/N, from 1/N to N/N")


def take(items: Sequence[Item], part: tuple[int, int]) -> list[Item]:
    """The K-th of N parts of about one length, of neighbours: they share their preparations."""
    number, count = part
    return list(items[len(items) * (number - 1) // count : len(items) * number // count])

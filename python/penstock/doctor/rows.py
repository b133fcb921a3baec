"""What a probe finds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.machine import Machine

State = Literal["ok", "limited", "missing"]
STATES: tuple[State, ...] = get_args(State)
REINSTALL = "reinstall Penstock: pip install --force-reinstall --no-deps ."


@dataclass(frozen=True)
class Row:
    what: str
    state: State
    found: str
    gives: str
    """What it is good for; for a missing thing, what it would give."""
    remedy: str = ""
    """How to get it; empty where nothing is to be done."""


Probe = Callable[[Machine], Row]


def version_of(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: (6, 1) of "6.1.0-18-amd64"."""
    return tuple(int(n) for n in re.findall(r"\d+", text)[:2])

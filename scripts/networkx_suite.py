#!/usr/bin/env python3
"""Runs NetworkX's own tests with Penstock as the backend of whatever Penstock has a function for.

    scripts/networkx_suite.py [MODULE...]

NetworkX ships its tests; it converts each graph to a graph of Penstock, calls the function, and converts the
result back. What Penstock lacks, or refuses with a reason, NetworkX does itself. Modules: those of the
functions that there are, unless given. Fails where a test does, and where a function was never called, for
then nothing tested it. Needs the package installed with networkx and pytest: NetworkX finds backends by entry
points.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

MODULES = (
    "networkx.algorithms.components",
    "networkx.algorithms.link_analysis",
    "networkx.algorithms.shortest_paths",
    "networkx.algorithms.tests.test_dag",
)


class Calls:
    """A plugin of pytest: counts the calls of each function of the backend."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        from penstock.networkx.backend import Interface
        from penstock.networkx.info import FUNCTIONS

        for name in FUNCTIONS:
            self.counts[name] = 0
            setattr(Interface, name, staticmethod(self.counted(name, getattr(Interface, name))))

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.counts[name] += 1
            return function(*args, **kwargs)

        call.__wrapped__ = function  # type: ignore[attr-defined]  # its signature is what can_run looks at
        return call


def main(modules: list[str]) -> int:
    """The exit status: 0 where all passed and each function was called."""
    os.environ["NETWORKX_TEST_BACKEND"] = "penstock"
    os.environ["NETWORKX_FALLBACK_TO_NX"] = "1"
    calls = Calls()
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "-c", os.devnull, "--rootdir", os.sep]
    status = int(pytest.main([*options, "--pyargs", *(modules or MODULES)], plugins=[calls]))
    for name, count in sorted(calls.counts.items()):
        print(f"{count:6} calls of {name}")
    missing = [name for name, count in calls.counts.items() if count == 0]
    if not modules and missing:
        print(f"networkx_suite: never called: {', '.join(missing)}: no test of them ran", file=sys.stderr)
        return status or 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

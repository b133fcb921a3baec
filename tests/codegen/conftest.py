"""Makes machine_code importable, and prints after the run what the checks measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

MEASURED: list[str] = []


@pytest.fixture(scope="session")
def measured() -> list[str]:
    """Lines for the end of the run."""
    return MEASURED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in MEASURED:
        terminalreporter.write_line(line)

"""The program as it is run for drives: what it prints, and what it refuses."""

from __future__ import annotations

import io

import pytest
from penstock.cli import main as cli

DRIVE, OTHER = "0000:01:00.0", "0000:02:00.0"


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The sentence with which a command is refused."""
    assert cli.main(["nvme", *arguments]) == cli.REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("penstock: ")
    return last


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert cli.main(["nvme", *arguments]) == 0
    return capsys.readouterr()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

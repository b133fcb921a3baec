"""docs/NVME_FAULTS.md against the tests: those it names exist, and its letters lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

TABLE = Path("docs/NVME_FAULTS.md")
GUEST = Path("tests/guest/nvme_guest.cpp")
DEFINED = re.compile(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
NAMED = re.compile(r"`(guest: [^`]+|\w+\.\w+)`")
LETTER = re.compile(r"\b([A-Z]\d?)\b(?=,|$|:| \()")


def defined_tests(root: Path) -> set[str]:
    found: set[str] = set()
    for pattern in ("*.cpp", "*.hpp", "*.cu"):
        for path in (root / "tests").rglob(pattern):
            found |= {f"{suite}.{name}" for suite, name in DEFINED.findall(path.read_text())}
    return found


def exists(name: str, tests: set[str], guest: str) -> bool:
    if name.startswith("guest: "):
        return name.removeprefix("guest: ") in guest
    return name in tests


def rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Cells of all tables, but for the lines under their heads."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|") and not set(line) <= set("|-: "):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


def problems(root: Path) -> Iterator[tuple[int, str]]:
    """What is wrong with the table, by line."""
    if not (root / TABLE).is_file():
        return
    text = (root / TABLE).read_text()
    tests, guest = defined_tests(root), (root / GUEST).read_text()
    matrix = [(n, cells) for n, cells in rows(text) if len(cells) > 2][1:]
    legend = {cells[0]: (n, cells[1]) for n, cells in rows(text) if len(cells) == 2 and cells[0]}
    used: set[str] = set()
    for number, cells in matrix:
        for cell in cells:
            if not cell:
                yield number, "an empty cell: name a test, or say why it cannot be"
        letters = {letter for cell in cells[1:] for letter in LETTER.findall(cell)}
        used |= letters
        for letter in sorted(letters - legend.keys()):
            yield number, f"{letter} stands for no test"
    for letter, (number, names) in legend.items():
        if letter not in used:
            yield number, f"{letter} is used nowhere"
        named = NAMED.findall(names)
        if not named:
            yield number, f"{letter} names no test"
        for name in named:
            if not exists(name, tests, guest):
                yield number, f"there is no test {name}"

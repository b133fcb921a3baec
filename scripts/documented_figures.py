"""Numbers in the tables and the text of the documents, beside the result lines that they are from.

    python scripts/documented_figures.py            prints those that differ; fails where there are some
    python scripts/documented_figures.py --write    writes the runs' numbers into the pages

docs/figures.json names them: for each page its rows by their first cell ("TABLE | ROW" with the first cell of
the table's head, where a page has several), and for each number of a row's other cells, in their order,
either what selects it of benchmarks/results, as in the figures of `penstock report` (a list: the geometric
mean of some), or a text that says why it is none. Code in a cell is left out. Rows of which no line is kept
stand under "without", with the reason, and whole tables that hold no figures of ours under "tables", by the
first cell of their head; "*": all others of the page. Numbers of the text stand under "text": by a part of a
sentence that the page has once, with # for each of its numbers.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.report.papers.rows import Point, Term
from penstock.report.papers.run_files import read_run_files
from penstock.report.papers.terms import RunIndex

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*`)")
RULE = re.compile(r"^\|[\s|:-]+\|$")


@dataclass(frozen=True)
class Printed:
    """A number as a page prints it."""

    text: str
    begin: int
    """In the page."""

    @property
    def decimals(self) -> int:
        return len(self.text.partition(".")[2])

    def of(self, value: float) -> str:
        """`value` with as many decimals, and commas where this has some."""
        return f"{value:{',' if ',' in self.text else ''}.{self.decimals}f}"


@dataclass(frozen=True)
class Differing:
    page: str
    row: str
    printed: Printed
    measured: str
    line: str

    def __str__(self) -> str:
        return f"{self.page}: {self.row}: {self.printed.text} is {self.measured} in {self.line}"


def rows_of(text: str) -> dict[str, list[Printed]]:
    """The numbers of each row by its names; a name that several rows have is none."""
    found: dict[str, list[Printed]] = {}
    several = set()
    for head, first, numbers in tables(text):
        for name in (f"{head} | {first}", first):
            if name in found:
                several.add(name)
            found[name] = numbers
    return {name: numbers for name, numbers in found.items() if name not in several}


def tables(text: str) -> Iterator[tuple[str, str, list[Printed]]]:
    """The rows of a page's tables: the first cell of the head, their own, and the numbers of the others."""
    at, last, head, inside = 0, "", "", False
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if RULE.match(stripped):
            inside = last.startswith("|")
            head = last[1:].partition("|")[0].strip()
        elif not stripped.startswith("|"):
            inside = False
        elif inside:
            first, _, rest = stripped[1:].partition("|")
            begin = at + line.index("|", line.index("|") + 1) + 1
            blank = re.sub(r"`[^`]*`", lambda code: " " * len(code.group()), rest)
            yield head, first.strip(), [Printed(m.group(), begin + m.start()) for m in NUMBER.finditer(blank)]
        last, at = stripped, at + len(line)


def numbers_of(text: str, part: str) -> list[Printed]:
    """The numbers for which # stands in a part of a sentence, however its lines are broken.

    Raises ValueError where the text does not have it, or has it several times.
    """
    words = (re.escape(word).replace(r"\#", f"({NUMBER.pattern})") for word in part.split())
    found = list(re.finditer(r"\s+".join(words), text))
    if len(found) != 1:
        raise ValueError(f"the text has that {len(found)} times")
    return [Printed(found[0][group], found[0].start(group)) for group in range(1, found[0].re.groups + 1)]


def load(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "docs/figures.json").read_text(encoding="utf-8"))
    return found


def differing(pages: dict[str, Any], index: RunIndex, root: Path) -> list[Differing]:
    """Raises ValueError for a row that is not there, a count that does not fit, a term without a line."""
    found: list[Differing] = []
    for page, facts in pages.items():
        text = (root / page).read_text(encoding="utf-8")
        rows = rows_of(text)
        for row, terms in facts["rows"].items():
            where = f"docs/figures.json: {page}: {row}"
            if row not in rows:
                raise ValueError(f"{where}: no table has that row, or several have")
            found += _differing(page, row, rows[row], terms, index)
        for part, terms in facts.get("text", {}).items():
            try:
                numbers = numbers_of(text, part)
            except ValueError as problem:
                raise ValueError(f"docs/figures.json: {page}: {part}: {problem}") from None
            found += _differing(page, part, numbers, terms, index)
    return found


def _differing(
    page: str, row: str, numbers: list[Printed], terms: list[Any], index: RunIndex
) -> Iterator[Differing]:
    where = f"docs/figures.json: {page}: {row}"
    if len(numbers) != len(terms):
        texts = ", ".join(each.text for each in numbers)
        raise ValueError(f"{where}: the row has {len(numbers)} numbers: {texts}")
    for printed, term in zip(numbers, terms, strict=True):
        if isinstance(term, str):
            continue
        line = index.point(_point(term, where))
        if line is None:
            raise ValueError(f"{where}: no result line is {term}")
        measured = printed.of(line.value)
        if measured != printed.text:
            source = line.lines[0]
            yield Differing(page, row, printed, measured, f"{source.file}:{source.number}")


def _point(term: Any, where: str) -> Point:
    terms = term if isinstance(term, list) else [term]
    return Point(where, None, tuple(Term.of(each, where) for each in terms), unit="", better="neither")


def write(differences: list[Differing], root: Path) -> None:
    for page in {each.page for each in differences}:
        text = (root / page).read_text(encoding="utf-8")
        of_page = [each for each in differences if each.page == page]
        for each in sorted(of_page, key=lambda each: -each.printed.begin):
            begin = each.printed.begin
            text = text[:begin] + each.measured + text[begin + len(each.printed.text) :]
        (root / page).write_text(text, encoding="utf-8")


def main(root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the runs' numbers into the pages")
    options = parser.parse_args()
    found = differing(load(root), RunIndex(read_run_files([root / "benchmarks/results"])), root)
    for each in found:
        print(each)
    if options.write:
        write(found, root)
        return 0
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

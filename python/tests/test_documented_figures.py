"""Numbers in tables and sentences of the documents are those of the lines that docs/figures.json names."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from penstock.report.papers import read_run_files
from penstock.report.papers.terms import RunIndex

TREE = Path(__file__).parents[2]
SCRIPT = TREE / "scripts/documented_figures.py"
PAGES = ["README.md", *sorted(path.relative_to(TREE).as_posix() for path in (TREE / "docs").rglob("*.md"))]
PAPERS = "the paper's"
"""Why a number of the papers is none of ours."""
SASS = "counted in the machine code"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="the documents are not beside the package")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("documented_figures", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def index() -> RunIndex:
    return RunIndex(read_run_files([TREE / "benchmarks/results"]))


def page_of(tmp_path: Path, text: str) -> Path:
    (tmp_path / "page.md").write_text(text)
    return tmp_path


def index_with(tmp_path: Path, **values: float) -> RunIndex:
    lines = [{"id": id, "value": value, "unit": "s"} for id, value in values.items()]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RunIndex(read_run_files([path]))


def test_the_pages_have_the_runs_numbers(script: ModuleType, index: RunIndex) -> None:
    different = "\n".join(map(str, script.differing(script.load(TREE), index, TREE)))
    assert different == "", "python scripts/documented_figures.py --write puts the runs' numbers there"


@pytest.mark.parametrize("page", PAGES)
def test_each_row_with_numbers_is_named(script: ModuleType, page: str) -> None:
    facts = {"rows": {}, "without": {}, "tables": {}} | script.load(TREE).get(page, {})
    found = [(head, first) for head, first, numbers in script.tables((TREE / page).read_text()) if numbers]
    named = {*facts["rows"], *facts["without"]}
    left = [
        (head, first)
        for head, first in found
        if not {first, f"{head} | {first}"} & named and not {head, "*"} & set(facts["tables"])
    ]
    assert left == []
    assert set(facts["without"]) <= {first for _, first in found}
    assert set(facts["tables"]) <= {"*", *(head for head, _ in found)}
    assert all([*facts["without"].values(), *facts["tables"].values()]), "with a reason"


def test_most_numbers_are_compared_and_none_is_typed_into_the_data(script: ModuleType) -> None:
    entries = [e for facts in script.load(TREE).values() for row in facts["rows"].values() for e in row]
    terms = [entry for entry in entries if not isinstance(entry, str)]
    ours = [
        entry for entry in entries if isinstance(entry, dict) or not str(entry).startswith((PAPERS, SASS))
    ]
    assert len(terms) > 450
    assert len(terms) > 0.9 * len(ours)


TABLE = "text 99.9\n\n| what | ours | beside |\n|---|---|---|\n| a `x 7` | 1.50 / 1,200 s, 4 `--n 5` | 3 |\n"


def test_numbers_are_those_of_cells_without_code(script: ModuleType) -> None:
    ((head, first, numbers),) = script.tables(TABLE)
    assert (head, first) == ("what", "a `x 7`")
    assert [each.text for each in numbers] == ["1.50", "1,200", "4", "3"]
    assert [TABLE[each.begin : each.begin + len(each.text)] for each in numbers] == [n.text for n in numbers]


def test_a_number_that_differs_is_found_and_written(script: ModuleType, tmp_path: Path) -> None:
    root = page_of(tmp_path, TABLE)
    index = index_with(tmp_path, a=1.504, b=1234.5, c=4.2, d=3.6)
    row: list[Any] = [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}]
    pages = {"page.md": {"rows": {"a `x 7`": row}}}
    found = script.differing(pages, index, root)
    assert [(each.printed.text, each.measured) for each in found] == [("1,200", "1,234"), ("3", "4")]
    script.write(found, root)
    assert (root / "page.md").read_text() == TABLE.replace("1,200", "1,234").replace("| 3 |", "| 4 |")
    assert script.differing(pages, index, root) == []


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ({"b": []}, "page.md: b: no table has that row"),
        ({"a `x 7`": ["none"]}, "the row has 4 numbers: 1.50, 1,200, 4, 3"),
        ({"a `x 7`": [{"id": "z"}, "", "", ""]}, "no result line is {'id': 'z'}"),
    ],
)
def test_what_does_not_fit_is_named(
    script: ModuleType, tmp_path: Path, rows: dict[str, Any], part: str
) -> None:
    root = page_of(tmp_path, TABLE)
    with pytest.raises(ValueError, match=re.escape(part)):
        script.differing({"page.md": {"rows": rows}}, index_with(tmp_path, a=1.0), root)


SENTENCE = "A search takes 1.5 ms,\nof which 20 % wait; 3 drives. Twice 4 is 8, and twice 5 is 10.\n"


def test_numbers_of_a_sentence_are_compared_however_its_lines_break(
    script: ModuleType, tmp_path: Path
) -> None:
    root = page_of(tmp_path, SENTENCE)
    index = index_with(tmp_path, a=1.61, b=20.2)
    terms = [{"id": "a"}, {"id": "b"}, "how many there were"]
    pages = {"page.md": {"rows": {}, "text": {"takes # ms, of which # % wait; # drives": terms}}}
    found = script.differing(pages, index, root)
    assert [(each.printed.text, each.measured) for each in found] == [("1.5", "1.6")]
    script.write(found, root)
    assert (root / "page.md").read_text() == SENTENCE.replace("1.5", "1.6")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ({"takes # s": ["none"]}, "page.md: takes # s: the text has that 0 times"),
        ({"wice # is": ["none"]}, "page.md: wice # is: the text has that 2 times"),
        ({"takes # ms": []}, "page.md: takes # ms: the row has 1 numbers: 1.5"),
    ],
)
def test_a_sentence_that_does_not_fit_is_named(
    script: ModuleType, tmp_path: Path, text: dict[str, Any], part: str
) -> None:
    root = page_of(tmp_path, SENTENCE)
    with pytest.raises(ValueError, match=re.escape(part)):
        script.differing({"page.md": {"rows": {}, "text": text}}, index_with(tmp_path, a=1.0), root)


def test_a_list_is_the_geometric_mean(script: ModuleType, tmp_path: Path) -> None:
    root = page_of(tmp_path, "| what | ours |\n|---|---|\n| a | 4.0 |\n")
    index = index_with(tmp_path, a=2.0, b=8.0)
    assert script.differing({"page.md": {"rows": {"a": [[{"id": "a"}, {"id": "b"}]]}}}, index, root) == []


def test_a_comma_ends_a_number_where_no_thousand_follows(script: ModuleType) -> None:
    (row,) = script.tables("| what | ours |\n|---|---|\n| a | 161, 97.7 %, 1,200 |\n")
    assert [each.text for each in row[2]] == ["161", "97.7", "1,200"]


def test_a_row_of_two_tables_needs_the_tables_name(script: ModuleType, tmp_path: Path) -> None:
    root = page_of(tmp_path, TABLE + "\n" + TABLE.replace("| what", "| other").replace("1.50", "2.50"))
    rows = script.rows_of((root / "page.md").read_text())
    assert set(rows) == {"what | a `x 7`", "other | a `x 7`"}
    assert rows["other | a `x 7`"][0].text == "2.50"


def test_the_command_fails_while_a_page_differs(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("README.md", "docs", "benchmarks/results"):
        source, target = TREE / name, tmp_path / name
        target.parent.mkdir(exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    page = tmp_path / "README.md"
    good = page.read_text()
    page.write_text(good.replace("| 50.3 GB/s |", "| 55.3 GB/s |"))
    monkeypatch.setattr(sys, "argv", ["documented_figures.py"])
    assert script.main(tmp_path) == 1
    assert "55.3 is 50.3 in h200/miss.jsonl" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["documented_figures.py", "--write"])
    assert script.main(tmp_path) == 0
    assert page.read_text() == good

"""The mutant runner must not call a mutant killed when nothing was shown."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import mutant_builder
import mutant_list
import pytest
import run_mutants
from mutant_builder import Builder
from mutant_list import Mutant, MutantError
from run_mutants import Run

ENTRY = """
id = "A"
what = "adds nothing"
file = "include/penstock/core/a.hpp"
find = "+ 1"
replace = "+ 0"
folder = "host"
sources = ["tests/host/a_test.cpp"]
filter = "a.*"
"""
MUTANT = Mutant(
    id="A",
    what="adds nothing",
    file="include/penstock/core/a.hpp",
    find="+ 1",
    replace="+ 0",
    folder="host",
    sources=("tests/host/a_test.cpp",),
    filter="a.*",
)
PASSES = Run(0, 3, "")


def plant(root: Path, text: str = "x + 1", *entries: str) -> list[Mutant]:
    files = {
        "include/penstock/core/a.hpp": text,
        "include/penstock/core/b.hpp": '#include "penstock/core/a.hpp"\n',
        "src/c.cpp": '#include "penstock/core/b.hpp"\n',
        "src/d.cpp": "",
        "src/e/f.hpp": "y + 1",
        "src/e/g.cpp": '#include "f.hpp"\n',
        "tests/host/a_test.cpp": "",
    }
    for k, entry in enumerate(entries or (ENTRY,)):
        files[f"tests/mutants/topic{k}.toml"] = f"[[mutant]]\n{entry}"
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return mutant_list.read_lists(root)


def test_a_list_that_fits_the_sources_is_accepted(tmp_path: Path) -> None:
    mutants = plant(tmp_path)
    assert mutants == [MUTANT]
    mutant_list.check_list(mutants, tmp_path)


def test_the_lists_of_the_tree_fit_its_sources() -> None:
    mutant_list.check_list(mutant_list.read_lists(run_mutants.ROOT), run_mutants.ROOT)


def test_every_list_is_read(tmp_path: Path) -> None:
    mutants = plant(tmp_path, "x + 1", ENTRY, ENTRY.replace('"A"', '"B"'))
    assert [m.id for m in mutants] == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "entries", "part"),
    [
        ("x", (ENTRY,), "mutant A: its text to find occurs 0 times"),
        ("x + 1 + 1", (ENTRY,), "mutant A: its text to find occurs 2 times"),
        ("x + 1", (ENTRY.replace('"+ 1"', '""'),), "mutant A: its text to find occurs"),
        ("x + 1", (ENTRY.replace("+ 0", "+ 1"),), "mutant A: the edit changes nothing"),
        ("x + 1", (ENTRY.replace("a_test", "b_test"),), "mutant A: there is no"),
        ("x + 1", (ENTRY.replace("core/a.hpp", "core/z.hpp"),), "mutant A: there is no"),
        ("x + 1", (ENTRY.replace("include/", "tests/"),), "mutant A: there is no"),
        ("x + 1", (ENTRY, ENTRY), "mutant A is listed twice"),
        ("x + 1", (ENTRY.replace("filter", "preset"),), "give folder, sources and filter"),
        ("x + 1", (ENTRY.replace("sources", "#"),), "give folder, sources and filter"),
        ("x + 1", (ENTRY + 'preset = "fast"\n',), "no preset 'fast'"),
        ("x + 1", (ENTRY + "colour = 1\n",), "colour"),
        ("x + 1", (ENTRY.replace("include/", "src/") + 'pytest = "t.py"\n',), "edits of include only"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(
    tmp_path: Path, text: str, entries: tuple[str, ...], part: str
) -> None:
    with pytest.raises(MutantError, match=part):
        mutant_list.check_list(plant(tmp_path, text, *entries), tmp_path)


def test_the_edit_is_made_in_a_copy(tmp_path: Path) -> None:
    plant(tmp_path)
    overlay = Builder(tmp_path, 1).overlay(MUTANT)
    assert (overlay / MUTANT.file).read_text() == "x + 0"
    assert (overlay / "include/penstock/core/b.hpp").is_file()
    assert (tmp_path / MUTANT.file).read_text() == "x + 1"


def test_sources_that_see_the_edit_and_are_linked_are_compiled_with_it(tmp_path: Path) -> None:
    plant(tmp_path)
    builder = Builder(tmp_path, 1)
    linked = "(libpenstock.a)c.cpp.o\n(libpenstock.a)d.cpp.o\n(libpenstock.a)g.cpp.o\n"
    assert builder.changed_sources(MUTANT, linked) == [tmp_path / "src/c.cpp"]
    assert builder.changed_sources(MUTANT, "") == []
    header_of_src = Mutant(**{**vars(MUTANT), "file": "src/e/f.hpp"})
    assert builder.changed_sources(header_of_src, linked) == [tmp_path / "src/e/g.cpp"]


@pytest.mark.parametrize("mutated", [False, True])
def test_a_check_with_pytest_finds_the_include_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutated: bool
) -> None:
    plant(tmp_path)
    seen: list[str] = []

    def note(arguments: list[str], environment: dict[str, str], timeout_s: float) -> Run:
        assert arguments[-2:] == [MUTANT.filter, "t.py"]
        seen.append((Path(environment["PENSTOCK_MUTANT_INCLUDE"]) / "penstock/core/a.hpp").read_text())
        return PASSES

    monkeypatch.setattr(run_mutants, "run_program", note)
    builder = Builder(tmp_path, 1)
    run_mutants.run_tests(builder, Mutant(**{**vars(MUTANT), "pytest": "t.py"}), PASSES if mutated else None)
    assert seen == ["x + 0" if mutated else "x + 1"]


@pytest.mark.parametrize(
    ("hang", "clean", "limit"),
    [
        (False, PASSES, run_mutants.TIMEOUT_S),
        (True, None, run_mutants.TIMEOUT_S),
        (True, PASSES, run_mutants.HANG_S),
        (True, Run(0, 3, "", seconds=4.0), 4 * run_mutants.HANG_TIMES),
    ],
)
def test_what_may_hang_is_waited_for_as_its_test_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hang: bool, clean: Run | None, limit: float
) -> None:
    limits: list[float] = []

    monkeypatch.setattr(Builder, "mutant_program", lambda self, mutant: Path("test"))

    def note(arguments: list[str], environment: dict[str, str] | None, timeout_s: float) -> Run:
        limits.append(timeout_s)
        return PASSES

    monkeypatch.setattr(run_mutants, "run_program", note)
    mutant = Mutant(**{**vars(MUTANT), "hang": hang})
    run_mutants.run_tests(Builder(tmp_path, 1), mutant, clean)
    assert limits == [limit]


def test_one_unit_has_the_test_and_what_sees_the_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path)
    (tmp_path / "build-cpu").mkdir()
    (tmp_path / "build-cpu/build.ninja").touch()
    monkeypatch.setattr(mutant_builder, "command", lambda arguments, folder: "(libpenstock.a)c.cpp.o")
    builder = Builder(tmp_path, 1)
    builder.clean_program(MUTANT)
    program = builder.mutant_program(MUTANT)
    includes = [f'#include "{tmp_path / name}"\n' for name in ("tests/host/a_test.cpp", "src/c.cpp")]
    assert program.with_name("unit.cpp").read_text() == "".join(includes)


@pytest.mark.parametrize(
    ("clean", "mutated", "hang", "killed", "how"),
    [
        (PASSES, Run(1, 3, ""), False, True, "the test fails"),
        (PASSES, Run(-6, 3, ""), False, True, "signal 6"),
        (PASSES, Run(-signal.SIGTRAP, 3, ""), False, True, "the test fails"),
        (PASSES, Run(0, 3, ""), False, False, "the test passes"),
        (PASSES, Run(None, 0, ""), True, True, "hangs"),
        (PASSES, Run(None, 0, ""), False, False, "no answer in time"),
        (Run(1, 3, ""), Run(1, 3, ""), False, False, "fails without the mutant"),
        (Run(0, 0, ""), Run(1, 3, ""), False, False, "runs no test without the mutant"),
        (Run(None, 0, ""), Run(1, 3, ""), True, False, "times out without the mutant"),
    ],
)
def test_verdicts(
    monkeypatch: pytest.MonkeyPatch, clean: Run, mutated: Run, hang: bool, killed: bool, how: str
) -> None:
    monkeypatch.setattr(run_mutants, "run_tests", lambda *arguments: mutated)
    mutant = Mutant(**{**vars(MUTANT), "hang": hang})
    builder: Any = None
    outcome = run_mutants.judge(builder, mutant, clean)
    assert (outcome.killed, how in outcome.how) == (killed, True)
    assert run_mutants.report([outcome]) == (0 if killed else 1)


@pytest.mark.parametrize(
    ("printed", "tests"),
    [("[==========] Running 12 tests from 2 test suites.", 12), ("3 passed in 0.1s", 3), ("nothing", 0)],
)
def test_tests_are_counted(printed: str, tests: int) -> None:
    run = run_mutants.run_program([sys.executable, "-c", f"print({printed!r})"])
    assert (run.status, run.tests) == (0, tests)


def test_a_program_that_hangs_is_stopped() -> None:
    endless = [sys.executable, "-c", "while True: pass"]
    assert run_mutants.run_program(endless, timeout_s=0.2).timed_out

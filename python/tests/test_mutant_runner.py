"""The mutant runner must not call a mutant killed when nothing was shown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import run_mutants
from run_mutants import Mutant, MutantError, Run

ENTRY = 'id = "A"\nnumber = 7\nfolder = "host"\nsources = ["tests/host/a_test.cpp"]\nfilter = "a.*"\n'
MUTANT = Mutant(id="A", number=7, folder="host", sources=("tests/host/a_test.cpp",), filter="a.*")
PASSES = Run(0, 3, "")


def plant(root: Path, switch: str = "#if PENSTOCK_MUTANT == 7\n#endif\n", entry: str = ENTRY) -> list[Mutant]:
    files = {
        "include/penstock/core/a.hpp": switch,
        "include/penstock/core/b.hpp": '#include "penstock/core/a.hpp"\n',
        "src/c.cpp": '#include "penstock/core/b.hpp"\n',
        "src/d.cpp": "",
        "tests/host/a_test.cpp": "",
        "mutants.toml": f"[[mutant]]\n{entry}",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return run_mutants.read_list(root / "mutants.toml")


def test_a_list_that_fits_the_sources_is_accepted(tmp_path: Path) -> None:
    mutants = plant(tmp_path)
    assert mutants == [MUTANT]
    run_mutants.check_list(mutants, tmp_path)


@pytest.mark.parametrize(
    ("switch", "entry", "part"),
    [
        ("", ENTRY, "no source asks for PENSTOCK_MUTANT == 7"),
        ("#if PENSTOCK_MUTANT == 7 || PENSTOCK_MUTANT == 8\n#endif\n", ENTRY, "PENSTOCK_MUTANT 8"),
        ("#if PENSTOCK_MUTANT != 7\n#endif\n", ENTRY.replace("a_test", "b_test"), "there is no"),
        ("", 'id = "A"\nnumber = 7\n', "give folder, sources and filter"),
        ("", ENTRY + 'preset = "fast"\n', "no preset 'fast'"),
        ("", ENTRY + "colour = 1\n", "colour"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(tmp_path: Path, switch: str, entry: str, part: str) -> None:
    with pytest.raises(MutantError, match=part):
        run_mutants.check_list(plant(tmp_path, switch, entry), tmp_path)


def test_sources_that_include_the_mutant_are_compiled_with_it(tmp_path: Path) -> None:
    plant(tmp_path)
    builder = run_mutants.Builder(tmp_path, 1)
    assert builder.changed_sources(7) == [tmp_path / "src/c.cpp"]
    assert builder.changed_sources(0) == []


@pytest.mark.parametrize(
    ("clean", "mutated", "hang", "killed", "how"),
    [
        (PASSES, Run(1, 3, ""), False, True, "the test fails"),
        (PASSES, Run(-6, 3, ""), False, True, "signal 6"),
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

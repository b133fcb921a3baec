#!/usr/bin/env python3
"""Runs the mutants: deliberate wrong edits, each of which a named test must notice.

tests/mutants/*.toml list them, one table a mutant:

    [[mutant]]
    id = "Q8a"                                  # the hazard it stands for, and a letter
    what = "every completion is a success"      # the edit in one line
    file = "include/penstock/queue/a.hpp"       # under include, src or libs
    find = "status_bits(outcome)"               # occurs there exactly once
    replace = "0"
    folder = "fault"                            # tests/<folder>, whose executable has the test
    sources = ["tests/fault/queue_test.cpp"]    # the test sources that the filter needs
    filter = "queue.*"                          # GoogleTest filter that must fail
    hang = false                                # true: running into the time limit counts as noticed; the
                                                # limit is ten times what the filter takes without the mutant
    preset = "cpu"                              # or cpu-asan, cpu-tsan where a sanitizer is what notices
    pytest = "tests/codegen/test_hit.py"        # instead of folder and sources; the filter is pytest's -k.
                                                # Finds the edited include tree in PENSTOCK_MUTANT_INCLUDE

The edit is made in a copy, so the sources stay clean. Only the test sources, and those library sources that
see the edit and that the test links, are compiled again, as one unit, because headers are most of the work;
the rest comes from the preset's build folder. A mutant survives when its filter still passes, or when the
filter fails without the mutant, too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase

import parts
from mutant_builder import Builder
from mutant_list import LISTS, Mutant, MutantError, check_list, read_lists

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 240
# Of a mutant that may hang: at least so long, and so many times what its test takes without it.
HANG_S = 10
HANG_TIMES = 10
# A check of generated code compiles first.
PYTEST_TIMEOUT_S = 300


@dataclass
class Outcome:
    mutant: Mutant
    killed: bool
    how: str
    seconds: float


@dataclass
class Run:
    """What a test run came to. `tests` is how many ran."""

    status: int | None
    tests: int
    output: str = field(repr=False)
    seconds: float = 0.0

    @property
    def timed_out(self) -> bool:
        return self.status is None

    @property
    def passed(self) -> bool:
        return self.status == 0 and self.tests > 0


def run_program(
    arguments: list[str], environment: dict[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> Run:
    started = time.monotonic()
    try:
        done = subprocess.run(
            arguments,
            cwd=ROOT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            env={**os.environ, **(environment or {})},
        )
    except subprocess.TimeoutExpired:
        return Run(None, 0, "")
    found = re.search(r"Running (\d+) tests?|(\d+) (?:passed|failed)", done.stdout)
    tests = int(found.group(1) or found.group(2)) if found else 0
    return Run(done.returncode, tests, done.stdout + done.stderr, time.monotonic() - started)


def run_tests(builder: Builder, mutant: Mutant, clean: Run | None = None) -> Run:
    """Runs the filter: with the mutant if it is known what came of it without, else without."""
    if mutant.pytest:
        include = (builder.overlay(mutant) if clean else builder.root) / "include"
        options = ["-p", "no:cacheprovider", "--exitfirst", "-k", mutant.filter]
        arguments = [sys.executable, "-m", "pytest", *options, mutant.pytest]
        return run_program(arguments, {"PENSTOCK_MUTANT_INCLUDE": str(include)}, PYTEST_TIMEOUT_S)
    program = builder.mutant_program(mutant) if clean else builder.clean_folder(mutant) / "test"
    limit = max(HANG_S, HANG_TIMES * clean.seconds) if clean and mutant.hang else TIMEOUT_S
    # The first failure ends it, by SIGTRAP: what fails once need not wait for deadlines after that.
    options = [f"--gtest_filter={mutant.filter}", "--gtest_brief=0", "--gtest_break_on_failure"]
    return run_program([str(program), *options], None, limit)


def judge(builder: Builder, mutant: Mutant, clean: Run) -> Outcome:
    started = time.monotonic()
    if not clean.passed:
        why = "times out" if clean.timed_out else "runs no test" if clean.tests == 0 else "fails"
        return Outcome(mutant, False, f"the filter {why} without the mutant", 0.0)
    run = run_tests(builder, mutant, clean)
    seconds = time.monotonic() - started
    if run.timed_out:
        how = "hangs" if mutant.hang else "no answer in time (say hang = true if that is right)"
        return Outcome(mutant, mutant.hang, how, seconds)
    if run.status == 0:
        return Outcome(mutant, False, "the test passes", seconds)
    crashed = run.status is not None and run.status < 0 and run.status != -signal.SIGTRAP
    return Outcome(mutant, True, f"signal {-(run.status or 0)}" if crashed else "the test fails", seconds)


def run_all(mutants: list[Mutant], builder: Builder) -> list[Outcome]:
    for preset in sorted({m.preset for m in mutants if not m.pytest}):
        builder.prepare(preset)
    clean: dict[tuple[object, ...], Run] = {}
    with concurrent.futures.ThreadPoolExecutor(builder.jobs) as pool:
        keys = {(m.preset, m.sources, m.filter, m.pytest): m for m in mutants}
        # One program serves every filter over the same sources, so it is built once, before the runs.
        programs = {(m.preset, m.sources): m for m in mutants if not m.pytest}
        list(pool.map(builder.clean_program, programs.values()))
        runs = pool.map(lambda m: run_tests(builder, m), keys.values())
        clean.update(zip(keys, runs, strict=True))
        return list(
            pool.map(lambda m: judge(builder, m, clean[m.preset, m.sources, m.filter, m.pytest]), mutants)
        )


def report(outcomes: list[Outcome]) -> int:
    width = max(len(o.mutant.id) for o in outcomes)
    for o in sorted(outcomes, key=lambda o: o.mutant.id):
        verdict = "killed  " if o.killed else "SURVIVES"
        where = o.mutant.pytest or f"{o.mutant.folder}: {o.mutant.filter}"
        print(f"{o.mutant.id:<{width}}  {verdict}  {o.seconds:5.1f} s  {o.mutant.what}: {o.how} ({where})")
    survivors = [o for o in outcomes if not o.killed]
    print(f"{len(outcomes) - len(survivors)} mutants killed, {len(survivors)} survive")
    return 1 if survivors else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=f"Builds and runs the mutants of {LISTS}/*.toml.")
    parser.add_argument("ids", nargs="*", help="only these: Q8b, or Q8 for all of that hazard")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--built", action="store_true", help="only those of presets that have a build folder")
    parts.add_argument(parser)
    arguments = parser.parse_args()
    try:
        mutants = read_lists(ROOT)
        check_list(mutants, ROOT)
        if arguments.ids:
            mutants = [m for m in mutants if {m.id, m.id.rstrip(ascii_lowercase)} & set(arguments.ids)]
        if arguments.built:
            mutants = [m for m in mutants if (ROOT / f"build-{m.preset}").is_dir()]
        mutants = parts.take(mutants, arguments.part)
        if not mutants:
            print("no mutants")
            return 0
        return report(run_all(mutants, Builder(ROOT, arguments.jobs)))
    except MutantError as problem:
        print(f"run_mutants: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

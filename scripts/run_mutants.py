#!/usr/bin/env python3
"""Runs the mutants: deliberate wrong edits, each of which a named test must notice.

tests/mutants/mutants.toml lists them, one table a mutant:

    [[mutant]]
    id = "Q8"                                   # the hazard it stands for
    number = 208                                # compiled in by -DPENSTOCK_MUTANT=208
    folder = "device"                           # tests/<folder>, whose executable has the test
    sources = ["tests/device/queue_test.cpp"]   # the test sources that the filter needs
    filter = "queue.*"                          # GoogleTest filter that must fail
    hang = false                                # true: running into the time limit counts as noticed
    preset = "cpu"                              # or cpu-asan, cpu-tsan where a sanitizer is what notices
    pytest = "tests/codegen/test_hit.py"        # instead of folder, sources and filter; reads PENSTOCK_MUTANT

Only the test sources, and the library sources whose code the mutant changes, are compiled again; the rest is
linked from the preset's build folder. A mutant survives when its filter still passes, or when the filter
fails without the mutant, too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/mutants/mutants.toml"
TIMEOUT_S = 60
# A check of generated code compiles first.
PYTEST_TIMEOUT_S = 300
# As in CMakePresets.json, but -O1: a mutant is compiled once and run once.
PRESET_FLAGS = {
    "cpu": [],
    "cpu-asan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "cpu-tsan": ["-fsanitize=thread", "-DPENSTOCK_TSAN"],
}
MUTANT_USE = re.compile(r"PENSTOCK_MUTANT\s*[!=]=\s*(\d+)")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class MutantError(Exception):
    """The list, or the build without a mutant, is wrong."""


@dataclass(frozen=True)
class Mutant:
    id: str
    number: int
    folder: str = ""
    sources: tuple[str, ...] = ()
    filter: str = ""
    hang: bool = False
    preset: str = "cpu"
    pytest: str = ""
    what: str = ""


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

    @property
    def timed_out(self) -> bool:
        return self.status is None

    @property
    def passed(self) -> bool:
        return self.status == 0 and self.tests > 0


def read_list(path: Path) -> list[Mutant]:
    with path.open("rb") as file:
        tables = tomllib.load(file).get("mutant", [])
    mutants = []
    for table in tables:
        entry = {**table, "sources": tuple(table.get("sources", ()))}
        try:
            mutant = Mutant(**entry)
        except TypeError as problem:
            raise MutantError(f"{path}: mutant {table.get('id', '?')}: {problem}") from None
        if not mutant.pytest and not (mutant.folder and mutant.sources and mutant.filter):
            raise MutantError(f"{path}: mutant {mutant.id}: give folder, sources and filter, or pytest")
        if mutant.preset not in PRESET_FLAGS:
            raise MutantError(f"{path}: mutant {mutant.id}: no preset '{mutant.preset}'")
        mutants.append(mutant)
    return mutants


def source_files(root: Path) -> list[Path]:
    folders = ("include", "src", "apps", "tests")
    kinds = (".hpp", ".cuh", ".cpp", ".cu")
    return [p for folder in folders for p in sorted((root / folder).rglob("*")) if p.suffix in kinds]


def uses_of_mutants(root: Path) -> dict[int, set[Path]]:
    """Which files mention which mutant."""
    uses: dict[int, set[Path]] = {}
    for path in source_files(root):
        for number in MUTANT_USE.findall(path.read_text()):
            uses.setdefault(int(number), set()).add(path)
    return uses


def included_files(path: Path, root: Path) -> set[Path]:
    """The project's files that one file includes, however far down, and itself."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for name in INCLUDE.findall(current.read_text()):
            for base in (root / "include", root, root / "tests", current.parent):
                if (base / name).is_file():
                    todo.append((base / name).resolve())
                    break
    return seen


def check_list(mutants: list[Mutant], root: Path) -> None:
    """Every mutant in the list is in the sources, and the other way round."""
    used = uses_of_mutants(root)
    listed = {m.number for m in mutants}
    for mutant in mutants:
        if mutant.number not in used:
            raise MutantError(f"mutant {mutant.id}: no source asks for PENSTOCK_MUTANT == {mutant.number}")
        for source in mutant.sources:
            if not (root / source).is_file():
                raise MutantError(f"mutant {mutant.id}: there is no {source}")
    for number in sorted(set(used) - listed):
        files = ", ".join(str(p.relative_to(root)) for p in sorted(used[number]))
        raise MutantError(f"PENSTOCK_MUTANT {number} ({files}) is not in {LIST.relative_to(ROOT)}")


class Builder:
    """Compiles and links test programs beside the CMake build folders."""

    def __init__(self, root: Path, jobs: int) -> None:
        self.root = root
        self.jobs = jobs
        self.folder = root / "build-mutants"
        self.folder.mkdir(exist_ok=True)
        compiler = os.environ.get("CXX", "g++")
        ccache = shutil.which("ccache")
        self.compiler = [ccache, compiler] if ccache else [compiler]
        self.includes = {
            p: included_files(p, root)
            for folder in ("src", "apps", "tests/support")
            for p in (root / folder).rglob("*.cpp")
        }

    def prepare(self, preset: str) -> None:
        """Builds the preset's libraries, without a mutant."""
        command(["cmake", "--preset", preset], self.root)
        jobs = ["-j", str(self.jobs)]
        command(["cmake", "--build", f"build-{preset}", *jobs, "--target", "penstock_libraries"], self.root)

    def program(self, mutant: Mutant, number: int) -> Path:
        """Builds the executable of `mutant`'s test with the mutant `number` in it; 0 is none."""
        key = f"{mutant.preset}-{number}-" + "-".join(Path(s).stem for s in mutant.sources)
        folder = self.folder / key
        folder.mkdir(exist_ok=True)
        sources = [self.root / s for s in mutant.sources] + self.changed_sources(number)
        objects = [self.compile(s, folder, mutant.preset, number) for s in sources]
        program = folder / "test"
        command(
            [
                *self.compiler[-1:],
                *PRESET_FLAGS[mutant.preset],
                "-o",
                str(program),
                *map(str, objects),
                *self.libraries(mutant.preset),
            ],
            self.root,
        )
        return program

    def changed_sources(self, number: int) -> list[Path]:
        """Library sources that hold or include what the mutant changes.

        Their objects stand in for those of the libraries.
        """
        if number == 0:
            return []
        touched = uses_of_mutants(self.root)[number]
        return sorted(p for p, included in self.includes.items() if included & touched)

    def compile(self, source: Path, folder: Path, preset: str, number: int) -> Path:
        target = folder / (str(source.relative_to(self.root)).replace("/", "-") + ".o")
        flags = ["-std=c++20", "-O1", "-w", *PRESET_FLAGS[preset], f"-DPENSTOCK_MUTANT={number}"]
        if any(self.liburing(preset)):
            flags.append("-DPENSTOCK_HAS_LIBURING=1")
        paths = [f"-I{self.root / p}" for p in ("include", ".", "tests")]
        command([*self.compiler, *flags, *paths, "-c", str(source), "-o", str(target)], self.root)
        return target

    def liburing(self, preset: str) -> list[str]:
        """The library that CMake has chosen, from its cache."""
        cache = (self.root / f"build-{preset}/build.ninja").read_text()
        found = re.search(r"\S*liburing\.(?:a|so)\b", cache)
        return [found.group(0)] if found else []

    def libraries(self, preset: str) -> list[str]:
        build = self.root / f"build-{preset}"
        names = ("penstock_test_support", "penstock_apps", "penstock")
        ours = [str(p) for n in names if (p := build / f"lib{n}.a").is_file()]
        return [*ours, "-lgtest_main", "-lgtest", *self.liburing(preset), "-lpthread"]


def command(arguments: list[str], folder: Path) -> None:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MutantError(f"{' '.join(arguments)}:\n{(done.stdout + done.stderr)[-4000:]}")


def run_program(
    arguments: list[str], environment: dict[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> Run:
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
    return Run(done.returncode, tests, done.stdout + done.stderr)


def run_tests(builder: Builder, mutant: Mutant, number: int) -> Run:
    if mutant.pytest:
        arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", mutant.pytest]
        return run_program(arguments, {"PENSTOCK_MUTANT": str(number)}, PYTEST_TIMEOUT_S)
    program = builder.program(mutant, number)
    return run_program([str(program), f"--gtest_filter={mutant.filter}", "--gtest_brief=0"])


def judge(builder: Builder, mutant: Mutant, clean: Run) -> Outcome:
    started = time.monotonic()
    if not clean.passed:
        why = "times out" if clean.timed_out else "runs no test" if clean.tests == 0 else "fails"
        return Outcome(mutant, False, f"the filter {why} without the mutant", 0.0)
    run = run_tests(builder, mutant, mutant.number)
    seconds = time.monotonic() - started
    if run.timed_out:
        how = "hangs" if mutant.hang else "no answer in time (say hang = true if that is right)"
        return Outcome(mutant, mutant.hang, how, seconds)
    if run.status == 0:
        return Outcome(mutant, False, "the test passes", seconds)
    how = f"signal {-run.status}" if run.status is not None and run.status < 0 else "the test fails"
    return Outcome(mutant, True, how, seconds)


def run_all(mutants: list[Mutant], builder: Builder) -> list[Outcome]:
    for preset in sorted({m.preset for m in mutants if not m.pytest}):
        builder.prepare(preset)
    clean: dict[tuple[object, ...], Run] = {}
    with concurrent.futures.ThreadPoolExecutor(builder.jobs) as pool:
        keys = {(m.preset, m.sources, m.filter, m.pytest): m for m in mutants}
        # One program serves every filter over the same sources, so it is built once, before the runs.
        programs = {(m.preset, m.sources): m for m in mutants if not m.pytest}
        list(pool.map(lambda m: builder.program(m, 0), programs.values()))

        def run_clean(mutant: Mutant) -> Run:
            if mutant.pytest:
                return run_tests(builder, mutant, 0)
            key = f"{mutant.preset}-0-" + "-".join(Path(s).stem for s in mutant.sources)
            return run_program([str(builder.folder / key / "test"), f"--gtest_filter={mutant.filter}"])

        clean.update(zip(keys, pool.map(run_clean, keys.values()), strict=True))
        return list(
            pool.map(lambda m: judge(builder, m, clean[m.preset, m.sources, m.filter, m.pytest]), mutants)
        )


def report(outcomes: list[Outcome]) -> int:
    width = max(len(o.mutant.id) for o in outcomes)
    for o in sorted(outcomes, key=lambda o: o.mutant.number):
        verdict = "killed  " if o.killed else "SURVIVES"
        where = o.mutant.pytest or f"{o.mutant.folder}: {o.mutant.filter}"
        name = f"{o.mutant.id:<{width}}  {o.mutant.number:>5}"
        print(f"{name}  {verdict}  {o.seconds:5.1f} s  {where}: {o.how}")
    survivors = [o for o in outcomes if not o.killed]
    print(f"{len(outcomes) - len(survivors)} mutants killed, {len(survivors)} survive")
    return 1 if survivors else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds and runs the mutants of tests/mutants/mutants.toml.")
    parser.add_argument("ids", nargs="*", help="only these (identifier or number)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if not LIST.is_file():
        print(f"{LIST.relative_to(ROOT)} does not exist: no mutants")
        return 0
    try:
        mutants = read_list(LIST)
        check_list(mutants, ROOT)
        if arguments.ids:
            mutants = [m for m in mutants if {m.id, str(m.number)} & set(arguments.ids)]
        if not mutants:
            print("no mutants")
            return 0
        return report(run_all(mutants, Builder(ROOT, arguments.jobs)))
    except MutantError as problem:
        print(f"run_mutants: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

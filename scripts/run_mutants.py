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
the rest comes from the preset's build folder. Sources that CMake has compiled as one stay one. A mutant
survives when its filter still passes, or when the filter fails without the mutant, too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase

import parts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LISTS = "tests/mutants"
TIMEOUT_S = 60
# Of a mutant that may hang: at least so long, and so many times what its test takes without it.
HANG_S = 10
HANG_TIMES = 10
# A check of generated code compiles first.
PYTEST_TIMEOUT_S = 300
# As in CMakePresets.json, but -O0: a mutant is compiled once and run once.
PRESET_FLAGS = {
    "cpu": [],
    "cpu-asan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "cpu-tsan": ["-fsanitize=thread", "-DPENSTOCK_TSAN"],
}
# A test that stops behind every instruction takes the square of their number; it is optimized.
STEPPING = Path("tests/support/single_step.hpp")
FOLDERS = ("include", "src", "libs")
# Compiled once for all units. None of the project's: those are what mutants edit.
COMMON_HEADERS = (
    *("algorithm", "atomic", "chrono", "deque", "filesystem", "fstream", "functional", "map", "memory"),
    *("mutex", "optional", "random", "set", "span", "string", "thread", "vector", "gtest/gtest.h"),
)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class MutantError(Exception):
    """The list, or the build without a mutant, is wrong."""


@dataclass(frozen=True)
class Mutant:
    id: str
    what: str
    file: str
    find: str
    replace: str
    folder: str = ""
    sources: tuple[str, ...] = ()
    filter: str = ""
    hang: bool = False
    preset: str = "cpu"
    pytest: str = ""

    @property
    def stems(self) -> str:
        return "-".join(Path(s).stem for s in self.sources)


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
        if not mutant.filter or not (mutant.pytest or (mutant.folder and mutant.sources)):
            raise MutantError(
                f"{path}: mutant {mutant.id}: give folder, sources and filter, or pytest and filter"
            )
        if mutant.pytest and not mutant.file.startswith("include/"):
            raise MutantError(f"{path}: mutant {mutant.id}: a check with pytest sees edits of include only")
        if mutant.preset not in PRESET_FLAGS:
            raise MutantError(f"{path}: mutant {mutant.id}: no preset '{mutant.preset}'")
        mutants.append(mutant)
    return mutants


def read_lists(root: Path) -> list[Mutant]:
    return [m for path in sorted((root / LISTS).glob("*.toml")) for m in read_list(path)]


def edited_text(mutant: Mutant, root: Path) -> str:
    """The file with the edit in it."""
    path = root / mutant.file
    if not path.is_file() or mutant.file.split("/")[0] not in FOLDERS:
        raise MutantError(f"mutant {mutant.id}: there is no {mutant.file} under {', '.join(FOLDERS)}")
    text = path.read_text()
    found = text.count(mutant.find)
    if not mutant.find or found != 1:
        raise MutantError(
            f"mutant {mutant.id}: its text to find occurs {found} times in {mutant.file}, not once"
        )
    if mutant.find == mutant.replace:
        raise MutantError(f"mutant {mutant.id}: the edit changes nothing")
    return text.replace(mutant.find, mutant.replace)


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
    """Every edit can be made, and every test is there."""
    seen: set[str] = set()
    for mutant in mutants:
        if mutant.id in seen:
            raise MutantError(f"mutant {mutant.id} is listed twice")
        seen.add(mutant.id)
        edited_text(mutant, root)
        for source in mutant.sources:
            if not (root / source).is_file():
                raise MutantError(f"mutant {mutant.id}: there is no {source}")


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
        # Without this, ccache leaves units with precompiled headers to the compiler.
        os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")
        self.includes = {
            p: included_files(p, root)
            for folder in ("src", "libs", "tests/support")
            for p in (root / folder).rglob("*.cpp")
        }

    def prepare(self, preset: str) -> None:
        """Builds the preset's libraries, without a mutant, and the common headers."""
        command(["cmake", "--preset", preset], self.root)
        jobs = ["-j", str(self.jobs)]
        command(["cmake", "--build", f"build-{preset}", *jobs, "--target", "penstock_libraries"], self.root)
        header = self.common_headers(preset)
        header.parent.mkdir(exist_ok=True)
        header.write_text("".join(f"#include <{name}>\n" for name in COMMON_HEADERS))
        arguments = ["-x", "c++-header", str(header), "-o", f"{header}.gch"]
        command([*self.compiler, *self.flags(preset), *arguments], self.root)

    def common_headers(self, preset: str) -> Path:
        return self.folder / f"{preset}-headers" / "common.hpp"

    def overlay(self, mutant: Mutant) -> Path:
        """A copy of the folder (include, src or libs) that the mutant edits, with the edit in it.

        Of the whole folder, because a quoted include is looked for beside the including file first.
        """
        overlay = self.folder / f"{mutant.preset}-{mutant.id}" / "overlay"
        top = mutant.file.split("/")[0]
        shutil.rmtree(overlay, ignore_errors=True)
        shutil.copytree(self.root / top, overlay / top)  # keeps the times, on which ccache relies
        (overlay / mutant.file).write_text(edited_text(mutant, self.root))
        return overlay

    def clean_folder(self, mutant: Mutant) -> Path:
        return self.folder / f"{mutant.preset}-clean-{mutant.stems}"

    def clean_program(self, mutant: Mutant) -> Path:
        """The executable of the mutant's test, without it; notes which library objects it links."""
        folder = self.clean_folder(mutant)
        folder.mkdir(exist_ok=True)
        linked = self.link(mutant, [(self.root / s) for s in mutant.sources], folder, None)
        (folder / "linked").write_text(linked)
        return folder / "test"

    def mutant_program(self, mutant: Mutant) -> Path:
        """Objects of the library that see the edit come from its copy and stand in for the library's."""
        overlay = self.overlay(mutant)
        linked = (self.clean_folder(mutant) / "linked").read_text()
        sources = [self.root / s for s in mutant.sources] + self.changed_sources(mutant, linked)
        placed = [overlay / s.relative_to(self.root) for s in sources]
        self.link(
            mutant,
            [p if p.is_file() else s for p, s in zip(placed, sources, strict=True)],
            overlay.parent,
            overlay,
        )
        return overlay.parent / "test"

    def changed_sources(self, mutant: Mutant, linked: str) -> list[Path]:
        """All sources of each object that the test links and that the edit changes."""
        edited = (self.root / mutant.file).resolve()
        united = self.united(mutant.preset)
        changed: set[Path] = set()
        for path, included in self.includes.items():
            name, sources = united.get(path, (path.name, [path]))
            if edited in {i.resolve() for i in included} and f"){name}.o" in linked:
                changed.update(sources)
        return sorted(changed)

    def united(self, preset: str) -> dict[Path, tuple[str, list[Path]]]:
        """Of each source that CMake compiles with others: the name of the unit and all sources in it."""
        units = (self.root / f"build-{preset}").glob("CMakeFiles/*.dir/Unity/unity_*.cxx")
        found = {unit: [Path(name) for name in INCLUDE.findall(unit.read_text())] for unit in units}
        return {source: (unit.name, sources) for unit, sources in found.items() for source in sources}

    def link(self, mutant: Mutant, sources: list[Path], folder: Path, overlay: Path | None) -> str:
        compiled = self.compile(sources, folder, mutant.preset, overlay)
        # Traced twice, the linker names the members of archives, too.
        flags = [*PRESET_FLAGS[mutant.preset], "-Wl,-t,-t", "-o", str(folder / "test")]
        return command(
            [*self.compiler[-1:], *flags, str(compiled), *self.libraries(mutant.preset)], self.root
        )

    def compile(self, sources: list[Path], folder: Path, preset: str, overlay: Path | None) -> Path:
        unit = folder / "unit.cpp"
        unit.write_text("".join(f'#include "{source}"\n' for source in sources))
        roots = [self.root] if overlay is None else [overlay, self.root]
        paths = [f"-I{root / p}" for p in ("include", ".", "tests") for root in roots]
        first = ["-include", str(self.common_headers(preset))]
        if self.root / STEPPING in set().union(*(included_files(source, self.root) for source in sources)):
            first.append("-O1")
        compiled = unit.with_suffix(".o")
        command(
            [*self.compiler, *self.flags(preset), *first, *paths, "-c", str(unit), "-o", str(compiled)],
            self.root,
        )
        return compiled

    def flags(self, preset: str) -> list[str]:
        liburing = ["-DPENSTOCK_HAS_LIBURING=1"] if self.liburing(preset) else []
        return ["-std=c++20", "-O0", "-w", "-fpch-preprocess", *PRESET_FLAGS[preset], *liburing]

    def liburing(self, preset: str) -> list[str]:
        """The library that CMake has chosen, from its cache."""
        cache = (self.root / f"build-{preset}/build.ninja").read_text()
        found = re.search(r"\S*liburing\.(?:a|so)\b", cache)
        return [found.group(0)] if found else []

    def libraries(self, preset: str) -> list[str]:
        build = self.root / f"build-{preset}"
        names = ("penstock_test_support", "penstock_libs", "penstock")
        ours = [str(p) for n in names if (p := build / f"lib{n}.a").is_file()]
        return [*ours, "-lgtest_main", "-lgtest", *self.liburing(preset), "-lpthread"]


def command(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MutantError(f"{' '.join(arguments)}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


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

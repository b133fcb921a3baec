"""Compiles and links the tests that mutants must fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from mutant_list import PRESET_FLAGS, Mutant, MutantError, edited_text

# A test that stops behind every instruction takes the square of their number; it is optimized.
STEPPING = Path("tests/support/single_step.hpp")
# Compiled once for all units. None of the project's: those are what mutants edit.
COMMON_HEADERS = (
    *("algorithm", "atomic", "chrono", "deque", "filesystem", "fstream", "functional", "map", "memory"),
    *("mutex", "optional", "random", "set", "span", "string", "thread", "vector", "gtest/gtest.h"),
)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


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
        """Library sources that are or include what the mutant edits, if the test links their objects."""
        edited = (self.root / mutant.file).resolve()
        changed = [p for p, included in self.includes.items() if edited in {i.resolve() for i in included}]
        return sorted(p for p in changed if f"){p.name}.o" in linked)

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

"""Compiles headers on their own, several at a time, and remembers those that compiled."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
CACHE = "build-structure/headers.json"


@dataclass(frozen=True)
class Failure:
    header: Path
    message: str


def default_jobs() -> int:
    return os.cpu_count() or 1


def closure(header: Path, root: Path) -> set[Path]:
    """The project's files that a header includes, and itself."""
    seen: set[Path] = set()
    todo = [header]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in INCLUDE.findall(path.read_text()):
            bases = (path.parent, root / "include", root, root / "tests")
            todo.extend(p for base in bases if (p := base / name).is_file())
    return seen


def compiler_version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout


class Cache:
    """Keys of what compiled. A key says everything that the outcome depends on, system headers apart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.good: set[str] = set(json.loads(path.read_text()))
        except (OSError, ValueError):
            self.good = set()

    def save(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(sorted(self.good)))


def key_of(header: Path, root: Path, command: list[str], version: str) -> str:
    digest = hashlib.sha256("\0".join([version, *command, str(header.relative_to(root))]).encode())
    for path in sorted(closure(header, root)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_one(header: Path, root: Path, command: list[str], suffix: str) -> str | None:
    """The first lines of what the compiler says, or None when it is content."""
    with tempfile.TemporaryDirectory() as folder:
        # The header twice: its guard is part of standing alone.
        line = f'#include "{header}"\n'
        unit = Path(folder) / f"alone{suffix}"
        unit.write_text(line + line)
        done = subprocess.run(
            [*command, str(unit)], cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
    if done.returncode == 0:
        return None
    said = (done.stdout + done.stderr).replace(str(root) + "/", "")
    errors = [text for text in said.splitlines() if "error" in text]
    return "; ".join((errors or said.splitlines())[:2])


def compile_alone(root: Path, headers: list[Path], rules: dict[str, Any], jobs: int) -> list[Failure]:
    paths = [f"-I{root / p}" for p in ("include", ".", "tests")]
    compilers = [("g++", ".cpp", [os.environ.get("CXX", "g++"), *rules["gxx"], *paths])]
    nvcc = shutil.which("nvcc")
    if nvcc:
        compilers.append(("nvcc", ".cu", [nvcc, *rules["nvcc"], *paths, "-c", "-o", "alone.o"]))
    cache = Cache(root / CACHE)
    work: list[tuple[str, Path, str, list[str], str]] = []
    for name, suffix, command in compilers:
        version = compiler_version(command[0])
        for header in headers:
            cuda_only = header.suffix == ".cuh" and name != "nvcc"
            if cuda_only or (name == "nvcc" and str(header.relative_to(root)) in rules["not_nvcc"]):
                continue
            key = key_of(header, root, command, version)
            if key not in cache.good:
                work.append((name, header, key, command, suffix))
    failures = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        outcomes = pool.map(lambda w: compile_one(w[1], root, w[3], w[4]), work)
        for (name, header, key, _, _), said in zip(work, outcomes, strict=True):
            if said is None:
                cache.good.add(key)
            else:
                failures.append(Failure(header, f"{name}: {said}"))
    cache.save()
    return failures

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


def compile_unit(text: str, root: Path, command: list[str], suffix: str) -> str | None:
    """The first lines of what the compiler says, or None when it is content."""
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / f"alone{suffix}"
        unit.write_text(text)
        done = subprocess.run(
            [*command, str(unit)], cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
    if done.returncode == 0:
        return None
    said = (done.stdout + done.stderr).replace(str(root) + "/", "")
    errors = [text for text in said.splitlines() if "error" in text]
    return "; ".join((errors or said.splitlines())[:2])


@dataclass(frozen=True)
class Compiler:
    name: str
    suffix: str
    command: list[str]
    # A slow compiler sees all headers in one unit first. That they stand alone is what the other one is for.
    together: bool


def check_with(compiler: Compiler, root: Path, headers: list[Path], jobs: int) -> dict[Path, str]:
    """What the compiler has against each header that it does not take. Each twice: guards are part of it."""
    twice = {header: f'#include "{header}"\n' * 2 for header in headers}

    def compile_one(header: Path) -> str | None:
        return compile_unit(twice[header], root, compiler.command, compiler.suffix)

    everything = "".join(twice.values())
    if compiler.together and compile_unit(everything, root, compiler.command, compiler.suffix) is None:
        return {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        said = zip(headers, pool.map(compile_one, headers), strict=True)
        return {header: message for header, message in said if message is not None}


def compile_alone(root: Path, headers: list[Path], rules: dict[str, Any], jobs: int) -> list[Failure]:
    paths = [f"-I{root / p}" for p in ("include", ".", "tests")]
    compilers = [Compiler("g++", ".cpp", [os.environ.get("CXX", "g++"), *rules["gxx"], *paths], False)]
    nvcc = shutil.which("nvcc")
    if nvcc:
        compilers.append(Compiler("nvcc", ".cu", [nvcc, *rules["nvcc"], *paths, "-c", "-o", "alone.o"], True))
    cache = Cache(root / CACHE)

    def check(compiler: Compiler) -> list[Failure]:
        version = compiler_version(compiler.command[0])
        keys: dict[Path, str] = {}
        for header in headers:
            cuda_only = header.suffix == ".cuh" and compiler.name != "nvcc"
            if cuda_only or (compiler.name == "nvcc" and str(header.relative_to(root)) in rules["not_nvcc"]):
                continue
            key = key_of(header, root, compiler.command, version)
            if key not in cache.good:
                keys[header] = key
        refused = check_with(compiler, root, list(keys), jobs)
        cache.good.update(key for header, key in keys.items() if header not in refused)
        return [Failure(header, f"{compiler.name}: {said}") for header, said in refused.items()]

    # Side by side: the one unit of nvcc takes as long as all those of g++.
    with concurrent.futures.ThreadPoolExecutor(len(compilers)) as pool:
        failures = [failure for found in pool.map(check, compilers) for failure in found]
    cache.save()
    return failures

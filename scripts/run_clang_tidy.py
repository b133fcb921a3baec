#!/usr/bin/env python3
"""Runs clang-tidy over the library and the applications, within a limit of time.

A source file whose text and headers have not changed since it passed is left out. When time is up, the rest
waits for the next run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import header_check
import parts

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build-structure/clang_tidy.json"
FOLDERS = ("src", "libs")
WARNING = re.compile(r": (?:warning|error): ")


def key_of(path: Path, version: str) -> str:
    digest = hashlib.sha256(version.encode() + (ROOT / ".clang-tidy").read_bytes())
    for file in sorted(header_check.closure(path, ROOT)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def run_one(path: Path, build: Path, deadline: float) -> str | None:
    """What clang-tidy finds in one file; None when there was no time to look."""
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    command = [
        "clang-tidy",
        "--quiet",
        "--extra-arg=-Wno-unknown-warning-option",
        "-p",
        str(build),
        str(path),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=max(left, 60))
    except subprocess.TimeoutExpired:
        return None
    found = [line for line in done.stdout.splitlines() if WARNING.search(line)]
    if done.returncode != 0 and not found:
        return f"{path}: {done.stderr.strip()[-500:]}"
    return "\n".join(found)


def read_cache() -> dict[str, str]:
    """The key under which each file passed last."""
    try:
        cache: dict[str, str] = json.loads(CACHE.read_text())
    except (OSError, ValueError):
        return {}
    return cache


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs clang-tidy over the library and the applications.")
    parser.add_argument("--build", type=Path, default=ROOT / "build-cpu", help="has compile_commands.json")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("-j", "--jobs", type=int, default=header_check.default_jobs())
    parts.add_argument(parser)
    arguments = parser.parse_args()
    version = header_check.compiler_version("clang-tidy")
    cache = read_cache()
    sources = parts.take(
        [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.cpp"))], arguments.part
    )
    keys = {p: key_of(p, version) for p in sources}
    todo = [p for p in sources if cache.get(str(p)) != keys[p]]
    deadline = time.monotonic() + arguments.seconds
    findings = 0
    checked = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for path, found in zip(
            todo, pool.map(lambda p: run_one(p, arguments.build, deadline), todo), strict=True
        ):
            if found is None:
                continue
            checked += 1
            if found:
                findings += 1
                print(found.replace(f"{ROOT}/", ""))
            else:
                cache[str(path)] = keys[path]
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps(cache))
    unchanged = len(sources) - len(todo)
    print(
        f"clang-tidy: {checked} files checked, {unchanged} unchanged, "
        f"{len(todo) - checked} left for the next run, {findings} with findings"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

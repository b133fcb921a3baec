"""The dependency graph of the packages that this Debian machine knows of.

A vertex is a package in the lists, in the order of names. An edge goes from a package to each that one of
its fields names, every alternative of `a | b` being one. A name that is no package but is provided by some (a
virtual package) stands for all of those; a name that nobody provides is dropped. Versions and architectures
are ignored; several versions of a package are one vertex.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from penstock.errors import Error

from .sparse import CoordinateGraph

STATUS = Path("/var/lib/dpkg/status")
APT_HELPER = "/usr/lib/apt/apt-helper"
STRONG = ("Depends", "Pre-Depends")
ALL = (*STRONG, "Recommends", "Suggests")


@dataclass
class Package:
    """What all stanzas of one package say: the names it depends on, in the fields asked for, and provides."""

    wants: set[str] = field(default_factory=set)
    provides: set[str] = field(default_factory=set)


def package_lists() -> list[Path]:
    """Apt's package lists, compressed or not; dpkg's status file where there are none.

    Raises penstock.Error on a machine that has neither.
    """
    lists: list[Path] = []
    if (apt_get := shutil.which("apt-get")) and os.access(APT_HELPER, os.X_OK):
        command = [apt_get, "indextargets", "--format", "$(FILENAME)", "Created-By: Packages"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        lists = sorted(path for line in set(run.stdout.splitlines()) if (path := Path(line)).is_file())
    if not lists and STATUS.is_file():
        lists = [STATUS]
    if not lists:
        raise Error(
            "read debian: this machine has no package lists: use kron:20 or another graph", errno.ENOENT
        )
    return lists


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a package list, decompressed. Raises penstock.Error when it cannot be read."""
    if path == STATUS or not os.access(APT_HELPER, os.X_OK):
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from lines
        return
    command = [APT_HELPER, "cat-file", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode != 0:
        sentence = f"read {path}: apt-helper ended with status {process.returncode}: run apt-get update"
        raise Error(sentence, errno.EIO)


def parse_packages(lines: Iterable[str], fields: tuple[str, ...], packages: dict[str, Package]) -> None:
    """Add the stanzas in `lines` to `packages`; each starts with its Package field, as in all such lists."""
    package = Package()
    target: set[str] | None = None
    for line in lines:
        if line[:1] in (" ", "\t"):
            if target is not None:
                target.update(names_in(line))
            continue
        name, _, value = line.partition(":")
        if name == "Package":
            package = packages.setdefault(value.strip(), Package())
        target = package.wants if name in fields else package.provides if name == "Provides" else None
        if target is not None:
            target.update(names_in(value))


def names_in(value: str) -> Iterator[str]:
    """The names in a dependency field: "a (>= 1) | b:any, c [amd64]" gives a, b, c."""
    for item in value.replace("|", ",").split(","):
        words = item.split(None, 1)
        if words:
            yield words[0].partition(":")[0].partition("(")[0]


def dependency_graph(packages: dict[str, Package]) -> tuple[CoordinateGraph, list[str]]:
    """The graph and the names of its vertices, int32 ids in the order of names."""
    names = sorted(packages)
    number = {name: i for i, name in enumerate(names)}
    providers: dict[str, list[int]] = {}
    for name in names:
        for virtual in packages[name].provides:
            providers.setdefault(virtual, []).append(number[name])
    from_: list[int] = []
    to: list[int] = []
    for name in names:
        targets: set[int] = set()
        for wanted in packages[name].wants:
            targets.update([number[wanted]] if wanted in number else providers.get(wanted, ()))
        from_.extend([number[name]] * len(targets))
        to.extend(targets)
    ids = np.array(from_, dtype=np.int32), np.array(to, dtype=np.int32)
    return CoordinateGraph(len(names), *ids, weights=None, directed=True), names


def read_debian(lists: Iterable[Path], fields: tuple[str, ...] = ALL) -> tuple[CoordinateGraph, list[str]]:
    """The dependency graph of `lists` and its names.

    Raises penstock.Error when a list cannot be read, ValueError when all are empty.
    """
    packages: dict[str, Package] = {}
    for path in lists:
        parse_packages(read_lines(path), fields, packages)
    if not packages:
        raise ValueError("read debian: the package lists name no package: run apt-get update")
    return dependency_graph(packages)

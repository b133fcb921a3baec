"""The graph of package dependencies: small lists with a known answer, and this machine's own packages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.errors import Error
from penstock.graph import debian, resolve

LISTS = """\
Package: editor
Version: 1
Depends: libc6 (>= 2.34), fonts | fonts-extra:any, mail-agent
Recommends: spell [amd64],
 nobody-has-this
Description: a text
 Depends: this is no field

Package: libc6
Provides: libc (= 2)

Package: fonts
Depends: libc
Package: fonts-extra

Package: postfix
Provides: mail-agent
Pre-Depends: libc6
Package: exim
Provides: mail-agent, smtp
Suggests: spell
Package: spell
"""


def edges(fields: tuple[str, ...]) -> set[tuple[str, str]]:
    packages: dict[str, debian.Package] = {}
    debian.parse_packages(LISTS.splitlines(keepends=True), fields, packages)
    graph, names = debian.dependency_graph(packages)
    assert names == sorted(names)
    assert graph.vertices == len(names) == 7
    return {(names[a], names[b]) for a, b in zip(graph.from_, graph.to, strict=True)}


STRONG = {
    ("editor", "libc6"),
    ("editor", "fonts"),
    ("editor", "fonts-extra"),
    ("editor", "postfix"),
    ("editor", "exim"),
    ("fonts", "libc6"),
    ("postfix", "libc6"),
}


def test_alternatives_are_edges_and_virtual_packages_are_their_providers() -> None:
    assert edges(debian.STRONG) == STRONG


def test_recommends_and_suggests_count_unless_told_otherwise() -> None:
    assert edges(debian.ALL) == STRONG | {("editor", "spell"), ("exim", "spell")}


def test_empty_lists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "STATUS", tmp_path / "status")
    (tmp_path / "status").touch()
    with pytest.raises(ValueError, match="apt-get update"):
        debian.read_debian([tmp_path / "status"])


def test_a_machine_without_lists_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "STATUS", tmp_path / "status")
    monkeypatch.setattr(debian, "APT_HELPER", str(tmp_path / "none"))
    with pytest.raises(Error, match="no package lists"):
        resolve("debian", cache_dir=tmp_path)


def test_the_machines_own_packages_form_a_graph(tmp_path: Path) -> None:
    try:
        debian.package_lists()
    except Error as missing:
        pytest.skip(str(missing))
    graph = resolve("debian", cache_dir=tmp_path)
    names = graph.names
    assert names is not None
    assert graph.directed
    popular = names[int(np.bincount(graph.edge_array(), minlength=graph.vertices).argmax())]
    assert popular.startswith("libc")
    assert resolve("debian:depends", cache_dir=tmp_path).edges <= graph.edges
    assert resolve("debian", cache_dir=tmp_path) == graph

"""The dataset of a Debian machine's packages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.gnn import data

STANZAS = """Package: app
Section: utils
Depends: libone (>= 1), virtual
Description: an editor of pictures
 which is long

Package: libone
Section: non-free/libs
Description: a library of pictures

Package: libtwo
Section: libs
Provides: virtual
Description: a library of sounds

Package: lonely
Description: no section
"""


@pytest.fixture
def lists(tmp_path: Path) -> list[Path]:
    (tmp_path / "Packages").write_text(STANZAS)
    return [tmp_path / "Packages"]


def test_packages_become_nodes(tmp_path: Path, lists: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.graph.debian.APT_HELPER", "/nowhere")  # which reads compressed lists
    made = data.from_debian(tmp_path / "packages", lists=lists, undirected=False, width=16)
    assert (made.nodes, made.edges, made.width, made.classes) == (4, 2, 16, 2)
    labels = made.load("labels")
    assert labels.tolist() == [1, 0, 0, -1]  # app, libone, libtwo, lonely
    pointers, neighbors = made.load("pointers"), made.load("neighbors")
    assert [neighbors[pointers[v] : pointers[v + 1]].tolist() for v in range(4)] == [[], [0], [0], []]
    features = np.load(made.features)
    assert np.allclose(np.linalg.norm(features, axis=1), 1)
    assert features[0] @ features[1] > 0  # pictures
    split = np.concatenate([made.load(name) for name in ("train", "valid", "test")])
    assert sorted(split.tolist()) == [0, 1, 2]
    both = data.from_debian(tmp_path / "both", lists=lists)
    assert both.edges == 4


def test_lists_without_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.graph.debian.APT_HELPER", "/nowhere")
    (tmp_path / "Packages").write_text("")
    with pytest.raises(ValueError, match="name no package"):
        data.from_debian(tmp_path / "packages", lists=[tmp_path / "Packages"])
    assert not (tmp_path / "packages").exists()

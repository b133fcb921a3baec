"""The examples of the documents, run as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("ARRAYS.md", "numpy"),
        ("COLLAGES.md", "numpy"),
        ("COLUMNS.md", "pyarrow sqlglot"),
        ("FILES.md", "numpy"),
        ("GRAPHS.md", "numpy"),
        ("VOLUMES.md", "numpy pyarrow"),
        ("tasks/PYTHON_KERNELS.md", "numpy pyarrow scipy"),
        ("tasks/FEATURES.md", "torch_geometric"),
        ("tasks/EMBEDDINGS.md", "torch"),
        ("tasks/LOADER.md", "torch"),
        ("tasks/GNN.md", "torch_geometric"),
        ("tasks/PYG_LOADERS.md", "torch_geometric"),
        ("tasks/REPORT.md", "scipy"),
    ],
)
def test_examples_do_what_they_say(
    name: str, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in needs.split():
        pytest.importorskip(each, reason=f"{each} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    outcome = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 5
    assert outcome.failed == 0

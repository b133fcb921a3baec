"""The benchmarks of trainings over small datasets: epochs of their own loaders, and of PyG's beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import penstock
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not here")


def run(program: str, folder: Path, *words: str) -> dict[str, dict[str, Any]]:
    """Its result lines by id."""
    pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
    pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    results = folder / "gnn.jsonl"
    environment = {
        **os.environ,
        "PENSTOCK_MACHINE": "a machine",
        "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
        "TMPDIR": str(folder),
    }
    words = ("--nodes", "2000", "--results", str(results), *words)
    subprocess.run(
        [sys.executable, str(BENCHMARKS / program), *words], env=environment, check=True, capture_output=True
    )
    return {line["id"]: line for line in map(json.loads, results.read_text().splitlines())}


def test_epochs_and_shares_are_result_lines_of_the_machine_that_is_named(tmp_path: Path) -> None:
    lines = run("gnn_training.py", tmp_path, "--only", "tiering,epochs", "--places", "host,pyg")
    assert {"gnn.epoch.host", "gnn.epoch.pyg.0", "tiering.15x10x5.degree"} <= set(lines)
    assert {line["machine"] for line in lines.values()} == {"a machine"}
    assert (tmp_path / "papers100M-2000").is_dir()


def test_variants_of_the_gather_have_epochs(tmp_path: Path) -> None:
    lines = run("gnn_pipelines.py", tmp_path, "--only", "epochs", "--repeats", "1")
    assert {"variants.epoch.optimised.1gpu", "variants.epoch.cpu.1gpu"} <= set(lines)

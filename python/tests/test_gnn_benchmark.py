"""benchmarks/gnn_training.py over a small dataset: an epoch of its own loader, and one of PyG's beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import penstock
import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks/gnn_training.py"


@pytest.mark.skipif(not PROGRAM.is_file(), reason="the benchmarks are not here")
def test_epochs_and_shares_are_result_lines_of_the_machine_that_is_named(tmp_path: Path) -> None:
    pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
    pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    results = tmp_path / "gnn.jsonl"
    words = ["--nodes", "2000", "--only", "tiering,epochs", "--places", "host,pyg", "--results", str(results)]
    environment = {
        **os.environ,
        "PENSTOCK_MACHINE": "a machine",
        "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
        "TMPDIR": str(tmp_path),
    }
    subprocess.run([sys.executable, str(PROGRAM), *words], env=environment, check=True, capture_output=True)
    lines = {line["id"]: line for line in map(json.loads, results.read_text().splitlines())}
    assert {"gnn.epoch.host", "gnn.epoch.pyg.0", "tiering.15x10x5.degree"} <= set(lines)
    assert {line["machine"] for line in lines.values()} == {"a machine"}
    assert (tmp_path / "papers100M-2000").is_dir()

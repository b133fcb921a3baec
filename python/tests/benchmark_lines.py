"""Benchmarks as processes of their own, and the result lines that they write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import penstock

FOLDER = Path(__file__).parents[2] / "benchmarks"


def lines_from(name: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    """Those of a run with these options."""
    results = folder / "results.jsonl"
    command = [sys.executable, str(FOLDER / name), "--results", str(results), *options]
    package = [str(Path(penstock.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    # Threads of torch that spin for the next one's turn take the cores from those that have it.
    own = {"PYTHONPATH": os.pathsep.join(package), "OMP_WAIT_POLICY": "PASSIVE"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **own})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [json.loads(line) for line in results.read_text().splitlines()]

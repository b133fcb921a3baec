"""Benchmarks of columns run, small, on what this machine has."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_lines import FOLDER, lines_from
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not here")


@pytest.mark.parametrize("executor", DEVICES)
def test_taxi_queries_are_timed_beside_busy_processes_and_with_small_caches(
    executor: str, tmp_path: Path
) -> None:
    small = ("--rows", "300000", "--repeats", "1", "--folder", str(tmp_path), "--executor", executor)
    found = lines_from("taxi_queries.py", tmp_path, "--busy", *small)
    places = {"host", "storage", "storage.8th", *(("hbm",) if executor == "cuda" else ())}
    for number in (0, 5):
        busy = [line for line in found if line["id"] == f"taxi.q{number}.busy"]
        cached = [line for line in found if line["id"] == f"taxi.q{number}.small_cache"]
        assert {line["params"]["lies"] for line in busy} == {
            f"{how}.{place}" for how in ("plain", "packed") for place in places
        }
        assert {line["params"]["lies"] for line in cached} == {"plain.storage.8th", "packed.storage.8th"}
        assert all(line["verified"] and line["value"] > 0 and line["ratio"] > 0 for line in busy + cached)
        assert {line["baseline"] for line in busy} == {"an idle host"}

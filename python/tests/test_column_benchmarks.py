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


@pytest.mark.parametrize("executor", DEVICES)
def test_taxi_queries_say_what_they_move_beside_rows_by_themselves_and_whole_columns(
    executor: str, tmp_path: Path
) -> None:
    small = ("--rows", "200000", "--repeats", "1", "--folder", str(tmp_path), "--executor", executor)
    found = lines_from("taxi_lines.py", tmp_path, "--queries", "0,2", *small)
    ways = [("lines", "file", 1), ("drives", "p5800x", 1), ("drives", "p5800x", 4)]
    assert [(line["id"], line["params"]["media"], line["params"]["drives"]) for line in found] == [
        (f"taxi.q{number}.{figure}", media, drives)
        for _ in (512, 4096)
        for figure, media, drives in ways
        for _ in (30.0, 20.0)
        for number in (0, 2)
    ]
    for line in found:
        details, params = line["details"], line["params"]
        columns = details["columns"]
        least = sum(column["least"] for column in columns.values())
        by_lines = sum(column["lines"] for column in columns.values())
        assert columns["trip_distance"]["least"] == 8 * 200_000
        assert line["verified"]
        assert min(line["ratio"], details["rows_met"]) > 0
        assert details["amplification"]["lines"] == by_lines / least
        if line["id"].startswith("taxi.q2"):
            values = columns["total_amount"]["least"]
            assert values == 8 * details["rows_met"] <= columns["total_amount"]["sectors"]
        if params["line"] == 512:  # of one column three quarters may be in the cache from the run before
            assert least * 0.2 < details["bytes_moved"] <= by_lines * 2

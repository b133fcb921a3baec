"""The benchmark of kernels that go from line to line runs, small, and finds the sums."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_lines import FOLDER, lines_from
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not here")


@pytest.mark.parametrize("executor", DEVICES)
def test_readers_of_each_kind_find_the_sums(executor: str, tmp_path: Path) -> None:
    small = ("--mib", "4", "--repeats", "1", "--folder", str(tmp_path), "--executor", executor)
    found = lines_from("kernel_readers.py", tmp_path, *small)
    assert len(found) == 3 * 2 * 4 * 2
    assert {line["id"] for line in found} == {
        f"readers.{name}" for name in ("order", "warps", "blocks", "lists")
    }
    assert all(line["verified"] and line["value"] > 0 and line["ratio"] > 0 for line in found)
    with_room = [line for line in found if line["params"]["cache"] == 2 << 20]
    assert all(line["details"]["misses"] + line["details"]["prefetches"] > 0 for line in with_room)

"""Runs the examples and compares their results with NumPy's.

python examples/check.py FOLDER        where the programs were built
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

rng = np.random.default_rng(3)


def run(program: Path, *words: object) -> Any:
    """The numbers that it prints, one on a line."""
    done = subprocess.run(
        [program, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    return np.array([float(line) for line in done.stdout.split()])


def depths(offsets: Any, edges: Any, source: int) -> Any:
    found = np.full(len(offsets) - 1, -1)
    found[source] = 0
    frontier, level = [source], 1
    while frontier:
        following = []
        for v in frontier:
            for to in edges[offsets[v] : offsets[v + 1]]:
                if found[to] < 0:
                    found[to] = level
                    following.append(int(to))
        frontier, level = following, level + 1
    return found


def check(folder: Path, data: Path) -> None:
    values = np.arange(65536.0)
    np.save(data / "values.npy", values)
    expected = values[np.arange(65536, dtype=np.uint64) * 2654435761 % 65536].sum()
    assert run(folder / "sum", data / "values.npy") == expected

    positions = rng.integers(0, 1 << 40, 50001).astype(np.uint64)
    np.save(data / "positions.npy", positions)
    found = run(folder / "look_up", data / "values.npy", data / "positions.npy")
    assert found == values[positions % 65536].sum()

    keys = rng.integers(0, 1 << 62, 100000).astype(np.uint64)
    counts = rng.integers(0, 9, 5003).astype(np.uint64)
    np.save(data / "keys.npy", keys)
    np.save(data / "counts.npy", counts)
    run(folder / "histogram", data / "keys.npy", data / "counts.npy")
    expected = counts + np.bincount(keys.astype(np.int64) % 5003, minlength=5003).astype(np.uint64)
    assert np.array_equal(np.load(data / "counts.npy"), expected)

    matrix = rng.integers(-8, 8, (300, 1001)).astype(np.float32)
    np.save(data / "matrix.npy", matrix)
    assert np.array_equal(run(folder / "row_sums", data / "matrix.npy", 1001), matrix.sum(axis=1))

    sources = np.sort(rng.integers(0, 2000, 5000))
    edges = rng.integers(0, 2000, 5000).astype(np.int32)
    offsets = np.searchsorted(sources, np.arange(2001)).astype(np.int64)
    np.save(data / "offsets.npy", offsets)
    np.save(data / "edges.npy", edges)
    assert np.array_equal(run(folder / "search", data, 7), depths(offsets, edges, 7))

    texts = data / "texts"
    texts.mkdir()
    lines = []
    for k, size in enumerate([0, 1, 4095, 4096, 4097, 70000, *rng.integers(0, 20000, 60)]):
        text = rng.bytes(int(size)).replace(b"a", b"\n")
        (texts / f"{k:03}").write_bytes(text)
        lines.append(text.count(b"\n"))
    assert np.array_equal(run(folder / "line_counts", texts), lines)

    content = rng.bytes(1234567)
    (data / "from").write_bytes(content)
    subprocess.run([folder / "copy_blocks", data / "from", data / "to"], check=True, timeout=120)
    assert (data / "to").read_bytes() == content


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        check(Path(sys.argv[1]).resolve(), Path(scratch))

"""Runs the examples and compares their results with NumPy's.

python examples/check.py FOLDER        where the programs were built
"""

from __future__ import annotations

import csv
import io
import re
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


def collatz_steps(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def mixed_sum(values: Any) -> Any:
    """What own_policy reads: half of it from 200 hot lines, half from those that follow, in turn."""
    i = np.arange(1 << 18, dtype=np.uint64)
    drawn = i * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(24)
    line = np.where(i % 2 == 0, drawn % 200, 200 + i // 2 % (len(values) // 512 - 200))
    return values[line * 512 + drawn % 512].sum()


def check_csv_filter(program: Path, data: Path) -> None:
    # Fields in quotes, some longer than a window of the program and some than a part, begin and end anywhere.
    def field(text: str) -> str:
        quoted = rng.random() < 0.2 or re.search('[",\r\n]', text)
        return '"' + text.replace('"', '""') + '"' if quoted else text

    numbers = ["", "-1.5e3", "0.25", "+7", "1e1", "seven", "1,5", "2\n2", *map(str, range(-20, 20))]
    names = ["id", "a, note", "price"]
    rows = []
    for k in range(6000):
        length = 150000 if k in (2000, 2001) else 9000 if k % 997 == 0 else int(rng.integers(0, 60))
        note = "".join(rng.choice(list('ab,"\n'), length)).replace("\n", "\r\n")
        rows.append([str(k), note, str(rng.choice(numbers))])
    path = data / "table.csv"
    ends = ["\n", "\r\n"]
    lines = [",".join(map(field, row)) + ends[k % 2] for k, row in enumerate([names, *rows])]
    path.write_text("".join(lines) + "\n" + ",,3", newline="")  # an empty line, and one without an end

    def wanted(text: str) -> bool:
        try:
            return -2.5 <= float(text) <= 10
        except ValueError:
            return False

    csv.field_size_limit(1 << 20)
    done = subprocess.run([program, path, "price", "-2.5", "10"], capture_output=True, timeout=120)
    found = list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))
    assert found == [names, *(row for row in rows if wanted(row[2])), ["", "", "3"]], done.stderr
    missing = sum(row[2] in ("", "seven", "1,5", "2\n2") for row in rows)
    assert f"{missing} rows have no number in column price" in done.stderr.decode()

    for text, sentence in [
        ('a,b\n1,"2\n', "line 2: the quote that opens here is not closed"),
        ('a,b\n1,2\n3,"4"5\n', "line 3: text follows the quote that closes this field"),
        ("a,b\n1,2\n\n3\n", "line 4: the row has fewer fields"),
        ("a,b\n1,2,3\n", "line 2: the row has more fields"),
        ('a,b\n1,2"\n', "line 2: a quote stands in a field without quotes"),
        ("x,b\n1,2\n", "there is no column a: choose one of x, b"),
    ]:
        path.write_text(text, newline="")
        done = subprocess.run([program, path, "a", "0"], capture_output=True, timeout=120)
        assert done.returncode == 2
        assert sentence in done.stderr.decode(), done.stderr


def check_sort_file(program: Path, data: Path) -> None:
    folder = data / "sorted"
    folder.mkdir()
    source, to = folder / "in", folder / "out"

    def sort(*words: object) -> Any:
        return subprocess.run(
            [program, source, *map(str, words)], capture_output=True, text=True, timeout=120
        )

    # One run and 5 to 60 of them; keys that are all alike, few, and random.
    for count, width, memory in [(0, 16, 1), (1, 16, 1), (3000, 16, 1), (300000, 16, 1), (99999, 100, 1)]:
        for keys in (1, 7, 1 << 63):
            records = rng.integers(0, 256, (count, width)).astype(np.uint8)
            key = rng.integers(0, keys, count).astype("<u8")
            records[:, :8] = key.view(np.uint8).reshape(count, 8)
            records.tofile(source)
            done = sort(to, "--record", width, "--memory", memory)
            assert done.returncode == 0, done.stderr
            assert to.read_bytes() == records[np.argsort(key, kind="stable")].tobytes()

    before = source.read_bytes()
    (folder / "link").hardlink_to(source)
    for words, sentence in [
        ([to, "--record", "13"], "bytes are left behind the last record of 13"),
        ([folder / "link"], "it is IN"),
        ([folder / "none" / "out", "--record", "100"], "No such file"),
        ([to, "--record", "100", "--key", "9"], "choose 1 to 8"),
    ]:
        done = sort(*words)
        assert done.returncode == 2
        assert sentence in done.stderr, done.stderr
    assert source.read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["in", "link", "out"]


def check_array_or_file(program: Path, data: Path) -> None:
    for mib, cache_mib in [(8, 16), (8, 1)]:
        pieces = mib * 256
        drawn = np.arange(8192 * -(-4 * pieces // 8192), dtype=np.uint64)
        order = (drawn * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) % np.uint64(pieces)
        words = np.arange(1, pieces * 512 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        expected = words.reshape(pieces, 512).sum(axis=1)[order].sum()
        done = subprocess.run(
            [program, data, str(mib), str(cache_mib)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=120,
        )
        found = re.findall(r"^(array|file): sum (\d+), \S+ GB/s, \d+ registers", done.stdout, re.M)
        assert found == [("array", str(expected)), ("file", str(expected))], done.stdout


def check(folder: Path, data: Path) -> None:
    values = np.arange(65536.0)
    np.save(data / "values.npy", values)
    expected = values[np.arange(65536, dtype=np.uint64) * 2654435761 % 65536].sum()
    for name in ("sum", "plain_sum"):
        assert run(folder / name, data / "values.npy") == expected

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
    for name in ("row_sums", "plain_row_sums"):
        assert np.array_equal(run(folder / name, data / "matrix.npy", 1001), matrix.sum(axis=1))

    sources = np.sort(rng.integers(0, 2000, 5000))
    edges = rng.integers(0, 2000, 5000).astype(np.int32)
    offsets = np.searchsorted(sources, np.arange(2001)).astype(np.int64)
    np.save(data / "offsets.npy", offsets)
    np.save(data / "edges.npy", edges)
    for name in ("search", "plain_search"):
        assert np.array_equal(run(folder / name, data, 7), depths(offsets, edges, 7))

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

    codes = rng.integers(0, 256, 1234567).astype(np.uint8)
    codes.tofile(data / "codes")
    sample = codes[np.arange(65536, dtype=np.uint64) * 2654435761 % len(codes)]
    assert run(folder / "own_controller", data / "codes") == ((sample - 128.0) / 128).sum()

    found = run(folder / "own_cache", 20000)
    steps = [0, *map(collatz_steps, range(1, 20001))]
    assert found[0] == sum(steps[1 + i * 2654435761 % 20000] for i in range(1 << 17))
    assert found[1] == 20, "lines of 1024 elements, each computed once"

    np.save(data / "many.npy", rng.integers(-8, 8, 1 << 21).astype(np.float64))
    by_clock, clock_misses, by_ours, our_misses = run(folder / "own_policy", data / "many.npy")
    assert by_clock == by_ours == mixed_sum(np.load(data / "many.npy"))
    assert our_misses < 0.8 * clock_misses, "hot lines stay"

    check_csv_filter(folder / "csv_filter", data)
    check_sort_file(folder / "sort_file", data)
    check_array_or_file(folder / "array_or_file", data)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        check(Path(sys.argv[1]).resolve(), Path(scratch))

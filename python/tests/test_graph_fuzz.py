"""Broken inputs of each format: the edges that another reader finds, or one sentence with the user's path."""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_edges import edges_of
from penstock.graph import resolve

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
sp = pytest.importorskip("scipy.sparse")

ROUNDS = int(os.environ.get("PENSTOCK_FUZZ_ROUNDS", "40"))
Random = np.random.Generator


@pytest.fixture(autouse=True)
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))


def drawn(random: Random) -> list[tuple[int, int, Any]]:
    """A few edges with weights, all of them integers or all with fractions."""
    count = int(random.integers(1, 12))
    ends = random.integers(0, 9, (count, 2)).tolist()
    weights = random.integers(-50, 50, count).tolist()
    whole = random.random() < 0.5
    return [(a, b, w if whole else w + 0.5) for (a, b), w in zip(ends, weights, strict=True)]


# -- what breaks text

WORDS = [
    "nan", "inf", "-1", "1e-50", "1e50", "1099511627776", "99999999999999999999", "16777217",
    "2147483648", "x", "",
    '"3"', "'3'", "3.0", " 4 ", "0x5", "+6", "1_0", "{}", "#", "%", "\0", "é", "\t", "true", "007",
]  # fmt: skip


def broken_text(random: Random, text: str) -> bytes:
    lines = text.split("\n")
    for _ in range(int(random.integers(0, 3))):
        at = int(random.integers(0, len(lines)))
        how = random.integers(0, 7)
        if how == 0:
            fields = re.split(r"([ ,\t])", lines[at])
            fields[int(random.integers(0, len(fields)))] = str(random.choice(WORDS))
            lines[at] = "".join(fields)
        elif how == 1:
            lines[at] = lines[at].replace(",", ";", 1).replace(" ", ",", 1)  # another delimiter
        elif how == 2:
            lines.insert(
                at, str(random.choice(["", " ", "1", "1 2 3 4 5", "1,2,3,4,5", "# c", "src,dst", ","]))
            )
        elif how == 3:
            lines[at] += str(random.choice([",", " ", " 7", ",7", "\r"]))
        elif how == 4:
            del lines[at]
            lines = lines or [""]
        elif how == 5:
            lines[0] = re.sub("dst|weight", "src", lines[0], count=1)  # a name twice
        else:
            lines = [line + "\r" for line in lines]
    data = "\n".join(lines).encode()
    if random.random() < 0.15:
        data = data[: int(random.integers(0, len(data) + 1))]
    if random.random() < 0.1:
        data = b"\xef\xbb\xbf" + data
    if random.random() < 0.1 and data:
        at = int(random.integers(0, len(data)))
        data = data[:at] + bytes([int(random.integers(0, 256))]) + data[at + 1 :]
    return data


def as_number(field: str) -> Any:
    number = float(field)
    return int(field) if re.fullmatch(r"\s*[+-]?\d+\s*", field) else number


def weights_match(ours: Any, theirs: Any) -> bool:
    return bool(np.float32(ours) == np.float32(theirs) and np.isfinite(ours))


def same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    """The same ends, as numbers where they are some, and the same weights."""

    def end(value: Any) -> Any:
        text = str(value)
        return int(text) if re.fullmatch(r"\s*[+-]?\d+\s*", text) else text

    ours = sorted(((end(a), end(b), *w) for a, b, *w in found), key=repr)
    theirs = sorted(((end(a), end(b), *w) for a, b, *w in expected), key=repr)
    return len(ours) == len(theirs) and all(
        x[:2] == y[:2] and len(x) == len(y) and (len(x) < 3 or weights_match(x[2], y[2]))
        for x, y in zip(ours, theirs, strict=True)
    )


# -- formats: what is written, what may be broken in it, and who else reads it


def csv_text(edges: list[tuple[Any, ...]], random: Random) -> str:
    header = [["src,dst,weight"], [], ["a,b,c"]][int(random.integers(0, 3))]
    return "\n".join([*header, *(f"{a},{b},{w}" for a, b, w in edges)]) + "\n"


def read_csv(data: bytes, reading: str) -> list[tuple[Any, ...]]:
    """As pandas reads it, which columns being what the notice says."""
    bare = "without a header" in reading
    table = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False, header=None if bare else 0)
    taken = re.findall(r"(?:source|target|weight) (?:column (\d+)|'([^']*)')", reading)
    columns = [table[int(number) if bare else name].tolist() for number, name in taken]
    return [(a, b, *(as_number(each) for each in w)) for a, b, *w in zip(*columns, strict=True)]


def el_text(edges: list[tuple[Any, ...]], random: Random) -> str:
    return "# a comment\n" + "".join(f"{a} {b}\n" for a, b, _ in edges)


def wel_text(edges: list[tuple[Any, ...]], random: Random) -> str:
    return "".join(f"{a}\t{b} {w}\n" for a, b, w in edges)


def read_list(data: bytes, reading: str) -> list[tuple[Any, ...]]:
    """In plain Python."""
    found = []
    for line in data.decode("utf-8-sig", errors="replace").split("\n"):
        fields = re.split(r"[ \t\r]+", line.strip(" \t\r"))
        if fields != [""] and fields[0][0] not in "#%":
            assert len(fields) - (fields[-1] == "{}") == (3 if "weight column" in reading else 2)
            found.append((int(fields[0]), int(fields[1]), *(as_number(w) for w in fields[2:] if w != "{}")))
    return found


def gr_text(edges: list[tuple[Any, ...]], random: Random) -> str:
    return f"c x\np sp 9 {len(edges)}\n" + "".join(f"a {a + 1} {b + 1} {int(w)}\n" for a, b, w in edges)


def read_gr(data: bytes, reading: str) -> list[tuple[Any, ...]]:
    fields = [line.split() for line in data.decode("utf-8-sig", errors="replace").split("\n")]
    arcs = [line for line in fields if line and line[0] == "a"]
    count = next(int(line[3]) for line in fields if line and line[0] == "p")
    assert count == len(arcs)
    return [(int(a) - 1, int(b) - 1, int(w)) for _, a, b, w in arcs]


def mtx_text(edges: list[tuple[Any, ...]], random: Random) -> str:
    head = f"%%MatrixMarket matrix coordinate real general\n9 9 {len(edges)}\n"
    return head + "".join(f"{a + 1} {b + 1} {float(w)}\n" for a, b, w in edges)


def read_mtx(data: bytes, reading: str) -> list[tuple[Any, ...]]:
    """In plain Python."""
    lines = [line.split() for line in data.decode("latin-1").split("\n")[1:]]
    lines = [line for line in lines if line and not line[0].startswith("%")]
    entries = lines[1:]
    assert int(lines[0][2]) == len(entries)
    return [(int(a) - 1, int(b) - 1, *(float(each) for each in w)) for a, b, *w in entries]


def metis_text(edges: list[tuple[Any, ...]], random: Random) -> str:
    lists: list[list[int]] = [[] for _ in range(9)]
    plain = [(a, b) for a, b, _ in edges if a != b]
    for a, b in plain:
        lists[a].append(b + 1)
        lists[b].append(a + 1)
    return f"9 {len(plain)}\n" + "".join(" ".join(map(str, each)) + "\n" for each in lists)


def read_metis(data: bytes, reading: str) -> list[tuple[Any, ...]]:
    lines = [
        line
        for line in data.decode("utf-8-sig", errors="replace").split("\n")
        if not line.lstrip(" \t\r").startswith("%")
    ]
    vertices = int(lines[0].split()[0])
    fmt = lines[0].split()[2:]
    assert fmt in ([], ["0"], ["00"], ["000"])
    return [(v, int(to) - 1) for v in range(vertices) for to in lines[v + 1].split()]


TEXT: dict[str, tuple[Callable[..., str], Callable[..., list[tuple[Any, ...]]]]] = {
    "csv": (csv_text, read_csv),
    "el": (el_text, read_list),
    "wel": (wel_text, read_list),
    "gr": (gr_text, read_gr),
    "mtx": (mtx_text, read_mtx),
    "graph": (metis_text, read_metis),
}


def tried(path: Path, **options: Any) -> tuple[list[tuple[Any, ...]], str] | None:
    """The edges and how they were read, or None for a refusal in one sentence that names the file."""
    try:
        graph = resolve(path, **options)
    except (ValueError, FileNotFoundError, PermissionError) as error:
        sentence = str(error)
        assert type(error) is ValueError, type(error)
        assert path.name in sentence, sentence
        assert "\n" not in sentence, sentence
        assert "cache" not in sentence, sentence
        assert re.match(r"(open|read|convert) ", sentence), sentence
        assert ": " in sentence.partition(path.name)[2], sentence
        return None
    finally:
        assert not [p for p in Path("cache").glob("*") if p.name.startswith(".")]
    return edges_of(graph), graph.reading


@pytest.mark.parametrize("kind", TEXT)
@pytest.mark.parametrize("seed", range(4))
def test_broken_text(kind: str, seed: int) -> None:
    random = np.random.default_rng([seed, len(kind), ord(kind[0])])
    write, read = TEXT[kind]
    refused = 0
    for round_ in range(ROUNDS):
        data = broken_text(random, write(drawn(random), random))
        path = Path(f"{round_}.{kind}")
        path.write_bytes(data)
        found = tried(path)
        if found is None:
            refused += 1
            continue
        edges, reading = found
        expected = read(data, reading)
        assert same(edges, expected), (data, reading, edges, expected)
    assert 0 < refused < ROUNDS  # or else it breaks too much, or nothing


# -- tables and arrays


def broken_table(random: Random, edges: list[tuple[Any, ...]]) -> Any:
    columns: dict[str, list[Any]] = {"src": [a for a, _, _ in edges], "dst": [b for _, b, _ in edges]}
    if random.random() < 0.7:
        columns["weight"] = [w for _, _, w in edges]
    for _ in range(int(random.integers(0, 3))):
        name = str(random.choice(list(columns)))
        at = int(random.integers(0, len(edges)))
        how = random.integers(0, 7)
        if how == 0:
            columns[name] = [str(value) for value in columns[name]]
        elif how == 1:
            columns[name][at] = None
        elif how == 2 and not isinstance(columns[name][at], str):
            columns[name] = [float(value or 0) for value in columns[name]]
            columns[name][at] = float(random.choice([np.nan, np.inf, 1e-50, 1e50, 2.0**40 + 1, 0.1]))
        elif how == 3 and all(isinstance(value, int) for value in columns[name]):
            columns[name][at] = int(random.choice([-1, 2**31, 2**40, 2**62]))
        elif how == 4:
            columns["more"] = columns[name]
        elif how == 5:
            columns = dict(reversed(columns.items()))
        elif len(columns) > 1:
            del columns[name]
    index = random.integers(100, 200, len(edges)) if random.random() < 0.3 else None
    return pd.DataFrame(columns, index=index, dtype=object).infer_objects()


def rows_of(table: Any, reading: str) -> list[tuple[Any, ...]]:
    names = re.findall(r"(?:source|target|weight) '([^']*)'", reading)
    return [tuple(row) for row in table[names].itertuples(index=False)]


@pytest.mark.parametrize("seed", range(3))
def test_broken_tables(seed: int) -> None:
    random = np.random.default_rng([seed, 77])
    refused = 0
    for round_ in range(ROUNDS):
        table = broken_table(random, drawn(random))
        path = Path(f"{round_}.parquet")
        try:
            table.to_parquet(path)
        except (ValueError, TypeError):
            continue  # nothing that Parquet can hold
        damaged = random.random() < 0.2
        if damaged:
            data = bytearray(path.read_bytes())
            del data[int(random.integers(0, len(data))) :]
            path.write_bytes(data)
        found = tried(path)
        refused += found is None
        assert not (found and damaged)
        if found:
            assert same(found[0], rows_of(table, found[1])), (table, found)
    assert 0 < refused < ROUNDS


def npz_bytes(random: Random, edges: list[tuple[Any, ...]]) -> tuple[bytes, dict[str, Any]]:
    arrays: dict[str, Any] = {
        "format": np.array(b"coo"),
        "shape": np.array([9, 9]),
        "row": np.array([a for a, _, _ in edges]),
        "col": np.array([b for _, b, _ in edges]),
        "data": np.array([float(w) for _, _, w in edges]),
    }
    how = random.integers(0, 8)
    name = str(random.choice(list(arrays)))
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[name] = np.array([np.nan])
    elif how == 2:
        arrays["row"] = arrays["row"] - 1 + 10 * (random.random() < 0.5)
    elif how == 3:
        arrays["data"][0] = random.choice([np.nan, np.inf, 1e-50, 1e50, 2.0**40 + 1])
    elif how == 4:
        arrays["shape"] = np.array([9, int(random.integers(0, 12))])
    elif how == 5:
        arrays["data"] = arrays["data"].astype(str(random.choice(["c16", "U5", "O", "?", "f4", "i8"])))
    elif how == 6:
        arrays["col"] = arrays["col"][:-1]
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue(), arrays


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(3))
def test_broken_archives(seed: int) -> None:
    random = np.random.default_rng([seed, 5])
    refused = 0
    for round_ in range(ROUNDS):
        data, arrays = npz_bytes(random, drawn(random))
        if random.random() < 0.2:
            data = data[: int(random.integers(0, len(data)))]
        path = Path(f"{round_}.npz")
        path.write_bytes(data)
        found = tried(path)
        refused += found is None
        if found:
            columns = [arrays["row"].tolist(), arrays["col"].tolist()]
            if "weight" in found[1] and "no weight" not in found[1]:
                columns.append(arrays["data"].tolist())
            assert same(found[0], list(zip(*columns, strict=True)))
    assert 0 < refused < ROUNDS


@pytest.mark.parametrize("kind", ["sg", "wsg", "bcsr", "bwcsr"])
def test_broken_binary_files(kind: str) -> None:
    random = np.random.default_rng([3, len(kind)])
    refused = 0
    for round_ in range(ROUNDS):
        edges = sorted((a, b, int(w)) for a, b, w in drawn(random))
        offsets = np.searchsorted([a for a, _, _ in edges], np.arange(10))
        pairs = kind in ("wsg", "bwcsr")
        items = np.array([(b, abs(w)) if pairs else (b,) for _, b, w in edges], "<i4").tobytes()
        if "sg" in kind:
            half = offsets.astype("<i8").tobytes() + items
            data = bytearray(struct.pack("<?qq", True, len(edges), 9) + half + half)
        else:
            data = bytearray(struct.pack("<II", 9, len(edges)) + offsets[:-1].astype("<u4").tobytes() + items)
        whole = bytes(data)
        if random.random() < 0.4:
            del data[int(random.integers(0, len(data))) :]
        elif random.random() < 0.6:
            at = int(random.integers(0, 17 if "sg" in kind else 8))
            data[at] ^= 1 << int(random.integers(0, 8))
        path = Path(f"{round_}.{kind}")
        path.write_bytes(data)
        found = tried(path)
        refused += found is None
        if bytes(data) == whole:
            assert found is not None
            assert same(found[0], [(a, b, abs(w)) if pairs else (a, b) for a, b, w in edges])
    assert 0 < refused < ROUNDS

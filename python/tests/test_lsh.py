"""penstock.lsh, beside NumPy."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

from penstock import Error, lsh

Executor = Literal["cpu", "cuda"]
Floats = npt.NDArray[np.float32]
HEADER = {"records": 8, "record_bytes": 16, "dimensions": 32, "tables": 36, "projections": 40, "buckets": 44}


def drawn(rows: int, dimensions: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)


def whole_numbers(rows: int, dimensions: int, below: int = 4, seed: int = 1) -> Floats:
    """Whose distances are exact, with many ties."""
    return np.random.default_rng(seed).integers(0, below, size=(rows, dimensions)).astype(np.float32)


def clustered(seed: int = 1) -> Floats:
    centres = 20 * drawn(100, 16, seed)
    return np.asarray(np.repeat(centres, 20, axis=0) + 0.1 * drawn(2000, 16, seed + 1), np.float32)


def nearest_of(records: Floats, queries: Floats, nearest: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """By brute force, the least number first among equal distances."""
    squares = ((queries[:, None].astype(np.float64) - records[None]) ** 2).sum(axis=2)
    order = np.argsort(squares, axis=1, kind="stable")[:, :nearest]
    return order, np.sqrt(np.take_along_axis(squares, order, axis=1)).astype(np.float32)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("rows", "dimensions"), [(1, 1), (5, 3), (1000, 4), (900, 17), (40000, 2)])
def test_exact_queries_equal_brute_force_and_ties_go_to_the_smallest_id(
    tmp_path: Path, executor: Executor, rows: int, dimensions: int
) -> None:
    records = whole_numbers(rows, dimensions)
    queries = whole_numbers(20, dimensions, seed=2)
    lsh.build(tmp_path, records, tables=2, executor=executor)
    nearest = min(rows, 40)
    with lsh.Index(tmp_path, executor=executor) as index:
        found = index.query(queries, nearest, exact=True)
    ids, distances = nearest_of(records, queries, nearest)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-6)
    assert found.candidates == 20 * rows


def test_queries_find_what_is_in_their_buckets_at_its_true_distance(
    tmp_path: Path, executor: Executor
) -> None:
    records, queries = drawn(3000, 10), drawn(50, 10, 2)
    lsh.build(tmp_path, records, executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        found = index.query(queries, 5)
    rows, columns = np.nonzero(found.ids >= 0)
    true = np.linalg.norm(records[found.ids[rows, columns]] - queries[rows], axis=1)
    np.testing.assert_allclose(found.distances[rows, columns], true, rtol=1e-5)
    assert (np.diff(np.nan_to_num(found.distances, posinf=1e9), axis=1) >= 0).all()
    assert all(len(set(ids[ids >= 0])) == (ids >= 0).sum() for ids in found.ids)


def test_nearly_all_neighbours_of_clustered_data_are_found(tmp_path: Path, executor: Executor) -> None:
    lsh.build(tmp_path, clustered(), executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        queries = clustered()[::20] + np.float32(0.01)
        assert index.recall(queries, 10) > 0.98
        assert index.query(queries, 10).candidates < 0.2 * len(index) * len(queries)


def test_more_tables_find_more(tmp_path: Path) -> None:
    records, queries = drawn(4000, 12), drawn(100, 12, 2)
    recalls = []
    for tables in (1, 8, 64):
        lsh.build(tmp_path, records, tables=tables, width=6, executor="cpu")
        with lsh.Index(tmp_path, executor="cpu") as index:
            recalls.append(index.recall(queries, 5))
    assert recalls == sorted(recalls)
    assert recalls[0] < 0.5 < recalls[2]


@pytest.mark.parametrize("options", [{"threads": 8}, {"cache": "16KiB", "line": 512}, {"line": "64KiB"}])
def test_threads_and_caches_change_no_answer(tmp_path: Path, options: dict[str, Any]) -> None:
    records = drawn(2000, 24)
    lsh.build(tmp_path, records, tables=8, executor="cpu", threads=2)
    with lsh.Index(tmp_path, executor="cpu", threads=1) as alone:
        wanted = alone.query(records[:200], 4)
    with lsh.Index(tmp_path, executor="cpu", **options) as index:
        found = index.query(records[:200], 4)
    np.testing.assert_array_equal(found.ids, wanted.ids)
    np.testing.assert_array_equal(found.distances, wanted.distances)
    assert found.candidates == wanted.candidates


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 8}, {"memory": 1}])
def test_threads_and_memory_change_no_index(tmp_path: Path, executor: Executor, options: Any) -> None:
    records = whole_numbers(1500, 20, 100)
    lsh.build(tmp_path / "a", records, tables=5, executor=executor)
    lsh.build(tmp_path / "b", records, tables=5, executor="cpu", **options)
    assert (tmp_path / "a/lsh.index").read_bytes() == (tmp_path / "b/lsh.index").read_bytes()


@pytest.mark.parametrize("value", [0, 1, 1e-30, 1e15])
def test_records_that_are_all_equal_are_found_by_the_smallest_id(
    tmp_path: Path, executor: Executor, value: float
) -> None:
    records = np.full((2000, 5), value, np.float32)
    lsh.build(tmp_path, records, tables=3, executor=executor)
    with lsh.Index(tmp_path, max_candidates=100, executor=executor) as index:
        found = index.query(records[:3], 2)
    assert found.ids.tolist() == [[0, 1]] * 3
    assert (found.distances == 0).all()
    assert (found.candidates, found.cut) == (300, 3)


@pytest.mark.parametrize("scale", [1e-45, 1e-38, 1.0, 1e18])
def test_vectors_of_any_magnitude_have_an_index(tmp_path: Path, executor: Executor, scale: float) -> None:
    lsh.build(tmp_path, np.full((50, 16), scale), executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        assert index.query(np.full(16, scale), 3).ids.tolist() == [[0, 1, 2]]


def test_a_single_record_is_an_index(tmp_path: Path, executor: Executor) -> None:
    facts = lsh.build(tmp_path, [[1, 2, 3]], executor=executor)
    assert (facts.records, facts.dimensions, facts.record_bytes) == (1, 3, 16)
    with lsh.Index(tmp_path, executor=executor) as index:
        found = index.query([1, 2, 3], 3)
        assert found.ids.tolist() == [[0, -1, -1]]
        assert found.distances.tolist() == [[0, np.inf, np.inf]]
        assert index.recall([1, 2, 3], 3) == 1


def test_a_query_without_candidates_is_compared_with_the_fallback(tmp_path: Path, executor: Executor) -> None:
    records = drawn(500, 8)
    lsh.build(tmp_path, records, executor=executor)
    far = np.full((2, 8), 1e6, np.float32)
    with lsh.Index(tmp_path, executor=executor) as index:
        none = index.query(far, 2)
    assert (none.ids == -1).all()
    assert np.isinf(none.distances).all()
    assert none.candidates == 0
    with lsh.Index(tmp_path, fallback=5, executor=executor) as index:
        some = index.query(far, 10)
    assert sorted(some.ids[0].tolist()) == [-1] * 5 + [0, 100, 200, 300, 400]
    with lsh.Index(tmp_path, fallback=1000, executor=executor) as index:
        every = index.query(far, 3)
    np.testing.assert_allclose(every.distances, nearest_of(records, far, 3)[1], rtol=1e-6)
    assert every.candidates == 1000


def test_candidates_beyond_the_limit_are_left_out_and_counted(tmp_path: Path, executor: Executor) -> None:
    records = clustered()
    lsh.build(tmp_path, records, width=10, executor=executor)
    with lsh.Index(tmp_path, max_candidates=1, executor=executor) as index:
        found = index.query(records[:40], 3)
    assert (found.ids[:, 0] >= 0).all()
    assert (found.ids[:, 1:] == -1).all()
    assert (found.candidates, found.cut) == (40, 40)


def test_no_queries_have_no_answers(tmp_path: Path, executor: Executor) -> None:
    lsh.build(tmp_path, drawn(10, 4), tables=1, executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        for exact in (False, True):
            found = index.query(np.zeros((0, 4)), 2, exact=exact)
            assert found.ids.shape == found.distances.shape == (0, 2)
        with pytest.raises(ValueError, match="one or more"):
            index.recall(np.zeros((0, 4)))


@pytest.mark.parametrize(
    ("vectors", "nearest", "kind", "sentence"),
    [
        ([[1, np.nan, 3, 4]], 1, ValueError, "row 0 has a number that is not finite"),
        ([[0, 0, 0, 0], [1, 1e300, 3, 4]], 1, ValueError, "row 1 has a number that is not finite"),
        ([[1, 2, 3]], 1, ValueError, "the index has 4 dimensions"),
        (np.zeros((2, 2, 4)), 1, ValueError, r"give \(n, dimensions\)"),
        ([["a", "b", "c", "d"]], 1, TypeError, "give real numbers"),
        (np.zeros((1, 4), complex), 1, TypeError, "give real numbers"),
        (np.zeros((1, 4)), 0, ValueError, "nearest 0: it must be 1 or more"),
        (np.zeros((1, 4)), 1025, ValueError, "nearest 1025: it must be 1024 or less"),
        (np.zeros((1, 4)), 1.5, TypeError, "nearest"),
    ],
)
def test_queries_that_cannot_be_answered_are_refused(
    tmp_path: Path, vectors: Any, nearest: Any, kind: type[Exception], sentence: str
) -> None:
    lsh.build(tmp_path, drawn(10, 4), tables=1, executor="cpu")
    with lsh.Index(tmp_path, executor="cpu") as index, pytest.raises(kind, match=sentence):
        index.query(vectors, nearest)


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        (None, {}, "dimensions: give them, or vectors"),
        (None, {"dimensions": -1}, "dimensions -1"),
        (None, {"dimensions": 1.5}, "dimensions 1.5"),
        (None, {"dimensions": 5}, "they are no records of 32"),
        ([[1, 2], [3, np.nan]], {}, "row 1 has a number that is not finite"),
        ([[1, 2]], {"dimensions": 3}, "leave them out"),
        ([[1, 2]], {"record_bytes": 17}, "give a multiple of 16 of at least 8"),
        ([[1, 2]], {"record_bytes": -16}, "record_bytes -16"),
        ([[1, 2]], {"candidates": float("nan")}, "candidates nan"),
        ([[1, 2]], {"candidates": 0}, "candidates 0"),
        ([[1, 2]], {"width": float("inf")}, "width inf"),
        ([[1, 2]], {"width": 1e300}, "width 1e"),
        ([[1, 2]], {"width": 1e-40}, "width 1e"),
        ([[1, 2], [3, 1e19]], {}, r"row 1 has a number of 1e\+19: squares of distances overflow"),
        ([[1, 2]], {"tables": 0}, "tables 0"),
        ([1, 2], {}, r"vectors of shape \(2,\)"),
        (np.zeros((0, 2)), {}, "one or more of each"),
    ],
)
def test_a_bad_argument_changes_no_file(
    tmp_path: Path, given: Any, options: dict[str, Any], sentence: str
) -> None:
    lsh.build(tmp_path, drawn(3, 4), tables=1, executor="cpu")
    before = {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)}
    with pytest.raises((ValueError, TypeError), match=sentence):
        lsh.build(tmp_path, given, executor="cpu", **options)
    assert before == {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)}


def test_names_of_folders_are_utf8(tmp_path: Path) -> None:
    lsh.build(tmp_path / "new\nline é", drawn(3, 4), tables=1, executor="cpu")
    assert len(lsh.Index(tmp_path / "new\nline é", executor="cpu")) == 3
    other = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(ValueError, match="its name is no UTF-8"):
        lsh.build(other, drawn(3, 4), executor="cpu")
    assert not other.exists()


def test_records_of_wider_strides_are_used_as_they_lie(tmp_path: Path, executor: Executor) -> None:
    records = whole_numbers(200, 6)
    assert lsh.write_records(tmp_path, records, record_bytes=48) == 48
    facts = lsh.build(tmp_path, dimensions=6, record_bytes=48, executor=executor)
    assert (facts.records, facts.record_bytes) == (200, 48)
    with lsh.Index(tmp_path, executor=executor) as index:
        assert index.query(records, exact=True).distances.max() == 0


def test_new_records_have_no_old_index(tmp_path: Path) -> None:
    lsh.build(tmp_path, drawn(20, 4), tables=1, executor="cpu")
    lsh.write_records(tmp_path, drawn(20, 4, 2))
    assert names_in(tmp_path) == ["records"]
    with pytest.raises(FileNotFoundError, match="build it first"):
        lsh.Index(tmp_path, executor="cpu")


def test_an_open_index_keeps_its_records_when_others_replace_them(tmp_path: Path, executor: Executor) -> None:
    records = drawn(300, 4)
    lsh.build(tmp_path, records, tables=4, executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        lsh.build(tmp_path, records + 100, tables=4, executor=executor)
        assert index.query(records, exact=True).ids[:, 0].tolist() == list(range(300))


def test_records_cut_while_the_index_is_open_are_an_error(tmp_path: Path, executor: Executor) -> None:
    records = drawn(3000, 16)
    lsh.build(tmp_path, records, tables=4, executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        os.truncate(tmp_path / "records", 4096)
        for exact in (False, True):
            with pytest.raises(OSError, match="Input/output error"):
                index.query(records[-20:], exact=exact)
        os.truncate(tmp_path / "records", 3000 * 64)
        assert index.query(np.zeros((0, 16))).ids.size == 0


def poke(path: Path, at: int, value: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(value)


def resize(name: str, by: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size + by)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "index shortened": resize("lsh.index", -1),
    "index lengthened": resize("lsh.index", 4096),
    "index emptied": lambda folder: os.truncate(folder / "lsh.index", 0),
    "index of zeros": lambda folder: poke(folder / "lsh.index", 0, bytes(4096)),
    "records shortened": resize("records", -1),
    "records removed": lambda folder: (folder / "records").unlink(),
    "magic": lambda folder: poke(folder / "lsh.index", 0, b"x"),
    "offsets": lambda folder: poke(folder / "lsh.index", offsets_of(folder) + 4, b"\xff\xff\xff\xff"),
    **{
        f"header: {name} {value:#x}": lambda folder, at=at, value=value: poke(  # type: ignore[misc]
            folder / "lsh.index", at, struct.pack("<I", value)
        )
        for name, at in HEADER.items()
        for value in (0xFFFFFFFF, 0x7FFFFFF0)
    },
    "header: width": lambda folder: poke(folder / "lsh.index", 48, struct.pack("<f", float("nan"))),
}


def offsets_of(folder: Path) -> int:
    dimensions, tables, projections = struct.unpack_from("<3I", (folder / "lsh.index").read_bytes(), 32)
    shifts = 4096 + -(-4 * dimensions * tables * projections // 4096) * 4096
    return int(shifts + -(-4 * tables * projections // 4096) * 4096)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused(tmp_path: Path, damage: str) -> None:
    lsh.build(tmp_path, drawn(300, 4), tables=2, executor="cpu")
    DAMAGE[damage](tmp_path)
    with pytest.raises((ValueError, OSError), match=re.escape(str(tmp_path))):
        lsh.Index(tmp_path, executor="cpu")


def test_a_changed_byte_of_the_header_the_projections_or_the_shifts_is_refused(tmp_path: Path) -> None:
    lsh.build(tmp_path, drawn(300, 4), tables=2, executor="cpu")
    whole = (tmp_path / "lsh.index").read_bytes()
    shifts = offsets_of(tmp_path) - 4096
    for at in (*range(56), 4096, 4096 + 4 * 4 * 16 - 1, shifts, shifts + 4 * 16 - 1):
        poke(tmp_path / "lsh.index", at, bytes([whole[at] ^ 1]))
        with pytest.raises(ValueError, match="build it again"):
            lsh.Index(tmp_path, executor="cpu")
        poke(tmp_path / "lsh.index", at, whole[at : at + 1])
    assert len(lsh.Index(tmp_path, executor="cpu")) == 300


def test_entries_of_records_that_are_not_there_are_refused(tmp_path: Path, executor: Executor) -> None:
    records = np.ones((100, 4), np.float32)
    facts = lsh.build(tmp_path, records, tables=2, executor=executor)
    for entry in range(200):
        poke(tmp_path / "lsh.index", facts.index_bytes - 8 * (entry + 1), struct.pack("<I", 100 + entry))
    with (
        lsh.Index(tmp_path, executor=executor) as index,
        pytest.raises(ValueError, match="names records that there are not"),
    ):
        index.query(records[:1])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"fallback": 5, "max_candidates": 4}, "choose at most max_candidates, 4"),
        ({"max_candidates": 0}, "max_candidates 0"),
        ({"cache": 4096}, "make it larger"),
        ({"cache": 1}, "make the cache larger"),
        ({"line": 48}, "choose a power of two"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    lsh.build(tmp_path, drawn(10, 4), tables=1, executor="cpu")
    with pytest.raises(ValueError, match=sentence):
        lsh.Index(tmp_path, executor="cpu", **options)


def test_a_build_that_is_stopped_leaves_the_old_index(tmp_path: Path) -> None:
    lsh.build(tmp_path, drawn(500, 4), tables=2, executor="cpu")
    before = (tmp_path / "lsh.index").read_bytes()
    for stage in ("sampling records", "hashing records", "sorting tables"):

        def stop(what: str, done: int, total: int, stage: str = stage) -> None:
            if what == stage:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            lsh.build(tmp_path, dimensions=4, seed=2, tables=2, executor="cpu", progress=stop)
        assert names_in(tmp_path) == ["lsh.index", "records"]
        assert (tmp_path / "lsh.index").read_bytes() == before


def test_builds_of_one_folder_wait_for_each_other(tmp_path: Path) -> None:
    sets = [drawn(4000, 8, seed) for seed in range(4)]

    def make(records: Floats) -> None:
        lsh.build(tmp_path, records, tables=2, executor="cpu", threads=1)

    builders = [threading.Thread(target=make, args=(records,)) for records in sets]
    for each in builders:
        each.start()
    for each in builders:
        each.join()
    assert names_in(tmp_path) == ["lsh.index", "records"]
    last = np.fromfile(tmp_path / "records", np.float32).reshape(4000, 8)
    assert any(np.array_equal(last, records) for records in sets)
    with lsh.Index(tmp_path, max_candidates=4000, executor="cpu") as index:
        assert index.query(last).ids[:, 0].tolist() == list(range(4000))


def _build_with_ctrl_c(folder: Path) -> None:
    # The handler runs where the build looks for signals: this thread runs no Python code until then.
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        lsh.build(folder, dimensions=64, tables=128, executor="cpu", threads=1)
    finally:
        timer.join()


def test_ctrl_c_stops_a_build_without_progress(tmp_path: Path) -> None:
    lsh.write_records(tmp_path, drawn(20000, 64))
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _build_with_ctrl_c(tmp_path)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert names_in(tmp_path) == ["records"]


def test_progress_that_raises_ends_a_query_and_the_index_goes_on(tmp_path: Path, executor: Executor) -> None:
    records = drawn(50, 4)
    lsh.build(tmp_path, records, tables=2, executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        with pytest.raises(ZeroDivisionError):
            index.query(records, progress=lambda *_: 1 // 0)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="a query is under way"):
            index.query(records, progress=lambda *_: index.inspect())  # type: ignore[arg-type]
        assert index.query(records[7]).ids.tolist() == [[7]]


def test_threads_ask_and_inspect_at_once(tmp_path: Path, executor: Executor) -> None:
    records = drawn(500, 4)
    lsh.build(tmp_path, records, tables=2, executor=executor)
    with lsh.Index(tmp_path, executor=executor) as index:
        wrong: list[int] = []

        def ask(first: int) -> None:
            for k in range(first, 200, 4):
                found = index.query(records[k : k + 100], progress=lambda *_: None)
                wrong.extend(np.flatnonzero(found.ids[:, 0] != np.arange(k, k + 100)))

        askers = [threading.Thread(target=ask, args=(k,), daemon=True) for k in range(4)]
        for each in askers:
            each.start()
        while any(each.is_alive() for each in askers):
            index.inspect()
        assert not wrong


def test_a_closed_index_is_refused(tmp_path: Path) -> None:
    lsh.build(tmp_path, drawn(10, 4), tables=1, executor="cpu")
    index = lsh.Index(tmp_path, executor="cpu")
    index.close()
    index.close()
    for ask in (lambda: index.query(np.zeros(4)), index.inspect):
        with pytest.raises(ValueError, match="it is closed"):
            ask()


@pytest.mark.parametrize("options", [{}, {"line": 512, "cache": "8KiB"}])
def test_find_within_finds_the_first_match_in_the_order_of_sets(
    tmp_path: Path, executor: Executor, options: dict[str, Any]
) -> None:
    sets = [whole_numbers(rows, 8, seed=rows) for rows in (1, 40, 33, 500)]
    queries = whole_numbers(70, 8, seed=9)
    queries[3] += 100
    for number, records in enumerate(sets):
        padded = np.full((len(records), 64), 7, np.float32)
        padded[:, :8] = records
        padded.tofile(tmp_path / f"set{number}")
    found = lsh.find_within(
        tmp_path, [f"set{k}" for k in range(4)], queries, 2, record_bytes=256, executor=executor, **options
    )
    for query, number, record in zip(queries, found.sets, found.records, strict=True):
        near = [np.flatnonzero(((records - query) ** 2).sum(axis=1) <= 4) for records in sets]
        wanted = next(((k, ids[0]) for k, ids in enumerate(near) if len(ids)), (-1, -1))
        assert (number, record) == wanted
    assert found.sets[3] == -1
    assert len(set(found.sets)) > 3


@pytest.mark.parametrize(
    ("sets", "queries", "distance", "record_bytes", "sentence"),
    [
        ("set", np.zeros((1, 4)), 1, 16, "give a list of names"),
        (["none"], np.zeros((1, 4)), 1, 16, "No such file"),
        (["../set"], np.zeros((1, 4)), 1, 16, "name a file of records|Invalid cross-device link"),
        (["set"], np.zeros((1, 3)), 1, 16, "give a multiple of 4"),
        (["set"], np.zeros((0, 4)), 1, 16, "give 1 to 1048576 vectors"),
        (["set"], np.full((1, 4), np.nan), 1, 16, "row 0 has a number that is not finite"),
        (["set"], np.zeros((1, 4)), -1, 16, "give a number from 0 on"),
        (["set"], np.zeros((1, 4)), float("nan"), 16, "give a number from 0 on"),
        (["set"], np.zeros((1, 4)), 1, 48, "give a power of two"),
        (["set"], np.zeros((1, 4)), 1, 64, "are no records of 64"),
        (["set"], np.zeros((1, 4)), 1, -16, "record_bytes -16"),
    ],
)
def test_find_within_refuses_what_is_no_search(
    tmp_path: Path, sets: Any, queries: Any, distance: float, record_bytes: int, sentence: str
) -> None:
    np.zeros((3, 4), np.float32).tofile(tmp_path / "set")
    with pytest.raises((ValueError, TypeError, OSError), match=sentence):
        lsh.find_within(tmp_path, sets, queries, distance, record_bytes=record_bytes, executor="cpu")


@pytest.mark.parametrize("call", ["build", "query", "find_within"])
def test_vectors_that_map_a_cut_file_are_refused(tmp_path: Path, call: str) -> None:
    """The end of the process else: SIGBUS."""
    lsh.build(tmp_path / "points", drawn(10, 4), tables=1, executor="cpu")
    before = (tmp_path / "points" / "records").read_bytes()
    np.save(tmp_path / "vectors.npy", drawn(5000, 4))
    vectors = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    os.truncate(tmp_path / "vectors.npy", 5000)
    with lsh.Index(tmp_path / "points", executor="cpu") as index:
        calls: dict[str, Callable[[], object]] = {
            "build": lambda: lsh.build(tmp_path / "points", vectors, executor="cpu"),
            "query": lambda: index.query(vectors[4000:]),
            "find_within": lambda: lsh.find_within(
                tmp_path / "points", ["records"], vectors[4000:], 1, record_bytes=16, executor="cpu"
            ),
        }
        with pytest.raises(Error, match="an argument maps a file that was cut short"):
            calls[call]()
    assert (tmp_path / "points" / "records").read_bytes() == before


def test_copies_of_an_index_are_the_index(tmp_path: Path) -> None:
    records = drawn(100, 4)
    lsh.build(tmp_path / "a", records, tables=2, executor="cpu")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with lsh.Index(tmp_path / "b", executor="cpu") as index:
        assert index.query(records).ids[:, 0].tolist() == list(range(100))


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_records_that_are_not_finite_leave_the_width_to_the_others(tmp_path: Path, share: float) -> None:
    records = np.random.default_rng(5).standard_normal((20_000, 16)).astype(np.float32)
    odd = records.copy()
    odd[:: round(1 / share), 3] = np.nan
    widths = {}
    for name, each in {"plain": records, "odd": odd}.items():
        (tmp_path / name).mkdir()
        each.tofile(tmp_path / name / "records")
        widths[name] = lsh.build(tmp_path / name, dimensions=16, candidates=1000, executor="cpu").width
    assert 0.8 < widths["odd"] / widths["plain"] < 1.6

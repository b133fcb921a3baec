"""Keys as the indexing suites of NumPy and torch try them, on every placement of the CPU executor: what NumPy
gives, or one sentence. PENSTOCK_DEEP=1 draws many more."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from indexed_arrays import PLACEMENTS, host, numbers, placed

DEEP = os.environ.get("PENSTOCK_DEEP", "") not in ("", "0")
SHAPES = [(60,), (13, 7), (6, 5, 9), (5, 3, 4, 6), (3, 2, 3, 2, 3, 2)]


@pytest.fixture(params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def named(key: Any) -> str:
    return repr(key).replace("\n", " ")


def check_reads(array: penstock.Array, content: np.ndarray[Any, Any], key: Any) -> None:
    """As NumPy, or an error where NumPy has one."""
    try:
        wanted = content[key]
    except (IndexError, ValueError, TypeError) as problem:
        with pytest.raises(type(problem)) as caught:
            array[key]
        assert "\n" not in str(caught.value)
        assert str(caught.value)
        return
    found = host(array[key])
    assert found.shape == wanted.shape, named(key)
    np.testing.assert_array_equal(found, wanted, err_msg=named(key))


def mask_of(shape: tuple[int, ...], seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(shape) < 0.4


SITUATIONS: list[tuple[str, tuple[int, ...], Any]] = [
    ("an integer", (13, 7), 5),
    ("the last", (13, 7), -1),
    ("an integer of NumPy", (13, 7), np.int16(-13)),
    ("an unsigned one", (13, 7), np.uint64(12)),
    ("an array of no dimension", (13, 7), np.array(3)),
    ("an integer of one dimension", (60,), 59),
    ("an ellipsis", (13, 7), ...),
    ("an empty tuple", (13, 7), ()),
    ("a new axis", (13, 7), None),
    ("new axes and an ellipsis", (13, 7), (None, ..., None)),
    ("a new axis inside", (13, 7), (slice(2, 9), None, 3)),
    ("an ellipsis of no dimension", (13, 7), (3, ..., 4)),
    ("an ellipsis that parts arrays", (13, 7), ([3, 4], ..., [4, 5])),
    ("an ellipsis first", (6, 5, 9), (..., 4)),
    ("an ellipsis within", (6, 5, 9), (2, ..., slice(None, None, 2))),
    ("a slice", (13, 7), slice(3, 9)),
    ("all", (13, 7), slice(None)),
    ("every second", (13, 7), slice(None, None, 2)),
    ("backwards", (13, 7), slice(None, None, -1)),
    ("backwards in threes", (13, 7), slice(11, 1, -3)),
    ("out of range", (13, 7), slice(-100, 100)),
    ("beyond the end", (13, 7), slice(13, 20)),
    ("of nothing", (13, 7), slice(9, 3)),
    ("huge bounds", (13, 7), slice(-(2**70), 2**70, 2**65)),
    ("huge bounds and an array", (13, 7), (slice(None, 2**70, 2**65), [1, 5])),
    ("bounds of NumPy", (13, 7), slice(np.int64(2), np.uint8(9))),
    ("both backwards", (13, 7), (slice(None, None, -1), slice(None, None, -1))),
    ("a column", (13, 7), (slice(None), 4)),
    ("the last column", (13, 7), (slice(None), -1)),
    ("some columns", (13, 7), (slice(None), slice(2, 6))),
    ("a step of both", (13, 7), (slice(1, None, 3), slice(None, None, 2))),
    ("a box", (6, 5, 9), (slice(1, 5), slice(2, 4), slice(3, 8))),
    ("a box backwards", (5, 3, 4, 6), (slice(4, None, -2), slice(None), slice(3, 0, -1), slice(1, 6, 3))),
    ("no dimension left whole", (3, 2, 3, 2, 3, 2), (slice(None, None, 2),) * 6),
    ("more loops than a grid has", (3, 2, 3, 2, 3, 2), (slice(None, None, -2),) * 6),
    ("integers alone", (6, 5, 9), (5, -1, 3)),
    ("a list", (13, 7), [1, 1, 12, -13]),
    ("an empty list", (13, 7), []),
    ("a tuple within", (13, 7), ((1, 2),)),
    ("a list of lists", (13, 7), [[0, 1], [2, 3]]),
    ("an array of two dimensions", (13, 7), np.array([[3, 4], [5, -6]])),
    ("bytes", (13, 7), np.array([3, 12], np.uint8)),
    ("an array that is not contiguous", (13, 7), np.arange(13)[::-2]),
    ("one of the other byte order", (13, 7), np.array([1, 2], ">i4")),
    ("an array of no numbers", (13, 7), np.zeros((0, 3), np.int64)),
    ("a range", (13, 7), range(2, 9)),
    ("pairs", (13, 7), ([1, 5, -1], [0, 6, -7])),
    ("pairs that are spread", (13, 7), (np.arange(13)[:, None], np.array([6, 0]))),
    ("an array and an integer", (13, 7), ([1, 5], 3)),
    ("an integer and an array", (13, 7), (3, [1, 5])),
    ("an array and a slice", (13, 7), ([1, 5], slice(1, 4))),
    ("an array and every second", (13, 7), ([1, 5], slice(None, None, -2))),
    ("a slice and an array", (13, 7), (slice(2, 8), [5, 1, 1])),
    ("all and an array", (13, 7), (slice(None), [6, 0])),
    ("arrays apart", (6, 5, 9), ([1, 2], slice(None), [3, 4])),
    ("an integer apart from an array", (6, 5, 9), (0, slice(None), [3, 4])),
    ("arrays together in the middle", (5, 3, 4, 6), (slice(1, 3), [0, 2], [1, 3])),
    ("arrays at the end", (6, 5, 9), (..., [0, 2, 4], [1, 3, 8])),
    ("an array in the middle", (6, 5, 9), (slice(None), [[0, 4], [1, 1]], slice(2, 7))),
    ("an array and a new axis", (13, 7), ([1, 5], None, slice(None))),
    ("arrays parted by a new axis", (13, 7), ([1, 5], None, [2, 3])),
    ("a new axis and an array", (13, 7), (None, [1, 5])),
    ("three arrays", (6, 5, 9), ([[0], [5]], [1, 2, 3], 8)),
    ("a mask of rows", (13, 7), mask_of((13,))),
    ("a mask of nothing", (13, 7), np.zeros(13, bool)),
    ("a list of booleans", (13, 7), [True, False] * 6 + [True]),
    ("a mask of all", (13, 7), mask_of((13, 7))),
    ("a mask of two dimensions", (6, 5, 9), mask_of((6, 5))),
    ("a mask of the last dimensions", (6, 5, 9), (..., mask_of((5, 9)))),
    ("a mask and an integer", (13, 7), (mask_of((13,)), 3)),
    ("a mask and a slice", (13, 7), (mask_of((13,)), slice(1, 5))),
    ("a slice and a mask", (13, 7), (slice(3, 9), mask_of((7,)))),
    ("a mask and an array", (6, 5, 9), (np.arange(6) < 2, slice(None), [3, 4])),
    ("a mask between slices", (5, 3, 4, 6), (slice(1, 4), mask_of((3, 4)), slice(None, None, 2))),
    ("too large", (13, 7), 13),
    ("too small", (13, 7), -14),
    ("far too large", (13, 7), 2**80),
    ("too large a column", (13, 7), (0, 7)),
    ("a list out of range", (13, 7), [1, 13]),
    ("a column of a list out of range", (13, 7), (slice(None), [1, -8])),
    ("out of range where nothing is taken", (13, 7), ([13], slice(0, 0))),
    ("one of pairs out of range", (13, 7), ([1, 2], [0, 7])),
    ("too many", (13, 7), (1, 2, 3)),
    ("too many masks", (13, 7), (mask_of((13, 7)), 0)),
    ("two ellipses", (6, 5, 9), (..., 1, ...)),
    ("a float", (13, 7), 1.0),
    ("floats", (13, 7), [0.5]),
    ("a float of NumPy", (13, 7), np.float64(1)),
    ("a string", (13, 7), "rows"),
    ("a complex number", (13, 7), 1j),
    ("an object", (13, 7), object()),
    ("a slice of floats", (13, 7), slice(0.5, 2)),
    ("a step of nothing", (13, 7), slice(1, 5, 0)),
    ("arrays that do not go together", (13, 7), ([1, 2], [1, 2, 3])),
    ("a short mask", (13, 7), np.ones(12, bool)),
    ("a long mask", (13, 7), np.ones(14, bool)),
    ("a mask of another shape", (13, 7), np.ones((13, 6), bool)),
    ("a short mask of columns", (13, 7), (slice(None), np.ones(6, bool))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "key"), [(s, k) for _, s, k in SITUATIONS], ids=[n for n, _, _ in SITUATIONS]
)
def test_a_key_takes_what_numpy_takes(tmp_path: Path, library: str, shape: tuple[int, ...], key: Any) -> None:
    for where in PLACEMENTS:
        content = numbers(shape)
        with placed(tmp_path, content, where) as array:
            check_reads(array, content, key)


@pytest.mark.parametrize(
    ("key", "problem"),
    [(True, IndexError), (np.False_, IndexError), ((True, 1), IndexError), (np.array(True), IndexError),
     ([[1], [2, 3]], IndexError), ({"a": 1}, IndexError), (np.array(["x"]), IndexError)],
)  # fmt: skip
def test_what_numpy_takes_otherwise_is_refused_in_a_sentence(
    tmp_path: Path, library: str, placement: str, key: Any, problem: type[Exception]
) -> None:
    with placed(tmp_path, numbers((13, 7)), placement, writable=True) as array:
        for use in (lambda: array[key], lambda: array.__setitem__(key, 1)):
            with pytest.raises(problem) as caught:
                use()
            assert "\n" not in str(caught.value)


def random_key(shape: tuple[int, ...], draw: random.Random) -> Any:
    """Of all that NumPy knows, most of it in range."""
    items: list[Any] = []
    dimension, spread = 0, draw.choice([(), (3,), (2, 3)])
    while dimension < len(shape) and draw.random() < 0.85:
        size, kind = shape[dimension], draw.randrange(8)
        if kind == 0:
            items.append(draw.randrange(-size, size))
        elif kind in (1, 2):
            begin, end = (draw.choice([None, draw.randrange(-size - 2, size + 3)]) for _ in range(2))
            items.append(slice(begin, end, draw.choice([None, 1, 1, 2, -1, -3])))
        elif kind in (3, 4):
            drawn = [draw.randrange(-size, size) for _ in range(int(np.prod(spread)))]
            array = np.array(drawn, draw.choice(["i8", "i4", "i2"])).reshape(spread)
            items.append(array if draw.random() < 0.7 or not spread else array.tolist())
        elif kind == 5:
            dimensions = draw.randrange(1, min(2, len(shape) - dimension) + 1)
            items.append(mask_of(shape[dimension : dimension + dimensions], draw.randrange(99)))
            dimension += dimensions - 1
        elif kind == 6:
            items.append(None)
            dimension -= 1
        else:
            items.append(slice(None))
        dimension += 1
    if draw.random() < 0.3:
        items.insert(draw.randrange(len(items) + 1), ...)
    if len(items) == 1 and draw.random() < 0.7:
        return items[0]
    return tuple(items)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_keys_take_what_numpy_takes(
    tmp_path: Path, library: str, placement: str, shape: tuple[int, ...]
) -> None:
    seed = 20 + len(shape)
    print("seed", seed)
    draw = random.Random(seed)
    content = numbers(shape, draw.choice(["float32", "int16", "uint8", "float64"]))
    with placed(tmp_path, content, placement) as array:
        for _ in range(8000 if DEEP else 60):
            check_reads(array, content, random_key(shape, draw))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_keys_store_what_numpy_stores(
    tmp_path: Path, library: str, placement: str, shape: tuple[int, ...]
) -> None:
    seed = 70 + len(shape)
    print("seed", seed)
    draw, values = random.Random(seed), np.random.default_rng(seed)
    content = numbers(shape, draw.choice(["float32", "int16", "uint8", "float64"]))
    with placed(tmp_path, content, placement, writable=True) as array:
        for _ in range(3000 if DEEP else 40):
            key = random_key(shape, draw)
            try:
                there = content[key].shape
            except IndexError:
                with pytest.raises(IndexError):
                    array[key] = 1
                continue
            cut = draw.randrange(len(there) + 1)
            whole = there if not named_twice(content, key) else ()  # which value is kept is not said
            shape_of_values = tuple(1 if draw.random() < 0.2 else n for n in whole[min(cut, len(whole)) :])
            stored = values.integers(0, 100, shape_of_values).astype(content.dtype)
            given: Any = draw.choice([stored, stored.tolist()]) if stored.size else stored
            array[key] = given
            content[key] = stored
            np.testing.assert_array_equal(host(array[:]), content, err_msg=named(key))
        array.flush()
        if array.path is not None:
            np.testing.assert_array_equal(np.load(array.path), content)


def named_twice(content: np.ndarray[Any, Any], key: Any) -> bool:
    places = np.arange(content.size).reshape(content.shape)[key]
    return bool(np.unique(places).size != places.size)


def test_bad_stores_change_nothing(tmp_path: Path, library: str, placement: str) -> None:
    content = numbers((13, 7))
    with placed(tmp_path, content, placement, writable=True) as array:
        cases: list[tuple[Any, Any, type[Exception]]] = [
            (slice(2, 5), np.zeros((2, 7), np.float32), ValueError),
            (slice(2, 5), np.zeros((2, 3, 7), np.float32), ValueError),
            ((slice(None), 3), np.zeros(7, np.float32), ValueError),
            (slice(2, 5), np.zeros(7, np.complex64), TypeError),
            (slice(2, 5), "text", TypeError),
            (slice(2, 5), [[1, 2], [3]], ValueError),
            (slice(2, 5), 1e300, ValueError),
            (13, 1, IndexError),
            (([1, 2], [0, 7]), 1, IndexError),
            (slice(1, 5, 0), 1, ValueError),
        ]
        for key, values, problem in cases:
            with pytest.raises(problem) as caught:
                array[key] = values
            assert "\n" not in str(caught.value)
            np.testing.assert_array_equal(host(array[...]), content)
    with placed(tmp_path, content, "host") as array, pytest.raises(ValueError, match="opened read-only"):
        array[2:2] = 1


def test_values_may_be_the_array_itself(tmp_path: Path, library: str) -> None:
    content = numbers((200, 7))
    with placed(tmp_path, content, "host", writable=True) as array:
        array[1:] = array.numpy()[:-1]
        content[1:] = content[:-1].copy()
        array[::-1] = array
        content[::-1] = content.copy()
        array[:, 2:] = array.numpy()[:, :-2]
        content[:, 2:] = content[:, :-2].copy()
        np.testing.assert_array_equal(host(array[:]), content)


def test_rows_are_iterated_over_in_turn(tmp_path: Path, library: str, placement: str) -> None:
    for shape in ((60,), (13, 7), (5, 3, 4, 6)):
        content = numbers(shape)
        with placed(tmp_path, content, placement) as array:
            rows = list(array)
            assert len(rows) == len(content)
            for found, wanted in zip(rows, content, strict=True):
                np.testing.assert_array_equal(host(found), wanted)


@pytest.mark.parametrize("line", [512, 4096])
@pytest.mark.parametrize("width", [3, 32, 1000])
def test_long_slices_come_whole_through_small_caches(
    tmp_path: Path, library: str, placement: str, width: int, line: int
) -> None:
    content = numbers((5_000_000 // width, width), "uint16")
    with placed(tmp_path, content, placement, line=line) as array:
        rows = len(content)
        for key in (slice(None), slice(rows // 3, rows - 5), slice(None, None, -1), slice(7, None, 3)):
            np.testing.assert_array_equal(host(array[key]), content[key])
        np.testing.assert_array_equal(host(array[:, 1]), content[:, 1])
        np.testing.assert_array_equal(host(array[5:-5, 1:3]), content[5:-5, 1:3])


@pytest.mark.parametrize("where", ["host", "storage", "memory"])
def test_long_slices_are_stored_whole(tmp_path: Path, library: str, where: str) -> None:
    content = numbers((300_000, 9), "uint16")
    with placed(tmp_path, content, where, writable=True) as array:
        for key in (slice(10, 290_000), slice(5, None, 2), slice(299_000, 100, -3)):
            values = np.random.default_rng(1).integers(0, 60_000, content[key].shape).astype(np.uint16)
            array[key] = content[key] = values
        array[:, 4] = content[:, 4] = 7
        array[1::2, 5:7] = content[1::2, 5:7] = 8
        np.testing.assert_array_equal(host(array[:]), content)


def test_values_that_repeat_are_not_all_made(
    tmp_path: Path, library: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.arrays import row_stores

    monkeypatch.setattr(row_stores, "_STORED_BYTES", 1000)
    content = numbers((500, 6))
    with placed(tmp_path, content, placement, writable=True) as array:
        for key, values in (
            (slice(None), 3.0), (slice(3, 490, 7), np.arange(6, dtype=np.float32)),
            (slice(None, None, -2), np.ones((1, 6), np.float32)), (slice(450, None, -1), 5),
        ):  # fmt: skip
            array[key] = values
            content[key] = values
            np.testing.assert_array_equal(host(array[:]), content)

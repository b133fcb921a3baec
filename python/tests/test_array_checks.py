"""What arrays refuse: results that cannot be written to, row numbers and values that are none."""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import table
from penstock.arrays import foreign


def opened(folder: Path, content: np.ndarray[Any, Any], **options: Any) -> penstock.Array:
    np.save(folder / "array.npy", content)
    return penstock.open(folder / "array.npy", placement="host", device="cpu", **options)


@pytest.fixture
def array(tmp_path: Path, library: str) -> Iterator[penstock.Array]:
    """Of the library's results."""
    with opened(tmp_path, table()) as made:
        yield made


def of_library(library: str, given: np.ndarray[Any, Any]) -> Any:
    if library == "numpy":
        return given
    import torch

    return torch.from_numpy(given)


def test_a_read_only_result_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "has_torch", lambda: False)
    out = np.zeros((2, 7), np.float32)
    out.flags.writeable = False
    with opened(tmp_path, table()) as array:
        for call in (array.gather, array.gather_async):
            with pytest.raises(ValueError, match="out is read-only: give one that may be written to"):
                call([3, 5], out=out)
        np.save(tmp_path / "out.npy", out)
        with opened(tmp_path, out) as other, pytest.raises(ValueError, match="out is read-only"):
            array.gather([3, 5], out=other.numpy())
    assert not out.any()


def test_a_result_is_a_contiguous_array_in_this_byte_order(tmp_path: Path, array: Any, library: str) -> None:
    for out, words in [
        (of_library(library, np.zeros((2, 14), np.float32))[:, ::2], "out is not contiguous"),
        ([[0.0] * 7] * 2, f"out of type list: give a {type(array[[0]]).__module__}.*, as gather gives it"),
        (np.zeros((2, 7), ">f4"), "out of >f4"),
        (of_library(library, np.zeros((7, 2), np.float32)), r"out of float32 \(7, 2\): the rows are"),
    ]:
        with pytest.raises(ValueError, match=words):
            array.gather([3, 5], out=out)


def test_a_result_shares_no_memory_with_what_is_read(library: str) -> None:
    content = of_library(library, table(100, 1, "int64"))
    with penstock.from_tensor(content, device="cpu") as array:
        with pytest.raises(ValueError, match="out overlaps the array: give memory of its own"):
            array.gather([3, 5], out=content[1:3])
        rows = of_library(library, np.array([[3], [5]]))
        with pytest.raises(ValueError, match="out overlaps the row numbers"):
            array.gather(rows.reshape(2), out=rows)
        beside = of_library(library, np.zeros((4, 1), np.int64))
        array.gather(beside[2:].reshape(2), out=beside[:2])
    cached = penstock.from_tensor(content, "host-cached", device="cpu")
    with cached, pytest.raises(ValueError, match="out overlaps the array"):
        cached.gather([3, 5], out=content[1:3])


def test_unsigned_row_numbers_do_not_become_negative(array: Any, library: str) -> None:
    good = np.array([0, 99], np.uint64)
    np.testing.assert_array_equal(np.asarray(array[of_library(library, good)]), table()[[0, 99]])
    for number in (2**63, 2**64 - 1, 2**63 - 1):
        bad = np.array([[0, 1], [2, number]], np.uint64)
        for rows in (bad, of_library(library, bad)):
            with pytest.raises(IndexError, match=r"index \d+ or more at position \(1, 1\) is out of range"):
                array[rows]
        with pytest.raises(IndexError, match=r"index \d+ or more at position 0 is out of range: dimension 1"):
            array[:, np.array([number], np.uint64)]
    with pytest.raises(IndexError, match=r"index 100 at position 0 is out"):
        array[np.array([100], np.uint64)]


def test_types_are_equal_by_whatever_names_them(array: Any, library: str) -> None:
    for same in (np.float32, np.dtype(np.float32), "float32", array.dtype):
        assert array.dtype == same
        assert same == array.dtype
    others: list[Any] = [np.float64, "float64", "no type", None, 32, [], float]
    for other in others:
        assert array.dtype != other
    assert {array.dtype: 1}["float32"] == 1
    if library == "torch":
        import torch

        assert array.dtype == torch.float32
        assert array.dtype not in (torch.float16, torch.float64)


@pytest.mark.parametrize("rows", [1, 1000, 1001])
def test_rows_come_in_turn_a_batch_at_a_time(
    tmp_path: Path, library: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (np.arange(rows * 300) % 251).reshape(rows, 300).astype(np.float32)
    with opened(tmp_path, content) as array:
        batches = []
        take = type(array).__getitem__

        def noted(self: penstock.Array, key: Any) -> Any:
            batches.append(key)
            return take(self, key)

        monkeypatch.setattr(type(array), "__getitem__", noted)
        taken = iter(array)
        np.testing.assert_array_equal(np.asarray(next(taken)), content[0])
        assert len(batches) == 1, "no more than is asked for"
        rest = [np.asarray(row) for row in taken]
        assert len(rest) == rows - 1
        np.testing.assert_array_equal(np.array(rest).reshape(-1, 300), content[1:])
        assert len(batches) == -(-rows // (2**20 // 1200))


def test_numbers_come_in_turn(tmp_path: Path, library: str) -> None:
    with opened(tmp_path, np.arange(5)) as array:
        assert [int(number) for number in array] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="it is closed"):
        next(iter(array))


def test_a_device_of_torch_is_a_device(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    np.save(tmp_path / "array.npy", table())
    for device in (torch.device("cpu"), torch.device("cpu", 0), "cpu"):
        assert penstock.plan(tmp_path / "array.npy", device=device).placement == "host"
        with penstock.open(tmp_path / "array.npy", placement="host", device=device) as array:
            assert array.opened.device == "cpu"
        penstock.from_tensor(torch.zeros(3, 2), device=device).close()
    for wrong in (0, None, torch.zeros(1)):
        with pytest.raises(TypeError, match=r"give auto, cpu, cuda or cuda:1, or a torch\.device"):
            penstock.open(tmp_path / "array.npy", device=wrong)


@pytest.mark.parametrize(
    ("shape", "problem", "words"),
    [
        ((-1, 3), ValueError, r"create .*new.npy: shape \(-1, 3\): give numbers from 0"),
        ((2.5, 3), TypeError, r"create .*new.npy: shape \(2.5, 3\): give whole numbers"),
        ("ab", TypeError, "give whole numbers"),
        ((), ValueError, "create .*new.npy: it has no dimensions"),
        ((3, 0), ValueError, r"create .*new.npy: rows of shape \(0,\) have no elements"),
        ((2**40, 2**40), ValueError, "more bytes than a file can have"),
    ],
)
def test_new_files_of_no_shape_are_refused(tmp_path: Path, shape: Any, problem: Any, words: str) -> None:
    with pytest.raises(problem, match=words):
        penstock.empty(tmp_path / "new.npy", shape, "float32", device="cpu")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_takes_no_others_place_and_is_gone_if_it_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "new.npy"
    with pytest.raises(ValueError, match="placement 'tape'"):
        penstock.empty(path, 5, "float32", device="cpu", placement="tape")
    with pytest.raises(OSError):  # longer than any file system has files
        penstock.empty(path, (2**60,), "float32", device="cpu")
    assert not path.exists()
    with penstock.empty(path, 5, "float32", device="cpu") as array:
        assert array.shape == (5,)
        array[4] = 3
    with pytest.raises(FileExistsError, match="it exists: open it as writable, or name a new file") as caught:
        penstock.empty(path, 5, "float32", device="cpu")
    assert caught.value.errno == errno.EEXIST
    assert np.load(path)[4] == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"line": 700}, {"line": 256}, {"cache": 100}, {"cache": "1MiB", "line": 128 << 10}, {"cache": -1},
        {"placement": "tape"}, {"placement": "hbm"}, {"directory": "round"}, {"engine": "steam"},
        {"threads": -1}, {"threads": 1.5}, {"device": "abacus"}, {"dtype": "float64"}, {"name": "one"},
        {"shape": (3,)}, {"offset": 8},
    ],
)  # fmt: skip
def test_a_plan_refuses_what_open_refuses(tmp_path: Path, bad: dict[str, Any]) -> None:
    np.save(tmp_path / "array.npy", table())
    options: dict[str, Any] = {"placement": "storage", "device": "cpu"} | bad
    with pytest.raises((ValueError, TypeError)) as opening:
        penstock.open(tmp_path / "array.npy", **options)
    with pytest.raises(type(opening.value)) as planning:
        penstock.plan(tmp_path / "array.npy", **options)
    assert str(planning.value) == str(opening.value)


@pytest.mark.parametrize(("writable", "words"), [(False, "may not read it"), (True, "may not write it")])
def test_permissions_are_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: bool, words: str
) -> None:
    np.save(tmp_path / "array.npy", table())
    refused = os.W_OK if writable else os.R_OK
    monkeypatch.setattr(os, "access", lambda path, access, **how: access != refused)  # root may do all
    for call in (penstock.open, penstock.plan):
        with pytest.raises(
            PermissionError, match=f"^open .*array.npy: this user {words}: give them"
        ) as caught:
            call(tmp_path / "array.npy", device="cpu", writable=writable)
        assert caught.value.errno == errno.EACCES


def test_modules_are_there_when_they_are_asked_for() -> None:
    program = (
        "import sys, penstock\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "assert {'graph', 'open'} <= set(dir(penstock))\n"
        "assert penstock.graph.open_folder\n"
        "assert 'torch' not in sys.modules\n"
        "assert not hasattr(penstock, 'none')\n"
        "import pydoc\n"
        "assert 'gather_all' in pydoc.plain(pydoc.render_doc(penstock))\n"
        "own = open\n"
        "from penstock import *\n"
        "assert open is own\n"
    )
    if importlib.util.find_spec("torch") is not None:
        program += "assert {'nn', 'optim'} <= set(dir(penstock))\n"
        program += "assert penstock.nn.Embedding and penstock.optim.SGD\n"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_arguments_of_other_types_are_one_sentence(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with opened(tmp_path, table()) as array:
        gather_all: Any = penstock.gather_all
        gather: Any = array.gather
        wrong: list[tuple[Any, type[Exception], str]] = [
            (lambda: gather_all([(3, [1])]), TypeError, "gather_all: 3: give pairs of an array"),
            (lambda: gather_all([(array,)]), TypeError, "gather_all: give pairs"),
            (lambda: gather_all(None), TypeError, "gather_all: give pairs"),
            (lambda: gather([1], negative_indices="x"), TypeError, "negative_indices x: give True or False"),
            (lambda: gather([1], sms="a"), TypeError, "sms a: give how many"),
            (lambda: gather([1], sms=-1), ValueError, "sms -1: give how many"),
            (
                lambda: gather([1], out=torch.zeros(1, 7, requires_grad=True)),
                ValueError,
                r"out requires gradients, which a gather gives none: give out\.detach\(\)",
            ),
            (lambda: penstock.from_tensor(np.ma.masked_array([1, 2])), TypeError, "it is a MaskedArray"),
        ]
        for call, kind, sentence in wrong:
            with pytest.raises(kind, match=sentence):
                call()
    with pytest.raises(ValueError, match="threads 1025: it must be 1024 or less"):
        penstock.open(tmp_path / "array.npy", placement="storage", device="cpu", threads=1025)

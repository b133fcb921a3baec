"""One writer at a time has the bytes of an array, in whatever process; what is only read is not locked."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from places import small_cache

CONTENT = (np.arange(7000) % 251).reshape(1000, 7).astype(np.float32)
WRITERS = ["host", "host-cached", "storage"]
ONE_WRITER = (
    "this process has it open to be written already: close that array first, and drop views of its memory"
)
OTHER_PROCESS = "another process has it open to be written: end that one, or open it read-only"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "array.npy", CONTENT)
    return tmp_path / "array.npy"


def opened(path: Path, placement: str = "host", **options: Any) -> penstock.Array:
    return penstock.open(path, placement=placement, device="cpu", **small_cache(placement), **options)


def host(taken: Any) -> np.ndarray[Any, Any]:
    return np.asarray(taken)


@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
def test_a_second_writer_is_refused_until_the_first_has_closed(file: Path, first: str, second: str) -> None:
    with opened(file, first, writable=True) as array:
        with pytest.raises(penstock.Error, match=ONE_WRITER):
            opened(file, second, writable=True)
        array[3] = 5
        with opened(file, second) as reader:
            assert len(reader) == 1000
    with opened(file, second, writable=True) as again:
        assert float(again[3][0]) == 5


@pytest.mark.parametrize("placement", WRITERS)
def test_an_error_that_is_kept_keeps_no_lock(file: Path, placement: str) -> None:
    """Its traceback has the frames of the call, and these the open file."""
    array = opened(file, placement, writable=True)
    with pytest.raises(IndexError) as kept:
        array[5000] = 1
    array[3] = 5
    array.close()
    with opened(file, placement, writable=True) as again:
        assert float(again[3][0]) == 5
    assert kept.traceback


def test_a_view_keeps_the_lock_until_it_has_gone(file: Path) -> None:
    array = opened(file, writable=True)
    view = array.numpy()
    array.close()
    with pytest.raises(penstock.Error, match=f"open {file}: Resource temporarily unavailable: {ONE_WRITER}"):
        opened(file, "storage", writable=True)
    view[3] = 5
    del view
    with opened(file, "storage", writable=True) as again:
        assert float(again[3][0]) == 5


def test_another_process_is_refused(file: Path) -> None:
    program = (
        "import penstock, sys; penstock.open(sys.argv[1], placement='host', device='cpu', writable=True)"
    )
    command = [sys.executable, "-c", program, str(file)]
    with opened(file, writable=True):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1
        assert OTHER_PROCESS in done.stderr
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def two_tensors(path: Path) -> np.ndarray[Any, Any]:
    """They meet inside of a block, and of 8 bytes."""
    one = (np.arange(999) % 251).astype(np.uint8)
    entries = {
        "one": {"dtype": "U8", "shape": [111, 9], "data_offsets": [0, 999]},
        "two": {"dtype": "U8", "shape": [111, 9], "data_offsets": [999, 1998]},
    }
    text = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + one.tobytes() * 2)
    return one.reshape(111, 9)


@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
def test_two_tensors_of_a_file_are_written_side_by_side(tmp_path: Path, first: str, second: str) -> None:
    path = tmp_path / "model.safetensors"
    content = two_tensors(path)
    with (
        opened(path, first, name="one", writable=True) as one,
        opened(path, second, name="two", writable=True) as two,
    ):
        for row in (0, 110):  # those that share a block with the other tensor
            one[row] = 1
            two[row] = 2
            one.flush()
            two.flush()
        two[110] = 3
        two.flush()
        one[110] = 4
        one.flush()
        with pytest.raises(penstock.Error, match=ONE_WRITER):
            opened(path, first, name="two", writable=True)
    for name, first_row, last_row in [("one", 1, 4), ("two", 2, 3)]:
        wanted = content.copy()
        wanted[0], wanted[110] = first_row, last_row
        with opened(path, name=name) as array:
            np.testing.assert_array_equal(host(array[:]), wanted)


def test_direct_writers_have_whole_pages(tmp_path: Path) -> None:
    path = tmp_path / "raw.bin"
    path.write_bytes(bytes(4 * 4096))
    layout: dict[str, Any] = {"dtype": "uint8", "writable": True}
    try:
        first = opened(path, "storage", shape=(4200, 1), offset=4096, direct=True, **layout)
    except penstock.Error as problem:
        pytest.skip(f"no direct I/O here: {problem}")
    with first:
        first[4199] = 7
        for offset in (4000, 4096 + 4200, 3 * 4096 - 1):
            with pytest.raises(penstock.Error, match=ONE_WRITER):
                opened(path, shape=(97, 1), offset=offset, **layout)
        with opened(path, shape=(4096, 1), offset=3 * 4096, **layout) as beside:
            beside[0] = 8
    there = path.read_bytes()
    assert (there[4096 + 4199], there[3 * 4096]) == (7, 8)
    assert sum(there) == 15


FORKED = """
import os, penstock, sys
from penstock.arrays import foreign
foreign.has_torch = lambda: False  # it takes seconds to import
def opened():
    return penstock.open(sys.argv[1], placement="host", device="cpu", writable=True)
array = opened()
array[0] = 1
(told, tell), (held, hold) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.close(told), os.close(hold)
    {body}
    os.write(tell, b"done")
    {end}
    os._exit(0)
os.close(tell), os.close(held)
assert os.read(told, 100) == b"done"
try:
    opened()
except penstock.Error as problem:
    assert "this process has it open to be written already" in str(problem)
else:
    raise AssertionError("the child has given the lock back")
array[2] = 3
array.close()
opened().close()
os.close(hold)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize(
    "body",
    [
        "array.close(); del array",
        "assert float(array[0][0]) == 1",
        "import gc; array._native = None; gc.collect()",
    ],
)
@pytest.mark.parametrize("end", ["pass  # it ends at once", "os.read(held, 1)  # it outlives the array"])
def test_a_forked_process_neither_gives_the_lock_back_nor_has_it(file: Path, body: str, end: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED.format(body=body, end=end), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (np.load(file)[[0, 2], 0] == [1, 3]).all()


def in_a_fork(work: Any) -> str:
    """What a forked process tells: `work()`, or the error."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(work())
        except Exception as problem:
            said = f"{type(problem).__name__}: {problem}"
        os.write(tell, said.encode())
        os._exit(0)
    os.close(tell)
    try:
        assert select.select([told], [], [], 60)[0], "the forked process says nothing"
        return os.read(told, 10_000).decode()
    finally:
        os.close(told)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_reads_what_its_parent_writes(file: Path) -> None:
    with opened(file, writable=True) as array:
        array[3] = 5

        def work() -> Any:
            return float(array[3][0]), array.writable

        assert in_a_fork(work) == "(5.0, False)"

        def store() -> None:
            array[3] = 6

        assert "forked from the one that writes to it: store there" in in_a_fork(store)
        assert array.writable
        array[4] = 7
    assert (np.load(file)[[3, 4], 0] == [5, 7]).all()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("placement", ["host-cached", "storage"])
def test_a_forked_process_does_not_read_past_its_parents_cache(file: Path, placement: str) -> None:
    with opened(file, placement, writable=True) as array:
        array[3] = 5
        said = in_a_fork(lambda: array[3])
        assert said.startswith("ValueError: ")
        assert "flush there, and open it read-only here" in said
        array.flush()
    assert np.load(file)[3, 0] == 5


def test_the_lock_lasts_as_long_as_what_can_be_stored_into(file: Path) -> None:
    array = opened(file, writable=True)
    view = array.numpy()
    array.close()
    with pytest.raises(penstock.Error, match=ONE_WRITER):
        opened(file, writable=True)
    view[1] = 9
    del view, array
    with opened(file, writable=True) as again:
        assert float(again[1][0]) == 9

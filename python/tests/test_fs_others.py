"""penstock.fs.mount: what others do to files that are open here, and what is in the way of a call."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import penstock
import pytest
from penstock import fs

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)


@pytest.fixture
def limited() -> Iterator[None]:
    """No file may grow beyond 1 MiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


@pytest.mark.parametrize("flushes", [False, True])
def test_what_others_append_to_a_file_that_is_open_to_be_written_stays(
    tmp_path: Path, folder: fs.Folder, flushes: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    with folder.open("file", "r+") as file:
        assert file.read() == b"x" * 1000
        append(path, b"y" * 3000)
        if flushes:
            folder.flush()
        assert file.size == 1000
    assert path.read_bytes() == b"x" * 1000 + b"y" * 3000
    with folder.open("file", "r+") as file:
        assert file.write(b"z") == 1  # another line than the last
        append(path, b"w")
    assert path.read_bytes() == b"z" + b"x" * 999 + b"y" * 3000 + b"w"
    with folder.open("file") as file:
        assert file.read() == path.read_bytes()


def test_what_others_append_behind_a_flush_stays(tmp_path: Path, folder: fs.Folder) -> None:
    path = tmp_path / "file"
    with folder.open("file", "w") as file:
        file.write(b"x" * 700)
        folder.flush()
        append(path, b"y" * 100)  # before the end of a line
    assert path.read_bytes() == b"x" * 700 + b"y" * 100
    with folder.open("file") as file:
        assert file.read() == path.read_bytes()


def test_what_others_cut_from_a_file_that_was_not_stored_into_stays_cut(
    tmp_path: Path, folder: fs.Folder
) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5000)
    with folder.open("file", "r+"):
        os.truncate(tmp_path / "file", 10)
    assert (tmp_path / "file").read_bytes() == b"x" * 10


def test_what_others_store_is_seen_by_the_next_open_also_behind_one_to_write(
    tmp_path: Path, folder: fs.Folder
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5000)
    with folder.open("file", "r+") as file:
        assert file.read() == b"x" * 5000
        path.write_bytes(b"y" * 5000)
    with folder.open("file") as file:
        assert file.read() == b"y" * 5000


def test_a_folder_whose_flush_fails_stays_mounted(
    tmp_path: Path, executor: Literal["cpu", "cuda"], limited: None
) -> None:
    folder = fs.mount(tmp_path, writable=True, executor=executor, cache="4MiB")
    text = bytes(range(256)) * 8192
    file = folder.open("file", "w")
    file.write(text)
    with pytest.raises(penstock.Error, match="write"):
        folder.close()
    assert not folder.closed
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    folder.close()
    assert (tmp_path / "file").read_bytes() == text


@pytest.mark.parametrize("writes", [False, True])
def test_memory_that_maps_a_cut_file_is_an_error(tmp_path: Path, folder: fs.Folder, writes: bool) -> None:
    (tmp_path / "other").write_bytes(b"x" * 100_000)
    memory: Any = np.memmap(tmp_path / "other", np.uint8, "r+")
    with folder.open("file", "w+") as file:
        file.write(b"y" * 100_000)
        os.truncate(tmp_path / "other", 10)
        with pytest.raises(penstock.Error, match="argument maps a file that was cut short"):
            file.write(memory) if writes else file.readinto(memory)
        assert file.read() == b"y" * 100_000


def test_a_file_that_outgrows_its_room_names_it(tmp_path: Path, executor: Literal["cpu", "cuda"]) -> None:
    with fs.mount(tmp_path, writable=True, executor=executor, cache=8 * 512, line=512) as folder:
        with folder.open("file", "w") as file:
            for call in (lambda: file.write(b"x", 1 << 40), lambda: file.truncate(1 << 40)):
                with pytest.raises(OSError, match=r"it has room for [\d,]+ bytes since it was opened"):
                    call()
        assert folder.stat("file").size == 0


@pytest.mark.parametrize("number", [-1, 1 << 63, 1 << 70, 1.5, "1", None, True])
def test_what_is_no_offset_is_refused_in_a_sentence(folder: fs.Folder, number: Any) -> None:
    with folder.open("file", "w+") as file:
        for call in (
            lambda: file.read(1, number),
            lambda: file.readinto(bytearray(1), number),
            lambda: file.write(b"x", number),
            lambda: file.truncate(number),
        ):
            with pytest.raises((ValueError, TypeError), match=r"(offset|size) .*: (give a whole|it must be)"):
                call()
        assert file.size == 0


FORKED = """
import os, sys
from penstock import fs, lsh
from pathlib import Path
folder = fs.mount(sys.argv[1], writable=True, executor="cpu")
file = folder.open("file", "w+")
file.write(b"x" * 10000)
lsh.build(sys.argv[1] + "/points", [[1.0, 2.0], [3.0, 4.0]], executor="cpu")
index = lsh.Index(sys.argv[1] + "/points", executor="cpu")
child = os.fork()
if child == 0:
    for call in (lambda: file.write(b"y"), lambda: folder.open("file"), lambda: index.query([1.0, 2.0])):
        try:
            call()
            os._exit(2)
        except ValueError as problem:
            print(str(problem).partition(": ")[2], flush=True)
    file.close()
    folder.close()
    del folder, file, index
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
file.close()
assert index.query([1.0, 2.0]).ids.tolist() == [[0]]
folder.close()
assert Path(sys.argv[1], "file").read_bytes() == b"x" * 10000
"""


def test_a_forked_process_has_neither_the_folder_nor_the_index(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    forked = "this process was forked from the one that"
    assert done.stdout.splitlines() == [
        f"{forked} mounted it: mount it again",
        f"{forked} mounted it: mount it again",
        f"{forked} opened it: open it again",
    ]

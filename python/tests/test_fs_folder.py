"""penstock.fs.mount: files by the executor's threads, beside Python's own."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import shutil
import subprocess
import threading
from array import array
from pathlib import Path

import pytest
from penstock import fs

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

INCLUDE = Path(__file__).parents[2] / "include"


def test_what_is_written_once_leaves_what_others_write(tmp_path: Path, folder: fs.Folder) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"...x" * 1000)
    with folder.open("file", "o") as ours, path.open("r+b") as theirs:
        for at in range(0, 4000, 4):
            ours.write(b"ab", at)
            theirs.seek(at + 2)
            theirs.write(b"c")
        with pytest.raises(OSError, match="Bad file descriptor"):
            ours.read(1)
        with pytest.raises(OSError, match="busy"):
            folder.open("file")
    assert path.read_bytes() == b"abcx" * 1000
    with folder.open("file") as again:
        assert again.read() == b"abcx" * 1000


def test_a_file_is_what_python_makes_of_it(tmp_path: Path, folder: fs.Folder) -> None:
    draw = random.Random(4)
    with (tmp_path / "theirs").open("w+b") as theirs, folder.open("ours", "w+") as ours:
        for _ in range(300):
            offset, count = draw.randrange(9000), draw.randrange(1200)
            match draw.randrange(4):
                case 0:
                    data = draw.randbytes(count)
                    assert ours.write(data, offset) == count
                    theirs.seek(offset)
                    theirs.write(data)
                case 1:
                    theirs.seek(offset)
                    assert ours.read(count, offset) == theirs.read(count)
                case 2 if draw.randrange(4) == 0:
                    ours.truncate(offset)
                    theirs.truncate(offset)
                case _:
                    assert ours.size == theirs.seek(0, os.SEEK_END)
        ours.sync()
        theirs.flush()
        assert (tmp_path / "ours").read_bytes()[: ours.size] == (tmp_path / "theirs").read_bytes()
        assert ours.read() == (tmp_path / "theirs").read_bytes()
    folder.close()
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_modes_mean_what_python_means(tmp_path: Path, folder: fs.Folder) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    with folder.open("file", "a") as file:
        assert file.write(b"678", offset=0) == 3
    assert (tmp_path / "file").read_bytes() == b"12345678"
    with folder.open("file", "r+b") as file:
        assert file.write(array("B", range(3)), 6) == 3
        assert file.read(count=4, offset=5) == b"6\0\1\2"
    with pytest.raises(FileExistsError):
        folder.open("file", "x")
    with pytest.raises(FileNotFoundError):
        folder.open("nothing")
    with folder.open("file", "w") as file:
        assert file.size == 0
        with pytest.raises(OSError, match="file") as refused:
            file.read(1, 0) or file.readinto(bytearray(1))
        assert refused.value.errno == errno.EBADF
    with pytest.raises(ValueError, match="mode 'q'"):
        folder.open("file", "q")


def test_names(tmp_path: Path, folder: fs.Folder) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "one").write_bytes(b"1" * 5000)
    (tmp_path / "deep" / "er" / "two").write_bytes(b"2")
    (tmp_path / "link").symlink_to("/etc")
    assert sorted(folder.listdir()) == ["deep", "link"]
    assert sorted(folder.listdir("deep")) == ["er", "one"]
    assert folder.stat("deep/one").size == 5000
    assert folder.stat("deep/one").changed_ns == (tmp_path / "deep/one").stat().st_mtime_ns
    with pytest.raises(OSError, match="leads out of the folder"):
        folder.open("link/passwd")
    with pytest.raises(NotADirectoryError):
        folder.listdir("deep/one")
    assert folder.stage() == 5001
    before = folder.inspect()["misses"]
    with folder.open("deep/one") as file:
        assert file.read() == b"1" * 5000
    assert folder.inspect()["misses"] == before, "it was staged"
    folder.rename("deep/one", "moved")
    folder.unlink("deep/er/two")
    assert sorted(folder.listdir("deep/er")) == []
    with pytest.raises(FileNotFoundError):
        folder.stage(["moved", "deep/one"])
    with pytest.raises(OSError, match="File name too long"):
        folder.stat("n" * 5000)


def test_a_folder_mounted_to_read_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    with fs.mount(tmp_path, executor="cpu", max_files=1) as folder:
        for change in (lambda: folder.open("file", "r+"), lambda: folder.unlink("file")):
            with pytest.raises(OSError, match="file") as refused:
                change()
            assert refused.value.errno == errno.EROFS
        (tmp_path / "other").write_bytes(b"2")
        with folder.open("file"), pytest.raises(OSError, match="as many files are open as") as refused:
            folder.open("other")
        assert refused.value.errno == errno.ENFILE
        assert folder.inspect()["open_files"] == 0


def test_more_files_than_there_is_room_for_are_refused_when_mounted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="room for 74880 files that may be written, fewer than 100000"):
        fs.mount(tmp_path, executor="cpu", writable=True, cache="2MiB", line=512, max_files=100_000)
    with pytest.raises(ValueError, match="max_files 0: give 1 or more"):
        fs.mount(tmp_path, executor="cpu", max_files=0)


def test_a_cache_of_no_bytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cache 0: it must be 1 or more"):
        fs.mount(tmp_path, executor="cpu", cache=0)


def test_what_is_closed_says_so(tmp_path: Path, folder: fs.Folder) -> None:
    file = folder.open("file", "w")
    file.write(b"1")
    folder.close()
    folder.close()
    assert (tmp_path / "file").read_bytes() == b"1"
    for use in (lambda: file.size, lambda: folder.listdir(), lambda: folder.view_address):
        with pytest.raises(ValueError, match="closed"):
            use()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read()
    with pytest.raises(OSError, match="nothing"):
        fs.mount(tmp_path / "nothing")


def test_a_folder_that_is_no_path_is_refused(tmp_path: Path) -> None:
    for use in (fs.mount, lambda folder: fs.grep("x", folder)):
        with pytest.raises(ValueError, match=r": no path has a zero byte: take it out$"):
            use(f"{tmp_path}\0tail")
        with pytest.raises(TypeError, match=r"None: it is no path: give text or a PathLike$"):
            use(None)  # type: ignore[arg-type]


def test_threads_take_turns(tmp_path: Path, folder: fs.Folder) -> None:
    def work(thread: int) -> None:
        with folder.open("shared", "r+") as file:
            for k in range(50):
                assert file.write(bytes([thread]) * 100, (4 * k + thread) * 100) == 100

    folder.open("shared", "w").close()
    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "shared").read_bytes() == bytes(
        t for _ in range(50) for t in range(4) for _ in range(100)
    )


EXTENSION = """
#include "penstock/file/folder_view.hpp"

extern "C" unsigned long long view_bytes() { return sizeof(penstock::folder_view); }

// Newlines of a file, by one thread of the caller's.
extern "C" long long count_lines(penstock::folder_view const* folder, char const* path, unsigned bytes) {
  const penstock::lone_thread g;
  const auto opened = folder->open(g, path, bytes, penstock::file_flag::read);
  if (!opened.ok()) return -static_cast<long long>(opened.error);
  long long lines = 0;
  for (penstock::u64 at = 0;;) {
    const auto here = folder->map(g, opened.file, at, ~0ull, penstock::file_flag::read);
    if (!here.ok()) return -static_cast<long long>(here.error);
    if (here.count == 0) break;
    for (penstock::u64 k = 0; k < here.count; ++k) lines += here.bytes[k] == '\\n';
    folder->unmap(g, opened.file, here);
    at += here.count;
  }
  folder->close(g, opened.file);
  return lines;
}
"""


def test_an_extension_takes_an_open_folder(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    source, library = tmp_path / "extension.cpp", tmp_path / "extension.so"
    source.write_text(EXTENSION)
    subprocess.run(
        [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{INCLUDE}", str(source), "-o", str(library)],
        check=True,
    )
    extension = ctypes.CDLL(str(library))
    extension.view_bytes.restype = ctypes.c_ulonglong
    extension.count_lines.restype = ctypes.c_longlong
    (tmp_path / "lines").write_bytes(b"text\n" * 3000)
    with fs.mount(tmp_path, executor="cpu", cache="1MiB") as folder:
        assert extension.view_bytes() == folder.view_bytes
        view = ctypes.c_void_p(folder.view_address)
        assert extension.count_lines(view, b"lines", 5) == 3000
        assert extension.count_lines(view, b"none", 4) == -errno.ENOENT
        assert folder.inspect()["open_files"] == 0


def test_a_flush_cuts_files_of_the_sizes_that_the_last_one_knew(tmp_path: Path, folder: fs.Folder) -> None:
    path = tmp_path / "file"
    with folder.open("file", "w+") as file:
        for text in (b"a", b"b"):
            with folder.open("file", "r+") as again:  # its close writes the line back, whole
                again.write(text * 1005)
            assert path.read_bytes() == text * 1005 + bytes(19)
            folder.flush()
            assert path.read_bytes() == text * 1005
        assert file.read() == b"b" * 1005

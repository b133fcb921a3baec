"""Arrays that are converted once, to a copy in the cache: when, where, and what goes wrong there."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from broken_inputs import check_sentence, numbers
from penstock.arrays import foreign
from penstock.arrays.converted import cache_dir


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(foreign, "has_torch", lambda: False)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "arrays"


class Noted:
    """A progress function that keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []

    def __call__(self, what: str, done: int, total: int) -> None:
        self.calls.append((what, done, total))


def packed(folder: Path, content: Any = None, name: str = "a.npz") -> Path:
    np.savez_compressed(folder / name, rows=numbers() if content is None else content)
    return folder / name


def read(path: Path, **options: Any) -> tuple[np.ndarray[Any, Any], list[tuple[str, int, int]]]:
    noted = Noted()
    with penstock.open(path, device="cpu", placement="host", progress=noted, **options) as array:
        return np.array(array[:]), noted.calls


def test_a_file_is_converted_once(tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = packed(tmp_path)
    with caplog.at_level(logging.INFO, logger="penstock"):
        rows, calls = read(path)
    np.testing.assert_array_equal(rows, numbers())
    assert calls == [("convert", 4800, 4800)]
    (copy,) = cache.iterdir()
    sentence = f"array rows is compressed: converted once, to {copy} (4.7 KiB)"
    assert [record.getMessage() for record in caplog.records] == [f"{path}: {sentence}"]
    np.testing.assert_array_equal(np.load(copy), numbers())
    before = copy.stat()
    rows, calls = read(path)
    np.testing.assert_array_equal(rows, numbers())
    assert calls == []
    with penstock.open(path, device="cpu", placement="host") as array:
        assert array.opened.notes == (sentence,)
    assert copy.stat().st_mtime_ns == before.st_mtime_ns


def test_a_plan_converts_nothing(tmp_path: Path, cache: Path) -> None:
    plan = penstock.plan(packed(tmp_path), device="cpu", placement="storage")
    assert (plan.shape, plan.storage_bytes) == ((300, 4), 4800)
    assert not cache.exists()


def test_a_file_that_changes_is_converted_again(tmp_path: Path, cache: Path) -> None:
    path = packed(tmp_path)
    read(path)
    about = path.stat()
    packed(tmp_path, numbers()[::-1])
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))  # as copying tools do
    rows, calls = read(path)
    np.testing.assert_array_equal(rows, numbers()[::-1])
    assert calls
    assert len(list(cache.iterdir())) == 2


def test_a_store_of_which_one_chunk_changes_is_converted_again(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    array = zarr.create_array(tmp_path / "a.zarr", data=numbers(), chunks=(100, 4))
    assert read(tmp_path / "a.zarr")[1]
    assert not read(tmp_path / "a.zarr")[1]
    array[250] = 0
    wanted = numbers()
    wanted[250] = 0
    np.testing.assert_array_equal(read(tmp_path / "a.zarr")[0], wanted)


def test_columns_and_files_of_one_name_have_copies_of_their_own(tmp_path: Path, cache: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        np.savez_compressed(tmp_path / folder / "a.npz", x=np.arange(5) + len(folder), y=np.arange(6))
    np.savez_compressed(tmp_path / "two" / "a.npz", x=np.arange(5) * 2, y=np.arange(6) * 3)
    np.testing.assert_array_equal(read(tmp_path / "one" / "a.npz", name="x")[0], np.arange(5) + 3)
    np.testing.assert_array_equal(read(tmp_path / "two" / "a.npz", name="x")[0], np.arange(5) * 2)
    np.testing.assert_array_equal(read(tmp_path / "two" / "a.npz", name="y")[0], np.arange(6) * 3)
    assert len(list(cache.iterdir())) == 3


def test_elements_under_another_name_keep_their_bytes(tmp_path: Path) -> None:
    path, content = packed(tmp_path), numbers()
    for kind in ("int32", "uint32", None):  # the copy is made by the first
        rows = read(path, dtype=kind)[0]
        np.testing.assert_array_equal(rows, content if kind is None else content.view(kind))


def test_a_copy_that_is_damaged_or_gone_is_made_again(tmp_path: Path, cache: Path) -> None:
    path = packed(tmp_path)
    read(path)
    (copy,) = cache.iterdir()
    for damage in (b"", b"\x93NUMPY", copy.read_bytes()[:5000]):
        copy.write_bytes(damage)
        rows, calls = read(path)
        np.testing.assert_array_equal(rows, numbers())
        assert calls
    shutil.rmtree(cache)
    np.testing.assert_array_equal(read(path)[0], numbers())


STOPS = [KeyboardInterrupt, OSError("full"), OSError(28, "full"), ValueError("enough")]


@pytest.mark.parametrize("stop", STOPS)
def test_what_stops_a_conversion_leaves_nothing(tmp_path: Path, cache: Path, stop: Any) -> None:
    def stopping(what: str, done: int, total: int) -> None:
        raise stop

    path = packed(tmp_path)
    with pytest.raises(type(stop) if isinstance(stop, BaseException) else stop) as caught:
        penstock.open(path, device="cpu", progress=stopping)
    assert caught.value is stop or caught.type is stop
    assert list(cache.iterdir()) == []
    np.testing.assert_array_equal(read(path)[0], numbers())


def test_a_file_that_changes_meanwhile_is_not_kept(tmp_path: Path, cache: Path) -> None:
    path = packed(tmp_path)

    def touching(what: str, done: int, total: int) -> None:
        os.utime(path)

    with pytest.raises(ValueError, match="it was changed while it was converted: open it again") as caught:
        penstock.open(path, device="cpu", progress=touching)
    check_sentence(caught.value, str(path))
    assert list(cache.iterdir()) == []


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may grow beyond 1 MiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGXFSZ, handler)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_copy_for_which_there_is_no_room(tmp_path: Path, cache: Path, small_files: None) -> None:
    path = packed(tmp_path, np.zeros(1 << 20))
    with pytest.raises(penstock.Error, match=r"cannot be written to .*: File too large: name") as caught:
        penstock.open(path, device="cpu")
    check_sentence(caught.value, str(path))
    assert list(cache.iterdir()) == []


def test_a_copy_of_more_bytes_than_the_disk_has(tmp_path: Path, cache: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    path = tmp_path / "vast.zarr"
    zarr.create_array(path, shape=(1 << 40, 16), chunks=(1 << 20, 16), dtype="f4")
    with pytest.raises(penstock.Error, match=r"it takes 64.0 TiB, and .* free: name a folder with room"):
        penstock.open(path, device="cpu")
    assert list(cache.iterdir()) == []


def test_a_cache_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
    path = packed(tmp_path)
    with pytest.raises(OSError, match="name a folder with room in PENSTOCK_CACHE") as caught:
        penstock.open(path, device="cpu")
    check_sentence(caught.value, str(path))


def test_the_cache_lies_where_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == Path(os.environ["PENSTOCK_CACHE"]) / "arrays"
    monkeypatch.delenv("PENSTOCK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    assert cache_dir() == Path("/var/xdg/penstock/arrays")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache/penstock/arrays"


PROGRAM = """
import sys, numpy, penstock
from penstock.arrays import foreign
foreign.has_torch = lambda: False
calls = []
sys.stdin.readline()
with penstock.open(sys.argv[1], device="cpu", progress=lambda *how: calls.append(how)) as array:
    assert (numpy.asarray(array) == numpy.arange(3_000_000)).all()
print(len(calls) > 0)
"""


def test_processes_that_need_one_copy_make_it_once(tmp_path: Path, cache: Path) -> None:
    path = packed(tmp_path, np.arange(3_000_000))
    command = [sys.executable, "-c", PROGRAM, str(path)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    converted = [process.communicate(timeout=120)[0].strip() for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(converted) == ["False", "False", "False", "True"]
    assert len(list(cache.iterdir())) == 1


def test_what_a_killed_conversion_leaves_is_overwritten(tmp_path: Path, cache: Path) -> None:
    path = packed(tmp_path, np.arange(3_000_000))
    program = (
        "import os, signal, sys, penstock\n"
        "stop = lambda *how: os.kill(os.getpid(), signal.SIGKILL)\n"
        "penstock.open(sys.argv[1], device='cpu', progress=stop)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [left.suffix for left in cache.iterdir()] == [".part"]
    np.testing.assert_array_equal(read(path)[0], np.arange(3_000_000))
    assert [left.suffix for left in cache.iterdir()] == [".npy"]


def test_what_a_copy_lacks_is_said_of_the_users_file(tmp_path: Path, cache: Path) -> None:
    path = packed(tmp_path)
    options: dict[str, Any] = {"device": "cpu", "placement": "storage", "line": 700}
    with pytest.raises(ValueError, match="line size 700") as caught:
        penstock.open(path, **options)
    check_sentence(caught.value, str(path))
    assert str(cache) not in str(caught.value)


def test_a_file_whose_data_end_early_is_no_copy(tmp_path: Path, cache: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path, table = tmp_path / "a.arrows", pa.table({"n": np.arange(900)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="no Arrow IPC file or stream that pyarrow would") as caught:
        penstock.open(path, device="cpu")
    check_sentence(caught.value, str(path))
    assert not cache.exists()


def test_arrow_files_of_polars(tmp_path: Path) -> None:
    """Their metadata are of the form before Arrow 0.15, which only the file's reader takes."""
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame({"a": np.arange(1000.0), "b": np.arange(1000)})
    for compression, in_place in (("uncompressed", True), ("zstd", False)):
        frame.write_ipc(tmp_path / "a.arrow", compression=compression)
        with penstock.open(tmp_path / "a.arrow", placement="host", device="cpu", name="b") as array:
            np.testing.assert_array_equal(np.asarray(array[:]), np.arange(1000))
            assert bool(array.opened.notes) != in_place


def test_chunks_of_blosc_that_were_cut_short_are_refused(tmp_path: Path) -> None:
    """What Blosc finds behind the end of a chunk would be taken for numbers."""
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    blosc = pytest.importorskip("numcodecs", reason="numcodecs is not installed").Blosc
    store = zarr.create_array(
        tmp_path / "a.zarr", shape=(900,), chunks=(300,), dtype="f8", zarr_format=2, compressors=blosc()
    )
    store[:] = np.arange(900.0)
    with penstock.open(tmp_path / "a.zarr", placement="host", device="cpu") as array:
        assert float(array[899]) == 899
    for left in (17, 9):
        os.truncate(tmp_path / "a.zarr" / "1", left)
        with pytest.raises(
            ValueError, match=rf"chunk .*a.zarr/1 is cut to {left} of \d+ bytes: write it anew"
        ):
            penstock.open(tmp_path / "a.zarr", placement="host", device="cpu")

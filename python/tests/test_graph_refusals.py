"""What resolve() refuses, with which exception, and what it leaves when it is stopped: nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from penstock.errors import Error
from penstock.graph import open_folder, resolve, write_folder

Matrix = Any  # a scipy.sparse array


@pytest.fixture(name="cache")
def fixture_cache(tmp_path: Path) -> Iterator[Path]:
    """A cache folder; nothing hidden may be left in it."""
    cache = tmp_path / "cache"
    yield cache
    assert not cache.exists() or not [p for p in cache.iterdir() if p.name.startswith(".")]


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "no edges": ("a.el", b"# nothing\n", "has no edges"),
    "not a number": ("a.el", b"0 1\nx 2\n", "line 2: 'x' is no vertex number"),
    "no weight": ("a.wel", b"0 1\n", "line 1: a third field"),
    "too short": ("a.sg", b"\0" * 16, "truncated"),
    "wrong size": ("a.wsg", b"\0" * 18, "which take 25 bytes, the file has 18"),
    "no magic": ("a.mtx", b"hello\n", "SciPy cannot read it (Line 1: Not a Matrix Market file): write"),
    "not square": ("a.mtx", b"%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1\n", "2 x 3"),
    "complex": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n",
        "complex values",
    ),
    "dense": ("a.mtx", b"%%MatrixMarket matrix array real general\n1 1\n1\n", "a dense matrix"),
    "skew": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 1\n",
        "a skew-symmetric matrix",
    ),
    "out of range": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 3\n",
        "cannot read it",
    ),
    "fewer than said": (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n",
        "cannot read",
    ),
    "no archive": (
        "a.npz",
        b"PK\3\4 damaged",
        "a.npz: not a SciPy .npz archive: save the matrix with scipy.sparse.save_npz",
    ),
    "garbage": ("a.npz", bytes(range(256)), "not a SciPy .npz archive"),
    "empty": ("a.npz", b"", "not a SciPy .npz archive"),
    "unknown": ("a.pdf", b"0 1\n", "no known kind of graph file"),
}


@pytest.mark.parametrize(("name", "content", "part"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_are_value_errors_of_one_sentence(
    tmp_path: Path, cache: Path, name: str, content: bytes, part: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as caught:
        resolve(tmp_path / name, cache_dir=cache)
    sentence = str(caught.value)
    assert part in sentence
    assert name in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "matrix", [sp.csr_array((2, 3)), sp.csr_array(np.eye(2) * 1j), sp.csr_array(np.full((1, 1), 2**40))]
)
def test_bad_archives_are_value_errors(tmp_path: Path, cache: Path, matrix: Matrix) -> None:
    sp.save_npz(tmp_path / "a.npz", matrix)
    with pytest.raises(ValueError, match=r"a\.npz: "):
        resolve(tmp_path / "a.npz", cache_dir=cache)


@pytest.mark.parametrize(
    "arrays",
    [
        {"format": np.array({}, dtype=object)},
        {"weights": np.zeros(3)},
        {"format": b"csr", "shape": np.array([1, 1]), "data": np.array([None])},
    ],
    ids=lambda arrays: "-".join(arrays),
)
def test_archives_of_other_things_are_told_apart(tmp_path: Path, cache: Path, arrays: dict[str, Any]) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=r"a\.npz: ") as caught:
        resolve(tmp_path / "a.npz", cache_dir=cache)
    assert "allow_pickle" not in str(caught.value)
    assert "not a SciPy .npz archive" in str(caught.value)


@pytest.mark.parametrize("name", ["a.el", "a.sg", "a.mtx", "a.npz", "g/graph.json", "g/offsets.npy"])
def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path, cache: Path, name: str) -> None:
    write_folder(tmp_path / "g", 1, np.array([0]), np.array([0]))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match="is not a regular file"):
        resolve(tmp_path / ("g" if name.startswith("g/") else name), cache_dir=cache)


def test_offsets_of_int64_are_taken_and_others_told_what_is_expected(tmp_path: Path) -> None:
    graph = write_folder(tmp_path / "g", 2, np.array([0]), np.array([1]))
    np.save(graph.path / "offsets.npy", np.array([0, 1, 1], dtype=np.int64))
    opened = open_folder(graph.path)
    assert opened.offsets().dtype == np.uint64
    assert opened.bfs_depths(0).tolist() == [0, 1]
    np.save(graph.path / "offsets.npy", np.array([0, -1, 1], dtype=np.int64))
    with pytest.raises(ValueError, match=r"offsets\.npy: has a negative value"):
        open_folder(graph.path)
    np.save(graph.path / "offsets.npy", np.array([0, 1, 1], dtype=np.int32))
    with pytest.raises(ValueError, match=r"save it as uint64, shape \(vertices \+ 1,\)"):
        open_folder(graph.path)


@pytest.mark.parametrize("spec", ["kron:0", "kron:99", "urand:5:0", "kron:x", "social:41", "social:4:x"])
def test_bad_generators_are_value_errors(cache: Path, spec: str) -> None:
    with pytest.raises(ValueError, match="SCALE"):
        resolve(spec, cache_dir=cache)


def test_bad_arguments_are_value_errors(tmp_path: Path) -> None:
    one = np.array([0])
    with pytest.raises(ValueError, match="threads -1: it must be 0 or more"):
        resolve("kron:4", cache_dir=tmp_path, threads=-1)
    with pytest.raises(TypeError, match="threads '2': it is no whole number"):
        resolve("kron:4", cache_dir=tmp_path, threads="2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names vertex 1, the graph has 1"):
        write_folder(tmp_path / "g", 1, one, np.array([1]))
    with pytest.raises(ValueError, match="differ in length"):
        write_folder(tmp_path / "g", 1, one, np.array([0, 0]))
    with pytest.raises(ValueError, match="float64"):
        write_folder(tmp_path / "g", 1, one, np.array([0.0]))
    graph = write_folder(tmp_path / "g", 1, one, one)
    with pytest.raises(ValueError, match="source 1 is no vertex"):
        graph.verify_bfs(1, one)
    with pytest.raises(ValueError, match="float64"):
        graph.verify_bfs(0, np.zeros(1))
    with pytest.raises(ValueError, match="2 parents for 1"):
        graph.verify_bfs(0, np.zeros(2, dtype=np.int32))


def test_what_is_missing_or_forbidden_is_an_error_with_its_errno(tmp_path: Path) -> None:
    with pytest.raises(Error, match="no such file or graph") as caught:
        resolve(tmp_path / "a.el", cache_dir=tmp_path)
    assert caught.value.errno == errno.ENOENT
    (tmp_path / "d.el").mkdir()
    for spec, name in ((tmp_path, tmp_path), (tmp_path / "d.el", tmp_path / "d.el"), ("", "''")):
        with pytest.raises(Error) as caught:
            resolve(spec, cache_dir=tmp_path)
        start = f"open {name}: no graph folder (there is no graph.json in it): give a graph folder, "
        assert str(caught.value).startswith(start)
        assert caught.value.errno == errno.ENOENT
    with pytest.raises(Error, match="create /proc/penstock"):
        resolve("kron:4", cache_dir="/proc/penstock")
    if os.geteuid() == 0:
        return  # root is never refused
    for name in ("a.el", "a.mtx"):
        (tmp_path / name).touch(mode=0)
        with pytest.raises(Error, match="Permission denied"):
            resolve(tmp_path / name, cache_dir=tmp_path)


def test_an_exception_of_the_callback_stops_the_work_and_leaves_nothing(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        assert 0 <= done <= total
        raise StopError

    with pytest.raises(StopError):
        resolve("kron:18", cache_dir=tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stops_the_work_and_leaves_nothing(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import signal, sys
        from penstock.graph import resolve
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's background job
        def progress(done, total):
            if done: print("going", flush=True)
        try:
            resolve("kron:22", cache_dir=sys.argv[1], progress=progress)
        except KeyboardInterrupt:
            sys.exit(42)
    """)
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 42
    assert list(tmp_path.iterdir()) == []

"""What open, plan and empty say of broken files, paths and arguments: one sentence, with the user's path."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import lzma
import os
import pickle
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import penstock
import pytest
from broken_inputs import MAKERS, check_sentence, numbers
from penstock.arrays import foreign

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(foreign, "has_torch", lambda: False)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path_factory.mktemp("cache")))


def refused(path: Any, kind: type[BaseException], words: str | None = None, **options: Any) -> str:
    """What open and plan say: the same."""
    said = []
    for call in (penstock.open, penstock.plan):
        with pytest.raises(kind, match=words) as caught:
            call(path, **({"device": "cpu"} | options))
        assert type(caught.value) is kind
        check_sentence(caught.value, str(path))
        said.append(str(caught.value))
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize("name", MAKERS)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    needs = MAKERS[name][0]
    if needs is not None:
        pytest.importorskip(needs, reason=f"{needs} is not installed")
    command = [sys.executable, str(HERE / "damage_files.py"), name, "0", "100", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, f"{done.stdout[-40:]}\n{done.stderr[-3000:]}"
    assert "refused" in done.stdout


WRONG: dict[str, list[Any]] = {
    "placement": ["tape", "", None, 3, [], np.arange(3), "hbm", b"host", "HOST", "x\ny", "t" * 500],
    "device": ["abacus", "", None, 0, [], "cuda:99", "cpu\n", np.arange(2), "d" * 500],
    "cache": [-1, 1.5, "much", "", [], 1 << 80, "-4KiB", "1e9", True, b"1", float("nan"), 100, 1 << 62],
    "line": [0, -1, 700, 256, "x", None, 1 << 20, 1 << 70, 512.0, [], "4KB\n"],
    "threads": [-1, 1.5, None, "2", 1 << 40, [], True],
    "directory": ["round", "", None, 3, [], "d\n" * 300],
    "engine": ["steam", "", None, 3, [], b"pread"],
    "dtype": [
        "complex64", "f3", ">f4", "<c8", "", "a\nb", "U3", "f4,i4", 32, [], {}, object(), "x" * 500, "O",
        "M8", np.dtype([("a", "f4")]), ">i8", np.dtype(">f4"), int, "float64", [("a", "f4")], b"f4", "(2,)f4",
    ],
    "shape": [
        (3,), -1, (-1, 4), "ab", (2.5,), (1 << 70,), (1 << 32, 1 << 32), [None], {}, (1,) * 40, (), (0, 0),
    ],
    "offset": [-1, 1.5, "8", 1 << 70, [], None, 8, b"1"],
    "name": ["one", "", 3, b"x", [], "a\nb", "n" * 500, "../up", "/", "\0"],
    "progress": [3, "show", []],
    "writable": [np.arange(3), "yes", None],
    "direct": [np.arange(3), "yes", None],
}  # fmt: skip


def spoiled(chance: random.Random, names: list[str]) -> dict[str, Any]:
    return {name: chance.choice(WRONG[name]) for name in chance.sample(names, chance.randint(1, 3))}


def outcome(call: Callable[..., Any], *given: Any, **options: Any) -> BaseException | None:
    try:
        with contextlib.closing(call(*given, **options)) as array:
            assert len(array[:]) == len(array)
    except Exception as problem:
        return problem
    return None


@pytest.mark.parametrize("name", ["npy", "npz", "raw", "safetensors", "arrow-zstd", "hdf5", "zarr"])
def test_wrong_arguments_are_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    needs, make = MAKERS[name]
    if needs is not None:
        pytest.importorskip(needs, reason=f"{needs} is not installed")
    path, right = make(tmp_path)
    for seed in range(400):
        options = (
            {"device": "cpu", "placement": "storage"} | right | spoiled(random.Random(seed), list(WRONG))
        )
        problem = outcome(penstock.open, path, **options)
        options.pop("progress", None)
        try:
            penstock.plan(path, **options)
            planned = None
        except Exception as refusal:
            check_sentence(refusal, str(path))
            planned = str(refusal)
        if problem is not None:
            check_sentence(problem, str(path))
            if "progress" not in str(problem) and "layer" not in str(problem):
                assert planned in (None, str(problem)), (seed, options)
        else:
            assert planned is None, (seed, options)


def test_new_files_with_wrong_arguments_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "new.npy"
    wrong = ["placement", "device", "cache", "line"]
    shapes = [*WRONG["shape"], 5, (5, 2), (0, 1 << 32, 1 << 32), (1 << 60,), (0,), np.int64(3), (True, 2)]
    refusals = 0
    for seed in range(600):
        chance = random.Random(seed)
        options = {"device": "cpu"} | (spoiled(chance, wrong) if chance.random() < 0.6 else {})
        shape, dtype = chance.choice(shapes), chance.choice([*WRONG["dtype"], "f4", "float32", "bfloat16"])
        problem = outcome(penstock.empty, path, shape, dtype, **options)
        if problem is not None:
            check_sentence(problem, str(path), "open" if str(problem).startswith("open") else "create")
            assert not path.exists(), (seed, shape, dtype, options)
            refusals += 1
        path.unlink(missing_ok=True)
    assert 300 < refusals < 600
    for wrong_path, kind in [
        (tmp_path / "new.txt", ValueError), (tmp_path / "none" / "new.npy", FileNotFoundError),
        (tmp_path, ValueError), ("", FileNotFoundError), (3, TypeError),
        (tmp_path / f"{'n' * 300}.npy", OSError),
    ]:  # fmt: skip
        with pytest.raises(kind) as caught:
            penstock.empty(wrong_path, 3, "f4", device="cpu")  # type: ignore[arg-type]
        check_sentence(caught.value, str(wrong_path) or "''", "create")


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.EACCES, PermissionError, "this user may not write to its directory"),
        (errno.EROFS, penstock.Error, "its file system is read-only: choose another directory"),
    ],
)
def test_a_directory_that_takes_no_file_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[OSError], words: str
) -> None:
    def touch(path: Path, **_: Any) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "touch", touch)
    with pytest.raises(kind, match=words) as caught:
        penstock.empty(tmp_path / "new.npy", 3, "f4", device="cpu")
    check_sentence(caught.value, str(tmp_path / "new.npy"), "create")


def test_rows_of_more_bytes_than_there_are_addresses(tmp_path: Path) -> None:
    path = tmp_path / "wide.npy"
    np.save(path, np.zeros(0, np.float32))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"(0,), }" + b" " * 24, b"(0, 4294967296, 4294967296), } "))
    assert len(path.read_bytes()) == len(whole)
    refused(path, ValueError, "more bytes than can be addressed: give fewer or shorter rows")


def odd_paths(folder: Path) -> Iterator[tuple[Any, type[BaseException], str]]:
    np.save(folder / "a.npy", numbers())
    os.mkfifo(folder / "pipe.npy")
    (folder / "dangling.npy").symlink_to(folder / "none.npy")
    (folder / "loop.npy").symlink_to(folder / "loop.npy")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "socket"))
    server.close()
    (folder / "folder.npy").mkdir()
    for path in ("pipe.npy", "socket"):
        yield folder / path, ValueError, "it is neither a file nor a block device: name one of these"
    yield "/dev/null", ValueError, "it is neither a file nor a block device"
    for path in ("none.npy", "dangling.npy", "none/a.npy", "none"):
        yield folder / path, FileNotFoundError, "there is no such file: check the path"
    yield folder / "a.npy" / "b.npy", NotADirectoryError, "a part of its path is no directory"
    yield folder, IsADirectoryError, "it is a directory, and no Zarr store: name a file"
    yield folder / "folder.npy", IsADirectoryError, "it is a directory"
    yield folder / "loop.npy", penstock.Error, "symbolic links lead to each other"
    yield folder / ("n" * 300), penstock.Error, "longer than a file system takes"


def test_paths_that_lead_to_no_file(tmp_path: Path) -> None:
    for path, kind, words in odd_paths(tmp_path):
        refused(path, kind, words)
        refused(str(path), kind, words)


def test_paths_that_are_none(tmp_path: Path) -> None:
    wrong: list[tuple[Any, type[Exception], str]] = [
        (3, TypeError, "3"), (None, TypeError, "None"), ([], TypeError, "[]"), ("", FileNotFoundError, "''"),
        ("a\0b.npy", ValueError, r"'a\x00b.npy'"), ("\ud800.npy", ValueError, r"'\ud800.npy'"),
    ]  # fmt: skip
    for path, kind, name in wrong:
        for call in (penstock.open, penstock.plan):
            with pytest.raises(kind) as caught:
                call(path, device="cpu")
            check_sentence(caught.value, name)
    with pytest.raises(TypeError, match=r"open array.*: it is no path: give it to penstock\.from_t"):
        penstock.open(np.arange(2), device="cpu")  # type: ignore[arg-type]
    odd = tmp_path / "a\udcff.npy"
    for given in (odd, os.fsencode(odd)):
        with pytest.raises(ValueError, match="its name is no UTF-8: rename it") as caught:
            penstock.open(given, device="cpu")  # type: ignore[arg-type]
        check_sentence(caught.value, ascii(str(odd)))


def test_names_of_several_lines_are_shown_in_one(tmp_path: Path) -> None:
    odd = tmp_path / "a\nb.npy"
    with pytest.raises(FileNotFoundError) as caught:
        penstock.open(odd, device="cpu")
    check_sentence(caught.value, ascii(str(odd)))
    np.save(odd, numbers())
    with pytest.raises(ValueError, match="line size 700") as refusal:
        penstock.open(odd, device="cpu", placement="storage", line=700)
    check_sentence(refusal.value, ascii(str(odd)))
    for path in (odd, os.fsencode(odd)):
        with penstock.open(path, device="cpu") as array:  # type: ignore[arg-type]
            np.testing.assert_array_equal(np.asarray(array), numbers())


def test_a_relative_path_stays_as_the_user_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    np.save("../a.npy", numbers())
    for path in ("../a.npy", "./../a.npy", str(tmp_path / "inner" / ".." / "a.npy")):
        refused(path, ValueError, "line size 700", placement="storage", line=700)
        refused(path, ValueError, "engine 'steam': there is no such", placement="storage", engine="steam")
        with penstock.open(path, device="cpu", placement="host") as array:
            assert array.path == str(Path(path).absolute())


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_files_that_this_user_may_not_read() -> None:
    folder = Path(tempfile.mkdtemp(prefix="penstock-"))  # pytest's own is closed to other users
    try:
        folder.chmod(0o755)
        closed, shut = folder / "closed.npy", folder / "shut"
        shut.mkdir()
        for path in (closed, shut / "in.npy", folder / "read-only.npy"):
            np.save(path, numbers())
        closed.chmod(0)
        shut.chmod(0)
        (folder / "read-only.npy").chmod(0o444)
        with another_user():
            assert "may not read it: give them the permission" in refused(closed, PermissionError)
            refused(shut / "in.npy", PermissionError, "not search its directories")
            refused(folder / "read-only.npy", PermissionError, "may not write it", writable=True)
            with pytest.raises(PermissionError) as caught:
                penstock.open(closed, device="cpu")
            assert caught.value.errno == errno.EACCES
    finally:
        shut.chmod(0o755)
        shutil.rmtree(folder)


def foreign_files(folder: Path) -> Iterator[tuple[str, bytes, str]]:
    """Names, contents by the library that makes them, and what it is called."""
    rows = numbers().tobytes()
    with zipfile.ZipFile(folder / "made.zip", "w") as archive:
        archive.writestr("rows.bin", rows)
    packed = (folder / "made.zip").read_bytes()
    yield "a.zip", packed, "a ZIP archive: unpack it"
    yield "a.bin", packed, "a ZIP archive: unpack it"
    yield "a.npy", packed, "a ZIP archive: unpack it"
    yield "a.bin", gzip.compress(rows), "a gzip file: unpack it"
    yield "a.npy.gz", gzip.compress(rows), "a gzip file: unpack it"
    yield "a.bin", bz2.compress(rows), "a bzip2 file: unpack it"
    yield "a.bin", lzma.compress(rows), "an xz file: unpack it"
    yield "a.pkl", pickle.dumps([1, 2]), "a pickle: load it where you trust it"
    yield "a.csv", b"1,2\n", r"text: read it with numpy\.loadtxt"
    yield "a.json", b"[1, 2]", r"JSON text: read it with json\.load"
    yield "a.tar", rows, "a tar archive: unpack it"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 4800\n"
    yield "a.safetensors", pointer, "a pointer of Git LFS: fetch the file with git lfs pull"
    yield "a.npy", b"<!DOCTYPE html><html>404</html>", "an HTML page: download the file again"


def test_files_of_other_formats_are_not_called_raw(tmp_path: Path) -> None:
    for name, content, words in foreign_files(tmp_path):
        path = tmp_path / name
        path.write_bytes(content)
        for options in ({}, {"dtype": "uint8"}, {"dtype": "uint8", "shape": (2, 2)}):
            refused(path, ValueError, words, **options)
        if not name.endswith((".npy", ".safetensors")):  # what the user insists on is taken
            with penstock.open(path, device="cpu", dtype="uint8", offset=0) as array:
                assert bytes(np.asarray(array)) == content
        path.unlink()


def test_checkpoints_of_torch_are_not_called_raw(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for name, new in [("a.pt", True), ("a.bin", True), ("old.pth", False), ("model.ckpt", True)]:
        torch.save({"w": torch.zeros(9)}, tmp_path / name, _use_new_zipfile_serialization=new)
        for options in ({}, {"dtype": "float32"}):
            refused(tmp_path / name, ValueError, r"a PyTorch checkpoint: read it with torch\.load", **options)
    index = tmp_path / "pytorch_model.safetensors.index.json"
    index.write_text('{"weight_map": {"w": "a.bin"}}')
    refused(index, ValueError, "tensor w is in a.bin: convert the model to safetensors first")


def test_files_of_scipy_and_zstandard_are_not_called_raw(tmp_path: Path) -> None:
    from scipy import io

    io.savemat(tmp_path / "a.mat", {"a": numbers()})
    with io.netcdf_file(tmp_path / "a.nc", "w") as file:
        file.createDimension("n", 3)
        file.createVariable("v", "f4", ("n",))[:] = 1
    refused(tmp_path / "a.mat", ValueError, r"a MATLAB file: read it with scipy\.io\.loadmat", dtype="uint8")
    refused(tmp_path / "a.nc", ValueError, "a classic netCDF file: convert it with nccopy")
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    (tmp_path / "a.bin").write_bytes(zstandard.compress(bytes(1000)))
    refused(tmp_path / "a.bin", ValueError, "a Zstandard file: unpack it", dtype="uint8")


def test_endings_of_formats_with_a_signature_count_for_nothing_without_it(tmp_path: Path) -> None:
    for name in ("a.zip", "a.fits", "a.mat"):
        numbers().tofile(tmp_path / name)
        with penstock.open(tmp_path / name, device="cpu", dtype="f4") as array:
            assert array.size == 1200
        refused(tmp_path / name, ValueError, "its ending is that of a.*; if its bytes are the numbers")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (
            lambda p: np.save(p, np.zeros(3, complex)),
            "elements of dtype complex128: save it as one of",
        ),
        (lambda p: np.save(p, np.zeros(3, "U5")), "elements of dtype str160"),
        (lambda p: np.save(p, np.zeros(3, "M8[s]")), r"elements of dtype datetime64\[s\]"),
        (lambda p: np.save(p, np.zeros(3, ">i4")), "elements of dtype >i4"),
        (lambda p: np.save(p, np.zeros(3, "f4,i4")), "elements of dtype void64"),
        (lambda p: np.save(p, np.array([{}]), allow_pickle=True), "elements of dtype object"),
        (lambda p: np.save(p, np.zeros(3, np.longdouble)), "elements of dtype float128"),
        (lambda p: np.lib.format.write_array(p.open("wb"), np.zeros(3), (4, 0)), "version 4.0"),
        (lambda p: np.save(p, np.zeros(3, [(f"field{k}", "f4") for k in range(900)])), r"its header has \d+"),
    ],
)
def test_npy_files_that_are_not_read_are_named(tmp_path: Path, write: Any, words: str) -> None:
    path = tmp_path / "odd.npy"
    if "4.0" in words:
        np.save(path, numbers())
        content = path.read_bytes()
        path.write_bytes(content[:6] + b"\x04\x00" + content[8:10] + b"\0\0" + content[10:])
    else:
        with contextlib.suppress(UserWarning):
            write(path)
    refused(path, ValueError, words)


def test_what_a_progress_function_raises_stays_what_it_was(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", a=numbers())

    def stop(what: str, done: int, total: int) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match=r"^enough$"):
        penstock.open(tmp_path / "a.npz", device="cpu", progress=stop)
    with pytest.raises(TypeError, match=r"a\.npz: progress 3: give a function of"):
        penstock.open(tmp_path / "a.npz", device="cpu", progress=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("arrow", "pyarrow", "arrow"), ("parquet", "pyarrow.parquet", "arrow"), ("hdf5", "h5py", "hdf5"),
        ("zarr-packed", "zarr", "zarr"),
    ],
)  # fmt: skip
def test_libraries_that_are_missing_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    needs, make = MAKERS[name]
    assert needs is not None
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    path, options = make(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)  # as Python has it where an import fails
    with pytest.raises(ValueError, match=rf"{needs} is needed .*: pip install penstock\[{extra}\]") as caught:
        penstock.open(path, device="cpu", **options)
    check_sentence(caught.value, str(path))


def test_a_zarr_array_in_place_needs_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zarr", reason="zarr is not installed")
    path, _ = MAKERS["zarr"][1](tmp_path)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with penstock.open(path, device="cpu") as array:
        np.testing.assert_array_equal(np.asarray(array), numbers())


def test_a_header_is_read_again_where_pythons_parser_fails_beside_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    read, tries = np.lib.format.read_array_header_1_0, 0

    def fails_once(file: IO[bytes]) -> Any:
        nonlocal tries
        tries += 1
        found = read(file)
        if tries == 1:
            raise SystemError("AST constructor recursion depth mismatch (before=48, after=45)")
        return found

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", fails_once)
    with penstock.open(tmp_path / "a.npy", placement="host", device="cpu") as array:
        np.testing.assert_array_equal(np.asarray(array), np.arange(5))
    assert tries == 2

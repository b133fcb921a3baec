"""An array's memory for others: tensors, NumPy arrays, DLPack. What they store never reaches a file that was
opened to be read, and never ends the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import _native
from penstock.arrays import exports
from penstock.arrays.dtypes import DTYPES

CONTENT = (np.arange(7000) % 251).reshape(1000, 7).astype(np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "array.npy", CONTENT)
    return tmp_path / "array.npy"


def opened(path: Path, placement: str = "host", **options: Any) -> penstock.Array:
    return penstock.open(path, placement=placement, device="cpu", **options)


STORES = {
    "tensor": "array.tensor()[5] = 9",
    "operator": "array.tensor().add_(1)",
    "dlpack": "torch.from_dlpack(array)[5] = 9",
    "numpy": "torch.from_numpy(array.numpy())[5] = 9",
    "asarray": "torch.from_numpy(numpy.asarray(array)).add_(1)",
    "old dlpack": "torch.from_dlpack(array.__dlpack__())[5] = 9",
}


@pytest.mark.parametrize("way", STORES)
def test_stores_into_tensors_stay_out_of_a_read_only_file(file: Path, way: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    program = (
        "import numpy, penstock, sys, torch, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "array = penstock.open(sys.argv[1], placement='host', device='cpu')\n"
        "before = array[[5, 999]].clone()\n"
        f"{STORES[way]}\n"
        "assert torch.equal(array[[5, 999]], before), 'the array did not change either'\n"
    )
    command = [sys.executable, "-c", program, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(np.load(file), CONTENT)


def test_tensors_of_a_read_only_file_are_one_memory(file: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with opened(file) as array:
        tensor = array.tensor()
        np.testing.assert_array_equal(tensor.numpy(), CONTENT)
        tensor[3] = 7
        assert array.tensor().data_ptr() == tensor.data_ptr()
        assert torch.equal(array.tensor()[3], torch.full((7,), 7.0))
    assert float(tensor[3, 0]) == 7, "it keeps its memory"


def test_tensors_of_a_writable_file_are_the_file(file: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    with opened(file, writable=True) as array:
        array.tensor()[3] = 7
        np.testing.assert_array_equal(np.asarray(array[3]), np.full(7, 7.0))
    assert (np.load(file)[3] == 7).all()


def test_read_only_memory_is_no_tensor(file: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    with penstock.from_tensor(np.load(file, mmap_mode="r"), device="cpu") as array:
        with pytest.raises(ValueError, match="its memory is read-only, and no tensor is: take rows of it"):
            array.tensor()
        assert not array.numpy().flags.writeable
        with pytest.raises(BufferError, match=r"which only DLPack 1\.0 marks"):
            array.__dlpack__()


def test_a_tensor_of_a_file_that_is_cut_short_is_zeros_and_the_next_call_says_so(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    path = tmp_path / "array.npy"
    np.save(path, np.ones((4096, 64), np.float32))
    with opened(path) as array:
        tensor = array.tensor()
        with path.open("r+b") as cut:
            cut.truncate(4096)
        tensor[4000] = 5
        assert float(tensor[4000, 0]) == 5
        assert float(tensor[2000, 0]) == 0
        with pytest.raises(penstock.Error, match="it has 4096 bytes"):
            array[[0]]


def test_numpy_takes_arrays_by_dlpack(file: Path, library: str) -> None:
    with opened(file) as array:
        taken = np.from_dlpack(array)
        assert array.__dlpack_device__() == (1, 0)
        np.testing.assert_array_equal(taken, CONTENT)
        assert not taken.flags.writeable
    with opened(file, writable=True) as array:
        taken = np.from_dlpack(array)
        if exports.NUMPY_MARKS:
            assert taken.flags.writeable
            taken[4] = 8
            np.testing.assert_array_equal(np.asarray(array[4]), np.full(7, 8.0))
        np.testing.assert_array_equal(np.from_dlpack(array[[1, 2]]), CONTENT[[1, 2]])
    assert taken[5, 3] == CONTENT[5, 3], "it keeps its memory"


def test_memory_is_taken_by_dlpack_as_it_is(library: str) -> None:
    content = CONTENT.copy()
    with penstock.from_tensor(content, device="cpu") as array:
        assert np.from_dlpack(array).ctypes.data == content.ctypes.data
    content.flags.writeable = False
    if exports.NUMPY_MARKS:
        with penstock.from_tensor(content, device="cpu") as array:
            assert not np.from_dlpack(array).flags.writeable


def test_memory_with_gaps_is_refused(library: str) -> None:
    """By what makes it whole in the library that it is of."""
    given: Any = np.ones((4, 6))
    wanted = r"numpy\.ascontiguousarray"
    if library == "torch":
        import torch

        given, wanted = torch.from_numpy(given), r"tensor\.contiguous\(\)"
    for gaps in (given.T, given[::2], given[:, 1:]):
        with pytest.raises(ValueError, match=f"its elements do not follow each other: give {wanted}"):
            penstock.from_tensor(gaps, device="cpu")


def test_what_dlpack_cannot_take_says_so(file: Path, library: str) -> None:
    with opened(file, "storage") as array:
        assert array.__dlpack_device__() == (1, 0)
        with pytest.raises(ValueError, match="behind a cache: choose placement hbm or host"):
            np.from_dlpack(array)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "bool", "int16", "float64"])
def test_every_type_is_told_by_dlpack(tmp_path: Path, name: str, library: str) -> None:
    torch = pytest.importorskip("torch", reason="torch takes these types")
    kind = getattr(torch, name)
    content = torch.arange(35).reshape(5, 7).to(kind)
    path = tmp_path / "array.bin"
    path.write_bytes(content.view(torch.uint8).numpy().tobytes())
    with penstock.open(path, dtype=name, shape=(5, 7), placement="host", device="cpu") as array:
        taken = torch.utils.dlpack.from_dlpack(array)
        assert taken.dtype == kind
        assert torch.equal(taken.view(torch.uint8), content.view(torch.uint8))
    assert torch.equal(taken.view(torch.uint8), content.view(torch.uint8)), "it keeps its memory"


def test_memory_of_anybody_is_shared_by_dlpack() -> None:
    content = CONTENT.copy()
    address = content.ctypes.data
    for read_only in (False, True):
        shared = exports.share(content, address, Like(), (1, 0), read_only=read_only)
        taken = np.from_dlpack(shared)
        assert taken.ctypes.data == address
        np.testing.assert_array_equal(taken, CONTENT)
        if exports.NUMPY_MARKS:
            assert taken.flags.writeable != read_only
    on_a_gpu = exports.share(content, address, Like(), (exports.CUDA, 1), read_only=False)
    assert on_a_gpu.__dlpack_device__() == (2, 1)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(on_a_gpu)
    held = sys.getrefcount(content)
    del shared, taken, on_a_gpu
    assert sys.getrefcount(content) < held, "who took it let its owner go"


class Like:
    """What the memory above is told as."""

    shape = CONTENT.shape
    dtype = DTYPES[CONTENT.dtype.name]


@pytest.mark.skipif(not _native.cuda_usable()[0], reason="there is no GPU whose memory could be taken")
@pytest.mark.parametrize("placement", ["hbm", "host"])
def test_memory_of_a_gpu_is_taken_by_dlpack(file: Path, library: str, placement: str) -> None:
    torch = pytest.importorskip("torch", reason="torch takes it")
    with penstock.open(file, placement=placement, device="cuda") as array:
        assert array.__dlpack_device__() == (exports.CUDA, 0)
        taken, rows = torch.from_dlpack(array), torch.from_dlpack(array[[3, 1]])
        assert taken.is_cuda
        assert rows.is_cuda
        np.testing.assert_array_equal(taken.cpu().numpy(), CONTENT)
        np.testing.assert_array_equal(rows.cpu().numpy(), CONTENT[[3, 1]])
    np.testing.assert_array_equal(taken.cpu().numpy(), CONTENT, "it keeps its memory")


def test_memory_outlives_what_is_written_back_to_it() -> None:
    # Memory that the system takes back with its last owner: a store there then ends the process.
    program = (
        "import mmap, numpy as np, penstock\n"
        "for k in range(20):\n"
        "    memory = np.frombuffer(mmap.mmap(-1, 1 << 20), np.float32).reshape(-1, 8)\n"
        "    array = penstock.from_tensor(memory, 'host-cached', device='cpu')\n"
        "    del memory\n"
        "    array[[3, 30000]] = np.ones((2, 8), np.float32)\n"
        "    del array\n"  # without close: in the order in which its parts go
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")

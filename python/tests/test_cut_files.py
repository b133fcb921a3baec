"""Files that others cut short while an array lies over them, and while the memory of an argument does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import opened, saved, table

pytestmark = pytest.mark.usefixtures("here")


def test_a_file_that_shrinks_is_an_error(tmp_path: Path, placement: str) -> None:
    path = saved(tmp_path, table(4096, 64))
    with opened(path, placement=placement) as array:
        with path.open("r+b") as file:
            file.truncate(4096)
        with pytest.raises(penstock.Error, match="it has 4096 bytes"):
            array[[4000]]


@pytest.mark.parametrize("placement", ["host", "storage"])
@pytest.mark.parametrize("dirty_before", [False, True])
def test_stores_into_a_file_that_shrinks_are_errors(
    tmp_path: Path, placement: str, dirty_before: bool
) -> None:
    """What lies between its end and a store would else become zeros."""
    path = saved(tmp_path, table(4096, 64))
    row = np.ones(64, np.float32)
    with (  # noqa: PT012, some say it at the end
        pytest.raises(penstock.Error, match=r"it has 4096 bytes, and the array goes up to byte"),
        opened(path, placement=placement, writable=True) as array,
    ):
        if dirty_before:
            array[4000] = row
        with path.open("r+b") as file:
            file.truncate(4096)
        if not dirty_before:
            array[4000] = row


def test_closing_leaves_a_file_that_shrank_as_it_is(tmp_path: Path) -> None:
    """What lies in the cache is lost, and said to be."""
    path = saved(tmp_path, table(4096, 64))
    program = (
        "import os, sys, numpy, penstock\n"
        "array = penstock.open(sys.argv[1], placement='storage', device='cpu', writable=True)\n"
        "array[4000] = numpy.ones(64, numpy.float32)\n"
        "os.truncate(sys.argv[1], 4096)\n"
        "del array\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert path.stat().st_size == 4096
    assert "what was stored since its last flush is lost" in done.stderr
    assert "it has 4096 bytes" in done.stderr


class TestArguments:
    """NumPy and torch let such memory end the process; calls of an array say what happened."""

    ROWS = 65536

    @pytest.fixture(params=["host", "host-cached", "storage"])
    def array(self, request: pytest.FixtureRequest, tmp_path: Path, library: str) -> Any:
        path = tmp_path / "table.npy"
        np.save(path, table(self.ROWS, 16))
        writable = request.param != "host-cached"
        with penstock.open(path, placement=request.param, device="cpu", writable=writable) as array:
            yield array

    def mapped(self, folder: Path, content: np.ndarray[Any, Any], library: str) -> Any:
        """The same values in a mapped file that was cut to a page."""
        path = folder / "argument.npy"
        np.save(path, content)
        memory = np.load(path, mmap_mode="r+")
        os.truncate(path, 4096)
        if library == "numpy":
            return memory
        import torch

        return torch.from_numpy(memory)

    def numbers(self) -> np.ndarray[Any, Any]:
        return np.random.default_rng(3).permutation(self.ROWS)

    def test_row_numbers(self, array: penstock.Array, tmp_path: Path, library: str) -> None:
        rows = self.mapped(tmp_path, self.numbers(), library)
        with pytest.raises(penstock.Error, match="memory of the row numbers maps a file that was cut short"):
            array.gather(rows)

    def test_a_result(self, array: penstock.Array, tmp_path: Path, library: str) -> None:
        out = self.mapped(tmp_path, table(self.ROWS, 16), library)
        with pytest.raises(penstock.Error, match="memory of the result maps a file that was cut short"):
            array.gather(self.numbers(), out=out)
        np.testing.assert_array_equal(np.asarray(array[[5, 70]]), table(self.ROWS, 16)[[5, 70]])

    def test_values(self, array: penstock.Array, tmp_path: Path, library: str) -> None:
        if not array.writable:
            pytest.skip("an array behind a cache over a mapped file is read alone")
        values = self.mapped(tmp_path, table(self.ROWS, 16), library)
        for reduce in (None, "add"):
            with pytest.raises(penstock.Error, match="memory of the values maps a file that was cut short"):
                array.scatter(self.numbers(), values, reduce=reduce)
            values = self.mapped(tmp_path, table(self.ROWS, 16), library)

    def test_memory_that_is_whole_is_used_as_ever(
        self, array: penstock.Array, tmp_path: Path, library: str
    ) -> None:
        path = tmp_path / "out.npy"
        np.save(path, np.zeros((self.ROWS, 16), np.float32))
        rows, memory = self.numbers(), np.load(path, mmap_mode="r+")
        out: Any = memory
        if library == "torch":
            import torch

            out = torch.from_numpy(memory)
        array.gather(rows, out=out)
        np.testing.assert_array_equal(np.load(path), table(self.ROWS, 16)[rows])

"""Files that others cut short while an array lies over them, and while the memory of an argument does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import Here, opened, saved, table
from places import DEVICES

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
    if placement == "host" and Here.device != "cpu":
        pytest.skip("a GPU does not store into a mapped file")
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


@pytest.mark.parametrize("device", DEVICES)
def test_closing_leaves_a_file_that_shrank_as_it_is(tmp_path: Path, device: str) -> None:
    """What lies in the cache is lost, and said to be."""
    path = saved(tmp_path, table(4096, 64))
    program = (
        "import os, sys, numpy, penstock\n"
        "array = penstock.open(sys.argv[1], placement='storage', device=sys.argv[2], writable=True)\n"
        "array[4000] = numpy.ones(64, numpy.float32)\n"
        "os.truncate(sys.argv[1], 4096)\n"
        "del array\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), device], capture_output=True, text=True, check=True
    )
    assert path.stat().st_size == 4096
    assert "what was stored since its last flush is lost" in done.stderr
    assert "it has 4096 bytes" in done.stderr


def cut(folder: Path, content: np.ndarray[Any, Any], mode: Any = "r+", name: str = "argument.npy") -> Any:
    """The same values in a mapped file that was cut to a page."""
    np.save(folder / name, content)
    memory = np.load(folder / name, mmap_mode=mode)
    os.truncate(folder / name, 4096)
    return memory


CUT = "the memory of .* maps a file that was cut short"


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

    def mapped(self, folder: Path, content: np.ndarray[Any, Any], library: str, mode: Any = "r+") -> Any:
        memory = cut(folder, content, mode)
        if library == "numpy":
            return memory
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of memory that is read-only
            return torch.from_numpy(memory)

    def numbers(self) -> np.ndarray[Any, Any]:
        return np.random.default_rng(3).permutation(self.ROWS)

    @pytest.mark.parametrize("mode", ["r", "r+", "c"])
    def test_row_numbers(self, array: penstock.Array, tmp_path: Path, library: str, mode: Any) -> None:
        """Each time anew: nothing is left in the place of what is missing, and it may come back."""
        numbers = self.numbers()
        rows = self.mapped(tmp_path, numbers, library, mode)
        for _ in range(3):
            for call in (array.gather, array.__getitem__, array.prefetch, lambda rows: array[rows[::2]]):
                with pytest.raises(penstock.Error, match=CUT):
                    call(rows)
        np.save(tmp_path / "whole.npy", numbers)
        with (tmp_path / "argument.npy").open("r+b") as file:
            file.write((tmp_path / "whole.npy").read_bytes())
        np.testing.assert_array_equal(np.asarray(array.gather(rows)), table(self.ROWS, 16)[numbers])
        np.testing.assert_array_equal(np.asarray(rows), numbers)

    def test_masks(self, array: penstock.Array, tmp_path: Path, library: str) -> None:
        mask = self.mapped(tmp_path, np.ones(self.ROWS, np.bool_), library)
        for _ in range(2):
            with pytest.raises(penstock.Error, match=CUT):
                array[mask]

    def test_a_result(self, array: penstock.Array, tmp_path: Path, library: str) -> None:
        out = self.mapped(tmp_path, table(self.ROWS, 16), library)
        with pytest.raises(penstock.Error, match="memory of the result maps a file that was cut short"):
            array.gather(self.numbers(), out=out)
        np.testing.assert_array_equal(np.asarray(array[[5, 70]]), table(self.ROWS, 16)[[5, 70]])

    def test_values(self, array: penstock.Array, tmp_path: Path, library: str) -> None:
        """Nothing is stored of them."""
        if not array.writable:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
            return
        values = self.mapped(tmp_path, np.ones((self.ROWS, 16), np.float32), library)
        for _ in range(2):
            for reduce in (None, "add"):
                with pytest.raises(penstock.Error, match=CUT):
                    array.scatter(self.numbers(), values, reduce=reduce)
            for key in (slice(None), self.numbers(), (slice(None), slice(0, 4))):
                with pytest.raises(penstock.Error, match=CUT):
                    array[key] = values if type(key) is not tuple else values[:, :4]
        np.testing.assert_array_equal(np.asarray(array[:]), table(self.ROWS, 16))

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


def test_arrays_over_memory_look_at_it(tmp_path: Path) -> None:
    memory = cut(tmp_path, np.ones((50_000, 8), np.float32))
    looks: list[Callable[[penstock.Array], Any]] = [
        lambda array: array.check_file(),
        lambda array: array.numpy(),
        lambda array: np.asarray(array),
        lambda array: array[[40_000]],
        lambda array: array[[40_000]],
    ]
    for look in looks:
        array = penstock.from_tensor(memory, device="cpu")
        with pytest.raises(penstock.Error, match="file that its memory maps was cut short"):
            look(array)
        with pytest.raises(penstock.Error, match="file that its memory maps was cut short"):
            array.close()


def test_graphs_over_memory_look_at_it(tmp_path: Path) -> None:
    scipy = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    ends = np.random.default_rng(1).integers(0, 1000, (2, 50_000))
    over = cut(tmp_path, ends)
    matrix = scipy.coo_matrix((np.ones(50_000), (ends[0], ends[1])), shape=(1000, 1000)).tocsr()
    matrix.indices = cut(tmp_path, matrix.indices, name="indices.npy")
    columns = cut(tmp_path, np.asfortranarray(ends), name="fortran.npy")
    for given in (
        over,
        columns,
        (over[0], over[1]),
        (ends[0], ends[1], cut(tmp_path, ends[0], name="w.npy")),
        matrix,
    ):
        for _ in range(2):
            with pytest.raises(penstock.Error, match=f"open .*: {CUT}"):
                penstock.cc(given, executor="cpu")


def test_ranks_folders_and_frames_over_memory_look_at_it(tmp_path: Path) -> None:
    ends = np.random.default_rng(1).integers(0, 1000, (2, 50_000))
    values = cut(tmp_path, np.ones(50_000), name="values.npy")
    for name in ("nstart", "personalization", "dangling"):
        with pytest.raises(penstock.Error, match=f"rank .*: {CUT}"):
            penstock.pagerank(np.append(ends, [[0], [49_999]], 1), executor="cpu", **{name: values})
    row = cut(tmp_path, ends[0], name="row.npy")
    for given in ({"from_": row, "to": ends[1]}, {"from_": ends[0], "to": ends[1], "weights": values}):
        with pytest.raises(penstock.Error, match=f"create .*: {CUT}"):
            penstock.graph.write_folder(tmp_path / "graph", 1000, **given)
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    numbers = arrow.Array.from_buffers(arrow.int64(), len(row), [None, arrow.py_buffer(row)])
    table = arrow.table({"src": ends[0], "dst": numbers})
    frames = [pandas.DataFrame({"src": row, "dst": ends[1]}, copy=False), table]
    frames.append(table.to_pandas(types_mapper=pandas.ArrowDtype))
    with contextlib.suppress(ImportError):
        import polars

        frames.append(polars.from_arrow(table))
    for frame in frames:
        with pytest.raises(penstock.Error, match=f"open .*: {CUT}"):
            penstock.cc(frame, executor="cpu")


def test_modules_and_stores_look_at_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import penstock.nn

    np.save(tmp_path / "table.npy", np.ones((1000, 8), np.float32))
    offsets = torch.from_numpy(cut(tmp_path, np.arange(50_000)))
    rows = torch.arange(50_000) % 1000
    bag = penstock.nn.EmbeddingBag(1000, 8, path=tmp_path / "table.npy", device="cpu", mode="sum")
    with bag.array as array:
        for _ in range(2):
            with pytest.raises(penstock.Error, match=CUT):
                bag(rows, offsets)
            with pytest.raises(penstock.Error, match=CUT):
                torch.nn.functional.embedding_bag(rows, array, offsets)
        more = torch.from_numpy(cut(tmp_path, np.ones((50_000, 8), np.float32), name="more.npy"))
        with pytest.raises(penstock.Error, match=CUT):
            bag.append_rows(more)
        assert len(array) == 1000
    pytest.importorskip("torch_geometric", reason="PyG is not installed")
    from penstock.pyg import FeatureStore

    with pytest.raises(penstock.Error, match=CUT):
        FeatureStore(device="cpu")["paper", "x", None] = more


def test_gradients_look_at_it(tmp_path: Path) -> None:
    """In the backward pass; a gradient that it took whole is the table's, whatever becomes of the file."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import penstock.nn
    import penstock.optim

    np.save(tmp_path / "table.npy", np.zeros((50_000, 8), np.float32))
    np.save(tmp_path / "rows.npy", np.arange(50_000))
    np.save(tmp_path / "gradient.npy", np.ones((50_000, 8), np.float32))
    rows = torch.from_numpy(np.load(tmp_path / "rows.npy", mmap_mode="r+"))
    gradient = torch.from_numpy(np.load(tmp_path / "gradient.npy", mmap_mode="r+"))
    table = penstock.nn.Embedding(50_000, 8, path=tmp_path / "table.npy", device="cpu")
    with table.array as array:
        optimizer = penstock.optim.SGD(table, lr=1.0)
        table(rows).backward(gradient)
        of_cut_rows = table(rows)
        os.truncate(tmp_path / "gradient.npy", 4096)
        os.truncate(tmp_path / "rows.npy", 4096)
        with pytest.raises(penstock.Error, match=f"keep the gradient of .*: {CUT}"):
            table(torch.arange(50_000)).backward(gradient)
        with pytest.raises(penstock.Error, match=f"keep the gradient of .*: {CUT}"):
            of_cut_rows.sum().backward()
        optimizer.step()
        np.testing.assert_array_equal(np.asarray(array[:]), -np.ones((50_000, 8)))


def test_workers_that_are_forked_say_it_too(tmp_path: Path) -> None:
    """torch puts its own handler of bus errors into workers."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    path = tmp_path / "array.npy"
    np.save(path, np.ones((50_000, 8), np.float32))
    with (
        contextlib.suppress(penstock.Error),
        penstock.from_tensor(torch.from_numpy(np.load(path, mmap_mode="r+")), device="cpu") as array,
    ):
        os.truncate(path, 4096)

        class Rows(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
            def __len__(self) -> int:
                return 1

            def __getitem__(self, index: int) -> Any:
                try:
                    return str(array[[40_000]])
                except penstock.Error as problem:
                    return str(problem)

        loader = torch.utils.data.DataLoader(Rows(), num_workers=1, batch_size=None)
        (said,) = list(loader)
        assert "file that its memory maps was cut short" in said

"""Memory that others own: they move it, resize it, map it read-only, cut its file short. Arrays over it
follow, or say in one sentence what is wrong, and never end the process."""

from __future__ import annotations

import gc
import os
import pickle
import warnings
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.arrays.memory import takes_stores

torch = pytest.importorskip("torch", reason="torch is not installed")

PLACEMENTS = pytest.mark.parametrize("placement", ["host", "host-cached"])


def table(rows: int = 1 << 16, width: int = 8) -> Any:
    """512 KiB and more: an allocation of its own, which goes back to the system when it is freed."""
    return torch.arange(rows * width, dtype=torch.int64).reshape(rows, width)


def over(memory: Any, placement: str = "host") -> penstock.Array:
    return penstock.from_tensor(memory, placement, device="cpu")


def test_torch_resizes_nothing_that_numpy_has() -> None:
    """As of its own `numpy()`: a resized storage lies elsewhere, and a view of it does not follow."""
    tensor = table()
    for view in (over(tensor).numpy(), np.asarray(over(tensor))):
        alias = tensor.detach()
        for resize in (alias.resize_, alias.untyped_storage().resize_):
            with pytest.raises(RuntimeError, match="not resizable"):
                resize(1 << 26)
        view[-1, 0] = -7
        assert int(tensor[-1, 0]) == -7
    half = torch.ones(4, 3, dtype=torch.bfloat16)
    assert over(half).numpy().shape == (4, 3)


def share(tensor: Any) -> None:
    tensor.share_memory_()


def send(tensor: Any) -> None:
    ForkingPickler.dumps(tensor)


def grow(tensor: Any) -> None:
    tensor.untyped_storage().resize_(2 * tensor.untyped_storage().nbytes())


def enlarge(tensor: Any) -> None:
    tensor.resize_(2 * tensor.shape[0], tensor.shape[1])


MOVES = pytest.mark.parametrize("move", [share, send, grow, enlarge])


@MOVES
@PLACEMENTS
def test_an_array_follows_memory_that_torch_moves(move: Callable[[Any], None], placement: str) -> None:
    tensor = table()
    expected = tensor.clone()
    with over(tensor, placement) as array:
        before = tensor.data_ptr()
        whole: Any = array.tensor() if placement == "host" else None
        move(tensor)
        assert tensor.data_ptr() != before
        rows = torch.tensor([0, 1, 77, 65535])
        assert torch.equal(array[rows], expected[rows])
        tensor[77] = -5
        if placement == "host":
            assert array[77].tolist() == [-5] * 8
            assert torch.equal(array.tensor()[1], expected[1])
            assert torch.equal(whole[1], expected[1]), "a tensor that was taken before moves, too"
        array[[5]] = torch.full((1, 8), 9)
        array.flush()
        assert tensor[5].tolist() == [9] * 8


@MOVES
@pytest.mark.parametrize("end", ["flush", "close", "go away"])
def test_what_was_stored_before_a_move_is_written_back_after_it(
    move: Callable[[Any], None], end: str
) -> None:
    tensor = table()
    array = over(tensor, "host-cached")
    array[[3, 60000]] = torch.full((2, 8), 4)
    move(tensor)
    if end == "flush":
        array.flush()
    elif end == "close":
        array.close()
    else:
        del array
        gc.collect()
    assert tensor[3].tolist() == tensor[60000].tolist() == [4] * 8
    assert tensor[4].tolist() == list(range(32, 40))


def test_setting_a_tensor_elsewhere_leaves_the_array_where_it_was() -> None:
    tensor = table()
    expected = tensor.clone()
    with over(tensor) as array:
        tensor.set_(torch.zeros(3, 8, dtype=torch.int64))
        gc.collect()
        assert torch.equal(array[[1, 65535]], expected[[1, 65535]])


@PLACEMENTS
def test_memory_that_is_given_up_is_one_sentence(placement: str) -> None:
    tensor = table()
    array = over(tensor, placement)
    array[[1]] = torch.full((1, 8), 3)
    tensor.untyped_storage().resize_(0)
    with pytest.raises(
        ValueError, match="resized by its owner, and has fewer bytes than the array: make the array"
    ):
        array[[0]]
    with pytest.raises(ValueError, match="it is closed"):
        array[[0]]
    array.close()


def test_an_array_follows_memory_that_numpy_moves() -> None:
    content = np.arange(1 << 16)
    with over(content) as array, over(content[100:200]) as part:
        content.resize((1 << 20,), refcheck=False)
        assert array[[1, 65535]].tolist() == [1, 65535]
        assert part[[0, 99]].tolist() == [100, 199]
        content[150] = -1
        assert part[50] == -1
        assert part.tensor()[50] == -1
        content.resize((50,), refcheck=False)
        with pytest.raises(ValueError, match="has fewer bytes than the array"):
            array[[1]]
        with pytest.raises(ValueError, match="has fewer bytes than the array"):
            part[[0]]


def test_a_numpy_view_of_a_tensor_follows_the_tensor() -> None:
    tensor = table()
    expected = tensor.clone()
    with over(tensor.numpy()) as array:
        tensor.share_memory_()
        assert torch.equal(array[[7, 65535]], expected[[7, 65535]])


@pytest.fixture
def mapped(tmp_path: Path) -> tuple[Path, Any]:
    """A file, and a tensor over it that is mapped read-only."""
    path = tmp_path / "array.npy"
    np.save(path, np.ones((4096, 64), np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch says once that it does not know read-only memory
        return path, torch.from_numpy(np.load(path, mmap_mode="r"))


@PLACEMENTS
def test_a_tensor_over_a_read_only_map_is_read_only(mapped: tuple[Path, Any], placement: str) -> None:
    path, tensor = mapped
    with over(tensor, placement) as array:
        assert not array.writable
        stores: list[Callable[[], Any]] = [
            lambda: array.scatter([1], torch.zeros(1, 64)),
            lambda: array.scatter([1], torch.zeros(1, 64), reduce="add"),
            lambda: array.__setitem__(1, 0),
        ]
        for store in stores:
            with pytest.raises(ValueError, match="memory is read-only: make the array over a copy"):
                store()
        assert array[[4095]].tolist() == [[1.0] * 64]
        if placement == "host":
            assert not array.numpy().flags.writeable
    assert (np.load(path) == 1).all()


def test_rows_are_not_gathered_into_a_read_only_map(mapped: tuple[Path, Any]) -> None:
    _, tensor = mapped
    with over(torch.zeros(100, 64)) as array:
        with pytest.raises(ValueError, match="out is read-only"):
            array.gather([1, 2], out=tensor[:2])
        with pytest.raises(ValueError, match="out is read-only"):
            torch.index_select(array, 0, torch.tensor([1, 2]), out=tensor[:2])


def test_a_store_of_features_over_a_read_only_map_refuses_updates(mapped: tuple[Path, Any]) -> None:
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    from penstock.pyg import FeatureStore

    features = FeatureStore(device="cpu")
    features["paper", "x", None] = mapped[1]
    with pytest.raises(ValueError, match="memory is read-only"):
        features.update_tensor(torch.zeros(4096, 64), "paper", "x", None)
    assert torch.equal(features["paper", "x", None][[0]], torch.ones(1, 64))


def test_stores_are_taken_by_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "array.bin"
    path.write_bytes(bytes(1 << 16))
    maps = {mode: np.memmap(path, np.uint8, mode) for mode in ("r", "r+", "c")}
    assert [takes_stores(maps[mode]) for mode in ("r", "r+", "c")] == [False, True, True]
    assert takes_stores(torch.from_numpy(maps["r+"]))
    assert takes_stores(torch.zeros(3).share_memory_())
    assert takes_stores(torch.from_numpy(np.zeros(3)))
    assert takes_stores(torch.empty(0))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    assert not takes_stores(frozen)


@PLACEMENTS
def test_memory_over_a_file_that_is_cut_short_is_an_error(tmp_path: Path, placement: str) -> None:
    path = tmp_path / "array.npy"
    np.save(path, np.ones((4096, 64), np.float32))
    content = np.load(path, mmap_mode="r")
    with over(content, placement) as array, over(content, placement) as other:
        os.truncate(path, 8192)
        assert array[[1]].tolist() == [[1.0] * 64]
        for each in (array, other):
            with pytest.raises(penstock.Error, match="file that its memory maps was cut short"):
                each[[4000]]


class TestTorchFunctions:
    @pytest.fixture
    def cut(self, tmp_path: Path) -> Any:
        path = tmp_path / "array.npy"
        np.save(path, np.ones((4096, 64), np.float32))
        with penstock.open(path, placement="host", device="cpu") as array:
            os.truncate(path, 8192)
            yield array

    @pytest.mark.parametrize(
        "use",
        [
            torch.sum,
            torch.mean,
            lambda a: torch.add(a, 1),
            lambda a: torch.nn.functional.linear(torch.ones(1, 64), a),
            lambda a: torch.stack([a, a]),
            lambda a: a + 1,
            lambda a: 1 - a,
            lambda a: a @ torch.ones(64, 1),
            lambda a: -a,
            lambda a: np.array(a, copy=True),
            lambda a: a[[4000]],
            lambda a: torch.index_select(a, 0, torch.tensor([4000])),
        ],
    )
    def test_a_file_that_shrinks_is_an_error(self, cut: penstock.Array, use: Callable[[Any], Any]) -> None:
        with pytest.raises(penstock.Error, match="it has 8192 bytes, and the array goes up to byte"):
            use(cut)


class TestStoresInOtherProcesses:
    @pytest.fixture(autouse=True)
    def needs_pyg(self) -> None:
        pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

    def store(self, tensor: Any) -> Any:
        from penstock.pyg import FeatureStore

        features = FeatureStore(device="cpu")
        features["paper", "x", None] = tensor
        return features

    def test_what_is_read_does_not_move(self) -> None:
        tensor = table()
        features = self.store(tensor)
        before = tensor.data_ptr()
        first, second = (bytes(ForkingPickler.dumps(features)) for _ in range(2))
        assert tensor.data_ptr() == before
        there = [pickle.loads(packed) for packed in (first, second)]
        for each in there:
            assert torch.equal(each["paper", "x", None], tensor)
        there[0].update_tensor(torch.full((1, 8), -1), "paper", "x", torch.tensor([3]))
        assert there[1]["paper", "x", torch.tensor([3])].tolist() == [[-1] * 8], "they share one copy"
        assert tensor[3].tolist() == list(range(24, 32))

    def test_what_is_stored_later_goes_to_later_processes(self) -> None:
        tensor = table()
        features = self.store(tensor)
        ForkingPickler.dumps(features)
        features.update_tensor(torch.full((1, 8), 7), "paper", "x", torch.tensor([3]))
        later = pickle.loads(ForkingPickler.dumps(features))
        assert later["paper", "x", torch.tensor([3])].tolist() == [[7] * 8]

    def test_a_plain_pickle_has_the_values(self) -> None:
        tensor = table(1000)
        again = pickle.loads(pickle.dumps(self.store(tensor)))
        tensor[3] = -1
        assert again["paper", "x", torch.tensor([3])].tolist() == [list(range(24, 32))]

    def test_spawned_workers_read_the_right_rows(self) -> None:
        from torch.utils.data import DataLoader

        tensor = table()
        features = self.store(tensor)
        loader = DataLoader(
            range(200),
            batch_size=50,
            num_workers=2,
            multiprocessing_context="spawn",
            collate_fn=Rows(features),
        )
        found = torch.cat(list(loader))
        assert torch.equal(found, tensor[:200])
        assert torch.equal(features["paper", "x", torch.arange(200)], tensor[:200])


class Rows:
    """Collates indices into rows of a store, in the worker."""

    def __init__(self, features: Any) -> None:
        self.features = features

    def __call__(self, indices: list[int]) -> Any:
        return self.features["paper", "x", torch.tensor(indices)]

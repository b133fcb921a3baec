"""Arrays in torch's own functions, in compiled ones, and as the data of its loaders."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from places import DEVICES, small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")
F = torch.nn.functional


@pytest.fixture
def content() -> Any:
    return torch.randn(100, 7, generator=torch.Generator().manual_seed(1))


@pytest.fixture(params=["host", "storage"])
def array(request: pytest.FixtureRequest, tmp_path: Path, content: Any, device: str) -> Any:
    np.save(tmp_path / "array.npy", content.numpy())
    where = {"placement": request.param, "device": device}
    with penstock.open(tmp_path / "array.npy", **small_cache(where["placement"]), **where) as made:
        yield made


ROWS = [[5, 99, 5], [0, 1, 98]]


def test_index_select_takes_rows(array: Any, content: Any) -> None:
    rows = torch.tensor(ROWS[0])
    assert torch.equal(torch.index_select(array, 0, rows).cpu(), content[rows])
    assert torch.equal(torch.index_select(input=array, dim=-2, index=rows).cpu(), content[rows])
    with pytest.raises(ValueError, match="dimension 1"):
        torch.index_select(array, 1, rows)
    with pytest.raises(ValueError, match="2 dimensions"):
        torch.index_select(array, 0, torch.tensor(ROWS))


def test_embedding_takes_an_array_for_its_weight(array: Any, content: Any) -> None:
    rows = torch.tensor(ROWS)
    expected = F.embedding(rows, content)
    assert torch.equal(F.embedding(rows, array).cpu(), expected)
    assert torch.equal(F.embedding(rows, weight=array, padding_idx=5, sparse=True).cpu(), expected)
    with pytest.raises(ValueError, match="max_norm"):
        F.embedding(rows, array, max_norm=1.0)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 5, -1])
def test_embedding_bags_are_those_of_torch(array: Any, content: Any, mode: str, padding: int | None) -> None:
    rows, offsets = torch.tensor([5, 99, 5, 0, 99, 7]), torch.tensor([0, 2, 2, 5])
    how: dict[str, Any] = {"mode": mode, "padding_idx": padding}
    assert torch.equal(
        F.embedding_bag(rows, array, offsets, **how).cpu(), F.embedding_bag(rows, content, offsets, **how)
    )
    square = rows.reshape(2, 3)
    assert torch.equal(F.embedding_bag(square, array, **how).cpu(), F.embedding_bag(square, content, **how))
    ends = torch.tensor([0, 2, 6])
    how["include_last_offset"] = True
    assert torch.equal(
        F.embedding_bag(rows, array, ends, **how).cpu(), F.embedding_bag(rows, content, ends, **how)
    )


def test_bags_may_be_empty(array: Any, content: Any) -> None:
    for shape in ((3, 0), (0, 3), (0, 0)):
        for padding in (None, 5):
            rows = torch.zeros(shape, dtype=torch.int64)
            taken = F.embedding_bag(rows, array, padding_idx=padding)
            assert torch.equal(taken.cpu(), torch.zeros(shape[0], 7))


def test_embedding_bags_weigh_their_rows(array: Any, content: Any) -> None:
    rows, weights = torch.tensor(ROWS), torch.rand(2, 3)
    how: dict[str, Any] = {"mode": "sum", "per_sample_weights": weights, "padding_idx": 99}
    ours, expected = F.embedding_bag(rows, array, **how).cpu(), F.embedding_bag(rows, content, **how)
    if array.on_gpu:  # where a product and a sum are rounded once
        torch.testing.assert_close(ours, expected)
    else:
        assert torch.equal(ours, expected)


def test_bags_that_make_no_sense_are_refused(array: Any) -> None:
    rows = torch.tensor([1, 2])
    with pytest.raises(ValueError, match="need offsets"):
        F.embedding_bag(rows, array)
    with pytest.raises(ValueError, match="leave out offsets"):
        F.embedding_bag(rows[None], array, torch.tensor([0]))
    with pytest.raises(ValueError, match="3 dimensions"):
        F.embedding_bag(rows[None, None], array)
    with pytest.raises(ValueError, match="max_norm"):
        F.embedding_bag(rows[None], array, max_norm=1.0)


NEGATIVE: dict[str, Any] = {
    "embedding": lambda a, i: F.embedding(i, a),
    "torch.embedding": lambda a, i: torch.embedding(a, i),
    "embedding_bag": lambda a, i: F.embedding_bag(i, a),
    "padded": lambda a, i: F.embedding_bag(i, a, padding_idx=5),
    "index_select": lambda a, i: torch.index_select(a, 0, i[1]),
    "index_select out": lambda a, i: torch.index_select(a, 0, i[1], out=torch.empty(3, 7, device=a.device)),
    "gather": lambda a, i: a.gather(i, negative_indices=False),
}


@pytest.mark.parametrize("name", NEGATIVE)
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_weights_have_no_negative_rows(array: Any, name: str, kind: Any) -> None:
    rows = torch.tensor([[5, 99, 5], [0, -1, 98]], dtype=kind)
    where = {"padded": "4", "index_select": "1", "index_select out": "1"}.get(name, r"\(1, 1\)")
    with pytest.raises(IndexError, match=rf"index -1 at position {where} is out of range: it has 100 rows"):
        NEGATIVE[name](array, rows)
    assert torch.equal(array[rows], array.gather(rows)), "which count from the end, as in NumPy"


def test_padding_is_a_row_of_the_array(array: Any) -> None:
    rows = torch.tensor(ROWS)
    for padding in (100, -101):
        with pytest.raises(ValueError, match=rf"padding_idx {padding}: the table has 100 rows"):
            F.embedding(rows, array, padding_idx=padding)
        with pytest.raises(ValueError, match=rf"padding_idx {padding}: the table has 100 rows"):
            F.embedding_bag(rows, array, padding_idx=padding)


def test_torch_embedding_has_its_weight_first(array: Any, content: Any) -> None:
    rows = torch.tensor(ROWS)
    assert torch.equal(torch.embedding(array, rows).cpu(), content[rows])
    assert torch.equal(torch.embedding(weight=array, indices=rows, padding_idx=5).cpu(), content[rows])
    with pytest.raises(TypeError, match=r"give the array to torch\.nn\.functional\.embedding_bag"):
        torch.embedding_bag(array, rows.reshape(-1), torch.tensor([0]))


def test_index_select_fills_a_tensor(array: Any, content: Any) -> None:
    rows = torch.tensor(ROWS[0])
    out = torch.empty(3, 7, device=array.device)
    assert torch.index_select(array, 0, rows, out=out) is out
    assert torch.equal(out.cpu(), content[rows])
    empty = torch.empty(0, device=array.device)
    torch.index_select(array, 0, rows, out=empty)
    assert torch.equal(empty.cpu(), content[rows])
    with pytest.raises(ValueError, match=r"out of float32 \(2, 7\): the rows are float32 \(3, 7\)"):
        torch.index_select(array, 0, rows, out=out[:2])


def test_compiled_functions_have_the_gather_in_their_graph(array: Any, content: Any) -> None:
    seen: list[Any] = []

    def keep_graph(module: Any, inputs: Any) -> Any:
        seen.extend(node.target for node in module.graph.nodes if node.op == "call_function")
        return module

    rows, mask = torch.tensor(ROWS), torch.zeros(100, dtype=torch.bool)
    mask[3] = mask[77] = True

    def work(rows: Any, mask: Any) -> Any:
        return array[rows].sum(1) + array.gather(rows)[:, 0] + F.embedding(rows[:, 0], array)

    expected = content[rows].sum(1) + content[rows][:, 0] + content[rows[:, 0]]
    compiled = torch.compile(work, backend=keep_graph, fullgraph=True)
    torch.testing.assert_close(compiled(rows, mask).cpu(), expected)
    gathers = [target for target in seen if "penstock.gather" in str(target)]
    assert len(gathers) == 3
    longer = torch.arange(40).reshape(20, 2)  # the graph holds for other shapes
    torch.testing.assert_close(
        compiled(longer, mask).cpu(), content[longer].sum(1) + content[longer][:, 0] + content[longer[:, 0]]
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_inductor_compiles_around_the_gather(array: Any, content: Any) -> None:
    rows = torch.tensor(ROWS)
    compiled = torch.compile(lambda rows: (array[rows] * 2 + 1).relu().sum(0), fullgraph=True)
    torch.testing.assert_close(compiled(rows).cpu(), (content[rows] * 2 + 1).relu().sum(0))


def test_masks_are_compiled_too(array: Any, content: Any) -> None:
    mask = torch.zeros(100, dtype=torch.bool)
    mask[3] = mask[77] = True
    compiled = torch.compile(lambda mask: array[mask] + 1, backend="eager")
    assert torch.equal(compiled(mask).cpu(), content[mask] + 1)


def test_the_operator_is_as_torch_wants_it(array: Any) -> None:
    torch.library.opcheck(torch.ops.penstock.gather, (torch.tensor(ROWS), array._name))
    torch.library.opcheck(torch.ops.penstock.gather, (torch.tensor(ROWS), array._name, False))
    torch.library.opcheck(torch.ops.penstock.gather, (torch.tensor([], dtype=torch.int32), array._name))


def test_an_operator_outlives_no_array(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "array.npy", np.zeros((3, 3), np.float32))
    array = penstock.open(tmp_path / "array.npy", placement="host", device=device)
    name = array._name
    array.close()
    with pytest.raises(ValueError, match="it is closed"):
        torch.ops.penstock.gather(torch.tensor([1]), name)
    del array
    gc.collect()
    with pytest.raises(ValueError, match="is gone"):
        torch.ops.penstock.gather(torch.tensor([1]), name)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_takes_whole_batches(array: Any, content: Any, device: str, workers: int) -> None:
    if workers and device == "cuda":
        pytest.skip("CUDA does not survive a fork: test_a_loader_of_forked_workers_says_what_to_do")
    loader = torch.utils.data.DataLoader(array, batch_size=32, num_workers=workers)
    taken = list(loader)
    assert [len(batch) for batch in taken] == [32, 32, 32, 4]
    assert torch.equal(torch.cat(taken).cpu(), content)


class Labelled(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
    """As users write them: rows one by one, beside something else."""

    def __init__(self, array: Any) -> None:
        self.array, self.labels = array, torch.arange(len(array))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, row: int) -> Any:
        return self.array[row], self.labels[row]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_open_the_array_of_a_dataset(array: Any, content: Any, device: str, start: str) -> None:
    if device == "cuda":
        pytest.skip("results on a GPU are for one process: test_a_loader_of_forked_workers_says_what_to_do")
    loader = torch.utils.data.DataLoader(
        Labelled(array), batch_size=32, shuffle=True, num_workers=2, multiprocessing_context=start
    )
    rows, labels = (torch.cat(parts) for parts in zip(*loader, strict=True))
    assert torch.equal(rows, content[labels])
    assert sorted(labels.tolist()) == list(range(100))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_of_what_is_written_to_say_what_to_do(tmp_path: Path) -> None:
    table = penstock.empty(tmp_path / "table.npy", (64, 4), "float32", device="cpu")
    loader = torch.utils.data.DataLoader(table, batch_size=32, num_workers=1)
    with pytest.raises(ValueError, match=r"forked from the one that writes to it, .*: flush there, and open"):
        next(iter(loader))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_loader_of_forked_workers_says_what_to_do(array: Any, device: str) -> None:
    if device == "cpu":
        pytest.skip("on the CPU forked workers read: test_a_loader_takes_whole_batches")
    loader = torch.utils.data.DataLoader(array, batch_size=32, num_workers=1)
    with pytest.raises(ValueError, match="start workers with 'spawn'"):
        next(iter(loader))


# The unified tensor: any operator takes it in place.

TAKE_ROWS = torch.tensor([3, 97, 3, 50])
OPERATORS: dict[str, Any] = {
    "index_select": lambda t, i: torch.index_select(t, 0, i),
    "getitem": lambda t, i: t[i],
    "take": lambda t, i: torch.take(t, i),
    "gather": lambda t, i: torch.gather(t, 0, i[:, None].expand(-1, t.shape[1])),
    "embedding": lambda t, i: F.embedding(i, t),
    "embedding_bag": lambda t, i: F.embedding_bag(i[None], t, mode="sum"),
    "masked_select": lambda t, i: torch.masked_select(t, t > 0),
    "slice": lambda t, i: t[10:90:7],
    "sum": lambda t, i: t.sum(0),
    "mean": lambda t, i: t.mean(1),
    "amax": lambda t, i: t.amax(0),
    "argmin": lambda t, i: t.argmin(1),
    "var": lambda t, i: t.var(0),
    "norm": lambda t, i: torch.linalg.vector_norm(t, dim=1),
    "cumsum": lambda t, i: t.cumsum(0),
    "sort": lambda t, i: t.sort(0).values,
    "topk": lambda t, i: t.topk(5, 0).values,
    "matmul": lambda t, i: t @ t.new_ones(7, 3),
    "einsum": lambda t, i: torch.einsum("ij,ij->i", t, t),
    "linear": lambda t, i: F.linear(t, t.new_ones(2, 7)),
    "relu": lambda t, i: torch.relu(t),
    "sigmoid": lambda t, i: torch.sigmoid(t),
    "softmax": lambda t, i: t.softmax(1),
    "layer_norm": lambda t, i: F.layer_norm(t, (7,)),
    "add": lambda t, i: t + 1,
    "mul": lambda t, i: t * t,
    "where": lambda t, i: torch.where(t > 0, t, 0),
    "cat": lambda t, i: torch.cat([t, t]),
    "transpose": lambda t, i: t.t().contiguous(),
    "clone": lambda t, i: t.clone(),
    "to": lambda t, i: t.to(torch.float64),
    "isnan": lambda t, i: torch.isnan(t).any(),
    "unique": lambda t, i: torch.unique(t[:, 0]),
    "cdist": lambda t, i: torch.cdist(t[:5], t[5:9]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_any_operator_takes_the_unified_tensor(tmp_path: Path, content: Any, device: str, name: str) -> None:
    np.save(tmp_path / "array.npy", content.numpy())
    with penstock.open(tmp_path / "array.npy", placement="host", device=device) as array:
        unified = array.tensor()
        assert unified.device.type == device
        taken = OPERATORS[name](unified, TAKE_ROWS.to(unified.device))
        torch.testing.assert_close(taken.cpu(), OPERATORS[name](content, TAKE_ROWS))
    assert len(OPERATORS) >= 30


@pytest.mark.parametrize("device", DEVICES)
def test_the_device_is_that_of_its_results(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 7), np.float32))
    with penstock.open(tmp_path / "a.npy", device=device) as array:
        assert isinstance(array.device, torch.device)
        assert array.device == array[[0]].device
        assert torch.empty(1, device=array.device).device == array.device
        assert isinstance(array.device_name, str)

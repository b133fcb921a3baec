"""Compiled functions: what a graph has of arrays, and what it leaves out, give what they give otherwise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import penstock
import pytest
from places import small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402

F = torch.nn.functional
pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # torch's compilers have words of their own for each machine

ROWS, WIDTH = 60, 4


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def table(path: Path, device: str, placement: str = "storage", **how: Any) -> penstock.Array:
    np.save(path, np.random.default_rng(2).standard_normal((ROWS, WIDTH)).astype(np.float32))
    return penstock.open(path, placement=placement, device=device, **small_cache(placement), **how)


TRACED: dict[str, Callable[[Any, Any], Any]] = {
    "tensor": lambda a, rows: a[rows],
    "32 bits": lambda a, rows: a[rows.int()],
    "gather": lambda a, rows: a.gather(rows),
    "as it is": lambda a, rows: a.gather(rows, negative_indices=False),
    "F.embedding": lambda a, rows: F.embedding(rows, a, padding_idx=3),
    "torch.embedding": lambda a, rows: torch.embedding(a, rows),
    "F.embedding_bag": lambda a, rows: F.embedding_bag(rows, a),
    "padded": lambda a, rows: F.embedding_bag(rows, a, padding_idx=3),
    "offsets": lambda a, rows: F.embedding_bag(
        rows.reshape(-1), a, torch.tensor([0, 2, 6]), include_last_offset=True
    ),
    "index_select": lambda a, rows: torch.index_select(a, 0, rows[0]),
}


@pytest.mark.parametrize("name", TRACED)
def test_rows_by_tensors_are_in_the_graph(tmp_path: Path, device: str, name: str) -> None:
    if name == "index_select" and not isinstance(torch.index_select, BuiltinFunctionType):
        pytest.skip("another library, such as PyG, has wrapped torch.index_select, which no graph looks into")
    array = table(tmp_path / "array.npy", device)
    take, rows = TRACED[name], torch.tensor([[1, 59, 3], [3, 3, 0]])
    compiled = torch.compile(lambda rows: take(array, rows) * 2, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(rows), take(array, rows) * 2)
    if name not in ("tensor", "32 bits", "gather"):
        rows[0, 1] = -1
        with pytest.raises(IndexError, match="index -1 at position"):
            compiled(rows)


MASK = np.arange(ROWS) % 7 == 0
LEFT_OUT: dict[str, Callable[[Any, Any], Any]] = {
    "integer": lambda a, rows: a[7] + a[-1],
    "slice": lambda a, rows: a[3:9:2],
    "mask": lambda a, rows: a[MASK],
    "list": lambda a, rows: a[[3, -1, 3]],
    "array": lambda a, rows: a[np.array([[3], [5]])],
    "each": lambda a, rows: sum(row for row in a),
    "batch": lambda a, rows: torch.stack(a.__getitems__([3, 5])),
    "list to gather": lambda a, rows: a.gather([3, 5]),
    "out": lambda a, rows: a.gather(rows, out=torch.empty(2, 3, WIDTH, device=a.device)),
    "order": lambda a, rows: a.gather(rows, order="as-asked"),
    "gather_async": lambda a, rows: a.gather_async(rows).wait(),
    "gather_all": lambda a, rows: torch.cat(penstock.gather_all([(a, rows), (a, [3])])[:1]),
    "prefetch": lambda a, rows: (a.prefetch(rows), a[rows])[1],
    "prefetch ahead": lambda a, rows: (a.prefetch(rows, wait=False), a[rows])[1],
    "scatter": lambda a, rows: (a.scatter(rows, torch.ones(2, 3, WIDTH)), a[rows])[1],
    "store": lambda a, rows: (a.__setitem__(slice(2, 5), torch.ones(WIDTH)), a[0:7])[1],
    "flush": lambda a, rows: (a.flush(), a[rows])[1],
    "check_replays": lambda a, rows: (a.check_replays(), a[rows])[1],
    "stats": lambda a, rows: a[rows] + float("hits" in a.stats()),
    "about it": lambda a, rows: a[rows] + len(a) + a.ndim + a.size(1) + a.nbytes + len(repr(a)),
    "pickle": lambda a, rows: a[rows] + a.__reduce__()[1][0]["shape"][0],
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_whatever_is_not_in_the_graph_breaks_it(tmp_path: Path, device: str, name: str) -> None:
    array = table(tmp_path / "array.npy", device, writable=True)
    call, rows = LEFT_OUT[name], torch.tensor([[1, 59, 3], [3, 3, 0]])

    def work(rows: Any) -> Any:
        before = (rows * 2).sum()
        return call(array, rows) + before.to(array.device)

    compiled = torch.compile(work, backend="aot_eager")
    assert torch.equal(compiled(rows), work(rows))
    array.close()
    with pytest.raises(ValueError, match="it is closed: open it again"):
        torch.compile(lambda: array[7], backend="aot_eager")()


FIRST = """
import sys, penstock, torch
array = penstock.open(sys.argv[1], placement="host", device="cpu")
assert torch.equal(array[torch.tensor([3])], array[3:4])
assert "torch._dynamo" not in sys.modules, "which takes seconds to load"
rows = torch.tensor([1, 5])
compiled = torch.compile(lambda rows: array[3:5] + rows.sum(), backend="eager")
assert torch.equal(compiled(rows), array[3:5] + 6)
compiled = torch.compile(lambda rows: array.tensor()[rows] + 1, backend="eager")
assert torch.equal(compiled(rows), array[rows] + 1)
"""


def test_the_compiler_is_loaded_by_those_who_compile(tmp_path: Path) -> None:
    table(tmp_path / "array.npy", "cpu").close()
    ran = subprocess.run(
        [sys.executable, "-c", FIRST, tmp_path / "array.npy"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


WHOLE: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda a: a.tensor() + 1,
    "function": lambda a: torch.relu(a),
    "operator": lambda a: 2 - a * a,
    "beside": lambda a: torch.ones(ROWS, WIDTH, device=a.device) + a,
    "turned": lambda a: torch.ones(3, ROWS, device=a.device) @ a,
    "numpy": lambda a: torch.tensor(float(a.numpy()[3, 2]) + float(np.array(a)[5, 1])),
    "functions of NumPy": lambda a: torch.from_numpy(np.add(np.concatenate([a, a]), 1)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_arrays_are_compiled_around(tmp_path: Path, device: str, name: str) -> None:
    array = table(tmp_path / "array.npy", device, "host", writable=device == "cpu")
    if name == "numpy" and not array.writable:
        pytest.skip("torch.compile takes no NumPy views that are read-only, as those of mapped files are")
    compiled = torch.compile(WHOLE[name], backend="aot_eager")
    torch.testing.assert_close(compiled(array), WHOLE[name](array), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "RowWiseAdam"])
@pytest.mark.parametrize("bags", [False, True])
def test_a_step_of_training_may_be_compiled_as_a_whole(
    tmp_path: Path, device: str, kind: str, bags: bool
) -> None:
    """Forward and backward as one graph each; the optimizer breaks them."""
    rows, results = torch.tensor([[1, 59, 3], [3, 3, 0]]), []
    for compiled in (False, True):
        torch.manual_seed(1)
        how: dict[str, Any] = {"path": tmp_path / f"{compiled}.npy", "device": device, "padding_idx": 3}
        ours = (penstock.nn.EmbeddingBag if bags else penstock.nn.Embedding)(ROWS, WIDTH, **how)
        optimizer = getattr(penstock.optim, kind)(ours, lr=0.1)

        def step(rows: Any, ours: Any = ours, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = ours(rows).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = torch.compile(step, backend="aot_eager") if compiled else step
        losses = [run(rows) for _ in range(3)]
        gradient = torch.compile(lambda ours=ours: ours.gradient(), backend="aot_eager")()
        results.append([*losses, gradient.to_dense(), ours.array.gather(torch.arange(ROWS))])
        ours.array.close()
        optimizer.close()
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)  # a compiler may sum in another order


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_bags_and_their_backward_passes_are_one_graph_each(tmp_path: Path, device: str, backend: str) -> None:
    array = table(tmp_path / "array.npy", device, writable=True)
    rows, weights = torch.tensor([[1, 59, 3], [3, 3, 0]]), torch.rand(2, 3)
    ours = penstock.nn.EmbeddingBag.from_pretrained(array, freeze=False, padding_idx=3, mode="sum")
    compiled = torch.compile(
        lambda rows, weights: ours(rows, per_sample_weights=weights).square().sum(),
        backend=backend,
        fullgraph=True,
    )
    compiled(rows, weights).backward()
    found: Any = ours.gradient()
    ours.zero_grad()
    ours(rows, per_sample_weights=weights).square().sum().backward()
    expected: Any = ours.gradient()
    torch.testing.assert_close(found.to_dense(), expected.to_dense())


BASIC: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda a, rows: a[3:9:2] + a[-4:-1],
    "backwards": lambda a, rows: a[50:3:-7],
    "all": lambda a, rows: a[:],
    "integer": lambda a, rows: a[7] + a[-1],
    "slice to gather": lambda a, rows: a.gather(slice(3, 7)),
}


@pytest.mark.parametrize("name", BASIC)
def test_slices_and_integers_are_in_the_graph(tmp_path: Path, device: str, name: str) -> None:
    array = table(tmp_path / "array.npy", device)
    take = BASIC[name]
    compiled = torch.compile(lambda: take(array, None) * 2, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(), take(array, None) * 2)
    with pytest.raises(IndexError, match="index 60"):
        torch.compile(lambda: array[60] * 2, backend="aot_eager", fullgraph=True)()


ELEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "pairs": lambda a, rows: a[rows, 2],
    "columns": lambda a, rows: a[:, rows[0] % WIDTH],
    "box": lambda a, rows: a[3:9, 1:3],
    "all": lambda a, rows: a[...] + a[()],
    "store": lambda a, rows: (a.__setitem__((slice(2, 5), 1), 7.0), a[..., 1])[1],
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_break_the_graph_and_are_the_same(tmp_path: Path, device: str, name: str) -> None:
    array = table(tmp_path / "array.npy", device, writable=True)
    take, rows = ELEMENTS[name], torch.tensor([[1, 59, 3], [3, 3, 0]])
    compiled = torch.compile(lambda rows: take(array, rows) * 2, backend="aot_eager")
    assert torch.equal(compiled(rows), take(array, rows) * 2)

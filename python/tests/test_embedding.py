"""Tables that are trained through the write path, against those of torch.nn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from leaks import check_leaves_nothing
from places import check_same
from trained_tables import ROWS, WIDTH, batch, weights_of

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch's own tables


def twins(table: Any, padding: int | None = None) -> tuple[Any, Any]:
    """The same table here and in torch."""
    theirs = torch.nn.Embedding(ROWS, WIDTH, padding_idx=padding, sparse=True, _weight=weights_of(table))
    return penstock.nn.Embedding.from_pretrained(table, freeze=False, padding_idx=padding), theirs


def dense_gradient(table: Any) -> Any:
    return table.gradient().to_dense().cpu()


@pytest.mark.parametrize("padding", [None, 0, -3])
def test_gradients_are_those_of_torch_bit_for_bit(table: Any, padding: int | None) -> None:
    ours, theirs = twins(table, padding)
    assert ours.gradient() is None
    for k in range(3):  # gradients add up until they are forgotten
        rows = batch(k)
        taken, expected = ours(rows), theirs(rows)
        assert torch.equal(taken.cpu(), expected)
        weight = torch.randn(16, 5, WIDTH, generator=torch.Generator().manual_seed(k))
        (taken * weight.to(taken.device)).sum().backward()
        (expected * weight).sum().backward()
        ours_now, theirs_now = ours.gradient().cpu(), theirs.weight.grad.coalesce()
        assert torch.equal(ours_now.indices(), theirs_now.indices())
        if k == 0:
            check_same(ours_now.values(), theirs_now.values(), table.on_gpu)
        else:  # torch merges the lists of two passes before it adds up a row's gradients: in another order
            torch.testing.assert_close(ours_now.values(), theirs_now.values(), rtol=1e-5, atol=1e-5)
    ours.zero_grad()
    assert ours.gradient() is None


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_bags_and_their_gradients_are_those_of_torch(
    table: Any, mode: str, padding: int | None, weighted: bool
) -> None:
    if weighted and mode != "sum":
        pytest.skip("torch weighs sums alone")
    sparse = mode != "max"  # which torch has no sparse gradients of
    theirs = torch.nn.EmbeddingBag(
        ROWS, WIDTH, mode=mode, sparse=sparse, padding_idx=padding, _weight=weights_of(table)
    )
    ours = penstock.nn.EmbeddingBag.from_pretrained(table, freeze=False, padding_idx=padding, mode=mode)
    rows, offsets = batch(1, (60,)), torch.tensor([0, 7, 7, 30, 59])
    rows[3] = rows[20] = 7
    ours_weights = torch.rand(60, requires_grad=True) if weighted else None
    theirs_weights = ours_weights.detach().clone().requires_grad_() if ours_weights is not None else None
    taken = ours(rows, offsets, per_sample_weights=ours_weights)
    expected = theirs(rows, offsets, per_sample_weights=theirs_weights)
    check_same(taken, expected, table.on_gpu)
    (taken**2).sum().backward()
    (expected**2).sum().backward()
    gradient = theirs.weight.grad.coalesce().to_dense() if sparse else theirs.weight.grad
    check_same(dense_gradient(ours), gradient, table.on_gpu)
    if ours_weights is not None and theirs_weights is not None:
        check_same(ours_weights.grad, theirs_weights.grad, table.on_gpu)


def asked(table: Any, call: Any, *given: Any) -> None:
    """A GPU tells later of what is wrong with the rows of a step."""
    call(*given)
    table.check_errors()


def test_rows_are_not_counted_from_the_end(table: Any) -> None:
    where = r"position \(1, 1\) is out of range: it has 200 rows"
    rows = torch.tensor([[5, 199, 5], [0, -1, 98]])
    ours = penstock.nn.Embedding.from_pretrained(table, freeze=False, padding_idx=-1)
    bags = penstock.nn.EmbeddingBag.from_pretrained(table, freeze=False)
    padded = penstock.nn.EmbeddingBag.from_pretrained(table, freeze=False, padding_idx=-1)
    for call in (ours, bags):
        for kind in (torch.int64, torch.int32):
            with pytest.raises(IndexError, match=rf"index -1 at {where}"):
                asked(table, call, rows.to(kind))
    with pytest.raises(IndexError, match=r"index -1 at position 4 is out of range"):
        asked(table, padded, rows)  # its padding is row 199
    with pytest.raises(IndexError, match=r"index 200 at position 2 is out of range"):
        asked(table, padded, torch.tensor([199, 199, 200, 3]), torch.tensor([0]))
    with torch.no_grad(), pytest.raises(IndexError, match=rf"index -1 at {where}"):
        ours(rows)
    assert not ours.has_gradient


def test_a_step_tells_of_rows_out_of_range_before_it_changes_a_table(table: Any) -> None:
    before = weights_of(table)
    ours = penstock.nn.Embedding.from_pretrained(table, freeze=False)
    optimizer = penstock.optim.SGD(ours, lr=1)

    def step() -> None:
        ours(torch.tensor([3, ROWS, 5])).sum().backward()
        optimizer.step()

    with pytest.raises(IndexError, match=r"gather from .* index 200 at position 1"):
        step()
    assert torch.equal(weights_of(table), before)
    optimizer.zero_grad()
    ours(torch.tensor([3])).sum().backward()
    with pytest.raises(IndexError, match=r"index 201 at position 0"):
        (ours(torch.tensor([ROWS + 1])), ours.gradient())
    optimizer.step()
    assert torch.equal(weights_of(table)[3], before[3] - 1)


def test_functions_are_transformed_with_tables_inside(table: Any) -> None:
    ours = penstock.nn.Embedding.from_pretrained(table, freeze=True)
    scale, rows = torch.ones(WIDTH, device=table.device), torch.tensor([1, 4])
    gradient = torch.func.grad(lambda by: (ours(rows) * by).sum())(scale)
    check_same(gradient, weights_of(table)[rows].sum(0), table.on_gpu)


def test_padding_is_left_out_of_bags_of_any_kind(table: Any) -> None:
    """An empty bag, one of padding alone, and no rows at all."""
    for padding in (7, -193):
        theirs = torch.nn.EmbeddingBag(
            ROWS, WIDTH, padding_idx=padding, include_last_offset=True, _weight=weights_of(table)
        )
        ours = penstock.nn.EmbeddingBag.from_pretrained(
            table, freeze=False, padding_idx=padding, include_last_offset=True
        )
        assert ours.padding_idx == 7
        for rows, offsets in [([7, 7, 3, 7, 4], [0, 2, 2, 5]), ([], [0, 0]), ([7], [0, 1])]:
            given = torch.tensor(rows, dtype=torch.int64), torch.tensor(offsets)
            taken, expected = ours(*given), theirs(*given)
            assert torch.equal(taken.cpu(), expected)
            taken.sum().backward()
            expected.sum().backward()
        assert torch.equal(dense_gradient(ours), theirs.weight.grad)
        gradient: Any = ours.gradient()
        assert 7 not in gradient.indices()


def _row_wise_adam(weight: Any, lr: float, eps: float) -> Any:
    """The formulas of FBGEMM's partial row-wise Adam, over the rows that have a gradient."""
    moments, squares, steps = torch.zeros_like(weight), torch.zeros(len(weight)), [0]

    def step(gradient: Any) -> None:
        rows, values = gradient.indices()[0], gradient.values()
        steps[0] += 1
        moments[rows] = 0.9 * moments[rows] + 0.1 * values
        squares[rows] = 0.999 * squares[rows] + 0.001 * values.square().mean(1)
        root = (squares[rows] / (1 - 0.999 ** steps[0])).sqrt()
        with torch.no_grad():
            weight[rows] -= lr * moments[rows] / (1 - 0.9 ** steps[0]) / (root + eps)[:, None]

    return step


def _row_wise(weight: Any, lr: float, eps: float) -> Any:
    sums = torch.zeros(len(weight))

    def step(gradient: Any) -> None:
        rows, values = gradient.indices()[0], gradient.values()
        sums[rows] += values.square().mean(1)
        with torch.no_grad():
            weight[rows] = weight[rows].add_(values / (sums[rows].sqrt() + eps)[:, None], alpha=-lr)

    return step


@pytest.mark.parametrize("kind", ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "RowWiseAdam"])
def test_training_goes_as_in_torch(table: Any, kind: str) -> None:
    ours, theirs = twins(table, padding=0)
    mine = getattr(penstock.optim, kind)(ours, lr=0.1)
    if kind == "RowWiseAdagrad":
        reference = _row_wise(theirs.weight, 0.1, mine.defaults["eps"])
    elif kind == "RowWiseAdam":
        reference = _row_wise_adam(theirs.weight, 0.1, mine.defaults["eps"])
    else:
        optimizer = getattr(torch.optim, kind)(theirs.parameters(), lr=0.1)
        reference = lambda gradient: optimizer.step()  # noqa: E731
    losses = []
    for k in range(12):
        mine.zero_grad()
        theirs.zero_grad()
        loss = (ours(batch(k)) - 1).square().mean()
        loss.backward()
        (theirs(batch(k)) - 1).square().mean().backward()
        mine.step()
        reference(theirs.weight.grad.coalesce())
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    if kind in ("SGD", "RowWiseAdam"):  # added in no order; bias corrected at another place
        torch.testing.assert_close(weights_of(table), theirs.weight.detach(), rtol=1e-5, atol=1e-6)
    else:
        check_same(weights_of(table), theirs.weight.detach(), table.on_gpu)


@pytest.mark.filterwarnings("ignore")  # torch's compilers have words of their own for each machine
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_training_is_training(table: Any, backend: str) -> None:
    ours, theirs = twins(table)

    def loss(table: Any, rows: Any) -> Any:
        return (table(rows) - 1).square().mean() + table(rows).sum() + table(rows).sum()

    step = torch.compile(lambda rows: loss(ours, rows), backend=backend, fullgraph=True)
    step(batch(1)).backward()
    loss(theirs, batch(1)).backward()
    torch.testing.assert_close(dense_gradient(ours), theirs.weight.grad.to_dense())


def test_gradients_outlive_the_memory_that_they_came_in(table: Any) -> None:
    ours, theirs = twins(table)
    rows, gradient = batch(1), torch.randn(16, 5, WIDTH, device="cuda" if table.on_gpu else "cpu")
    theirs(rows.clone()).backward(gradient.cpu().clone())
    torch.ops.penstock.embedding_grad(ours._anchor.detach(), rows, gradient, torch.empty(1), ours._name)
    gradient.zero_()
    rows.zero_()
    check_same(dense_gradient(ours), theirs.weight.grad.coalesce().to_dense(), table.on_gpu)


def test_the_operators_are_as_torch_wants_them(table: Any) -> None:
    ours, _ = twins(table)
    torch.library.opcheck(torch.ops.penstock.embedding, (ours._anchor, batch(1), ours._name))
    gradient = torch.ones(16, 5, WIDTH, device="cuda" if table.on_gpu else "cpu")
    torch.library.opcheck(
        torch.ops.penstock.embedding_grad,
        (ours._anchor.detach(), batch(1), gradient, torch.empty(1), ours._name),
    )


def test_a_frozen_table_has_no_gradient(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "table.npy", np.ones((4, 3), np.float32))
    array = penstock.open(tmp_path / "table.npy", placement="host", device=device)
    frozen = penstock.nn.Embedding.from_pretrained(array)
    assert not frozen(torch.tensor([1])).requires_grad
    with pytest.raises(ValueError, match="read-only"):
        penstock.nn.Embedding.from_pretrained(array, freeze=False)
    with pytest.raises(ValueError, match=r"no penstock\.nn\.Embedding to train"):
        penstock.optim.SGD(frozen, lr=1)


def test_without_gradients_nothing_is_kept(table: Any) -> None:
    ours, _ = twins(table)
    with torch.no_grad():
        assert not ours(batch(1)).requires_grad
    taken = ours(batch(1))
    assert taken.requires_grad
    assert ours.gradient() is None
    taken.sum().backward()
    assert ours.gradient() is not None


def test_a_batch_ahead_is_in_the_cache(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "table.npy", np.ones((ROWS, 128), np.float32))
    array = penstock.open(
        tmp_path / "table.npy", placement="storage", writable=True, device=device, cache="1MiB"
    )
    ours = penstock.nn.Embedding.from_pretrained(array, freeze=False)
    ours.prefetch(batch(1))
    ours(batch(1))
    assert array.stats()["prefetches"] > 0
    assert array.stats()["misses"] <= 4, "prefetches are wishes: a few may find no frame in time"
    ours.prefetch(torch.tensor([3, ROWS]))
    with pytest.raises(IndexError, match=r"prefetch from .* index 200 at position 1"):
        ours.prefetch(batch(2))
    ours.prefetch(torch.tensor([ROWS]))
    array.scatter(torch.tensor([5]), torch.full((1, 128), 7.0))
    with pytest.raises(IndexError, match="prefetch from"):
        array.flush()
    assert np.load(tmp_path / "table.npy")[5, 0] == 7, "flushed all the same"
    ours.prefetch(torch.tensor([ROWS]))
    array.close()


def test_bad_tables_are_refused(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "numbers.npy", np.zeros((4, 3), np.int32))
    np.save(tmp_path / "flat.npy", np.zeros(4, np.float32))

    def take(name: str, **how: Any) -> Any:
        array = penstock.open(tmp_path / name, placement="storage", device=device, writable=True)
        return penstock.nn.Embedding.from_pretrained(array, **how)

    for kind in (penstock.nn.Embedding, penstock.nn.EmbeddingBag):
        with pytest.raises(
            TypeError, match=r"a table is a penstock.Array, not a Tensor: see penstock\.from_ten"
        ):
            kind.from_pretrained(torch.zeros(4, 3))
    with pytest.raises(ValueError, match="floating-point"):
        take("numbers.npy", freeze=False)
    with pytest.raises(ValueError, match="two dimensions"):
        take("flat.npy")
    with pytest.raises(ValueError, match="it holds int32, and the embedding is of float32: give dtype=int32"):
        penstock.nn.Embedding(4, 3, path=tmp_path / "numbers.npy", device=device)
    np.save(tmp_path / "small.npy", np.zeros((4, 3), np.float32))
    with pytest.raises(ValueError, match="has shape"):
        penstock.nn.Embedding(5, 3, path=tmp_path / "small.npy", device=device)
    with pytest.raises(ValueError, match="a table of int32"):
        penstock.nn.Embedding(5, 3, path=tmp_path / "new.npy", device=device, dtype=torch.int32)
    with pytest.raises(ValueError, match="placement"):
        penstock.nn.Embedding(5, 3, path=tmp_path / "new.npy", device=device, placement="tape")
    with pytest.raises(ValueError, match="a path or an array"):
        penstock.nn.Embedding(5, 3)
    with pytest.raises(ValueError, match="padding_idx 5"):
        penstock.nn.Embedding(5, 3, 5, path=tmp_path / "new.npy", device=device)
    with pytest.raises(ValueError, match="mode"):
        penstock.nn.EmbeddingBag(5, 3, "median", path=tmp_path / "new.npy", device=device)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flat.npy", "numbers.npy", "small.npy"]


def test_bad_calls_of_tables_leave_nothing_behind(tmp_path: Path) -> None:
    ours = penstock.nn.Embedding(8, 3, path=tmp_path / "table.npy", device="cpu")
    np.save(tmp_path / "numbers.npy", np.zeros((4, 3), np.int32))
    check_leaves_nothing(
        [
            lambda: ours(torch.tensor([8])),
            lambda: ours.array.prefetch(torch.tensor([-9])),
            lambda: ours.set_extra_state({"path": "elsewhere", "shape": (1, 2)}),
            lambda: penstock.nn.Embedding(9, 3, path=tmp_path / "table.npy", device="cpu", freeze=True),
            lambda: penstock.nn.Embedding(4, 3, path=tmp_path / "numbers.npy", device="cpu"),
            lambda: penstock.nn.Embedding(4, 3, path=tmp_path / "new.npy", device="cpu", placement="tape"),
            lambda: penstock.optim.Adagrad(ours, lr=-1),
        ]
    )

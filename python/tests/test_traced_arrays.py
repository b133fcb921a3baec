"""Functions that torch records or transforms: what they record gives the rows that it is called with, or is
refused in a sentence. The right values are rows of the same numbers by NumPy."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import penstock
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

F = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's tracers have words of their own for each release

CONTENT = np.random.default_rng(2).standard_normal((30, 4)).astype(np.float32)
SEEN, OTHER = torch.tensor([1, 2, 3]), torch.tensor([29, 0, 7])


@pytest.fixture
def array(tmp_path: Path) -> Any:
    np.save(tmp_path / "t.npy", CONTENT)
    return penstock.open(tmp_path / "t.npy", placement="storage", writable=True, device="cpu", cache="1MiB")


TAKES: dict[str, Callable[[Any, Any], Any]] = {
    "a[rows]": lambda a, rows: a[rows] * 1,
    "32 bits": lambda a, rows: a[rows.int()] * 1,
    "gather": lambda a, rows: a.gather(rows, negative_indices=False) * 1,
    "index_select": lambda a, rows: torch.index_select(a, 0, rows) * 1,
    "F.embedding": lambda a, rows: F.embedding(rows, a) * 1,
    "torch.embedding": lambda a, rows: torch.embedding(a, rows) * 1,
    "frozen": lambda a, rows: penstock.nn.Embedding.from_pretrained(a)(rows) * 1,
    "bags": lambda a, rows: F.embedding_bag(rows[:, None], a, mode="sum") * 1,
    "offsets": lambda a, rows: F.embedding_bag(rows, a, torch.tensor([0, 1, 2]), mode="sum") * 1,
}
RECORDERS: dict[str, Callable[[Any], Any]] = {
    "torch.jit.trace": lambda work: torch.jit.trace(work, (SEEN,), check_trace=False),
    "make_fx": lambda work: make_fx(work)(SEEN),
    "make_fx fake": lambda work: make_fx(work, tracing_mode="fake")(SEEN),
    "make_fx symbolic": lambda work: make_fx(work, tracing_mode="symbolic")(SEEN),
    "make_fx pre-dispatch": lambda work: make_fx(work, pre_dispatch=True)(SEEN),
    "torch.compile": lambda work: torch.compile(work, backend="aot_eager", fullgraph=True),
    "torch.func.functionalize": torch.func.functionalize,
}


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("take", TAKES)
def test_what_is_recorded_takes_other_rows(array: Any, take: str, recorder: str) -> None:
    torch._dynamo.reset()
    if take == "index_select" and not isinstance(torch.index_select, BuiltinFunctionType):
        pytest.skip("another library, such as PyG, has wrapped torch.index_select, which no graph looks into")
    if take == "frozen":
        frozen = penstock.nn.Embedding.from_pretrained(array)
        work: Callable[[Any], Any] = lambda rows: frozen(rows) * 1  # noqa: E731
    else:
        work = lambda rows: TAKES[take](array, rows)  # noqa: E731
    recorded = RECORDERS[recorder](work)
    for rows in (OTHER, SEEN):
        assert np.array_equal(recorded(rows).numpy(), CONTENT[rows.numpy()])
    array.scatter(torch.tensor([29]), torch.full((1, 4), 5.0))
    assert (recorded(OTHER)[0] == 5).all(), "nor are the numbers of the array constants"
    with pytest.raises((IndexError, RuntimeError), match="index 30 at position"):
        recorded(torch.tensor([1, 30, 1]))


def test_bags_are_traced_with_their_offsets(array: Any) -> None:
    def work(rows: Any, offsets: Any) -> Any:
        return F.embedding_bag(rows, array, offsets, mode="mean")

    given = torch.tensor([4, 5, 6, 7, 8]), torch.tensor([0, 4])
    small = SEEN, torch.tensor([0, 1])
    for recorded in (torch.jit.trace(work, small), make_fx(work)(*small)):
        small = OTHER, torch.tensor([0, 2])
        assert torch.equal(recorded(*small), work(*small))
        with pytest.raises((ValueError, RuntimeError), match="the offsets decrease"):
            recorded(OTHER, torch.tensor([2, 0])[[1, 0]] * torch.tensor([1, -1]))
    assert torch.equal(torch.jit.trace(work, given)(*given), work(*given))


@pytest.mark.parametrize("name", ["a[rows]", "gather", "index_select"])
def test_symbols_are_traced(array: Any, name: str) -> None:
    traced = torch.fx.symbolic_trace(lambda rows: TAKES[name](array, rows))
    assert np.array_equal(traced(OTHER).numpy(), CONTENT[OTHER.numpy()])
    with pytest.raises(TypeError, match=r"torch\.fx\.symbolic_trace of a function with .*t\.npy"):
        torch.fx.symbolic_trace(lambda rows: F.embedding(rows, array))


class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self, table: Any) -> None:
        super().__init__()
        self.table, self.head = table, torch.nn.Linear(4, 1)

    def forward(self, rows: Any) -> Any:
        return self.head(self.table(rows))


def test_models_are_traced_exported_and_scripted_or_refused(array: Any, tmp_path: Path) -> None:
    model, frozen = (
        Model(penstock.nn.Embedding.from_pretrained(array, freeze=freeze)) for freeze in (False, True)
    )
    for each in (model, frozen):
        expected = each(OTHER)
        for made in (
            torch.fx.symbolic_trace(each),
            make_fx(each)(SEEN),
            torch.export.export(each, (SEEN,)).module(),
            torch.export.export(each, (SEEN,), strict=False).module(),
        ):
            assert torch.equal(made(OTHER), expected)
        with pytest.raises(TypeError, match=r"torch\.jit\.script of Embedding over .*t\.npy: TorchScript"):
            torch.jit.script(each)
        with torch.no_grad():
            traced = torch.jit.trace(each, (SEEN,))
            assert torch.equal(traced(OTHER), expected)
    with pytest.raises(ValueError, match=r"torch\.jit\.trace of Embedding over .*t\.npy: .*no_grad\(\)"):
        torch.jit.trace(model, (SEEN,))
    saved = io.BytesIO()
    torch.jit.save(traced, saved)
    saved.seek(0)
    assert torch.equal(torch.jit.load(saved)(OTHER), expected)
    bags = penstock.nn.EmbeddingBag.from_pretrained(array, mode="sum")
    holder = torch.fx.symbolic_trace(Model(bags))
    assert torch.equal(holder(OTHER[:, None]), holder.head(bags(OTHER[:, None])))
    with pytest.raises(
        ValueError, match=r"torch\.fx\.symbolic_trace of EmbeddingBag over .*: trace a module"
    ):
        torch.fx.symbolic_trace(bags)


def test_what_is_traced_trains(array: Any) -> None:
    model = Model(penstock.nn.Embedding.from_pretrained(array, freeze=False))
    theirs = torch.nn.Embedding(30, 4, sparse=True, _weight=torch.from_numpy(CONTENT.copy()))
    head = model.head
    head(theirs(OTHER)).sum().backward()
    torch.fx.symbolic_trace(model)(OTHER).sum().backward()
    gradient: Any = model.table.gradient()
    assert torch.equal(gradient.to_dense(), theirs.weight.grad.to_dense())


def test_vmap_takes_batches_of_rows(array: Any) -> None:
    table = penstock.nn.Embedding.from_pretrained(array, freeze=False)
    rows = torch.tensor([[1, 2], [29, 0], [3, 3]])
    for take in (lambda r: array[r], array.gather, table):
        assert np.array_equal(torch.vmap(take)(rows).detach().numpy(), CONTENT[rows.numpy()])
        turned = torch.vmap(take, in_dims=1, out_dims=1)(rows).detach()
        assert np.array_equal(turned.numpy(), CONTENT[rows.numpy()])
    torch.vmap(lambda r: table(r).square().sum())(rows).sum().backward()
    theirs = torch.nn.Embedding(30, 4, sparse=True, _weight=torch.from_numpy(CONTENT.copy()))
    theirs(rows).square().sum().backward()
    gradient: Any = table.gradient()
    torch.testing.assert_close(gradient.to_dense(), theirs.weight.grad.to_dense())
    with pytest.raises(IndexError, match="index 30 at position"):
        torch.vmap(lambda r: array[r])(torch.tensor([[1], [30]]))


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "out": lambda a, rows: a.gather(rows, out=torch.empty(3, 4)),
    "order": lambda a, rows: a.gather(rows, order="as-asked"),
    "gather_async": lambda a, rows: a.gather_async(rows).wait(),
    "gather_all": lambda a, rows: penstock.gather_all([(a, rows)])[0],
    "prefetch": lambda a, rows: (a.prefetch(rows), rows * 1)[1],
    "scatter": lambda a, rows: (a.scatter(rows, torch.ones(3, 4)), rows * 1)[1],
    "store": lambda a, rows: (a.__setitem__(rows, 1.0), rows * 1)[1],
    "column": lambda a, rows: a[:, 2] + rows.sum(),
    "element": lambda a, rows: a[3, 1] + rows.sum(),
    "mask of elements": lambda a, rows: a[CONTENT > 3].sum() + rows,
}


@pytest.mark.parametrize("recorder", ["torch.jit.trace", "make_fx", "make_fx pre-dispatch"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_has_is_refused_and_not_recorded_as_a_constant(
    array: Any, name: str, recorder: str
) -> None:
    with pytest.raises(ValueError, match="records no such call: take rows by a tensor of integers") as caught:
        RECORDERS[recorder](lambda rows: REFUSED[name](array, rows))
    assert "\n" not in str(caught.value)
    assert np.array_equal(array.gather(torch.arange(30)).numpy(), CONTENT), "nothing was stored"


@pytest.mark.parametrize("recorder", ["torch.jit.trace", "make_fx", "make_fx pre-dispatch"])
def test_slices_and_single_rows_are_recorded_by_their_numbers(array: Any, recorder: str) -> None:
    def function(rows: Any) -> Any:
        return array[3:6] + array[-1] + array[rows]

    recorded = RECORDERS[recorder](function)
    for rows in (torch.tensor([1, 2, 3]), torch.tensor([29, 0, 7])):
        expected = CONTENT[3:6] + CONTENT[-1] + CONTENT[rows.numpy()]
        assert np.array_equal(recorded(rows).numpy(), expected)


def test_dispatch_modes_see_operators_and_change_nothing(array: Any) -> None:
    """Which profilers and counters of flops are."""
    from torch.utils.flop_counter import FlopCounterMode

    table = penstock.nn.Embedding.from_pretrained(array, freeze=False)
    optimizer = penstock.optim.SGD(table, lr=1)
    with FlopCounterMode(display=False):
        table(OTHER).sum().backward()
        optimizer.step()
        assert torch.equal(array.gather(OTHER, order="as-asked"), array[OTHER])
    expected = CONTENT.copy()
    expected[OTHER.numpy()] -= 1
    assert np.array_equal(array.gather(torch.arange(30)).numpy(), expected)


def test_tensors_without_numbers_are_refused(array: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.arange(3))
    for given in (fake, torch.arange(3, device="meta")):
        for call in (lambda rows: array.gather(rows, order="as-asked"), array.prefetch):
            with pytest.raises(ValueError, match="has no numbers here: take rows by"):
                call(given)
    with mode:
        assert array[fake].shape == (3, 4)
    with pytest.raises(ValueError, match="has no numbers here"):
        torch.vmap(lambda rows: (array.scatter(rows, torch.ones(4)), rows)[1])(torch.arange(3))

"""Optimizers of tables: what they keep, what of torch.optim they are, and which states they take."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from places import check_same

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch's own tables

ROWS, WIDTH = 60, 5
KINDS = ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "RowWiseAdam"]


def new_table(path: Path, device: str, **how: Any) -> Any:
    return penstock.nn.Embedding(ROWS, WIDTH, path=path, device=device, cache="1MiB", **how)


def in_memory(device: str, dtype: Any = torch.float32, seed: int = 1) -> Any:
    drawn = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    array = penstock.from_tensor(drawn.to(dtype), "host", device=device)
    return penstock.nn.Embedding.from_pretrained(array, freeze=False)


def twin_of(table: Any) -> Any:
    return torch.nn.Embedding(ROWS, WIDTH, sparse=True, _weight=weights_of(table))


def weights_of(table: Any) -> Any:
    return table.array.gather(torch.arange(ROWS)).cpu()


def batch(seed: int) -> Any:
    drawn = torch.rand(30, generator=torch.Generator().manual_seed(seed))
    return (drawn**2 * ROWS).long()


def loss_of(table: Any, seed: int) -> Any:
    return (table(batch(seed)).double() - 1).square().mean()


def train(table: Any, optimizer: Any, steps: range, scheduler: Any = None) -> None:
    for k in steps:
        optimizer.zero_grad()
        loss_of(table, k).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def make(kind: str, tables: Any, **rule: Any) -> Any:
    return getattr(penstock.optim, kind)(tables, **{"lr": 0.5, **rule})


# What is theirs on the disk


def test_sums_that_are_there_are_never_begun_anew(tmp_path: Path, device: str) -> None:
    table = new_table(tmp_path / "t.npy", device)
    np.save(tmp_path / "t.adagrad.npy", np.ones((2, 2)))
    before = weights_of(table)
    optimizer = make("Adagrad", table)
    loss_of(table, 1).backward()
    with pytest.raises(
        FileExistsError, match=r"t\.adagrad\.npy is there.* load the state .* or move the file"
    ):
        optimizer.step()
    assert torch.equal(weights_of(table), before), "nothing was changed"
    assert (np.load(tmp_path / "t.adagrad.npy") == np.ones((2, 2))).all()


def test_a_step_before_the_state_is_loaded_destroys_no_sums(tmp_path: Path, device: str) -> None:
    table = new_table(tmp_path / "t.npy", device)
    first = make("Adagrad", table)
    train(table, first, range(3))
    state = first.state_dict()
    first.close()
    sums = np.load(tmp_path / "t.adagrad.npy")
    second = make("Adagrad", table)
    with pytest.raises(FileExistsError, match="load the state"):
        train(table, second, range(1))
    second.load_state_dict(state)
    second.load_state_dict(state)  # over the file that is open by now
    assert (np.load(tmp_path / "t.adagrad.npy") == sums).all()
    train(table, second, range(1))
    second.close()
    now = np.load(tmp_path / "t.adagrad.npy")
    assert (now >= sums).all()
    assert (now > sums).any()
    train(table, second, range(1))  # it opens again what it closed
    assert float(second.state_dict()["tables"][0]["steps"]) == 5


def test_sums_that_are_nowhere_are_asked_for(tmp_path: Path, device: str) -> None:
    table = new_table(tmp_path / "t.npy", device)
    optimizer = make("Adagrad", table)
    train(table, optimizer, range(1))
    state = optimizer.state_dict()
    optimizer.close()
    (tmp_path / "t.adagrad.npy").unlink()
    with pytest.raises(FileNotFoundError, match="put that file of the checkpoint beside the table"):
        make("Adagrad", table).load_state_dict(state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["file", "memory"])
def test_tied_tables_are_one(tmp_path: Path, device: str, kind: str, where: str) -> None:
    first = new_table(tmp_path / "t.npy", device) if where == "file" else in_memory(device)
    second = penstock.nn.Embedding.from_pretrained(first.array, freeze=False)
    alone = in_memory(device)
    alone.array.scatter(torch.arange(ROWS), weights_of(first))
    ours, reference = make(kind, [first, second]), make(kind, alone)
    for k in range(3):
        ours.zero_grad(), reference.zero_grad()
        (loss_of(first, k) + loss_of(second, k + 9)).backward()
        (loss_of(alone, k) + loss_of(alone, k + 9)).backward()
        ours.step(), reference.step()
    check_same(weights_of(first), weights_of(alone), device == "cuda")
    state = ours.state_dict()
    assert len(state["tables"]) == 1
    ours.close()
    make(kind, [first, second]).load_state_dict(state)


# As optimizers of torch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["StepLR", "LambdaLR", "OneCycleLR"])
def test_schedulers_change_the_rate(device: str, kind: str, name: str) -> None:
    rules: dict[str, dict[str, Any]] = {
        "StepLR": {"step_size": 2, "gamma": 0.3},
        "LambdaLR": {"lr_lambda": lambda k: 1 / (1 + k)},
        "OneCycleLR": {"max_lr": 0.7, "total_steps": 9, "cycle_momentum": False},
    }
    how = rules[name]
    rates: list[float] = []
    tables = []
    for scheduled in (True, False):
        table = in_memory(device)
        optimizer = make(kind, table)
        assert isinstance(optimizer, torch.optim.Optimizer)
        if scheduled:
            scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, **how)
            for k in range(6):
                rates.append(optimizer.param_groups[0]["lr"])
                train(table, optimizer, range(k, k + 1), scheduler)
        else:
            for k in range(6):
                optimizer.param_groups[0]["lr"] = rates[k]
                train(table, optimizer, range(k, k + 1))
        tables.append(weights_of(table))
    assert len(set(rates)) > 2
    check_same(tables[0], tables[1], device == "cuda")


def test_groups_have_rules_of_their_own(device: str) -> None:
    slow, fast, late = in_memory(device, seed=1), in_memory(device, seed=2), in_memory(device, seed=3)
    theirs = [twin_of(table) for table in (slow, fast, late)]
    ours = penstock.optim.SGD([{"params": [slow], "lr": 0.1}, {"params": fast}], lr=1.0)
    ours.add_param_group({"params": late, "lr": 3.0})
    reference = torch.optim.SGD(
        [{"params": twin.parameters(), "lr": lr} for twin, lr in zip(theirs, (0.1, 1.0, 3.0), strict=True)]
    )
    for table, twin in zip((slow, fast, late), theirs, strict=True):
        loss_of(table, 1).backward()
        loss_of(twin, 1).backward()
    ours.step()
    reference.step()
    for table, twin in zip((slow, fast, late), theirs, strict=True):
        # What a row is to change by is added as often as the row was asked for, in no order.
        torch.testing.assert_close(weights_of(table), twin.weight.detach(), rtol=1e-6, atol=1e-6)
    other = penstock.optim.SGD([slow, fast, late], lr=1.0)
    with pytest.raises(ValueError, match="a state of 3 param_groups: this optimizer has 1"):
        other.load_state_dict(ours.state_dict())
    with pytest.raises(ValueError, match="a table is in two groups"):
        ours.add_param_group({"params": fast})
    mixed = penstock.optim.SGD([{"params": [slow, fast]}, {"params": late}], lr=1.0)
    other = penstock.optim.SGD([{"params": slow}, {"params": [fast, late]}], lr=1.0)
    with pytest.raises(ValueError, match=r"of tables \[0, 1\], here of \[0\]"):
        other.load_state_dict(mixed.state_dict())


@pytest.mark.parametrize("where", ["file", "memory"])
def test_adagrad_has_the_rules_of_torch(tmp_path: Path, device: str, where: str) -> None:
    rule = {"lr": 0.4, "lr_decay": 0.3, "initial_accumulator_value": 0.2, "eps": 1e-3}
    ours = new_table(tmp_path / "t.npy", device) if where == "file" else in_memory(device)
    theirs = twin_of(ours)
    optimizer = penstock.optim.Adagrad(ours, **rule)
    reference = torch.optim.Adagrad(theirs.parameters(), **rule)
    train(ours, optimizer, range(5))
    state = copy.deepcopy(optimizer.state_dict())
    optimizer.close()
    resumed = penstock.optim.Adagrad(ours, lr=9, eps=1)
    resumed.load_state_dict(state)
    assert {name: resumed.param_groups[0][name] for name in rule} == rule
    train(ours, resumed, range(5, 9))
    train(theirs, reference, range(9))
    check_same(weights_of(ours), theirs.weight.detach(), device == "cuda", near=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_closure_computes_the_gradients(device: str, kind: str) -> None:
    ours, same = in_memory(device), in_memory(device)
    optimizer, reference = make(kind, ours), make(kind, same)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = loss_of(ours, 4)
        loss.backward()
        return loss

    before = loss_of(ours, 4).detach()
    assert torch.equal(optimizer.step(closure).detach(), before)
    train(same, reference, range(4, 5))
    check_same(weights_of(ours), weights_of(same), device == "cuda")
    seen: list[Any] = []
    optimizer.register_step_post_hook(lambda *given: seen.append(given))
    assert optimizer.step() is None
    assert len(seen) == 1


def test_what_tables_cannot_have_is_refused(device: str) -> None:
    table = in_memory(device)
    for name in ("weight_decay", "momentum"):
        with pytest.raises(ValueError, match=f"{name} 0.1: .* leave it at 0"):
            penstock.optim.SGD(table, lr=1, **{name: 0.1})
    with pytest.raises(ValueError, match="weight_decay"):
        penstock.optim.Adagrad(table, weight_decay=0.1)
    for name in ("lr", "lr_decay", "initial_accumulator_value", "eps"):
        with pytest.raises(ValueError, match=f"{name} -1: give a number of at least 0"):
            penstock.optim.Adagrad(table, **{name: -1})
    with pytest.raises(ValueError, match="lr nan"):
        penstock.optim.SGD(table, lr=float("nan"))
    for given in (table.anchor, [table.anchor], [{"params": torch.nn.Linear(2, 2).parameters()}]):
        with pytest.raises(
            TypeError, match=r"takes modules, and finds the tables in them: not a (Tensor|Param)"
        ):
            penstock.optim.SGD(given, lr=1)
    optimizer = penstock.optim.SGD(table, lr=1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1, total_steps=5)
    before = weights_of(table)
    loss_of(table, 1).backward()
    with pytest.raises(ValueError, match=r"momentum 0\.95: .* leave it at 0"):
        optimizer.step()  # what the scheduler has set
    assert torch.equal(weights_of(table), before)
    scheduler.optimizer.param_groups[0]["momentum"] = 0
    optimizer.step()
    with pytest.raises(TypeError, match="SGD is not copied or pickled: save its state_dict"):
        copy.deepcopy(optimizer)
    with pytest.raises(ValueError, match=r"no penstock\.nn\.Embedding to train"):
        penstock.optim.SGD([], lr=1)


@pytest.mark.filterwarnings("ignore")  # torch's own, where a scaler has no GPU
def test_a_scaler_is_refused(device: str) -> None:
    table = in_memory(device)
    optimizer, before = penstock.optim.SGD(table, lr=1), weights_of(table)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(loss_of(table, 1)).backward()
    with pytest.raises(ValueError, match="a GradScaler sees no gradients of tables"):
        scaler.step(optimizer)
    assert torch.equal(weights_of(table), before)
    optimizer.step()
    assert not torch.equal(weights_of(table), before)


# Which states they take


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_others_are_refused(tmp_path: Path, device: str, kind: str) -> None:
    table = new_table(tmp_path / "t.npy", device)
    optimizer = make(kind, table)
    train(table, optimizer, range(1))
    state = optimizer.state_dict()

    def refused(match: str, error: type[Exception] = ValueError, **changed: Any) -> None:
        before = copy.deepcopy(optimizer.state_dict())
        with pytest.raises(error, match=match):
            optimizer.load_state_dict({**copy.deepcopy(state), **changed})
        assert str(optimizer.state_dict()) == str(before), "nothing was changed"

    refused("the state of Adam: this optimizer is", optimizer="Adam")
    refused("a state of 2 tables: this optimizer has 1", tables=state["tables"] * 2)
    refused("a state of 0 param_groups", param_groups=[])
    group = state["param_groups"][0]
    refused("has no 'lr'", param_groups=[{k: v for k, v in group.items() if k != "lr"}])
    refused("lr -1", param_groups=[{**group, "lr": -1}])
    for name in state:
        with pytest.raises(ValueError, match=f"this one has no '{name}'"):
            optimizer.load_state_dict({k: v for k, v in state.items() if k != name})
    if kind == "Adagrad":
        (one,) = state["tables"]
        refused("has no 'steps'", tables=[{}])
        refused("an array, with a path", tables=[{"steps": 1, "sums": {"path": "x"}}])
        for wrong in ({"shape": (30, 5)}, {"dtype": "float16"}):
            refused("sums of .* it takes those of", tables=[{"steps": 1, "sums": {**one["sums"], **wrong}}])
        for sums in (torch.zeros(ROWS), torch.zeros(ROWS, WIDTH, dtype=torch.float16)):
            refused("sums of .* it takes those of", tables=[{"steps": 1, "sums": sums}])
        refused("has no 'sums'", tables=[{"steps": 1, "sums": 3}])
    if kind == "RowWiseAdagrad":
        refused("has no 'sums'", tables=[{}])
        for sums in (torch.zeros(ROWS + 1), torch.zeros(ROWS, dtype=torch.float64)):
            refused("sums of .* it takes those of", tables=[{"sums": sums}])


def test_sums_are_as_exact_as_they_must_be(tmp_path: Path, device: str) -> None:
    for dtype, kind in ((torch.float16, torch.float32), (torch.float64, torch.float64)):
        table = in_memory(device, dtype)
        for name in ("Adagrad", "RowWiseAdagrad"):
            optimizer = make(name, table, lr=0.01)
            table(torch.tensor([1, 2])).sum().mul(1e-4).backward()
            optimizer.step()
            (state,) = optimizer.state_dict()["tables"]
            assert state["sums"].dtype == kind
            optimizer.zero_grad()
            table(torch.tensor([1])).sum().mul(0.0).backward()
            optimizer.step()
            assert bool(weights_of(table).isfinite().all())
            optimizer.load_state_dict(optimizer.state_dict())


def test_tables_of_sixteen_bits_take_small_gradients(device: str) -> None:
    """Torch's sums of 16 bits lose eps and the squares: 1e-4 gives -inf there, 0 gives nan."""
    table = in_memory(device, torch.float16)
    before = weights_of(table).float()
    optimizer = penstock.optim.Adagrad(table, lr=0.25)
    weights = torch.tensor([0.0, 1e-4, 1e-6, 1.0, -1e-4], device=table.array.device)
    (table(torch.tensor([3])) * weights).sum().backward()
    optimizer.step()
    moved = (before - weights_of(table).float())[3]
    near = 2**-10  # half of what tells apart two numbers of 16 bits, from 2 to 4
    torch.testing.assert_close(moved, torch.tensor([0.0, 0.25, 0.25, 0.25, -0.25]), rtol=0, atol=near)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_adam_of_sixteen_bits_is_nearer_to_the_exact_one_than_torchs(device: str, dtype: Any) -> None:
    """The exact one is torch's of the same table and gradients in float64. Torch's moments have 16 bits for a
    table of 16, in which eps may be zero, and gradients that are near it give infinity."""
    ours = in_memory(device, dtype)
    plain, exact = twin_of(ours), twin_of(ours).double()
    rule: dict[str, Any] = {"lr": 0.1, "eps": 1e-4 if dtype == torch.float16 else 1e-8}
    optimizers = [penstock.optim.SparseAdam(ours, **rule)]
    optimizers += [torch.optim.SparseAdam(one.parameters(), **rule) for one in (plain, exact)]
    for k in range(30):
        slopes = torch.randn(30, WIDTH, generator=torch.Generator().manual_seed(k)).to(dtype).double()
        for table, optimizer in zip((ours, plain, exact), optimizers, strict=True):
            optimizer.zero_grad()
            taken = table(batch(k)).double()
            (taken * slopes.to(taken.device)).sum().backward()
            optimizer.step()
    errors = [
        (found.double() - exact.weight.detach()).abs().mean()
        for found in (weights_of(ours), plain.weight.detach())
    ]
    assert 0 < errors[0] < errors[1]
    (state,) = optimizers[0].state_dict()["tables"]
    assert {state[name].dtype for name in ("exp_avg", "exp_avg_sq")} == {torch.float32}

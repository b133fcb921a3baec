"""Tables beside torch: states and generations, weights of torch, growth, clipping, copies and messages."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch's own tables

ROWS, WIDTH = 30, 4
KINDS = ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "RowWiseAdam"]


def new(path: Path, rows: Any = ROWS, **how: Any) -> Any:
    return penstock.nn.Embedding(rows, WIDTH, path=path, **{"device": "cpu", "cache": "1MiB", **how})


def weights_of(table: Any) -> Any:
    return table.array.gather(torch.arange(table.num_embeddings))


def step(table: Any, optimizer: Any, rows: Any = (1, 5)) -> None:
    optimizer.zero_grad()
    table(torch.tensor(rows)).square().sum().backward()
    optimizer.step()


# Generations


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_older_than_its_table_is_refused(tmp_path: Path, kind: str) -> None:
    table = new(tmp_path / "t.npy")
    optimizer = getattr(penstock.optim, kind)(table, lr=0.1)
    step(table, optimizer)
    states = copy.deepcopy([table.state_dict(), optimizer.state_dict()])
    table.load_state_dict(states[0])
    optimizer.load_state_dict(states[1])
    step(table, optimizer)
    for _ in range(2):  # in this process, and after it was opened anew
        for each, state in zip((table, optimizer), states, strict=True):
            with pytest.raises(ValueError, match=r"t\.npy: the table has changed since this state was saved"):
                each.load_state_dict(state)
        table.array.close()
        optimizer.close()
        table = new(tmp_path / "t.npy")
        optimizer = getattr(penstock.optim, kind)(table, lr=0.1)
    (tmp_path / "t.generation").unlink()
    with pytest.warns(UserWarning, match=r"t\.generation is missing, and whether .* is not known"):
        table.load_state_dict(states[0])
    with pytest.warns(UserWarning, match="is missing"):
        optimizer.load_state_dict(states[1])
    step(table, optimizer)
    table.array.close()
    optimizer.close()


KILLED = """
import os, signal, sys, torch, penstock.nn, penstock.optim
table = penstock.nn.Embedding(30, 4, path=sys.argv[1], device="cpu")
optimizer = penstock.optim.SGD(table, lr=0.1)
torch.save([table.state_dict(), optimizer.state_dict()], sys.argv[2])
if sys.argv[3] == "step":
    table(torch.tensor([1])).sum().backward()
    optimizer.step()
    table.array.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["save", "step"])
def test_a_killed_run_is_not_resumed_from_an_older_state(tmp_path: Path, when: str) -> None:
    path, saved = tmp_path / "t.npy", tmp_path / "state.pt"
    new(path).array.close()
    before = np.load(path)
    subprocess.run([sys.executable, "-c", KILLED, path, saved, when], check=False)
    states = torch.load(saved, weights_only=True)
    table = new(path)
    assert bool((weights_of(table).numpy() == before).all()) == (when == "save")
    if when == "save":
        table.load_state_dict(states[0])
    else:
        with pytest.raises(ValueError, match="the table has changed since this state was saved"):
            table.load_state_dict(states[0])


def test_a_generation_begins_with_any_store_and_with_no_read(tmp_path: Path) -> None:
    table = new(tmp_path / "t.npy")
    state = table.state_dict()
    table(torch.tensor([1])), table.array.flush(), table.prefetch(torch.tensor([2]))
    with pytest.raises(IndexError):
        table(torch.tensor([ROWS]))
    table.load_state_dict(state)
    table.array[3] = 1.0
    with pytest.raises(ValueError, match="has changed"):
        table.load_state_dict(state)
    other = table.state_dict()
    assert other["_extra_state"]["generation"]["number"] == state["_extra_state"]["generation"]["number"] + 1
    (tmp_path / "t.generation").write_text("{")
    with pytest.raises(ValueError, match=r"t\.generation: it is damaged: delete it"):
        table.load_state_dict(other)
    table.array.close()
    (tmp_path / "t.npy").unlink()
    fresh = new(tmp_path / "t.npy")
    assert not (tmp_path / "t.generation").exists(), "of the table that is gone"
    with pytest.warns(UserWarning, match="is missing"):
        fresh.load_state_dict(other)


# Hooks


def test_hooks_of_states_are_called_as_torch_calls_them(tmp_path: Path) -> None:
    table, dense = new(tmp_path / "t.npy"), torch.nn.Linear(2, 2)
    logs = []
    for optimizer in (penstock.optim.SGD(table, lr=0.1), torch.optim.SGD(dense.parameters(), lr=0.1)):
        log: list[Any] = []
        logs.append(log)

        def before(one: Any, log: Any = log, own: Any = optimizer) -> None:
            log.append(("before", one is own))

        def after(one: Any, state: Any, log: Any = log) -> Any:
            log.append(("after", sorted(set(state) & {"param_groups"})))
            return {**state, "note": 7}

        def first(one: Any, log: Any = log) -> None:
            log.append("first")

        def loading(one: Any, state: Any, log: Any = log) -> Any:
            log.append(("loading", state.pop("note")))
            groups = [{**group, "lr": 0.5} for group in state["param_groups"]]
            return {**state, "param_groups": groups}

        def loaded(one: Any, log: Any = log) -> None:
            log.append(("loaded", one.param_groups[0]["lr"]))

        optimizer.register_state_dict_pre_hook(before)
        optimizer.register_state_dict_pre_hook(first, prepend=True)
        handle = optimizer.register_state_dict_post_hook(after)
        optimizer.register_load_state_dict_pre_hook(loading)
        optimizer.register_load_state_dict_post_hook(loaded)
        state = optimizer.state_dict()
        assert state["note"] == 7
        optimizer.load_state_dict(state)
        assert state["note"] == 7, "a shallow copy is handed to hooks"
        handle.remove()
        assert "note" not in optimizer.state_dict()
    assert logs[0] == logs[1]
    assert logs[0][:2] == ["first", ("before", True)]


@pytest.mark.parametrize("where", ["file", "memory"])
def test_adagrads_sums_begin_with_a_number_of_their_type(tmp_path: Path, where: str) -> None:
    content = torch.randn(ROWS, WIDTH, dtype=torch.float64)
    np.save(tmp_path / "t.npy", content.numpy())
    how: dict[str, Any] = {"placement": "storage", "writable": True, "device": "cpu"}
    array = (
        penstock.open(tmp_path / "t.npy", **how)
        if where == "file"
        else penstock.from_tensor(content.clone(), device="cpu")
    )
    table = penstock.nn.Embedding.from_pretrained(array, freeze=False)
    theirs = torch.nn.Embedding(ROWS, WIDTH, sparse=True, _weight=content.clone())
    rule = {"lr": 0.1, "initial_accumulator_value": 0.1, "eps": 1e-3}
    ours, reference = penstock.optim.Adagrad(table, **rule), torch.optim.Adagrad(theirs.parameters(), **rule)
    for k in range(3):
        step(table, ours, (k, 5, 5))
        step(theirs, reference, (k, 5, 5))
    assert torch.equal(weights_of(table), theirs.weight.detach())
    sums = ours._arrays[0]["sums"].gather(torch.arange(ROWS))
    assert torch.equal(sums, reference.state[theirs.weight]["sum"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("maximize", [False, True])
def test_sparse_adam_is_torchs_bit_for_bit(tmp_path: Path, dtype: str, maximize: bool) -> None:
    content = torch.randn(ROWS, WIDTH, dtype=getattr(torch, dtype))
    np.save(tmp_path / "t.npy", content.numpy())
    array = penstock.open(tmp_path / "t.npy", placement="storage", writable=True, device="cpu")
    table = penstock.nn.Embedding.from_pretrained(array, freeze=False, padding_idx=0)
    theirs = torch.nn.Embedding(ROWS, WIDTH, padding_idx=0, sparse=True, _weight=content.clone())
    rule: dict[str, Any] = {"lr": 0.03, "betas": (0.8, 0.95), "eps": 1e-6, "maximize": maximize}
    ours, reference = (
        penstock.optim.SparseAdam(table, **rule),
        torch.optim.SparseAdam([theirs.weight], **rule),
    )
    for rows in ((1, 5, 5), (0, 0), (1, 29), (7,), (5, 1)):  # a step of padding alone counts, too
        step(table, ours, rows)
        step(theirs, reference, rows)
    assert torch.equal(weights_of(table), theirs.weight.detach())
    for name in ("exp_avg", "exp_avg_sq"):
        kept = ours._arrays[0][name].gather(torch.arange(ROWS))
        assert torch.equal(kept, reference.state[theirs.weight][name])
    with pytest.raises(ValueError, match=r"SparseAdam: betas \(1, 0.9\): give two numbers"):
        penstock.optim.SparseAdam(table, betas=(1, 0.9))


# Weights of torch


@pytest.mark.parametrize("bags", [False, True])
def test_weights_of_torch_are_loaded_and_saved(tmp_path: Path, bags: bool) -> None:
    torchs = torch.nn.EmbeddingBag if bags else torch.nn.Embedding
    ours_kind = penstock.nn.EmbeddingBag if bags else penstock.nn.Embedding
    theirs = torch.nn.ModuleDict(
        {"table": torchs(ROWS, WIDTH, padding_idx=2), "head": torch.nn.Linear(WIDTH, 1)}
    )
    torch.save(theirs.state_dict(), tmp_path / "torch.pt")
    table = ours_kind(ROWS, WIDTH, padding_idx=2, path=tmp_path / "t.npy", device="cpu")
    ours = torch.nn.ModuleDict({"table": table, "head": torch.nn.Linear(WIDTH, 1)})
    state = torch.load(tmp_path / "torch.pt", weights_only=True, mmap=True)
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    assert torch.equal(weights_of(table), theirs["table"].weight)
    assert torch.equal(ours["head"].weight, theirs["head"].weight)
    back = table.to_torch()
    assert type(back) is torchs
    assert torch.equal(back.weight, theirs["table"].weight)
    assert back.padding_idx == 2
    assert back.weight.requires_grad
    assert set(back.state_dict()) == {"weight"}
    wrong = {**state, "table.weight": torch.zeros(ROWS + 1, WIDTH)}
    with pytest.raises(
        RuntimeError, match=r"table\.weight: load a weight into .*t\.npy: a weight of shape \(31, 4\)"
    ):
        ours.load_state_dict(wrong)
    assert torch.equal(weights_of(table), theirs["table"].weight)
    table.load_weight(theirs["table"].weight.double() * 2)
    assert torch.equal(weights_of(table), theirs["table"].weight * 2)
    for given, error in ((torch.zeros(ROWS, WIDTH, dtype=torch.int64), TypeError), ([[1.0]], TypeError)):
        with pytest.raises(error, match=r"load a weight into .*t\.npy: "):
            table.load_weight(given)
    assert not hasattr(table, "weight")
    with pytest.raises(AttributeError, match=r"has no weight: its numbers are table\.array"):
        _ = table.weight


def test_a_new_table_has_the_numbers_of_torchs_draw(tmp_path: Path) -> None:
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(4)
        table = new(tmp_path / f"{dtype}.npy", dtype=dtype)
        torch.manual_seed(4)
        assert torch.equal(weights_of(table), torch.nn.Embedding(ROWS, WIDTH, dtype=dtype).weight.detach())


# Growth


@pytest.mark.parametrize("kind", KINDS)
def test_appended_rows_train_as_those_of_a_larger_table(tmp_path: Path, kind: str) -> None:
    content, more = torch.randn(ROWS, WIDTH), torch.randn(5, WIDTH)
    np.save(tmp_path / "t.npy", content.numpy())  # whose header is NumPy's, with less room
    np.save(tmp_path / "whole.npy", torch.cat([content, more]).numpy())
    table, whole = new(tmp_path / "t.npy"), new(tmp_path / "whole.npy", ROWS + 5)
    tied = penstock.nn.Embedding.from_pretrained(table.array, freeze=False)
    reader = penstock.open(tmp_path / "t.npy", placement="host", device="cpu")
    ours, reference = (getattr(penstock.optim, kind)(each, lr=0.1) for each in (table, whole))
    for each, optimizer in ((table, ours), (whole, reference)):
        step(each, optimizer)
    state = table.state_dict()
    table.append_rows(more)
    assert table.num_embeddings == tied.num_embeddings == ROWS + 5
    assert reader.shape == (ROWS, WIDTH)
    assert torch.equal(reader[7], content[7])
    with pytest.raises(ValueError, match=r"the state is of a table of float32 \(30, 4\)"):
        table.load_state_dict(state)
    for each, optimizer in ((table, ours), (whole, reference)):
        step(each, optimizer, (1, 34, 30))
    assert torch.equal(weights_of(table), weights_of(whole))
    again = getattr(penstock.optim, kind)(table, lr=0.1)
    saved = copy.deepcopy(ours.state_dict())
    ours.close()
    again.load_state_dict(saved)
    step(table, again, (33,))
    table.append_rows(2)
    assert weights_of(table)[-2:].abs().sum() > 0
    again.close()
    table.array.close()
    assert np.load(tmp_path / "t.npy").shape == (ROWS + 7, WIDTH)
    assert np.array_equal(np.load(tmp_path / "t.npy")[2], content[2].numpy())


def test_what_cannot_grow_is_refused(tmp_path: Path) -> None:
    table = new(tmp_path / "t.npy")
    (tmp_path / "t.bin").write_bytes(np.zeros((4, 3), np.float32).tobytes())
    raw = penstock.open(tmp_path / "t.bin", dtype="float32", shape=(4, 3), writable=True, device="cpu")
    memory = penstock.from_tensor(torch.zeros(4, 3), device="cpu")
    of = penstock.nn.Embedding.from_pretrained
    for one, given, error, match in (
        (table, torch.zeros(2, 3), ValueError, r"t\.npy: rows of shape \(2, 3\): give \(n, 4\)"),
        (table, torch.zeros(4), ValueError, "rows of shape"),
        (table, torch.zeros(2, 4, dtype=torch.int64), TypeError, r"t\.npy: rows of torch\.int64"),
        (table, "3", TypeError, r"t\.npy: rows of type str: give a whole number"),
        (table, 0, ValueError, "rows 0: give at least 1"),
        (of(raw, freeze=False), 1, ValueError, r"t\.bin: only \.npy files grow"),
        (of(memory, freeze=False), 1, ValueError, "a table in memory: it cannot grow"),
        (of(table.array), 1, ValueError, r"t\.npy: it is frozen"),
    ):
        with pytest.raises(error, match=match):
            one.append_rows(given)
    assert np.load(tmp_path / "t.npy").shape == (ROWS, WIDTH)


# Clipping


@pytest.mark.parametrize("norm", [2.0, 1.0, 3.5, float("inf")])
@pytest.mark.parametrize("most", [0.01, 1e6])
def test_gradients_are_clipped_as_those_of_torch(tmp_path: Path, norm: float, most: float) -> None:
    table, theirs = new(tmp_path / "t.npy"), torch.nn.Embedding(ROWS, WIDTH)
    theirs.weight.data = weights_of(table)
    head = torch.nn.Linear(WIDTH, 3)
    twin = copy.deepcopy(head)
    tied = penstock.nn.Embedding.from_pretrained(table.array, freeze=False)
    rows, weight = torch.tensor([3, 3, 29, 4]), torch.randn(4, 3)
    (head(table(rows) + tied(rows)) * weight).sum().backward()
    (twin(theirs(rows) + theirs(rows)) * weight).sum().backward()
    ours = penstock.nn.clip_grad_norm_([table, tied, head], most, norm)
    expected = torch.nn.utils.clip_grad_norm_([*theirs.parameters(), *twin.parameters()], most, norm)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(head.weight.grad, twin.weight.grad)
    gradients: list[Any] = [table.gradient(), tied.gradient()]
    both = gradients[0].to_dense() + gradients[1].to_dense()
    torch.testing.assert_close(both, theirs.weight.grad)


def test_clipping_leaves_what_backward_was_given_and_refuses_what_it_must(tmp_path: Path) -> None:
    table = new(tmp_path / "t.npy")
    assert penstock.nn.clip_grad_norm_(table, 1.0) == 0
    given = torch.full((2, WIDTH), 8.0)
    table(torch.tensor([1, 2])).backward(given)
    assert penstock.nn.clip_grad_norm_(table, 1.0) == given.norm()
    assert (given == 8).all()
    table(torch.tensor([1])).backward(torch.full((1, WIDTH), float("nan")))
    with pytest.raises(RuntimeError, match=r"the norm of order 2\.0 of the gradients is nan"):
        penstock.nn.clip_grad_norm_(table, 1.0, error_if_nonfinite=True)
    with pytest.raises(TypeError, match="clip_grad_norm_ of a int"):
        penstock.nn.clip_grad_norm_([3], 1.0)
    with pytest.raises(ValueError, match="max_norm -1"):
        penstock.nn.clip_grad_norm_(table, -1)

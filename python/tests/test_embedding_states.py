"""States of embeddings: runs that resume, tables that are opened, drawn or copied, and what is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from trained_tables import ROWS, WIDTH, batch, weights_of

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402
from penstock.nn.table_files import make_table  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch's own tables


def model_of(path: Path, device: str) -> Any:
    return torch.nn.ModuleDict(
        {
            "table": penstock.nn.Embedding(ROWS, WIDTH, path=path, device=device, cache="1MiB"),
            "dense": torch.nn.Linear(WIDTH, 1).to(device),
        }
    )


def train(model: Any, optimizers: list[Any], batches: range) -> None:
    for k in batches:
        for optimizer in optimizers:
            optimizer.zero_grad()
        model["dense"](model["table"](batch(k))).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("kind", ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "RowWiseAdam"])
@pytest.mark.parametrize("moved", [False, True])
def test_a_run_resumes_by_reference(tmp_path: Path, device: str, kind: str, moved: bool) -> None:
    def start(path: Path) -> tuple[Any, list[Any]]:
        torch.manual_seed(3)
        model = model_of(path, device)
        optimizers = [
            getattr(penstock.optim, kind)(model, lr=0.1),
            torch.optim.SGD(model.parameters(), lr=0.1),
        ]
        return model, optimizers

    whole, its = start(tmp_path / "whole.npy")
    train(whole, its, range(8))
    first, its = start(tmp_path / "half.npy")
    train(first, its, range(4))
    torch.save([first.state_dict(), *(one.state_dict() for one in its)], tmp_path / "state.pt")
    assert (tmp_path / "state.pt").stat().st_size < ROWS * WIDTH * 4, "the table is not in it"
    first["table"].array.close()

    its[0].close()
    path = tmp_path / "half.npy"
    if moved:
        path = tmp_path / "moved.npy"
        for file in tmp_path.glob("half.*"):
            file.rename(tmp_path / file.name.replace("half", "moved"))

    second, its = start(path)
    states = torch.load(tmp_path / "state.pt", weights_only=True)
    second.load_state_dict(states[0])
    for optimizer, state in zip(its, states[1:], strict=True):
        optimizer.load_state_dict(state)
    train(second, its, range(4, 8))
    assert second["table"].array.path == str(path)
    assert torch.equal(weights_of(second["table"].array), weights_of(whole["table"].array))
    second["table"].array.close()
    np.testing.assert_array_equal(np.load(path), weights_of(whole["table"].array).numpy())


def test_a_new_table_is_drawn_and_an_old_one_opened(tmp_path: Path, device: str) -> None:
    path = tmp_path / "table.npy"
    made = penstock.nn.Embedding(5000, WIDTH, padding_idx=17, path=path, device=device)
    weights = weights_of(made.array)
    assert torch.equal(weights[17], torch.zeros(WIDTH))
    assert abs(float(weights.mean())) < 0.02
    assert abs(float(weights.std()) - 1) < 0.02
    made.array.close()
    again = penstock.nn.Embedding(5000, WIDTH, path=path, device=device)
    assert torch.equal(weights_of(again.array), weights)
    assert "5000, 12" in repr(again)


def test_states_that_do_not_fit_are_refused(tmp_path: Path, device: str, table: Any) -> None:
    ours = penstock.nn.Embedding(4, 3, path=tmp_path / "new.npy", device=device)
    state = copy.deepcopy(ours.state_dict())
    other = penstock.nn.Embedding(5, 3, path=tmp_path / "other.npy", device=device)
    with pytest.raises(ValueError, match=r"a table of float32 \(4, 3\) at .* of float32 \(5, 3\)"):
        other.load_state_dict(state)
    half = penstock.nn.Embedding(4, 3, path=tmp_path / "half.npy", device=device, dtype=torch.float16)
    with pytest.raises(ValueError, match=r"a table of float32 .* this one is of float16 \(4, 3\)"):
        half.load_state_dict(state)
    for wrong in (7, {"path": "new.npy", "shape": (5, 3)}):
        with pytest.raises(ValueError, match="refers to an array, with a path, a shape and a dtype"):
            other.set_extra_state(wrong)
    with pytest.raises(ValueError, match="others in their place"):
        other.set_extra_state({"path": 1, "shape": 2, "dtype": 3})
    if table.path is None:
        with pytest.raises(ValueError, match="no path to refer to"):
            penstock.nn.Embedding.from_pretrained(table).state_dict()


def test_a_state_keeps_the_table_that_is_open(tmp_path: Path, device: str) -> None:
    path = tmp_path / "table.npy"
    np.save(path, np.zeros((64, 4), np.float32))  # its numbers begin elsewhere than those that are made
    first = penstock.nn.Embedding(64, 4, path=path, device=device)
    state = first.state_dict()
    first.array.close()
    path.unlink()
    with penstock.empty(path, (64, 4), "float32", device=device) as made:
        made.scatter(torch.arange(64), torch.full((64, 4), 3.0))
    again = penstock.nn.Embedding(64, 4, path=path, device=device)
    array = again.array
    again.load_state_dict(state)
    assert again.array is array
    assert torch.equal(again(torch.tensor([0])).detach().cpu(), torch.full((1, 4), 3.0))
    again(torch.tensor([0])).sum().backward()
    penstock.optim.SGD(again, lr=1).step()
    again.array.close()
    stored = np.load(path)
    assert (stored[0] == 2).all()
    assert (stored[1:] == 3).all()


def test_a_closed_table_is_opened_by_its_state(tmp_path: Path, device: str) -> None:
    ours = penstock.nn.Embedding(4, 3, path=tmp_path / "table.npy", device=device)
    weights, state = weights_of(ours.array), ours.state_dict()
    ours.array.close()
    ours.load_state_dict(state)
    assert torch.equal(weights_of(ours.array), weights)
    ours.array.close()
    (tmp_path / "table.npy").unlink()
    with pytest.raises(OSError, match=r"table\.npy"):
        ours.load_state_dict(state)


def test_a_state_is_not_for_a_table_that_was_drawn_just_now(tmp_path: Path, device: str) -> None:
    ours = penstock.nn.Embedding(4, 3, path=tmp_path / "table.npy", device=device)
    state = ours.state_dict()
    ours.load_state_dict(state)
    fresh = penstock.nn.Embedding(4, 3, path=tmp_path / "mistyped.npy", device=device)
    with pytest.raises(
        ValueError, match=r"refers to the table at .*table\.npy, and .*mistyped\.npy was drawn"
    ):
        fresh.load_state_dict(state)
    memory = penstock.from_tensor(np.zeros((4, 3), np.float32), device=device)
    with pytest.raises(ValueError, match="this embedding has one in memory"):
        penstock.nn.Embedding.from_pretrained(memory).load_state_dict(state)


def test_drawing_a_table_takes_no_name_of_others(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "table.draft.npy", np.ones(3))
    penstock.nn.Embedding(4, 3, path=tmp_path / "table.npy", device=device)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.draft.npy", "table.npy"]
    assert (np.load(tmp_path / "table.draft.npy") == 1).all()

    def meanwhile(first: int, count: int, where: Any) -> Any:
        (tmp_path / "late.npy").write_bytes(b"another's")
        return torch.zeros(count, 3, device=where)

    how = {"device": device}
    with pytest.raises(FileExistsError, match=r"create .*late\.npy: another process has made it"):
        make_table(tmp_path / "late.npy", (4, 3), torch.float32, how, meanwhile)
    assert (tmp_path / "late.npy").read_bytes() == b"another's"


@pytest.mark.parametrize("kind", ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "RowWiseAdam"])
def test_tables_of_sixteen_bits_are_opened_again(tmp_path: Path, device: str, kind: str) -> None:
    how: dict[str, Any] = {"path": tmp_path / "table.npy", "dtype": torch.bfloat16, "device": device}
    table = penstock.nn.Embedding(ROWS, WIDTH, **how)
    optimizer = getattr(penstock.optim, kind)(table, lr=0.1)
    table(batch(1)).float().square().sum().backward()
    optimizer.step()
    states = copy.deepcopy(table.state_dict()), copy.deepcopy(optimizer.state_dict())
    weights = weights_of(table.array)
    table.array.close()
    optimizer.close()
    again = penstock.nn.Embedding(ROWS, WIDTH, **how)
    again.load_state_dict(states[0])
    assert torch.equal(weights_of(again.array), weights)
    optimizer = getattr(penstock.optim, kind)(again, lr=0.1)
    optimizer.load_state_dict(states[1])
    again(batch(2)).float().square().sum().backward()
    optimizer.step()
    assert not torch.equal(weights_of(again.array), weights)


def test_a_copy_reads_its_own_array(tmp_path: Path, device: str) -> None:
    np.save(tmp_path / "table.npy", np.ones((4, 3), np.float32))
    frozen = penstock.nn.Embedding.from_pretrained(
        penstock.open(tmp_path / "table.npy", placement="host", device=device)
    )
    other = copy.deepcopy(frozen)
    frozen.array.close()
    assert torch.equal(other(torch.tensor([1])).cpu(), torch.ones(1, 3))
    with pytest.raises(ValueError, match="closed"):
        frozen(torch.tensor([1]))

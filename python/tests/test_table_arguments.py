"""What tables take and refuse: copies, types, the names of arguments, and messages of one sentence."""

from __future__ import annotations

import copy
import errno
import random
import warnings
from collections.abc import Callable
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


def new(path: Path, rows: Any = ROWS, **how: Any) -> Any:
    return penstock.nn.Embedding(rows, WIDTH, path=path, **{"device": "cpu", "cache": "1MiB", **how})


def weights_of(table: Any) -> Any:
    return table.array.gather(torch.arange(table.num_embeddings))


def step(table: Any, optimizer: Any, rows: Any = (1, 5)) -> None:
    optimizer.zero_grad()
    table(torch.tensor(rows)).square().sum().backward()
    optimizer.step()


def test_copies_share_copy_or_are_refused(tmp_path: Path) -> None:
    table = new(tmp_path / "t.npy")
    model = torch.nn.ModuleList([table, penstock.nn.Embedding.from_pretrained(table.array, freeze=False)])
    with pytest.raises(
        ValueError, match=r"copy the table in .*t\.npy: .* penstock\.nn\.copies_in\(folder\)"
    ) as caught:
        copy.deepcopy(model)
    assert "\n" not in str(caught.value)
    (tmp_path / "copies").mkdir()
    with penstock.nn.copies_in(tmp_path / "copies"):
        twin = copy.deepcopy(model)
    assert twin[0].array is twin[1].array, "what was one table is one"
    assert Path(twin[0].array.path).parent == tmp_path / "copies"
    assert torch.equal(weights_of(twin[0]), weights_of(table))
    before = weights_of(table)
    optimizer = penstock.optim.SGD(twin[0], lr=1)
    step(twin[0], optimizer)
    assert torch.equal(weights_of(table), before)
    assert not torch.equal(weights_of(twin[1]), before)
    with (
        pytest.raises(FileNotFoundError, match="there is no such folder"),
        penstock.nn.copies_in(tmp_path / "no"),
    ):
        pass
    frozen = penstock.nn.Embedding.from_pretrained(penstock.open(tmp_path / "t.npy", device="cpu"))
    assert copy.deepcopy(frozen).array.path == frozen.array.path
    memory = penstock.nn.EmbeddingBag.from_pretrained(
        penstock.from_tensor(torch.randn(5, 3), device="cpu"), freeze=False, mode="sum"
    )
    memory(torch.tensor([[1]])).sum().backward()
    other = copy.deepcopy(memory)
    assert other.mode == "sum"
    assert not other.has_gradient, "as of torch's parameters"
    other.array[1] = 5.0
    assert not torch.equal(other.array[1], memory.array[1])


def test_frozen_tables_may_hold_integers(tmp_path: Path) -> None:
    content = np.arange(12).reshape(4, 3)
    np.save(tmp_path / "t.npy", content)
    table = penstock.nn.Embedding(4, 3, path=tmp_path / "t.npy", freeze=True, dtype=torch.int64, device="cpu")
    assert np.array_equal(table(input=torch.tensor([[3, 1]])).numpy(), content[[[3, 1]]])
    assert torch.equal(table.to_torch()(torch.tensor([2])), torch.tensor([[6, 7, 8]]))
    with pytest.raises(
        ValueError, match=r"a table of int64 is not trained: give one of floating-point numbers"
    ):
        penstock.nn.Embedding(4, 3, path=tmp_path / "t.npy", dtype=torch.int64, device="cpu")


def test_arguments_have_torchs_names(tmp_path: Path) -> None:
    table = new(tmp_path / "t.npy")
    assert torch.equal(table(input=torch.tensor([1])), table(torch.tensor([1])))
    bags = penstock.nn.EmbeddingBag.from_pretrained(table.array, mode="sum")
    taken = bags(input=torch.tensor([1, 2]), offsets=torch.tensor([0]), per_sample_weights=torch.ones(2))
    assert torch.equal(taken[0], weights_of(table)[1:3].sum(0))


def step_of(kind: str, table: Any, **rule: Any) -> Any:
    return getattr(penstock.optim, kind)(table, **rule)


BROKEN: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "safetensors": (lambda p: new(p / "x.safetensors"), ValueError, "x.safetensors"),
    "raw": (lambda p: new(p / "x.bin"), ValueError, "x.bin"),
    "no ending": (lambda p: new(p / "x"), ValueError, "x"),
    "no folder": (lambda p: new(p / "none/x.npy"), FileNotFoundError, "none/x.npy"),
    "integers": (lambda p: new(p / "x.npy", dtype="int32"), ValueError, "x.npy"),
    "rows": (lambda p: new(p / "x.npy", rows=-1), ValueError, "x.npy"),
    "fractions": (lambda p: new(p / "x.npy", rows=1.5), TypeError, "x.npy"),
    "width": (lambda p: penstock.nn.Embedding(3, 0, path=p / "x.npy"), ValueError, "x.npy"),
    "raw that is there": (lambda p: new(p / "there.bin"), ValueError, "there.bin"),
    "another type": (lambda p: new(p / "there.npy", dtype="float64"), ValueError, "there.npy"),
    "another shape": (lambda p: new(p / "there.npy", rows=7), ValueError, "there.npy"),
    "a folder": (lambda p: new(p), IsADirectoryError, "folder"),
    "a number": (lambda p: penstock.nn.Embedding(3, 4, path=7), TypeError, "7"),  # type: ignore[arg-type]
    "cache": (lambda p: new(p / "x.npy", cache="lots"), ValueError, "x.npy"),
    "dtype": (lambda p: new(p / "x.npy", dtype="floaty"), ValueError, "x.npy"),
    "padding": (lambda p: new(p / "x.npy", padding_idx=99), ValueError, "x.npy"),
    "padding of another type": (lambda p: new(p / "x.npy", padding_idx="a"), TypeError, "x.npy"),
    "rate": (lambda p: step_of("Adagrad", new(p / "there.npy"), lr="x"), TypeError, "lr 'x'"),
    "input": (lambda p: new(p / "there.npy")([1, 2]), TypeError, "there.npy"),
    "float input": (lambda p: new(p / "there.npy")(torch.ones(2)), TypeError, "there.npy"),
    "row": (lambda p: new(p / "there.npy")(torch.tensor([ROWS])), IndexError, "there.npy"),
    "state": (lambda p: new(p / "there.npy").load_state_dict({"_extra_state": 3}), ValueError, ""),
    "optimizer": (lambda p: penstock.optim.SparseAdam(new(p / "there.npy"), eps=-1), ValueError, "eps"),
    "steps": (
        lambda p: penstock.optim.SGD(new(p / "there.npy")).load_state_dict({"tables": 1}), ValueError, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_one_sentence_with_the_users_path(tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "there.npy", np.zeros((ROWS, WIDTH), np.float32))
    (tmp_path / "there.bin").write_bytes(bytes(ROWS * WIDTH * 4))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    call, error, path = BROKEN[name]
    with pytest.raises(error) as caught, warnings.catch_warnings():
        call(tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert ". " not in message
    assert path in message
    assert "draft" not in message
    assert ": " in message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_drawn_calls_raise_errors_that_python_users_expect(tmp_path: Path) -> None:
    """Random arguments of random kinds: none ends the process, and each message is one line."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)
    table = new(tmp_path / "t.npy")
    bags = penstock.nn.EmbeddingBag.from_pretrained(table.array, freeze=False, mode="sum")
    optimizer = penstock.optim.SparseAdam([table, bags], lr=0.1)
    things: list[Callable[[], Any]] = [
        lambda: torch.randint(-3, ROWS + 3, (draw.randrange(4),)),
        lambda: torch.randint(0, ROWS, (2, draw.randrange(4))),
        lambda: torch.randint(0, 5, (draw.randrange(4),)).sort().values,
        lambda: torch.rand(draw.randrange(4)),
        lambda: torch.rand(ROWS, WIDTH),
        lambda: torch.zeros(2, dtype=torch.bool),
        lambda: torch.tensor(draw.randrange(ROWS)),
        lambda: torch.zeros(2, device="meta"),
        lambda: draw.choice([None, 3, -1, "x", [1, 2], {}, 1.5, np.arange(3), {"tables": [3]}]),
    ]
    several: list[Callable[..., Any]] = [
        bags, lambda *given: bags(*given).sum().backward(),
        lambda *given: torch.nn.functional.embedding_bag(given[0], table.array, *given[1:]),
    ]  # fmt: skip
    single: list[Callable[..., Any]] = [
        table, table.load_weight, table.prefetch, table.load_state_dict, optimizer.load_state_dict,
        table.set_extra_state, lambda given: penstock.nn.clip_grad_norm_(given, 1.0),
    ]  # fmt: skip
    for _ in range(1500):
        many = draw.random() < 0.5
        call = draw.choice(several if many else single)
        given = [draw.choice(things)() for _ in range(draw.choice([1, 2, 3]) if many else 1)]
        try:
            call(*given)
        except (TypeError, ValueError, IndexError, AttributeError, RuntimeError) as problem:
            if isinstance(problem, RuntimeError):
                assert "load_state_dict" in str(problem) or "state_dict" in str(problem), (
                    problem
                )  # torch's own
            else:
                assert "\n" not in str(problem), problem
    optimizer.zero_grad()
    step(table, optimizer)


def test_rows_that_find_no_room_leave_the_file_as_long_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.npy"
    table = penstock.nn.Embedding(100, 4, path=path, device="cpu", cache="1MiB")
    before, size = table.array[:].clone(), path.stat().st_size

    def full(file: Any, content: Any) -> None:
        file.write(bytes(content[:100]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("penstock.nn.table_files._write", full)
    with pytest.raises(OSError, match=r"append rows to .*t\.npy: they take .* free: make room") as caught:
        table.append_rows(1000)
    assert caught.value.errno == errno.ENOSPC
    assert path.stat().st_size == size
    assert torch.equal(table.array[:], before)
    monkeypatch.undo()
    table.append_rows(10)
    assert len(table.array) == 110
    for count in (True, np.ones((2, 4), np.float32)):
        with pytest.raises(TypeError, match="give a whole number"):
            table.append_rows(count)
    with pytest.raises(TypeError, match="is a sparse_coo tensor: give a dense one"):
        table.load_weight(torch.zeros(110, 4).to_sparse())


def test_a_norm_may_be_named_as_in_torch() -> None:
    linear = torch.nn.Linear(2, 2)
    linear(torch.ones(2)).sum().backward()
    wanted = torch.nn.utils.clip_grad_norm_(linear.parameters(), 9.0, norm_type="inf")
    assert torch.equal(penstock.nn.clip_grad_norm_([linear], 9.0, norm_type="inf"), wanted)

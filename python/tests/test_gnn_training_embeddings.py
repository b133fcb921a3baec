"""Training with rows that are learned for nodes of types without features."""

from __future__ import annotations

import fcntl
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import penstock
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
import penstock.checkpoint  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from gnn_training_run import send  # noqa: E402
from penstock.cli.gnn import gnn_group  # noqa: E402
from penstock.gnn import data  # noqa: E402
from penstock.gnn.training import Interrupted, Options, train  # noqa: E402
from penstock.gnn.training.embeddings import Embeddings  # noqa: E402
from test_gnn_training import start  # noqa: E402
from torch_geometric.data import HeteroData  # noqa: E402

AUTHORS, PAPERS, VENUES, CLASSES, WIDTH = 100, 800, 5, 4, 8
pytestmark = pytest.mark.usefixtures("one_thread")
TIMEOUT = 120
SMALL: dict[str, Any] = {
    "model": "rgcn",
    "fanout": (4,),
    "epochs": 3,
    "hidden": 32,
    "batch": 64,
    "lr": 0.05,
    "dropout": 0.0,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A paper's class is the topic of its authors, who have no features, and neither have venues; those of
    papers say nothing."""
    draw = np.random.default_rng(2)
    topics = draw.integers(0, CLASSES, AUTHORS)
    labels = draw.integers(0, CLASSES, PAPERS)
    by_topic = [np.flatnonzero(topics == topic) for topic in range(CLASSES)]
    writers = np.array([draw.choice(by_topic[label]) for label in np.repeat(labels, 3)])
    graph = HeteroData()
    graph["author"].num_nodes = AUTHORS
    graph["paper"].x = torch.tensor(draw.standard_normal((PAPERS, WIDTH)), dtype=torch.float32)
    graph["paper"].y = torch.tensor(labels)
    for name, part in (("train_mask", slice(0, 500)), ("test_mask", slice(500, None))):
        graph["paper"][name] = torch.zeros(PAPERS, dtype=torch.bool)
        graph["paper"][name][part] = True
    graph["venue"].num_nodes = VENUES
    written = np.repeat(np.arange(PAPERS), 3)
    graph["author", "writes", "paper"].edge_index = torch.tensor(np.stack([writers, written]))
    venues = np.stack([draw.integers(0, VENUES, PAPERS), np.arange(PAPERS)])
    graph["venue", "has", "paper"].edge_index = torch.tensor(venues)
    folder = tmp_path_factory.mktemp("gnn") / "library"
    found = data.from_pyg(graph, folder)
    assert found.without_features == ("author", "venue")
    return folder


def test_rows_are_learned_where_features_are_missing(library: Path, tmp_path: Path) -> None:
    given = {**SMALL, "epochs": 10}
    zeros = train(Options(library, **given))
    path = tmp_path / "rows.npy"
    learned = train(Options(library, embeddings=path, **given))
    assert zeros.test is not None
    assert learned.test is not None
    assert zeros.test["accuracy"] < 0.4
    assert learned.test["accuracy"] > 0.8
    assert learned.epochs[-1].loss < 0.5 * learned.epochs[0].loss
    assert learned.parameters == zeros.parameters + (AUTHORS + VENUES) * WIDTH
    rows = np.load(path)
    assert rows.shape == (AUTHORS + VENUES, WIDTH)
    assert np.isfinite(rows).all()


def test_tables_train_alike_wherever_they_lie(library: Path, tmp_path: Path) -> None:
    runs = []
    for placement, cache in (("storage", "64KiB"), ("host", None)):
        path = tmp_path / f"{placement}.npy"
        how: dict[str, Any] = {"embeddings_placement": placement, "embeddings_cache": cache}
        runs.append((train(Options(library, embeddings=path, **how, **SMALL)).losses, np.load(path).tolist()))
    assert runs[0] == runs[1]


def test_links_are_trained_with_embeddings(library: Path, tmp_path: Path) -> None:
    result = train(Options(library, task="links", embeddings=tmp_path / "rows.npy", **SMALL))
    assert result.epochs[-1].loss < result.epochs[0].loss


def test_a_node_without_features_has_a_row_of_its_own(tmp_path: Path) -> None:
    source = SimpleNamespace(unfeatured=[range(2), range(2, 2), range(5, 8)], width=3)
    ranks = SimpleNamespace(size=1, device=torch.device("cpu"))
    made = Embeddings(Options(embeddings=tmp_path / "rows.npy"), source, ranks)
    rows = made.table.array[:]
    x = torch.arange(27.0).reshape(9, 3)
    nodes = torch.tensor([8, 0, 7, 4, 5, 1, 0, 2])
    read = made(SimpleNamespace(x=x[nodes].half(), n_id=nodes))
    assert torch.equal(read, torch.stack([x[8], rows[0], rows[4], x[4], rows[2], rows[1], rows[0], x[2]]))
    read.sum().backward()
    gradient = made.table.gradient()
    assert gradient is not None
    assert gradient.to_dense()[:, 0].tolist() == [2, 1, 1, 0, 1]
    none = made(SimpleNamespace(x=x[2:4], n_id=torch.tensor([2, 3])))
    assert torch.equal(none, x[2:4])
    made.close()


def test_a_killed_training_goes_on_with_its_table(library: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {**SMALL, "dropout": 0.3, "checkpoint_every": 2}

    def given(name: str) -> dict[str, Any]:
        return {"embeddings": str(tmp_path / f"{name}.npy"), "checkpoint": str(tmp_path / name), **common}

    whole = train(Options(library, **given("whole")))
    plan = {**given("killed"), "dataset": str(library), "signal": (signal.SIGKILL, 1, 4)}
    assert start(tmp_path, [plan]).wait(TIMEOUT) == -signal.SIGKILL
    resumed = train(Options(library, resume=True, **given("killed")))
    assert resumed.resumed_at is not None
    assert resumed.resumed_at[0] == 2
    assert resumed.losses == whole.losses
    assert np.array_equal(np.load(tmp_path / "killed.npy"), np.load(tmp_path / "whole.npy"))
    for file in tmp_path.glob("killed*.npy"):  # the checkpoint has all of it
        file.unlink()
    train(Options(library, resume=True, **given("killed")))
    assert np.array_equal(np.load(tmp_path / "killed.npy"), np.load(tmp_path / "whole.npy"))


def test_ctrl_c_before_the_first_step_of_a_checkpoint_loses_nothing(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"embeddings": tmp_path / "rows.npy", "checkpoint": tmp_path / "saved", **SMALL}
    whole = train(Options(library, embeddings=tmp_path / "whole.npy", **SMALL))
    send(signal.SIGINT, 0, 1, monkeypatch)
    with pytest.raises(Interrupted):
        train(Options(library, **given))
    monkeypatch.undo()
    assert train(Options(library, resume=True, **given)).losses == whole.losses


def test_what_embeddings_cannot_be_is_one_sentence(library: Path, tmp_path: Path) -> None:
    rows, saved, file = tmp_path / "rows.npy", tmp_path / "saved", tmp_path / "file.pt"
    typeless = tmp_path / "papers"
    data.generate(typeless, nodes=300, width=8, classes=4)
    one = {**SMALL, "epochs": 1}
    train(Options(library, embeddings=rows, checkpoint=saved, **one))
    train(Options(library, checkpoint=file, **one))
    before = rows.read_bytes()
    other = tmp_path / "other.npy"
    refused: list[Exception] = []
    cases: list[tuple[Path, dict[str, Any], str]] = [
        (library, {"embeddings": rows}, "rows.npy: there is such a file, of no checkpoint"),
        (library, {"embeddings": rows, "checkpoint": saved}, "saved: there is one: resume it"),
        (library, {"checkpoint": saved, "resume": True}, "a training with embeddings: give them, too"),
        (
            library,
            {"embeddings": other, "checkpoint": file, "resume": True},
            "is a file, and embeddings need",
        ),
        (library, {"embeddings": rows, "checkpoint": saved, "resume": True, "hidden": 8}, "hidden was 32"),
        (typeless, {"embeddings": other}, "papers names no type of nodes without features"),
        (library, {"embeddings": tmp_path / "rows.bin"}, "rows.bin: new tables are .npy files"),
        (library, {"embeddings": tmp_path / "no" / "rows.npy"}, "there is no folder"),
        (library, {"embeddings_cache": "1MiB"}, "embeddings_cache 1MiB: there are no embeddings"),
        (library, {"embeddings": other, "embeddings_placement": "attic"}, "embeddings_placement 'attic'"),
    ]
    for folder, options, words in cases:
        with pytest.raises((ValueError, OSError), match=words) as raised:
            train(Options(folder, **{**one, **options}))
        assert "\n" not in str(raised.value)
        refused.append(raised.value)  # which have their frames, and keep no table open by them
    assert rows.read_bytes() == before
    assert not other.exists()
    going_on: dict[str, Any] = {**one, "epochs": 2, "checkpoint": saved, "resume": True}
    assert len(train(Options(library, embeddings=rows, **going_on)).epochs) == 2


def test_a_failed_save_leaves_the_checkpoint_before(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, rows = tmp_path / "saved", tmp_path / "rows.npy"
    given: dict[str, Any] = {**SMALL, "embeddings": rows, "checkpoint": saved}
    whole = train(Options(library, **{**SMALL, "embeddings": tmp_path / "whole.npy"}))
    train(Options(library, **{**given, "epochs": 1}))
    before = penstock.checkpoint.numbers(saved)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("penstock.checkpoint.saving.copy_table", full)
        with pytest.raises(penstock.Error, match=r"write checkpoint .*saved: No space left on device: make"):
            train(Options(library, resume=True, **given))
    with (saved / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError, match="another process saves there"):
            train(Options(library, resume=True, **given))
    assert penstock.checkpoint.numbers(saved) == before
    assert train(Options(library, resume=True, **given)).losses == whole.losses
    assert np.array_equal(np.load(rows), np.load(tmp_path / "whole.npy"))


def test_the_command_trains_embeddings(library: Path, tmp_path: Path) -> None:
    given = ["--model", "rgcn", "--fanout", "4", "--hidden", "16", "--device", "cpu", "--epochs"]
    kept = ["--embeddings", str(tmp_path / "rows.npy"), "--checkpoint", str(tmp_path / "saved")]
    assert CliRunner().invoke(gnn_group, ["train", str(library), *given, "1", *kept]).exit_code == 0
    shown = CliRunner().invoke(gnn_group, ["train", str(library), *given, "2", *kept, "--resume"])
    assert shown.exit_code == 0, shown.output
    assert "resumed in epoch 2 after step 0" in shown.output

"""Training of graph neural networks."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
import gnn_training_run  # noqa: E402
from gnn_papers import draw_papers, odd_split, with_seeds  # noqa: E402
from gnn_training_run import send  # noqa: E402
from penstock.gnn import Batch, LinkLoader, NeighborLoader, data  # noqa: E402
from penstock.gnn.training import MODELS, Interrupted, Options, Timeline, metrics, train  # noqa: E402
from penstock.gnn.training.blocks import Edges, edges_without_positives, layers_of  # noqa: E402
from penstock.gnn.training.models import SampledModel, Shape  # noqa: E402
from penstock.gnn.training.objectives import features_of, objective_for  # noqa: E402
from penstock.gnn.training.ranks import Ranks  # noqa: E402
from penstock.gnn.training.timeline import shared, total, union  # noqa: E402
from penstock.sampling import Graph  # noqa: E402
from torch_geometric.utils import trim_to_layer  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL: dict[str, Any] = {
    "fanout": (4, 3),
    "hidden": 32,
    "batch": 64,
    "lr": 0.01,
    "dropout": 0.2,
    "device": "cpu",
}
TIMEOUT = 60  # seconds, of a process that trains


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_papers(tmp_path_factory)


def accuracy_of_features(folder: Path) -> float:
    """Of the nearest class mean, on the test set."""
    dataset = data.open(folder)
    features, labels = np.load(dataset.features), dataset.load("labels")
    known, asked = dataset.load("train"), dataset.load("test")
    means = np.stack([features[known][labels[known] == label].mean(0) for label in range(dataset.classes)])
    distances = ((features[asked][:, None] - means) ** 2).sum(2)
    return float((distances.argmin(1) == labels[asked]).mean())


@pytest.mark.parametrize("model", MODELS)
def test_each_model_learns_more_than_features_have(model: str, papers: Path, device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    timeline = Timeline()
    result = train(Options(papers, model=model, epochs=8, **{**SMALL, "device": device}), timeline=timeline)
    assert bool(timeline.intervals("training (GPU)")) == (device == "cuda")
    assert result.test is not None
    assert result.test["accuracy"] > accuracy_of_features(papers) + 0.15
    assert result.epochs[-1].loss < result.epochs[0].loss
    assert len(result.losses) == sum(epoch.steps for epoch in result.epochs)
    assert all(0 < epoch.account.waiting <= epoch.account.seconds for epoch in result.epochs)
    assert all(sum(epoch.account.bytes.values()) > 0 for epoch in result.epochs)


def test_batch_normalization_and_three_layers_learn(papers: Path) -> None:
    options = Options(papers, epochs=6, batch_norm=True, **{**SMALL, "fanout": (4,), "layers": 3})
    result = train(options)
    assert options.fanout == (4, 4, 4)
    assert "norms.1.running_mean" in result.state
    assert result.test is not None
    assert result.test["accuracy"] > accuracy_of_features(papers) + 0.15


@pytest.mark.parametrize("model", MODELS)
def test_a_batch_of_one_node_is_normalized(model: str) -> None:
    options = Options(model=model, fanout=(2, 2), hidden=8, batch_norm=True)
    net = SampledModel(options, Shape(width=4, outputs=3, relations=1)).train()
    alone = net(torch.randn(1, 4), Edges(torch.zeros((2, 0), dtype=torch.int64), [0, 0], None), [1, 0, 0])
    alone.sum().backward()
    assert alone.isfinite().all()
    assert net.norms[0].running_mean.tolist() == [0] * 8


def test_links_are_ranked_better_than_by_chance(papers: Path) -> None:
    result = train(Options(papers, task="links", epochs=8, **SMALL))
    assert result.test is not None
    assert result.test["auc"] > 0.65
    assert 0 < result.test["mrr"] <= 1


@pytest.mark.parametrize("model", MODELS)
def test_layers_compute_what_pyg_trims_to(model: str) -> None:
    draws = torch.Generator().manual_seed(3)
    edges = torch.randint(100, (2, 500), generator=draws)
    graph = Graph.from_edges(edges[0], edges[1], nodes=100, device="cpu")
    features = torch.randn(100, 6, generator=draws)
    block = next(iter(NeighborLoader(graph, features, torch.arange(7), [3, 2, 2])))
    x = block.x
    types = torch.randint(2, (block.edge_index.shape[1],), generator=draws)
    options = Options(model=model, fanout=(3, 2, 2), hidden=8)
    net = SampledModel(options, Shape(width=6, outputs=3, relations=2)).eval()
    found = net(x, Edges(block.edge_index, block.edges_per_hop, types), block.nodes_per_hop)

    index = block.edge_index
    for number, layer in enumerate(net.layers):
        x, index, types = trim_to_layer(number, block.nodes_per_hop, block.edges_per_hop, x, index, types)
        x = layer(x, index, types) if model == "rgcn" else layer(x, index)
        x = x.relu() if number < 2 else x
    torch.testing.assert_close(found, x[:7])


def test_layers_read_the_prefix_that_their_hops_reach() -> None:
    parts = [(part.sources, part.targets, part.edges) for part in layers_of([2, 3, 4], [5, 6])]
    assert parts == [(9, 5, 11), (5, 2, 5)]


def test_relations_have_weights_of_their_own() -> None:
    options = Options(model="rgcn", fanout=(2,), hidden=4)
    net = SampledModel(options, Shape(width=3, outputs=2, relations=2)).eval()
    x, index = torch.ones(2, 3), torch.tensor([[1], [0]])
    first, second = (net(x, Edges(index, [1], torch.tensor([kind])), [1, 1]) for kind in (0, 1))
    assert not torch.allclose(first, second)


def test_links_are_predicted_without_their_edges() -> None:
    block = Batch(
        x=torch.zeros(4, 1),
        e_id=torch.arange(5),
        batch_size=4,
        nodes_per_hop=[4, 0, 0],
        n_id=torch.arange(4),
        edge_index=torch.tensor([[1, 2, 0, 3, 2], [0, 0, 1, 1, 3]]),
        edges_per_hop=[3, 2],
        edge_label_index=torch.tensor([[1, 2], [0, 3]]),
        edge_label=torch.tensor([1.0, 0.0]),
    )
    edges = edges_without_positives(block)
    assert edges.index.tolist() == [[2, 3, 2], [0, 1, 3]]
    assert edges.per_hop == [1, 2]


def test_metrics_of_known_scores() -> None:
    positive, negative = np.array([3.0, 1.0]), np.array([2.0, 1.0])
    assert metrics.auc(positive, negative) == (1 + 1 + 0 + 0.5) / 4
    assert metrics.reciprocal_ranks(positive, negative).tolist() == [1, 1 / 2.5]


def test_a_killed_training_goes_on_with_the_same_losses(papers: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {**SMALL, "epochs": 3, "model": "gat", "batch_norm": True, "checkpoint_every": 2}
    whole = train(Options(papers, checkpoint=tmp_path / "whole.pt", **common))
    file = str(tmp_path / "killed.pt")
    plan = {**common, "dataset": str(papers), "checkpoint": file, "signal": (signal.SIGKILL, 1, 3)}
    assert start(tmp_path, [plan]).wait(TIMEOUT) == -signal.SIGKILL
    resumed = train(Options(papers, checkpoint=file, resume=True, **common))
    assert resumed.resumed_at == (2, 2)
    assert resumed.losses == whole.losses
    assert [epoch.valid for epoch in resumed.epochs] == [epoch.valid for epoch in whole.epochs]
    assert resumed.test == whole.test
    assert all(torch.equal(resumed.state[name], value) for name, value in whole.state.items())


@pytest.mark.parametrize("place", [(0, 2), (1, 0), (1, 4)])
def test_ctrl_c_saves_a_whole_step(
    place: tuple[int, int], papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(Options(papers, epochs=2, **SMALL))
    file = tmp_path / "model.pt"
    send(signal.SIGINT, *place, monkeypatch)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted) as caught:
        train(Options(papers, epochs=2, checkpoint=file, **SMALL))
    assert signal.getsignal(signal.SIGINT) is before
    assert caught.value.saved
    monkeypatch.undo()
    resumed = train(Options(papers, epochs=2, checkpoint=file, resume=True, **SMALL))
    assert (resumed.losses, resumed.test) == (whole.losses, whole.test)


def test_a_failed_save_leaves_the_checkpoint_before(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.pt"
    train(Options(papers, epochs=1, checkpoint=file, **SMALL))
    content = file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"write checkpoint .*model\.pt: No space left on device: make room"):
        train(Options(papers, epochs=2, checkpoint=file, resume=True, **SMALL))
    assert file.read_bytes() == content
    assert list(tmp_path.glob("model*")) == [file]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("missing/model.pt", "there is no folder .*missing: make it"), ("", "it is a folder: name a file")],
)
def test_a_checkpoint_that_cannot_be_is_refused_before_anything_is_trained(
    papers: Path, tmp_path: Path, name: str, sentence: str
) -> None:
    def progress(*_: Any) -> None:
        raise AssertionError("it was trained")

    with pytest.raises(ValueError, match=sentence):
        train(Options(papers, epochs=1, checkpoint=tmp_path / name, **SMALL), progress=progress)
    assert list(tmp_path.iterdir()) == []


def test_more_epochs_go_on_from_a_finished_training(papers: Path, tmp_path: Path) -> None:
    random = torch.get_rng_state()
    whole = train(Options(papers, epochs=2, **SMALL))
    assert torch.equal(torch.get_rng_state(), random)  # the caller's
    file = tmp_path / "model.pt"
    train(Options(papers, epochs=1, checkpoint=file, **SMALL))
    assert train(Options(papers, epochs=2, checkpoint=file, resume=True, **SMALL)).losses == whole.losses


def test_a_loss_that_is_no_number_ends_the_training(papers: Path, tmp_path: Path) -> None:
    folder, file = odd_split(papers, tmp_path), tmp_path / "model.pt"
    train(Options(folder, epochs=1, checkpoint=file, **SMALL))
    content = file.read_bytes()
    np.save(folder / "features.npy", np.full_like(np.load(folder / "features.npy"), np.nan))
    given: dict[str, Any] = {**SMALL, "epochs": 2, "checkpoint": file, "resume": True}
    for every in (0, 1):
        with pytest.raises(ValueError, match="the loss of step 1 in epoch 2 is nan: look for features"):
            train(Options(folder, checkpoint_every=every, **given))
        assert file.read_bytes() == content


@pytest.mark.parametrize("task", ["nodes", "links"])
def test_scores_that_are_no_numbers_are_not_measured(task: str) -> None:
    ring = torch.arange(10)
    graph = Graph.from_edges(ring, (ring + 1) % 10, nodes=10, device="cpu")
    model = SampledModel(Options(fanout=(2,), layers=1, task=task), Shape(width=4, outputs=3, relations=1))
    objective, ranks = objective_for(task, features_of), Ranks(0, 1, torch.device("cpu"))
    features = torch.randn(10, 4)
    for wrong in (False, True):
        if wrong:
            features[3] = torch.nan
        if task == "nodes":
            loader: Any = NeighborLoader(graph, features, ring, [2], labels=ring % 3)
        else:
            loader = LinkLoader(graph, features, torch.stack([ring, (ring + 1) % 10]), [2])
        if not wrong:
            assert objective.measure(model.eval(), loader, ranks, lambda: None)
            continue
        with pytest.raises(ValueError, match="no finite numbers: look for features"):
            objective.measure(model.eval(), loader, ranks, lambda: None)


def start(folder: Path, plans: list[dict[str, Any]], rank: int = 0, size: int = 1) -> subprocess.Popen[bytes]:
    """A process that trains, as torchrun would start it."""
    tests = Path(gnn_training_run.__file__)
    paths = [str(tests.parent), *sys.path]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **({"RANK": str(rank), "LOCAL_RANK": str(rank)} if size > 1 else {}),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
    }
    return subprocess.Popen(
        [sys.executable, str(tests), str(folder / "result"), json.dumps(plans)], env=environment
    )


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def test_two_processes_train_as_one(papers: Path, tmp_path: Path) -> None:
    """Without what is drawn, two processes with half of a batch each have the losses and weights of one."""
    exact: dict[str, Any] = {
        "fanout": (-1, -1),
        "device": "cpu",
        "hidden": 16,
        "batch": 25,
        "dropout": 0.0,
        "shuffle": False,
        "lr": 0.01,
    }
    uneven = {**SMALL, "dataset": str(odd_split(papers, tmp_path)), "epochs": 1, "batch_norm": True}
    few = str(with_seeds(papers, tmp_path / "few", train=100, valid=3, test=21))
    tiers = {"dataset": few, "placement": "tiered", "below": "storage", "cache": "1MiB", "hot": 0.1}
    saved = {**exact, "dataset": few, "checkpoint": str(tmp_path / "two.pt")}
    plans = [
        {**exact, "dataset": few, "epochs": 2},
        uneven,
        {**saved, "epochs": 1},
        {**saved, "epochs": 2, "resume": True},
        {**exact, "dataset": few, "epochs": 1, "task": "links"},
        {**exact, **tiers, "epochs": 2},
        {**exact, **tiers, "epochs": 2, "peers": False},
    ]
    for plan, port in zip(plans, free_ports(len(plans)), strict=True):
        plan["port"] = port
    processes = [start(tmp_path, plans, rank, size=2) for rank in range(2)]
    try:
        assert [process.wait(TIMEOUT) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()

    found = [[torch.load(tmp_path / f"result.{n}.{r}") for r in range(2)] for n in range(len(plans))]
    for first, second in found:
        assert first["losses"] == second["losses"]
        assert first["test"] == second["test"]
        assert all(torch.equal(second["state"][name], value) for name, value in first["state"].items())
    one = train(Options(few, epochs=2, **{**exact, "batch": 50}))
    np.testing.assert_allclose(found[0][0]["losses"], one.losses, rtol=1e-4)
    for name, value in one.state.items():
        torch.testing.assert_close(found[0][0]["state"][name], value, rtol=1e-3, atol=1e-4)
    for again in (3, 5, 6):
        assert found[again][0]["losses"] == found[0][0]["losses"]
    with pytest.raises(ValueError, match="2 processes made it and 1 are to go on"):
        train(Options(**{name: value for name, value in plans[3].items() if name != "port"}))


def test_shares_are_equal_and_cover_all() -> None:
    ids = np.arange(7)
    shares = [Ranks(rank, 3, None).share(ids, equal=True).tolist() for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert [len(Ranks(rank, 3, None).share(ids, equal=False)) for rank in range(3)] == [3, 2, 2]
    with pytest.raises(ValueError, match="2 seeds for 3 processes: start fewer"):
        Ranks(0, 3, None).share(ids[:2], equal=True)


def test_a_trace_shows_loading_behind_training(papers: Path, tmp_path: Path) -> None:
    timeline = Timeline()
    # An epoch has more batches than can be made ahead of its first step.
    given = {**SMALL, "hidden": 512, "batch": 16, "prefetch": 1}
    result = train(Options(papers, epochs=2, **given), timeline=timeline)
    timeline.write(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    lanes = {
        event["tid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "thread_name"
    }
    assert set(lanes.values()) == {"sampling", "gather", "waiting", "training"}
    by_lane = {
        name: [(span["ts"], span["ts"] + span["dur"]) for span in spans if lanes[span["tid"]] == name]
        for name in lanes.values()
    }
    assert all(begin <= end for lane in by_lane.values() for begin, end in lane)
    assert len(by_lane["training"]) == len(result.losses)
    assert any(
        first[0] < second[1] and second[0] < first[1]
        for first in by_lane["sampling"]
        for second in by_lane["training"]
    )
    assert 0 < result.overlap.hidden <= min(result.overlap.loading, result.overlap.training) + 1e-6
    assert trace["otherData"]["overlap"] == result.overlap.as_dict()


def test_spans_come_from_many_threads() -> None:
    timeline = Timeline(max_spans=350)

    def record() -> None:
        for number in range(100):
            with timeline.span("sampling", batch=number):
                pass

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert timeline.dropped == 50


class FakeEvent:
    """A CUDA event on a GPU whose clock runs by `now`, in milliseconds."""

    now = 100.0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.time = -1.0

    def record(self, stream: Any) -> None:
        self.time = FakeEvent.now

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: FakeEvent) -> float:
        return other.time - self.time


def test_spans_of_a_gpu_are_read_from_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(FakeEvent, "now", 100.0)
    timeline = Timeline()
    for milliseconds in (2, 3):
        with timeline.gpu_span("training", "cuda:0"):
            FakeEvent.now += milliseconds
        FakeEvent.now += 10
    (first, second) = timeline.intervals("training (GPU)")
    assert [end - begin for begin, end in (first, second)] == pytest.approx([2000, 3000])
    assert second[0] - first[1] == pytest.approx(10_000)
    timeline.add("training", 0, 1)  # the host's, which only launches
    assert timeline.overlap().training == pytest.approx(5e-3)


def test_overlap_of_intervals() -> None:
    assert union([(3, 4), (0, 2), (1, 2.5)]) == [(0, 2.5), (3, 4)]
    assert shared([(0, 2.5), (3, 4)], [(2, 3.5)]) == [(2, 2.5), (3, 3.5)]
    timeline = Timeline()
    timeline.add("sampling", 0, 4e6)
    timeline.add("gather", 3e6, 6e6)
    timeline.add("training", 2e6, 5e6)
    overlap = timeline.overlap()
    assert (overlap.loading, overlap.training, overlap.hidden, overlap.share) == (6, 3, 3, 0.5)
    assert total(timeline.intervals("gather")) == 3e6


def test_progress_has_loss_accuracy_and_rate(papers: Path) -> None:
    lines: list[tuple[str, int, int]] = []
    train(
        Options(papers, epochs=1, **SMALL),
        progress=lambda what, done, total: lines.append((what, done, total)),
    )
    last = [line for line in lines if "loss" in line[0]][-1]
    assert re.fullmatch(r"epoch 1/1: loss \d\.\d{4}, accuracy \d+\.\d%, \d+\.\d batches/s", last[0])
    assert last[1:] == (5, 5)
    assert any("measuring on the test set" in line[0] for line in lines)


def test_options_of_the_call_are_checked() -> None:
    with pytest.raises(TypeError, match="fanout '15,10': give a list of whole numbers"):
        Options(fanout="15,10")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="lr 'much': it is no number"):
        Options(lr="much")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="task 'graphs': there is no such task"):
        Options(task="graphs")
    assert Options(fanout=[3, 2], model="gat").as_dict()["fanout"] == [3, 2]

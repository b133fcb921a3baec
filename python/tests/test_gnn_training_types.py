"""Training on edges of several types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
from penstock.gnn import data  # noqa: E402
from penstock.gnn.training import Options, train  # noqa: E402
from torch_geometric.data import HeteroData  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL: dict[str, Any] = {
    "fanout": (6, 4),
    "epochs": 8,
    "hidden": 32,
    "batch": 64,
    "lr": 0.01,
    "dropout": 0.2,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whose neighbours show the class of a node by their relation alone."""
    folder = tmp_path_factory.mktemp("gnn") / "related"
    data.generate(
        folder,
        nodes=800,
        average_degree=10,
        width=16,
        classes=4,
        splits=(0.5, 0.1, 0.4),
        homophily=0.9,
        accuracy=0.5,
        relations=4,
    )
    return folder


def accuracy(folder: Path, model: str, **options: Any) -> float:
    result = train(Options(folder, model=model, **{**SMALL, **options}))
    assert result.test is not None
    return result.test["accuracy"]


def test_relations_are_learned_by_rgcn_alone(related: Path) -> None:
    rgcn = accuracy(related, "rgcn")
    assert rgcn > 0.8
    for model in ("sage", "gcn"):
        assert rgcn > accuracy(related, model) + 0.2


def test_types_of_edges_lie_where_the_edges_do(related: Path) -> None:
    given = {**SMALL, "model": "rgcn", "epochs": 1}
    one, other = (train(Options(related, graph_placement=each, **given)) for each in ("host", "storage"))
    assert one.losses == other.losses
    assert "storage" in other.epochs[0].account.bytes


def test_a_training_with_relations_goes_on(related: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {**SMALL, "model": "rgcn", "epochs": 2}
    whole = train(Options(related, **options))
    file = tmp_path / "model.pt"
    train(Options(related, checkpoint=file, **{**options, "epochs": 1}))
    resumed = train(Options(related, checkpoint=file, resume=True, **options))
    assert (resumed.losses, resumed.test) == (whole.losses, whole.test)
    assert whole.state["layers.0.weight"].shape[0] == 4


def test_links_of_several_types_are_ranked(related: Path) -> None:
    result = train(Options(related, task="links", model="rgcn", **{**SMALL, "epochs": 2}))
    assert result.test is not None
    assert 0.5 < result.test["auc"] <= 1


def test_hetero_data_is_trained_on(tmp_path: Path) -> None:
    """A paper's class is the topic that its authors write about; authors have no features."""
    draw = np.random.default_rng(2)
    papers, authors, classes = 600, 200, 4
    topics = draw.integers(0, classes, authors)
    labels = draw.integers(0, classes, papers)
    by_topic = [np.flatnonzero(topics == topic) for topic in range(classes)]
    writers = np.array([draw.choice(by_topic[label]) for label in np.repeat(labels, 3)])
    written = np.repeat(np.arange(papers), 3)
    graph = HeteroData()
    signal = np.eye(classes)[labels] + draw.standard_normal((papers, classes))
    graph["paper"].x = torch.tensor(signal, dtype=torch.float32)
    graph["paper"].y = torch.tensor(labels)
    order = draw.permutation(papers)
    for name, part in (("train_mask", order[:400]), ("test_mask", order[400:])):
        graph["paper"][name] = torch.zeros(papers, dtype=torch.bool)
        graph["paper"][name][part] = True
    graph["author"].num_nodes = authors
    graph["author", "writes", "paper"].edge_index = torch.tensor(np.stack([writers, written]))
    found = data.from_pyg(graph, tmp_path / "g", undirected=True)
    assert found.edge_types == (("author", "writes", "paper"), ("paper", "rev_writes", "author"))
    features_alone = float((signal[order[400:]].argmax(1) == labels[order[400:]]).mean())
    assert accuracy(found.folder, "rgcn", fanout=(3, 8), epochs=12) > features_alone + 0.15

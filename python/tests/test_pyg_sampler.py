"""penstock.pyg.NeighborSampler under PyG's own loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

from penstock import _native  # noqa: E402
from penstock.pyg import FeatureStore, GraphStore, NeighborSampler  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.loader import LinkLoader, NodeLoader  # noqa: E402
from torch_geometric.sampler import NegativeSampling, NodeSamplerInput, NumNeighbors  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if _native.cuda_usable()[0] and torch.cuda.is_available() else [])]
NODES, EDGES = 1000, 8000


@pytest.fixture
def data() -> Data:
    torch.manual_seed(0)
    ends = torch.randint(0, NODES, (2, EDGES))
    return Data(
        x=torch.arange(NODES).float()[:, None],
        edge_index=ends,
        edge_attr=torch.arange(EDGES).float(),
        time=torch.randint(0, 100, (NODES,)),
        since=torch.randint(0, 100, (EDGES,)),
        weight=torch.where(torch.rand(EDGES) < 0.3, 0.0, torch.rand(EDGES)),
    )


def check(data: Data, batch: Any) -> None:
    ids, index = batch.e_id.cpu(), batch.edge_index.cpu()
    nodes = batch.n_id.cpu()
    assert torch.equal(batch.x[:, 0].cpu().long(), nodes)
    assert torch.equal(batch.edge_attr.cpu().long(), ids)
    assert torch.equal(data.edge_index[:, ids], nodes[index])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"replace": True},
        {"subgraph_type": "induced"},
        {"disjoint": True},
        {"sample_direction": "backward"},
        {"weight_attr": "weight"},
    ],
)
def test_node_loader(data: Data, device: str, options: dict[str, Any]) -> None:
    sampler = NeighborSampler(data, [5, 3], device=device, **options)
    loader = NodeLoader(data, sampler, input_nodes=torch.arange(100), batch_size=32)
    for batch in loader:
        check(data, batch)
        assert batch.n_id[: batch.batch_size].tolist() == batch.input_id.tolist()
        if "weight_attr" in options:
            assert bool((data.weight[batch.e_id.cpu()] > 0).all())
        if "subgraph_type" not in options:
            assert sum(batch.num_sampled_edges) == batch.edge_index.shape[1]
        if options.get("disjoint"):
            ends = batch.batch[batch.edge_index]
            assert torch.equal(ends[0], ends[1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("name", ["time", "since"])
def test_nothing_later_than_the_seed(data: Data, device: str, strategy: str, name: str) -> None:
    sampler = NeighborSampler(data, [5, 3], time_attr=name, temporal_strategy=strategy, device=device)
    at = torch.randint(0, 100, (100,))
    loader = NodeLoader(data, sampler, input_nodes=torch.arange(100), input_time=at, batch_size=32)
    for batch in loader:
        check(data, batch)
        until = batch.seed_time[batch.batch[batch.edge_index[1]].cpu()]
        own = (
            data.since[batch.e_id.cpu()]
            if name == "since"
            else data.time[batch.n_id[batch.edge_index[0]].cpu()]
        )
        assert bool((own <= until.cpu()).all())


def test_bidirectional_edges_lead_both_ways(data: Data) -> None:
    sampler = NeighborSampler(data, [5, 3], subgraph_type="bidirectional", device="cpu")
    batch = next(iter(NodeLoader(data, sampler, input_nodes=torch.arange(64), batch_size=64)))
    pairs = set(map(tuple, batch.edge_index.T.tolist()))
    assert all((b, a) in pairs for a, b in pairs)


def test_workers_and_seeds(data: Data) -> None:
    sampler = NeighborSampler(data, [5, 3], device="cpu")
    for workers in (0, 2):
        loader = NodeLoader(data, sampler, input_nodes=torch.arange(100), batch_size=32, num_workers=workers)
        assert sum(batch.batch_size for batch in loader) == 100
    drawn = []
    for _ in range(2):
        torch.manual_seed(7)
        drawn.append(
            [b.e_id.tolist() for b in NodeLoader(data, sampler, input_nodes=torch.arange(64), batch_size=32)]
        )
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("disjoint", [False, True])
def test_link_loader(data: Data, mode: str, disjoint: bool) -> None:
    sampler = NeighborSampler(data, [5, 3], disjoint=disjoint, device="cpu")
    edges = data.edge_index[:, :200]
    loader = LinkLoader(
        data, sampler, edge_label_index=edges, neg_sampling=NegativeSampling(mode, 1), batch_size=50
    )
    for batch in loader:
        check(data, batch)
        if mode == "binary":
            pairs = batch.n_id[batch.edge_label_index][:, :50]
        else:
            pairs = batch.n_id[torch.stack([batch.src_index, batch.dst_pos_index])]
        assert torch.equal(pairs, edges[:, batch.input_id])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", [{}, {"sample_direction": "backward"}, {"disjoint": True}])
def test_several_types(device: str, options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    data = HeteroData()
    data["a"].x, data["b"].x = torch.randn(100, 4), torch.randn(50, 4)
    for kind, sizes in ((("a", "w", "b"), (100, 50)), (("b", "r", "a"), (50, 100))):
        data[kind].edge_index = torch.stack([torch.randint(0, size, (500,)) for size in sizes])
    sampler = NeighborSampler(data, [3, 2], device=device, **options)
    for batch in NodeLoader(data, sampler, input_nodes=("a", None), batch_size=20):
        for kind in data.edge_types:
            ends = data[kind].edge_index[:, batch[kind].e_id.cpu()]
            index = batch[kind].edge_index.cpu()
            assert torch.equal(ends[0], batch[kind[0]].n_id.cpu()[index[0]])
            assert torch.equal(ends[1], batch[kind[2]].n_id.cpu()[index[1]])


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_fanouts_as_num_neighbors(data: Data, direction: str) -> None:
    likes, made_by = ("user", "likes", "item"), ("item", "made_by", "user")
    hetero = HeteroData({"user": {"num_nodes": 50}, "item": {"num_nodes": 60}})
    for kind in (likes, made_by):
        hetero[kind].edge_index = torch.randint(0, 50, (2, 400))
    cases: list[tuple[Any, Any, Any, Any]] = [
        (data, [2, 1], NumNeighbors([2, 1]), None),
        (hetero, [2, 1], NumNeighbors([2, 1]), "item"),
        (hetero, {likes: [2, 1], made_by: [3, 3]}, NumNeighbors({likes: [2, 1]}, default=[3, 3]), "item"),
    ]
    for given, plain, fanout, kind in cases:
        made = []
        for each in (plain, fanout):
            sampler = NeighborSampler(given, each, sample_direction=direction, device="cpu")
            torch.manual_seed(1)
            made.append(sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(20), input_type=kind)))
        assert made[0].num_sampled_edges == made[1].num_sampled_edges
        assert str(made[0].edge) == str(made[1].edge)


def test_edges_of_stores_are_read_where_they_lie(data: Data) -> None:
    from penstock.arrays import from_tensor
    from torch_geometric.sampler.utils import to_csc

    pointers, row, order = to_csc(data)
    features, graph = FeatureStore(device="cpu"), GraphStore()
    features[None, "x", None] = data.x
    graph[None, "csc", True, (NODES, NODES)] = tuple(
        from_tensor(each, "host", device="cpu") for each in (row, pointers)
    )
    sampler = NeighborSampler((features, graph), [4, 2])
    for batch in NodeLoader((features, graph), sampler, input_nodes=torch.arange(64), batch_size=32):
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)
        ends = data.edge_index[:, order][:, batch.e_id]
        assert torch.equal(ends, batch.n_id[batch.edge_index])
    plain = GraphStore()
    plain[None, "coo", False, (NODES, NODES)] = data.edge_index
    other = NeighborSampler((features, plain), [-1], device="cpu")
    batch = next(iter(NodeLoader((features, plain), other, input_nodes=torch.arange(4), batch_size=4)))
    assert batch.edge_index.shape[1] == int(np.isin(data.edge_index[1], np.arange(4)).sum())


@pytest.mark.parametrize("where", ["same device", "another device"])
def test_times_of_a_store_are_read_where_they_lie(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    import penstock
    from penstock.pyg import times

    np.save(tmp_path / "time.npy", data.time.numpy())
    stored = penstock.open(tmp_path / "time.npy", placement="storage", cache="64KiB", device="cpu")
    copied = []
    if where == "another device":
        monkeypatch.setattr(times, "executor_for", lambda device: copied.append(device))
    graph = GraphStore()
    graph[None, "coo", False, (NODES, NODES)] = data.edge_index
    batches = []
    for given in (data.time, stored):
        features = FeatureStore(device="cpu")
        features[None, "time", None] = given
        sampler = NeighborSampler((features, graph), [4, 2], time_attr="time", device="cpu")
        own = sampler._sampler.graph.node_times
        assert (own is stored) == (given is stored and where == "same device")
        torch.manual_seed(3)
        links = LinkLoader(
            (features, graph),
            sampler,
            edge_label_index=(None, data.edge_index[:, :90]),
            edge_label_time=data.time[data.edge_index[:, :90]].max(0).values,
            neg_sampling=NegativeSampling("triplet", 2),
            batch_size=30,
        )
        nodes = NodeLoader((features, graph), sampler, input_nodes=torch.arange(64), batch_size=32)
        batches.append(
            [(batch.n_id.tolist(), batch.time.tolist()) for part in (links, nodes) for batch in part]
        )
    assert batches[0] == batches[1]
    assert bool(copied) == (where == "another device")
    earliest = times.StoredTimes(stored).argmin()
    assert data.time[earliest] == data.time.min()


def test_bad_input_is_one_sentence(data: Data) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"temporal_strategy": "first"}, "uniform or last"),
        ({"sample_direction": "up"}, "forward or backward"),
        ({"time_attr": "when"}, "neither nodes nor edges"),
        ({"weight_attr": "w"}, "weight_attr 'w'"),
    )
    for options, words in cases:
        with pytest.raises(ValueError, match=words):
            NeighborSampler(data, [2], **options)
    with pytest.raises(TypeError, match="give a Data"):
        NeighborSampler([1, 2], [2])

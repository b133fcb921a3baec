"""Situations of PyTorch Geometric's own suites, with arrays in the place of tensors: batches have what they
have with tensors, on every placement of the CPU executor, or one sentence says why not."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from places import small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
from penstock.pyg import FeatureStore, GraphStore  # noqa: E402
from torch_geometric.data import Batch, Data, HeteroData  # noqa: E402
from torch_geometric.loader import ClusterData, DataLoader, NodeLoader, RandomNodeLoader  # noqa: E402
from torch_geometric.loader.utils import filter_data, filter_hetero_data, index_select  # noqa: E402
from torch_geometric.nn import GCNConv  # noqa: E402
from torch_geometric.sampler import BaseSampler, SamplerOutput  # noqa: E402
from torch_geometric.transforms import ToUndirected  # noqa: E402
from torch_geometric.utils import select  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NODES, EDGES = 40, 160


def content(*shape: int, seed: int = 1) -> Any:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def placed(path: Path, values: Any, placement: str) -> penstock.Array:
    np.save(path, values.numpy())
    return penstock.open(path, placement=placement, device="cpu", **small_cache(placement))


def graph(folder: Path, placement: str) -> tuple[Data, Data]:
    """The same graph with arrays, and with tensors."""
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.randint(NODES, (2, EDGES), generator=generator)
    tensors = Data(edge_index=edge_index)
    arrays = Data(edge_index=edge_index)
    for name, shape in (("x", (NODES, 6)), ("y", (NODES,)), ("edge_attr", (EDGES, 3)), ("other", (7, 2))):
        tensors[name] = content(*shape)
        arrays[name] = placed(folder / f"{name}.npy", tensors[name], placement)
    return arrays, tensors


def same(found: Any, wanted: Any) -> None:
    for name in ("x", "y", "edge_attr", "edge_index"):
        assert isinstance(found[name], torch.Tensor)
        np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(wanted[name]))
    assert found.num_nodes == wanted.num_nodes


class Neighbours(BaseSampler):
    """One hop, every edge into the seeds, in their order: PyG's own samplers need compiled libraries."""

    def __init__(self, edge_index: Any) -> None:
        self.edge_index = edge_index

    def sample_from_nodes(self, index: Any, **_: Any) -> SamplerOutput:
        row, col = self.edge_index
        edge = torch.isin(col, index.node).nonzero().reshape(-1)
        node = torch.cat([index.node, row[edge]]).unique()
        place = torch.full((NODES,), -1)
        place[node] = torch.arange(len(node))
        return SamplerOutput(
            node=node, row=place[row[edge]], col=place[col[edge]], edge=edge, metadata=(index.input_id, None)
        )

    def sample_from_edges(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("no loader here takes edges")

    edge_permutation = None


def test_an_attribute_is_a_tensor_to_pyg(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    assert arrays.num_nodes == NODES
    assert arrays.num_node_features == 6
    assert arrays.num_edge_features == 3
    assert set(arrays.node_attrs()) == set(tensors.node_attrs())
    assert set(arrays.edge_attrs()) == set(tensors.edge_attrs())
    assert not arrays.is_node_attr("other")
    assert (arrays.x.shape, arrays.x.dtype, len(arrays.x)) == ((NODES, 6), torch.float32, NODES)
    assert "x=[40, 6]" in repr(arrays)
    assert "penstock.Array" in repr(arrays.x)
    assert arrays.validate()
    assert arrays.to("cpu").x is arrays.x
    assert arrays.x.array.placement == placement


@pytest.mark.parametrize("workers", [0, 2])
def test_a_node_loader_slices_the_arrays_of_its_data(tmp_path: Path, placement: str, workers: int) -> None:
    arrays, tensors = graph(tmp_path, placement)
    sampler = Neighbours(tensors.edge_index)
    how: dict[str, Any] = {"node_sampler": sampler, "input_nodes": torch.arange(NODES), "batch_size": 16}
    batches = list(NodeLoader(arrays, **how, num_workers=workers))
    for found, wanted in zip(batches, NodeLoader(tensors, **how), strict=True):
        same(found, wanted)
        assert type(found.x) is torch.Tensor
        assert torch.equal(found.x, tensors.x[found.n_id])
        assert torch.equal(found.edge_attr, tensors.edge_attr[found.e_id])


def test_workers_may_be_spawned(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    loader = NodeLoader(
        arrays, Neighbours(tensors.edge_index), input_nodes=torch.arange(NODES), batch_size=20, num_workers=1,
        multiprocessing_context="spawn",
    )  # fmt: skip
    for batch in loader:
        assert torch.equal(batch.x, tensors.x[batch.n_id])


def test_a_random_node_loader_takes_subgraphs(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    torch.manual_seed(4)
    found = list(RandomNodeLoader(arrays, num_parts=3, shuffle=True))
    torch.manual_seed(4)
    for one, wanted in zip(found, RandomNodeLoader(tensors, num_parts=3, shuffle=True), strict=True):
        same(one, wanted)


def test_subgraphs_are_those_of_tensors(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    mask = torch.arange(NODES) % 3 == 0
    for subset in (mask, torch.tensor([7, 3, 39])):
        same(arrays.subgraph(subset), tensors.subgraph(subset))
    edges = torch.arange(EDGES) % 4 == 1
    same(arrays.edge_subgraph(edges), tensors.edge_subgraph(edges))
    permuted = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
    assert torch.equal(select(arrays.x, permuted, 0), tensors.x[permuted])


def test_parts_of_clusters_are_those_of_tensors(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    try:
        parts = ClusterData(arrays, num_parts=4)
    except ImportError:
        pytest.skip("METIS is not there: PyG makes no clusters")
    for found, wanted in zip(parts, ClusterData(tensors, num_parts=4), strict=True):
        same(found, wanted)


def test_filters_of_loaders_take_rows(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    node, edge = torch.tensor([9, 0, 39]), torch.tensor([4, 159])
    row, col = torch.tensor([0, 1]), torch.tensor([2, 2])
    same(filter_data(arrays, node, row, col, edge), filter_data(tensors, node, row, col, edge))
    perm = torch.arange(EDGES).flip(0)
    same(filter_data(arrays, node, row, col, edge, perm), filter_data(tensors, node, row, col, edge, perm))
    assert torch.equal(index_select(arrays.x, node.int()), tensors.x[node])
    with pytest.raises(IndexError, match="index 40 at position 1"):
        index_select(arrays.x, torch.tensor([0, 40]))


def test_data_of_several_types_are_sliced(tmp_path: Path, placement: str) -> None:
    arrays, tensors = HeteroData(), HeteroData()
    kinds = [("a", "to", "b"), ("b", "to", "a")]
    for name in ("a", "b"):
        tensors[name].x = content(NODES, 4, seed=len(name))
        arrays[name].x = placed(tmp_path / f"{name}.npy", tensors[name].x, placement)
    for k, kind in enumerate(kinds):
        tensors[kind].edge_index = torch.randint(NODES, (2, EDGES))
        tensors[kind].edge_attr = content(EDGES, 2, seed=k)
        arrays[kind].edge_index = tensors[kind].edge_index
        arrays[kind].edge_attr = placed(tmp_path / f"e{k}.npy", tensors[kind].edge_attr, placement)
    rows = {"a": torch.tensor([3, 1]), "b": torch.tensor([39])}
    edges = {kinds[0]: torch.tensor([0, 7]), kinds[1]: torch.tensor([159])}
    ends = {kind: torch.zeros(len(edges[kind]), dtype=torch.int64) for kind in kinds}
    found, wanted = (
        filter_hetero_data(d, dict(rows), dict(ends), dict(ends), dict(edges)) for d in (arrays, tensors)
    )
    subset = {"a": torch.tensor([1, 5]), "b": torch.arange(NODES) % 2 == 0}
    for one, other in ((found, wanted), (arrays.subgraph(subset), tensors.subgraph(subset))):
        for name in ("a", "b"):
            assert torch.equal(one[name].x, other[name].x)
        for kind in kinds:
            assert torch.equal(one[kind].edge_attr, other[kind].edge_attr)


def test_a_model_takes_all_of_an_array_in_memory_and_none_behind_a_cache(
    tmp_path: Path, placement: str
) -> None:
    arrays, tensors = graph(tmp_path, placement)
    layer: Any = GCNConv(6, 2)
    if placement == "host":
        assert torch.allclose(layer(arrays.x, arrays.edge_index), layer(tensors.x, tensors.edge_index))
        assert torch.equal(arrays.x + 1, tensors.x + 1)
        assert torch.equal(arrays.x.clone(), tensors.x)
        assert torch.equal(torch.cat([arrays.x, tensors.x]), torch.cat([tensors.x, tensors.x]))
        return
    uses: list[Callable[[], Any]] = [
        lambda: layer(arrays.x, arrays.edge_index),
        lambda: arrays.x + 1,
        lambda: arrays.x.double(),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="lies behind a cache: take rows of it") as caught:
            use()
        assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(np.asarray(arrays.x), tensors.x)


def test_what_is_taken_of_an_attribute_is_read(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    for key in (3, slice(2, 9), torch.tensor([1, 39]), (slice(None), 2), ..., torch.arange(NODES) % 2 == 0):
        assert torch.equal(arrays.x[key], tensors.x[key])
    assert torch.equal(torch.stack(list(arrays.x)), tensors.x)
    assert torch.equal(torch.nn.functional.embedding(torch.tensor([3, 3]), arrays.x), tensors.x[[3, 3]])
    with pytest.raises(ValueError, match="opened read-only"):
        arrays.x[0] = 1


def test_copies_and_pickles_refer_to_the_array(tmp_path: Path, placement: str) -> None:
    arrays, tensors = graph(tmp_path, placement)
    for again in (copy.copy(arrays), copy.deepcopy(arrays), pickle.loads(pickle.dumps(arrays))):
        assert torch.equal(again.x[torch.tensor([5, 6])], tensors.x[[5, 6]])
        assert again.x.array.path == arrays.x.array.path
    assert torch.equal(arrays.contiguous().x[[1]], tensors.x[[1]])
    batch = DataLoader([Data(x=tensors.x, edge_index=tensors.edge_index)], batch_size=1)
    assert isinstance(next(iter(batch)), Batch)


def test_transforms_leave_arrays_where_they_are(tmp_path: Path) -> None:
    arrays, tensors = graph(tmp_path, "storage")
    del arrays.edge_attr, tensors.edge_attr
    found, wanted = ToUndirected()(arrays), ToUndirected()(tensors)
    assert torch.equal(found.edge_index, wanted.edge_index)
    assert found.x.array is arrays.x.array


AFTER = """
import sys, penstock, torch
array = penstock.open(sys.argv[1], placement="storage", device="cpu", cache="1MiB")
assert "torch_geometric" not in sys.modules
from torch_geometric.data import Data
data = Data(x=array, edge_index=torch.tensor([[0, 1], [1, 2]]))
assert data.subgraph(torch.tensor([2, 1])).x.shape == (2, 6), data
"""


def test_pyg_may_be_loaded_after_the_array_was_opened(tmp_path: Path) -> None:
    placed(tmp_path / "x.npy", content(NODES, 6), "host")
    subprocess.run([sys.executable, "-c", AFTER, str(tmp_path / "x.npy")], check=True)


# Stores


@pytest.mark.parametrize("name", ["edge_attr", "edge_weight", "edge_type", "e_id"])
def test_features_of_edges_that_would_come_by_nodes_are_refused(tmp_path: Path, name: str) -> None:
    store = FeatureStore(device="cpu")
    for given in (content(EDGES, 2), placed(tmp_path / "e.npy", content(EDGES, 2), "host")):
        with pytest.raises(ValueError, match=r"by the numbers of nodes: .*array\[batch\.e_id\]") as caught:
            store[None, name, None] = given
        assert "\n" not in str(caught.value)
    assert store.get_all_tensor_attrs() == []
    store[None, "x", None] = content(NODES, 2)
    with pytest.raises(ValueError, match="by the numbers of nodes"):
        store[("a", "to", "a"), "weight", None] = content(EDGES, 2)
    typed = FeatureStore(device="cpu")
    typed[("a", "to", "b"), "weight", None] = content(EDGES, 2)
    assert torch.equal(typed[("a", "to", "b"), "weight", torch.tensor([159])], content(EDGES, 2)[[159]])
    with pytest.raises(ValueError, match="by the numbers of nodes"):
        typed[None, "x", None] = content(NODES, 2)


def test_features_of_edges_are_taken_beside_a_store(tmp_path: Path, placement: str) -> None:
    _, tensors = graph(tmp_path, placement)
    weights = placed(tmp_path / "w.npy", tensors.edge_attr, placement)
    features, edges = FeatureStore(device="cpu"), GraphStore()
    features[None, "x", None] = placed(tmp_path / "n.npy", tensors.x, placement)
    edges[None, "coo", False, (NODES, NODES)] = tuple(tensors.edge_index)
    loader = NodeLoader(
        (features, edges), Neighbours(tensors.edge_index), input_nodes=torch.arange(NODES), batch_size=16
    )
    for batch in loader:
        assert torch.equal(batch.x, tensors.x[batch.n_id])
        assert torch.equal(weights[batch.e_id], tensors.edge_attr[batch.e_id])


def test_slices_of_a_store_are_those_of_tensors(tmp_path: Path, placement: str) -> None:
    values, store = content(NODES, 6), FeatureStore(device="cpu")
    store["n", "x", None] = placed(tmp_path / "x.npy", values, placement)
    for index in (slice(3, 9), slice(None, None, 3), slice(35, 99), slice(9, 3), slice(-5, None)):
        assert torch.equal(store["n", "x", index], values[index])
        assert store.get_tensor_size(("n", "x", index)) == tuple(values[index].shape)

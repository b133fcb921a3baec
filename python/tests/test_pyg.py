"""Stores of PyTorch Geometric: what its own store tests ask of a store, and what its loaders take."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from leaks import check_leaves_nothing
from places import small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
from penstock.pyg import FeatureStore, GraphStore  # noqa: E402
from torch_geometric.data import Data, EdgeAttr, HeteroData, TensorAttr  # noqa: E402
from torch_geometric.data.feature_store import AttrView, _FieldStatus  # noqa: E402
from torch_geometric.loader import NeighborLoader  # noqa: E402
from torch_geometric.sampler import NeighborSampler, SamplerOutput  # noqa: E402

FEATURES = torch.tensor([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]])
INDEX = torch.tensor([0, 1, 2])


def equal(taken: Any, expected: Any) -> bool:
    return bool(torch.equal(taken.cpu(), expected))


def test_tensors_are_put_taken_updated_and_removed(device: str) -> None:
    store = FeatureStore(device=device)
    attr = TensorAttr("A", "feat", INDEX)
    assert store.put_tensor(FEATURES, attr)
    assert equal(store.get_tensor(attr), FEATURES)
    assert equal(store.get_tensor("A", "feat", index=torch.tensor([0, 2])), FEATURES[[0, 2]])
    assert store.get_tensor_size("A", "feat", None) == (3, 3)
    assert store.get_tensor_size("A", "feat", torch.tensor([1])) == (1, 3)
    assert store.update_tensor(FEATURES + 1, attr)
    assert equal(store.get_tensor(attr), FEATURES + 1)
    assert [(a.group_name, a.attr_name) for a in store.get_all_tensor_attrs()] == [("A", "feat")]
    assert store.remove_tensor("A", "feat", None)
    assert not store.remove_tensor("A", "feat", None)
    with pytest.raises(KeyError, match="put them first"):
        store.get_tensor(attr)


def test_views_are_those_of_torch_geometric(device: str) -> None:
    store = FeatureStore(device=device)
    view = store.view(group_name="A")
    view.attr_name = "feat"
    view["index"] = INDEX
    assert view == AttrView(store, TensorAttr("A", "feat", INDEX))
    assert "FeatureStore()" in repr(view)
    store["A", "feat", INDEX] = FEATURES
    for taken in (
        store["A", "feat", INDEX],
        store["A", "feat", None],
        store["A", "feat", :],
        store["A"]["feat"][:],
        store["A"].feat[:],
        store.view().A.feat[:],
        store["A", "feat", 0:3:1],
    ):
        assert equal(taken, FEATURES)
    with pytest.raises(AttributeError):
        _ = store.view(group_name="A", index=None).feat.A
    assert store["A"] == store.view(TensorAttr(group_name="A"))
    assert isinstance(store["A"], AttrView)
    store["A", None, None] = FEATURES  # without a name, a name of its own
    assert equal(store["A"](), FEATURES)
    del store["A", "feat", INDEX]
    with pytest.raises(KeyError):
        _ = store["A", "feat", INDEX]
    del store["A"]
    with pytest.raises(KeyError):
        _ = store["A"]()


class NoGroups(TensorAttr):
    def __init__(self, attr_name: Any = _FieldStatus.UNSET, index: Any = _FieldStatus.UNSET) -> None:
        super().__init__(None, attr_name, index)


def test_attributes_may_have_a_class_of_their_own(device: str) -> None:
    store = FeatureStore(device=device, tensor_attr_cls=NoGroups)
    store["feat", INDEX] = FEATURES
    assert isinstance(store["feat"], AttrView)
    for taken in (store["feat", INDEX], store["feat"][INDEX], store["feat"][:], store["feat", :]):
        assert equal(taken, FEATURES)


def test_rows_are_put_where_their_index_says(device: str) -> None:
    store = FeatureStore(device=device)
    turned = torch.tensor([2, 0, 1])
    store["A", "x", turned] = FEATURES
    assert equal(store["A", "x", turned], FEATURES)
    assert equal(store["A", "x", None][2], FEATURES[0])
    store["A", "x", torch.tensor([1])] = torch.full((1, 3), 9.0)
    assert equal(store["A", "x", [1]], torch.full((1, 3), 9.0))
    assert equal(store["A", "x", torch.tensor([True, False, False])], FEATURES[1:2])
    with pytest.raises(ValueError, match="put them as a whole first"):
        store["B", "x", torch.tensor([5])] = FEATURES[:1]
    array = store.array("A", "x")
    assert store.update_tensor(torch.zeros(1, 3), "A", "x", torch.tensor([2]))
    assert store.update_tensor(FEATURES + 5, "A", "x", None)
    assert equal(store["A", "x", None], FEATURES + 5)
    assert store.array("A", "x") is array, "rows are stored where they lie"
    assert store.update_tensor(FEATURES[:2], "A", "x", None)
    assert equal(store["A", "x", None], FEATURES[:2])
    with pytest.raises(KeyError):
        store.update_tensor(FEATURES, "C", "x", None)


@pytest.mark.parametrize("placement", ["host", "host-cached", "storage"])
def test_features_may_lie_in_a_file(tmp_path: Path, placement: str, device: str) -> None:
    content = np.random.default_rng(2).standard_normal((50, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", content)
    array = penstock.open(
        tmp_path / "x.npy", placement=placement, device=device, **small_cache(placement, 4096)
    )
    store = FeatureStore(device=device)
    store["paper", "x", None] = array
    assert store.array("paper", "x") is array
    rows = torch.tensor([49, 0, 49])
    np.testing.assert_array_equal(store["paper", "x", rows].cpu(), content[rows])
    np.testing.assert_array_equal(store["paper", "x", None].cpu(), content)
    with pytest.raises(ValueError, match="as a whole"):
        store["paper", "x", rows] = array


def test_many_features_are_taken_together(tmp_path: Path, device: str) -> None:
    rng = np.random.default_rng(4)
    kinds = {"x": (np.float32, (16,)), "y": (np.int64, ()), "mask": (np.bool_, ()), "odd": (np.int8, (3,))}
    store = FeatureStore(device=device)
    contents: dict[str, Any] = {}
    for name, (kind, shape) in kinds.items():
        contents[name] = rng.integers(0, 2, (40, *shape)).astype(kind)
        np.save(tmp_path / f"{name}.npy", contents[name])
        where = "storage" if name == "mask" else "host"
        store["n", name, None] = penstock.open(tmp_path / f"{name}.npy", placement=where, device=device)
    rows = {
        "x": torch.tensor([3, 3, 39]),
        "y": slice(5, 9),
        "mask": None,
        "odd": torch.tensor([], dtype=torch.int64),
    }
    taken = store.multi_get_tensor([TensorAttr("n", name, rows[name]) for name in kinds])
    for name, one in zip(kinds, taken, strict=True):
        expected = contents[name] if rows[name] is None else contents[name][rows[name]]
        np.testing.assert_array_equal(one.cpu(), expected)
    with pytest.raises(IndexError, match="index 40 at position 1"):
        store.multi_get_tensor(
            [TensorAttr("n", "x", torch.tensor([0])), TensorAttr("n", "y", torch.tensor([1, 40]))]
        )


def graph(nodes: int = 60, edges: int = 400) -> tuple[Any, Any, Any]:
    """Edges as pairs, and their CSC form."""
    generator = torch.Generator().manual_seed(7)
    row, col = torch.randint(nodes, (2, edges), generator=generator)
    order = torch.argsort(col, stable=True)
    row, col = row[order], col[order]
    pointers = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(col, minlength=nodes).cumsum(0)])
    return row, col, pointers


@pytest.mark.parametrize("layout", ["coo", "csc", "csr"])
def test_edges_are_put_taken_and_removed(layout: str) -> None:
    store, (row, col, pointers) = GraphStore(), graph()
    pairs = {"coo": (row, col), "csc": (row, pointers), "csr": (pointers, row)}
    for edge_type in (("a", "to", "b"), ("b", "to", "a")):
        attr = EdgeAttr(edge_type, layout, size=(60, 60))
        store[attr] = pairs[layout]
        assert all(torch.equal(a, b) for a, b in zip(store[attr], pairs[layout], strict=True))
    assert {attr.edge_type for attr in store.get_all_edge_attrs()} == {("a", "to", "b"), ("b", "to", "a")}
    assert all(attr.layout.value == layout and attr.size == (60, 60) for attr in store.get_all_edge_attrs())
    assert store.remove_edge_index(EdgeAttr(("a", "to", "b"), layout))
    with pytest.raises(KeyError):
        _ = store[EdgeAttr(("a", "to", "b"), layout)]
    with pytest.raises(ValueError, match="a pair"):
        store[EdgeAttr(("a", "to", "b"), layout)] = torch.stack([row, col, row])


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_pointers_that_are_none_of_their_edges_are_refused(layout: str) -> None:
    """A sampler would read beyond the end of the edges."""
    store, (row, _, pointers) = GraphStore(), graph()
    wrong = {
        "its pointers do not go from 0 to": [pointers + 1, pointers[:-1], pointers.clone()[:0]],
        "its pointers decrease": [torch.cat([pointers[:5], pointers[3:4], pointers[6:]])],
    }
    for sentence, drawn in wrong.items():
        for given in drawn:
            with pytest.raises(ValueError, match=f"put {layout} edges of .*{sentence}"):
                store[EdgeAttr(("a", "to", "b"), layout)] = (row, given) if layout == "csc" else (given, row)
    with pytest.raises(ValueError, match="61 pointers for 59 nodes: give one more than nodes"):
        store[EdgeAttr(("a", "to", "b"), layout, size=(59, 59))] = (
            (row, pointers) if layout == "csc" else (pointers, row)
        )
    with pytest.raises(ValueError, match=r"put coo edges of .*: \d+ sources and 3 targets"):
        store[EdgeAttr(("a", "to", "b"), "coo")] = (row, row[:3])
    with pytest.raises(ValueError, match=r"put coo edges of .*: an edge index is a pair of tensors"):
        store[EdgeAttr(("a", "to", "b"), "coo")] = ([0], [1])
    assert store.get_all_edge_attrs() == []


@pytest.mark.parametrize(
    ("layout", "pair", "size", "sentence"),
    [
        ("coo", ([0, 1], [1, 2]), (2, 2), "target 2: it is no node: give numbers from 0 to 1"),
        ("coo", ([0, -1], [1, 2]), None, "source -1: it is no node: give numbers from 0 on"),
        ("csr", ([0, 1, 2, 2], [1, 7]), (3, 3), "target 7: it is no node"),
        ("csc", ([0, 9], [0, 1, 2, 2]), (3, 3), "source 9: it is no node"),
        ("coo", ([0], [1]), (-3, 3), r"size \(-3, 3\): give the numbers of source and target nodes"),
        ("coo", ([0.0], [1.0]), None, "numbers of type float32: give integers"),
    ],
)
def test_edges_of_no_nodes_are_refused(layout: str, pair: Any, size: Any, sentence: str) -> None:
    sides = tuple(torch.tensor(side) for side in pair)
    with pytest.raises(ValueError, match=f"put {layout} edges of .*: {sentence}"):
        GraphStore()[EdgeAttr(("a", "to", "b"), layout, size=size)] = sides


def test_edges_that_are_not_sorted_as_said_are_refused() -> None:
    attr = EdgeAttr(("a", "to", "b"), "coo", is_sorted=True, size=(3, 3))
    with pytest.raises(ValueError, match="its targets decrease: leave is_sorted out"):
        GraphStore()[attr] = torch.tensor([0, 1]), torch.tensor([2, 1])


@pytest.mark.parametrize("given", [None, "x", [[1.0]], torch.eye(3).to_sparse()])
def test_features_that_are_no_tensor_are_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"put features 'x' of 'paper': it is a .*: give a"):
        FeatureStore(device="cpu")["paper", "x", None] = given


def test_edges_are_converted_between_layouts() -> None:
    store, (row, col, pointers) = GraphStore(), graph()
    store[EdgeAttr(("a", "to", "a"), "coo", False, (60, 60))] = (row, col)
    rows, columns, _ = store.csc()
    assert torch.equal(columns["a", "to", "a"], pointers)
    assert sorted(rows["a", "to", "a"].tolist()) == sorted(row.tolist())


def test_edges_may_lie_in_a_file(tmp_path: Path) -> None:
    row, _, pointers = graph()
    np.save(tmp_path / "row.npy", row.numpy())
    np.save(tmp_path / "pointers.npy", pointers.numpy())
    sides = [
        penstock.open(tmp_path / name, placement="host", device="cpu") for name in ("row.npy", "pointers.npy")
    ]
    store = GraphStore()
    store[EdgeAttr(("a", "to", "a"), "csc", size=(60, 60))] = tuple(sides)
    taken = store[EdgeAttr(("a", "to", "a"), "csc")]
    assert torch.equal(taken[0], row)
    assert torch.equal(taken[1], pointers)
    assert taken[0].data_ptr() == sides[0].tensor().data_ptr(), "read in place"


class AllNeighbours(NeighborSampler):
    """One hop, all neighbours, in the order of the edges: sampling itself needs libraries of PyG's, which
    are built for one torch. The stores are asked for the same as by PyG's own sampler."""

    def _sample(self, seed: Any, *_: Any, **__: Any) -> Any:
        spans = [torch.arange(int(self.colptr[s]), int(self.colptr[s + 1])) for s in seed]
        edges = torch.cat(spans)
        targets = torch.cat([torch.full((len(span),), k) for k, span in enumerate(spans)])
        sources = self.row[edges]
        node, inverse = torch.cat([seed, sources]).unique(return_inverse=True)
        return SamplerOutput(
            node=node, row=inverse[len(seed) :], col=inverse[: len(seed)][targets], edge=edges
        )


@pytest.mark.parametrize("placement", ["host", "host-cached"])
def test_a_store_is_pickled_with_what_was_stored(tmp_path: Path, device: str, placement: str) -> None:
    np.save(tmp_path / "x.npy", FEATURES.numpy())
    store = FeatureStore(placement, device=device)
    store["A", "x", None] = penstock.open(tmp_path / "x.npy", placement="storage", device=device)
    store["A", "y", None] = FEATURES.clone()
    store["A", "y", torch.tensor([1])] = torch.full((1, 3), 9.0)
    again = pickle.loads(pickle.dumps(store))
    assert again.array("A", "x").path == str(tmp_path / "x.npy")
    assert again.array("A", "y").placement == placement
    for name in ("x", "y"):
        assert equal(again["A", name, INDEX], store["A", name, INDEX].cpu())
    again["A", "y", torch.tensor([0])] = torch.ones(1, 3)
    assert equal(store["A", "y", torch.tensor([0])], FEATURES[:1]), "a copy"
    store.array("A", "y").close()
    with pytest.raises(ValueError, match="it is closed"):
        pickle.dumps(store)


@pytest.mark.filterwarnings("ignore")  # of PyG, and of forks of processes with threads
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("placement", ["host", "storage"])
def test_workers_of_a_neighbour_loader_read_from_the_stores(
    tmp_path: Path, placement: str, start: str
) -> None:
    row, _, pointers = graph()
    content = np.arange(60 * 4, dtype=np.float32).reshape(60, 4)
    np.save(tmp_path / "x.npy", content)
    np.save(tmp_path / "row.npy", row.numpy())
    features, edges = FeatureStore(device="cpu"), GraphStore()
    features[None, "x", None] = penstock.open(tmp_path / "x.npy", placement=placement, device="cpu")
    features[None, "y", None] = torch.arange(60)
    sources = penstock.open(tmp_path / "row.npy", placement="host", device="cpu")
    edges[EdgeAttr(None, "csc", size=(60, 60))] = (sources, pointers)
    data = (features, edges)
    loader = NeighborLoader(
        data,
        [-1],
        input_nodes=torch.arange(60),
        batch_size=16,
        neighbor_sampler=AllNeighbours(data, [-1]),
        num_workers=2,
        multiprocessing_context=start,
    )
    batches = list(loader)
    assert len(batches) == 4
    for batch in batches:
        np.testing.assert_array_equal(batch.x, content[batch.y])
        assert torch.equal(batch.y, batch.n_id)


@pytest.mark.filterwarnings("ignore")  # of PyG, that its libraries are not there
@pytest.mark.parametrize("placement", ["host", "storage"])
def test_a_neighbour_loader_takes_its_batches_from_the_stores(
    tmp_path: Path, placement: str, device: str
) -> None:
    row, col, pointers = graph()
    content = np.arange(60 * 4, dtype=np.float32).reshape(60, 4)
    np.save(tmp_path / "x.npy", content)
    features, edges = FeatureStore(device=device), GraphStore()
    features[None, "x", None] = penstock.open(tmp_path / "x.npy", placement=placement, device=device)
    features[None, "y", None] = torch.arange(60)
    edges[EdgeAttr(None, "csc", size=(60, 60))] = (row, pointers)
    data = (features, edges)
    sampler = AllNeighbours(data, [-1])
    loader = NeighborLoader(data, [-1], input_nodes=torch.arange(60), batch_size=16, neighbor_sampler=sampler)
    expected = torch.stack([row, col])
    seen = []
    for batch in loader:
        assert isinstance(batch, Data)
        nodes = batch.y.cpu()
        np.testing.assert_array_equal(batch.x.cpu(), content[nodes])
        seen.append(nodes[batch.edge_index])
    pairs = torch.cat(seen, dim=1)
    assert sorted(map(tuple, pairs.t().tolist())) == sorted(map(tuple, expected.t().tolist()))


@pytest.mark.filterwarnings("ignore")
def test_a_loader_of_several_node_types(tmp_path: Path, device: str) -> None:
    torch_sparse = pytest.importorskip(
        "torch_sparse", reason="PyG samples by torch_sparse or pyg-lib: neither is there"
    )
    assert torch_sparse is not None
    row, _, pointers = graph()
    features, edges = FeatureStore(device=device), GraphStore()
    for group in ("a", "b"):
        np.save(tmp_path / f"{group}.npy", np.arange(60 * 4, dtype=np.float32).reshape(60, 4) + ord(group))
        features[group, "x", None] = penstock.open(
            tmp_path / f"{group}.npy", placement="storage", device=device
        )
    for edge_type in (("a", "to", "b"), ("b", "back", "a")):
        edges[EdgeAttr(edge_type, "csc", size=(60, 60))] = (row, pointers)
    loader = NeighborLoader((features, edges), [5, 5], input_nodes=("a", torch.arange(60)), batch_size=16)
    count = 0
    for batch in loader:
        assert isinstance(batch, HeteroData)
        for group in ("a", "b"):
            nodes = batch[group].n_id.numpy()
            np.testing.assert_array_equal(
                batch[group].x.cpu(), np.arange(60 * 4).reshape(60, 4)[nodes] + ord(group)
            )
        count += batch["a"].batch_size
    assert count == 60


def test_bad_calls_of_stores_leave_nothing_behind() -> None:
    features, edges = FeatureStore(device="cpu"), GraphStore()
    features["n", "x", None] = FEATURES
    check_leaves_nothing(
        [
            lambda: features["n", "x", torch.tensor([99])],
            lambda: features["n", "y", None],
            lambda: features.update_tensor(FEATURES, "m", "x", None),
            lambda: edges[EdgeAttr(("a", "to", "b"), "coo")],
        ]
    )

"""PyG's stores with two node types, edges both ways: loaders give of them what they give of a HeteroData."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from places import small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
from penstock.pyg import FeatureStore, GraphStore  # noqa: E402
from torch_geometric.data import EdgeAttr, HeteroData, TensorAttr  # noqa: E402
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader  # noqa: E402
from torch_geometric.loader.utils import filter_custom_hetero_store  # noqa: E402
from torch_geometric.sampler import HeteroSamplerOutput, NeighborSampler  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyG, that its libraries are not there

COUNTS = {"author": 45, "paper": 60}
WRITES, REVERSE, CITES = (
    ("author", "writes", "paper"),
    ("paper", "rev_writes", "author"),
    ("paper", "cites", "paper"),
)
LAYOUTS = ["coo", "csc", "csr", "mixed"]


def features() -> dict[tuple[Any, str], Any]:
    """Several for each type of nodes, of several types and widths, and one of edges."""
    generator = torch.Generator().manual_seed(3)
    return {
        ("author", "x"): torch.randn(45, 6, generator=generator),
        ("author", "age"): torch.randint(90, (45,), generator=generator),
        ("paper", "x"): torch.randn(60, 11, generator=generator).half(),
        ("paper", "y"): torch.arange(60),
        ("paper", "mask"): torch.rand(60, generator=generator) < 0.5,
        (WRITES, "weight"): torch.rand(200, generator=generator),
    }


def edges() -> dict[Any, Any]:
    """Pairs; no edge reaches the last author and the last papers, and one author has written nothing."""
    generator = torch.Generator().manual_seed(5)
    authors = torch.randint(1, 44, (200,), generator=generator)
    papers = torch.randint(57, (200,), generator=generator)
    cites = torch.randint(57, (2, 300), generator=generator)
    return {
        WRITES: torch.stack([authors, papers]),
        REVERSE: torch.stack([papers, authors]),
        CITES: cites,
    }


def pointers_of(sorted_side: Any, count: int) -> Any:
    sizes = torch.bincount(sorted_side, minlength=count)
    return torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])


def laid_out(pairs: Any, layout: str, size: tuple[int, int]) -> tuple[Any, Any]:
    if layout == "coo":
        return pairs[0], pairs[1]
    if layout == "csc":
        row, col = pairs[:, pairs[1].argsort(stable=True)]
        return row, pointers_of(col, size[1])
    row, col = pairs[:, pairs[0].argsort(stable=True)]
    return pointers_of(row, size[0]), col


def stores(
    folder: Path, layout: str = "csc", placement: str = "storage", device: str = "cpu"
) -> tuple[Any, Any]:
    """Wide features and the edges in files, the rest in memory."""
    ours, graph = FeatureStore(device=device), GraphStore()
    for k, ((group, name), values) in enumerate(features().items()):
        if values.ndim == 2:
            np.save(folder / f"{k}.npy", values.numpy())
            values = penstock.open(
                folder / f"{k}.npy", placement=placement, device=device, **small_cache(placement, 4096)
            )
        ours[group, name, None] = values
    for k, (edge_type, pairs) in enumerate(edges().items()):
        own = LAYOUTS[k] if layout == "mixed" else layout
        size = (COUNTS[edge_type[0]], COUNTS[edge_type[-1]])
        sides = []
        for s, side in enumerate(laid_out(pairs, own, size)):
            np.save(folder / f"edges{k}{s}.npy", side.numpy())
            sides.append(penstock.open(folder / f"edges{k}{s}.npy", placement="host", device="cpu"))
        graph[EdgeAttr(edge_type, own, size=size)] = tuple(sides)
    return ours, graph


def whole() -> Any:
    """The same graph as PyG has it."""
    data = HeteroData()
    for (group, name), values in features().items():
        data[group][name] = values
    for edge_type, pairs in edges().items():
        data[edge_type].edge_index = pairs
    return data


class AllNeighbours(NeighborSampler):
    """All neighbours of each hop, in place of PyG's sampling, whose libraries are built for one torch. The
    stores are asked for the same as by PyG's own sampler."""

    def _sample(self, seed: Any, *_: Any, **__: Any) -> Any:
        none = torch.zeros(0, dtype=torch.int64)
        nodes = {kind: seed.get(kind, none) for kind in self.node_types}
        taken = {edge_type: [none] for edge_type in self.edge_types}
        frontier = nodes
        for _hop in range(self.num_neighbors.num_hops):
            found = {kind: [none] for kind in nodes}
            for edge_type in self.edge_types:
                pointers, sources = self._csc(edge_type)
                spans = [
                    torch.arange(int(pointers[n]), int(pointers[n + 1])) for n in frontier[edge_type[-1]]
                ]
                taken[edge_type].append(torch.cat([none, *spans]))
                found[edge_type[0]].append(sources[taken[edge_type][-1]])
            seen = {kind: torch.cat(found[kind]).unique() for kind in nodes}
            frontier = {kind: seen[kind][~torch.isin(seen[kind], nodes[kind])] for kind in nodes}
            nodes = {kind: torch.cat([nodes[kind], frontier[kind]]) for kind in nodes}
        edge = {edge_type: torch.cat(parts) for edge_type, parts in taken.items()}
        row, col = {}, {}
        for edge_type, numbers in edge.items():
            pointers, sources = self._csc(edge_type)
            targets = torch.searchsorted(pointers, numbers, right=True) - 1
            row[edge_type] = place_in(nodes[edge_type[0]], sources[numbers])
            col[edge_type] = place_in(nodes[edge_type[-1]], targets)
        return HeteroSamplerOutput(node=nodes, row=row, col=col, edge=edge)

    def _csc(self, edge_type: Any) -> tuple[Any, Any]:
        name = self.to_rel_type[edge_type]
        return self.colptr_dict[name], self.row_dict[name]


def place_in(nodes: Any, wanted: Any) -> Any:
    order = nodes.argsort()
    return order[torch.searchsorted(nodes[order], wanted)]


def loader_of(data: Any, kind: str, **options: Any) -> Any:
    sampler = AllNeighbours(data, [-1, -1])
    return NeighborLoader(
        data, [-1, -1], input_nodes=kind, batch_size=16, neighbor_sampler=sampler, **options
    )


def pairs_of(batch: Any, edge_type: Any) -> Any:
    """The batch's edges by the numbers that the graph has for their ends."""
    row, col = batch[edge_type].edge_index
    return torch.stack([batch[edge_type[0]].n_id[row], batch[edge_type[-1]].n_id[col]])


def check_same(batch: Any, expected: Any) -> None:
    assert isinstance(batch, HeteroData)
    assert set(batch.edge_types) == set(edges())
    for (group, name), values in features().items():
        if isinstance(group, str):
            assert torch.equal(batch[group].n_id, expected[group].n_id)
            assert torch.equal(batch[group][name].cpu(), values[batch[group].n_id])
            assert torch.equal(batch[group][name].cpu(), expected[group][name])
    for edge_type in edges():
        wanted = pairs_of(expected, edge_type)
        assert sorted(pairs_of(batch, edge_type).t().tolist()) == sorted(wanted.t().tolist())


@pytest.mark.parametrize("kind", ["author", "paper"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("placement", ["host", "storage"])
def test_batches_are_those_of_a_heterodata(
    tmp_path: Path, device: str, kind: str, layout: str, placement: str
) -> None:
    loader = loader_of(stores(tmp_path, layout, placement, device), kind)
    asked, many = [], 0
    for batch, expected in zip(loader, loader_of(whole(), kind), strict=True):
        check_same(batch, expected)
        assert batch[kind].batch_size == len(batch[kind].input_id)
        asked.append(batch[kind].n_id[: batch[kind].batch_size])
        many += sum(batch[edge_type].num_edges for edge_type in edges())
    assert torch.equal(torch.cat(asked), torch.arange(COUNTS[kind]))
    assert many > 200


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_edges_are_known_by_their_numbers(tmp_path: Path, device: str, layout: str) -> None:
    """e_id is where an edge is in the store's own layout, and so names the row of its features."""
    data = stores(tmp_path, layout, "host", device)
    rows, columns, _ = data[1].coo()
    for batch in loader_of(data, "paper"):
        for edge_type in edges():
            numbers = batch[edge_type].e_id
            stored = torch.stack([rows[edge_type][numbers], columns[edge_type][numbers]])
            assert torch.equal(stored, pairs_of(batch, edge_type))
        numbers = batch[WRITES].e_id
        assert torch.equal(data[0][WRITES, "weight", numbers].cpu(), features()[WRITES, "weight"][numbers])


def test_links_are_loaded_with_their_neighbours(tmp_path: Path, device: str) -> None:
    data = stores(tmp_path, "mixed", "storage", device)
    links = LinkNeighborLoader(
        data, [-1], edge_label_index=(WRITES, None), batch_size=64, neighbor_sampler=AllNeighbours(data, [-1])
    )
    seen = []
    for batch in links:
        for group, name in (("author", "x"), ("paper", "y")):
            assert torch.equal(batch[group][name].cpu(), features()[group, name][batch[group].n_id])
        authors, papers = batch[WRITES].edge_label_index
        seen.append(torch.stack([batch["author"].n_id[authors], batch["paper"].n_id[papers]]))
    assert sorted(torch.cat(seen, 1).t().tolist()) == sorted(edges()[WRITES].t().tolist())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("placement", ["host", "storage"])
def test_workers_load_too(tmp_path: Path, placement: str) -> None:
    loader = loader_of(stores(tmp_path, "mixed", placement), "author", num_workers=1)
    for batch, expected in zip(loader, loader_of(whole(), "author"), strict=True):
        check_same(batch, expected)


def test_what_was_sampled_is_filled_from_the_stores(tmp_path: Path, device: str) -> None:
    """As a loader does it, with a type of nodes of which there are none, one that was not sampled, and one
    type of edges."""
    ours, graph = stores(tmp_path, "csc", "storage", device)
    ours["venue", "x", None] = torch.ones(3, 2)
    row, col = torch.tensor([1, 0, 1]), torch.tensor([0, 0, 1])
    batch = filter_custom_hetero_store(
        ours,
        graph,
        {"author": torch.tensor([44, 0]), "paper": torch.zeros(0, dtype=torch.int64)},
        {WRITES: row},
        {WRITES: col},
        {WRITES: None},
    )
    assert set(batch.node_types) == {"author", "paper"}
    assert batch["author"].num_nodes == 2
    assert torch.equal(batch["author"].x.cpu(), features()["author", "x"][[44, 0]])
    assert torch.equal(batch["author"].age.cpu(), features()["author", "age"][[44, 0]])
    assert batch["paper"].x.shape == (0, 11)
    assert batch["paper"].mask.dtype == torch.bool
    assert batch.edge_types == [WRITES]
    assert torch.equal(batch[WRITES].edge_index, torch.stack([row, col]))
    with pytest.raises(IndexError, match="index 45 at position 1"):
        filter_custom_hetero_store(ours, graph, {"author": torch.tensor([0, 45])}, {}, {}, {})


def test_stores_know_how_many_nodes_there_are(tmp_path: Path) -> None:
    ours, graph = stores(tmp_path, "mixed")
    sampler = NeighborSampler((ours, graph), [-1])
    assert sampler.num_nodes == COUNTS
    assert set(sampler.node_types) == set(COUNTS)
    assert set(sampler.edge_types) == set(edges())
    taken = ours.multi_get_tensor([TensorAttr(group, name, None) for group, name in features()])
    for one, values in zip(taken, features().values(), strict=True):
        assert torch.equal(one.cpu(), values)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wanted", ["coo", "csc", "csr"])
def test_every_layout_is_made_of_every_other(tmp_path: Path, layout: str, wanted: str) -> None:
    """Both directions, each with the sizes of its own ends."""
    _, graph = stores(tmp_path, layout)
    rows, columns, _ = getattr(graph, wanted)()
    for edge_type, pairs in edges().items():
        row, col = rows[edge_type], columns[edge_type]
        if wanted == "csr":
            assert len(row) == COUNTS[edge_type[0]] + 1
            row = torch.repeat_interleave(torch.arange(len(row) - 1), row.diff())
        if wanted == "csc":
            assert len(col) == COUNTS[edge_type[-1]] + 1
            col = torch.repeat_interleave(torch.arange(len(col) - 1), col.diff())
        assert sorted(torch.stack([row, col]).t().tolist()) == sorted(pairs.t().tolist())

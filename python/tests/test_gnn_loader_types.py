"""Loaders over several types of nodes and edges, and links with times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from penstock import _native  # noqa: E402
from penstock.gnn import (  # noqa: E402
    HeteroBatch,
    HeteroLinkLoader,
    HeteroNeighborLoader,
    LinkLoader,
    NeighborLoader,
)
from penstock.gnn.loading.pairs import Links  # noqa: E402
from penstock.sampling import Graph, HeteroNeighborSampler  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if _native.cuda_usable()[0] and torch.cuda.is_available() else [])]
PAPERS, AUTHORS, TOPICS = 900, 500, 40
COUNTS = {"paper": PAPERS, "author": AUTHORS, "topic": TOPICS}
CITES, WRITES, ABOUT = (
    ("paper", "cites", "paper"),
    ("author", "writes", "paper"),
    ("topic", "of", "paper"),
)
HAS = ("paper", "by", "author")
SIZES = {CITES: 6000, WRITES: 3000, ABOUT: 1500, HAS: 2500}


class Library:
    """Papers, authors and topics, whose features say which node they are of."""

    def __init__(self, device: str = "cpu", *, times: bool = False) -> None:
        draw = np.random.default_rng(1)
        self.ends = {
            kind: np.stack([draw.integers(0, COUNTS[kind[0]], size), draw.integers(0, COUNTS[kind[2]], size)])
            for kind, size in SIZES.items()
        }
        self.edge_times = {kind: draw.integers(0, 100, size) for kind, size in SIZES.items()}
        self.graphs = {
            kind: Graph.from_edges(
                self.ends[kind][0],
                self.ends[kind][1],
                (COUNTS[kind[0]], COUNTS[kind[2]]),
                edge_times=self.edge_times[kind] if times else None,
                device=device,
            )
            for kind in SIZES
        }
        self.features = {
            "paper": {"x": numbered(PAPERS, 4), "rank": 3 * torch.arange(PAPERS)},
            "author": numbered(AUTHORS, 2),
        }
        self.labels = torch.arange(PAPERS) % 7

    def loader(self, **options: Any) -> HeteroNeighborLoader:
        given: dict[str, Any] = {"labels": self.labels, "batch_size": 100, "seed": 3, **options}
        seeds = given.pop("seeds", ("paper", np.arange(0, PAPERS, 2)))
        fanout = given.pop("fanout", [4, 3])
        return HeteroNeighborLoader(self.graphs, given.pop("features", self.features), seeds, fanout, **given)


def numbered(rows: int, width: int) -> Any:
    return torch.arange(rows, dtype=torch.float32)[:, None].repeat(1, width)


def signature(batch: HeteroBatch) -> tuple[Any, ...]:
    ids = [{kind: each.tolist() for kind, each in of.items()} for of in (batch.n_id_dict, batch.e_id_dict)]
    return (batch.number, *ids, None if batch.y is None else batch.y.tolist())


@pytest.fixture(params=DEVICES)
def library(request: pytest.FixtureRequest) -> Library:
    return Library(request.param)


def check_edges(library: Library, batch: HeteroBatch) -> None:
    """Each edge is the one of its id."""
    for kind, index in batch.edge_index_dict.items():
        ids = batch.e_id_dict[kind].cpu().numpy()
        for side, node_type in enumerate((kind[0], kind[2])):
            nodes = batch.n_id_dict[node_type][index[side]].cpu().numpy()
            assert np.array_equal(nodes, library.ends[kind][side][ids])


def test_a_batch_has_the_rows_of_all_types(library: Library) -> None:
    attributes = {kind: torch.arange(SIZES[kind], dtype=torch.float32)[:, None] for kind in (CITES, HAS)}
    loader = library.loader(seeds=("paper", np.arange(400)), batch_size=128, edge_features=attributes)
    seen = []
    for batch in loader:
        assert set(batch.x_dict) == {"paper", "author"}
        assert set(batch.n_id_dict) == set(COUNTS)
        for kind, x in batch.x_dict.items():
            assert torch.equal(x[:, 0].long(), batch.n_id_dict[kind])
        assert torch.equal(batch.features_dict["paper"]["rank"], 3 * batch.n_id_dict["paper"])
        assert set(batch.edge_attr_dict) == {CITES, HAS}
        for edge_type, rows in batch.edge_attr_dict.items():
            assert torch.equal(rows[:, 0].long(), batch.e_id_dict[edge_type])
        check_edges(library, batch)
        seeds = batch.n_id_dict["paper"][: batch.batch_size].cpu()
        assert torch.equal(batch.y.cpu(), library.labels[seeds])
        assert (batch.input_type, batch.batch_size) == ("paper", batch.nodes_per_hop_dict["paper"][0])
        seen += seeds.tolist()
    assert sorted(seen) == list(range(400))
    stats = loader.stats()
    assert stats["batches"] == len(loader) == 4
    assert sum(stats["bytes"].values()) > stats["edges"] > 0


def test_a_batch_is_what_the_sampler_draws(library: Library) -> None:
    loader = library.loader(
        shuffle=False, fanout={CITES: [2, 2], WRITES: [3, 0], ABOUT: [0, 1], HAS: [-1, 1]}
    )
    batch = list(loader)[1]
    sampler = HeteroNeighborSampler(library.graphs, loader._sampler.fanout, seed=3)
    made = sampler.sample({"paper": np.arange(200, 400, 2)}, call=1)
    assert all(torch.equal(batch.n_id_dict[kind], made.nodes[kind]) for kind in COUNTS)
    assert all(torch.equal(batch.e_id_dict[kind], made.edges[kind]) for kind in SIZES)


def test_all_edges_of_all_types_into_the_seeds_are_there(library: Library) -> None:
    batch = next(iter(library.loader(fanout=[-1], batch_size=70)))
    seeds = batch.n_id_dict["paper"][:70].cpu().numpy()
    for kind, ends in library.ends.items():
        into = np.flatnonzero(np.isin(ends[1], seeds)) if kind[2] == "paper" else np.empty(0, int)
        assert sorted(batch.e_id_dict[kind].tolist()) == into.tolist()
        if kind[0] != "paper" and kind[2] == "paper":
            assert sorted(batch.n_id_dict[kind[0]].tolist()) == sorted(set(ends[0][into].tolist()))


def test_an_epoch_of_types_goes_on_from_a_state(library: Library) -> None:
    whole = [signature(batch) for batch in library.loader()]
    assert whole == [signature(batch) for batch in library.loader(prefetch=5)]
    first = library.loader()
    begun = [signature(batch) for _, batch in zip(range(2), first, strict=False)]
    second = library.loader()
    second.load_state_dict(first.state_dict())
    assert begun + [signature(batch) for batch in second] == whole
    second.set_epoch(1)
    assert [signature(batch) for batch in second] != whole


def test_executors_give_the_same_batches_of_types() -> None:
    if len(DEVICES) == 1:
        pytest.skip("no GPU here")
    one, other = ([signature(batch) for batch in Library(device).loader()] for device in DEVICES)
    assert one == other


def test_seeds_of_a_type_are_all_or_a_mask() -> None:
    library = Library()
    loader = library.loader(seeds="author", labels=torch.arange(AUTHORS), features=None, shuffle=False)
    batches = list(loader)
    assert torch.equal(torch.cat([batch.y for batch in batches]), torch.arange(AUTHORS))
    assert batches[0].x_dict == {}
    mask = np.zeros(PAPERS, bool)
    mask[[5, 9]] = True
    batch = next(iter(library.loader(seeds=("paper", mask), shuffle=False)))
    assert batch.n_id_dict["paper"][:2].tolist() == [5, 9]


def test_a_batch_of_types_is_pygs_data() -> None:
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    library = Library()
    batch = next(iter(library.loader(edge_features={CITES: torch.arange(SIZES[CITES])})))
    data = batch.to("cpu").to_hetero_data()
    data.validate()
    assert (data["paper"].batch_size, data["topic"].num_nodes) == (100, len(batch.n_id_dict["topic"]))
    assert torch.equal(data["paper"].y, batch.y)
    assert all(torch.equal(data.x_dict[kind], x) for kind, x in batch.x_dict.items())
    assert all(torch.equal(data.edge_index_dict[kind], each) for kind, each in batch.edge_index_dict.items())
    assert torch.equal(data[CITES].edge_attr, batch.edge_attr_dict[CITES])
    assert not hasattr(data[WRITES], "edge_attr")


# Times


def test_neighbours_of_types_are_not_later_than_their_seed(library: Library) -> None:
    device = str(next(iter(library.graphs.values())).neighbors.device)
    timed = Library(device, times=True)
    times = np.arange(PAPERS) % 100
    loader = timed.loader(seeds="paper", seed_times=times, fanout=[-1, -1], batch_size=64)
    for batch in loader:
        assert batch.batch_dict is not None
        check_edges(timed, batch)
        late = times[batch.n_id_dict["paper"][: batch.batch_size].cpu().numpy()]
        for kind, index in batch.edge_index_dict.items():
            trees = batch.batch_dict[kind[2]][index[1]].cpu().numpy()
            assert (timed.edge_times[kind][batch.e_id_dict[kind].cpu().numpy()] <= late[trees]).all()
    # of the first hop nothing that may be there is missing
    paper = int(batch.n_id_dict["paper"][0])
    may = (timed.ends[CITES][1] == paper) & (timed.edge_times[CITES] <= times[paper])
    of_seed = batch.edge_index_dict[CITES][1] == 0
    assert sorted(batch.e_id_dict[CITES][of_seed].tolist()) == np.flatnonzero(may).tolist()


NODES, EDGES = 300, 4000


class Timed:
    """Edges with times, or nodes with times."""

    def __init__(self, device: str, of: str) -> None:
        draw = np.random.default_rng(2)
        self.ends = draw.integers(0, NODES, (2, EDGES))
        self.times = draw.integers(0, 50, NODES if of == "nodes" else EDGES)
        name = "node_times" if of == "nodes" else "edge_times"
        options: dict[str, Any] = {name: self.times}
        self.graph = Graph.from_edges(self.ends[0], self.ends[1], NODES, device=device, **options)
        self.links = draw.integers(0, NODES, (2, 90))
        self.link_times = draw.integers(5, 50, 90)

    def loader(self, **options: Any) -> LinkLoader:
        given: dict[str, Any] = {"edge_label_time": self.link_times, "batch_size": 40, **options}
        return LinkLoader(self.graph, numbered(NODES, 2), self.links, [-1, -1], **given)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("of", ["nodes", "edges"])
def test_links_have_neighbours_of_their_time(of: str, device: str) -> None:
    timed = Timed(device, of)
    found = []
    for batch in timed.loader(negatives=1.5):
        assert batch.edge_label is not None
        assert batch.edge_label_time is not None
        assert batch.edge_label_index is not None
        assert batch.batch is not None
        pairs = batch.edge_label_index.shape[1]
        given = int(batch.edge_label.sum())
        assert pairs == given + round(1.5 * given) == len(batch.edge_label_time)
        # disjoint: each end of each pair is a seed of its own
        assert batch.batch_size == 2 * pairs
        assert batch.edge_label_index.cpu().tolist() == torch.arange(2 * pairs).reshape(2, -1).tolist()
        link = torch.arange(pairs) % given
        assert torch.equal(batch.edge_label_time.cpu(), batch.edge_label_time.cpu()[link])
        assert torch.equal(batch.batch[: 2 * pairs].cpu(), link.repeat(2))
        late = batch.edge_label_time[:given][batch.batch].cpu().numpy()
        nodes = batch.n_id.cpu().numpy()
        if of == "edges":
            drawn = timed.times[batch.e_id.cpu().numpy()]
            assert (drawn <= late[batch.edge_index[1].cpu().numpy()]).all()
        else:
            others = np.concatenate([np.arange(given, pairs), np.arange(2 * pairs, len(nodes))])
            others = np.concatenate([others, np.arange(pairs + given, 2 * pairs)])
            assert (timed.times[nodes[others]] <= late[others]).all()
        ends = batch.n_id[batch.edge_label_index][:, :given]
        found += torch.cat([ends, batch.edge_label_time[None, :given]]).T.tolist()
    assert sorted(found) == sorted(np.stack([*timed.links, timed.link_times]).T.tolist())


def test_each_end_of_a_link_is_sampled_as_a_seed_at_its_time() -> None:
    timed = Timed("cpu", "edges")
    batch = next(iter(timed.loader(negatives=0, shuffle=False)))
    seeds, times = timed.links[:, :40].reshape(-1), np.tile(timed.link_times[:40], 2)
    plain = NeighborLoader(
        timed.graph, numbered(NODES, 2), seeds, [-1, -1], 80, seed_times=times, shuffle=False
    )
    other = next(iter(plain))
    assert torch.equal(batch.n_id, other.n_id)
    assert torch.equal(batch.edge_index, other.edge_index)


def test_links_with_times_are_what_the_sampler_for_pyg_gives() -> None:
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    from penstock.pyg import NeighborSampler
    from torch_geometric.sampler import EdgeSamplerInput

    timed = Timed("cpu", "edges")
    batch = next(iter(timed.loader(negatives=0, shuffle=False)))
    links, times = torch.as_tensor(timed.links[:, :40]), torch.as_tensor(timed.link_times[:40])
    asked = EdgeSamplerInput(None, links[0], links[1], time=times)
    made = NeighborSampler(timed.graph, [-1, -1]).sample_from_edges(asked)
    assert torch.equal(batch.n_id, made.node)
    assert torch.equal(batch.edge_index, torch.stack([made.row, made.col]))
    assert torch.equal(batch.batch, made.batch)
    assert torch.equal(batch.edge_label_index, made.metadata[1])
    assert torch.equal(batch.edge_label_time, made.metadata[3])


def test_links_may_have_trees_of_their_own_without_times() -> None:
    library = Library()
    graph, links = library.graphs[CITES], library.ends[CITES][:, :50]
    loader = LinkLoader(graph, numbered(PAPERS, 2), links, [3], 20, negatives=1, disjoint=True)
    batch = next(iter(loader))
    assert batch.batch is not None
    assert batch.edge_label_index is not None
    assert batch.edge_label_time is None
    assert batch.batch_size == 2 * 40
    assert torch.equal(batch.batch[batch.edge_label_index], torch.arange(20).repeat(2, 2))
    ends = batch.edge_index
    assert torch.equal(batch.batch[ends[0]], batch.batch[ends[1]])


def test_negatives_where_all_nodes_are_later_are_the_earliest() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], 3, node_times=[7, 5, 9])
    loader = LinkLoader(graph, numbered(3, 1), [[0], [1]], [1], edge_label_time=[4], negatives=8)
    batch = next(iter(loader))
    assert batch.edge_label_index is not None
    assert batch.n_id[batch.edge_label_index][:, 1:].unique().tolist() == [1]


def test_an_epoch_of_timed_links_is_the_same_again() -> None:
    def drawn() -> list[Any]:
        return [(batch.n_id.tolist(), batch.e_id.tolist()) for batch in Timed("cpu", "nodes").loader()]

    assert drawn() == drawn()


def test_links_have_labels_of_ones_own() -> None:
    timed = Timed("cpu", "edges")
    labels = np.arange(90) % 3
    plain = timed.loader(edge_label=labels / 2, negatives=0, shuffle=False)
    assert torch.cat([batch.edge_label for batch in plain if batch.edge_label is not None]).tolist() == (
        (labels / 2).tolist()
    )
    batch = next(iter(timed.loader(edge_label=torch.as_tensor(labels), shuffle=False)))
    assert batch.edge_label is not None
    assert batch.edge_label.tolist() == [*(labels[:40] + 1).tolist(), *[0] * 40]


@pytest.mark.parametrize("kind", [CITES, WRITES, ("author", "reviews", "author")])
@pytest.mark.parametrize("times", [False, True])
def test_links_of_an_edge_type(kind: Any, times: bool) -> None:
    library = Library(times=times)
    draw = np.random.default_rng(3)
    links = np.stack([draw.integers(0, COUNTS[kind[0]], 70), draw.integers(0, COUNTS[kind[2]], 70)])
    given: dict[str, Any] = {"edge_label_time": np.arange(70)} if times else {}
    loader = HeteroLinkLoader(
        library.graphs, library.features, (kind, links), [4, 3], 30, negatives=0.5, **given
    )
    found = []
    for batch in loader:
        assert batch.edge_label is not None
        assert batch.edge_label_index is not None
        assert batch.input_type == kind
        assert batch.batch_size == len(batch.edge_label)
        check_edges(library, batch)
        ends = [batch.n_id_dict[kind[side * 2]][batch.edge_label_index[side]] for side in range(2)]
        right = batch.edge_label > 0
        found += torch.stack(ends)[:, right].T.tolist()
        assert int((~right).sum()) == round(0.5 * int(right.sum()))
        assert (batch.batch_dict is not None) == times
        if batch.batch_dict is None:
            continue
        assert batch.edge_label_time is not None
        count = int(right.sum())
        for side in range(2):
            trees = batch.batch_dict[kind[side * 2]][batch.edge_label_index[side]]
            assert torch.equal(trees, torch.arange(len(batch.edge_label)) % count)
        for edge_type, index in batch.edge_index_dict.items():
            late = batch.edge_label_time[batch.batch_dict[edge_type[2]][index[1]]].numpy()
            assert (library.edge_times[edge_type][batch.e_id_dict[edge_type].numpy()] <= late).all()
    assert sorted(map(tuple, found)) == sorted(map(tuple, links.T.tolist()))


def test_links_of_types_are_pygs_data() -> None:
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    library = Library()
    loader = HeteroLinkLoader(library.graphs, library.features, (WRITES, library.ends[WRITES]), [2])
    batch = next(iter(loader))
    data = batch.to_hetero_data()
    assert torch.equal(data[WRITES].edge_label, batch.edge_label)
    assert torch.equal(data[WRITES].edge_label_index, batch.edge_label_index)


def test_bad_input_of_types_is_one_sentence() -> None:
    library, timed, links = Library(), Library(times=True), Timed("cpu", "edges")
    papers = numbered(PAPERS, 2)
    no_pair: Any = CITES
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: library.loader(features={"venue": papers}), ValueError, "features of 'venue': there is no"),
        (lambda: library.loader(features={"author": papers}), ValueError, "features of 'author' x of 900"),
        (lambda: library.loader(features={"paper": {"y": papers}}), ValueError, "name one of them x"),
        (lambda: library.loader(features=papers), TypeError, "give them by type"),
        (lambda: library.loader(seeds=("paper", [PAPERS])), IndexError, "900 is no node"),
        (lambda: library.loader(seeds=("venue", [1])), ValueError, "seeds of 'venue': there is no such"),
        (lambda: library.loader(seeds=[1, 2]), TypeError, "a pair of their type and their numbers"),
        (lambda: library.loader(labels=torch.arange(AUTHORS)), ValueError, "500 labels"),
        (lambda: library.loader(edge_features={CITES: papers}), ValueError, "edge_features of .*900 rows"),
        (
            lambda: library.loader(edge_features={("a", "b", "c"): papers}),
            ValueError,
            "edge_features of .* there is no such type",
        ),
        (
            lambda: library.loader(fanout={("a", "b", "c"): [1]}),
            ValueError,
            "a fan-out of .* there is no such edge type",
        ),
        (lambda: library.loader(fanout={CITES: [1]}), ValueError, "no fan-out for"),
        (lambda: library.loader(seed_times=[1]), ValueError, "seed_times for a graph without times"),
        (lambda: timed.loader(), ValueError, "the graph has times: give seed_times"),
        (lambda: timed.loader(seed_times=[1, 2]), ValueError, "seed_times of shape .* for 450 seeds"),
        (lambda: timed.loader(seed_times=np.zeros(450)), TypeError, "seed_times of type float64"),
        (
            lambda: links.loader(negatives=2).load_state_dict(links.loader().state_dict()),
            ValueError,
            "a state of negatives",
        ),
        (lambda: links.loader(edge_label_time=None), ValueError, "give edge_label_time, one for each of 90"),
        (lambda: links.loader(edge_label_time=[1]), ValueError, "edge_label_time of shape .* for 90 links"),
        (lambda: links.loader(edge_label_time=[[1, 2]] * 90), ValueError, "of shape .90, 2. for 90 links"),
        (lambda: links.loader(edge_label_time=np.full(90, 2**63, np.uint64)), ValueError, "numbers up to"),
        (lambda: links.loader(edge_label_time=np.ones(90, complex)), TypeError, "give integers"),
        (lambda: links.loader(edge_label=np.full(90, 2**63 - 1)), ValueError, "whole numbers from 0 on"),
        (lambda: links.loader(edge_label=[1]), ValueError, "1 edge_label for 90 links"),
        (lambda: links.loader(edge_label=["a"] * 90), TypeError, "edge_label: .*give numbers"),
        (
            lambda: links.loader(edge_label=np.ones(90)),
            TypeError,
            "edge_label with negatives of type float64",
        ),
        (
            lambda: HeteroLinkLoader(library.graphs, None, (("paper", "in", "venue"), [[0], [0]]), [1]),
            ValueError,
            "edges of 'venue': there is no such type",
        ),
        (
            lambda: HeteroLinkLoader(library.graphs, None, (WRITES, [[AUTHORS], [0]]), [1]),
            IndexError,
            "500 is no node",
        ),
        (lambda: HeteroLinkLoader(library.graphs, None, no_pair, [1]), TypeError, "a pair of their type"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words) as raised:
            call()
        assert "\n" not in str(raised.value)


def test_times_of_nodes_are_read_for_negatives_alone() -> None:
    class Unread:
        def __getitem__(self, _: Any) -> None:
            raise AssertionError("they were read")

    times = (Unread(), Unread())
    Links([[0], [1]], (3, 3), 0, None, [5], has_times=True, node_times=times)
    with pytest.raises(AssertionError):
        Links([[0], [1]], (3, 3), 1, None, [5], has_times=True, node_times=times)

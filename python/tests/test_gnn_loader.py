"""Loaders that sample and gather ahead: what a batch has, order, resuming, errors."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import penstock  # noqa: E402
from penstock import _native  # noqa: E402
from penstock.gnn import (  # noqa: E402
    Batch,
    HeteroLinkLoader,
    HeteroNeighborLoader,
    LinkLoader,
    NeighborLoader,
)
from penstock.sampling import Graph  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if _native.cuda_usable()[0] and torch.cuda.is_available() else [])]
NODES, EDGES = 4000, 60_000


class Table:
    """A graph whose features say which node they are of."""

    def __init__(self, device: str) -> None:
        draw = np.random.default_rng(0)
        self.sources, self.targets = draw.integers(0, NODES, (2, EDGES))
        self.graph = Graph.from_edges(self.sources, self.targets, NODES, device=device)
        self.features = torch.arange(NODES, dtype=torch.float32)[:, None].repeat(1, 5)
        self.labels = torch.arange(NODES) % 7
        self.edges = torch.arange(EDGES, dtype=torch.float32)[:, None]

    def loader(self, **options: Any) -> NeighborLoader:
        given: dict[str, Any] = {"labels": self.labels, "batch_size": 100, "seed": 3, **options}
        return NeighborLoader(self.graph, self.features, np.arange(0, 2000, 2), [4, 3], **given)


@pytest.fixture(params=DEVICES)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(request.param)


def loading_threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name in ("penstock sampling", "penstock gather")]


def wait_for_their_end() -> None:
    until = time.monotonic() + 10
    while loading_threads():
        assert time.monotonic() < until, "threads of a loader that was left did not end"


def signature(batch: Batch) -> tuple[Any, ...]:
    return (batch.number, batch.n_id.tolist(), batch.e_id.tolist(), batch.y.tolist())


def test_a_batch_has_the_rows_of_its_nodes_and_edges(table: Table) -> None:
    more = torch.arange(NODES) * 3
    loader = NeighborLoader(
        table.graph,
        {"x": table.features, "rank": more},
        np.arange(500),
        [4, 3],
        128,
        labels=table.labels.numpy(),
        edge_features=table.edges,
        edge_type=(np.arange(EDGES) % 5).astype(np.uint8),
    )
    seen = []
    for batch in loader:
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)
        assert torch.equal(batch.features["rank"], 3 * batch.n_id)
        assert batch.edge_attr is not None
        assert torch.equal(batch.edge_attr[:, 0].long(), batch.e_id)
        assert batch.edge_type is not None
        assert batch.edge_type.dtype == torch.int64
        assert torch.equal(batch.edge_type, batch.e_id % 5)
        seeds = batch.n_id[: batch.batch_size].cpu()
        assert torch.equal(batch.y.cpu(), table.labels[seeds])
        ends = batch.n_id[batch.edge_index].cpu().numpy()
        ids = batch.e_id.cpu().numpy()
        assert np.array_equal(ends, [table.sources[ids], table.targets[ids]])
        seen += seeds.tolist()
    assert sorted(seen) == list(range(500))
    stats = loader.stats()
    assert stats["batches"] == len(loader) == 4
    assert sum(stats["bytes"].values()) == stats["nodes"] * (20 + 8) + stats["edges"] * (4 + 1)


def test_batches_may_be_without_features(table: Table) -> None:
    plain = NeighborLoader(table.graph, None, [5, 9], [2], edge_features=table.edges)
    ends = [[5, 9], [1, 2]]
    for batch in (next(iter(plain)), next(iter(LinkLoader(table.graph, None, ends, [2])))):
        assert batch.x is None
        assert len(batch.n_id) > 2
    assert torch.equal(next(iter(plain)).edge_attr[:, 0].long(), next(iter(plain)).e_id)


def test_an_epoch_is_the_same_again_and_goes_on_from_a_state(table: Table) -> None:
    whole = [signature(batch) for batch in table.loader()]
    assert whole == [signature(batch) for batch in table.loader(prefetch=5)]
    first = table.loader()
    begun = []
    for batch in first:
        begun.append(signature(batch))
        if len(begun) == 4:
            break
    state = first.state_dict()
    assert state["batch"] == 4
    second = table.loader()
    second.load_state_dict(state)
    assert begun + [signature(batch) for batch in second] == whole
    second.set_epoch(1)
    other = [signature(batch) for batch in second]
    assert other != whole
    labels = [sorted(label for each in epoch for label in each[3]) for epoch in (other, whole)]
    assert labels[0] == labels[1]
    others: list[tuple[dict[str, Any], str]] = [
        ({"seed": 4}, "state of seed 3"),
        ({"batch_size": 50}, "of batch_size 100"),
        ({"shuffle": False}, "of shuffle True"),
    ]
    for options, words in others:
        with pytest.raises(ValueError, match=words):
            table.loader(**options).load_state_dict(state)
    for wrong in ({}, {**state, "batch": 11}, None):
        with pytest.raises(ValueError, match="loader: "):
            first.load_state_dict(wrong)  # type: ignore[arg-type]


def test_iterations_are_apart_from_each_other(table: Table) -> None:
    loader = table.loader()
    whole = [signature(batch) for batch in loader]
    next(iter(loader))
    assert [signature(batch) for batch in loader] == whole
    one, other = iter(loader), iter(loader)
    pairs = [(signature(a), signature(b)) for a, b in zip(one, other, strict=True)]
    assert pairs == list(zip(whole, whole, strict=True))
    left = iter(table.loader(prefetch=1))
    next(left)
    loader = table.loader(prefetch=1)
    under_way = iter(loader)
    next(under_way)
    loader.close()
    with pytest.raises(ValueError, match="it was closed"):
        list(under_way)
    assert len(list(loader)) == len(whole)


def test_a_new_epoch_takes_no_batch_of_the_one_before(table: Table) -> None:
    loader = table.loader()
    under_way = iter(loader)
    next(under_way)
    while not loader._ahead.all()[0]._batches.full():
        pass  # there is one that could be taken
    loader.set_epoch(1)
    with pytest.raises(ValueError, match="began another epoch"):
        next(under_way)
    assert loader.state_dict()["batch"] == 0


def test_executors_give_the_same_batches() -> None:
    if len(DEVICES) == 1:
        pytest.skip("no GPU here")
    one, other = ([signature(batch) for batch in Table(device).loader()] for device in DEVICES)
    assert one == other


def test_order_and_the_last_batch(table: Table) -> None:
    plain = table.loader(shuffle=False, batch_size=300)
    sizes = [batch.batch_size for batch in plain]
    assert sizes == [300, 300, 300, 100]
    assert len(table.loader(batch_size=300, drop_last=True)) == 3
    first = next(iter(plain))
    assert first.n_id[:3].tolist() == [0, 2, 4]
    mask = np.zeros(NODES, bool)
    mask[[5, 9]] = True
    masked = NeighborLoader(table.graph, table.features, mask, [2], shuffle=False)
    assert next(iter(masked)).n_id[:2].tolist() == [5, 9]
    assert list(NeighborLoader(table.graph, table.features, [], [2])) == []


def test_links_are_pairs_with_both_neighbourhoods(table: Table) -> None:
    ends = np.stack([table.sources[:700], table.targets[:700]])
    loader = LinkLoader(table.graph, table.features, ends, [3, 2], 200, negatives=2, seed=2_000_000_000)
    found = []
    for batch in loader:
        assert batch.edge_label is not None
        assert batch.edge_label_index is not None
        pairs = batch.n_id[batch.edge_label_index].cpu()
        right = batch.edge_label.cpu() > 0
        found += pairs[:, right].T.tolist()
        assert int((~right).sum()) == 2 * int(right.sum())
        assert len(batch.n_id.unique()) == len(batch.n_id)
    assert sorted(map(tuple, found)) == sorted(map(tuple, ends.T.tolist()))


def test_what_fails_ahead_is_raised_where_batches_are_taken(table: Table) -> None:
    loader = table.loader()
    batches = iter(loader)
    next(batches)
    table.graph.close()
    with pytest.raises(ValueError, match="it is closed"):
        for _ in batches:
            pass
    wait_for_their_end()


def test_a_batch_is_sampled_while_the_one_before_is_gathered(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = table.loader()
    second_began = threading.Event()
    sample, gather = loader._sampler.sample, loader._tables.gather

    def sampled(*given: Any, call: int, **options: Any) -> Any:
        if call == 1:
            second_began.set()
        return sample(*given, call=call, **options)

    def gathered(*given: Any) -> Any:
        assert second_began.wait(10), "the second batch was not sampled while the first waited for rows"
        return gather(*given)

    monkeypatch.setattr(loader._sampler, "sample", sampled)
    monkeypatch.setattr(loader._tables, "gather", gathered)
    assert [batch.number for batch in loader] == list(range(len(loader)))


def test_a_loader_that_is_left_ends_its_threads(table: Table) -> None:
    loader = table.loader()
    for _ in loader:
        break
    wait_for_their_end()
    two = [iter(table.loader()), iter(table.loader())]
    assert signature(next(two[0])) == signature(next(two[1]))


def test_an_iteration_is_of_one_epoch(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    other = table.loader()
    other.set_epoch(1)
    whole = [signature(batch) for batch in other]
    loader = table.loader()
    loader.load_state_dict({**loader.state_dict(), "batch": 4})
    batches = iter(loader)
    loader.set_epoch(1)
    assert [signature(batch) for batch in batches] == whole
    taken: list[Any] = []
    beside = threading.Thread(target=lambda: taken.extend(map(signature, loader)))
    close = loader.close

    def close_and_begin() -> None:
        close()
        beside.start()
        beside.join(0.5)  # it begins behind set_epoch, or ends here

    monkeypatch.setattr(loader, "close", close_and_begin)
    loader.set_epoch(0)
    beside.join()
    assert taken == [signature(batch) for batch in table.loader()]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_iteration_may_be_collected_by_its_own_threads(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = table.loader()
    sample, dropped = loader._sampler.sample, threading.Event()

    def sampled(*given: Any, call: int, **options: Any) -> Any:
        if call == 1:
            assert dropped.wait(10)
            with loader._counting:
                gc.collect()
        return sample(*given, call=call, **options)

    monkeypatch.setattr(loader._sampler, "sample", sampled)
    cycle: list[Any] = [iter(loader)]
    cycle.append(cycle)
    next(cycle[0])
    gc.disable()
    try:
        del cycle
        dropped.set()
        wait_for_their_end()
    finally:
        gc.enable()


def test_a_forked_process_is_refused_what_it_has_no_threads_for() -> None:
    batches = iter(Table("cpu").loader())
    next(batches)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            next(batches)
        except ValueError as problem:
            os._exit(0 if "was forked" in str(problem) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(batches)) == 9


def test_a_program_may_end_within_an_epoch() -> None:
    program = """if True:
        import torch
        from penstock.gnn import NeighborLoader
        from penstock.sampling import Graph
        ends = torch.arange(1_000_000)
        graph = Graph.from_edges(ends * 7 % 50_000, ends % 50_000, device="cpu")
        batches = iter(NeighborLoader(graph, torch.zeros(50_000, 8), None, [10, 10], prefetch=50))
        next(batches)
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("kind", [NeighborLoader, LinkLoader, HeteroNeighborLoader, HeteroLinkLoader])
def test_signatures_have_every_option(kind: type) -> None:
    shown = inspect.signature(kind).parameters
    defaults = {
        "shuffle": True,
        "seed": 0,
        "device": "auto",
        "replace": False,
        "disjoint": False,
        "temporal": "uniform",
        "prefetch": 2,
        "drop_last": False,
        "sms": 0,
        "sm_partition": False,
    }
    assert {name: shown[name].default for name in defaults} == defaults


def test_bad_input_is_one_sentence() -> None:
    table = Table("cpu")
    graph, features = table.graph, table.features
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: NeighborLoader(graph, features[:5], [1], [2]), ValueError, "features x of 5 rows"),
        (lambda: NeighborLoader(graph, {"y": features}, [1], [2]), ValueError, "name one of them x"),
        (
            lambda: NeighborLoader(graph, {"x": features, "z": features[:, ::2]}, [1], [2]),
            ValueError,
            "loader: features z: its elements do not follow each other",
        ),
        (lambda: NeighborLoader(graph, features, [NODES], [2]), IndexError, f"{NODES} is no node"),
        (lambda: NeighborLoader(graph, features, [-1], [2]), IndexError, "-1 is no node"),
        (lambda: NeighborLoader(graph, features, [0.5], [2]), TypeError, "give integers"),
        (lambda: NeighborLoader(graph, features, [1], [0]), ValueError, "fan-out 0"),
        (lambda: NeighborLoader(graph, features, [1], [2], 0), ValueError, "batch_size 0"),
        (lambda: NeighborLoader(graph, features, [1], [2], prefetch=0), ValueError, "prefetch 0"),
        (lambda: NeighborLoader(graph, features, [1], [2], sms=-1), ValueError, "sms -1: it must be 0 or"),
        (lambda: table.loader(sms=16, sm_partition=1), TypeError, "sm_partition 1: give True or False"),
        (lambda: table.loader(sms=16), ValueError, "sms 16: a CPU has no multiprocessors: leave it out"),
        (lambda: table.loader(sm_partition=True), ValueError, "sm_partition: a CPU has no multiprocessors"),
        (
            lambda: NeighborLoader(graph, features, [1], [2], shuffle="no"),  # type: ignore[arg-type]
            TypeError,
            "shuffle 'no': give True or False",
        ),
        (
            lambda: LinkLoader(graph, features, [[1], [2]], [2], workers=2),  # type: ignore[call-arg]
            TypeError,
            "workers: there is no such option",
        ),
        (lambda: pickle.dumps(NeighborLoader(graph, features, [1], [2])), TypeError, "one in each process"),
        (lambda: NeighborLoader(graph, features, [1], [2], labels=[1, 2]), ValueError, "2 labels"),
        (lambda: NeighborLoader(graph, features, [1], [2], labels=["a"] * NODES), TypeError, "give numbers"),
        (lambda: NeighborLoader(graph, features, "a", [2]), TypeError, "give integers, or a mask"),
        (
            lambda: NeighborLoader(graph, features, torch.ones(NODES, dtype=torch.uint8), [2]),
            TypeError,
            "as bool",
        ),
        (lambda: table.loader().set_epoch(-1), ValueError, "epoch -1"),
        (
            lambda: NeighborLoader(graph, features, [1], [2], edge_features=features),
            ValueError,
            "edge_features",
        ),
        (
            lambda: NeighborLoader(graph, features, [1], [2], edge_type=table.edges),
            TypeError,
            "edge_type: .* give a list of integers",
        ),
        (lambda: NeighborLoader(graph, features, [1], [2], edge_type=[1]), TypeError, "edge_type: "),
        (lambda: NeighborLoader(graph, features, np.ones(3, bool), [2]), ValueError, "a mask of shape"),
        (lambda: NeighborLoader(features, features, [1], [2]), TypeError, "give a penstock"),
        (lambda: LinkLoader(graph, features, [[1], [NODES]], [2]), IndexError, "is no node"),
        (lambda: LinkLoader(graph, features, [[1], [2]], [2], negatives=-1), ValueError, "negatives -1"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words) as raised:
            call()
        assert "\n" not in str(raised.value)
    assert isinstance(graph.pointers, penstock.Array)

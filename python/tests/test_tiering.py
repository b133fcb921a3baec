"""Scores of nodes, and tables whose hottest rows lie next to the kernels."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from numpy.typing import NDArray
from penstock import _native
from penstock.sampling import Graph
from penstock.sampling.host import on_host
from penstock.tiering import hottest, plan, score, tiered

DEVICES = ["cpu", *(["cuda"] if _native.cuda_usable()[0] else [])]
NODES, EDGES = 3000, 40_000


class Lists:
    def __init__(self) -> None:
        draw = np.random.default_rng(2)
        self.sources = (NODES * draw.random(EDGES) ** 3).astype(np.int64)
        self.targets = draw.integers(0, NODES - 10, EDGES)
        self.incoming = np.bincount(self.targets, minlength=NODES)
        self.train = draw.choice(NODES, 40, replace=False)

    def graph(self, device: str, **options: Any) -> Graph:
        return Graph.from_edges(self.sources, self.targets, NODES, device=device, **options)

    def iterated(self, scores: NDArray[Any], times: int, damping: float = 0.85) -> NDArray[Any]:
        for _ in range(times):
            shares = np.where(self.incoming > 0, scores / np.maximum(self.incoming, 1), 0)
            sums = np.bincount(self.sources, weights=shares[self.targets], minlength=NODES)
            scores = (1 - damping) / NODES + damping * sums
        return scores


@pytest.fixture(scope="module")
def lists() -> Lists:
    return Lists()


@pytest.mark.parametrize("device", DEVICES)
def test_scores_are_those_of_the_algorithms(lists: Lists, device: str) -> None:
    graph = lists.graph(device)
    assert np.array_equal(score(graph, "degree"), np.bincount(lists.sources, minlength=NODES))
    start = np.full(NODES, 1 / NODES)
    assert np.allclose(score(graph, "reverse_pagerank"), lists.iterated(start, 150), atol=1e-8)
    start[lists.train] *= NODES / len(lists.train)
    weighted = score(graph, "weighted_reverse_pagerank", train_ids=lists.train)
    assert np.allclose(weighted, lists.iterated(start, 5), atol=1e-12)
    mask = np.isin(np.arange(NODES), lists.train)
    assert np.array_equal(weighted, score(graph, "weighted_reverse_pagerank", train_ids=mask))


@pytest.mark.parametrize("device", DEVICES)
def test_frequency_counts_what_samples_find(lists: Lists, device: str) -> None:
    graph = lists.graph(device)
    counted = score(graph, "frequency", train_ids=lists.train, fanout=[3], epochs=2, batch_size=7)
    assert counted[lists.train].min() >= 2
    assert counted.sum() == pytest.approx(
        2 * sum(1 + min(3, n) for n in lists.incoming[lists.train]), rel=0.1
    )
    everything = score(graph, "frequency", train_ids=[5], fanout=[-1], epochs=3)
    assert np.array_equal(np.flatnonzero(everything), np.unique([5, *lists.sources[lists.targets == 5]]))


@pytest.mark.skipif(len(DEVICES) == 1, reason="no GPU here")
@pytest.mark.parametrize("method", ["degree", "reverse_pagerank", "weighted_reverse_pagerank", "frequency"])
def test_executors_score_alike(lists: Lists, method: str) -> None:
    given = {"train_ids": lists.train, "fanout": [4, 3]}
    one, other = (score(lists.graph(device), method, **given) for device in DEVICES)  # type: ignore[arg-type]
    assert np.array_equal(one, other)


def test_the_hottest_rows_come_first(lists: Lists) -> None:
    scores = np.array([1, 5, 3, 5, 0, 3])
    assert hottest(scores, 4).tolist() == [1, 3, 2, 5]
    assert hottest(scores, 3).tolist() == [1, 3, 2]
    assert hottest(scores, 99).tolist() == [1, 3, 2, 5, 0, 4]
    assert hottest(scores, 0).tolist() == []


BELOW = [
    (device, below)
    for device in DEVICES
    for below in ("storage", "host", *(("host-cached",) if device == "cuda" else ()))
]


@pytest.mark.parametrize(("device", "below"), BELOW)
@pytest.mark.parametrize("width", [1, 7, 128, 1100])
def test_rows_of_all_tiers_are_read_by_one_gather(
    tmp_path: Path, device: str, below: str, width: int
) -> None:
    draw = np.random.default_rng(width)
    rows = 2000
    table = draw.random((rows, width), np.float32)
    np.save(tmp_path / "table.npy", table)
    scores = draw.random(rows)
    cache = None if below == "host" else "1MiB"
    with tiered(tmp_path / "table.npy", scores, 0.25, below=below, device=device, cache=cache) as array:
        for count in (1, 40, 3000, 100_000):
            wanted = draw.integers(-rows, rows, count)
            assert np.array_equal(on_host(array.gather(wanted)), table[wanted])
        kept = array._cuda or below == "storage"
        assert array.kept_rows == (500 if kept else 0)
        with pytest.raises(IndexError, match="position 1"):
            array.gather([0, rows])
        assert np.array_equal(on_host(array[10:30]), table[10:30])
        assert np.array_equal(on_host(array[::7]), table[::7])


def test_large_integers_are_ranked_exactly() -> None:
    assert hottest([2**60, 2**60 + 1, 2**60 + 2, -1], 4).tolist() == [2, 1, 0, 3]
    assert hottest(np.array([0, 2**64 - 1, 2**64 - 2], np.uint64), 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    "scores",
    [np.full(4000, 60_000, np.float16), np.full(4000, 1e308), np.full(4000, 2**62), np.full(4000, -1)],
)
def test_shares_of_reads_are_at_most_all(scores: np.ndarray[Any, Any]) -> None:
    table = np.zeros((4000, 2), np.float32)
    assert plan(table, scores, 0.5).hit_rate == pytest.approx(0.5)
    assert plan(table, np.arange(-2000, 2000), 0.5).hit_rate == 1


@pytest.mark.parametrize("device", DEVICES)
def test_bytes_are_counted_by_tier(tmp_path: Path, device: str) -> None:
    table = np.random.default_rng(0).random((4096, 256), np.float32)
    np.save(tmp_path / "table.npy", table)
    scores = np.arange(4096)
    with tiered(tmp_path / "table.npy", scores, 1024 * 1024, below="host", device=device) as array:
        array.gather(np.arange(2048, 4096))  # the second half of these is kept
        tiers = array.bytes_by_tier()
        assert sum(tiers.values()) == 2048 * 1024
        if device == "cuda":
            assert tiers == {"hbm": 1024 * 1024, "host": 1024 * 1024}
    behind = tiered(tmp_path / "table.npy", scores, 0.25, below="storage", device=device, cache="64KiB")
    behind.gather(np.arange(3500, 3600))  # all of them are kept
    assert np.array_equal(on_host(behind[np.arange(3599, 3499, -1)]), table[3599:3499:-1])
    assert behind.bytes_by_tier() == {"hbm" if device == "cuda" else "host": 200 * 1024, "storage": 0}
    wanted = plan(tmp_path / "table.npy", scores, 1024 * 1024)
    assert (wanted.kept, wanted.rows) == (1024, 4096)
    assert wanted.hit_rate == pytest.approx(1 - (3 / 4) ** 2, rel=1e-3)


def test_a_placement_of_open(tmp_path: Path) -> None:
    table = np.random.default_rng(0).random((100, 4), np.float32)
    np.save(tmp_path / "table.npy", table)
    how: dict[str, Any] = {"placement": "tiered", "scores": np.arange(100), "hot": 0.1, "below": "storage"}
    with penstock.open(tmp_path / "table.npy", device="cpu", cache="1MiB", **how) as array:
        assert array.kept_rows == 10
        assert np.array_equal(on_host(array.gather([99, 0, 99])), table[[99, 0, 99]])
        again = pickle.loads(pickle.dumps(array))
        assert again.kept_rows == 0
        assert np.array_equal(on_host(again.gather([99, 0])), table[[99, 0]])
    planned = penstock.plan(tmp_path / "table.npy", device="cpu", **how)
    assert planned.placement == "tiered over storage"
    assert planned.hit_rate == pytest.approx(sum(range(90, 100)) / sum(range(100)))
    assert "reads of kept rows" in str(planned)
    in_memory = penstock.plan(tmp_path / "table.npy", device="cpu", **{**how, "below": "host"})
    assert (in_memory.hit_rate, in_memory.peer_rate) == (None, 0.0)
    assert "kept rows" not in str(in_memory)


@pytest.mark.parametrize("device", DEVICES)
def test_several_tables_are_gathered_at_once(device: str) -> None:
    draw = np.random.default_rng(1)
    one, other = draw.random((500, 16), np.float32), draw.random((500, 3), np.float32)
    arrays = [tiered(each, draw.random(500), 0.5, device=device) for each in (one, other)]
    rows = draw.integers(0, 500, 800)
    made = penstock.gather_all([(array, rows) for array in arrays])
    assert np.array_equal(on_host(made[0]), one[rows])
    assert np.array_equal(on_host(made[1]), other[rows])


def test_bad_input_is_one_sentence(lists: Lists, tmp_path: Path) -> None:
    graph = lists.graph("cpu")
    np.save(tmp_path / "t.npy", np.zeros((10, 2), np.float32))
    path = tmp_path / "t.npy"
    array = penstock.open(path, placement="storage", device="cpu")
    writable = penstock.open(path, placement="storage", device="cpu", writable=True)
    text: Any = "a"
    ten = np.arange(10)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: score(graph, "pagerank"), ValueError, "choose degree"),
        (lambda: score(graph, "weighted_reverse_pagerank"), ValueError, "needs train_ids"),
        (lambda: score(graph, "weighted_reverse_pagerank", train_ids=[]), ValueError, "train_ids is empty"),
        (lambda: score(graph, "weighted_reverse_pagerank", train_ids=[NODES]), ValueError, "it is no node"),
        (lambda: score(graph, "reverse_pagerank", damping=1), ValueError, "damping 1"),
        (lambda: score(graph, "degree", damping=text), ValueError, "damping a: give a number"),
        (lambda: score(graph, "reverse_pagerank", tolerance=-1), ValueError, "tolerance -1: give a number"),
        (lambda: score(graph, "reverse_pagerank", tolerance=np.nan), ValueError, "tolerance nan"),
        (lambda: score(graph, "frequency", train_ids=[1]), ValueError, "needs a fanout"),
        (
            lambda: score(graph, "degree", fanout=[3]),
            ValueError,
            r"fanout \[3\]: method degree samples nothing",
        ),
        (lambda: score("graph"), TypeError, "penstock.sampling.Graph"),  # type: ignore[arg-type]
        (lambda: tiered(path, ten[:9], 0.1), ValueError, "9 scores: the table has 10 rows"),
        (lambda: tiered(path, ten, 1.5), ValueError, "a share of the rows"),
        (lambda: tiered(path, ten, 0.1, below="hbm"), ValueError, "below 'hbm'"),
        (lambda: tiered(path, np.full(10, np.nan), 0.1), ValueError, "no finite number"),
        (lambda: penstock.open(path, scores=ten), ValueError, "keeps no rows by their scores"),
        (lambda: penstock.open(path, placement="tiered"), ValueError, "scores is missing"),
        (lambda: penstock.open(path, placement="tiered", scores=ten), ValueError, "hot is missing"),
        (
            lambda: penstock.open(path, placement="tiered", scores=ten, hot=0.1, writable=True),
            ValueError,
            "leave writable out",
        ),
        (lambda: tiered(5, ten, 0.1), TypeError, "a path|the path"),
        (lambda: array.keep_rows([10]), ValueError, "there is no row 10"),
        (lambda: array.keep_rows([1, 1]), ValueError, "row 1 is named twice"),
        (lambda: array.keep_rows([0.5]), TypeError, "a list of integers"),
        (lambda: writable.keep_rows([1]), ValueError, "it is written to"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words) as raised:
            call()
        assert "\n" not in str(raised.value)
    array.keep_rows([1, 2])
    with pytest.raises(ValueError, match="some are kept already"):
        array.keep_rows([3])

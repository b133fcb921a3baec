"""Loaders on multiprocessors of their own: streams that are lent, batches, what is refused."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import penstock  # noqa: E402
from penstock import _native  # noqa: E402
from penstock.gnn import NeighborLoader, data  # noqa: E402
from penstock.gnn.loading.partition import Partition  # noqa: E402
from penstock.gnn.training import Options, train  # noqa: E402
from penstock.sampling import Graph  # noqa: E402

ON_GPU = _native.cuda_usable()[0] and torch.cuda.is_available()
NODES, EDGES = 4000, 60_000
needs_gpu = pytest.mark.skipif(not ON_GPU, reason="green contexts are a GPU's")


class Numbered:
    """A share whose streams are numbers."""

    sms, rest = 16, 116

    def __init__(self) -> None:
        self.opened: list[int] = []

    def open_stream(self, priority: int) -> int:
        self.opened.append(priority)
        return len(self.opened)

    def open_stream_in_rest(self, priority: int) -> int:
        return 1000 + priority


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> Partition:
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda handle, device: (handle, device.index))
    return Partition(Numbered(), torch.device("cuda", 3))


def test_a_stream_is_lent_to_one_at_a_time_and_again_when_it_is_given_back(numbered: Partition) -> None:
    with numbered.borrowed(-2) as first, numbered.borrowed(-2) as second, numbered.borrowed(-1) as other:
        assert (first, second, other) == ((1, 3), (2, 3), (3, 3))
    with pytest.raises(KeyError), numbered.borrowed(-1):
        raise KeyError
    with numbered.borrowed(-1) as again:
        assert again == other
    with numbered.borrowed(-2) as one, numbered.borrowed(-2) as two:
        assert {one, two} == {first, second}
    assert numbered._share.opened == [-2, -2, -1]


def test_the_training_has_the_rest_and_the_loader_what_it_got(numbered: Partition) -> None:
    assert (numbered.sms, numbered.training_stream) == (16, (1000, 3))


@pytest.mark.skipif(_native.cuda_version is not None, reason="this build has CUDA")
def test_a_build_without_cuda_has_no_shares() -> None:
    with pytest.raises(ValueError, match="open 16 SMs of a GPU: built without CUDA"):
        _native.SmShare.of(0, 16)


def made(**options: Any) -> NeighborLoader:
    sources, targets = np.random.default_rng(0).integers(0, NODES, (2, EDGES))
    graph = Graph.from_edges(sources, targets, NODES, device="cuda")
    features = torch.arange(NODES, dtype=torch.float32)[:, None].repeat(1, 5)
    return NeighborLoader(graph, features, np.arange(0, 2000, 2), [4, 3], 100, seed=3, **options)


def content(batch: Any) -> tuple[Any, ...]:
    return batch.number, batch.n_id.tolist(), batch.e_id.tolist(), batch.x.tolist()


def partitioned(sms: int) -> NeighborLoader:
    try:
        return made(sms=sms, sm_partition=True)
    except penstock.Error as problem:
        pytest.skip(str(problem))


@needs_gpu
def test_a_partitioned_loader_gives_the_same_batches() -> None:
    wanted = [content(batch) for batch in made()]
    loader = partitioned(21)
    assert 8 <= loader.sms <= 21
    for _ in range(2):
        assert [content(batch) for batch in loader] == wanted
    stream = loader.training_stream
    assert stream is not None
    with torch.cuda.stream(stream):
        found = [(batch.x[:, 0].long() * batch.n_id).sum() for batch in loader]
    stream.synchronize()
    assert [int(each) for each in found] == [sum(node * node for node in nodes) for _, nodes, *_ in wanted]


@needs_gpu
def test_loaders_of_one_size_share_a_partition() -> None:
    first, second = partitioned(16), partitioned(16)
    assert first._partition is second._partition
    two = [[], []]  # type: list[list[Any]]
    threads = [
        threading.Thread(target=lambda k=k, one=one: two[k].extend(map(content, one)))
        for k, one in enumerate((first, second))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert two[0] == two[1] == [content(batch) for batch in made()]


@needs_gpu
def test_a_partition_refuses_what_cannot_be() -> None:
    partitioned(16)
    for sms, why in (0, "there are no sms"), (1, "at least"), (10_000, "some must be left"):
        with pytest.raises(ValueError, match=why):
            made(sms=sms, sm_partition=True)


@needs_gpu
def test_batches_outlive_a_partitioned_loader() -> None:
    loader = partitioned(16)
    kept = list(loader)
    wanted = [content(batch) for batch in kept]
    loader.close()
    del loader
    assert [content(batch) for batch in kept] == wanted


@needs_gpu
def test_a_program_may_end_within_a_partitioned_epoch() -> None:
    partitioned(16)
    program = """if True:
        import torch
        from penstock.gnn import NeighborLoader
        from penstock.sampling import Graph
        ends = torch.arange(1_000_000)
        graph = Graph.from_edges(ends * 7 % 50_000, ends % 50_000, device="cuda")
        features = torch.zeros(50_000, 8)
        loader = NeighborLoader(graph, features, None, [10, 10], prefetch=50, sms=16, sm_partition=True)
        with torch.cuda.stream(loader.training_stream):
            batches = iter(loader)
            kept = next(batches)
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


@needs_gpu
def test_a_training_has_the_multiprocessors_that_its_loader_leaves(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    partitioned(16)
    data.generate(tmp_path / "papers", nodes=2000, width=16, classes=4, memory="64MiB")
    common: dict[str, Any] = {"dataset": tmp_path / "papers", "fanout": (5, 5), "epochs": 2, "device": "cuda"}
    both = [train(Options(**common, sms=16, sm_partition=each)) for each in (False, True)]
    assert both[1].losses == pytest.approx(both[0].losses, rel=1e-2)

"""On a GPU: memory that goes away, and calls that come after it: by graphs, other streams, other
processes."""

from __future__ import annotations

import gc
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import _native
from places import small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(not _native.cuda_usable()[0], reason="there is no GPU")

ROWS, WIDTH = 50_000, 16
PLACEMENTS = pytest.mark.parametrize("placement", ["hbm", "host", "host-cached", "storage"])


def content() -> Any:
    return torch.arange(ROWS * WIDTH, dtype=torch.int32).reshape(ROWS, WIDTH)


def opened(folder: Path, placement: str, **how: Any) -> penstock.Array:
    np.save(folder / "array.npy", content().numpy())
    how |= small_cache(placement)
    return penstock.open(folder / "array.npy", placement=placement, device="cuda", **how)


def captured(array: penstock.Array, rows: Any) -> tuple[Any, Any]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = array.gather(rows)
    return graph, out


@PLACEMENTS
def test_a_graph_may_be_replayed_after_its_array_was_closed(tmp_path: Path, placement: str) -> None:
    array = opened(tmp_path, placement)
    rows = torch.arange(1000, device="cuda")
    graph, out = captured(array, rows)
    array.close()
    with pytest.raises(ValueError, match="it is closed"):
        array.check_replays()
    del array
    gc.collect()
    torch.cuda.empty_cache()
    others = [
        torch.full((ROWS * WIDTH,), -1, device="cuda") for _ in range(4)
    ]  # what was freed is another's now
    for seed in range(3):
        wanted = torch.randint(ROWS, (1000,), generator=torch.Generator().manual_seed(seed))
        rows.copy_(wanted)
        graph.replay()
        assert torch.equal(out.cpu(), content()[wanted])
    del others


def keeps_and_gives_back(size: int) -> bool:
    free = torch.cuda.mem_get_info()[0]
    array = penstock.from_tensor(torch.zeros(size // 64, 16), "hbm", device="cuda")
    graph, out = captured(array, torch.arange(10, device="cuda"))
    array.close()
    del array
    gc.collect()
    kept = torch.cuda.mem_get_info()[0] < free - size // 2
    graph.reset()
    del graph, out
    gc.collect()
    torch.cuda.synchronize()
    penstock.from_tensor(torch.zeros(3, 3), "hbm", device="cuda").close()
    return bool(kept and torch.cuda.mem_get_info()[0] > free - size // 2)


def test_what_a_graph_kept_goes_with_it() -> None:
    """The graph keeps it; it is given back where the next array is opened. Of memory of the whole GPU, where
    tests of other processes begin and end: so one time of several is enough."""
    assert any(keeps_and_gives_back(512 << 20) for _ in range(8))


def test_a_tensor_whose_memory_the_allocator_takes_back_was_copied() -> None:
    tensor = content().cuda()
    with penstock.from_tensor(tensor, "hbm") as array:
        tensor.untyped_storage().resize_(0)
        del tensor
        torch.cuda.empty_cache()
        torch.full((ROWS * WIDTH,), -1, dtype=torch.int32, device="cuda")
        assert torch.equal(array[[0, 777, ROWS - 1]].cpu(), content()[[0, 777, ROWS - 1]])


@pytest.mark.parametrize("placement", ["host", "host-cached"])
def test_host_memory_that_torch_moves_is_followed(placement: str) -> None:
    tensor = content()
    with penstock.from_tensor(tensor, placement, device="cuda") as array:
        array[[3]] = torch.full((1, WIDTH), 5, dtype=torch.int32, device="cuda")
        tensor.share_memory_()
        assert torch.equal(array[[0, ROWS - 1]].cpu(), content()[[0, ROWS - 1]])
        array[[4]] = torch.full((1, WIDTH), 6, dtype=torch.int32, device="cuda")
        array.flush()
        assert tensor[3:5, 0].tolist() == [5, 6]


@PLACEMENTS
def test_rows_of_another_stream_are_taken_when_they_are_there(tmp_path: Path, placement: str) -> None:
    with opened(tmp_path, placement) as array:
        stream = torch.cuda.Stream()
        for wait in (True, False):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20_000_000)
                rows = torch.arange(ROWS, device="cuda").flip(0)
                taken = array.gather(rows, wait=wait)
                del rows
                torch.zeros(ROWS, dtype=torch.int64, device="cuda")  # takes their memory
            torch.cuda.current_stream().wait_stream(stream)
            assert torch.equal(taken.cpu(), content().flip(0))
        array.check_errors()


@pytest.mark.parametrize("placement", ["hbm", "host"])
def test_a_tensor_outlives_its_array(tmp_path: Path, placement: str) -> None:
    array = opened(tmp_path, placement)
    whole = array.tensor()
    array.close()
    del array
    gc.collect()
    torch.cuda.empty_cache()
    torch.full((ROWS * WIDTH,), -1, dtype=torch.int32, device="cuda")
    assert torch.equal(whole.cpu(), content())


IN_A_FORK = """
import os, sys, penstock
array = penstock.open(sys.argv[1], placement=sys.argv[2], device="cuda")
array[[0]]
if os.fork() == 0:
    try:
        array[[0]]
    except ValueError as problem:
        print(problem, flush=True)
    os._exit(0)
os.wait()
print(array[[1]].tolist()[0][0])
"""


@PLACEMENTS
def test_a_forked_process_is_one_sentence(tmp_path: Path, placement: str) -> None:
    np.save(tmp_path / "array.npy", content().numpy())
    command = [sys.executable, "-W", "ignore", "-c", IN_A_FORK, str(tmp_path / "array.npy"), placement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "CUDA does not survive that: start workers with 'spawn'" in done.stdout
    assert done.stdout.splitlines()[-1] == str(WIDTH)


@pytest.mark.parametrize("placement", ["hbm", "host"])
def test_a_store_is_read_by_a_spawned_process(placement: str) -> None:
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    from penstock.pyg import FeatureStore

    store = FeatureStore(placement, "cuda")
    store["paper", "x", None] = content()
    processes = torch.multiprocessing.get_context("spawn")
    queue = processes.Queue()
    other = processes.Process(target=read_store, args=(store, queue))
    other.start()
    assert queue.get(timeout=120) == content()[[7]].tolist()
    other.join(60)
    assert other.exitcode == 0
    assert torch.equal(store["paper", "x", torch.tensor([7])].cpu(), content()[[7]])
    ForkingPickler.dumps(store)


def read_store(store: Any, queue: Any) -> None:
    queue.put(store["paper", "x", torch.tensor([7])].tolist())

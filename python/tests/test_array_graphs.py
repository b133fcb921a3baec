"""Gathers that CUDA graphs capture: replayed with other rows, and what is told of rows out of range."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import _native
from places import small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")
needs_a_gpu = pytest.mark.skipif(not _native.cuda_usable()[0], reason="CUDA graphs need a GPU")

ROWS, COUNT = 40_000, 30_000  # so many that host memory would be sorted if there were more of it


def content(width: int = 9) -> Any:
    return torch.arange(ROWS * width, dtype=torch.int32).reshape(ROWS, width)


def opened(tmp_path: Path, placement: str, width: int = 9) -> penstock.Array:
    np.save(tmp_path / "array.npy", content(width).numpy())
    return penstock.open(tmp_path / "array.npy", placement=placement, device="cuda", **small_cache(placement))


def draw(seed: int) -> Any:
    """Rows with repeats, some counted from the end."""
    drawn = torch.rand(COUNT, generator=torch.Generator().manual_seed(seed))
    return ((drawn**2 * 2 - 1) * ROWS).long().cuda()


class Captured:
    """A graph of `calls` gathers one after the other, of the same rows."""

    def __init__(self, array: penstock.Array, order: str, calls: int = 1, **how: Any) -> None:
        self.rows, self.graph = draw(0), torch.cuda.CUDAGraph()
        self.outs = [torch.zeros((COUNT, *array.row_shape), dtype=torch.int32).cuda() for _ in range(calls)]
        with torch.cuda.graph(self.graph):
            for out in self.outs:
                array.gather(self.rows, out=out, order=order, **how)

    def replay(self, rows: Any) -> list[Any]:
        self.rows.copy_(rows)
        self.graph.replay()
        return [out.cpu() for out in self.outs]


@needs_a_gpu
@pytest.mark.parametrize("placement", ["hbm", "host", "host-cached", "storage"])
@pytest.mark.parametrize("order", ["auto", "as-asked", "by-address"])
@pytest.mark.parametrize("width", [1, 9, 300])
def test_a_replay_gathers_what_a_call_would(tmp_path: Path, placement: str, order: str, width: int) -> None:
    with opened(tmp_path, placement, width) as array:
        captured = Captured(array, order)
        for seed in (1, 2, 3):
            rows = draw(seed)
            (replayed,) = captured.replay(rows)
            assert torch.equal(replayed, array.gather(rows, order=order).cpu())
            assert torch.equal(replayed, content(width)[rows.cpu()])
        array.check_replays()


FIRST_CALL = """
import penstock, sys, torch
array = penstock.open(sys.argv[1], placement="host", device="cuda")
rows, graph = torch.arange(30_000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    outs = [array.gather(rows, order="by-address") for _ in range(200)]
rows.copy_(rows.flip(0))
graph.replay()
assert all((out[:, 0].cpu() == torch.arange(30_000).flip(0) * 9).all() for out in outs)
array.check_replays()
"""


@needs_a_gpu
def test_nothing_need_be_called_before_a_capture(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", content().numpy())
    command = [sys.executable, "-W", "ignore", "-c", FIRST_CALL, str(tmp_path / "array.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@needs_a_gpu
def test_graphs_that_run_side_by_side_have_room_of_their_own(tmp_path: Path) -> None:
    with opened(tmp_path, "host") as array:
        graphs = [Captured(array, "by-address", calls=2) for _ in range(2)]
        streams = [torch.cuda.Stream() for _ in graphs]
        for turn in range(20):
            rows = [draw(2 * turn), draw(2 * turn + 1)]
            for captured, stream, asked in zip(graphs, streams, rows, strict=True):
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    captured.rows.copy_(asked)
                    captured.graph.replay()
            torch.cuda.synchronize()
            for captured, asked in zip(graphs, rows, strict=True):
                for out in captured.outs:
                    assert torch.equal(out.cpu(), content()[asked.cpu()])


@needs_a_gpu
def test_a_graph_gives_its_room_back(tmp_path: Path) -> None:
    with opened(tmp_path, "host") as array:
        for _ in range(3):
            Captured(array, "by-address").replay(draw(1))
        torch.cuda.synchronize()
        before = torch.cuda.mem_get_info()[0]
        for _ in range(30):
            Captured(array, "by-address").replay(draw(1))
        torch.cuda.synchronize()
        assert before - torch.cuda.mem_get_info()[0] < 30 << 20, "30 rooms of 2 MiB"


@needs_a_gpu
@pytest.mark.parametrize("placement", ["hbm", "host", "storage"])
@pytest.mark.parametrize("order", ["as-asked", "by-address"])
def test_rows_out_of_range_are_told_after_a_replay(tmp_path: Path, placement: str, order: str) -> None:
    with opened(tmp_path, placement) as array:
        captured, rows = Captured(array, order), draw(1)
        captured.replay(rows)
        array.check_replays()
        bad = rows.clone()
        bad[77], bad[9000] = ROWS, -ROWS - 1
        before = captured.outs[0].clone()
        (after,) = captured.replay(bad)
        assert torch.equal(after, before.cpu()), "rows out of range are left as they were"
        captured.replay(rows)  # what went before is not forgotten
        with pytest.raises(IndexError, match=r"a replayed call on .* position 77 was out of range"):
            array.check_replays()
        array.check_replays()
        bad[77] = 0
        captured.replay(bad)
        with pytest.raises(IndexError, match="position 9000 "):
            array.check_replays(stream=torch.cuda.current_stream())
        with pytest.raises(IndexError, match=rf"index {-ROWS - 1} at position 9000"):
            array.gather(bad, order=order)


@needs_a_gpu
def test_handles_and_joined_gathers_are_captured_too(tmp_path: Path) -> None:
    with opened(tmp_path, "host") as array:
        rows, graph = draw(0), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            one = array.gather_async(rows, order="by-address").wait()
            two, three = penstock.gather_all([(array, rows), (array, rows[:100])])
        for seed in (3, 4):
            rows.copy_(draw(seed))
            graph.replay()
            wanted = content()[draw(seed).cpu()]
            for taken in (one, two, three):
                assert torch.equal(taken.cpu(), wanted[: len(taken)])
        rows[50] = ROWS
        graph.replay()
        with pytest.raises(IndexError, match="position 50 "):
            array.check_replays()


@needs_a_gpu
def test_what_a_graph_cannot_do_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, "host") as array:
        rows, graph = draw(0), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = array.gather(rows)
            with pytest.raises(ValueError, match="a graph cannot wait for their numbers: choose another"):
                array.gather(rows, order="copy-engine")
            with pytest.raises(ValueError, match="being captured: ask when the graph has run"):
                array.check_replays()
        graph.replay()
        assert torch.equal(out.cpu(), content()[rows.cpu()]), "and harms no capture"


def test_without_a_gpu_there_are_no_replays_to_tell_of(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.ones((3, 4), np.float32))
    for placement in ("host", "host-cached", "storage"):
        array = penstock.open(tmp_path / "array.npy", placement=placement, device="cpu")
        array.check_replays()
        with pytest.raises(ValueError, match="the CPU executor has none: choose another order"):
            array.gather([1], order="copy-engine")
        array.close()
        with pytest.raises(ValueError, match="it is closed"):
            array.check_replays()

"""Arrays in several processes, each on a GPU of its own where there are several: one copy in host memory."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import _native
from places import DEVICES, small_cache

torch = pytest.importorskip("torch", reason="torch is not installed")

GPUS = torch.cuda.device_count() if "cuda" in DEVICES else 0
SETS = [
    ["cpu", "cpu"],
    *([["cuda:0", "cuda:0"]] if GPUS else []),
    *([["cuda:0", "cuda:1"]] if GPUS > 1 else []),
]
ROWS = [5, 4_999, 5, 0]


@pytest.fixture(params=SETS, ids=["-".join(each) for each in SETS])
def devices(request: pytest.FixtureRequest) -> list[str]:
    return list(request.param)


def _work(memory: Any, device: str, mine: int, met: Any, answers: Any) -> None:
    """Each process registers the memory for its GPU, reads it, and stores a row that the other one reads."""
    try:
        with penstock.from_tensor(memory, device=device) as array:
            first = array[ROWS].cpu()
            met.wait(120)
            array.scatter([10 + mine], torch.full((1, memory.shape[1]), 100.0 + mine))
            array.flush()
            met.wait(120)
            answers.put((mine, first.numpy(), array[[10, 11]].cpu().numpy()))
    except Exception as problem:
        met.abort()
        answers.put((mine, repr(problem), None))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_share_memory_that_each_registers_for_its_gpu(devices: list[str]) -> None:
    memory = torch.arange(5_000 * 33, dtype=torch.float32).reshape(5_000, 33).share_memory_()
    content = memory.clone()
    context = multiprocessing.get_context("spawn")
    met, answers = context.Barrier(len(devices)), context.Queue()
    shared = torch.multiprocessing.get_context("spawn")
    workers = [
        shared.Process(target=_work, args=(memory, device, k, met, answers))
        for k, device in enumerate(devices)
    ]
    for worker in workers:
        worker.start()
    told = {mine: found for mine, *found in (answers.get(timeout=180) for _ in workers)}
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    for k in range(len(devices)):
        first, after = told[k]
        assert not isinstance(first, str), first
        np.testing.assert_array_equal(first, content[ROWS].numpy())
        np.testing.assert_array_equal(after, np.repeat([[100.0], [101.0]], 33, axis=1))
    assert torch.equal(memory[:10], content[:10])


@pytest.mark.parametrize("placement", ["host", "host-cached", "storage", "hbm"])
def test_a_process_reads_one_file_on_each_of_its_gpus(
    tmp_path: Path, placement: str, devices: list[str]
) -> None:
    if placement == "hbm" and not devices[0].startswith("cuda"):
        pytest.skip("there is no hbm on the CPU executor")
    content = np.random.default_rng(1).random((5_000, 33), np.float32)
    np.save(tmp_path / "table.npy", content)
    where: dict[str, Any] = {"placement": placement, **small_cache(placement, 4096)}
    arrays = [penstock.open(tmp_path / "table.npy", device=device, **where) for device in devices]
    for _ in range(2):
        for array, device in zip(arrays, devices, strict=True):
            taken = array[ROWS]
            assert str(taken.device) == device
            np.testing.assert_array_equal(taken.cpu().numpy(), content[ROWS])
    for array in arrays:
        array.close()


def test_a_gpu_that_is_not_there_is_told() -> None:
    if not _native.cuda_usable()[0]:
        pytest.skip("no GPU: test_arrays has what is said then")
    with pytest.raises((ValueError, penstock.Error), match=f"GPU {GPUS}: there are {GPUS}"):
        penstock.from_tensor(torch.zeros(10, 4), device=f"cuda:{GPUS}")

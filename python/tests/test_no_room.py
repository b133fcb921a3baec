"""Files for which the disk has no room: tables, and what optimizers keep beside them."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from broken_inputs import check_sentence

MIB = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    where = tmp_path / "small"
    where.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", where], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted: {mounted.stderr.decode().strip()}")
    yield where
    subprocess.run(["umount", "--lazy", where], check=True)


@pytest.fixture
def limited() -> Iterator[None]:
    """No file may grow beyond 1 MiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def table_of(folder: Path, mib: int) -> Any:
    """A table of so many MiB, every block of it taken."""
    import penstock.nn

    np.save(folder / "t.npy", np.ones((mib * 8192, 32), np.float32))
    return penstock.nn.Embedding(mib * 8192, 32, path=folder / "t.npy", device="cpu", cache="1MiB")


def step(table: Any, optimizer: Any, rows: int) -> None:
    import torch

    table(torch.arange(rows)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("kind", "file"), [("Adagrad", "t.adagrad.npy"), ("SparseAdam", "t.exp_avg.npy"), ("RowWiseAdam", "")]
)
def test_an_optimizer_names_the_file_that_may_not_be_as_large(
    tmp_path: Path, kind: str, file: str, limited: None
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import penstock.optim

    soft = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft[1], soft[1]))
    table = table_of(tmp_path, 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    optimizer = getattr(penstock.optim, kind)(table, lr=0.1)
    with pytest.raises(
        penstock.Error, match=r"it takes 2\.0 MiB, and its file system has .* free: no"
    ) as full:
        step(table, optimizer, 10)
    assert full.value.errno == errno.EFBIG
    check_sentence(full.value, str(tmp_path / (file or "t.exp_avg.npy")), "create")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.npy"]


def test_a_file_that_cannot_begin_on_a_full_disk_is_not_left(small: Path) -> None:
    (small / "filler").write_bytes(bytes(8 * MIB))
    path = small / "a.npy"
    with pytest.raises(
        penstock.Error, match=r"it takes 4\.0 MiB, and its file system has 0 B free: make"
    ) as full:
        penstock.empty(path, (MIB,), "float32", device="cpu")
    assert full.value.errno == errno.ENOSPC
    check_sentence(full.value, str(path), "create")
    assert [path.name for path in small.iterdir()] == ["filler"]


@pytest.mark.parametrize(("kind", "begin"), [("Adagrad", 0.0), ("Adagrad", 0.5), ("SparseAdam", 0.0)])
def test_an_optimizer_whose_numbers_find_no_room_names_file_and_bytes(
    small: Path, kind: str, begin: float
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import penstock.optim

    table = table_of(small, 5)
    how = {"initial_accumulator_value": begin} if begin else {}
    optimizer = getattr(penstock.optim, kind)(table, lr=0.1, **how)
    with pytest.raises(penstock.Error) as full:
        step(table, optimizer, len(table.array))
    assert full.value.errno == errno.ENOSPC
    names = {"Adagrad": ["t.adagrad.npy"], "SparseAdam": ["t.exp_avg.npy", "t.exp_avg_sq.npy"]}[kind]
    where = next(str(small / name) for name in names if str(small / name) + ":" in str(full.value))
    check_sentence(full.value, where, "store into")
    assert re.search(r"it takes up to \d+ bytes more, and its file system has 0 free: make", str(full.value))
    for path in small.glob("t.*"):
        if path.name != "t.npy":
            path.unlink()  # or what is in the cache could not be written back


def test_memory_of_a_file_that_finds_no_room_is_not_called_cut(small: Path) -> None:
    path = small / "a.npy"
    array = penstock.empty(path, (4 * MIB,), "float32", placement="host", device="cpu")
    with pytest.raises(
        penstock.Error, match=r"bytes more, and its file system has 0 free: make room, and"
    ) as full:
        array[:] = np.ones(1, np.float32)
    assert full.value.errno == errno.ENOSPC
    check_sentence(full.value, str(path), "store into")
    with pytest.raises(penstock.Error, match="there is no room"):
        array.close()

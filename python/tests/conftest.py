"""Fixtures that tests of several files take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import arrays_here
import numpy as np
import penstock
import pytest
from penstock import fs
from penstock.arrays import foreign
from places import DEVICES, PLACEMENTS
from trained_tables import ROWS, WIDTH

# A shell has what it runs in the background ignore Ctrl-C, which tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Where the kernels of a test run."""
    return str(request.param)


@pytest.fixture
def executor(device: str) -> Literal["cpu", "cuda"]:
    """The same, as an executor's name."""
    return "cuda" if "cuda" in device else "cpu"


@pytest.fixture
def folder(tmp_path: Path, executor: Literal["cpu", "cuda"]) -> fs.Folder:
    """The test's folder, mounted to be written behind a small cache."""
    return fs.mount(tmp_path, writable=True, executor=executor, cache="1MiB", line=512)


@pytest.fixture(params=DEVICES)
def here(request: pytest.FixtureRequest) -> Iterator[str]:
    """The same, for the arrays of `arrays_here`."""
    arrays_here.Here.device = request.param
    yield request.param
    arrays_here.Here.device = "cpu"


@pytest.fixture(params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["numpy", "torch"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What results on the CPU are."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    else:
        monkeypatch.setattr(foreign, "has_torch", lambda: False)
    return str(request.param)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread of torch's, so that sums have one order."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=["storage", "memory"])
def table(request: pytest.FixtureRequest, tmp_path: Path, device: str) -> Any:
    """A writable array of random numbers, in a file behind a small cache or in host memory."""
    content = np.random.default_rng(5).standard_normal((ROWS, WIDTH)).astype(np.float32)
    if request.param == "memory":
        return penstock.from_tensor(content, "host", device=device)
    np.save(tmp_path / "table.npy", content)
    return penstock.open(
        tmp_path / "table.npy", placement="storage", writable=True, device=device, cache="1MiB"
    )


@pytest.fixture(scope="module")
def sql_peer() -> Any:
    """DuckDB with the tables of `sql_tables`."""
    from sql_peers import peer_of

    return peer_of()


@pytest.fixture(params=DEVICES, scope="module")
def sql_tables(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Two small tables for statements."""
    from sql_peers import opened

    with opened(str(request.param)) as made:
        yield made


@pytest.fixture
def kernel_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of compiled kernels: one for all tests, and not the user's."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path_factory.getbasetemp() / "kernel_cache"))

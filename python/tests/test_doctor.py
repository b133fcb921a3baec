"""`penstock doctor`: a row for each probe, of machines that have what it looks for and of others."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from fake_machine import H200, make_machine, no_driver, row
from penstock import doctor
from penstock.machine import (
    Driver,
    DriverMissing,
    Gpu,
    default_cache_dir,
    free_bytes,
    probe_io_uring,
    read_driver,
)

OLD = Gpu("Tesla V100", (7, 0), 16 << 30)


def test_an_empty_machine_gets_a_row_for_every_probe(tmp_path: Path) -> None:
    rows = doctor.examine(make_machine(tmp_path))
    assert [r.what for r in rows] == list(doctor.PROBES)
    assert all(r.found and r.gives for r in rows)
    assert all(r.remedy for r in rows if r.state == "missing"), "what is missing comes with how to get it"
    json.dumps([dataclasses.asdict(r) for r in rows])


def test_this_machine_can_be_examined() -> None:
    assert len(doctor.examine()) == len(doctor.PROBES)


def test_a_probe_that_fails_becomes_a_row(tmp_path: Path) -> None:
    def broken() -> tuple[bool, str]:
        raise RuntimeError("out of order")

    found = row(make_machine(tmp_path, io_uring=broken), "io_uring")
    assert (found.state, found.found) == ("limited", "could not be determined: RuntimeError: out of order")


@pytest.mark.parametrize(
    ("driver", "state", "text"),
    [
        (no_driver, "missing", "libcuda.so.1"),
        (lambda: Driver("13.0"), "missing", "no GPU"),
        (lambda: Driver("13.0", (H200,)), "ok", "NVIDIA H200 (sm_90, 139.0 GiB)"),
        (lambda: Driver("13.0", (dataclasses.replace(H200, numa_node=1),)), "ok", "memory from NUMA node 1"),
        (lambda: Driver("12.4", (OLD,)), "limited", "sm_70"),
        (lambda: Driver("12.4", (OLD, H200)), "ok", "sm_90"),
    ],
)
def test_gpu(tmp_path: Path, driver: Any, state: str, text: str) -> None:
    found = row(make_machine(tmp_path, driver=driver), "GPU")
    assert found.state == state
    assert text in found.found


@pytest.mark.parametrize(
    ("built", "driver", "state"),
    [
        (None, no_driver, "missing"),
        ("13.0", no_driver, "ok"),
        ("13.0", lambda: Driver("13.1", (H200,)), "ok"),
        ("13.0", lambda: Driver("12.9", (H200,)), "limited"),
    ],
)
def test_cuda_build(tmp_path: Path, built: str | None, driver: Any, state: str) -> None:
    assert row(make_machine(tmp_path, built_cuda=lambda: built, driver=driver), "CUDA build").state == state


def test_a_missing_compiled_part_is_told(tmp_path: Path) -> None:
    def missing() -> str | None:
        raise ImportError("no module _native")

    found = row(make_machine(tmp_path, built_cuda=missing), "CUDA build")
    assert found.state == "missing"
    assert "pip install" in found.remedy


@pytest.mark.parametrize(
    ("driver", "state", "text"),
    [
        (no_driver, "missing", "libcuda.so.1"),
        (lambda: Driver("13.0", (OLD,)), "missing", "8.0"),
        (lambda: Driver("12.4", (H200,)), "missing", "12.4"),
        (lambda: Driver("12.5", (OLD, H200)), "ok", "132 SMs, from 8 on by 8"),
    ],
)
def test_sm_shares(tmp_path: Path, driver: Any, state: str, text: str) -> None:
    found = row(make_machine(tmp_path, driver=driver), "SM shares")
    assert found.state == state
    assert text in found.found


@pytest.mark.parametrize(
    ("gpus", "peers", "state"),
    [
        ((H200,), [], "missing"),
        ((H200, H200), [], "missing"),
        ((H200, H200), [(0, 1), (1, 0)], "ok"),
        ((H200, H200, H200), [(0, 1), (1, 0)], "limited"),
    ],
)
def test_peer_to_peer(
    tmp_path: Path, gpus: tuple[Gpu, ...], peers: list[tuple[int, int]], state: str
) -> None:
    machine = make_machine(tmp_path, driver=lambda: Driver("13.0", gpus, frozenset(peers)))
    assert row(machine, "peer-to-peer").state == state


def test_io_uring(tmp_path: Path) -> None:
    assert row(make_machine(tmp_path), "io_uring").state == "ok"
    refused = row(make_machine(tmp_path, io_uring=lambda: (False, "Operation not permitted")), "io_uring")
    assert (refused.state, refused.found) == ("missing", "Operation not permitted")
    assert "seccomp" in refused.remedy
    files = {"/proc/sys/kernel/io_uring_disabled": "2\n"}
    disabled = row(
        make_machine(tmp_path, files, io_uring=lambda: (False, "Operation not permitted")), "io_uring"
    )
    assert "sysctl" in disabled.remedy


@pytest.mark.parametrize(
    ("release", "state"), [("6.1.0-18-amd64\n", "ok"), ("5.4.0\n", "limited"), ("5.11.1", "ok")]
)
def test_kernel(tmp_path: Path, release: str, state: str) -> None:
    machine = make_machine(tmp_path, {"/proc/sys/kernel/osrelease": release})
    assert row(machine, "kernel").state == state


@pytest.mark.parametrize(
    ("enabled", "state", "text"),
    [
        ("[always] madvise never\n", "ok", "always"),
        ("always [madvise] never\n", "ok", "madvise"),
        ("always madvise [never]\n", "missing", "never"),
        ("", "missing", "no transparent huge pages"),
    ],
)
def test_huge_pages(tmp_path: Path, enabled: str, state: str, text: str) -> None:
    found = row(make_machine(tmp_path, {doctor.TRANSPARENT_HUGE_PAGES: enabled}), "huge pages")
    assert found.state == state
    assert text in found.found
    assert "TLB" in found.gives
    assert ("as root: echo madvise > " in found.remedy) == (text == "never")


LIMITS = "Limit                     Soft Limit           Hard Limit           Units     \n"


@pytest.mark.parametrize(
    ("limit", "capabilities", "state"),
    [
        ("8388608", "0000000000000000", "limited"),
        ("8388608", "0000000000004000", "ok"),
        ("unlimited", "0000000000000000", "ok"),
        (str(doctor.PINNED_BYTES), "0000000000000000", "ok"),
    ],
)
def test_locked_memory(tmp_path: Path, limit: str, capabilities: str, state: str) -> None:
    files = {
        "/proc/self/limits": f"{LIMITS}Max locked memory         {limit}         {limit}        bytes\n",
        "/proc/self/status": f"Name:\tx\nCapEff:\t{capabilities}\n",
    }
    assert row(make_machine(tmp_path, files), "locked memory").state == state


def test_an_unreadable_limit_is_told(tmp_path: Path) -> None:
    assert row(make_machine(tmp_path), "locked memory").found == "the limit cannot be read"


def test_page_size_and_disk(tmp_path: Path) -> None:
    assert row(make_machine(tmp_path), "page size").state == "ok"
    assert row(make_machine(tmp_path, page_bytes=65536), "page size").state == "limited"
    assert row(make_machine(tmp_path), "disk space").state == "ok"
    full = row(make_machine(tmp_path, free=lambda folder: 1 << 20), "disk space")
    assert (full.state, "--cache-dir" in full.remedy) == ("limited", True)


def test_free_space_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "yet") > 0


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({}, "missing"),
        ({"/var/lib/dpkg/status": "Package: a\n"}, "limited"),
        ({"/var/lib/apt/lists/deb_main_binary-amd64_Packages.lz4": "x"}, "ok"),
        ({"/var/lib/apt/lists/lock": ""}, "missing"),
    ],
)
def test_package_lists(tmp_path: Path, files: dict[str, str], state: str) -> None:
    assert row(make_machine(tmp_path, files), "package lists").state == state


def test_the_cache_folder_is_the_one_of_the_graphs() -> None:
    graph = pytest.importorskip("penstock.graph", reason="needs the compiled part", exc_type=ImportError)
    assert default_cache_dir() == graph.default_cache_dir()


def test_the_driver_answers_or_says_what_is_missing() -> None:
    try:
        driver = read_driver()
    except DriverMissing as reason:
        assert str(reason)
    else:
        assert driver.version


def test_the_kernel_answers_about_io_uring() -> None:
    usable, reason = probe_io_uring()
    assert usable != bool(reason)

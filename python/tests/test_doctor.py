from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from fake_kernel import BRIDGE_CLASS, GPU_CLASS, SATA_CLASS, SLOW, FakeKernel
from penstock import doctor
from penstock.machine import (
    Driver,
    DriverMissing,
    Gpu,
    Machine,
    default_cache_dir,
    free_bytes,
    probe_io_uring,
    read_driver,
)

H200 = Gpu("NVIDIA H200", (9, 0), 139 << 30, 132)
OLD = Gpu("Tesla V100", (7, 0), 16 << 30)


def no_driver() -> Driver:
    raise DriverMissing("libcuda.so.1 is not installed")


def make_machine(root: Path, files: dict[str, str] | None = None, **changes: Any) -> Machine:
    for name, text in (files or {}).items():
        path = root / name.lstrip("/")
        if text == "/":
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    defaults: dict[str, Any] = {
        "root": root,
        "driver": no_driver,
        "built_cuda": lambda: None,
        "io_uring": lambda: (True, ""),
        "free": lambda folder: 100 << 30,
        "page_bytes": 4096,
        "architecture": "x86_64",
        "cache_dir": root / "cache",
    }
    return Machine(**{**defaults, **changes})


def row(machine: Machine, what: str) -> doctor.Row:
    return next(r for r in doctor.examine(machine) if r.what == what)


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


VFIO_DEVICE, IOMMU_GROUP, VFIO_MODULE = "/dev/vfio/vfio", "/sys/kernel/iommu_groups/0", "/sys/module/vfio_pci"


@pytest.mark.parametrize(
    ("present", "state", "remedy"),
    [
        ([], "missing", "IOMMU"),
        ([IOMMU_GROUP], "limited", "modprobe"),
        ([VFIO_DEVICE], "limited", "IOMMU"),
        ([VFIO_DEVICE, IOMMU_GROUP, VFIO_MODULE], "ok", ""),
    ],
)
def test_vfio(tmp_path: Path, present: list[str], state: str, remedy: str) -> None:
    found = row(make_machine(tmp_path, dict.fromkeys(present, "/")), "VFIO")
    assert found.state == state
    assert remedy in found.remedy


DRIVE, OTHER, GPU_ADDRESS = "0000:01:00.0", "0000:02:00.0", "0000:41:00.0"


def test_without_drives_all_that_is_told_of_them_is_missing(tmp_path: Path) -> None:
    for what in ("NVMe drives", "drive access", "GPU to drive", "drive paths"):
        found = row(make_machine(tmp_path), what)
        assert (found.state, bool(found.remedy)) == ("missing", True)


def test_drives(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add_drive(DRIVE)
    kernel.add(OTHER)
    kernel.add("0000:00:17.0", kind=SATA_CLASS, driver="ahci")
    assert row(make_machine(tmp_path), "NVMe drives").found == (
        f"{DRIVE}: Samsung SSD 990 PRO 2TB, nvme has it\n{OTHER}: unknown model, nobody has it"
    )


@pytest.mark.parametrize(
    ("driver", "group", "uses", "state", "text", "remedy"),
    [
        ("nvme", "14", ["nvme0n1 is mounted on /"], "missing", "none: nvme0n1 is mounted on /", "in use"),
        ("vfio-pci", "14", [], "ok", "VFIO, group 14", ""),
        ("nvme", "14", [], "limited", "VFIO once it is bound (IOMMU group 14)", "penstock nvme bind"),
        ("", "14", [], "limited", "VFIO once it is bound", "penstock nvme bind"),
        ("nvme", "", [], "limited", "huge pages, as root, once it is bound", "intel_iommu=on"),
        ("", "", [], "limited", "huge pages, as root: there is no IOMMU", "intel_iommu=on"),
    ],
)
def test_which_way_a_drive_could_be_driven(
    tmp_path: Path, driver: str, group: str, uses: list[str], state: str, text: str, remedy: str
) -> None:
    FakeKernel(tmp_path).add(DRIVE, driver=driver, group=group)
    told = {"address": DRIVE, "driver": driver, "iommu_group": group, "uses": uses}
    found = row(make_machine(tmp_path, nvme_drives=lambda root: [told]), "drive access")
    assert found.state == state
    assert found.found.startswith(f"{DRIVE}: {text}")
    assert remedy in found.remedy
    assert "penstock_p2p" in found.gives


def test_the_best_drive_says_what_can_be_had(tmp_path: Path) -> None:
    pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
    kernel = FakeKernel(tmp_path)
    kernel.add_drive(DRIVE)
    kernel.mount("nvme0n1", "/")
    kernel.add(OTHER, driver="vfio-pci", group="15")
    found = row(make_machine(tmp_path), "drive access")
    assert found.state == "ok"
    assert found.found == f"{DRIVE}: none: nvme0n1 is mounted on /\n{OTHER}: VFIO, group 15"


def test_drives_without_a_compiled_part(tmp_path: Path) -> None:
    def missing(root: Path) -> list[dict[str, Any]]:
        raise ImportError("no module _native")

    FakeKernel(tmp_path).add(DRIVE)
    found = row(make_machine(tmp_path, nvme_drives=missing), "drive access")
    assert (found.state, "pip install" in found.remedy) == ("limited", True)


def refused(address: str) -> tuple[str, str]:
    raise OSError(16, "open PCI device: another process drives it")


@pytest.mark.parametrize(
    ("driver", "gpu_path", "state", "text", "remedy"),
    [
        (
            "vfio-pci",
            lambda address: (doctor.KERNELS_RING, "the GPU's memory is not mapped"),
            "ok",
            f"{doctor.KERNELS_RING}, data in host memory: the GPU's memory is not mapped",
            "",
        ),
        ("vfio-pci", lambda address: (doctor.STRAIGHT_TO_GPU, ""), "ok", doctor.STRAIGHT_TO_GPU, ""),
        (
            "vfio-pci",
            lambda address: ("doorbells forwarded by a host thread", "CUDA does not map them"),
            "limited",
            "doorbells forwarded by a host thread, data in host memory: CUDA does not map them",
            "slower",
        ),
        ("vfio-pci", refused, "limited", "not tried: ", "end what drives it"),
        ("nvme", refused, "limited", "not tried: nvme has it", "penstock nvme bind"),
        ("", refused, "limited", "not tried: nobody has it", "penstock nvme bind"),
    ],
)
def test_how_a_gpu_would_drive_a_drive(
    tmp_path: Path, driver: str, gpu_path: Any, state: str, text: str, remedy: str
) -> None:
    FakeKernel(tmp_path).add(DRIVE, driver=driver, group="14")
    told = {"address": DRIVE, "driver": driver, "iommu_group": "14", "uses": []}
    machine = make_machine(
        tmp_path,
        driver=lambda: Driver("13.0", (H200,)),
        built_cuda=lambda: "13.0",
        nvme_drives=lambda root: [told],
        gpu_path=gpu_path,
    )
    found = row(machine, "GPU to drive")
    assert found.state == state
    assert found.found.startswith(f"{DRIVE}: {text}")
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("driver", "built", "text"),
    [
        (no_driver, "13.0", "libcuda.so.1"),
        (lambda: Driver("13.0"), "13.0", "no GPU"),
        (lambda: Driver("13.0", (H200,)), None, "built without CUDA"),
    ],
)
def test_without_a_gpu_no_drive_is_tried(tmp_path: Path, driver: Any, built: str | None, text: str) -> None:
    FakeKernel(tmp_path).add(DRIVE, driver="vfio-pci", group="14")
    machine = make_machine(tmp_path, driver=driver, built_cuda=lambda: built, gpu_path=refused)
    found = row(machine, "GPU to drive")
    assert found.state == "missing"
    assert text in found.found


def test_the_way_to_a_drive_is_drawn(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add("0000:00:01.0", driver="pcieport", kind=BRIDGE_CLASS)
    below = ("pci0000:00", "0000:00:01.0", "0000:03:00.0")
    kernel.add(below[2], below=below[:2], driver="pcieport", kind=BRIDGE_CLASS, link=None)
    kernel.add("0000:04:00.0", below=below, node=1)
    found = row(make_machine(tmp_path), "drive paths")
    assert found.found.splitlines() == [
        "pci0000:00 root",
        "`- 0000:00:01.0 bridge, 16.0 GT/s x4",
        "   `- 0000:03:00.0 bridge",
        "      `- 0000:04:00.0 drive on socket 1, 16.0 GT/s x4",
    ]
    assert (found.state, found.remedy) == ("ok", "")


def test_a_slow_link_and_a_gpu_elsewhere_are_told(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add(DRIVE, link=SLOW, node=0)
    kernel.add(OTHER, node=1)
    kernel.add(GPU_ADDRESS, kind=GPU_CLASS, vendor="0x10de", node=1)
    kernel.add("0000:42:00.0", kind=GPU_CLASS, vendor="0x1002", node=3)
    found = row(make_machine(tmp_path), "drive paths")
    assert found.state == "limited"
    assert f"{DRIVE} runs at 8.0 GT/s x2 of 16.0 GT/s x4" in found.remedy
    assert f"{DRIVE} (socket 0) and GPU {GPU_ADDRESS} (socket 1) hang on different sockets" in found.remedy
    assert found.remedy.count("different sockets") == 1


def test_a_garbled_tree_fails_no_probe(tmp_path: Path) -> None:
    folder = FakeKernel(tmp_path).add(DRIVE, node=0)
    for name in ("vendor", "numa_node", "current_link_speed", "max_link_speed"):
        (folder / name).write_bytes(b"\xff\x00?\n")
    rows = doctor.examine(make_machine(tmp_path))
    assert [r.what for r in rows] == list(doctor.PROBES)


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

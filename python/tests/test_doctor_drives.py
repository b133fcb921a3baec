"""What `penstock doctor` says of drives: who has them, and how CPU threads and kernels would reach them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_kernel import BRIDGE_CLASS, GPU_CLASS, SATA_CLASS, SLOW, FakeKernel
from fake_machine import H200, make_machine, no_driver, row
from penstock import doctor
from penstock.machine import Driver

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

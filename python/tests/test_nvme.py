"""`penstock nvme`, as compiled, on a tree of sysfs; what opens a drive is stood in for."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from fake_kernel import BRIDGE_CLASS, SATA_CLASS, SLOW, FakeKernel
from nvme_program import DRIVE, OTHER, Terminal, refusal, run
from penstock.nvme import Places, list_drives

native = pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    fake = FakeKernel(tmp_path)
    monkeypatch.setenv("PENSTOCK_SYSFS", str(fake.sysfs))
    monkeypatch.setenv("PENSTOCK_PROC", str(fake.proc))
    monkeypatch.setenv("PENSTOCK_DEV", str(fake.dev))
    return fake


def test_places_are_the_kernels_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PENSTOCK_SYSFS", "PENSTOCK_PROC", "PENSTOCK_DEV"):
        monkeypatch.delenv(name, raising=False)
    assert Places() == Places("/sys", "/proc", "/dev")


# list ---------------------------------------------------------------------------------------------


def test_list_shows_who_has_a_drive_and_what_for(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.add_drive(DRIVE, node=1)
    kernel.mount("nvme0n2", "/home")
    kernel.add("0000:00:17.0", kind=SATA_CLASS, driver="ahci", group="14")
    kernel.add(OTHER, driver="vfio-pci", group="15", link=SLOW)
    out, _ = run(capsys, "list")
    for word in (
        "144d:a80c",
        "Samsung SSD 990 PRO 2TB",
        "S6Z1NF0W",
        "14 with 0000:00:17.0",
        "16.0 GT/s x4",
        "vfio-pci",
        "nvme0n1, nvme0n2",
        "nvme0n2 is mounted on /home",
        f"{OTHER}: its link is slower than it could be (8.0 GT/s x2 of 16.0 GT/s x4)",
    ):
        assert word in out
    assert f"{DRIVE}: its link" not in out
    assert "no IOMMU" not in out
    assert "ahci" not in out, "what is no NVMe drive is not listed"


def test_list_as_json(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add_drive(DRIVE, node=1)
    kernel.add(OTHER, link=None)
    first, second = json.loads(run(capsys, "list", "--json")[0])
    assert first == {
        "address": DRIVE,
        "vendor": 0x144D,
        "device": 0xA80C,
        "model": "Samsung SSD 990 PRO 2TB",
        "serial": "S6Z1NF0W",
        "driver": "nvme",
        "iommu_group": "14",
        "group_others": [],
        "link": "16.0 GT/s PCIe x4 of 16.0 GT/s PCIe x4",
        "numa_node": 1,
        "block_devices": ["nvme0n1", "nvme0n2"],
        "uses": [],
        "slow_link": False,
    }
    assert (second["driver"], second["iommu_group"], second["link"], second["model"]) == ("", "", "", "")


def test_list_without_drives(kernel: FakeKernel, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "no NVMe drives" in run(capsys, "list")[0]
    assert run(capsys, "list", "--json")[0] == "[]\n"
    assert list_drives(Places(sysfs=str(tmp_path / "nowhere"))) == []


def test_list_says_what_no_iommu_means(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add_drive(DRIVE, group="")
    assert "reaches all of the machine's memory" in run(capsys, "list")[0]


# bind ---------------------------------------------------------------------------------------------


def test_bind_tells_first_and_hands_over(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    folder = kernel.add_drive(DRIVE)
    with kernel.moving(DRIVE, "nvme", "vfio-pci") as said:
        out, err = run(capsys, "bind", "01:00.0", "--yes")
    assert said == [DRIVE, DRIVE]
    assert (folder / "driver_override").read_text() == "vfio-pci\n"
    for word in (
        "Samsung SSD 990 PRO 2TB (S6Z1NF0W):",
        "nvme loses it; vfio-pci gets it",
        "block devices that go away: nvme0n1, nvme0n2",
        "vfio/14 opens for root alone",
    ):
        assert word in err
    assert f"{DRIVE}: vfio-pci has it now" in out
    assert "WARNING" not in err


def test_bind_gives_the_group_to_its_owner(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.add_drive(DRIVE)
    file = kernel.add_group_file("14")
    given: list[Any] = []
    monkeypatch.setattr(os, "chown", lambda *arguments: given.append(arguments))
    with kernel.moving(DRIVE, "nvme", "vfio-pci"):
        out, err = run(capsys, "bind", DRIVE, "--owner", "1234", "--yes")
    assert given == [(file, 1234, -1)]
    assert "opens for 1234 and root" in out
    assert "opens for 1234 and root" in err


def test_without_groups_the_owner_gets_the_drives_own_file(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.add_drive(DRIVE)
    file = kernel.add_own_file(DRIVE, "vfio3")
    given: list[Any] = []
    monkeypatch.setattr(os, "chown", lambda *arguments: given.append(arguments))
    with kernel.moving(DRIVE, "nvme", "vfio-pci"):
        out, _ = run(capsys, "bind", DRIVE, "--owner", "1234", "--yes")
    assert given == [(file, 1234, -1)]
    assert "opens for 1234 and root, who may open" in out
    kernel.hold(77, file)
    assert "process 77 drives it" in refusal(capsys, "unbind", DRIVE, "--yes")


def test_an_owner_who_does_not_get_it_is_told(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add_drive(DRIVE)
    with kernel.moving(DRIVE, "nvme", "vfio-pci"):
        told = refusal(capsys, "bind", DRIVE, "--owner", "root", "--yes")
    assert "vfio-pci has it, but" in told
    assert "No such file or directory: chown it as root" in told


def test_what_is_bound_stays_so(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add(DRIVE, driver="vfio-pci", group="14")
    os.chown(kernel.add_group_file("14"), os.getuid(), -1)
    out, err = run(capsys, "bind", DRIVE, DRIVE, "--yes")
    assert err.count("is bound already") == 1
    assert out.count("vfio-pci has it now") == 1


def test_without_an_iommu_it_is_said_loudly_and_once(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.add_drive(DRIVE, group="")
    kernel.add(OTHER)
    with kernel.moving(DRIVE, "nvme", "", probe=False) as said:
        out, err = run(capsys, "bind", DRIVE, OTHER, "--yes")
    assert said == [DRIVE]
    assert err.count("ALL of this machine's memory") == 1
    assert "Only root may drive it" in err
    assert "nobody gets it" in err
    assert "nobody has it now" in out


@pytest.mark.parametrize(
    ("prepare", "part"),
    [
        (lambda k: k.mount("nvme0n1", "/"), "nvme0n1 is mounted on /"),
        (lambda k: (k.sysfs / "class/block/nvme0n1/nvme0n1p1").mkdir(), "nvme0n1 has partition nvme0n1p1"),
        (lambda k: (k.sysfs / "class/block/nvme0n2/holders/dm-0").mkdir(), "nvme0n2 is part of dm-0"),
    ],
)
@pytest.mark.parametrize("group", ["14", ""])
def test_a_drive_in_use_is_taken_only_by_force(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], prepare: Any, part: str, group: str
) -> None:
    kernel.add_drive(DRIVE, group=group)
    prepare(kernel)
    told = refusal(capsys, "bind", DRIVE, "--yes")
    assert f"{part}: end that first, or --force" in told
    with pytest.raises(ValueError, match=part):
        native.nvme_bind(DRIVE, False, str(kernel.sysfs), str(kernel.proc))
    with kernel.moving(DRIVE, "nvme", "vfio-pci" if group else "", probe=bool(group)):
        _, err = run(capsys, "bind", DRIVE, "--yes", "--force")
    assert f"FORCED although {part}" in err


def test_a_group_is_given_away_as_a_whole(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add_drive(DRIVE)
    kernel.add("0000:00:1c.0", kind=BRIDGE_CLASS, driver="pcieport", group="14")
    kernel.add("0000:00:17.0", kind=SATA_CLASS, driver="ahci", group="14")
    told = refusal(capsys, "bind", DRIVE, "--yes")
    assert "group 14 has 0000:00:17.0, too, which the driver ahci has" in told
    kernel.set_driver("0000:00:17.0", "")
    with kernel.moving(DRIVE, "nvme", "vfio-pci"):
        assert "the rest of the group: 0000:00:17.0, 0000:00:1c.0" in run(capsys, "bind", DRIVE, "--yes")[1]


def test_one_that_stands_in_the_way_keeps_all_from_being_bound(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = kernel.add(OTHER, driver="nvme", group="15")
    kernel.add_drive(DRIVE)
    kernel.mount("nvme0n1", "/")
    assert "is mounted" in refusal(capsys, "bind", OTHER, DRIVE, "--yes")
    assert (folder / "driver_override").read_text() == "\n"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["bind"], "Missing argument"),
        (["bind", "0000:09:00.0"], "there is none: `penstock nvme list` shows"),
        (["bind", "../../x"], "there is none"),
        (["bind", "0000:00:01.0"], "no NVMe controller"),
        (["bind", DRIVE], "nobody is there to be asked: --yes"),
        (["bind", DRIVE, "--owner", "no-such-user"], "there is no such user"),
        (["bind", OTHER, "--owner", "root"], "without an IOMMU only root may drive it"),
        (["unbind", "0000:09:00.0"], "there is none"),
        (["unbind", DRIVE], "nobody is there to be asked: --yes"),
        (["identify", "0000:09:00.0"], "there is none"),
        (["smart", "0000:00:01.0"], "no NVMe controller"),
        (["read", "0000:09:00.0", "--blocks", "1", "-o", "x"], "there is none"),
        (["read", DRIVE, "-o", "x"], "Missing option '--blocks'"),
        (["read", DRIVE, "--blocks", "0", "-o", "x"], "not in the range"),
        (["read", DRIVE, "--blocks", "1", "--start", "-1", "-o", "x"], "not in the range"),
        (["read", DRIVE, "--blocks", "1", "--namespace", "0", "-o", "x"], "not in the range"),
        (["write", DRIVE, "--start", "0", "-i", "/no/such/file"], "/no/such/file: No such file"),
        (["write", DRIVE, "-i", "x"], "Missing option '--start'"),
        (["list", "--frames"], "No such option"),
        (["format"], "No such command"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    kernel: FakeKernel,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    part: str,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    kernel.add_drive(DRIVE)
    kernel.add(OTHER)
    assert part in refusal(capsys, *arguments)


def test_a_kernel_without_vfio_is_told(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add_drive(DRIVE)
    (kernel.sysfs / "bus/pci/drivers/vfio-pci").rename(kernel.root / "away")
    assert "modprobe vfio-pci" in refusal(capsys, "bind", DRIVE, "--yes")


def test_a_driver_that_does_not_take_it_is_told(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.add_drive(DRIVE)
    with kernel.moving(DRIVE, "nvme", ""):
        assert "vfio-pci did not take it" in refusal(capsys, "bind", DRIVE, "--yes")


@pytest.mark.parametrize("group", ["14", ""])
def test_who_may_not_is_told(kernel: FakeKernel, capsys: pytest.CaptureFixture[str], group: str) -> None:
    """A folder stands for a file that may not be written: root may write any file."""
    folder = kernel.add_drive(DRIVE, group=group)
    unwritable = folder / "driver_override" if group else kernel.sysfs / "bus/pci/drivers/nvme/unbind"
    unwritable.unlink()
    unwritable.mkdir()
    assert f"{unwritable.name} needs root" in refusal(capsys, "bind", DRIVE, "--yes")


@pytest.mark.parametrize("agreed", [True, False])
def test_it_asks(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, agreed: bool
) -> None:
    folder = kernel.add_drive(DRIVE)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(click, "confirm", lambda *arguments, **options: agreed)
    if agreed:
        with kernel.moving(DRIVE, "nvme", "vfio-pci"):
            run(capsys, "bind", DRIVE)
    else:
        assert "nothing was done" in refusal(capsys, "bind", DRIVE)
        assert (folder / "driver_override").read_text() == "\n"


# unbind -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("driver", "told"), [("vfio-pci", "vfio-pci loses it"), ("", "no driver has it")])
def test_unbind_gives_it_back(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], driver: str, told: str
) -> None:
    folder = kernel.add_drive(DRIVE)
    kernel.set_driver(DRIVE, driver)
    with kernel.moving(DRIVE, driver, "nvme") as said:
        out, err = run(capsys, "unbind", DRIVE, "--yes")
    assert said == [DRIVE if driver else "\n", DRIVE]
    assert not driver or (folder / "driver_override").read_text() == "\n"
    assert f"{told}; the kernel's driver gets it" in err
    assert f"{DRIVE}: nvme has it now as nvme0n1, nvme0n2" in out


def test_what_the_kernel_has_stays_so(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add_drive(DRIVE)
    out, err = run(capsys, "unbind", DRIVE, "--yes")
    assert "is the kernel's already" in err
    assert "nvme has it now" in out


def test_a_drive_of_another_driver_is_not_touched(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.add(DRIVE, driver="ahci", group="14")
    assert "the driver ahci has it" in refusal(capsys, "unbind", DRIVE, "--yes")


def test_a_drive_that_a_process_drives_is_not_waited_for(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.add(DRIVE, driver="vfio-pci", group="14")
    kernel.hold(4321, kernel.add_group_file("14"))
    assert "process 4321 drives it: end that first" in refusal(capsys, "unbind", DRIVE, "--yes")


def test_a_kernel_without_its_driver_is_told(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add(DRIVE, driver="vfio-pci", group="14")
    with kernel.moving(DRIVE, "vfio-pci", ""):
        assert "modprobe nvme" in refusal(capsys, "unbind", DRIVE, "--yes")

"""penstock nvme identify, smart, read, write, zero and discard: what they show, and what they ask first."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from fake_kernel import FAST, FakeKernel
from nvme_program import DRIVE, Terminal, refusal, run
from penstock.cli import main as cli

native = pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    fake = FakeKernel(tmp_path)
    monkeypatch.setenv("PENSTOCK_SYSFS", str(fake.sysfs))
    monkeypatch.setenv("PENSTOCK_PROC", str(fake.proc))
    monkeypatch.setenv("PENSTOCK_DEV", str(fake.dev))
    return fake


FACTS: dict[str, Any] = {
    "address": DRIVE,
    "model": "Samsung SSD 990 PRO 2TB",
    "serial": "S6Z1NF0W",
    "firmware": "4B2QJXD7",
    "version": "2.0.0",
    "vendor": 0x144D,
    "queue_entries": 16384,
    "timeout_ms": 20000,
    "doorbell_stride": 4,
    "least_page_bytes": 4096,
    "most_page_bytes": 65536,
    "transfer_bytes": 2 << 20,
    "queues_asked": 1024,
    "queues_granted": 128,
    "atomic_write_blocks": 1024,
    "atomic_power_fail_blocks": 8,
    "volatile_write_cache": True,
    "namespaces": [
        {
            "id": 1,
            "blocks": 3907029168,
            "block_bytes": 512,
            "bytes": 3907029168 * 512,
            "used_blocks": 0,
            "write_protected": True,
            "problem": None,
            "formats": [
                {"block_bytes": 512, "metadata_bytes": 0, "relative_performance": 2, "in_use": True},
                {"block_bytes": 4096, "metadata_bytes": 8, "relative_performance": 0, "in_use": False},
            ],
        },
        {
            "id": 3,
            "blocks": 0,
            "block_bytes": 0,
            "bytes": 0,
            "used_blocks": 0,
            "write_protected": False,
            "problem": "it is a zoned namespace: use another",
            "formats": [],
        },
    ],
}
HEALTH: dict[str, Any] = {
    "address": DRIVE,
    "warnings": ["the media are read-only"],
    "temperature_celsius": 41,
    "available_spare_percent": 97,
    "spare_threshold_percent": 10,
    "percentage_used": 3,
    "bytes_read": 512_000 << 64,
    "bytes_written": 512_000,
    "host_reads": 1_000_000,
    "host_writes": 7,
    "busy_minutes": 9,
    "power_cycles": 12,
    "power_on_hours": 8765,
    "unsafe_shutdowns": 5,
    "media_errors": 2,
    "error_log_entries": 11,
}
COPIED: dict[str, Any] = {"blocks": 2048, "bytes": 1 << 20, "commands": 16, "seconds": 0.001}


def copying(asked: list[Any]) -> Callable[..., dict[str, Any]]:
    """Stands in for a copy, and keeps what it was asked."""

    def copy(*arguments: Any) -> dict[str, Any]:
        asked.append(arguments)
        return COPIED

    return copy


def test_identify(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.add_drive(DRIVE)
    monkeypatch.setattr(native, "nvme_identify", {DRIVE: FACTS}.__getitem__)
    out, _ = run(capsys, "identify", "01:00.0")
    for word in (
        "S6Z1NF0W",
        "4B2QJXD7",
        "2.0.0",
        "16,384 at most",
        "128 granted, 1,024 asked for",
        "20 s",
        "4.0 KiB to 64.0 KiB",
        "2.0 MiB",
        "1,024 blocks, 8 when power fails",
        "what is not flushed is lost",
        "2,000,398,934,016",
        "(write protected)",
        "512*, 4096 + 8 of metadata",
        "namespace 3: it is a zoned namespace: use another",
    ):
        assert word in out
    assert "namespace 1:" not in out, "which has no problem"
    assert json.loads(run(capsys, "identify", DRIVE, "--json")[0]) == FACTS


def test_smart(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.add_drive(DRIVE)
    monkeypatch.setattr(native, "nvme_smart", {DRIVE: HEALTH}.__getitem__)
    out, _ = run(capsys, "smart", DRIVE)
    for word in (
        "the media are read-only",
        "41 C",
        "97 % (it warns below 10 %)",
        "3 %",
        f"{512_000 << 64:,} bytes",
        "1,000,000 reads, 7 writes",
        "8,765 hours, 12 times",
    ):
        assert word in out
    assert json.loads(run(capsys, "smart", DRIVE, "--json")[0]) == HEALTH


def test_read_says_what_it_did_beside_the_data(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.add_drive(DRIVE)
    asked: list[Any] = []
    monkeypatch.setattr(native, "nvme_read", copying(asked))
    out, err = run(capsys, "read", DRIVE, "--namespace", "2", "--start", "7", "--blocks", "2048", "-o", "-")
    assert asked == [(DRIVE, 2, 7, 2048, "-", False, None)]
    assert out == "", "the standard output is the data's"
    assert "read 2,048 blocks, 1.0 MiB, with 16 commands in 1.0 ms (1.05 GB/s)" in err
    run(capsys, "read", DRIVE, "--blocks", "1", "-o", "x", "--replace")
    assert asked[-1] == (DRIVE, 1, 0, 1, "x", True, None)


def test_blocks_are_not_shown_on_a_terminal(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.add_drive(DRIVE)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert cli.main(["nvme", "read", DRIVE, "--blocks", "1", "-o", "-"]) == cli.REFUSED
    assert "nothing for a terminal" in capsys.readouterr().err


@pytest.mark.parametrize("answer", ["flag", "yes", "no", "nobody"])
def test_write_overwrites_only_when_somebody_agrees(
    kernel: FakeKernel,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answer: str,
) -> None:
    kernel.add_drive(DRIVE)
    source = tmp_path / "image"
    source.write_bytes(bytes(1 << 20))
    asked: list[Any] = []
    monkeypatch.setattr(native, "nvme_write", copying(asked))
    monkeypatch.setattr(sys, "stdin", io.StringIO() if answer == "nobody" else Terminal())
    monkeypatch.setattr(click, "confirm", lambda *arguments, **options: answer == "yes")
    arguments = ["write", DRIVE, "--start", "64", "-i", str(source)]
    if answer in ("no", "nobody"):
        told = refusal(capsys, *arguments)
        assert ("nothing was done" if answer == "no" else "--yes-overwrite") in told
        assert asked == []
        return
    _, err = run(capsys, *arguments, *(["--yes-overwrite"] if answer == "flag" else []))
    assert asked == [(DRIVE, 1, 64, 0, str(source), None)]
    assert f"1,048,576 bytes of namespace 1 of {DRIVE}, from block 64 on, are overwritten" in err
    assert "wrote 2,048 blocks" in err


@pytest.mark.parametrize(("verb", "told_as"), [("zero", "overwritten by zeros"), ("discard", "given up")])
@pytest.mark.parametrize("answer", ["flag", "yes", "no", "nobody"])
def test_blocks_are_cleared_only_when_somebody_agrees(
    kernel: FakeKernel,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    told_as: str,
    answer: str,
) -> None:
    kernel.add_drive(DRIVE)
    asked: list[Any] = []
    monkeypatch.setattr(native, f"nvme_{verb}", copying(asked))
    monkeypatch.setattr(sys, "stdin", io.StringIO() if answer == "nobody" else Terminal())
    monkeypatch.setattr(click, "confirm", lambda *arguments, **options: answer == "yes")
    arguments = [verb, DRIVE, "--namespace", "3", "--start", "64", "--blocks", "2048"]
    if answer in ("no", "nobody"):
        told = refusal(capsys, *arguments)
        assert ("nothing was done" if answer == "no" else "--yes-overwrite") in told
        assert asked == []
        return
    _, err = run(capsys, *arguments, *(["--yes-overwrite"] if answer == "flag" else []))
    assert asked == [(DRIVE, 3, 64, 2048, None)]
    assert f"2,048 blocks of namespace 3 of {DRIVE}, from block 64 on, are {told_as}" in err
    assert "ed 2,048 blocks" in err


def test_a_drive_is_opened_through_the_real_sysfs(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "ffff:ff:1f.7"
    kernel.add(address, link=FAST)
    for command in (["identify", address], ["smart", address], ["read", address, "--blocks", "1", "-o", "x"]):
        assert "there is none" in refusal(capsys, *command)

"""What kernels of other libraries are linked with: penstock.kernels.lto_ir."""

from __future__ import annotations

from typing import TYPE_CHECKING

import penstock
import pytest
from penstock.kernels import locations, lto_ir

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a build for two architectures."""
    (tmp_path / "device").mkdir()
    for architecture in (80, 90):
        (tmp_path / "device" / f"read_calls.sm_{architecture}.ltoir").write_bytes(b"%d" % architecture)
    monkeypatch.setattr(locations, "_PACKAGE", tmp_path)
    monkeypatch.setattr(locations, "_CHECKOUT", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("parts")
def test_lto_ir_is_of_the_newest_architecture_that_the_gpu_takes() -> None:
    assert [lto_ir(one) for one in (80, "89", "sm_90", "sm_90a", 100)] == [b"80", b"80", b"90", b"90", b"90"]


@pytest.mark.usefixtures("parts")
def test_an_older_gpu_has_none() -> None:
    with pytest.raises(penstock.Error, match="this build has sm_80, sm_90, and none for sm_75: build"):
        lto_ir(75)


@pytest.mark.parametrize("wrong", ["hopper", "", 9, "sm_"])
def test_an_architecture_is_a_number(wrong: int | str) -> None:
    with pytest.raises(ValueError, match="is no architecture: give one as 90 or 'sm_90'"):
        lto_ir(wrong)


def test_a_build_without_cuda_has_none(parts: Path) -> None:
    for part in (parts / "device").iterdir():
        part.unlink()
    with pytest.raises(penstock.Error, match="build Penstock with PENSTOCK_CUDA=ON"):
        lto_ir(90)
    with pytest.raises(penstock.Error, match="build Penstock with PENSTOCK_CUDA=ON"):
        locations.device_library.__wrapped__()

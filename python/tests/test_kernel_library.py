"""What kernels of other libraries are linked with: penstock.kernels.lto_ir and triton_library."""

from __future__ import annotations

import re
from pathlib import Path

import penstock
import pytest
from penstock.kernels import locations, lto_ir, triton_library


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
    with pytest.raises(ValueError, match=r"triton_library: .* is no architecture"):
        triton_library(wrong)


PTX = """//
.version 9.0
.target sm_90
.address_size 64

.weak .global .align 2 .b8 name$1[4] = {3, 0, 0, 0};  // with a comment
.visible .func  (.param .b32 func_retval0) penstock_load_f32(
\t.param .b64 penstock_load_f32_param_0
)
{
\tld.param.u64 \t%rd1, [penstock_load_f32_param_0];
\t.loc "a \\ b"
}
"""


@pytest.mark.usefixtures("kernel_cache")
def test_triton_links_functions_that_call_the_library_in_ptx(parts: Path) -> None:
    (parts / "device" / "read_calls.sm_90.ptx").write_text(PTX)
    module = Path(triton_library("sm_90a")).read_text()
    assert triton_library(90) == triton_library("sm_90a")
    assert "version" not in module, "the module that it is linked into has one"
    assert "comment" not in module
    assert 'module asm "\\09ld.param.u64 \\09%rd1, [penstock_ptx_load_f32_param_0];"' in module
    assert 'module asm "\\09.loc \\22a \\5C b\\22"' in module
    defined = re.findall(
        r"^define (\w+) @penstock_load_(\w+)\(i64 %array, i64 %index\)", module, re.MULTILINE
    )
    assert len(defined) == 10
    assert {("float", "f32"), ("i8", "u8"), ("i64", "i64")} <= set(defined)
    assert "call.uni (element), penstock_ptx_load_f32, (array, index)" in module


def test_triton_has_its_library_where_no_cache_can_be_written(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "taken"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (parts / "device" / "read_calls.sm_80.ptx").write_text(PTX)
    assert "penstock_load_f64" in Path(triton_library(80)).read_text()


def test_a_build_without_cuda_has_none(parts: Path) -> None:
    for part in (parts / "device").iterdir():
        part.unlink()
    with pytest.raises(penstock.Error, match="build Penstock with PENSTOCK_CUDA=ON"):
        lto_ir(90)
    with pytest.raises(penstock.Error, match="build Penstock with PENSTOCK_CUDA=ON"):
        locations.device_library.__wrapped__()

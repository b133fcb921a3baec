"""NVIDIA's compiler and linker that are missing, or do not fit each other or this build."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import penstock
import pytest
from penstock.kernels import locations, nvrtc, toolkit
from penstock.kernels.signature import find_kernel
from penstock.kernels.source import Source

pytestmark = pytest.mark.usefixtures("kernel_cache", "build")

TEXT = 'extern "C" __global__ void f(int n) {}'
OLD = "ERROR_OUTDATED_LIBRARY (14)\nnvJitLink error log: ERROR 4 in x, may need newer version of nvJitLink"
RELEASE = "//\n// Cuda compilation tools, release 13.0, V13.0.88\n"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device library for two architectures, compiled by CUDA 13.0."""
    (tmp_path / "device").mkdir()
    (tmp_path / "device" / "read_calls.lto.fatbin").write_bytes(b"fatbin")
    for architecture in (80, 90):
        made = tmp_path / "device" / f"read_calls.sm_{architecture}"
        made.with_name(made.name + ".ltoir").touch()
        made.with_name(made.name + ".ptx").write_text(RELEASE)
    monkeypatch.setattr(locations, "_PACKAGE", tmp_path)
    monkeypatch.setattr(nvrtc, "include_dirs", list)
    monkeypatch.setattr(nvrtc, "sources_digest", lambda gpu: str(tmp_path))
    kept = (locations.device_library, locations.device_architectures, locations.device_release)
    for known in kept:
        known.cache_clear()
    yield
    for known in kept:
        known.cache_clear()


class Machine:
    """What the modules of NVIDIA's say and do here."""

    def __init__(self) -> None:
        self.nvrtc: tuple[int, int] | None = (13, 0)
        self.nvjitlink: tuple[int, int] | None = (13, 0)
        self.of_another = False
        self.compile_log = self.link_log = ""

    def module(self, name: str) -> Any:
        if name == "cuda.core":
            names = ("Program", "ProgramOptions", "Linker", "LinkerOptions", "ObjectCode")
            return types.SimpleNamespace(**dict.fromkeys(names, self))
        if name == "cuda.bindings.nvrtc":
            return types.SimpleNamespace(nvrtcVersion=lambda: (0, *self.version(self.nvrtc)))
        if name == "cuda.bindings.nvjitlink":
            return types.SimpleNamespace(version=lambda: self.version(self.nvjitlink))
        if name == "cuda.pathfinder":
            return self
        raise ImportError(name)

    @staticmethod
    def version(of: tuple[int, int] | None) -> tuple[int, int]:
        if of is None:
            raise RuntimeError("Failure finding it")
        return of

    def load_nvidia_dynamic_lib(self, name: str) -> Any:
        return types.SimpleNamespace(
            abs_path=f"/lib/{name}.so", was_already_loaded_from_elsewhere=self.of_another
        )

    # Programs, linkers, options and codes in one
    symbol_mapping: dict[str, str] = {}  # noqa: RUF012
    code = b"image"

    def __call__(self, *_: Any, **__: Any) -> Machine:
        return self

    def from_fatbin(self, _: bytes) -> Machine:
        return self

    def compile(self, *_: Any, **__: Any) -> Machine:
        if self.compile_log:
            raise RuntimeError(self.compile_log)
        return self

    def link(self, _: str) -> Machine:
        if self.link_log:
            raise RuntimeError(self.link_log)
        return self


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(importlib, "import_module", made.module)
    return made


def compiled(architecture: int = 90) -> tuple[bytes, str]:
    return nvrtc.compile_for_gpu(Source(TEXT, "f", "kernel.cu"), find_kernel(TEXT, None), architecture)


def refused(architecture: int = 90) -> str:
    with pytest.raises(penstock.Error) as met:
        compiled(architecture)
    return str(met.value)


def test_what_fits_compiles(machine: Machine) -> None:
    assert compiled(90) == compiled(90) == (b"image", "f")
    assert compiled(86) == (b"image", "f"), "a later one of the same generation"


def test_a_gpu_that_the_build_is_not_for_is_named(machine: Machine) -> None:
    for architecture in (75, 100):
        assert refused(architecture) == (
            f"compile the kernel f: the device library of this build is for sm_80, sm_90, and the GPU is "
            f"sm_{architecture}: build Penstock with -DCMAKE_CUDA_ARCHITECTURES={architecture}"
        )


@pytest.mark.parametrize(
    ("name", "wheel"), [("NVRTC", "nvidia-cuda-nvrtc"), ("nvJitLink", "nvidia-nvjitlink")]
)
def test_a_library_that_is_missing_is_named_with_its_wheel(machine: Machine, name: str, wheel: str) -> None:
    setattr(machine, name.lower(), None)
    assert refused() == (
        f"compile a kernel for a GPU: {name} is missing: pip install 'penstock[kernels]', or install the "
        f"wheel {wheel}"
    )


def test_cuda_core_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert refused() == ("compile a kernel for a GPU: cuda.core is missing: pip install 'penstock[kernels]'")


def test_a_linker_older_than_the_compiler_is_named_with_both_paths(machine: Machine) -> None:
    machine.nvrtc, machine.link_log = (13, 5), OLD
    assert refused() == (
        "compile the kernel f: nvJitLink 13.0 (/lib/nvJitLink.so) is older than NVRTC 13.5 (/lib/nvrtc.so): "
        "pip install 'nvidia-nvjitlink>=13.5' 'cuda-bindings>=13'"
    )


def test_a_linker_older_than_the_build_is_named(machine: Machine) -> None:
    machine.nvrtc, machine.nvjitlink, machine.link_log = (12, 9), (12, 9), OLD
    assert refused() == (
        "compile the kernel f: nvJitLink 12.9 (/lib/nvJitLink.so) is older than the CUDA 13.0 of this "
        "build's device library: pip install 'nvidia-nvjitlink>=13.0' 'cuda-bindings>=13'"
    )


def test_two_cudas_in_one_process_are_named(machine: Machine) -> None:
    machine.nvjitlink, machine.link_log, machine.of_another = (12, 9), OLD, True
    assert refused().endswith(
        ": another package of this process had loaded it: compile a kernel before that one is imported, or "
        "install that package for CUDA 13"
    )


def test_a_compiler_that_does_not_know_the_gpu_is_named(machine: Machine) -> None:
    machine.compile_log = (
        "NVRTC_ERROR_INVALID_OPTION (5): nvrtc: error: invalid value for --gpu-architecture (-arch)"
    )
    assert refused() == (
        "compile the kernel f: NVRTC 13.0 (/lib/nvrtc.so) does not know sm_90: install a later one of the "
        "wheel nvidia-cuda-nvrtc"
    )


@pytest.mark.parametrize("part", ["compile_log", "link_log"])
def test_a_mistake_of_the_source_stays_one(machine: Machine, part: str) -> None:
    setattr(machine, part, "NVRTC_ERROR_COMPILATION: compilation log: kernel.cu(1): error: no such thing")
    with pytest.raises(ValueError, match=r"compile the kernel f: .*error: no such thing: correct its source"):
        compiled()


def test_releases_that_do_not_say_where_they_are_do_without(machine: Machine, monkeypatch: Any) -> None:
    def without_paths(name: str) -> Any:
        if name == "cuda.pathfinder":
            raise ImportError(name)
        return machine.module(name)

    load: Callable[[str], Any] = without_paths
    monkeypatch.setattr(importlib, "import_module", load)
    assert str(toolkit.nvrtc()) == "NVRTC 13.0"

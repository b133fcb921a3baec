"""NVIDIA's compiler and linker as this process has them, and sentences about those that do not fit."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import Any

from penstock.errors import Error
from penstock.kernels.locations import device_architectures, device_release

_REMEDY = "pip install 'penstock[kernels]'"
_WHEELS = {"NVRTC": "nvidia-cuda-nvrtc", "nvJitLink": "nvidia-nvjitlink"}

_Version = tuple[int, int]


def core() -> Any:
    """The module cuda.core. penstock.Error: it is missing."""
    problem: Exception | None = None
    for module in ("cuda.core", "cuda.core.experimental"):  # the latter until its release 0.5
        try:
            found = importlib.import_module(module)
            if all(hasattr(found, needed) for needed in ("Program", "Linker", "ObjectCode")):
                return found
        except ImportError as met:
            problem = problem or met
    raise Error(f"compile a kernel for a GPU: cuda.core is missing: {_REMEDY}") from problem


@dataclass(frozen=True)
class Library:
    """One that is loaded."""

    name: str
    version: _Version
    path: str
    is_of_another: bool  # somebody else in this process had loaded it before

    def __str__(self) -> str:
        return f"{self.name} {_shown(self.version)}" + (f" ({self.path})" if self.path else "")


def nvrtc() -> Library:
    """penstock.Error: it is missing."""
    return _library("NVRTC", lambda: tuple(_bindings("nvrtc").nvrtcVersion()[1:]))


def nvjitlink() -> Library:
    """penstock.Error: it is missing."""
    return _library("nvJitLink", lambda: tuple(_bindings("nvjitlink").version()))


def _bindings(name: str) -> Any:
    return importlib.import_module(f"cuda.bindings.{name}")


def _library(name: str, version_of: Any) -> Library:
    try:
        version = version_of()
    except Exception as problem:
        raise Error(
            f"compile a kernel for a GPU: {name} is missing: {_REMEDY}, or install the wheel {_WHEELS[name]}"
        ) from problem
    path, is_of_another = "", False
    try:
        loaded = importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib(
            {"NVRTC": "nvrtc", "nvJitLink": "nvJitLink"}[name]
        )
        path, is_of_another = str(loaded.abs_path), bool(loaded.was_already_loaded_from_elsewhere)
    except Exception:
        pass  # older releases say neither
    return Library(name, version, path, is_of_another)


def architecture_problem(what: str, architecture: int) -> Error | None:
    """Of a GPU that NVRTC may know, and the device library of this build does not."""
    built = device_architectures()
    if any(one // 10 == architecture // 10 and one <= architecture for one in built):
        return None
    return Error(
        f"{what}: the device library of this build is for sm_{', sm_'.join(map(str, built))}, and the GPU is "
        f"sm_{architecture}: build Penstock with -DCMAKE_CUDA_ARCHITECTURES={architecture}"
    )


def compile_problem(what: str, log: str, architecture: int) -> Error | None:
    """Of a log of NVRTC's: it does not know this GPU."""
    if re.search(r"--gpu-architecture|NVRTC_ERROR_INVALID_OPTION.*arch", log) is None:
        return None
    return Error(
        f"{what}: {nvrtc()} does not know sm_{architecture}: install a later one of the wheel "
        f"{_WHEELS['NVRTC']}"
    )


def link_problem(what: str, log: str) -> Error | None:
    """Of a log of nvJitLink's: it is older than what it is to link."""
    if re.search(r"newer version of nvJitLink|OUTDATED_LIBRARY", log) is None:
        return None
    linker, compiler, release = nvjitlink(), nvrtc(), device_release()
    needed = max(compiler.version, release)
    of_build = f"the CUDA {_shown(release)} of this build's device library"
    maker = str(compiler) if compiler.version > release else of_build
    remedy = f"pip install '{_WHEELS['nvJitLink']}>={_shown(needed)}' 'cuda-bindings>={needed[0]}'"
    if linker.is_of_another:
        remedy = (
            "another package of this process had loaded it: compile a kernel before that one is imported, "
            f"or install that package for CUDA {needed[0]}"
        )
    return Error(f"{what}: {linker} is older than {maker}: {remedy}")


def _shown(version: _Version) -> str:
    return ".".join(map(str, version))

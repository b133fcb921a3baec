"""Kernels for a GPU: NVRTC compiles the source to LTO-IR, and nvJitLink links it with the device library."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

from penstock.errors import Error
from penstock.kernels.locations import cached, device_library, include_dirs, sources_digest, store

if TYPE_CHECKING:
    from penstock.kernels.signature import Signature
    from penstock.kernels.source import Source

_REMEDY = "pip install 'penstock[kernels]'"


def _core() -> Any:
    problem: Exception | None = None
    for module in ("cuda.core", "cuda.core.experimental"):  # the latter until its release 0.5
        try:
            core = importlib.import_module(module)
            if all(hasattr(core, needed) for needed in ("Program", "Linker", "ObjectCode")):
                return core
        except ImportError as met:
            problem = problem or met
    raise Error(f"compile a kernel for a GPU: cuda.core is missing: {_REMEDY}") from problem


def _checked_call(what: str, call: Any) -> Any:
    """What NVIDIA's libraries raise where they are missing, as one sentence that names the wheel."""
    try:
        return call()
    except Exception as problem:
        text = str(problem)
        missing = (
            type(problem).__name__ in ("DynamicLibNotFoundError", "NotFoundError")
            or "not found" in text.lower()
        )
        if missing:
            wheel = "nvidia-nvjitlink" if "nvjitlink" in text.lower() else "nvidia-cuda-nvrtc"
            raise Error(
                f"{what}: {text.splitlines()[0]}: install the wheel {wheel}, or {_REMEDY}"
            ) from problem
        raise


def compile_for_gpu(source: Source, signature: Signature, architecture: int) -> tuple[bytes, str]:
    """The image of a kernel for sm_`architecture`, from the cache where it is there, and its name in it.

    Raises:
        ValueError: The source does not compile, or does not link; with the compiler's lines.
        penstock.Error: A library that compiles is missing, or the build has nothing for this GPU.
    """
    text = source.text_for("cuda") + '#line 1 "penstock_checks"\n' + signature.checks()
    image = cached(
        source.digest("cuda", f"sm_{architecture}", sources_digest(True), signature.name), ".cubin"
    )
    name_file = image.with_suffix(".name")
    try:
        return image.read_bytes(), name_file.read_text()
    except OSError:
        pass
    code, name = _compile(source, text, signature, architecture)
    store(name_file, name.encode())
    store(image, code)
    return code, name


def _compile(source: Source, text: str, signature: Signature, architecture: int) -> tuple[bytes, str]:
    core = _core()
    parts = device_library()
    arch = f"sm_{architecture}"
    what = f"compile the kernel {source.name}"
    defines = [tuple(name.split("=", 1)) if "=" in name else name for name in source.defines]
    options = core.ProgramOptions(
        name=source.file,
        arch=arch,
        std="c++17",
        relocatable_device_code=True,
        link_time_optimization=True,
        device_as_default_execution_space=True,
        include_path=[*include_dirs(), *source.include_dirs],
        define_macro=defines or None,
    )
    program = _checked_call(what, lambda: core.Program(text, "c++", options))
    try:
        compiled = program.compile("ltoir", name_expressions=(signature.name,))
    except Exception as problem:
        log = str(problem)
        if "NVRTC_ERROR" not in log:
            raise
        raise ValueError(source.refusal(log.partition("compilation log:")[2] or log)) from None
    name = compiled.symbol_mapping.get(signature.name, signature.name)
    name = name.decode() if isinstance(name, bytes) else str(name)
    linked = [compiled, *(core.ObjectCode.from_fatbin(code) for _, code in parts)]
    try:
        linker = _checked_call(
            what,
            lambda: core.Linker(*linked, options=core.LinkerOptions(arch=arch, link_time_optimization=True)),
        )
        code = linker.link("cubin").code
    except Error:
        raise
    except Exception as problem:
        raise ValueError(_link_refusal(source, str(problem), architecture)) from None
    return bytes(code), name


def _link_refusal(source: Source, log: str, architecture: int) -> str:
    undefined = re.search(r"[Uu]ndefined reference to '([^']+)'", log)
    if undefined is not None and undefined.group(1).startswith("penstock_"):
        return (
            f"compile the kernel {source.name}: this build has no device library for sm_{architecture}: "
            f"build Penstock with -DCMAKE_CUDA_ARCHITECTURES={architecture}"
        )
    return source.refusal(log)

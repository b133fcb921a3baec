"""Kernels for a GPU: NVRTC compiles the source to LTO-IR, and nvJitLink links it with the device library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernels import toolkit
from penstock.kernels.locations import cached, device_library, include_dirs, sources_digest, store

if TYPE_CHECKING:
    from penstock.kernels.signature import Signature
    from penstock.kernels.source import Source


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
    core = toolkit.core()
    parts = device_library()
    arch = f"sm_{architecture}"
    what = f"compile the kernel {source.name}"
    if (problem := toolkit.architecture_problem(what, architecture)) is not None:
        raise problem
    toolkit.nvrtc()
    toolkit.nvjitlink()  # without it cuda.core takes the driver's linker, which links no LTO-IR
    options = core.ProgramOptions(
        name=source.file,
        arch=arch,
        std="c++17",
        relocatable_device_code=True,
        link_time_optimization=True,
        device_as_default_execution_space=True,
        include_path=[*include_dirs(), *source.include_dirs],
    )
    program = core.Program(text, "c++", options)
    try:
        compiled = program.compile("ltoir", name_expressions=(signature.name,))
    except Exception as met:
        log = str(met)
        if "NVRTC_ERROR" not in log:
            raise
        refused = ValueError(source.refusal(log.partition("compilation log:")[2] or log))
        raise toolkit.compile_problem(what, log, architecture) or refused from None
    name = compiled.symbol_mapping.get(signature.name, signature.name)
    name = name.decode() if isinstance(name, bytes) else str(name)
    linked = [compiled, *(core.ObjectCode.from_fatbin(code) for _, code in parts)]
    try:
        linker = core.Linker(*linked, options=core.LinkerOptions(arch=arch, link_time_optimization=True))
        code = linker.link("cubin").code
    except Exception as met:
        raise toolkit.link_problem(what, str(met)) or ValueError(source.refusal(str(met))) from None
    return bytes(code), name

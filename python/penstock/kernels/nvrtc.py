"""Kernels for a GPU: NVRTC compiles the source to LTO-IR, and nvJitLink links it with the device library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.kernels import toolkit
from penstock.kernels.locations import (
    cached,
    device_library,
    include_dirs,
    keep,
    kept,
    query_include_dirs,
    query_library,
    sources_digest,
)

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
    kept_code, kept_name = kept(image), kept(name_file)
    if kept_code is not None and kept_name is not None:
        return kept_code, kept_name.decode()
    code, name = _compile(source, text, signature, architecture)
    keep(name_file, name.encode())
    keep(image, code)
    return code, name


def _compile(source: Source, text: str, signature: Signature, architecture: int) -> tuple[bytes, str]:
    parts = [code for _, code in device_library(with_files=source.mentions("files"))]
    what = f"compile the kernel {source.name}"
    if (problem := toolkit.architecture_problem(what, architecture)) is not None:
        raise problem
    options = {
        "name": source.file,
        "std": "c++17",
        "include_path": [*include_dirs(), *source.include_dirs],
    }
    try:
        compiled = _compiled(what, text, architecture, "ltoir", (signature.name,), options)
        name = compiled.symbol_mapping.get(signature.name, signature.name)
        name = name.decode() if isinstance(name, bytes) else str(name)
        return _linked(what, [compiled], parts, architecture), name
    except _NotCompiledError as problem:
        raise ValueError(source.refusal(str(problem))) from None


def compile_query(text: str, resident: bool, architecture: int) -> bytes:
    """The image of a pass of a query (libs/columns/compiled_source.hpp).

    It is machine code before it meets the device library, which it needs for columns behind a cache alone:
    with parts of that which are machine code, the linker optimizes LTO-IR for a minute, and inlines less.
    Products and sums are rounded one by one, as the interpreter's are.

    Raises:
        ValueError: It does not compile, or does not link.
        penstock.Error: A library that compiles is missing.
    """
    what = "compile a query"
    options = {
        "name": "query.cu",
        "std": "c++20",
        "include_path": query_include_dirs(),
        "device_int128": True,
        "fma": False,
    }
    parts = [] if resident else [*query_library()]
    try:
        compiled = _compiled(what, text, architecture, "cubin", ("penstock_query",), options)
        return _linked(what, [compiled], parts, architecture, lto=not resident)
    except _NotCompiledError as problem:
        raise ValueError(f"{what}: {problem}") from None


class _NotCompiledError(Exception):
    """With the log of NVRTC or nvJitLink."""


def _compiled(
    what: str, text: str, architecture: int, form: str, names: tuple[str, ...], options: dict[str, Any]
) -> Any:
    core = toolkit.core()
    toolkit.nvrtc()
    made = core.ProgramOptions(
        arch=f"sm_{architecture}",
        relocatable_device_code=True,
        link_time_optimization=True if form == "ltoir" else None,
        device_as_default_execution_space=True,
        **options,
    )
    program = core.Program(text, "c++", made)
    try:
        return program.compile(form, name_expressions=names)
    except Exception as met:
        log = str(met)
        if "NVRTC_ERROR" not in log:
            raise
        refused = _NotCompiledError(log.partition("compilation log:")[2] or log)
        raise toolkit.compile_problem(what, log, architecture) or refused from None


def _linked(what: str, made: list[Any], parts: list[bytes], architecture: int, lto: bool = True) -> bytes:
    core = toolkit.core()
    toolkit.nvjitlink()  # without it cuda.core takes the driver's linker, which links no LTO-IR
    options = core.LinkerOptions(arch=f"sm_{architecture}", link_time_optimization=lto or None)
    whole = [*made, *(core.ObjectCode.from_fatbin(code) for code in parts)]
    try:
        return bytes(core.Linker(*whole, options=options).link("cubin").code)
    except Exception as met:
        raise toolkit.link_problem(what, str(met)) or _NotCompiledError(str(met)) from None

"""Where headers, the device library and compiled kernels lie."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
import threading
from pathlib import Path

from penstock.errors import Error
from penstock.kernels.llvm_ir import as_llvm_ir

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[1]
_OF_QUERIES, _OF_FILES = "column_calls.", "file_calls."
_DIGEST_BYTES = hashlib.sha256().digest_size
QUERY_LAYERS = ("array", "core", "executor", "group")
"""Of include/penstock, what compiled queries include (cmake/penstock_python.cmake installs it)."""


def include_dirs() -> list[str]:
    """Folders for a compiler's -I, so that `#include <penstock/kernels/kernel.hpp>` works.

    Raises:
        penstock.Error: The headers are not there.
    """
    for folder in (_PACKAGE / "include", _CHECKOUT / "include"):
        if (folder / "penstock" / "kernels" / "kernel.hpp").is_file():
            return [str(folder)]
    raise Error(
        f"compile a kernel: {_PACKAGE / 'include'} has no headers: reinstall Penstock with pip install ."
    )


def query_include_dirs() -> list[str]:
    """Folders for the headers of compiled queries; first what NVRTC finds in place of the C++ library's.

    Raises:
        penstock.Error: The headers are not there.
    """
    for folder, headers in ((_PACKAGE / "include", _PACKAGE / "include"), (_CHECKOUT, _CHECKOUT / "include")):
        if (folder / "libs" / "columns" / "zone_bodies.hpp").is_file():
            return [str(folder / "libs" / "columns" / "nvrtc"), str(folder), str(headers)]
    raise Error(
        f"compile a query: {_PACKAGE / 'include'} has no headers: reinstall Penstock with pip install ."
    )


@functools.cache
def query_sources_digest(resident: bool) -> str:
    """Of all that the image of a query depends on beside its source."""
    _, folder, headers = (Path(path) for path in query_include_dirs())
    digest = hashlib.sha256()
    files = [*(folder / "libs" / "columns").rglob("*")]
    files += [path for name in QUERY_LAYERS for path in (headers / "penstock" / name).glob("*.hpp")]
    for path in sorted(path for path in files if path.is_file() and path.suffix in ("", ".hpp")):
        digest.update(path.read_bytes())
    for part in () if resident else query_library():
        digest.update(part)
    return digest.hexdigest()


@functools.cache
def device_library(with_files: bool = True) -> tuple[tuple[str, bytes], ...]:
    """What kernels are linked with on a GPU: (form, fatbin), form `lto` or `sm`, reads first.

    Args:
        with_files: Also what only sources need that read files (penstock::files), be it in another kernel.

    Raises:
        penstock.Error: This build has none.
    """
    left_out = _OF_QUERIES if with_files else (_OF_QUERIES, _OF_FILES)
    files = [file for file in _device_files("*.fatbin") if not file.name.startswith(left_out)]
    parts = [(file.suffixes[0].removeprefix("."), file.read_bytes()) for file in files]
    return tuple(sorted(parts, key=lambda part: part[0] != "lto"))


@functools.cache
def device_architectures() -> tuple[int, ...]:
    """That the device library of this build is for, as 90."""
    return tuple(sorted(_by_architecture("ltoir")))


@functools.cache
def device_release() -> tuple[int, int]:
    """Of the CUDA that this build's device library was compiled with."""
    with _device_files("*.ptx")[0].open() as ptx:
        named = re.search(r"^// Cuda compilation tools, release (\d+)\.(\d+)", ptx.read(1000), re.MULTILINE)
    assert named is not None
    return int(named.group(1)), int(named.group(2))


@functools.cache
def query_library() -> tuple[bytes, ...]:
    """What queries are linked with that read columns behind a cache.

    Raises:
        penstock.Error: This build has none.
    """
    files = _device_files("*.fatbin")
    return tuple(f.read_bytes() for f in files if f.name.startswith(_OF_QUERIES) or ".sm." in f.name)


def lto_ir(architecture: int | str) -> bytes:
    """The reads of arrays as one LTO-IR, for linkers that take nothing else.

    `penstock_read_4` and its like, which `array<const T>` calls, and `penstock_load_f32` and its like, with
    all that they call. A kernel linked with it takes the registers of its misses, up to 128 of a thread, and
    linking it takes half a minute; `device_library` has compiled them with a cap: link with that where the
    linker takes fatbins.

    Args:
        architecture: Of the GPU, as 90 or "sm_90".

    Returns:
        Of the newest architecture of this build that such a GPU takes.

    Raises:
        ValueError: It is no architecture.
        penstock.Error: This build has none that such a GPU takes.
    """
    return _for_architecture("penstock.kernels.lto_ir", architecture, "ltoir").read_bytes()


def triton_library(architecture: int | str) -> str:
    """Path of the reads of arrays as LLVM IR, for `extern_libs` of a kernel of Triton's.

    `penstock_load_f32(array, index)` and its like (`i8` to `u64`, `f32`, `f64`), for `extern_elementwise`:
    `array` is `array.device_ptr`, both are int64, and every index is one that the array has. Nothing but
    Triton's `maxnreg` caps the registers of a kernel that calls them.

    Args:
        architecture: Of the GPU, as 90 or "sm_90".

    Returns:
        A file in the cache of compiled kernels, or a temporary one where that cannot be written.

    Raises:
        ValueError: It is no architecture.
        penstock.Error: This build has none that such a GPU takes.
    """
    ptx = _for_architecture("penstock.kernels.triton_library", architecture, "ptx").read_text()
    code = as_llvm_ir(ptx).encode()
    path = cached(f"triton-{hashlib.sha256(code).hexdigest()}", ".ll")
    if _has(path, code) or store(path, code):
        return str(path)
    with tempfile.NamedTemporaryFile(prefix="penstock-", suffix=".ll", delete=False) as file:
        file.write(code)
    return file.name


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _for_architecture(what: str, architecture: int | str, suffix: str) -> Path:
    """Of the newest architecture of this build that a GPU of this one takes."""
    named = re.fullmatch(r"(?:sm_|compute_)?(\d{2,3})[af]?", str(architecture))
    if named is None:
        raise ValueError(f"{what}: {architecture!r} is no architecture: give one as 90 or 'sm_90'")
    found = _by_architecture(suffix)
    usable = [one for one in found if one <= int(named.group(1))]
    if not usable:
        raise Error(
            f"{what}: this build has sm_{', sm_'.join(map(str, sorted(found)))}, and none for "
            f"sm_{named.group(1)}: build Penstock with -DCMAKE_CUDA_ARCHITECTURES={named.group(1)}"
        )
    return found[max(usable)]


def _by_architecture(suffix: str) -> dict[int, Path]:
    return {
        int(numbered.group(1)): file
        for file in _device_files(f"*.{suffix}")
        if (numbered := re.search(r"\.sm_(\d+)\.", file.name)) is not None
    }


def host_calls() -> int:
    """Address of what `array<T>` calls in C++ for the CPU that `penstock.kernel` has not compiled.

    A torch extension gives it to `penstock::kernels::use_calls` before it reads an array
    (docs/tasks/PYTHON_KERNELS.md). It is compiled with the headers of this version of Penstock.
    """
    from penstock.native import load_native

    return int(load_native().host_calls())


def _device_files(pattern: str) -> list[Path]:
    for folder in (_PACKAGE / "device", _CHECKOUT / "build-cuda" / "device"):
        if files := sorted(folder.glob(pattern)):
            return files
    raise Error(
        "compile a kernel for a GPU: this build has no device library: build Penstock with PENSTOCK_CUDA=ON"
    )


@functools.cache
def sources_digest(gpu: bool) -> str:
    """Of all that a compiled kernel depends on beside its own source."""
    digest = hashlib.sha256()
    folder = Path(include_dirs()[0]) / "penstock" / "kernels"
    for header in sorted(folder.glob("*.hpp")):
        digest.update(header.read_bytes())
    if gpu:
        for _, part in device_library():
            digest.update(part)
    return digest.hexdigest()


def cache_folder() -> Path:
    """$PENSTOCK_CACHE/kernels if that is set, else ~/.cache/penstock/kernels, or below $XDG_CACHE_HOME."""
    if given := os.environ.get("PENSTOCK_CACHE"):
        return Path(given) / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "kernels"


def cached(key: str, suffix: str) -> Path:
    return cache_folder() / f"{key}{suffix}"


def keep(path: Path, content: bytes) -> bool:
    """For `kept`, which finds damage. False where the folder cannot be written."""
    return store(path, content + hashlib.sha256(content).digest())


def kept(path: Path) -> bytes | None:
    """What `keep` stored there, if it is whole: to load a library that was cut short ends the process."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    content, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def store(path: Path, content: bytes) -> bool:
    """Whole or not at all, whatever other processes do. False where the folder cannot be written."""
    own = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        own.write_bytes(content)
        own.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            own.unlink()
        return False
    return True

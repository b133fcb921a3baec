"""Kernels for the CPU executor: the same source through the host's C++ compiler."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import Error
from penstock.kernels.locations import cached, include_dirs, keep, kept, sources_digest
from penstock.kernels.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.kernels.signature import Signature
    from penstock.kernels.source import Source

_Loaded = TypeVar("_Loaded")

_FLAGS = [
    "-std=c++20",
    "-O3",
    "-march=native",
    "-fPIC",
    "-shared",
    "-fwrapv",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-fno-exceptions",  # as on a GPU: one that left a thread would end the process
    "-Wl,-z,defs",  # a word that is defined nowhere is the source's mistake, and not the loader's
    "-w",
]

# Of the compiler's log: a line of a source, or the linker's; and what is no matter of a source.
_OF_SOURCE = r"^[^\s:][^:\n]*:\d+:(\d+:)? (fatal )?error: |undefined (reference|symbol)|relocation .* against"
_OF_DISK = r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied"
# Lines that may quote the source: its own, and diagnostics, but for those of the compiler's own files.
_QUOTING = r"\s|[^\s:][^:]*:\d+:(?!.*fatal error: error (writing|closing))"

_UNDEFINED = r"undefined (?:reference to|symbol:) [`'‘]?([^'’\n]+)"
_DECLARED_TWICE = r"(?:conflicting declaration|redefinition of|redeclaration of) ['‘]([^'’\n]+)"

# What the compiler names in its log, and what to do.
_GPU_ALONE = [
    (r"__half|__nv_bfloat16|[‘']half2?[’']", "__half and __nv_bfloat16 are a GPU's: use float for the CPU"),
    (
        r"\b(cuda\w*|cooperative_groups|mma|cub|thrust)[\w/]*\.(h|hpp|cuh)\b",
        "the headers of CUDA are a GPU's: leave them out",
    ),
    (
        r"error: expected (primary-)?expression before [‘']<[’'] token",
        "a kernel launches no other on the CPU: call a __device__ function",
    ),
    (r"invalid '?asm'?|in asm|inline asm", "PTX is a GPU's: write it in C++ for the CPU"),
    (
        r"exception handling disabled|'-fno-exceptions'|exceptions disabled",
        "a kernel throws and catches nothing: report errors through an array",
    ),
    (r"cuda(Texture|Surface)Object_t", "textures are a GPU's: take an array or a pointer"),
]

# Names of its own, for macros of the source may have any other.
_ENTRY = """
#line 1 "penstock_entry"
{checks}namespace {{
void penstock_bind(penstock::kernels::host_calls const* penstock_calls) {{
  penstock::kernels::the_calls = penstock_calls;
}}
void penstock_enter(penstock::kernels::host_thread const* penstock_place) {{
  penstock::kernels::the_thread = penstock_place;
}}
void penstock_run(void** penstock_parameters) {{
  penstock::kernels::call_kernel(&{name}, penstock_parameters);
}}
bool penstock_waits() {{ return penstock::kernels::has_barriers; }}
}}
extern "C" __attribute__((visibility("default"))) penstock::kernels::host_entry const penstock_entry;
penstock::kernels::host_entry const penstock_entry{{penstock::kernels::entry_version, {spins},
    penstock_waits, penstock_bind, penstock_enter, penstock_run,
    penstock::kernels::sizes_of(&{name})}};
"""


_SPINS = re.compile(r"\bvolatile\b|\batomic(_ref)?\s*<|\b__(atomic|sync)_\w+")
"""Words of sources whose threads may wait for each other's stores."""


def compiler() -> list[str]:
    """$CXX, else c++, g++ or clang++: the words of its command.

    Raises:
        penstock.Error: There is none.
    """
    given = os.environ.get("CXX", "").strip()
    for name in [given] if given else ["c++", "g++", "clang++"]:
        try:
            words = shlex.split(name)
        except ValueError as problem:
            raise Error(
                f"compile a kernel for the CPU: CXX={given}: {problem}: set it to a command"
            ) from None
        if shutil.which(words[0]) is not None:
            return words
    tried = given or "c++, g++ and clang++"
    raise Error(f"compile a kernel for the CPU: there is no {tried}: install a C++20 compiler, or set CXX")


def load_for_host(source: Source, signature: Signature, load: Callable[[str], _Loaded]) -> _Loaded:
    """What `load` makes of the shared library of a kernel: the one that is kept, where it can be loaded, or
    else a new one.

    Raises:
        ValueError: The source does not compile; with the compiler's sentence and the source's lines.
        penstock.Error: There is no compiler, or it cannot run.
    """
    with_compiler = compiler()
    spins = "true" if _SPINS.search(source.text) else "false"
    text = source.text_for("host") + _ENTRY.format(
        name=signature.name, checks=signature.checks(), spins=spins
    )
    key = source.digest(
        "host", *with_compiler, *_FLAGS, sources_digest(False), _machine(), signature.name, _ENTRY
    )
    library = cached(key, ".so")
    if kept(library) is not None:
        with contextlib.suppress(Error):  # it was linked with another C library
            return load(str(library))
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-kernel-") as folder:
            own = Path(folder) / library.name
            _compile(with_compiler, text, own, source)
            return load(str(library if keep(library, own.read_bytes()) else own))
    except Error:
        raise
    except OSError as problem:  # of the folder
        raise Error(
            f"compile the kernel {source.name}: {problem.filename or tempfile.gettempdir()}: "
            f"{problem.strerror}: free space there, or set TMPDIR"
        ) from problem


def _machine() -> str:
    """What -march=native depends on: a cache may be on a disk that several machines share."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features")))


def _word_of_gpus(log: str, source: Source) -> str:
    """Empty: it is none. Of a template's argument the compiler names the line alone."""
    if _is_of_dynamic_shared(log, source):
        return "extern __shared__ is a GPU's: write penstock::dynamic_shared<T>()"
    errors = "\n".join(line for line in log.splitlines() if "error:" in line)
    lines = source.text.split("\n")
    for found in re.finditer(r":(\d+):\d+: error: .*(type name|template argument)", errors):
        errors += "\n" + "".join(lines[int(found.group(1)) - 1 :][:1])
    return next((sentence for pattern, sentence in _GPU_ALONE if re.search(pattern, errors)), "")


def _is_of_dynamic_shared(log: str, source: Source) -> bool:
    text = plain_text(source.text, source.names())
    named = " ".join(re.findall(_UNDEFINED, log) + re.findall(_DECLARED_TWICE, log))
    declared = r"\b(extern\b[^;{{}}]*\b__shared__|__shared__\b[^;{{}}]*\bextern)\b[^;{{}}]*\b{}\s*\["
    return any(re.search(declared.format(word), text) for word in set(re.findall(r"\w+", named)))


def _of_disk(log: str) -> str:
    """The line of a disk that refuses; empty: there is none."""
    lines = (line.strip() for line in log.splitlines() if not re.match(_QUOTING, line))
    return next((line for line in lines if re.search(_OF_DISK, line)), "")


def _compile(with_compiler: list[str], text: str, library: Path, source: Source) -> None:
    command = [*with_compiler, *_FLAGS, *(f"-I{where}" for where in include_dirs())]
    command += [f"-I{where}" for where in source.include_dirs]
    command += ["-x", "c++", "-", "-o", str(library)]
    try:
        in_english = {**os.environ, "LC_ALL": "C"}
        run = subprocess.run(command, input=text.encode(), capture_output=True, check=False, env=in_english)
    except OSError as problem:
        raise Error(
            f"compile the kernel {source.name}: {command[0]}: {problem.strerror}: install a C++20 compiler, "
            "or set CXX"
        ) from problem
    log = run.stderr.decode(errors="replace")
    full = _of_disk(log)
    if run.returncode != 0 and re.search(_OF_SOURCE, log, re.MULTILINE) and not full:
        raise ValueError(source.refusal(log, _word_of_gpus(log, source) or _missing_word(log)))
    if run.returncode != 0 or not library.is_file():
        why = full or next(filter(None, map(str.strip, log.splitlines())), "it made no library")
        remedy = f"free space in {library.parents[1]}, or set TMPDIR" if full else ""
        raise Error(
            f"compile the kernel {source.name}: {shlex.join(with_compiler)}: {why}: "
            f"{remedy or 'set CXX to a compiler of C++20'}"
        )


def _missing_word(log: str) -> str:
    """Empty: it is declared and defined."""
    found = re.search(_UNDEFINED, log)
    return (
        "" if found is None else f"{found.group(1)} is declared and defined nowhere: define it in the source"
    )

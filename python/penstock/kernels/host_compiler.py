"""Kernels for the CPU executor: the same source through the host's C++ compiler."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import Error
from penstock.kernels.locations import cached, include_dirs, sources_digest

if TYPE_CHECKING:
    from penstock.kernels.signature import Signature
    from penstock.kernels.source import Source

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
    "-w",
]

# What the compiler names in its log, and what to do.
_GPU_ALONE = [
    (
        r"conflicting specifiers|specifier conflicts|cannot combine",
        "extern __shared__ is a GPU's: write penstock::dynamic_shared<T>()",
    ),
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
penstock::kernels::host_entry const penstock_entry{{penstock::kernels::entry_version,
    penstock_waits, penstock_bind, penstock_enter, penstock_run,
    penstock::kernels::sizes_of(&{name})}};
"""


def compiler() -> str:
    """$CXX, else c++, g++ or clang++.

    Raises:
        penstock.Error: There is none.
    """
    given = os.environ.get("CXX")
    for name in [given] if given else ["c++", "g++", "clang++"]:
        if shutil.which(shlex.split(name)[-1]) is not None:
            return name
    tried = given or "c++, g++ and clang++"
    raise Error(f"compile a kernel for the CPU: there is no {tried}: install a C++20 compiler, or set CXX")


def compile_for_host(source: Source, signature: Signature) -> Path:
    """The shared library of a kernel, from the cache where it is there.

    Raises:
        ValueError: The source does not compile; with the compiler's sentence and the source's lines.
        penstock.Error: There is no compiler, or it cannot run.
    """
    with_compiler = compiler()
    text = source.text_for("host") + _ENTRY.format(name=signature.name, checks=signature.checks())
    key = source.digest(
        "host", with_compiler, *_FLAGS, sources_digest(False), _machine(), signature.name, _ENTRY
    )
    library = cached(key, ".so")
    if not library.is_file():
        library = _compile(with_compiler, text, library, source)
    return library


def _machine() -> str:
    """What -march=native depends on: a cache may be on a disk that several machines share."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features")))


def _word_of_gpus(log: str, source: Source) -> str:
    """Empty: it is none. Of a template's argument the compiler names the line alone."""
    errors = "\n".join(line for line in log.splitlines() if "error:" in line)
    lines = source.text.split("\n")
    for found in re.finditer(r":(\d+):\d+: error: .*(type name|template argument)", errors):
        errors += "\n" + "".join(lines[int(found.group(1)) - 1 :][:1])
    return next((sentence for pattern, sentence in _GPU_ALONE if re.search(pattern, errors)), "")


def _compile(with_compiler: str, text: str, library: Path, source: Source) -> Path:
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        folder = library.parent
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="penstock-kernel-"))
    made = folder / f".{library.name}.{os.getpid()}.{threading.get_ident()}"
    command = [*shlex.split(with_compiler), *_FLAGS, *(f"-I{where}" for where in include_dirs())]
    command += [f"-I{where}" for where in source.include_dirs]
    command += ["-x", "c++", "-", "-o", str(made)]
    try:
        run = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    except OSError as problem:
        raise Error(
            f"compile the kernel {source.name}: {command[0]}: {problem.strerror}: install a C++20 compiler, "
            "or set CXX"
        ) from problem
    if run.returncode != 0:
        made.unlink(missing_ok=True)
        log = run.stderr.decode(errors="replace")
        raise ValueError(source.refusal(log, _word_of_gpus(log, source)))
    final = folder / library.name
    made.replace(final)
    return final

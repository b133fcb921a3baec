"""Kernels for the CPU executor: the same source through the host's C++ compiler."""

from __future__ import annotations

import os
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
    "-w",
]

_ENTRY = """
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#line 1 "penstock_entry"
#include <penstock/kernels/host_entry.hpp>
{checks}namespace {{
template <class... Of>
constexpr penstock::kernels::parameter_sizes penstock_sizes(void (*)(Of...)) {{
  return {{sizeof...(Of), {{sizeof(std::remove_cv_t<std::remove_reference_t<Of>>)...}}}};
}}
template <class... Of, unsigned long... K>
void penstock_call(void (*kernel)(Of...), void** parameters, std::integer_sequence<unsigned long, K...>) {{
  kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<Of>>*>(parameters[K])...);
}}
template <class... Of>
void penstock_call(void (*kernel)(Of...), void** parameters) {{
  penstock_call(kernel, parameters, std::make_integer_sequence<unsigned long, sizeof...(Of)>());
}}
void penstock_enter(penstock::kernels::host_thread const* place) {{ penstock::kernels::the_thread = place; }}
void penstock_run(void** parameters) {{ penstock_call(&{name}, parameters); }}
bool penstock_waits() {{ return penstock::kernels::has_barriers; }}
void penstock_bind(penstock::kernels::host_calls const* calls) {{ penstock::kernels::the_calls = calls; }}
}}
extern "C" __attribute__((visibility("default"))) penstock::kernels::host_entry const penstock_entry;
penstock::kernels::host_entry const penstock_entry{{penstock::kernels::entry_version,
    penstock_waits, penstock_bind, penstock_enter, penstock_run,
    penstock_sizes(&{name})}};
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


def _compile(with_compiler: str, text: str, library: Path, source: Source) -> Path:
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        folder = library.parent
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="penstock-kernel-"))
    made = folder / f".{library.name}.{os.getpid()}.{threading.get_ident()}"
    command = [*shlex.split(with_compiler), *_FLAGS, *(f"-I{where}" for where in include_dirs())]
    command += [f"-I{where}" for where in source.include_dirs]
    command += [f"-D{name}" for name in source.defines]
    command += [*source.options, "-x", "c++", "-", "-o", str(made)]
    try:
        run = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    except OSError as problem:
        raise Error(
            f"compile the kernel {source.name}: {command[0]}: {problem.strerror}: install a C++20 compiler, "
            "or set CXX"
        ) from problem
    if run.returncode != 0:
        made.unlink(missing_ok=True)
        raise ValueError(source.refusal(run.stderr))
    final = folder / library.name
    made.replace(final)
    return final

"""Where kernels come from: files, the cache of compiled ones, other processes, other GPUs."""

from __future__ import annotations

import ctypes
import os
import pickle
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import penstock
import pytest
from kernels_here import READ
from penstock.kernels import host_compiler, locations, nvrtc
from penstock.kernels.signature import find_kernel
from penstock.kernels.source import Source
from places import DEVICES

pytestmark = pytest.mark.usefixtures("kernel_cache")

GPU = "cuda" in DEVICES


def test_a_file_of_source(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text('#include "part.h"\n__global__ void f(int* n) { *n = PART; }\n')
    (tmp_path / "part.h").write_text("#define PART 42\n")
    number = np.zeros(1, np.int32)
    penstock.kernel(tmp_path / "mine.cu", device="cpu", include_dirs=[tmp_path])(number, threads=1)
    assert number[0] == 42
    (tmp_path / "part.h").write_text("#define PART 43\n")
    penstock.kernel(tmp_path / "mine.cu", device="cpu", include_dirs=[tmp_path])(number, threads=1)
    assert number[0] == 43
    with pytest.raises(FileNotFoundError, match=r"no\.cu: No such file"):
        penstock.kernel(tmp_path / "no.cu")


@pytest.mark.parametrize("name", ["mine.cu", 'with "quotes".cu', "back\\.cu", "two\nlines.cu", "größe.cu"])
def test_a_file_includes_what_lies_beside_it(tmp_path: Path, device: str, name: str) -> None:
    source = '#include "part.h"\n__global__ void f(penstock::array<int> n) { n[0] = PART; }\n'
    (tmp_path / name).write_text(source)
    (tmp_path / "part.h").write_text("#define PART 42\n")
    number = np.zeros(1, np.int32)
    array = penstock.from_tensor(number, "host", device=device)
    penstock.kernel(tmp_path / name, device=device)(array, threads=1).wait()
    assert number[0] == 42


def test_a_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_bytes("__global__ void f() {} // größe".encode("latin-1"))
    with pytest.raises(ValueError, match=r"compile the kernel in .*mine\.cu: its byte 28 is no UTF-8: save"):
        penstock.kernel(tmp_path / "mine.cu")


def test_compiled_kernels_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    source = "__global__ void f(int* n) { *n += 1; }"
    number = np.zeros(1, np.int32)
    penstock.kernel(source, device="cpu")(number, threads=1)
    (library,) = (tmp_path / "cache" / "kernels").glob("*.so")
    stamp = library.stat().st_mtime_ns
    penstock.kernel(source, device="cpu")(number, threads=1)
    assert library.stat().st_mtime_ns == stamp
    monkeypatch.setenv("PENSTOCK_CACHE", "/proc/none")
    penstock.kernel(source + "//", device="cpu")(number, threads=1)
    assert number[0] == 3


@pytest.mark.parametrize("left", [0, 0.3, 0.5, 0.99])
def test_a_kept_kernel_that_is_damaged_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: float
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    source = "__global__ void f(int* n) { *n += 1; }"
    penstock.kernel(source, device="cpu")
    (library,) = (tmp_path / "cache" / "kernels").iterdir()
    whole = library.read_bytes()
    library.unlink()  # it is loaded still: what is written there would be that
    library.write_bytes(whole[: int(left * len(whole))])
    program = f"""
import numpy as np, penstock
number = np.zeros(1, np.int32)
penstock.kernel({source!r}, device="cpu")(number, threads=1)
assert number[0] == 1
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert library.read_bytes() == whole


def test_a_kernel_runs_where_its_place_in_the_cache_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    source = "__global__ void f(int* n) { *n += 1; }"
    penstock.kernel(source, device="cpu")
    (library,) = (tmp_path / "cache" / "kernels").iterdir()
    library.unlink()
    library.mkdir()
    number = np.zeros(1, np.int32)
    penstock.kernel(source, device="cpu")(number, threads=1)
    assert number[0] == 1
    assert list(library.parent.iterdir()) == [library]
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("g++ -DPENSTOCK_TRIED=1", ""),
        ("   ", ""),
        ("g++ 'x", "CXX=g\\+\\+ 'x: No closing quotation: set it to a command"),
        ("true", "compile the kernel f: true: it made no library: set CXX to a compiler of C\\+\\+20"),
        ("false", "compile the kernel f: false: it made no library: set CXX"),
        ("cat", "compile the kernel f: cat: cat: invalid option .*: set CXX"),
        ("g++ --no-such-option", "g\\+\\+ --no-such-option: g\\+\\+: error: unrecog.*: set CXX"),
        (
            "sh -c 'echo kernel.s: No space left on device >&2; exit 1'",
            "kernel.s: No space left on device: free space in .*, or set TMPDIR",
        ),
        (
            "sh -c 'echo \"f:1: fatal error: error writing to k.s: No space left on device\" >&2; exit 1'",
            "error writing to k.s: No space left on device: free space in .*, or set TMPDIR",
        ),
    ],
)
def test_what_is_wrong_with_a_compiler_is_no_mistake_of_the_source(
    monkeypatch: pytest.MonkeyPatch, command: str, sentence: str
) -> None:
    monkeypatch.setenv("CXX", command)
    source = f"__global__ void f(int* n) {{ *n = 3; /* {command} */ }}"
    if sentence:
        with pytest.raises(penstock.Error, match=sentence):
            penstock.kernel(source, device="cpu")
        return
    number = np.zeros(1, np.int32)
    penstock.kernel(source, device="cpu")(number, threads=1)
    assert number[0] == 3


def test_a_compiler_speaks_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    german = 'echo "f:1:1: $(test "$LC_ALL" = C && echo error || echo Fehler): x" >&2; exit 1'
    monkeypatch.setenv("CXX", shlex.join(["sh", "-c", german]))
    with pytest.raises(ValueError, match="compile the kernel f: f:1:1: error: x: correct its source"):
        penstock.kernel("__global__ void f(int* n) {}", device="cpu")


def test_a_word_of_disks_in_a_source_is_no_full_disk(tmp_path: Path) -> None:
    source = '__global__ void f(int* n) {\n  static_assert(sizeof(n) == 3, "Permission denied");\n}\n'
    (tmp_path / "mine.cu").write_text(source)  # of a file the compiler shows the lines, too
    for given in (source, tmp_path / "mine.cu"):
        with pytest.raises(
            ValueError, match=r"static assertion failed: Permission denied: correct its source"
        ):
            penstock.kernel(given, device="cpu")


@pytest.mark.parametrize(
    ("declared", "used", "word"),
    [
        ("__device__ int elsewhere(int);", "elsewhere(3)", r"elsewhere\(int\)"),
        ("extern __device__ int elsewhere;", "elsewhere", "elsewhere"),
        ("struct s { s(); int x; };", "s().x", r"s::s\(\)"),
    ],
)
def test_what_is_defined_nowhere_is_named(declared: str, used: str, word: str) -> None:
    with pytest.raises(ValueError, match=f"compile the kernel f: {word} is declared and defined nowhere: "):
        penstock.kernel(f"{declared}\n__global__ void f(int* n) {{ *n = {used}; }}", device="cpu")


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        ("a[0] += threadIdx.x;", False),
        ("a.fetch_add(0, isnan(1.5) + __popc(7));", False),
        ("int n = 0; for (int k = 0; k < 3; ++k) n += a[k]; a[0] = n;", False),
        ("__syncthreads();", True),
        ("a[0] = __shfl_sync(0xffffffffu, 3, 0);", True),
        ("a[0] = __any_sync(0xffffffffu, threadIdx.x == 3);", True),
        ("a[0] = __syncthreads_count(1);", True),
        ("a[0] = __any_sync(0xffffffffu, a[1]) + __syncthreads_count(a[2]);", True),
        ("a[0] = __match_any_sync(0xffffffffu, 3);", True),
    ],
)
def test_threads_are_switched_where_they_wait_for_each_other(body: str, waits: bool) -> None:
    text = f"__global__ void f(penstock::array<int> a) {{ {body} }}"
    library = host_compiler.load_for_host(
        Source(text, "f", "kernel.cu"), find_kernel(text, None), ctypes.CDLL
    )
    entry = (ctypes.c_void_p * 2).in_dll(library, "penstock_entry")  # host_entry.hpp
    assert ctypes.CFUNCTYPE(ctypes.c_bool)(entry[1] or 0)() == waits


def test_a_forked_process_has_kernels_of_its_own(tmp_path: Path) -> None:
    program = """
import os, sys, numpy as np, penstock
array = penstock.from_tensor(np.arange(5, dtype=np.int32), "host", device="cpu")
source = "__global__ void f(penstock::array<const int> a, int* n) { *n = a[4]; }"
kernel = penstock.kernel(source, device="cpu")
number = np.zeros(1, np.int32)
kernel(array, number, threads=1)
child = os.fork()
if child == 0:
    number[0] = 0
    kernel(array, number, threads=1)
    os._exit(0 if number[0] == 4 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


@pytest.mark.skipif(GPU, reason="the tests on a GPU compile for it")
def test_a_kernel_compiles_for_a_gpu_that_is_elsewhere() -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    try:
        locations.device_library()
    except penstock.Error:
        pytest.skip("this build has no device library")
    source = Source(READ, "copy_it", "kernel.cu", defines=("TYPE=float",))
    image, name = nvrtc.compile_for_gpu(source, find_kernel(READ, "copy_it", source.names()), 90)
    assert image[:4] == b"\x7fELF"
    assert name == "copy_it"


def test_a_kernel_is_linked_beside_one_that_reads_files(tmp_path: Path) -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    try:
        locations.device_library()
    except penstock.Error:
        pytest.skip("this build has no device library")
    reads = '__global__ void reads(penstock::files fs, char* to) { fs.pread(fs.open("a"), to, 16, 0); }'
    (tmp_path / "reads.hpp").write_text(reads)
    adds = 'extern "C" __global__ void adds(penstock::array<const int> a, int* out) { *out = a[3]; }'
    for text in (f"{reads}\n{adds}", f'#include "reads.hpp"\n{adds}', adds):
        source = Source(text, "adds", "kernel.cu", include_dirs=(str(tmp_path),))
        image, _ = nvrtc.compile_for_gpu(source, find_kernel(text, "adds"), 90)
        assert image[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void f(penstock::files fs);", True),
        ("void f(int profiles);", False),
        ('#include "own.hpp"', True),
        ("#include WHATEVER", True),
    ],
)
def test_a_source_knows_what_it_mentions(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / "own.hpp").write_text("using penstock::files;")
    assert Source(text, "f", "kernel.cu", include_dirs=(str(tmp_path),)).mentions("files") is expected


def test_headers_are_where_they_are_said_to_be() -> None:
    (folder,) = penstock.include_dirs()
    assert (Path(folder) / "penstock" / "kernels" / "kernel.hpp").is_file()
    assert host_compiler.compiler()


def test_a_kernel_is_pickled_by_its_source() -> None:
    kernel = penstock.kernel("__global__ void f(TYPE* x) { *x += 1; }", device="cpu", defines={"TYPE": "int"})
    number = np.zeros(1, np.int32)
    pickle.loads(pickle.dumps(kernel))(number, threads=1)
    assert number[0] == 1


def test_templates_stand_beside_a_kernel() -> None:
    source = """template <class T> __global__ void g(T* x) { *x = 2; }
    __global__ void f(int* x) { *x = 1; }"""
    number = np.zeros(1, np.int32)
    penstock.kernel(source, "f", device="cpu")(number, threads=1)
    assert number[0] == 1
    with pytest.raises(ValueError, match="g is a template"):
        penstock.kernel(source, "g", device="cpu")
    with pytest.raises(ValueError, match=r"of a file give pathlib\.Path"):
        penstock.kernel("mine.cu")


def test_kernels_of_one_process_have_their_own_variables(tmp_path: Path) -> None:
    source = """
    inline int table[2] = {VALUE, VALUE};
    template <class T> __device__ T* part() { __shared__ T s[SIZE]; return s; }
    extern "C" __global__ void read(int* out) {
      part<int>()[SIZE - 1] = table[1];
      *out = part<int>()[SIZE - 1];
    }
    """
    number = np.zeros(1, np.int32)
    for value, size in ((11, 1), (22, 4096), (33, 2)):
        kernel = penstock.kernel(source, device="cpu", defines={"VALUE": value, "SIZE": size})
        kernel(number, threads=1)
        assert number[0] == value


def test_headers_of_the_current_folder_are_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    number = np.zeros(1, np.int32)
    for value in (3, 4):
        (tmp_path / "inner.h").write_text(f"#define VALUE {value}\n")
        (tmp_path / "outer.h").write_text('#include "inner.h"\n')
        for name in ("outer.h", str(tmp_path / "outer.h")):
            source = f'#include "{name}"\n__global__ void f(int* n) {{ *n = VALUE; }}'
            penstock.kernel(source, device="cpu")(number, threads=1)
            assert number[0] == value

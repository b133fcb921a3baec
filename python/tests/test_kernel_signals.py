"""Kernels on the CPU that end the process: what is printed before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import penstock
import pytest

pytestmark = pytest.mark.usefixtures("kernel_cache")

DEEP = "__device__ int deep(volatile int* x) { volatile int y[64]; y[0] = *x + 1; return deep(y) + y[0]; }"


def run(source: str, before: str = "") -> subprocess.CompletedProcess[str]:
    program = f"""
import numpy as np, penstock
{before}
kernel = penstock.kernel({source!r}, device="cpu")
kernel(np.zeros(64, np.int32), None, threads=64)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("barrier", ["", "__syncthreads();"])
@pytest.mark.parametrize(
    ("body", "number", "meaning"),
    [
        ("p[0] = 3;", signal.SIGSEGV, "used memory that it does not have"),
        ("x[1] = 3 / x[0];", signal.SIGFPE, "divided an integer by zero"),
        ("int n = 0; x[1] = deep(&n);", signal.SIGSEGV, "endless recursion"),
        ("__trap();", signal.SIGILL, "__trap"),
    ],
)
def test_a_kernel_that_ends_the_process_is_named(
    body: str, number: signal.Signals, meaning: str, barrier: str
) -> None:
    ended = run(f"{DEEP} __global__ void mine(int* x, int* p) {{ {barrier} {body} }}")
    assert ended.returncode == -number
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"penstock: run the kernel mine: {number.name}: ")
    assert meaning in line
    assert line.endswith(": correct its source")


@pytest.mark.parametrize("when", ["before", "after"])
def test_handlers_of_others_are_called_too(when: str) -> None:
    enable = "import faulthandler; faulthandler.enable()"
    first = (
        enable if when == "before" else f"penstock.kernel('__global__ void f() {{}}', device='cpu')\n{enable}"
    )
    ended = run("__global__ void mine(int* x, int* p) { *p = 3; }", first)
    assert ended.returncode == -signal.SIGSEGV
    assert ended.stderr.count("penstock: run the kernel mine: SIGSEGV") == 1
    assert "Fatal Python error: Segmentation fault" in ended.stderr


def test_a_signal_of_no_kernel_names_none() -> None:
    ended = run("__global__ void mine(int* x, int* p) {}", "").stderr
    assert not ended
    program = "import os, penstock, signal; penstock.kernel('__global__ void f() {}', device='cpu')(); "
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    other = subprocess.run(
        [sys.executable, "-c", program + "os.kill(os.getpid(), signal.SIGSEGV)"],
        env=environment,
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert other.returncode == -signal.SIGSEGV
    assert not other.stderr

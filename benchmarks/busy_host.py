"""Processes that keep the cores of this machine busy beside what is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOAD = """
import os, sys, time
parent, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
print(flush=True)
while time.monotonic() < end and os.getppid() == parent:
    sum(k * k for k in range(100_000))
"""


@contextmanager
def busy_host(processes: int | None = None, seconds: float = 600) -> Iterator[None]:
    """Processes, as many as there are cores unless given, which compute until the block ends, and no longer
    than `seconds` or than this process lives."""
    command = [sys.executable, "-c", LOAD, str(os.getpid()), str(seconds)]
    count = len(os.sched_getaffinity(0)) if processes is None else processes
    loads: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            loads.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        for load in loads:
            if load.stdout is None or not load.stdout.readline():
                raise SystemExit(f"busy host: a load ended with {load.wait()} before it began")
        yield
        if any(load.poll() is not None for load in loads):
            raise SystemExit(f"busy host: a load ended before the measurement: it has {seconds} s")
    finally:
        for load in loads:
            load.kill()
            load.communicate()

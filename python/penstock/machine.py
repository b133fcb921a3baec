"""What the doctor looks at: files under a root, the CUDA driver, a few system calls. Tests replace them."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CUDA_ERROR_NO_DEVICE = 100
ATTRIBUTE_MULTIPROCESSORS = 16
ATTRIBUTE_CAPABILITY_MAJOR = 75
ATTRIBUTE_CAPABILITY_MINOR = 76
ATTRIBUTE_HOST_NUMA_NODE = 134
IO_URING_SETUP = 425  # the same number on every architecture


@dataclass(frozen=True)
class Gpu:
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    multiprocessors: int = 0
    numa_node: int = -1
    """Of the host memory nearest to it; -1 where the system has one node only, or the driver does not say."""


@dataclass(frozen=True)
class Driver:
    """The CUDA driver's answers. `peers`: pairs of GPUs of which the first reaches the second's memory."""

    version: str
    gpus: tuple[Gpu, ...] = ()
    peers: frozenset[tuple[int, int]] = frozenset()


class DriverMissing(Exception):  # noqa: N818
    """There is no CUDA driver, or it refuses to start; the text says which."""


class _Cuda:
    """libcuda without a toolkit."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise DriverMissing("libcuda.so.1 is not installed") from None

    def integer(self, function: str, *arguments: object) -> int:
        value = ctypes.c_int()
        self.check(function, ctypes.byref(value), *arguments)
        return value.value

    def check(self, function: str, *arguments: object) -> None:
        code = getattr(self.library, function)(*arguments)
        if code != 0:
            raise DriverMissing(f"{function} fails with CUDA error {code}")

    def gpu(self, number: int) -> Gpu:
        device = ctypes.c_int(self.integer("cuDeviceGet", number))
        name = ctypes.create_string_buffer(256)
        self.check("cuDeviceGetName", name, len(name), device)
        memory = ctypes.c_size_t()
        self.check("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        major = self.integer("cuDeviceGetAttribute", ATTRIBUTE_CAPABILITY_MAJOR, device)
        minor = self.integer("cuDeviceGetAttribute", ATTRIBUTE_CAPABILITY_MINOR, device)
        units = self.integer("cuDeviceGetAttribute", ATTRIBUTE_MULTIPROCESSORS, device)
        return Gpu(
            name.value.decode(errors="replace"), (major, minor), memory.value, units, self.node(device)
        )

    def node(self, device: ctypes.c_int) -> int:
        try:
            return self.integer("cuDeviceGetAttribute", ATTRIBUTE_HOST_NUMA_NODE, device)
        except DriverMissing:  # older than CUDA 12.3, which brought the attribute
            return -1


def read_driver() -> Driver:
    """Asks the CUDA driver. Raises DriverMissing."""
    cuda = _Cuda()
    number = cuda.integer("cuDriverGetVersion")
    version = f"{number // 1000}.{number % 1000 // 10}"
    code = cuda.library.cuInit(0)
    if code == CUDA_ERROR_NO_DEVICE:
        return Driver(version)
    if code != 0:
        raise DriverMissing(f"cuInit fails with CUDA error {code}")
    count = cuda.integer("cuDeviceGetCount")
    gpus = tuple(cuda.gpu(k) for k in range(count))
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    return Driver(
        version, gpus, frozenset(p for p in pairs if cuda.integer("cuDeviceCanAccessPeer", p[0], p[1]))
    )


def probe_io_uring() -> tuple[bool, str]:
    """Whether the kernel gives this process a ring; where not, why."""
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(ctypes.c_long(IO_URING_SETUP), ctypes.c_uint(1), parameters)
    if descriptor < 0:
        return False, os.strerror(ctypes.get_errno())
    os.close(descriptor)
    return True, ""


def free_bytes(folder: Path) -> int:
    """Free space where `folder` is, or would be made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    statistics = os.statvfs(folder)
    return statistics.f_bavail * statistics.f_frsize


def default_cache_dir() -> Path:
    """As penstock.graph.default_cache_dir, for a doctor that has to work without the compiled part."""
    if chosen := os.environ.get("PENSTOCK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "graphs"


def native_cuda_version() -> str | None:
    from penstock import _native

    return _native.cuda_version


def native_io_uring() -> tuple[bool, str]:
    """What the compiled part says, or the kernel alone where there is no compiled part."""
    try:
        from penstock import _native
    except ImportError:
        return probe_io_uring()
    return _native.io_uring_usable()


def native_nvme_drives(root: Path) -> list[dict[str, Any]]:
    """The NVMe drives, as the compiled module lists them. Raises ImportError where there is none."""
    from penstock import _native

    return list(_native.nvme_list(str(root / "sys"), str(root / "proc")))


def native_gpu_path(address: str) -> tuple[str, str]:
    """How a GPU's threads would drive a drive, and why not better.

    Opens the drive, which resets it, and lets it go. Raises penstock.Error where it cannot be opened.
    """
    from penstock.native import load_native

    tier, reason = load_native().nvme_gpu_path(address)
    return tier, reason


@dataclass(frozen=True)
class Machine:
    root: Path = Path("/")
    driver: Callable[[], Driver] = read_driver
    built_cuda: Callable[[], str | None] = native_cuda_version
    io_uring: Callable[[], tuple[bool, str]] = native_io_uring
    nvme_drives: Callable[[Path], list[dict[str, Any]]] = native_nvme_drives
    gpu_path: Callable[[str], tuple[str, str]] = native_gpu_path
    free: Callable[[Path], int] = free_bytes
    page_bytes: int = field(default_factory=lambda: os.sysconf("SC_PAGE_SIZE"))
    architecture: str = field(default_factory=platform.machine)
    cache_dir: Path = field(default_factory=default_cache_dir)

    def path(self, absolute: str) -> Path:
        return self.root / absolute.lstrip("/")

    def text(self, absolute: str) -> str | None:
        """A file's text; None where it is missing or may not be read."""
        try:
            return self.path(absolute).read_text(errors="replace")
        except OSError:
            return None

    def listing(self, absolute: str) -> list[str]:
        """Names in a folder, sorted; none where it is missing or may not be read."""
        try:
            return sorted(p.name for p in self.path(absolute).iterdir())
        except OSError:
            return []

"""The compiled part."""

from collections.abc import Callable
from typing import Any, TypedDict

class _BfsResult(TypedDict):
    source: int
    reached: int
    levels: int
    edges_traversed: int
    seconds: float
    teps: float
    verified: bool | None
    violation: str
    executor: str
    device: str
    engine: str
    hits: int
    misses: int
    joins: int
    fills: int
    prefetches: int
    evictions: int
    retries: int
    errors: int
    bytes_asked: int
    bytes_moved: int
    amplification: float
    frames: int
    line_bytes: int
    cache_bytes: int
    metadata_bytes: int
    directory: str
    directory_bytes_per_tib: int
    edge_bytes: int
    offset_bytes: int
    vertex_bytes: int
    load_seconds: float
    verify_seconds: float
    level_sizes: list[int]
    level_seconds: list[float]
    peak_rss_bytes: int
    file_rss_bytes: int

class _Topic(TypedDict):
    name: str
    what: str
    options: dict[str, str]

class _ReduceResult(TypedDict):
    dtype: str
    shape: list[int]
    # None where the means of columns were asked for, which are None else.
    sum: int | float | None
    means: list[float] | None
    measurements: list[dict[str, Any]]

class _VectoraddResult(TypedDict):
    dtype: str
    shape: list[int]
    measurements: list[dict[str, Any]]

class _NvmeCopied(TypedDict):
    blocks: int
    bytes: int
    commands: int
    seconds: float

version: str

# The CUDA version it was built with, as "13.0"; None for a build without CUDA.
cuda_version: str | None

# Whether it works here; where not, why.
def io_uring_usable() -> tuple[bool, str]: ...
def cuda_usable() -> tuple[bool, str]: ...
def bfs(
    path: str,
    source: int,
    cache_bytes: int,
    line_bytes: int,
    directory: str,
    executor: str,
    engine: str,
    direct: bool,
    threads: int,
    queue_depth: int,
    verify: bool,
    # What is being done, how much of it is done, and how much there is.
    progress: Callable[[str, int, int], None] | None,
) -> _BfsResult: ...
def bench_topics() -> list[_Topic]: ...

# Each measurement as its JSON line has it; `found` is told each as it comes.
def bench_run(
    topic: str,
    options: dict[str, str],
    progress: Callable[[str, int, int], None] | None = None,
    found: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]: ...

# `options`: all that penstock.regular.run.run_options gives.
def regular_reduce(
    path: str,
    columns: bool,
    options: dict[str, Any],
    progress: Callable[[str, int, int], None] | None = None,
) -> _ReduceResult: ...
def regular_vectoradd(
    a: str,
    b: str,
    out: str,
    replace: bool,
    options: dict[str, Any],
    progress: Callable[[str, int, int], None] | None = None,
) -> _VectoraddResult: ...

# What pci_device.hpp has of a device.
# `sysfs`, `proc`: where the kernel's are; the other functions open a drive through the real ones.
def nvme_list(sysfs: str, proc: str) -> list[dict[str, Any]]: ...
def nvme_find(address: str, sysfs: str, proc: str) -> dict[str, Any]: ...
def nvme_bind(address: str, force: bool, sysfs: str, proc: str) -> None: ...
def nvme_unbind(address: str, sysfs: str) -> None: ...
def nvme_identify(address: str) -> dict[str, Any]: ...
def nvme_smart(address: str) -> dict[str, Any]: ...
def nvme_read(
    address: str,
    namespace_id: int,
    start: int,
    blocks: int,
    path: str,
    replace: bool,
    progress: Callable[[str, int, int], None] | None = None,
) -> _NvmeCopied: ...

# `blocks` 0: as many as the file has.
def nvme_write(
    address: str,
    namespace_id: int,
    start: int,
    blocks: int,
    path: str,
    progress: Callable[[str, int, int], None] | None = None,
) -> _NvmeCopied: ...

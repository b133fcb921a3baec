"""The compiled part."""

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

_Progress = Callable[[str, int, int], None]

class _GraphOptions(TypedDict):
    path: str
    placement: str
    strategy: str
    cache_bytes: int
    line_bytes: int
    directory: str
    executor: str
    engine: str
    ablate: str
    direct: bool
    threads: int
    queues: int
    queue_depth: int
    media: str
    drives: int
    media_place: str
    server_sms: int
    trials: int
    sources: str
    level_traffic: bool
    verify: bool

class _GraphCost(TypedDict):
    edges_traversed: int
    seconds: float
    teps: float
    trial_seconds: list[float]
    trial_sources: list[int]
    verified: bool | None
    violation: str
    executor: str
    device: str
    engine: str
    placement: str
    strategy: str
    media: str
    drives: int
    media_bytes_per_second: float
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
    sector_bytes: int
    frames: int
    line_bytes: int
    cache_bytes: int
    metadata_bytes: int
    directory: str
    directory_bytes_per_tib: int
    edge_bytes: int
    offset_bytes: int
    vertex_bytes: int
    tile_bytes: int
    tile_seconds: float
    load_seconds: float
    verify_seconds: float
    level_sizes: list[int]
    level_seconds: list[float]
    level_strategies: list[str]
    level_bytes: list[int]
    peak_rss_bytes: int
    file_rss_bytes: int

class _BfsResult(_GraphCost):
    source: int
    reached: int
    levels: int
    parents: NDArray[np.int64]

class _ComponentsResult(_GraphCost):
    components: int
    largest: int
    labels: NDArray[np.int64]

class _PagerankResult(_GraphCost):
    iterations: int
    change: float
    converged: bool
    ranks: NDArray[np.floating[Any]]

class _SsspResult(_GraphCost):
    source: int
    reached: int
    delta: float
    farthest: float
    distances: NDArray[Any]
    predecessors: NDArray[np.int64] | None
    round_vertices: NDArray[np.int64] | None

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

class _VolumeFile(TypedDict):
    name: str
    entry: str
    of_folder: bool
    # As "f4", and None where it is no array.
    dtype: str | None
    shape: list[int] | None
    bytes: int
    address: int

class _VolumeFacts(TypedDict):
    id: str
    version: int
    layout: str
    stripe_bytes: int | None
    chunk_bytes: int
    generation: int
    bytes: int
    free_bytes: int
    member_bytes: int
    members: list[str]
    files: list[_VolumeFile]

class _VolumeMoved(TypedDict):
    files: int
    bytes: int
    seconds: float

class _VolumeProbed(TypedDict):
    name: str
    bytes: int
    holds: str
    blank: bool

class _VolumeFinding(TypedDict):
    # None: of the volume's own.
    file: str | None
    member: int
    name: str
    offset: int
    bytes: int
    what: str

class _VolumeVerdict(TypedDict):
    bytes: int
    problems: int
    findings: list[_VolumeFinding]
    seconds: float

version: str

# The CUDA version it was built with, as "13.0"; None for a build without CUDA.
cuda_version: str | None

# Whether it works here; where not, why.
def io_uring_usable() -> tuple[bool, str]: ...
def cuda_usable() -> tuple[bool, str]: ...

class SmShare:
    @staticmethod
    def of(gpu: int, sms: int) -> SmShare: ...
    @property
    def sms(self) -> int: ...
    @property
    def rest(self) -> int: ...
    def open_stream(self, priority: int) -> int: ...
    def open_stream_in_rest(self, priority: int) -> int: ...

# progress: what is being done, how much of it is done, how much there is. A negative source: one is drawn.
def bfs(options: _GraphOptions, source: int, progress: _Progress | None) -> _BfsResult: ...
def components(options: _GraphOptions, progress: _Progress | None) -> _ComponentsResult: ...
def pagerank(
    options: _GraphOptions,
    damping: float,
    tolerance: float,
    iterations: int,
    dangling: bool,
    wide: bool,
    progress: _Progress | None,
) -> _PagerankResult: ...
def sssp(
    options: _GraphOptions,
    source: int,
    delta: float,
    parents: bool,
    round_vertices: bool,
    progress: _Progress | None,
) -> _SsspResult: ...
def bench_topics() -> list[_Topic]: ...

# Each measurement as its JSON line has it; `found` is called with each as it comes.
def bench_run(
    topic: str,
    options: dict[str, str],
    progress: Callable[[str, int, int], None] | None = None,
    found: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]: ...

# Of each file: path, bytes, whether it is binary, an errno, and lines.
_SearchedFile = tuple[str, int, bool, int, list[tuple[int, bytes]]]

class _SearchResult(TypedDict):
    files: list[_SearchedFile]
    folders: int
    bytes: int
    seconds: float
    executor: str
    device: str
    hits: int
    misses: int
    bytes_moved: int
    host_calls: int

def files_search(
    folder: str,
    pattern: bytes,
    ignore_case: bool,
    executor: str,
    cache: int,
    line: int,
    threads: int,
    progress: Callable[[str, int, int], None] | None = None,
    searched: Callable[[list[_SearchedFile]], None] | None = None,
) -> _SearchResult: ...

class FileDescriptor:
    @property
    def range_bytes(self) -> int: ...

# Results begin with an errno, 0 where there is none; paths are bytes.
class MountedFolder:
    def __init__(
        self,
        root: str,
        writable: bool,
        executor: str,
        cache: int,
        line: int,
        threads: int,
        max_files: int,
    ) -> None: ...
    def open(self, path: bytes, flags: int) -> tuple[int, FileDescriptor]: ...
    def close(self, file: FileDescriptor) -> int: ...
    def sync(self, file: FileDescriptor) -> int: ...
    def truncate(self, file: FileDescriptor, size: int) -> int: ...
    def size_of(self, file: FileDescriptor) -> tuple[int, int]: ...
    def read_into(self, file: FileDescriptor, address: int, count: int, offset: int) -> tuple[int, int]: ...
    def write_from(self, file: FileDescriptor, address: int, count: int, offset: int) -> tuple[int, int]: ...
    def stat(self, path: bytes) -> tuple[int, int, int, int]: ...
    def unlink(self, path: bytes) -> int: ...
    def rename(self, source: bytes, target: bytes) -> int: ...
    def list_names(self, path: bytes) -> tuple[int, list[tuple[str, int]]]: ...
    def stage(self, paths: list[bytes]) -> list[tuple[int, int]]: ...
    def flush(self) -> None: ...
    def inspect(self) -> dict[str, Any]: ...
    @property
    def view_address(self) -> int: ...
    @property
    def view_bytes(self) -> int: ...
    @property
    def kernel_address(self) -> int: ...
    @property
    def cuda(self) -> bool: ...
    @property
    def gpu(self) -> int: ...

# Extents are (path, offset, bytes), columns as TableLayout.native has them, programs as assembling.assemble.
# `aggregate` gives [groups * wanted, 3] words, `group` [words, groups] and the slots of its table,
# are; all an account.
class ColumnLookup: ...

class ColumnRows:
    rows: int

class ColumnKeys:
    in_order: bool
    low: int
    again: int | None

class ColumnTable:
    rows: int
    executor: str
    device: str
    def __init__(
        self,
        extents: list[tuple[str, int, int, VolumeFile | None]],
        pieces: list[int],
        columns: list[Any],
        options: dict[str, Any],
    ) -> None: ...
    architecture: int
    def compile_with(self, compiler: Any, least_seconds: float) -> None: ...
    def has_zone_map(self, column: int) -> bool: ...
    def select_kept(self, program: dict[str, Any], registers: list[int]) -> list[ColumnRows]: ...
    def upload(self, values: NDArray[np.uint64], valid: NDArray[np.uint8]) -> ColumnRows: ...
    def place(self, rows: ColumnRows) -> ColumnKeys: ...
    def place_at(self, places: NDArray[np.uint64], count: int) -> ColumnKeys: ...
    def lookup(self, keys: ColumnKeys, rows: ColumnRows) -> ColumnLookup: ...
    def extremes(self, lookup: ColumnLookup) -> tuple[int, int] | None: ...
    def aggregate(
        self, program: dict[str, Any], wanted: list[list[int]], groups: int, key: int | None, line_aware: bool
    ) -> tuple[NDArray[np.uint64], dict[str, Any]]: ...
    def group(
        self,
        program: dict[str, Any],
        wanted: list[list[int]],
        keys: list[int],
        ranges: list[tuple[int, int, bool, int, int]],
        line_aware: bool,
    ) -> tuple[NDArray[np.uint64], int, dict[str, Any]]: ...
    def select(
        self, program: dict[str, Any], registers: list[int]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint8], dict[str, Any]]: ...
    def touched(
        self, program: dict[str, Any], columns: list[int], line_bytes: int
    ) -> list[tuple[int, int, int]]: ...
    def take(
        self, program: dict[str, Any], registers: list[int], rows: NDArray[np.uint64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint8], dict[str, Any]]: ...

# Values are integers or float64; words are packed ones. `column_divisors` returns those that are exact,
# `column_unpack` fills `room`.
class ColumnPacker:
    def __init__(self, bits: int, base: int, divisor: float) -> None: ...
    def append(self, values: NDArray[Any]) -> NDArray[np.uint64]: ...
    def finish(self) -> NDArray[np.uint64]: ...

# Texts from `offsets[k]` to `offsets[k + 1]` get codes; a new one the next. What is not valid is a null among
# `words`, or a row of no text, whose code is 0.
class ColumnTexts:
    def __init__(self) -> None: ...
    def encode(
        self,
        offsets: NDArray[np.int64],
        bytes: NDArray[np.uint8],
        valid: NDArray[np.bool_] | None,
        words: bool,
    ) -> NDArray[np.int64]: ...
    def texts(self) -> list[str]: ...

def column_range(values: NDArray[Any]) -> tuple[Any, Any]: ...
def column_divisors(values: NDArray[np.float64], divisors: list[float]) -> list[float]: ...
def column_unpack(
    words: NDArray[np.uint64], bits: int, base: int, divisor: float, room: NDArray[Any]
) -> None: ...

# Of a query: `ids` [n, nearest], 4294967295 behind the last one, and squared `distances`; of `lsh_build` and
# `facts` the header.
class LshIndex:
    def __init__(
        self,
        folder: str,
        executor: str,
        cache: int,
        line: int,
        threads: int,
        max_candidates: int,
        fallback: int,
    ) -> None: ...
    def query(
        self,
        queries: NDArray[np.float32],
        nearest: int,
        all: bool,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> dict[str, Any]: ...
    def facts(self) -> dict[str, Any]: ...

def lsh_build(
    folder: str, options: dict[str, Any], progress: Callable[[str, int, int], None] | None = None
) -> dict[str, Any]: ...
def lsh_histograms(pixels: NDArray[np.uint8], executor: str, threads: int) -> NDArray[np.float32]: ...
def lsh_synthetic_histograms(
    path: str,
    records: int,
    seed: int,
    threads: int,
    progress: Callable[[str, int, int], None] | None = None,
) -> None: ...
def lsh_synthetic_picture(rows: int, columns: int, seed: int) -> NDArray[np.uint8]: ...
def lsh_find_within(
    folder: str,
    sets: list[str],
    record_bytes: int,
    queries: NDArray[np.float32],
    distance: float,
    executor: str,
    cache: int,
    line: int,
    threads: int,
) -> dict[str, Any]: ...

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
def nvme_gpu_path(address: str) -> tuple[str, str]: ...
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
def nvme_zero(
    address: str,
    namespace_id: int,
    start: int,
    blocks: int,
    progress: Callable[[str, int, int], None] | None = None,
) -> _NvmeCopied: ...
def nvme_discard(
    address: str,
    namespace_id: int,
    start: int,
    blocks: int,
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

class VolumeFile:
    """A file on a volume that is open as long as this is."""

    size: int
    # Changes when something else takes its name.
    identity: tuple[int, int, int]
    members: list[str]
    def read(self, offset: int, bytes: int) -> bytes: ...

# Of each name the files of the entry by their names in its folder, of one file by an empty name. A volume is
# opened once for all.
def volume_open(names: list[str]) -> list[dict[str, VolumeFile]]: ...
def volume_absolute(name: str) -> str: ...

# Members as a user names them. Files that are not there are made, of `file_bytes`, unless that is 0.
def volume_probe(members: list[str]) -> list[_VolumeProbed]: ...
def volume_create(
    members: list[str],
    layout: str,
    stripe_bytes: int,
    file_bytes: int,
    overwrite_unknown: bool,
    overwrite_known: bool,
) -> _VolumeFacts: ...
def volume_facts(members: list[str]) -> _VolumeFacts: ...
def volume_import(
    members: list[str], name: str, path: str, progress: _Progress | None = None
) -> _VolumeMoved: ...
def volume_export(
    members: list[str], name: str, path: str, replace: bool, progress: _Progress | None = None
) -> _VolumeMoved: ...
def volume_remove(members: list[str], name: str) -> None: ...
def volume_verify(members: list[str], progress: _Progress | None = None) -> _VolumeVerdict: ...

class Executor:
    """Where kernels run: shared by the arrays of a process."""

    @staticmethod
    def open(name: str, threads: int) -> Executor: ...
    @property
    def cuda(self) -> bool: ...
    @property
    def device(self) -> str: ...
    @property
    def gpu(self) -> int: ...
    def share_copy(self, bytes: int, processes: int) -> list[int]:
        """Descriptors, the caller's, of this process's parts of a copy that all have together."""
    @property
    def place(self) -> str:
        """Of its memory: all processes of a machine have this name for it."""
    def no_fast_link_to(self, place: str) -> str:
        """Empty, or why kernels reach memory there no faster than the host's."""
    @property
    def free_bytes(self) -> int: ...
    @property
    def stream(self) -> int: ...

class RowBuffer:
    """Memory next to the kernels."""

    def __init__(self, executor: Executor, bytes: int) -> None: ...
    @property
    def address(self) -> int: ...
    def write(self, from_: int, bytes: int) -> None: ...
    def read(self, to: int, bytes: int) -> None: ...

class WatchedMemory:
    """Memory of a caller's, which may map a file that others cut short."""

    def __init__(self, address: int, bytes: int) -> None: ...
    def is_cut(self) -> bool: ...
    def close(self) -> None: ...

class RowCall:
    """A call under way; `wait` gives the lowest position that was out of range."""

    @property
    def done(self) -> bool: ...
    def wait(self) -> int | None: ...
    def order_before(self, stream: int) -> None: ...

class RowsAt:
    """Row numbers by their address, or those of a grid, and what is taken of each row."""

    def __init__(
        self, address: int, count: int, item_bytes: int, stream: int, sms: int, negative_indices: bool
    ) -> None: ...
    @staticmethod
    def parts(
        address: int,
        count: int,
        item_bytes: int,
        stream: int,
        sms: int,
        pitch: int,
        offset: int,
        bytes: int,
    ) -> RowsAt:
        """Row n begins at byte n * pitch; of each, `bytes` bytes from byte `offset` on are taken."""
    @staticmethod
    def grid(
        first: int, loops: list[tuple[int, int]], pitch: int, bytes: int, stream: int, sms: int
    ) -> RowsAt:
        """loops: step and count of at most four, the outermost first; steps and `first` count in `pitch`."""

class RowArray:
    """Rows of one width; addresses are numbers, and what lies there is kept alive by the caller, but for
    `memory`, which has the rows if they are in no file."""

    def __init__(
        self,
        executor: Executor,
        rows: int,
        row_bytes: int,
        path: str,
        offset: int,
        address: int,
        memory: Any,
        options: dict[str, Any],
        progress: _Progress | None,
        stored: VolumeFile | None = None,
    ) -> None: ...
    def gather(self, rows: RowsAt, out: int, order: str) -> RowCall: ...
    def gather_now(
        self,
        address: int,
        count: int,
        item_bytes: int,
        stream: int,
        sms: int,
        out: int,
        order: str,
        negative_indices: bool = True,
    ) -> int | None: ...
    def gather_rows(self, rows: RowsAt, out: int, order: str) -> int | None:
        """As `gather`, and waits: the lowest position out of range."""
    def prefetch(self, rows: RowsAt) -> RowCall: ...
    def scatter(self, rows: RowsAt, values: int) -> RowCall: ...
    def add(self, rows: RowsAt, dtype: str, values: int) -> RowCall: ...
    @staticmethod
    def gather_all(arrays: list[RowArray], rows: list[RowsAt], out: list[int]) -> list[RowCall]: ...
    def adds_in_place(self, dtype: str) -> bool: ...
    def check_replays(self, stream: int) -> int | None: ...
    def keep_rows(
        self, rows: NDArray[np.int64], progress: Callable[[str, int, int], None] | None
    ) -> None: ...
    def share_kept_rows(self, rows: int, processes: int, everywhere: int) -> int:
        """A descriptor, the caller's."""
    def keep_rows_together(
        self,
        rows: NDArray[np.int64],
        parts: list[int],
        own: int,
        everywhere: int,
        progress: Callable[[str, int, int], None] | None,
    ) -> None: ...
    def kept_rows_taken(self, stream: int) -> tuple[int, int]:
        """From the memory of this process, and from that of its peers."""
    def flush(self) -> None: ...
    def check_file(self) -> None: ...
    def move_memory(self, to: int) -> None: ...
    def lend_for_good(self, element_bytes: int, stores: bool, shape: list[int]) -> bytes: ...
    def give_up_writing(self) -> None: ...
    def stats(self) -> dict[str, int]: ...
    @property
    def host_address(self) -> int: ...
    @property
    def storable_address(self) -> int: ...
    @property
    def kernel_address(self) -> int: ...

def npy_header(kind: str, item_bytes: int, shape: list[int]) -> bytes: ...
def dlpack_memory(
    owner: object,
    address: int,
    shape: tuple[int, ...],
    code: int,
    bits: int,
    device: tuple[int, int],
    read_only: bool,
) -> Any: ...
def plan_rows(
    executor: Executor, rows: int, row_bytes: int, path: str, options: dict[str, Any]
) -> dict[str, int]: ...

class KernelArguments:
    def __init__(self) -> None: ...
    def add_bytes(self, value: bytes) -> None: ...
    def add_address(self, value: int) -> None: ...
    def add_array(self, array: RowArray, element_bytes: int, stores: bool, shape: list[int]) -> None: ...

class LaunchEnd:
    @property
    def done(self) -> bool: ...
    def wait(self) -> None: ...

class UserKernel:
    @staticmethod
    def load_cuda(executor: Executor, name: str, cubin: bytes) -> UserKernel: ...
    @staticmethod
    def load_host(executor: Executor, name: str, library: str) -> UserKernel: ...
    def facts(self, block_threads: int, shared_bytes: int) -> dict[str, Any]: ...
    def set_stopped(self, stopped: bool) -> None: ...
    def launch(
        self,
        arguments: KernelArguments,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream: int,
        timeout_ns: int,
        needed: object,
    ) -> tuple[list[RowCall], LaunchEnd | None, bool]: ...

def gpu_architecture(executor: Executor) -> int: ...
def host_calls() -> int: ...

class NeighborSampler:
    def __init__(self, executor: Executor, nodes: list[int], types: list[dict[str, Any]]) -> None: ...
    def sample(
        self, seeds: list[tuple[int, int]], options: dict[str, Any]
    ) -> tuple[list[list[int]], list[list[int]]]: ...
    def take_nodes(self, type: int, nodes: int, trees: int) -> None: ...
    def take_edges(self, type: int, rows: int, columns: int, edges: int) -> None: ...

class NodeScores:
    def __init__(self, executor: Executor, nodes: int, lists: dict[str, Any]) -> None: ...
    def count_out_degrees(self) -> NDArray[np.float64]: ...
    def start(self, weighted: NDArray[np.int64]) -> None: ...
    def step(self, damping: float) -> float: ...
    def values(self) -> NDArray[np.float64]: ...

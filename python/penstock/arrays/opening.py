"""How arrays come into being, and what they will take."""

from __future__ import annotations

import atexit
import errno
import functools
import math
import os
import shutil
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays import foreign
from penstock.arrays.array import Array
from penstock.arrays.borrower import follow_moved
from penstock.arrays.converted import laid, notice
from penstock.arrays.dtypes import DType, dtype_named
from penstock.arrays.foreign import dense, finish_tensor, is_torch
from penstock.arrays.layout import (
    Layout,
    check_layout,
    check_permission,
    check_shape,
    checked_sizes,
    find_layout,
    path_text,
)
from penstock.arrays.memory import BorrowedMemory, takes_stores
from penstock.arrays.messages import naming, shown, shown_path, system_error
from penstock.effects import effects, refuse_without_effect
from penstock.sizes import LIMIT, format_bytes, parse_size, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock import _native
    from penstock.callbacks import Progress

_NAMED = (".safetensors", ".arrow", ".feather")  # what references without `stored` may refer to
PLACEMENTS = ("auto", "hbm", "host", "host-cached", "storage")
_CACHED = ("auto", "host-cached", "storage")
# "auto" may choose a placement that they have an effect in.
_EFFECTS = (
    *effects(
        {"cache": None, "line": 4096, "directory": "auto"},
        lambda given: given["placement"] in _CACHED,
        "placement {placement} has no cache: leave it out",
    ),
    *effects(
        {"direct": False, "engine": "auto", "threads": 0},
        lambda given: given["placement"] in ("auto", "storage"),
        "placement {placement} reads no file by commands: leave it out, or choose storage",
    ),
)
_MOST_CACHE = 1 << 30
_LEAST_CACHE = 16 << 20
_MAX_HEADER = 1 << 16  # of a .npy file, with room to spare
_NO_ROOM = {
    errno.ENOSPC: "make room, or choose another folder",
    errno.EDQUOT: "this user's quota has no room: raise it, or choose another folder",
    errno.EFBIG: "no file may be as large: raise the limit (ulimit -f), or choose another file system",
}


@functools.cache
def _executor_of(process: int, device: str, threads: int) -> _native.Executor:
    from penstock import _native

    return _native.Executor.open(device, threads)


atexit.register(_executor_of.cache_clear)


def executor_for(device: Any, threads: int = 0) -> _native.Executor:
    """The executor that all arrays of a device share in this process. device: auto, cpu, cuda (torch's
    current GPU where torch is) or cuda:1."""
    return _executor_of(os.getpid(), _chosen_device(device_name(device)), threads)


def device_name(given: Any) -> str:
    """Of a name, or a torch.device. TypeError for what is neither."""
    if isinstance(given, str):
        return given
    if type(given).__module__ != "torch" or type(given).__name__ != "device":
        raise TypeError(f"device {given!r}: give auto, cpu, cuda or cuda:1, or a torch.device")
    return "cpu" if given.type == "cpu" else str(given)


def _chosen_device(asked: str) -> str:
    from penstock import _native

    if asked == "auto" and not _native.cuda_usable()[0]:
        return "cpu"
    if asked not in ("auto", "cuda") or not foreign.has_torch():
        return asked
    import torch

    return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else asked


@dataclass(frozen=True)
class Opened:
    """All that it takes to open an array again."""

    path: str | None
    shape: tuple[int, ...]
    dtype: DType
    offset: int
    placement: str
    device: str
    writable: bool
    cache: int
    line: int
    directory: str
    engine: str
    direct: bool
    threads: int
    name: str | None = None  # of the tensor or column, where the file has names
    stored: DType | None = None  # what the header calls the elements; None: there is none
    data: str | None = None  # the file that the bytes are in, where that is another: a shard, a chunk, a copy
    notes: tuple[str, ...] = field(default=(), compare=False)  # what was done to open it: conversions
    memory: BorrowedMemory | None = field(default=None, compare=False)

    @property
    def executor(self) -> _native.Executor:
        return executor_for(self.device)

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def placing(self) -> dict[str, Any]:
        """Options of `open` and `empty` that put another array where this one is."""
        cached = ("cache", "line") if self.placement in _CACHED else ()
        return {name: getattr(self, name) for name in ("placement", "device", *cached)}

    def native_options(self) -> dict[str, Any]:
        names = ("placement", "writable", "cache", "line", "directory", "engine", "direct", "threads")
        return {name: getattr(self, name) for name in names}

    def make(self, executor: _native.Executor, progress: Progress | None = None) -> _native.RowArray:
        from penstock import _native

        borrowed = self.memory
        data = self.data or self.path or ""
        about = (
            nullcontext(progress) if self.path is None else naming("open", self.path, data, progress=progress)
        )
        with about as seen:
            return _native.RowArray(
                executor,
                self.shape[0],
                self.row_bytes,
                data,
                self.offset,
                0 if borrowed is None else borrowed.address,
                None if borrowed is None or self.placement == "hbm" else borrowed.memory,  # which is a copy
                self.native_options(),
                seen,
            )

    def reference(self) -> dict[str, Any]:
        """What finds the array again, of plain types, never its bytes. ValueError for memory."""
        self.check_portable()
        plain = {name: getattr(self, name) for name in _REFERENCE}
        return plain | {"dtype": self.dtype.name, "stored": None if self.stored is None else self.stored.name}

    def reduced(self) -> tuple[Callable[..., Array], tuple[dict[str, Any], str, bool]]:
        """As `__reduce__`. ValueError for memory."""
        return unpickled, (self.reference(), self.device, self.writable)

    def check_portable(self) -> None:
        if self.path is None:
            raise ValueError(
                "an array in memory cannot be pickled by reference: save it to a file and open that"
            )


_REFERENCE = (
    "path", "shape", "offset", "placement", "cache", "line", "directory", "engine", "direct", "threads",
    "name",
)  # fmt: skip


def from_reference(reference: dict[str, Any], *, device: Any, writable: bool) -> Array:
    """The array that `Opened.reference` describes.

    Errors: ValueError for what refers to none, or to a file that holds another array now: its header is read
    again, and its shape, its type and the place of its first byte are what the reference says.
    """
    try:
        dtype, shape = dtype_named(reference["dtype"]), tuple(reference["shape"])
        path, offset, name = reference["path"], reference["offset"], reference.get("name")
        called = reference.get("stored")
        facts = {key: reference[key] for key in _REFERENCE if key != "name"}
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"{reference!r} does not refer to an array: {problem!r}") from None
    stored = _stored_as(path, dtype) if called is None else dtype_named(called)
    found = check_layout(Layout(path, shape, dtype, offset, name, stored))
    facts |= {"shape": shape, "dtype": dtype, "name": name, "stored": stored}
    if writable:
        _check_storable(found)
    facts |= _data_of(found)
    return Array(Opened(device=device_name(device), writable=writable, **facts))


def _stored_as(path: str, dtype: DType) -> DType | None:
    """What a header calls the elements that a reference does not have."""
    if Path(path).suffix.lower() != ".npy":
        return None if Path(path).suffix.lower() not in _NAMED else dtype
    return dtype_named(dtype.numpy)


def _check_storable(found: Layout) -> None:
    """ValueError for a file that may not be stored into, PermissionError for a user who may not."""
    if found.fixed is not None:
        raise ValueError(f"open {shown_path(found.path)}: it cannot be written to: {found.fixed}")
    data = found.data or found.path
    with naming("open", found.path, data):
        check_permission(data, os.W_OK, "write")


def _data_of(found: Layout, progress: Progress | None = None) -> dict[str, Any]:
    """The file that holds the bytes, made if it has to be, and what is to be said of it."""
    data = laid(found, progress).data
    notes = () if found.conversion is None else (notice(found),)
    return {"data": None if data is None else str(Path(data).absolute()), "notes": notes}


def unpickled(reference: dict[str, Any], device: str, writable: bool) -> Array:
    """What pickles of arrays call: its name and its arguments stay."""
    return from_reference(reference, device=device, writable=writable)


@dataclass(frozen=True)
class Plan:
    """What an array will take, in bytes. transit: rings, and buffers that data on their way pass through; for
    a GPU nearly all of it pinned host memory. mapping: page tables of the GPU for what it reads in place, an
    estimate."""

    placement: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    hbm_bytes: int
    host_bytes: int
    storage_bytes: int
    metadata_bytes: int
    transit_bytes: int
    mapping_bytes: int

    def __str__(self) -> str:
        lines = [f"{self.dtype} {self.shape}, placement {self.placement}, on {self.device}"]
        parts = [
            ("in GPU memory", self.hbm_bytes),
            ("in host memory", self.host_bytes),
            ("left on storage", self.storage_bytes),
            ("directory and records", self.metadata_bytes),
            ("rings and buffers", self.transit_bytes),
            ("page tables of the GPU", self.mapping_bytes),
        ]
        return "\n".join(lines + [f"  {what:<24} {format_bytes(count)}" for what, count in parts if count])


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _chosen_placement(asked: str, device: str, nbytes: int, writable: bool, in_file: bool) -> str:
    if not isinstance(asked, str):
        raise TypeError(f"placement {shown(asked)}: choose one of {', '.join(PLACEMENTS)}")
    if asked not in PLACEMENTS:
        raise ValueError(f"placement {shown(asked)!r}: choose one of {', '.join(PLACEMENTS)}")
    if asked != "auto":
        return asked
    executor = executor_for(device)
    if in_file and writable:
        return "storage"
    if executor.cuda and nbytes <= executor.free_bytes // 2:
        return "hbm"
    return "host" if not in_file or nbytes <= _physical_memory() // 2 else "storage"


def _check_types(names: dict[str, Any], flags: dict[str, Any]) -> None:
    """TypeError for arguments that are no text, or neither True nor False."""
    for what, given in names.items():
        if not isinstance(given, str):
            raise TypeError(f"{what} {shown(given)}: give a name, or leave it out")
    for what, given in flags.items():
        if not isinstance(given, (int, np.bool_)):
            raise TypeError(f"{what} {shown(given)}: give True or False")


def _described(
    found: Layout, placement: str, device: Any, cache: int | str | None, line: int | str,
    writable: bool, directory: str, engine: str, direct: bool, threads: int,
) -> Opened:  # fmt: skip
    check_shape(f"open {shown_path(found.path)}", found.shape, found.dtype.itemsize)
    _check_types({"directory": directory, "engine": engine}, {"writable": writable, "direct": direct})
    if writable:
        _check_storable(found)
    count = whole_number(threads)
    if count is None:
        raise TypeError(f"threads {shown(threads)}: give a number from 0, which chooses")
    if not 0 <= count < 1 << 32:
        raise ValueError(f"threads {shown(threads)}: give a number from 0, which chooses")
    device = device_name(device)
    chosen = _chosen_placement(placement, device, found.nbytes, writable, in_file=True)
    line_bytes = parse_size(line, "line")
    given = {"placement": placement, "cache": cache, "line": line_bytes, "directory": directory}
    given |= {"direct": direct, "engine": engine, "threads": count}
    refuse_without_effect(_EFFECTS, given)
    if cache is None:
        cache_bytes = min(_MOST_CACHE, max(_LEAST_CACHE, found.nbytes // 10))
    else:
        cache_bytes = parse_size(cache, "cache")
    return Opened(
        str(Path(found.path).absolute()), found.shape, found.dtype, found.offset, chosen, device,
        bool(writable), cache_bytes, line_bytes, directory, engine, bool(direct), count, found.name,
        found.stored,
    )  # fmt: skip


def open_array(
    path: str | os.PathLike[str],
    *,
    placement: str = "auto",
    device: Any = "auto",
    cache: int | str | None = None,
    line: int | str = 4096,
    writable: bool = False,
    directory: str = "auto",
    engine: str = "auto",
    direct: bool = False,
    threads: int = 0,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    offset: int | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Array:
    """Open an array in a file, in place where its format allows it (docs/ARRAYS.md has the formats).

    Args:
        path: a file, a block device, or the folder of a Zarr store. What it is its first bytes and its ending
            say: .npy, .npz, .safetensors and indexes of several, Arrow, Parquet, HDF5, Zarr; others are raw.
        placement: "hbm" copies it to the GPU; "host" maps the file and reads it in place through the page
            cache, without a copy and without a CPU thread; "host-cached" puts a cache in GPU memory before
            that; "storage" leaves it on the drive behind a cache; "auto" takes the first of hbm, host and
            storage that it fits (half of the free GPU memory, half of the physical memory), storage for
            writable ones.
        device: "auto", "cpu", "cuda" (torch's current GPU) or "cuda:1", or a torch.device.
        cache: bytes, such as "4GiB"; a tenth of the array otherwise, 16 MiB to 1 GiB.
        line: bytes that are moved at once, a power of two from 512 to 65536.
        writable: stores go to the file (storage; on the CPU host, too).
        directory, engine, direct, threads: as for `penstock bfs`.
        dtype: of the elements of a raw file; elsewhere another type of the same size.
        shape, offset: of a raw file: of the array, and its first byte.
        name: of a tensor, column, dataset or array, where the file has several.
        progress: called with what is done, the bytes done and the bytes in all: "convert" while a copy
            is made of an array that no file has in one piece, "copy" every 64 MiB that go to the GPU. What it
            raises, and Ctrl-C, stop the work and leave nothing behind.

    Returns:
        An array of the shape and dtype that the file says; `opened.notes` has what was converted.

    Raises:
        ValueError, TypeError: for bad input; FileNotFoundError, IsADirectoryError and PermissionError as by
            Python's open; penstock.Error (an OSError) for what the machine refuses. Each is one sentence with
            the path, what is wrong and what to do.
    """
    where = path_text(path)
    with naming("open", where, str(Path(where).absolute()), progress=progress) as seen:
        found = find_layout(where, dtype=dtype, shape=shape, offset=offset, name=name)
        opened = _described(
            found, placement, device, cache, line, writable, directory, engine, direct, threads
        )
        return Array(replace(opened, **_data_of(found, seen)), seen)


def plan(
    path: str | os.PathLike[str],
    *,
    placement: str = "auto",
    device: Any = "auto",
    cache: int | str | None = None,
    line: int | str = 4096,
    writable: bool = False,
    directory: str = "auto",
    engine: str = "auto",
    direct: bool = False,
    threads: int = 0,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    offset: int | None = None,
    name: str | None = None,
) -> Plan:
    """Count what `open` with the same arguments will put where, before anything is allocated or converted.

    Args:
        path: and all others, as for `open`.

    Returns:
        The placement and device that `open` would choose, and bytes by where they lie.

    Raises:
        ValueError, TypeError, OSError: those of `open` that can be known without opening.
    """
    from penstock import _native

    where = path_text(path)
    with naming("open", where, str(Path(where).absolute())):
        found = find_layout(where, dtype=dtype, shape=shape, offset=offset, name=name)
        opened = _described(
            found, placement, device, cache, line, writable, directory, engine, direct, threads
        )
        counts = _native.plan_rows(
            opened.executor, opened.shape[0], opened.row_bytes, str(opened.path), opened.native_options()
        )
        return Plan(opened.placement, opened.executor.device, opened.shape, opened.dtype.name, **counts)


def from_tensor(
    tensor: Any,
    placement: str = "host",
    *,
    device: Any = "auto",
    cache: int | str | None = None,
    progress: Progress | None = None,
) -> Array:
    """An array over a tensor or a NumPy array.

    placement: "host" pins or registers its memory in place, and stores go there; "hbm" copies it to the
    GPU; "host-cached" puts a cache before it. progress: as for `open`.

    Errors: ValueError for one that is not contiguous, or has no dimensions.
    """
    device = device_name(device)
    memory: Any = dense(tensor, "from_tensor: it") if is_torch(tensor) else np.asarray(tensor)
    whole = memory.is_contiguous() if is_torch(memory) else memory.flags.c_contiguous
    if not whole:
        raise ValueError("from_tensor: its elements do not follow each other: give tensor.contiguous()")
    if is_torch(memory) and memory.is_cuda and placement not in ("auto", "hbm"):
        raise ValueError(
            f"from_tensor: the tensor is on the GPU already, not in placement {placement}: choose hbm"
        )
    if is_torch(memory) and memory.is_cuda and device in ("auto", "cuda"):
        device = f"cuda:{memory.device.index}"
    shape, dtype = tuple(int(n) for n in memory.shape), dtype_named(memory.dtype)
    check_shape("from_tensor", shape, dtype.itemsize)
    nbytes = math.prod(shape) * dtype.itemsize
    chosen = _chosen_placement(placement, device, nbytes, writable=False, in_file=False)
    refuse_without_effect(_EFFECTS, {"placement": placement, "cache": cache}, "from_tensor")
    writable = chosen == "hbm" or takes_stores(memory)
    cache_bytes = _LEAST_CACHE if cache is None else parse_size(cache, "cache")
    if is_torch(memory) and memory.is_cuda:
        finish_tensor(memory)
    follow_moved()
    return Array(
        Opened(
            None,
            shape,
            dtype,
            0,
            chosen,
            device,
            writable,
            cache_bytes,
            4096,
            "auto",
            "auto",
            False,
            0,
            memory=BorrowedMemory(memory),
        ),
        progress,
    )


def _create(path: str) -> None:
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        raise system_error(
            f"create {shown_path(path)}: it exists: open it as writable, or name a new file", errno.EEXIST
        ) from None


def _write_zeros(path: Path, header: bytes, nbytes: int) -> None:
    """A header, and a hole behind it. penstock.Error where there is no room for them."""
    try:
        with path.open("r+b") as file:
            file.write(header)
            file.truncate(len(header) + nbytes)
    except OSError as problem:
        code = problem.errno or 0
        if code not in _NO_ROOM:
            raise
        free = format_bytes(shutil.disk_usage(path.parent).free)
        raise system_error(
            f"it takes {format_bytes(len(header) + nbytes)}, and its file system has {free} free: "
            f"{_NO_ROOM[code]}",
            code,
        ) from None


def empty(
    path: str | os.PathLike[str],
    shape: Sequence[int] | int,
    dtype: Any,
    *,
    placement: str = "storage",
    device: Any = "auto",
    cache: int | str | None = None,
    line: int | str = 4096,
) -> Array:
    """Make a .npy file of zeros, and open it to write. The file takes space as rows are stored.

    Args:
        path: a name that is free and ends with .npy.
        shape: whole numbers, or one; at least one dimension, and rows of at least one element.
        dtype: a name, NumPy's text for one ("f4"), or a dtype of NumPy or PyTorch.
        placement, device, cache, line: as for `open`.

    Returns:
        The array, writable.

    Raises:
        FileExistsError: for a path that is taken.
        ValueError, TypeError: for a shape without elements, with more than a file can have, or that is none,
            and for arguments that `open` refuses. Nothing is left of a file that could not be opened.
    """
    from penstock import _native

    where = path_text(path, "create")
    what = f"create {shown_path(where)}"
    with naming("create", where, str(Path(where).absolute())):
        element, sizes = dtype_named(dtype), checked_sizes(what, shape)
        if Path(where).suffix != ".npy":
            raise ValueError("its name does not end with .npy: give one that does")
        check_shape(what, sizes, element.itemsize)
        nbytes = math.prod(sizes) * element.itemsize
        if nbytes >= LIMIT - _MAX_HEADER:
            raise ValueError(f"shape {shown(sizes)}: more bytes than a file can have: give less rows")
        header = _native.npy_header(element.npy_kind, element.itemsize, list(sizes))
        how: dict[str, Any] = {"placement": placement, "device": device, "cache": cache, "line": line}
        _create(where)
        try:
            _write_zeros(Path(where), header, nbytes)
            return open_array(where, writable=True, dtype=element, **how)
        except BaseException:
            Path(where).unlink()  # it would be taken for an array of zeros that were stored
            raise

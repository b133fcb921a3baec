"""How arrays come into being: over files, over memory, and of references."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.array import Array, unpickled
from penstock.arrays.borrower import follow_moved
from penstock.arrays.devices import device_name
from penstock.arrays.dtypes import dtype_named
from penstock.arrays.foreign import dense, finish_tensor
from penstock.arrays.layout import check_shape, path_text
from penstock.arrays.memory import BorrowedMemory, takes_stores
from penstock.arrays.messages import naming
from penstock.arrays.placement import EFFECTS, LEAST_CACHE, chosen_placement, data_of, described
from penstock.arrays.references import referred
from penstock.arrays.spec import ArrayOptions, Opened
from penstock.checks import checked_count
from penstock.effects import refuse_without_effect
from penstock.options import show_options
from penstock.sizes import parse_size
from penstock.volume.names import absolute

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock.callbacks import Progress

# unpickled: pickles of arrays name it here.
__all__ = ["from_reference", "from_tensor", "open", "unpickled"]


@show_options(ArrayOptions)
def open(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **options: Unpack[ArrayOptions],
) -> Array:
    """Open an array in a file, in place where its format allows it (docs/ARRAYS.md has the formats).

    Args:
        path: a file, a block device, or the folder of a Zarr store. What it is its first bytes and its ending
            say: .npy, .npz, .safetensors and indexes of several, Arrow, Parquet, HDF5, Zarr; others are raw.
            Or "volume:NAME@MEMBER,MEMBER", a .npy or raw file on a volume (docs/VOLUMES.md): placement
            storage, to read.
        placement: "hbm" copies it to the GPU, with `peers` an equal part to each of theirs; "host" maps the
            file and reads it in place through the page cache, without a copy;
            "host-cached" puts a cache in GPU memory before that; "storage" leaves it on the drive behind a
            cache; "tiered" keeps the rows with the highest scores in GPU memory and leaves the others below;
            "auto" takes the first of hbm, host and storage that it fits (half of the free GPU memory, half of
            the physical memory), storage for writable ones.
        device: "auto", "cpu", "cuda" (torch's current GPU) or "cuda:1", or a torch.device.
        cache: bytes, such as "4GiB"; a tenth of the array otherwise, 16 MiB to 1 GiB.
        line: bytes that are moved at once, a power of two from 512 to 65536; 4096 otherwise.
        writable: stores go to the file (storage; on the CPU host, too).
        directory, engine, direct, threads: as for `penstock bfs`.
        gather_threads: of placement host on a GPU, threads of the CPU that share large gathers of rows of up
            to 512 bytes, which a GPU reads in place more slowly than the link bears; 0: none. Half of the
            cores, up to 8, unless it is given.
        dtype: of the elements of a raw file; elsewhere another type of the same size.
        shape, offset: of a raw file: of the array, and its first byte.
        scores, hot, below: of placement tiered: a number for each row (`penstock.tiering.score`), how much is
            kept in GPU memory, in bytes such as "4GiB" or as a share of the rows such as 0.1, and the
            placement of the others, host unless it is given.
        peers: of the placements tiered and hbm, processes (`penstock.tiering.Peers`) each with a GPU of its
            own, which keep the hot rows or the copy together: every kernel reads what lies in the memory of
            the others over the link between them. All of them open the file alike. Where a link is no faster
            than that to the host the array lies in host memory, and `opened.notes` says so.
        replicated: with peers of placement tiered the share of what each keeps that all of them keep, by the
            scores unless it is given.
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
    with naming("open", where, absolute(where), progress=progress) as seen:
        found, opened = described(where, options)
        return Array(replace(opened, **data_of(found, seen)), seen)


def from_tensor(
    tensor: Any,
    placement: str = "host",
    *,
    device: Any = "auto",
    cache: int | str | None = None,
    writable: bool = True,
    gather_threads: SupportsIndex | None = None,
    progress: Progress | None = None,
) -> Array:
    """An array over a tensor or a NumPy array.

    placement: "host" pins or registers its memory in place, and stores go there; "hbm" copies it to the
    GPU; "host-cached" puts a cache before it. writable: False refuses stores, as memory does that is
    read-only. gather_threads, progress: as for `open`.

    Errors: ValueError for one that is not contiguous, or has no dimensions.
    """
    device = device_name(device)
    if isinstance(tensor, np.ma.MaskedArray):
        raise TypeError("from_tensor: it is a MaskedArray, and an array has no mask: give tensor.filled(...)")
    memory: Any = dense(tensor, "from_tensor: it") if is_torch(tensor) else np.asarray(tensor)
    whole = memory.is_contiguous() if is_torch(memory) else memory.flags.c_contiguous
    if not whole:
        remedy = "tensor.contiguous()" if is_torch(memory) else "numpy.ascontiguousarray(...)"
        raise ValueError(f"from_tensor: its elements do not follow each other: give {remedy}")
    if is_torch(memory) and memory.is_cuda and placement not in ("auto", "hbm"):
        raise ValueError(
            f"from_tensor: the tensor is on the GPU already, not in placement {placement}: choose hbm"
        )
    if is_torch(memory) and memory.is_cuda and device in ("auto", "cuda"):
        device = f"cuda:{memory.device.index}"
    shape, dtype = tuple(int(n) for n in memory.shape), dtype_named(memory.dtype)
    check_shape("from_tensor", shape, dtype.itemsize)
    nbytes = math.prod(shape) * dtype.itemsize
    chosen = chosen_placement(placement, device, nbytes, writable=False, in_file=False)
    given = {"placement": placement, "cache": cache, "gather_threads": gather_threads}
    refuse_without_effect(EFFECTS, given, "from_tensor")
    helpers = None if gather_threads is None else checked_count("gather_threads", gather_threads, 0, 1024)
    takes = writable and (chosen == "hbm" or takes_stores(memory))
    cache_bytes = LEAST_CACHE if cache is None else parse_size(cache, "cache")
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
            takes,
            cache_bytes,
            4096,
            "auto",
            "auto",
            False,
            0,
            helpers,
            memory=BorrowedMemory(memory),
        ),
        progress,
    )


def from_reference(reference: dict[str, Any], *, device: Any, writable: bool) -> Array:
    """The array that `Opened.reference` describes.

    Errors: ValueError for what refers to none, or to a file that holds another array now: its header is read
    again, and its shape, its type and the place of its first byte are what the reference says.
    """
    return Array(referred(reference, device=device, writable=writable))

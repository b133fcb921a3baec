"""What `open` is given, checked, and the placement that "auto" chooses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from penstock.arrays.converted import laid, notice
from penstock.arrays.devices import device_name, executor_for
from penstock.arrays.layout import Layout, check_permission, check_shape
from penstock.arrays.messages import naming, shown, shown_path
from penstock.arrays.spec import CACHED, PLACEMENTS, Opened
from penstock.callbacks import Progress
from penstock.effects import effects, refuse_without_effect
from penstock.sizes import parse_size, whole_number

# "auto" may choose a placement that they have an effect in.
EFFECTS = (
    *effects(
        {"cache": None, "line": 4096, "directory": "auto"},
        lambda given: given["placement"] in CACHED,
        "placement {placement} has no cache: leave it out",
    ),
    *effects(
        {"direct": False, "engine": "auto", "threads": 0},
        lambda given: given["placement"] in ("auto", "storage"),
        "placement {placement} reads no file by commands: leave it out, or choose storage",
    ),
)
_MOST_CACHE = 1 << 30
LEAST_CACHE = 16 << 20


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def chosen_placement(asked: str, device: str, nbytes: int, writable: bool, in_file: bool) -> str:
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


def check_storable(found: Layout) -> None:
    """ValueError for a file that may not be stored into, PermissionError for a user who may not."""
    if found.fixed is not None:
        raise ValueError(f"open {shown_path(found.path)}: it cannot be written to: {found.fixed}")
    data = found.data or found.path
    with naming("open", found.path, data):
        check_permission(data, os.W_OK, "write")


def data_of(found: Layout, progress: Progress | None = None) -> dict[str, Any]:
    """The file that holds the bytes, made if it has to be, and what is to be said of it."""
    data = laid(found, progress).data
    notes = () if found.conversion is None else (notice(found),)
    return {"data": None if data is None else str(Path(data).absolute()), "notes": notes}


def described(
    found: Layout, placement: str, device: Any, cache: int | str | None, line: int | str,
    writable: bool, directory: str, engine: str, direct: bool, threads: int,
) -> Opened:  # fmt: skip
    check_shape(f"open {shown_path(found.path)}", found.shape, found.dtype.itemsize)
    _check_types({"directory": directory, "engine": engine}, {"writable": writable, "direct": direct})
    if writable:
        check_storable(found)
    count = whole_number(threads)
    if count is None:
        raise TypeError(f"threads {shown(threads)}: give a number from 0, which chooses")
    if not 0 <= count < 1 << 32:
        raise ValueError(f"threads {shown(threads)}: give a number from 0, which chooses")
    device = device_name(device)
    chosen = chosen_placement(placement, device, found.nbytes, writable, in_file=True)
    line_bytes = parse_size(line, "line")
    given = {"placement": placement, "cache": cache, "line": line_bytes, "directory": directory}
    given |= {"direct": direct, "engine": engine, "threads": count}
    refuse_without_effect(EFFECTS, given)
    if cache is None:
        cache_bytes = min(_MOST_CACHE, max(LEAST_CACHE, found.nbytes // 10))
    else:
        cache_bytes = parse_size(cache, "cache")
    return Opened(
        str(Path(found.path).absolute()), found.shape, found.dtype, found.offset, chosen, device,
        bool(writable), cache_bytes, line_bytes, directory, engine, bool(direct), count, found.name,
        found.stored,
    )  # fmt: skip

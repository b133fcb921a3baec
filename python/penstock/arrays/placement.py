"""What `open` is given, checked, and the placement that "auto" chooses."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.arrays.converted import laid, notice
from penstock.arrays.devices import device_name, executor_for
from penstock.arrays.layout import Layout, check_permission, check_shape, find_layout
from penstock.arrays.messages import naming, shown, shown_path
from penstock.arrays.peers import Peers
from penstock.arrays.spec import CACHED, PLACEMENTS, ArrayOptions, Opened
from penstock.arrays.tiers import TIERED, Tiers
from penstock.callbacks import Progress
from penstock.effects import effects, refuse_without_effect
from penstock.options import Choice, checked
from penstock.volume.names import absolute, is_volume


def _where(given: Mapping[str, Any]) -> Any:
    """The placement of all rows, or of those that are not kept next to the kernels."""
    return given.get("below") or "host" if given["placement"] == TIERED else given["placement"]


# "auto" may choose a placement that they have an effect in.
EFFECTS = (
    *effects(
        ArrayOptions,
        ("cache", "line", "directory"),
        lambda given: _where(given) in CACHED,
        "placement {placement} has no cache: leave it out",
    ),
    *effects(
        ArrayOptions,
        ("scores", "hot", "below", "replicated"),
        lambda given: given["placement"] == TIERED,
        "placement {placement} keeps no rows by their scores: leave it out, or choose tiered",
    ),
    *effects(
        ArrayOptions,
        ("peers",),
        lambda given: given["placement"] in ("hbm", TIERED),
        "placement {placement} has nothing in the memory of peers: leave it out, or choose tiered or hbm",
    ),
    *effects(
        ArrayOptions,
        ("gather_threads",),
        lambda given: _where(given) in ("auto", "host"),
        "placement {placement} reads no rows in host memory: leave it out, or choose host",
    ),
    *effects(
        ArrayOptions,
        ("direct", "engine", "threads"),
        lambda given: _where(given) in ("auto", "storage"),
        "placement {placement} reads no file by commands: leave it out, or choose storage",
    ),
)
_MOST_CACHE = 1 << 30
LEAST_CACHE = 16 << 20


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def chosen_placement(asked: str, device: str, nbytes: int, writable: bool, in_file: bool) -> str:
    Choice(names=PLACEMENTS).check("placement", asked, str)
    if asked != "auto":
        return asked
    executor = executor_for(device)
    if in_file and writable:
        return "storage"
    if executor.cuda and nbytes <= executor.free_bytes // 2:
        return "hbm"
    return "host" if not in_file or nbytes <= _physical_memory() // 2 else "storage"


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


def tiers_of(found: Layout, options: Mapping[str, Any]) -> Tiers:
    """Errors: ValueError, TypeError for what cannot be, or an array that is to be written to."""
    if options["writable"]:
        raise ValueError("placement tiered keeps copies of rows: leave writable out, or choose storage")
    row_bytes = math.prod(found.shape[1:]) * found.dtype.itemsize
    given = (options[name] for name in ("scores", "hot", "below", "peers", "replicated"))
    return Tiers.of(found.shape[0], row_bytes, *given)


def described(path: str, given: ArrayOptions) -> tuple[Layout, Opened]:
    """The array that lies in a file, and how it is opened with these options. Errors: those of `open`."""
    options = checked(ArrayOptions, given)
    return laid_out(
        find_layout(path, **{name: options[name] for name in ("dtype", "shape", "offset", "name")}), given
    )


def laid_out(found: Layout, given: ArrayOptions) -> tuple[Layout, Opened]:
    """The same of a layout that is known."""
    options = checked(ArrayOptions, given)
    check_shape(f"open {shown_path(found.path)}", found.shape, found.dtype.itemsize)
    writable = options["writable"]
    if writable:
        check_storable(found)
    device = device_name(options["device"])
    refuse_without_effect(EFFECTS, {**options, "line": given.get("line")})
    kept, peers = None, options["peers"]
    if peers is not None and not isinstance(peers, Peers):
        raise TypeError(f"peers {shown(peers)}: give a penstock.tiering.Peers")
    if peers is not None and writable:
        raise ValueError("peers share copies of what is only read: leave writable out, or choose storage")
    if options["placement"] == TIERED:
        tiers = tiers_of(found, options)
        chosen = tiers.below
        if tiers.keeps and (executor_for(device).cuda or chosen == "storage"):
            kept = tiers.keeping()
    else:
        asked = options["placement"]
        if asked == "auto" and is_volume(found.path):
            asked = "storage"
        chosen = chosen_placement(asked, device, found.nbytes, writable, in_file=True)
    cache = options["cache"]
    if cache is None:
        cache = min(_MOST_CACHE, max(LEAST_CACHE, found.nbytes // 10))
    return found, Opened(
        absolute(found.path), found.shape, found.dtype, found.offset, chosen, device,
        writable, cache, options["line"], options["directory"], options["engine"], options["direct"],
        options["threads"], options["gather_threads"], found.name, found.stored, kept=kept,
        peers=peers if chosen == "hbm" else None,
    )  # fmt: skip

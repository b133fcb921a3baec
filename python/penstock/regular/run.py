"""A sum, the means of columns, or a + b, of arrays on storage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from penstock.bench.measurement import Measurement
from penstock.callbacks import Progress
from penstock.checks import MOST
from penstock.native import load_native
from penstock.sizes import parse_size, whole_number

ACCESS = ("tiled", "naive", "line")
DRIVES = ("p5800x", "pm1735", "980pro", "gen5")
MEDIA = ("file", *DRIVES, *(f"{drive}-duplex" for drive in DRIVES), "none")
PLACES = ("hbm", "host")


@dataclass(frozen=True)
class ReduceResult:
    """What was computed, the same by all ways of access, and what each of them cost."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    sum: int | float | None
    """Of all elements, integers modulo 2^64; None where means of columns were asked for."""
    means: list[float] | None
    """Of each column."""
    measurements: list[Measurement]
    """tiled first; each verified: what differs from a plain loop is an error."""


@dataclass(frozen=True)
class VectorAddResult:
    """What was added, and what each way to do it cost."""

    out: str
    dtype: str
    shape: tuple[int, ...]
    measurements: list[Measurement]
    """tiled first; each verified."""


def reduce(
    path: str | os.PathLike[str],
    *,
    columns: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> ReduceResult:
    """Add up the elements of a file, or average the columns of a matrix, by a cache and by explicit tiles.

    path: .npy in C order; with raw="float64" elements without a header.
    options: those of `run_options`.
    Integers wrap at 64 bits. Sums of floating point are made in double; the sum of all elements is within
    2^-38 of the sum of magnitudes, that of a column within (rows + 16) x 2^-52.
    Raises ValueError or TypeError for bad arguments and files, penstock.Error when the machine refuses or
    a result is wrong.
    """
    answer = load_native().regular_reduce(os.fspath(path), columns, run_options(**options), progress)
    return ReduceResult(
        path=os.fspath(path),
        dtype=answer["dtype"],
        shape=tuple(answer["shape"]),
        sum=answer["sum"],
        means=answer["means"],
        measurements=[Measurement.of(line) for line in answer["measurements"]],
    )


def vectoradd(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    replace: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> VectorAddResult:
    """Write a + b, element by element, to a new file of the same dtype and shape.

    replace: where `out` exists, it is removed first; else it is refused.
    options: those of `run_options`. Integers wrap.
    Raises like `reduce`; `out` is then not there.
    """
    answer = load_native().regular_vectoradd(
        os.fspath(a), os.fspath(b), os.fspath(out), replace, run_options(**options), progress
    )
    return VectorAddResult(
        out=os.fspath(out),
        dtype=answer["dtype"],
        shape=tuple(answer["shape"]),
        measurements=[Measurement.of(line) for line in answer["measurements"]],
    )


def run_options(
    *,
    access: Sequence[str] = ACCESS,
    cache: SupportsIndex | str | None = None,
    line: SupportsIndex | str = "4KiB",
    tile: SupportsIndex | str = "64KiB",
    in_flight: SupportsIndex = 0,
    media: str = "file",
    drives: SupportsIndex = 1,
    place: str = "hbm",
    directory: str = "auto",
    executor: str = "auto",
    engine: str = "auto",
    direct: bool = False,
    raw: str = "",
    threads: SupportsIndex = 0,
    server_sms: SupportsIndex = 0,
    repeats: SupportsIndex = 3,
) -> dict[str, Any]:
    """What the compiled part takes, of what a caller says.

    access: of "naive" (a[i] by each thread), "line" (whole lines by groups); "tiled" is always measured.
    cache: None takes an eighth of the data, and a MiB (GPUs: 128 MiB) at the least.
    tile, in_flight: of the explicit tiles: bytes of one, and how many a worker has on their way.
    media: "file", or the modelled drive that the data is copied to, on `drives` of them,
        whose bytes lie in "hbm" (the CPU executor's own memory) or "host" memory.
    """
    return {
        "access": list(access),
        "cache_bytes": 0 if cache is None else _some(parse_size(cache, "cache"), "cache"),
        "line_bytes": _some(parse_size(line, "line"), "line"),
        "tile_bytes": _some(parse_size(tile, "tile"), "tile"),
        "in_flight": _count("in_flight", in_flight, 0),
        "media": media,
        "drives": _count("drives", drives, 1),
        "place": place,
        "directory": directory,
        "executor": executor,
        "engine": engine,
        "direct": bool(direct),
        "raw": raw,
        "threads": _count("threads", threads, 0),
        "server_sms": _count("server_sms", server_sms, 0),
        "repeats": _count("repeats", repeats, 1),
    }


def _some(size: int, name: str) -> int:
    if size == 0:
        raise ValueError(f"{name} 0: it must be more")
    return size


def _count(name: str, value: object, least: int) -> int:
    count = whole_number(value)
    if count is None:
        raise TypeError(f"{name} {value!r}: it is no whole number: give an int")
    if not least <= count <= MOST:
        raise ValueError(f"{name} {count}: it must be from {least} to {MOST}")
    return count

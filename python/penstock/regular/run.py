"""A sum, the means of columns, or a + b, of arrays on storage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, SupportsIndex

from penstock.bench.measurement import Measurement
from penstock.callbacks import Progress
from penstock.graph.options import Executor
from penstock.native import load_native
from penstock.options import (
    CacheOptions,
    Choice,
    Count,
    Option,
    Size,
    StorageOptions,
    Text,
    checked,
    show_options,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

ACCESS = ("tiled", "naive", "line")
DRIVES = ("p5800x", "pm1735", "980pro", "gen5")
MEDIA = ("file", *DRIVES, *(f"{drive}-duplex" for drive in DRIVES), "none")
Place = Literal["hbm", "host"]


class RunOptions(CacheOptions, StorageOptions, total=False):
    """What `reduce` and `vectoradd` take."""

    access: Annotated[Sequence[str], Option(ACCESS)]
    tile: Annotated[SupportsIndex | str, Size(unless="64KiB", least=1)]
    in_flight: Annotated[SupportsIndex, Count()]
    media: Annotated[str, Choice("file", names=MEDIA)]
    drives: Annotated[SupportsIndex, Count(1, least=1)]
    place: Annotated[Place, Choice("hbm")]
    executor: Annotated[Executor, Choice("auto")]
    raw: Annotated[str, Text("")]
    server_sms: Annotated[SupportsIndex, Count()]
    repeats: Annotated[SupportsIndex, Count(3, least=1)]


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


@show_options(RunOptions)
def reduce(
    path: str | os.PathLike[str],
    *,
    columns: bool = False,
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> ReduceResult:
    """Add up the elements of a file, or average the columns of a matrix, by a cache and by explicit tiles.

    path: .npy in C order; with raw="float64" elements without a header.
    access: of "naive" (a[i] by each thread), "line" (whole lines by groups); "tiled" is always measured.
    cache: None takes an eighth of the data, and a MiB (GPUs: 128 MiB) at the least.
    tile, in_flight: of the explicit tiles: bytes of one, and how many a worker has on their way.
    media: "file", or the modelled drive that the data is copied to, on `drives` of them,
        whose bytes lie in "hbm" (the CPU executor's own memory) or "host" memory (`place`).
    raw: the dtype of elements without a header. repeats: of each way of access.
    line, directory, executor, engine, direct, threads, server_sms: as for `penstock.bfs`.
    Integers wrap at 64 bits. Sums of floating point are made in double; the sum of all elements is within
    2^-38 of the sum of magnitudes, that of a column within (rows + 16) x 2^-52.
    Raises ValueError or TypeError for bad arguments and files, penstock.Error when the machine refuses or
    a result is wrong.
    """
    answer = load_native().regular_reduce(os.fspath(path), columns, _checked(options), progress)
    return ReduceResult(
        path=os.fspath(path),
        dtype=answer["dtype"],
        shape=tuple(answer["shape"]),
        sum=answer["sum"],
        means=answer["means"],
        measurements=[Measurement.of(line) for line in answer["measurements"]],
    )


@show_options(RunOptions)
def vectoradd(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    replace: bool = False,
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> VectorAddResult:
    """Write a + b, element by element, to a new file of the same dtype and shape.

    replace: where `out` exists, it is removed first; else it is refused.
    Options as for `reduce`. Integers wrap.
    Raises like `reduce`; `out` is then not there.
    """
    answer = load_native().regular_vectoradd(
        os.fspath(a), os.fspath(b), os.fspath(out), replace, _checked(options), progress
    )
    return VectorAddResult(
        out=os.fspath(out),
        dtype=answer["dtype"],
        shape=tuple(answer["shape"]),
        measurements=[Measurement.of(line) for line in answer["measurements"]],
    )


def _checked(given: RunOptions) -> dict[str, Any]:
    """What the compiled part takes; a cache of 0 bytes is one that it chooses."""
    options = checked(RunOptions, given)
    return {**options, "access": list(options["access"]), "cache": options["cache"] or 0}

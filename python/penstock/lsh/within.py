"""Search by brute force."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, SupportsFloat, SupportsIndex, TypedDict

import numpy as np
import numpy.typing as npt

from penstock.arguments import reading
from penstock.checks import checked_count, checked_number
from penstock.graph.options import Executor
from penstock.lsh.folders import folder_text
from penstock.lsh.vectors import as_vectors
from penstock.native import load_native
from penstock.options import Choice, Count, Size, checked, show_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

NO_MATCH = (1 << 64) - 1


class WithinOptions(TypedDict, total=False):
    """What `find_within` takes."""

    executor: Annotated[Executor, Choice("auto")]
    cache: Annotated[SupportsIndex | str | None, Size(least=1)]
    line: Annotated[SupportsIndex | str | None, Size(unless="64KiB", least=1)]
    threads: Annotated[SupportsIndex, Count(most=1024)]


@dataclass(frozen=True)
class Matches:
    """The first match of each query, and what it took."""

    sets: npt.NDArray[np.int64]
    """Shape (n,): the number of the set, or -1."""
    records: npt.NDArray[np.int64]
    """Shape (n,): the number of the record in it, or -1."""
    seconds: float
    hits: int
    misses: int
    bytes_moved: int


@show_options(WithinOptions)
def find_within(
    folder: str | os.PathLike[str],
    sets: Sequence[str],
    vectors: Any,
    distance: SupportsFloat,
    *,
    record_bytes: int = 4096,
    **options: Unpack[WithinOptions],
) -> Matches:
    """Find for each vector the first record within a distance, by brute force (SYSTOR 2016, section 6.2).

    Args:
        folder: Where the sets are.
        sets: Names of files of records, searched in this order.
        vectors: Numbers of shape (n, dimensions); dimensions are a multiple of 4.
        distance: Euclidean: the most that a match may have.
        record_bytes: Of a record, a power of two of at least 4 * dimensions; it begins with float32 numbers.
        executor: "cpu", "cuda", or "auto".
        cache: Bytes for records; None takes 256 MiB, on a GPU 2 GiB.
        line: How much of a file comes at once, at least a record.
        threads: Of the CPU executor; 0: one for each core.

    Returns:
        Set and record of each.

    Raises:
        ValueError, TypeError: For a bad argument.
        penstock.Error: For sets that cannot be read.
    """
    given = checked(WithinOptions, options)
    if isinstance(sets, str):
        raise TypeError(f"sets {sets!r}: give a list of names")
    with reading(f"search {folder_text(folder)}", vectors):
        answer = load_native().lsh_find_within(
            folder_text(folder),
            [folder_text(name) for name in sets],
            checked_count("record_bytes", record_bytes, 16),
            as_vectors(vectors, "vectors"),
            checked_number("distance", distance),
            given["executor"],
            given["cache"] or 0,
            given["line"],
            given["threads"],
        )
    found = answer["found"][:, 0]
    missing = found == NO_MATCH
    numbers = np.where(missing, -1, (found >> np.uint64(32)).astype(np.int64))
    records = np.where(missing, -1, (found & np.uint64(0xFFFFFFFF)).astype(np.int64))
    return Matches(
        numbers, records, answer["seconds"], answer["hits"], answer["misses"], answer["bytes_moved"]
    )

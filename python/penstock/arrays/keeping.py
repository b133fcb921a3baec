"""What lies next to the kernels, of one process or of several together: rows that are kept, and copies."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from penstock import _native
    from penstock.arrays.peers import Peers
    from penstock.callbacks import Progress


@dataclass(frozen=True)
class KeptRows:
    """Which rows of an array are kept, the hottest first."""

    rows: NDArray[np.int64]
    peers: Peers | None = None
    everywhere: int = 0
    """With peers: the first so many are kept by each of them."""
    own: int = 0
    """With peers: how many each of them keeps at most."""

    def __len__(self) -> int:
        return len(self.rows)

    def alone(self) -> KeptRows:
        """What this process keeps where the others' memory is out of reach."""
        return KeptRows(self.rows[: self.own])


def keep(
    kept: KeptRows,
    array: _native.RowArray,
    executor: _native.Executor,
    progress: Progress | None,
    table: Callable[[], list[int]],
    drop: Callable[[], None],
) -> tuple[KeptRows, tuple[str, ...]]:
    """Keeps them.

    table: Identifies the array.
    drop: Called where this process keeps the rows and another one failed: some parts are not filled then.

    Returns:
        What is kept, and what is to be said of it: why it is not kept together with the peers.
    """
    peers = kept.peers
    if peers is None:
        array.keep_rows(kept.rows, progress)
        return kept, ()
    _check_same(peers, table)
    about = peers.together(lambda: _description(kept, executor))
    if len({tuple(each[1:]) for each in about}) > 1:
        raise ValueError("peers: they keep other rows of the table each: give all the same scores and sizes")
    if reason := _unreached([each[0] for each in about], peers, executor):
        array.keep_rows(kept.alone().rows, progress)
        return kept.alone(), (f"rows are kept without peers: {reason}",)
    files = peers.share(lambda: [array.share_kept_rows(len(kept), peers.size, kept.everywhere)])
    try:
        peers.together(
            lambda: array.keep_rows_together(kept.rows, files, peers.rank, kept.everywhere, progress)
        )
    except BaseException:
        drop()
        raise
    finally:
        for each in files:
            os.close(each)
    return kept, ()


def _check_same(peers: Peers, table: Callable[[], list[int]]) -> None:
    if len(set(map(tuple, peers.together(table)))) > 1:
        raise ValueError("peers: they have other tables each: open the same one in all")


def _description(kept: KeptRows, executor: _native.Executor) -> list[Any]:
    return [executor.place, len(kept), kept.everywhere, zlib.crc32(np.ascontiguousarray(kept.rows).data)]


def copy_together(
    peers: Peers,
    executor: _native.Executor,
    nbytes: int,
    make: Callable[[dict[str, Any]], _native.RowArray],
    table: Callable[[], list[int]],
) -> _native.RowArray | str:
    """An array whose copy lies in the memory of all peers, a part in each.

    make: Opens it, with these native options.

    Returns:
        The array, or why a peer's memory is out of reach.
    """
    _check_same(peers, table)
    places = peers.together(lambda: executor.place)
    if reason := _unreached(places, peers, executor):
        return reason
    files = peers.share(lambda: executor.share_copy(nbytes, peers.size))
    each = len(files) // peers.size
    parts = [files[rank * each + k] for k in range(each) for rank in range(peers.size)]
    made: list[_native.RowArray] = []
    try:
        peers.together(
            lambda: made.append(make({"parts": parts, "processes": peers.size, "own": peers.rank}))
        )
    finally:
        for file in files:
            os.close(file)
    return made[0]


def _unreached(places: list[str], peers: Peers, executor: _native.Executor) -> str:
    reasons = peers.together(lambda: next(filter(None, map(executor.no_fast_link_to, places)), ""))
    return next(filter(None, reasons), "")

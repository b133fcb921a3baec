"""Which rows of an array are kept next to the kernels: those with the highest scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.arguments import is_torch
from penstock.arrays.foreign import host_values
from penstock.arrays.keeping import KeptRows
from penstock.arrays.messages import shown
from penstock.arrays.peers import Peers
from penstock.checks import check_choice, checked_number
from penstock.sizes import parse_size

TIERED = "tiered"
BELOW = ("host", "host-cached", "storage")

# How much faster a row comes from a peer than from below.
_PEER_OVER_BELOW = 5


@dataclass(frozen=True)
class Tiers:
    """How an array is placed by scores, checked against its rows."""

    scores: NDArray[Any]
    kept: int
    """Rows next to the kernels of each process."""
    below: str
    """Placement of the others."""
    peers: Peers | None = None
    everywhere: int = 0
    """With peers: rows that each of them keeps."""

    @classmethod
    def of(
        cls,
        rows: int,
        row_bytes: int,
        scores: Any,
        hot: Any,
        below: Any,
        peers: Any = None,
        replicated: float | None = None,
    ) -> Tiers:
        """Errors: TypeError, ValueError for what cannot be."""
        if scores is None or hot is None:
            missing = "scores" if scores is None else "hot"
            raise ValueError(
                f"placement tiered: {missing} is missing: give a score for each row, and how much to keep"
            )
        below = "host" if below is None else below
        check_choice(below, BELOW, "below")
        values = checked_scores(scores)
        if len(values) != rows:
            raise ValueError(f"tiered: {len(values)} scores: the table has {rows} rows: give one for each")
        kept = _count(hot, rows, row_bytes)
        if peers is None:
            if replicated is not None:
                raise ValueError(f"tiered: replicated {shown(replicated)}: there are no peers: leave it out")
            return cls(values, kept, below)
        if not isinstance(peers, Peers):
            raise TypeError(f"peers {shown(peers)}: give a penstock.tiering.Peers")
        return cls(values, kept, below, peers, _everywhere(values, kept, peers.size, replicated))

    @property
    def keeps(self) -> bool:
        """Nothing together with peers is asked for, too: another one may ask for more."""
        return self.kept > 0 or self.peers is not None

    @property
    def together(self) -> int:
        """Rows that are kept by this process or a peer."""
        if self.peers is None:
            return self.kept
        return min(self.everywhere + (self.kept - self.everywhere) * self.peers.size, len(self.scores))

    def rows(self) -> NDArray[np.int64]:
        return hottest(self.scores, self.together)

    def keeping(self) -> KeptRows:
        return KeptRows(self.rows(), self.peers, self.everywhere, self.kept)

    @property
    def hit_rate(self) -> float:
        """Share of all scores that these rows have: as good a prediction as the scores are. Negative ones
        count as 0."""
        return self._share(self.rows())

    @property
    def peer_rate(self) -> float:
        """Share of all scores that rows have which a peer keeps and this process does not."""
        if self.peers is None:
            return 0.0
        return self._share(self.rows()[self.everywhere :]) * (self.peers.size - 1) / self.peers.size

    def _share(self, rows: NDArray[np.int64]) -> float:
        reads = np.maximum(self.scores, 0).astype(np.float64)  # float16 and integers may overflow their sum
        most = reads.max(initial=0)
        if most == 0:
            return len(rows) / len(reads) if len(reads) else 0.0
        reads /= most
        return float(reads[rows].sum() / reads.sum())


def checked_scores(given: Any) -> NDArray[Any]:
    values = np.asarray(given.detach().cpu()) if is_torch(given) else host_values(given)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise TypeError(f"tiered: scores: {values.dtype} of shape {values.shape}: give a number for each row")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("tiered: scores: one is no finite number: give a finite one for each row")
    return values


def hottest(scores: Any, count: int) -> NDArray[np.int64]:
    """The rows with the highest scores, the highest first; of equal ones the lower number first.

    Args:
        scores: Numbers, shape (rows,).
        count: How many rows; all if there are fewer.

    Returns:
        int64, shape (count,).
    """
    values = checked_scores(scores)
    count = min(max(int(count), 0), len(values))
    if count == 0:
        return np.zeros(0, np.int64)
    if count < len(values):
        least = np.partition(values, len(values) - count)[len(values) - count]
        above = np.flatnonzero(values > least)
        equal = np.flatnonzero(values == least)[: count - len(above)]
        chosen = np.concatenate([above, equal])
    else:
        chosen = np.arange(len(values))
    falling = np.negative if values.dtype.kind == "f" else np.invert  # no integer overflows, or is rounded
    order = np.lexsort((chosen, falling(values[chosen])))
    ranked: NDArray[np.int64] = chosen[order].astype(np.int64)
    return ranked


def _count(hot: Any, rows: int, row_bytes: int) -> int:
    if isinstance(hot, float):
        if not 0 <= hot <= 1:
            raise ValueError(f"tiered: hot {shown(hot)}: give a share of the rows from 0 to 1, or bytes")
        return math.floor(hot * rows)
    return min(parse_size(hot, "hot") // max(row_bytes, 1), rows)


def _everywhere(scores: NDArray[Any], kept: int, processes: int, replicated: float | None) -> int:
    """How many of the rows that a process keeps are kept by each.

    Unless it is given: one more costs the others a row each that is then read from below, and spares reads
    from peers. It pays as long as it is read so much more often as they are slower.
    """
    if replicated is not None:
        number = checked_number("replicated", replicated)
        if not 0 <= number <= 1:
            raise ValueError(f"tiered: replicated {shown(replicated)}: give a share from 0 to 1")
        return math.floor(number * kept)
    most = min(kept * processes, len(scores))
    if processes == 1 or most == 0:
        return kept
    falling = -np.sort(-scores.astype(np.float64))[:most]
    counts = np.arange(kept)
    coldest = np.minimum(counts + (kept - counts) * processes, len(scores)) - 1
    pays = falling[counts] > falling[np.minimum(coldest, most - 1)] * processes * _PEER_OVER_BELOW
    return int(kept if pays.all() else np.argmin(pays))

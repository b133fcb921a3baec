"""How well links are ranked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]


def auc(positive: Scores, negative: Scores) -> float:
    """The probability that an edge scores higher than a pair that is none; a tie counts half.

    Args:
        positive, negative: Scores of each, (n,) and (m,), at least one.
    """
    known = np.sort(negative)
    below = np.searchsorted(known, positive, "left")
    not_above = np.searchsorted(known, positive, "right")
    return float((below + not_above).mean() / (2 * len(known)))


def reciprocal_ranks(positive: Scores, negative: Scores) -> Scores:
    """1 / the rank of each edge among the pairs that are none; of a tie, the mean of the best and worst rank.

    Args:
        positive, negative: As of `auc`.

    Returns:
        (n,).
    """
    known = np.sort(negative)
    above = len(known) - np.searchsorted(known, positive, "right")
    not_below = len(known) - np.searchsorted(known, positive, "left")
    ranks: Scores = 1 + (above + not_below) / 2
    return 1 / ranks

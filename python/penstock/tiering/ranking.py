"""Nodes in the order of their scores, by threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.messages import shown_path
from penstock.sampling.host import on_host
from penstock.tiering.npy_files import Values

if TYPE_CHECKING:
    from penstock.tiering.source_folder import SourceFolder
    from penstock.tiering.workers import Workers

_BUCKETS_OF_THREAD = 4
_SAMPLE = 1 << 16  # scores that buckets are chosen by


def scores_of(given: Any, source: SourceFolder) -> Values:
    values = on_host(given)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise TypeError(
            f"reorder: scores: {values.dtype} of shape {values.shape}: give a number for each node"
        )
    if len(values) != source.nodes:
        raise ValueError(
            f"reorder: {len(values)} scores: {shown_path(str(source.folder))} has {source.nodes} nodes: give "
            "one for each"
        )
    return values


def ranked(scores: Values, id_type: np.dtype[Any], workers: Workers) -> Values:
    """Node numbers by descending score, of equal ones ascending.

    Scores are divided into buckets by value, which threads sort. A value that many nodes have is a bucket of
    its own, in which nothing is left to sort.
    """
    buckets = _buckets(scores, workers.threads * _BUCKETS_OF_THREAD)
    step = workers.block

    def rank(number: int) -> Values:
        low, high, equal = buckets[number]
        parts = []
        for first in range(0, len(scores), step):
            part = scores[first : first + step]
            if part.dtype.kind == "f" and number == 0 and not np.isfinite(part).all():
                raise ValueError("reorder: scores: one is no finite number: give a finite one for each node")
            if equal:
                chosen = part == low
            else:
                chosen = np.ones(len(part), bool) if low is None else part >= low
                if high is not None:
                    chosen &= part < high
            parts.append((np.flatnonzero(chosen) + first).astype(id_type))
        ids = np.concatenate(parts) if parts else np.empty(0, id_type)
        if equal:
            return ids
        values = scores[ids]
        keys = np.negative(values) if values.dtype.kind == "f" else np.invert(values)  # no integer overflows
        ranked: Values = ids[np.argsort(keys, kind="stable")]
        return ranked

    order = np.empty(len(scores), id_type)
    done = 0

    def take(ids: Values) -> None:
        nonlocal done
        order[done : done + len(ids)] = ids
        done += len(ids)
        workers.report("ranking nodes", done, len(scores))

    workers.each(len(buckets), rank, take)
    return order


def _buckets(scores: Values, count: int) -> list[tuple[Any, Any, bool]]:
    """Ranges of values from the highest on: least, end (None: no bound), and whether it is one value."""
    sample = np.sort(scores[:: max(1, len(scores) // _SAMPLE)])
    if len(sample) < _SAMPLE // 2 or count < 2:
        return [(None, None, False)]
    cuts, times = np.unique(sample[np.arange(1, count) * len(sample) // count], return_counts=True)
    found: list[tuple[Any, Any, bool]] = [(None, cuts[0], False)]
    for place, cut in enumerate(cuts):
        end = cuts[place + 1] if place + 1 < len(cuts) else None
        if times[place] == 1:
            found.append((cut, end, False))
            continue
        found.append((cut, None, True))
        above = np.nextafter(cut, cut.dtype.type(np.inf)) if cut.dtype.kind == "f" else _next_integer(cut)
        if above is not None:
            found.append((above, end, False))
    return found[::-1]


def _next_integer(value: Any) -> Any:
    """None after the greatest."""
    return None if value == np.iinfo(value.dtype).max else value + value.dtype.type(1)

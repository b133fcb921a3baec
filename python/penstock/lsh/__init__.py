"""Approximate nearest neighbours by p-stable locality-sensitive hashing, over records that stay in files.

    penstock.lsh.build("faces", vectors)
    with penstock.lsh.Index("faces") as index:
        neighbours = index.query(others, nearest=5)
        print(neighbours.ids, neighbours.distances, index.recall(others))

Shahar and Silberstein, SYSTOR 2016, sections 2.3 and 2.4; Datar et al., SCG 2004.
"""

from __future__ import annotations

from penstock.lsh.index import Index, IndexFacts, Neighbours
from penstock.lsh.making import build, write_records
from penstock.lsh.within import Matches, find_within

__all__ = ["Index", "IndexFacts", "Matches", "Neighbours", "build", "find_within", "write_records"]

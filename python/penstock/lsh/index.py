"""An index that was built, opened for queries."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex, TypedDict

import numpy as np
import numpy.typing as npt

from penstock.arguments import reading
from penstock.callbacks import Progress
from penstock.checks import checked_count
from penstock.graph.options import Executor
from penstock.lsh.folders import folder_text
from penstock.lsh.vectors import as_vectors
from penstock.native import load_native
from penstock.options import Choice, Count, Size, checked, show_options

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from penstock._native import LshIndex

NO_ID = 0xFFFFFFFF
MOST_NEAREST = 1024


class IndexOptions(TypedDict, total=False):
    """What `Index` takes."""

    executor: Annotated[Executor, Choice("auto")]
    cache: Annotated[SupportsIndex | str | None, Size(least=1)]
    line: Annotated[SupportsIndex | str | None, Size(unless="4KiB", least=1)]
    threads: Annotated[SupportsIndex, Count(most=1024)]
    max_candidates: Annotated[SupportsIndex, Count(1024, least=1, most=1 << 20)]
    fallback: Annotated[SupportsIndex, Count(0, most=1 << 20)]


@dataclass(frozen=True)
class IndexFacts:
    """What an index has."""

    records: int
    dimensions: int
    record_bytes: int
    tables: int
    projections: int
    """Of a table."""
    width: float
    """Of a cell, in units of distance."""
    index_bytes: int
    """Of its file."""


@dataclass(frozen=True)
class Neighbours:
    """What queries found, and what it took."""

    ids: npt.NDArray[np.int64]
    """Shape (n, nearest): numbers of records, the nearest first; -1 where there are fewer candidates."""
    distances: npt.NDArray[np.float32]
    """Euclidean, in the same order; infinite where there are fewer."""
    candidates: int
    """Records that were compared, all queries together."""
    cut: int
    """Queries with more candidates than `max_candidates`: the others were left out."""
    seconds: float


def header_of(facts: Mapping[str, Any]) -> IndexFacts:
    return IndexFacts(**{name: facts[name] for name in IndexFacts.__dataclass_fields__})


class Index:
    """An index of a folder, opened for queries; a context manager. Thread-safe: queries take turns."""

    @show_options(IndexOptions)
    def __init__(self, folder: str | os.PathLike[str], **options: Unpack[IndexOptions]) -> None:
        """Open the index of a folder.

        Args:
            folder: That `build` was called for.
            executor: "cpu", "cuda", or "auto".
            cache: Bytes for records and buckets; None takes 256 MiB, on a GPU 2 GiB.
            line: How much of a file comes at once.
            threads: Of the CPU executor; 0: one for each core.
            max_candidates: Of a query: further ones are left out, and the query is counted in `cut`.
            fallback: Records, spread evenly, that a query without candidates is compared with.

        Raises:
            ValueError, TypeError: For a bad argument, or an index that is damaged.
            penstock.Error: Where there is none, or it cannot be read.
        """
        given = checked(IndexOptions, options)
        self._folder = folder_text(folder)
        self._turn = threading.Lock()
        self._asking: int | None = None
        self._process = os.getpid()
        self._native: LshIndex | None = load_native().LshIndex(
            self._folder,
            given["executor"],
            given["cache"] or 0,
            given["line"],
            given["threads"],
            given["max_candidates"],
            given["fallback"],
        )
        self._facts = header_of(self._native.facts())

    @property
    def facts(self) -> IndexFacts:
        """What the index has."""
        return self._facts

    def query(
        self, vectors: Any, nearest: int = 1, *, exact: bool = False, progress: Progress | None = None
    ) -> Neighbours:
        """Find the nearest records among the candidates of each vector (SYSTOR 2016, algorithm 1).

        Args:
            vectors: Numbers of shape (n, dimensions) or (dimensions,).
            nearest: How many, 1 to 1024.
            exact: Compares with all records instead: reads all of them.
            progress: Called with what is done, how far it is, and of how much.

        Returns:
            Numbers of records and distances.

        Raises:
            ValueError, TypeError: For another shape, or a number that is not finite.
            penstock.Error: For records that cannot be read.
        """
        count = checked_count("nearest", nearest, 1, MOST_NEAREST)
        with reading(f"query {self._folder}", vectors):
            asked = as_vectors(vectors, "vectors", self._facts.dimensions)
            with self._in_turn() as native:
                answer = native.query(asked, count, bool(exact), progress)
        found = answer["ids"]
        ids = found.astype(np.int64)
        ids[found == NO_ID] = -1
        return Neighbours(
            ids, np.sqrt(answer["distances"]), answer["candidates"], answer["cut"], answer["seconds"]
        )

    def recall(self, vectors: Any, nearest: int = 1, *, progress: Progress | None = None) -> float:
        """Measure the index against brute force.

        Args:
            vectors: As in `query`.
            nearest: How many of each.
            progress: As in `query`.

        Returns:
            The share of true neighbours that `query` finds, 0 to 1; records at the distance of the last one
            count as well, and no more neighbours are expected than there are records.
        """
        nearest = min(checked_count("nearest", nearest, 1, MOST_NEAREST), len(self))
        found = self.query(vectors, nearest, progress=progress)
        if found.ids.size == 0:
            raise ValueError("vectors: give one or more")
        true = self.query(vectors, nearest, exact=True, progress=progress)
        return float(np.mean((found.ids >= 0) & (found.distances <= true.distances[:, -1:])))

    def inspect(self) -> dict[str, Any]:
        """Facts, and what the cache has done since the index was opened."""
        with self._in_turn() as native:
            return native.facts()

    def close(self) -> None:
        """Give its memory back. Twice is once."""
        self._native = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._facts.records

    @contextmanager
    def _in_turn(self) -> Iterator[LshIndex]:
        """One caller at a time. The lock is Python's: a query takes the interpreter's for its progress."""
        native = self._native
        if native is None:
            raise ValueError(f"index {self._folder}: it is closed: open it again")
        if self._process != os.getpid():
            raise ValueError(
                f"index {self._folder}: this process was forked from the one that opened it: open it again"
            )
        if self._asking == threading.get_ident():
            raise ValueError(f"index {self._folder}: a query is under way: ask after it, not in its progress")
        with self._turn:
            self._asking = threading.get_ident()
            try:
                yield native
            finally:
                self._asking = None

"""The functions of the extension module that this package uses, with their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from penstock.native import load_native

StepProgress = Callable[[int, int], object]
"""Gets (done, total) with 0 <= done <= total a few times a second; what it raises stops the work."""

Array = NDArray[Any]


class ArrayPlace(TypedDict):
    """Where an array's bytes lie: `count` items of `dtype`, from byte `data_offset` of the file `path`."""

    path: str
    data_offset: int
    dtype: str
    count: int


class FolderFacts(TypedDict):
    """What graph_open returns; `names_path` is empty where the vertices have no names, or not in a file."""

    path: str
    vertices: int
    edges: int
    directed: bool
    source: str
    reading: str
    has_names: bool
    names_path: str
    edges_place: ArrayPlace
    weights_place: ArrayPlace | None


class Native(Protocol):
    """All raise ValueError or penstock.Error; 0 threads is all processors, 0 memory no limit. of: what errors
    say is converted."""

    def graph_normalise_generator(self, text: str) -> str: ...

    def graph_generate(
        self, target: str, spec: str, *, seed: int, weighted: bool, threads: int, memory: int = 0, of: str =
        "",
        progress: StepProgress | None,
    ) -> None: ...  # fmt: skip

    def graph_convert(
        self, target: str, input: str, *, format: str, name: str = "", undirected: bool = False,
        simple: bool = False, columns: Sequence[str] = (), separator: str = "", header: bool = False,
        first_id: int = 0, renumber: str = "sparse", threads: int, memory: int = 0, of: str = "", progress:
        StepProgress | None,
    ) -> str: ...  # fmt: skip

    def graph_build(
        self, target: str, *, vertices: int, from_: Array, to: Array, weights: Array | None,
        names: Sequence[str], directed: bool, symmetrise: bool, unique: bool, simple: bool, source: str,
        reading: str = "", threads: int, memory: int = 0, of: str = "", progress: StepProgress | None,
    ) -> None: ...  # fmt: skip

    def graph_names(self, path: str) -> bytes: ...

    def graph_open(
        self, path: str, *, validate_edges: bool, threads: int = 0, progress: StepProgress | None = None
    ) -> FolderFacts: ...

    def graph_write_incoming(
        self, path: str, *, threads: int, memory: int, progress: StepProgress | None
    ) -> None: ...

    def graph_bfs_depths(
        self, path: str, source: int, progress: StepProgress | None
    ) -> NDArray[np.int32]: ...

    def graph_verify_bfs(
        self, path: str, source: int, parents: Array, progress: StepProgress | None
    ) -> str: ...


native = cast(Native, load_native())

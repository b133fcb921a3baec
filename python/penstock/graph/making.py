"""How graph folders are made: the options, and the plan of one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypedDict

from . import sparse
from ._binding import StepProgress
from .folder import build_folder
from .reading import Reading


@dataclass(frozen=True)
class Making:
    """How a folder is made."""

    threads: int
    memory: int
    progress: StepProgress | None
    undirected: bool
    simple: bool
    reading: Reading
    of: str = ""
    """What errors say is converted, where the folder is the cache's."""

    def limits(self, progress: StepProgress | None) -> Limits:
        return Limits(threads=self.threads, memory=self.memory, of=self.of, progress=progress)

    @property
    def suffix(self) -> str:
        """Of a name in the cache: what is not as it is without options."""
        return f"{'-undirected' if self.undirected else ''}{'-simple' if self.simple else ''}"


class Limits(TypedDict):
    """What all functions of the compiled part take."""

    threads: int
    memory: int
    of: str
    progress: StepProgress | None


@dataclass(frozen=True)
class Plan:
    """How a folder is made of what a user named, and what it is called in the cache. Of a graph in memory,
    name is empty: its folder goes with it."""

    called: str
    name: str
    make: Callable[[str], object]
    labels: tuple[Hashable, ...] | None = None


def write_graph(target: str, graph: sparse.CoordinateGraph, making: Making, source: str) -> None:
    build_folder(
        target,
        graph.vertices,
        graph.from_,
        graph.to,
        weights=graph.weights,
        names=graph.names,
        directed=graph.directed and not making.undirected,
        symmetrise=making.undirected or graph.symmetrise,
        unique=making.undirected,
        simple=making.simple,
        source=source,
        reading=graph.reading,
        **making.limits(making.progress),
    )

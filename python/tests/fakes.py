"""Stand-ins for the compiled part and for a graph, for tests of what lies above them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from penstock.graph.results import BfsResult

RESULT: dict[str, Any] = {
    "source": 2,
    "reached": 3,
    "levels": 2,
    "edges_traversed": 4,
    "seconds": 0.5,
    "teps": 8.0,
    "trial_seconds": [0.5],
    "trial_sources": [2],
    "verified": None,
    "violation": "",
    "executor": "cpu",
    "device": "2 threads",
    "engine": "io_uring",
    "placement": "storage",
    "strategy": "auto",
    "media": "file",
    "drives": 0,
    "media_bytes_per_second": 0.0,
    "hits": 5,
    "misses": 2,
    "joins": 1,
    "fills": 2,
    "prefetches": 0,
    "evictions": 1,
    "retries": 0,
    "errors": 0,
    "bytes_asked": 16,
    "bytes_moved": 8192,
    "amplification": 512.0,
    "sector_bytes": 0,
    "frames": 4,
    "line_bytes": 4096,
    "cache_bytes": 16384,
    "metadata_bytes": 128,
    "directory": "direct",
    "directory_bytes_per_tib": 2 << 30,
    "edge_bytes": 20,
    "offset_bytes": 40,
    "vertex_bytes": 64,
    "tile_bytes": 0,
    "tile_seconds": 0.0,
    "load_seconds": 0.01,
    "verify_seconds": 0.0,
    "level_sizes": [1, 2],
    "level_seconds": [0.0, 0.0],
    "level_strategies": ["frontier", "frontier"],
    "level_bytes": [],
    "parents": np.array([2, 2, 2, -1]),
    "peak_rss_bytes": 1 << 20,
    "file_rss_bytes": 1 << 18,
}
GRAPH: dict[str, Any] = {"graph": "tiny", "path": "/tiny", "vertices": 4, "edges": 5, "directed": True}

TOPICS: list[dict[str, Any]] = [
    {
        "name": "flow",
        "what": "water through a pipe",
        "options": {"pipe_bytes": "its width", "executor": "cpu or cuda", "server-sms": "who pumps"},
    },
    {"name": "leak", "what": "water beside it", "options": {}},
]
LINE: dict[str, Any] = {
    "id": "flow.wide",
    "params": {"executor": "cuda", "directory": "direct"},
    "value": 6.0,
    "unit": "GB/s",
    "baseline": "a hose",
    "baseline_value": 8.0,
    "ratio": 0.75,
    "repeats": 3,
    "spread": 0.025,
    "verified": True,
    "bytes": {"hbm": 4096},
    "sms": 132,
    "warps": 1056,
    "registers": 40,
    "details": {"local_bytes": 0, "directory_bytes_per_tib": 2 << 30, "metadata_bytes": 1 << 20},
    "machine": {"name": "H200 in a rack", "device": "NVIDIA H200", "cpu": "a CPU"},
    "commit": "abc1234",
    "date": "2026-01-02",
}


def make_line(**changes: Any) -> dict[str, Any]:
    """A measurement as its JSON line has it."""
    return {**LINE, **changes}


def make_result(**changes: Any) -> BfsResult:
    return BfsResult(**{**GRAPH, **RESULT, **changes})


class FakeNative(ModuleType):
    """Answers a search with RESULT, a benchmark with `measurements`; remembers what it was asked.

    `problem` is raised instead, by a benchmark after it has told its measurements.
    """

    cuda_version: str | None = None

    def __init__(self) -> None:
        super().__init__("penstock._native")
        self.asked: dict[str, Any] = {}
        self.problem: BaseException | None = None
        self.answer: dict[str, Any] = {}
        self.measurements: list[dict[str, Any]] = [make_line()]

    def cuda_usable(self) -> tuple[bool, str]:
        return False, "a stand-in has no GPU"

    def bfs(self, options: dict[str, Any], source: int, progress: Any) -> dict[str, Any]:
        self.asked = {**options, "source": source}
        if progress:
            progress("level 1", 1, 2)
        if self.problem:
            raise self.problem
        verified = True if options["verify"] else None
        return {**RESULT, "verified": verified, **self.answer}

    def bench_topics(self) -> list[dict[str, Any]]:
        return TOPICS

    def bench_run(
        self, topic: str, options: dict[str, str], progress: Any, found: Any
    ) -> list[dict[str, Any]]:
        self.asked = {"topic": topic, "options": options}
        if progress:
            progress("flow.wide", 0, 1)
        for line in self.measurements:
            found(line)
        if self.problem:
            raise self.problem
        return self.measurements

    def io_uring_usable(self) -> tuple[bool, str]:
        return True, ""


@dataclass(frozen=True)
class FakeFolder:
    """Four vertices; 2 leads to 0 and 1, which both lead to 0; 3 is reached by nobody and leads to 1."""

    path: Path
    vertices: int = 4
    edges: int = 5
    directed: bool = True
    names: tuple[str, ...] | None = ("libc6", "gcc", "bash", "lonely")
    place_of_names: str = "/data/tiny/names.txt"
    labels: None = None
    called: str = ""
    on_volume: bool = False

    def offsets(self) -> npt.NDArray[np.uint64]:
        return np.array([0, 1, 2, 4, 5], dtype=np.uint64)

    def edge_array(self) -> npt.NDArray[np.int32]:
        return np.array([0, 0, 0, 1, 1], dtype=np.int32)

    def bfs_depths(self, source: int) -> npt.NDArray[np.int32]:
        return np.array([1, 1, 0, -1], dtype=np.int32)


def use_folder(monkeypatch: pytest.MonkeyPatch, folder: FakeFolder) -> None:
    """Makes every graph that is asked for this folder."""

    def resolve(spec: Any, *, progress: Any, **options: Any) -> FakeFolder:
        if isinstance(spec, FakeFolder):
            return spec
        if not spec:
            raise ValueError("open : there is no such graph")
        if progress:
            progress(3, 3)
        return folder

    monkeypatch.setattr("penstock.graph.run.resolve", resolve)
    monkeypatch.setattr("penstock.graph.open_folder", lambda path: folder, raising=False)

"""When sampling, gathering and training ran: a trace for Perfetto, and how much they overlapped.

Spans come from any thread. Those of a GPU are pairs of CUDA events; their times are read when the trace is
written, so that recording never waits for the GPU.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.report.whole_files import written_whole

SAMPLING, GATHER, TRAINING, WAITING = "sampling", "gather", "training", "waiting"
GPU = " (GPU)"
MAX_SPANS = 1_000_000
Interval = tuple[float, float]  # microseconds since the timeline began


@dataclass(frozen=True)
class Overlap:
    """How much of the sampling and gathering ran while the training did. Times in seconds."""

    loading: float
    """With sampling or gathering under way."""
    training: float
    hidden: float
    """Of `loading`, with training under way, too."""

    @property
    def share(self) -> float:
        """Of the loading that training hid, 0 to 1; 1 where there was none."""
        return self.hidden / self.loading if self.loading > 0 else 1.0

    def as_dict(self) -> dict[str, float]:
        return {**dataclasses.asdict(self), "share": self.share}


@dataclass(frozen=True)
class _Span:
    lane: str
    begin: float
    end: float
    values: dict[str, Any]


class Timeline:
    """Spans by lane.

    >>> timeline = Timeline()
    >>> with timeline.span("sampling", batch=3):
    ...     pass
    >>> timeline.write("trace.json")

    Thread-safe: spans may be open in any number of threads. `write` and `overlap` see those that have ended.
    """

    def __init__(self, max_spans: int = MAX_SPANS) -> None:
        """
        Args:
            max_spans: What is recorded at most; `dropped` counts the spans after that.
        """
        self.dropped = 0
        self._max_spans = max_spans
        self._zero = time.perf_counter()
        self._lock = threading.Lock()
        self._spans: list[_Span] = []
        self._on_gpu: list[tuple[str, Any, Any, dict[str, Any]]] = []
        self._references: dict[Any, tuple[Any, float]] = {}  # by device: an event, and when it passed

    @contextmanager
    def span(self, lane: str, **values: Any) -> Iterator[None]:
        """Records how long the block runs, by the wall clock.

        Args:
            lane: Which row of the trace.
            values: Shown with the span; values that JSON has.
        """
        begin = self._now()
        try:
            yield
        finally:
            self.add(lane, begin, self._now(), **values)

    @contextmanager
    def gpu_span(self, lane: str, device: Any, **values: Any) -> Iterator[None]:
        """Records when the GPU runs what the block launches on the device's current stream.

        Args:
            lane: "training" appears as "training (GPU)", beside the host's spans of that lane.
            device: A torch.device of a GPU.
            values: As of `span`.
        """
        # Here and not above: torch takes seconds to import.
        import torch

        self._reference(device)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.current_stream(device)
        begin.record(stream)
        try:
            yield
        finally:
            end.record(stream)
            with self._lock:
                if self._has_room():
                    self._on_gpu.append((lane + GPU, (device, begin), end, values))

    def add(self, lane: str, begin: float, end: float, **values: Any) -> None:
        """Records a span whose times are known: microseconds since the timeline began."""
        with self._lock:
            if self._has_room():
                self._spans.append(_Span(lane, begin, end, values))

    def intervals(self, *lanes: str) -> list[Interval]:
        """When any of the lanes had a span, in order and apart from each other, in microseconds."""
        return union([(span.begin, span.end) for span in self._resolved() if span.lane in lanes])

    def overlap(self) -> Overlap:
        """Of sampling and gathering with training; on a GPU, with what the GPU ran of it."""
        loading = self.intervals(SAMPLING, GATHER, SAMPLING + GPU, GATHER + GPU)
        training = self.intervals(TRAINING + GPU) or self.intervals(TRAINING)
        seconds = [total(each) * 1e-6 for each in (loading, training, shared(loading, training))]
        return Overlap(*seconds)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as JSON. What was there is replaced when all is written.

        Raises:
            penstock.Error: It cannot be written.
        """
        spans = self._resolved()
        lanes = {
            lane: number for number, lane in enumerate(sorted({span.lane for span in spans}, key=_order), 1)
        }
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": name, "pid": process, "tid": tid, "args": {key: value}}
            for lane, tid in lanes.items()
            for name, key, value in (("thread_name", "name", lane), ("thread_sort_index", "sort_index", tid))
        ]
        events += [
            {
                "ph": "X",
                "name": span.lane,
                "cat": span.lane,
                "ts": span.begin,
                "dur": span.end - span.begin,
                "pid": process,
                "tid": lanes[span.lane],
                "args": span.values,
            }
            for span in spans
        ]
        other = {"overlap": self.overlap().as_dict(), "dropped": self.dropped}
        with written_whole("write", Path(path)) as beside, beside.open("w") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}, file)

    def _now(self) -> float:
        return (time.perf_counter() - self._zero) * 1e6

    def _has_room(self) -> bool:
        """REQUIRES: the lock is held."""
        if len(self._spans) + len(self._on_gpu) < self._max_spans:
            return True
        self.dropped += 1
        return False

    def _reference(self, device: Any) -> None:
        """Ties the clock of a GPU to the host's: waits for the GPU, once."""
        import torch

        with self._lock:
            if device in self._references:
                return
            event = torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize(device)
            event.record(torch.cuda.current_stream(device))
            event.synchronize()
            self._references[device] = (event, self._now())

    def _resolved(self) -> list[_Span]:
        """All spans in the order of their begin, those of GPUs with their times by the host's clock."""
        with self._lock:
            on_gpu, self._on_gpu = self._on_gpu, []
            for lane, (device, begin), end, values in on_gpu:
                end.synchronize()
                reference, zero = self._references[device]
                first, last = (zero + reference.elapsed_time(event) * 1e3 for event in (begin, end))
                self._spans.append(_Span(lane, first, last, values))
            return sorted(self._spans, key=lambda span: (span.begin, span.end))


def _order(lane: str) -> tuple[int, str]:
    """Lanes as data flows through them; others after these."""
    known = (SAMPLING, GATHER, WAITING, TRAINING)
    base = lane.removesuffix(GPU)
    return (known.index(base) if base in known else len(known), lane)


def union(intervals: list[Interval]) -> list[Interval]:
    """The same points, as intervals in order that do not touch."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def shared(first: list[Interval], second: list[Interval]) -> list[Interval]:
    """Points that are in both. REQUIRES: both are unions."""
    found: list[Interval] = []
    i = j = 0
    while i < len(first) and j < len(second):
        begin, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if begin < end:
            found.append((begin, end))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return found


def total(intervals: list[Interval]) -> float:
    return sum(end - begin for begin, end in intervals)

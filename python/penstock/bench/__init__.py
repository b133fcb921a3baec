"""Measurements of Penstock beside a baseline from the same run: what `penstock bench` and `penstock plot` do.

Measure one topic:

    for m in penstock.bench.run("hit", {"executor": "cpu", "mib": "16"}):
        print(m.id, m.value, m.unit, m.ratio)
"""

from __future__ import annotations

from penstock.bench.measurement import Measurement, append_lines, newest, read_lines
from penstock.bench.topics import Topic, run, topics

__all__ = ["Measurement", "Topic", "append_lines", "newest", "read_lines", "run", "topics"]

"""The topics that can be measured. They and their options come from the compiled part."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.bench.measurement import Measurement
from penstock.callbacks import Progress
from penstock.native import load_native


@dataclass(frozen=True)
class Topic:
    name: str
    what: str
    options: dict[str, str]
    """Name of an option, and one line on it."""


def topics() -> list[Topic]:
    return [Topic(**facts) for facts in load_native().bench_topics()]


def run(
    topic: str,
    options: Mapping[str, object] | None = None,
    *,
    progress: Progress | None = None,
    found: Callable[[Measurement], None] | None = None,
) -> list[Measurement]:
    """Measure a topic; the order is the topic's.

    options: those of the topic, as text or as what str() makes text of; the rest has the topic's defaults.
    found: called with each measurement as it comes. Its details have `wall_seconds`, since the last one.
    Raises ValueError for a topic, an option or a value that there is not, penstock.Error when the machine
    refuses or something was read wrong.
    """
    texts = {name: str(value) for name, value in (options or {}).items()}
    measured: list[Measurement] = []
    begun = time.monotonic()

    def report(line: Mapping[str, Any]) -> None:
        nonlocal begun
        last, begun = begun, time.monotonic()
        details = {**(line.get("details") or {}), "wall_seconds": begun - last}
        measured.append(Measurement.of({**line, "details": details}))
        if found is not None:
            found(measured[-1])

    load_native().bench_run(topic, texts, progress, report)
    return measured

"""What the benchmarks of arrays share: they time calls on the GPU, and keep a JSON line for each figure."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


class Bench:
    """Times calls on the GPU, and writes a JSON line for each figure."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.facts: dict[str, Any] = {}  # told with every figure

    def seconds(self, call: Callable[[], Any], repeats: int | None = None) -> list[float]:
        call()
        torch.cuda.synchronize()
        taken = []
        for _ in range(repeats or self.options.repeats):
            begun = time.perf_counter()
            call()
            torch.cuda.synchronize()
            taken.append(time.perf_counter() - begun)
        return taken

    def tell(
        self,
        name: str,
        nbytes: int,
        ours: list[float],
        baseline: str,
        theirs: list[float],
        details: dict[str, Any],
    ) -> None:
        rates = [nbytes / s / 1e9 for s in ours]
        base = statistics.median(nbytes / s / 1e9 for s in theirs) if theirs else None
        value = statistics.median(rates)
        line = {
            "id": name,
            "value": value,
            "unit": "GB/s",
            "baseline": baseline,
            "baseline_value": base,
            "ratio": value / base if base else None,
            "repeats": len(rates),
            "spread": (max(rates) - min(rates)) / value,
            "verified": True,
            "details": {**self.facts, **details},
            "machine": {
                "name": os.environ.get("PENSTOCK_MACHINE", "unnamed"),
                "device": torch.cuda.get_device_name(),
            },
            "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        }
        with Path(self.options.results).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        shown = f" {value / base:.2f}x {baseline} ({base:.1f})" if base else ""
        told = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in details.items())
        print(f"{name} {value:.2f} GB/s{shown} {told}", flush=True)


def timed(call: Callable[[int], Any], warm: int, repeats: int) -> list[float]:
    """Seconds of call(warm), call(warm + 1), ..., after call(0) to call(warm - 1)."""
    for k in range(warm):
        call(k)
    torch.cuda.synchronize()
    taken = []
    for k in range(warm, warm + repeats):
        begun = time.perf_counter()
        call(k)
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return taken


def check(same: bool, name: str) -> None:
    if not same:
        raise SystemExit(f"{name}: what was gathered is not what lies in the array")

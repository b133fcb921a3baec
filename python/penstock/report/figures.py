"""Numbers and parameters of measurements as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from penstock.bench.measurement import Measurement


def varying_params(measurements: Iterable[Measurement]) -> list[str]:
    """Parameters in which measurements of one id differ."""
    varying: dict[str, None] = {}
    ordered = sorted(measurements, key=lambda m: m.id)
    for _, group in groupby(ordered, key=lambda m: m.id):
        same_id = list(group)
        names = dict.fromkeys(name for m in same_id for name in m.params)
        varying |= {name: None for name in names if len({m.params.get(name) for m in same_id}) > 1}
    return list(varying)


def number(value: float | None) -> str:
    """Three digits, or all before the point; millions as such: 0.0449, 3.2, 66,509, 1.36 M."""
    if value is None:
        return ""
    for scale, prefix in ((1e9, " G"), (1e6, " M")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{prefix}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

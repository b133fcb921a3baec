"""What writing through a cache cost, as a table for people (see libs/bench/write_figures.hpp)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich import box
from rich.markup import escape
from rich.table import Table

from penstock.bench.measurement import Measurement
from penstock.report.figures import number
from penstock.sizes import format_bytes


def tells_of_writes(m: Measurement) -> bool:
    return "evicting_share" in m.details


def write_figures_table(measurements: Iterable[Measurement], name: Callable[[Measurement], str]) -> Table:
    """A row for each measurement that wrote through a cache."""
    table = Table(title="writes through the cache", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", overflow="fold", style="bold")
    for heading in (
        "thread time evicting",
        "misses that waited for a frame",
        "fewest clean frames (reserve)",
        "bytes changed",
        "written",
        "amplification",
        "commands per line",
        "drive writes per day, extrapolated",
    ):
        table.add_column(heading, justify="right", overflow="fold")
    for m in filter(tells_of_writes, measurements):
        table.add_row(escape(name(m)), *_figures(m))
    return table


def _figures(m: Measurement) -> list[str]:
    def detail(key: str) -> float | None:
        return m.details.get(key)

    return [
        _percent(detail("evicting_share")),
        _percent(detail("frame_wait_share")),
        _of_reserve(detail("least_clean_frames"), detail("reserved_frames")),
        format_bytes(int(detail("bytes_changed") or 0)),
        format_bytes(int(detail("bytes_written") or 0)),
        number(detail("write_amplification")),
        number(detail("commands_per_line")),
        number(detail("drive_writes_per_day")),
    ]


def _of_reserve(least: float | None, reserve: float | None) -> str:
    return "" if least is None else f"{number(least)} ({number(reserve)})"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.3g} %"

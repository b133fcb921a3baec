"""What a run of a regular workload cost, as a table for people."""

from __future__ import annotations

from rich import box
from rich.markup import escape
from rich.table import Table

from penstock.bench.measurement import Measurement
from penstock.report.figures import number
from penstock.sizes import format_bytes, format_seconds

NAMES = {"tiled": "explicit tiles", "naive": "cache, a[i]", "line": "cache, by lines"}


def access_table(title: str, measurements: list[Measurement]) -> Table:
    """A row for each way of access, and the ideal below."""
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    writes = any("write_amplification" in m.details for m in measurements)
    names = ["access", "time", "spread", "GB/s", "of tiles", "of ideal", "read", "amplification"]
    for name in names + (["written", "amplification"] if writes else []):
        table.add_column(name, justify="left" if name == "access" else "right", overflow="fold")
    for m in measurements:
        table.add_row(*_row(m, writes))
    if measurements:
        ideal = measurements[0]
        table.add_row(
            "ideal", format_seconds(ideal.details.get("ideal_seconds") or 0), "", number(ideal.baseline_value)
        )
    return table


def _row(m: Measurement, writes: bool) -> list[str]:
    tiled = m.params["access"] == "tiled"
    moved = m.line.get("bytes") or {}
    row = [
        escape(NAMES[m.params["access"]]),
        format_seconds(m.details.get("seconds") or 0),
        "" if m.spread is None else f"{100 * m.spread:.1f} %",
        number(m.value),
        "" if tiled else number(m.ratio),
        number(m.details.get("of_ideal")),
        format_bytes(moved.get("read") or 0),
        number(m.details.get("read_amplification")),
    ]
    if writes:
        row += [format_bytes(moved.get("written") or 0), number(m.details.get("write_amplification"))]
    return row


def notes(measurements: list[Measurement]) -> list[str]:
    """Where it ran, what the ideal is, and what else one must know to read the table."""
    first = measurements[0]
    facts = first.params
    drives = "" if facts["media"] == "file" else f" {facts['drives']} modelled {facts['media']},"
    cache, data = int(facts["cache_bytes"]), int(facts["bytes"])
    said = [
        f"executor {facts['executor']} ({first.machine.get('device', '')}), engine {facts['engine']},{drives}"
        f" cache {format_bytes(cache)} in lines of {format_bytes(int(facts['line_bytes']))}",
        f"ideal: the larger of reading at {_rate(first, 'peak_read_gb_per_s')}"
        + (
            f" and writing at {_rate(first, 'peak_write_gb_per_s')}"
            if "peak_write_gb_per_s" in first.details
            else ""
        )
        + (
            ", as measured by tiles without computing"
            if _measured(facts["media"])
            else ", as the drives are specified"
        ),
        "verified: each result was compared with a plain loop",
    ]
    most = first.details.get("most_of_ideal", 1) or 1
    if most < 1:
        said.append(
            f"these drives read and write at one rate: {number(most)} of the ideal is the most they give"
        )
    if len(measurements) > 1 and cache >= data:
        said.append("the cache holds all of the data: from the second run on nothing has to move")
    return said


def _measured(media: str) -> bool:
    return media in ("file", "none")


def _rate(m: Measurement, name: str) -> str:
    return f"{number(m.details.get(name))} GB/s"

"""Results and the doctor's findings, as tables for people."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from penstock.doctor import Row, State
from penstock.graph.results import GraphCost
from penstock.sizes import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from penstock.graph.cost_breakdown import Breakdown

STATE_STYLES: dict[State, str] = {"ok": "green", "limited": "yellow", "missing": "red"}


@dataclass(frozen=True)
class NamedPlaces:
    """Vertices by name: where a search began, and which stand out."""

    source: str | None
    most: list[tuple[str, str]]
    what: str = "most reached"


def doctor_table(rows: list[Row]) -> Table:
    table = Table(title="This machine", title_justify="left", expand=False)
    for name in ("what", "state", "found", "what it gives, and how to get it"):
        table.add_column(name, overflow="fold")
    for row in rows:
        style = STATE_STYLES[row.state]
        advice = f"{row.gives}\n-> {row.remedy}" if row.remedy else row.gives
        table.add_row(row.what, f"[{style}]{row.state}[/]", escape(row.found), escape(advice))
    return table


def doctor_summary(rows: list[Row]) -> str:
    """One line: what is there, and what is not."""
    groups = [(state, [r.what for r in rows if r.state == state]) for state in STATE_STYLES]
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in groups if names)


def explain_amplification(result: GraphCost) -> str:
    """One sentence on why more, or fewer, bytes moved than were asked for."""
    line = format_bytes(result.line_bytes)
    if result.bytes_asked == 0:
        return "no edge was read"
    if result.bytes_moved == 0:
        return "every edge was read without moving a byte"
    if result.cache_bytes >= result.edge_bytes and result.amplification > 1:
        return f"all edges fit the cache; what moved beyond the request is the rest of each {line} line"
    if result.amplification <= 1:
        return (
            "lines that stayed in the cache served later requests, so fewer bytes moved than were asked for"
        )
    degree = result.edge_bytes / max(result.vertices, 1)
    share = 100 * result.cache_bytes / max(result.edge_bytes, 1)
    return (
        f"a miss moves a whole {line} line, where a vertex's list takes {format_bytes(degree)} on average; "
        f"and a line moves again for each round that needs it, as the cache holds {share:.0f} % of the edges"
    )


def graph_table(result: GraphCost, places: NamedPlaces | None = None) -> Table:
    table = Table(title=f"{result.title} of {escape(result.graph)}", title_justify="left", show_header=False)
    table.add_column(justify="left", style="bold")
    table.add_column(justify="left", overflow="fold")
    sections = (_result_rows(result, places), _cache_rows(result), _machine_rows(result))
    for rows in sections:
        for name, value in rows:
            table.add_row(name, value)
        table.add_section()
    return table


def _result_rows(result: GraphCost, places: NamedPlaces | None) -> list[tuple[str, str]]:
    kind = "directed" if result.directed else "undirected, stored both ways"
    rows = [
        *result.found(),
        ("verified", _verdict(result)),
        ("graph", f"{result.vertices:,} vertices, {result.edges:,} edges ({kind})"),
    ]
    if hasattr(result, "source"):
        named = f" ({escape(places.source)})" if places and places.source else ""
        alone = "" if result.edges_traversed else ": no edge leaves it"
        rows.append(("source", f"{result.source}{named}{alone}"))
    rows += [
        ("edges traversed", f"{result.edges_traversed:,}"),
        (
            "time",
            f"{format_seconds(result.seconds)} (opening the graph: {format_seconds(result.load_seconds)})",
        ),
        ("TEPS", format_rate(result.teps, "TEPS")),
        *_trial_rows(result),
        ("strategy", _strategies(result)),
    ]
    if places and places.most:
        rows.append((places.what, ", ".join(f"{escape(name)} ({much})" for name, much in places.most)))
    return rows


def _trial_rows(result: GraphCost) -> list[tuple[str, str]]:
    if len(result.trial_seconds) < 2:
        return []
    least, most = min(result.trial_seconds), max(result.trial_seconds)
    middle = statistics.median(result.trial_seconds)
    return [
        (
            "trials",
            f"{len(result.trial_seconds)}: median {format_seconds(middle)}, {format_seconds(least)} to "
            f"{format_seconds(most)}; all else is of the last",
        )
    ]


def _strategies(result: GraphCost) -> str:
    taken = Counter(result.level_strategies)
    rounds = ", ".join(f"{name} in {count} of the rounds" for name, count in taken.most_common())
    return f"{result.strategy}: {rounds}" if rounds else result.strategy


def _verdict(result: GraphCost) -> str:
    if result.verified is None:
        return "not asked for (--verify)"
    took = f" (the check took {format_seconds(result.verify_seconds)})"
    if result.verified and result.shortcoming():
        return f"[green]yes[/], as what they are: ranks that have not converged{took}"
    return ("[green]yes[/]" if result.verified else "[red]no: the result is wrong[/]") + took


def _sectors(result: GraphCost) -> str:
    if result.sector_bytes == 0 or result.placement not in ("host", "pinned"):
        return ""
    over = result.sector_bytes / max(result.edge_bytes, 1)
    return f"; {format_bytes(result.sector_bytes)} of sectors over the link, {over:.2f} of the edges"


def _moved(result: GraphCost) -> str:
    over = result.bytes_moved / max(result.edge_bytes, 1)
    rate = format_bytes(result.bytes_moved / max(result.seconds, 1e-9))
    return f"{format_bytes(result.bytes_moved)}, {over:.2f} of the edges, {rate}/s"


PLACED = {
    "host": "mapped and read in place",
    "pinned": "copied to pinned memory and read in place",
    "hbm": "copied to the GPU",
    "host-cached": "mapped, behind a cache",
    "managed": "moved to the GPU page by page",
    "subgraph": "put together by CPU threads, list by list, and copied",
}


def _cache_rows(result: GraphCost) -> list[tuple[str, str]]:
    if result.frames == 0:
        where = PLACED.get(result.placement, "of which none was read")
        return [
            ("edges", f"{format_bytes(result.edge_bytes)}, {where}"),
            ("bytes asked", format_bytes(result.bytes_asked) + _sectors(result)),
            *([("bytes moved", _moved(result))] if result.bytes_moved else []),
            (
                "in memory",
                f"offsets ({format_bytes(result.offset_bytes)}), "
                f"vertex data ({format_bytes(result.vertex_bytes)})",
            ),
        ]
    size = (
        f"{format_bytes(result.cache_bytes)} in {result.frames:,} lines of {format_bytes(result.line_bytes)}"
    )
    storage = f"{_moved(result)}; offsets ({format_bytes(result.offset_bytes)}) "
    looked_for = max(result.hits + result.misses + result.joins, 1)
    misses = f"{result.misses:,}" + (
        f" (and {result.joins:,} waited for a fill under way)" if result.joins else ""
    )
    rows = [
        ("cache", f"{size}; the edges are {format_bytes(result.edge_bytes)}"),
        (
            "directory",
            f"{result.directory}; {format_bytes(result.directory_bytes_per_tib)} for a TiB of edges",
        ),
        ("hits", f"{result.hits:,}, {100 * result.hits / looked_for:.1f} % of what was looked for"),
        ("misses", misses),
        (
            "fills",
            f"{result.fills:,}, {format_rate(result.fills / max(result.seconds, 1e-9), 'IOPS')} "
            f"({result.prefetches:,} of them ahead of need; {result.evictions:,} evictions)",
        ),
        ("bytes asked", format_bytes(result.bytes_asked)),
        ("bytes moved", f"{storage}and vertex data ({format_bytes(result.vertex_bytes)}) were in memory"),
        ("amplification", f"{result.amplification:.2f}: {explain_amplification(result)}"),
    ]
    if result.retries or result.errors:
        rows.append(("retries, errors", f"{result.retries:,}, {result.errors:,}"))
    return rows


def _machine_rows(result: GraphCost) -> list[tuple[str, str]]:
    device = f" ({escape(result.device)})" if result.device else ""
    return [
        ("executor", f"{result.executor}{device}"),
        ("engine", result.engine),
        (
            "peak memory",
            f"{format_bytes(result.peak_rss_bytes)}, {format_bytes(result.file_rss_bytes)} of it files",
        ),
    ]


def breakdown_table(parts: Breakdown) -> Table:
    table = Table(title=f"{parts.title} of {parts.graph}: where the time goes", title_justify="left")
    table.add_column("part", style="bold")
    table.add_column("time", justify="right")
    table.add_column("share", justify="right")
    table.add_column("measured as")
    size = format_bytes(parts.cache_bytes)
    how = {
        "compute": f"edges in place ({format_seconds(parts.compute_seconds)})",
        "cache": f"a cache that has all edges ({format_seconds(parts.all_hit_seconds)}), less that",
        "storage": f"an empty cache of {size} ({format_seconds(parts.seconds)}), less that",
    }
    for name, part in parts.parts.items():
        sign = "-" if part < 0 else ""
        time = f"{sign}{format_seconds(abs(part))}"
        table.add_row(name, time, f"{100 * part / (parts.seconds or 1):.0f} %", how[name])
    if parts.verified is not None:
        table.caption = "each run verified" if parts.verified else "a result is wrong"
    return table

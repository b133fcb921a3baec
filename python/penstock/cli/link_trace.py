"""`penstock bfs --trace link`: the requests that cross the link, beside what the GPU counted there."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource
from rich.table import Table

from penstock.graph.link_counters import CountersMissing, LinkCounters
from penstock.graph.results import GraphCost
from penstock.sizes import format_bytes

IN_PLACE = ("host", "pinned")

trace_option = click.option(
    "--trace",
    type=click.Choice(["link"]),
    default=None,
    help="Sizes and counts of the requests that cross a GPU's link, from the lists that were read. "
    "Without --placement and --strategy: host, merged_aligned.",
)
DEFAULTS = {"placement": "host", "strategy": "merged_aligned"}


def with_defaults(context: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """Placement and strategy of a trace, where the user gave none."""
    chosen = {
        name: value
        for name, value in DEFAULTS.items()
        if context.get_parameter_source(name) is ParameterSource.DEFAULT
    }
    return {**options, **chosen}


class LinkTrace:
    """Made before the run, so that what the GPU counts begins with it."""

    def __init__(self, *, placement: str, **_: Any) -> None:
        """Raises ValueError for a run that has no trace."""
        if placement not in IN_PLACE:
            raise ValueError(
                f"--trace link: placement {placement} does not read edges over the link in place: choose "
                f"{' or '.join(IN_PLACE)}"
            )
        self.counters: LinkCounters | None = None
        self.received: int | None = None
        self.why_not = ""
        try:
            self.counters = LinkCounters()
        except CountersMissing as missing:
            self.why_not = str(missing)

    def of(self, result: GraphCost) -> dict[str, Any]:
        """The requests of the last trial, and what the GPU received meanwhile."""
        from penstock.graph import link_requests

        if self.counters is not None and result.executor == "cuda":
            self.received = self.counters.received()
        self.requests = link_requests(result)
        return self.requests.as_dict() | {"received_bytes": self.received}

    def table(self, result: GraphCost) -> Table:
        """REQUIRES: `of` was called."""
        found = self.requests
        table = Table(title="Requests over the link", title_justify="left", show_header=False)
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for size, count in found.counts.items():
            table.add_row(f"{size} B", f"{count:,}, {100 * found.share(size):.1f} %")
        over = found.bytes / max(found.edge_bytes, 1)
        moved = f"{format_bytes(found.bytes)}: {over:.2f} of the bytes of the lists"
        asked = f"{'at most ' if found.at_most else ''}{found.requests:,}, {moved}"
        table.add_row("requests", asked)
        table.add_row("counted there", self._counted(result))
        return table

    def _counted(self, result: GraphCost) -> str:
        if result.executor != "cuda":
            return "no GPU took part: these are the requests that a GPU makes for the same lists"
        if self.received is None:
            return f"no counters here: {self.why_not}"
        trials = len(result.trial_seconds)
        return f"{format_bytes(self.received)} received, with opening the graph, in {trials} trials"

"""A run over a graph, level by level: how many vertices, and what moved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.graph.results import GraphCost
from penstock.report.plot import COLOURS, GRID, STYLE, check_image, need_matplotlib, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_levels(result: GraphCost, path: Path) -> None:
    """Writes the plot to `path`, whose ending says the format.

    Raises ValueError for an ending that is none, Error without matplotlib and where it cannot be written.
    """
    check_image(path)
    need_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        save(figure_of(result), path)


def figure_of(result: GraphCost) -> Figure:
    """Bars for the vertices of each round, coloured by strategy; below, the rate at which bytes came."""
    from matplotlib.figure import Figure

    rounds = range(1, len(result.level_sizes) + 1)
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    sizes, rates = figure.subplots(2, 1, sharex=True)
    names = list(dict.fromkeys(result.level_strategies))
    for name, colour in zip(names, COLOURS * len(names), strict=False):
        mine = [k for k, strategy in zip(rounds, result.level_strategies, strict=True) if strategy == name]
        sizes.bar(mine, [result.level_sizes[k - 1] for k in mine], color=colour, label=name)
    sizes.set_yscale("log")
    sizes.set_ylabel("vertices")
    sizes.set_title(f"{result.title} of {result.graph}, edges in {result.placement}")
    if names:
        sizes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(names), borderaxespad=0.2)
    if result.level_bytes:
        moved = zip(result.level_bytes, result.level_seconds, strict=True)
        rates.bar(rounds, [bytes_ / max(seconds, 1e-9) / 1e9 for bytes_, seconds in moved], color=COLOURS[2])
        rates.set_ylabel("GB/s moved")
    else:
        rates.bar(rounds, [1e3 * seconds for seconds in result.level_seconds], color=COLOURS[2])
        rates.set_ylabel("ms")
    rates.set_xlabel("round")
    for panel in (sizes, rates):
        panel.grid(axis="y", color=GRID, linewidth=0.8)
        panel.set_axisbelow(True)
    return figure

"""Plots of measurements: lines over what was varied, bars beside their baselines for the rest."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.measurement import Measurement
from penstock.errors import Error
from penstock.report.figures import number
from penstock.report.series import Bar, Series, arrange
from penstock.report.whole_files import written_whole
from penstock.sizes import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")
# Okabe and Ito's, which people with any colour vision distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
BASELINE, INK, GRID = "#B8BCC2", "#333333", "#E4E6E9"
WIDE_RANGE = 16  # from there on an axis of lines is logarithmic
WIDE_BARS = 100  # from there on short bars are not seen: dots on a logarithmic axis
WIDTH, BAR_HEIGHT, LINES_HEIGHT, MARGIN = 9.0, 0.42, 4.2, 1.1  # inches
STYLE = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 9.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def check_image(path: Path) -> Path:
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"plot {path}: choose a name that ends with .png, .svg or .pdf")
    return path


def need_matplotlib() -> None:
    """Raises Error where there is none."""
    try:
        importlib.import_module("matplotlib")
    except ImportError as problem:
        raise Error(f"plot: {problem}: pip install 'penstock[plot]'") from problem


def draw(measurements: list[Measurement], path: Path) -> None:
    """Writes the plot to `path`, whose ending says the format.

    Raises ValueError for an ending that is none, Error without matplotlib and where it cannot be written.
    """
    check_image(path)
    need_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        save(figure_of(measurements), path)


def save(figure: Figure, path: Path) -> None:
    """Writes the image, whole or not at all. Raises Error whatever matplotlib raises."""
    with written_whole("plot", path, Exception) as beside:
        figure.savefig(beside, dpi=160, facecolor="white")


def figure_of(measurements: list[Measurement]) -> Figure:
    """A panel for each unit of bars, and for each unit and parameter of lines."""
    from matplotlib.figure import Figure

    series, bars = arrange(measurements)
    lines_by: dict[tuple[str, str], list[Series]] = {}
    for line in series:
        lines_by.setdefault((line.axis, line.unit), []).append(line)
    bars_by: dict[str, list[Bar]] = {}
    for bar in bars:
        bars_by.setdefault(bar.measurement.unit, []).append(bar)
    heights = [
        *(LINES_HEIGHT + 0.2 * max(0, len(lines) - 6) for lines in lines_by.values()),
        *(MARGIN + BAR_HEIGHT * len(group) for group in bars_by.values()),
    ]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.3), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, ((axis, unit), lines) in zip(axes, lines_by.items(), strict=False):
        draw_lines(panel, axis, unit, lines)
    for panel, (unit, group) in zip(axes[len(lines_by) :], bars_by.items(), strict=True):
        draw_bars(panel, unit, group)
    figure.supxlabel(caption(measurements), fontsize=7.5, color="#777777", x=0.99, ha="right")
    return figure


def draw_bars(panel: Axes, unit: str, bars: list[Bar]) -> None:
    """Ours above the baseline's, for each measurement; its ratio is written beside."""
    pairs = [(bar.measurement.value, bar.measurement.baseline_value) for bar in bars]
    known = [value for pair in pairs for value in pair if value is not None]
    names = list(dict.fromkeys(bar.measurement.baseline for bar in bars if bar.measurement.baseline))
    beside = names[0] if len(names) == 1 else "baseline" if names else ""
    if is_wide(known, WIDE_BARS):
        draw_as_dots(panel, pairs, beside)
        # With room for the text.
        panel.set_xlim(min(known) / 1.5, max(known) * (max(known) / min(known)) ** 0.15)
    else:
        draw_as_bars(panel, pairs, beside)
        plain_numbers(panel.xaxis)
        panel.set_xlim(0, 1.2 * max(known) if max(known) > 0 else 1)
    for y, bar in enumerate(bars):
        write_value(panel, y - (0.19 if beside else 0), bar.measurement)
    if beside:
        panel.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
    panel.set_yticks(range(len(bars)), [bar.label for bar in bars])
    panel.set_ylim(len(bars) - 0.4, -0.6)
    panel.set_xlabel(unit)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x", color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)


def draw_as_bars(panel: Axes, pairs: list[tuple[float, float | None]], beside: str) -> None:
    height, shift = (0.38, 0.19) if beside else (0.6, 0.0)
    panel.barh(
        [y - shift for y in range(len(pairs))],
        [ours for ours, _ in pairs],
        height,
        color=COLOURS[0],
        label="Penstock",
    )
    if beside:
        theirs = [value or 0.0 for _, value in pairs]
        panel.barh([y + shift for y in range(len(pairs))], theirs, height, color=BASELINE, label=beside)


def draw_as_dots(panel: Axes, pairs: list[tuple[float, float | None]], beside: str) -> None:
    panel.set_xscale("log")
    plain_ticks(panel.xaxis)
    for y, (ours, theirs) in enumerate(pairs):
        if theirs is not None:
            panel.plot([ours, theirs], [y, y], color=BASELINE, linewidth=1.5, zorder=1)
    at = list(range(len(pairs)))
    panel.scatter([ours for ours, _ in pairs], at, 45, color=COLOURS[0], label="Penstock", zorder=3)
    if beside:
        compared = [(value, y) for y, (_, value) in enumerate(pairs) if value is not None]
        x, y_of = zip(*compared, strict=True)
        panel.scatter(x, y_of, 45, color=BASELINE, label=beside, zorder=2)


def write_value(panel: Axes, y: float, m: Measurement) -> None:
    ratio = "" if m.ratio is None else f"  ({number(m.ratio)}x)"
    panel.annotate(
        number(m.value) + ratio,
        (m.value, y),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )


def draw_lines(panel: Axes, axis: str, unit: str, lines: list[Series]) -> None:
    """A line for each series, and a dashed one in its colour for its baseline."""
    from matplotlib.lines import Line2D

    baselines: dict[str, None] = {}
    for position, line in enumerate(lines):
        colour, marker = COLOURS[position % len(COLOURS)], MARKERS[position % len(MARKERS)]
        x = [point.x for point in line.points]
        panel.plot(
            x, [p.measurement.value for p in line.points], color=colour, marker=marker, label=line.label
        )
        compared = [(p.x, p.measurement) for p in line.points if p.measurement.baseline_value is not None]
        baselines |= {m.baseline or "baseline": None for _, m in compared}
        theirs = [m.baseline_value or 0.0 for _, m in compared]
        panel.plot([x for x, _ in compared], theirs, color=colour, linestyle="--", linewidth=1, alpha=0.7)
    panel.set_title(f"{unit} over {words(axis)}")
    panel.set_xlabel(words(axis))
    panel.set_ylabel(unit)
    scale_x(panel, axis, sorted({point.x for line in lines for point in line.points}))
    scale_y(panel, [point.measurement for line in lines for point in line.points])
    panel.grid(color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)
    ours, _ = panel.get_legend_handles_labels()
    dashed = [Line2D([], [], color=INK, linestyle="--", linewidth=1, label=name) for name in baselines]
    panel.legend(handles=[*ours, *dashed], loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def scale_x(panel: Axes, axis: str, values: list[float]) -> None:
    if is_wide(values):
        panel.set_xscale("log", base=2)
        panel.set_xticks(values, minor=False)
        panel.set_xticks([], minor=True)
    if is_wide(values) or axis.endswith("bytes") or len(values) <= 8:
        ticks = values if len(values) <= 12 else values[:: (len(values) + 11) // 12]
        panel.set_xticks(ticks, [tick(axis, value) for value in ticks])


def scale_y(panel: Axes, measurements: list[Measurement]) -> None:
    values = [m.value for m in measurements]
    values += [m.baseline_value for m in measurements if m.baseline_value is not None]
    if is_wide(values):
        panel.set_yscale("log")
        plain_ticks(panel.yaxis)
    else:
        plain_numbers(panel.yaxis)
        panel.set_ylim(bottom=min(0.0, *values))


def plain_ticks(axis: Axis) -> None:
    """1, 2, 5, 10 and 1,000 instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    plain_numbers(axis)


def plain_numbers(axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def is_wide(values: list[float], limit: float = WIDE_RANGE) -> bool:
    return min(values) > 0 and max(values) >= limit * min(values)


def words(axis: str) -> str:
    """A parameter with its unit: "block (bytes)" of block_bytes."""
    for ending in ("bytes", "ns", "us", "ms", "mib", "gib"):
        if axis.endswith(f"_{ending}"):
            return f"{axis.removesuffix(f'_{ending}').replace('_', ' ')} ({ending})"
    return axis.replace("_", " ")


def tick(axis: str, value: float) -> str:
    return format_bytes(value).replace(".0 ", " ") if axis.endswith("bytes") else f"{value:g}"


def caption(measurements: Iterable[Measurement]) -> str:
    """The machine, commit and date, where all measurements share them."""
    texts: list[Any] = []
    for name in ("ran_on", "commit", "date"):
        values = {getattr(m, name) for m in measurements}
        if len(values) == 1 and values != {"unknown"}:
            texts += values
    return "  ·  ".join(text for text in texts if text)

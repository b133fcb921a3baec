"""Measurements and topics, as tables for people."""

from __future__ import annotations

from collections.abc import Callable

from rich import box
from rich.markup import escape
from rich.table import Table

from penstock.bench.measurement import Measurement
from penstock.bench.topics import Topic
from penstock.report.figures import number, varying_params
from penstock.sizes import format_bytes


def topics_table(topics: list[Topic]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("topic", "what is measured", "options"):
        table.add_column(name, overflow="fold", style="bold" if name == "topic" else None)
    for topic in topics:
        table.add_row(
            topic.name, escape(topic.what), escape(" ".join(f"--{dashed(o)}" for o in topic.options))
        )
    return table


def dashed(option: str) -> str:
    return option.replace("_", "-")


def results_table(measurements: list[Measurement]) -> Table:
    """A row each. Empty columns are left out."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("id", overflow="fold", style="bold")
    columns = [
        *((name, _param(name)) for name in varying_params(measurements)),
        ("value", lambda m: with_unit(m.value, m.unit)),
        ("baseline", lambda m: m.baseline or ""),
        ("its value", lambda m: with_unit(m.baseline_value, m.unit)),
        ("ratio", lambda m: number(m.ratio)),
        ("spread", lambda m: "" if m.spread is None else f"{100 * m.spread:.1f} %"),
        ("SMs", lambda m: _count(m.sms)),
        ("warps", lambda m: _count(m.warps)),
        ("registers", lambda m: _count(m.registers)),
        ("local bytes", lambda m: _count(m.local_bytes)),
        ("accesses/s", lambda m: _detail(m, "rate", "{:,.0f}")),
        ("fills / LRU's", lambda m: _detail(m, "fills_over_lru", "{:.2f}")),
        ("of the time", _shares),
    ]
    cells = [[text_of(m) for m in measurements] for _, text_of in columns]
    shown = [(name, texts) for (name, _), texts in zip(columns, cells, strict=True) if any(texts)]
    for name, _ in shown:
        table.add_column(name, justify="left" if name == "baseline" else "right", overflow="fold")
    for position, m in enumerate(measurements):
        table.add_row(escape(m.id), *(escape(texts[position]) for _, texts in shown))
    return table


def notes(measurements: list[Measurement]) -> list[str]:
    """Where it ran, and what the directories cost: the little that holds for more than one row."""
    where = dict.fromkeys(_where(m) for m in measurements)
    directories = dict.fromkeys(_directory(m) for m in measurements)
    return [note for note in (*where, *directories) if note]


def _where(m: Measurement) -> str:
    executor = m.params.get("executor", "")
    return ", ".join(part for part in (m.ran_on, executor and f"executor {executor}") if part)


def _directory(m: Measurement) -> str:
    parts = []
    if m.directory_bytes_per_tib:
        parts.append(f"{format_bytes(m.directory_bytes_per_tib)} for a TiB of data")
    if m.metadata_bytes:
        parts.append(f"{format_bytes(m.metadata_bytes)} of metadata here")
    name = m.params.get("directory", "")
    if not name and not parts:
        return ""
    return f"directory {name}".rstrip() + (f": {', '.join(parts)}" if parts else "")


def with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{number(value)} {unit}"


def _detail(m: Measurement, name: str, form: str) -> str:
    value = m.details.get(name)
    return "" if value is None else form.format(value)


def _shares(m: Measurement) -> str:
    """What a run's time went into, largest first: details that are called share_WHAT."""
    shares = {
        name.removeprefix("share_"): v for name, v in m.details.items() if name.startswith("share_") and v
    }
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in ordered if share >= 0.01)


def _count(value: int) -> str:
    return f"{value:,}" if value else ""


def _param(name: str) -> Callable[[Measurement], str]:
    return lambda m: m.params.get(name, "")

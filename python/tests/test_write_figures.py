"""The table of what writing through a cache cost."""

from __future__ import annotations

from penstock.bench.measurement import Measurement
from penstock.cli.write_figures import tells_of_writes, write_figures_table
from rich.console import Console

FIGURES = {
    "evicting_share": 0.1504,
    "frame_wait_share": 0.0006,
    "least_clean_frames": 110,
    "reserved_frames": 128,
    "bytes_changed": 1 << 20,
    "bytes_written": 496 << 20,
    "write_amplification": 496.0,
    "commands_per_line": 0.0625,
    "drive_writes_per_day": 8.356,
}


def measured(details: dict[str, float]) -> Measurement:
    return Measurement.of({"id": "write.random8", "value": 1.0, "unit": "elements/s", "details": details})


def shown(*measurements: Measurement) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(write_figures_table(measurements, lambda m: m.id))
    return capture.get()


def test_each_figure_is_told_with_its_unit() -> None:
    text = shown(measured(FIGURES))
    for word in ("15 %", "0.06 %", "110 (128)", "1.0 MiB", "496", "0.0625", "8.36", "extrapolated"):
        assert word in text, word


def test_what_has_nothing_to_be_measured_against_stays_empty() -> None:
    some = {name: FIGURES[name] for name in ("evicting_share", "bytes_changed", "bytes_written")}
    assert "write.random8" in shown(measured(some))


def test_what_does_not_write_has_no_row() -> None:
    assert not tells_of_writes(measured({}))
    assert "write.random8" not in shown(measured({}))

from __future__ import annotations

from pathlib import Path
from typing import Any

import fakes
import pytest
from penstock.bench import Measurement, newest
from penstock.report import plot
from penstock.report.figures import number, varying_params
from penstock.report.series import arrange, family


def measured(value: float, name: str = "io.read", **params: Any) -> Measurement:
    texts = {key: str(text) for key, text in params.items()}
    return Measurement.of(fakes.make_line(id=name, value=value, params=texts))


def test_what_differs_in_one_number_is_one_line_in_its_order() -> None:
    measurements = [measured(float(n), threads=n, executor="cuda") for n in (64, 1024, 32)]
    (line,), bars = arrange([*measurements, measured(1.0, "io.write", threads=32)])
    assert (line.label, line.axis, line.unit) == ("io.read", "threads", "GB/s")
    assert [(p.x, p.measurement.value) for p in line.points] == [(32, 32.0), (64, 64.0), (1024, 1024.0)]
    assert [bar.label for bar in bars] == ["io.write"]


def test_what_differs_in_words_stays_bars_that_say_so() -> None:
    series, bars = arrange([measured(1.0, executor="cpu"), measured(2.0, executor="cuda")])
    assert series == []
    assert [bar.label for bar in bars] == ["io.read, executor cpu", "io.read, executor cuda"]


def test_two_numbers_are_a_line_for_each_value_of_the_one_with_fewer() -> None:
    measurements = [measured(1.0, queues=q, block_bytes=b) for q in (1, 2) for b in (512, 4096, 8192)]
    series, bars = arrange(measurements)
    assert [line.label for line in series] == ["io.read, queues 1", "io.read, queues 2"]
    assert {line.axis for line in series} == {"block_bytes"}
    assert bars == []


def test_a_number_that_follows_from_another_tells_no_lines_apart() -> None:
    (line,), _ = arrange([measured(1.0, drives=d, queues=4 * d) for d in (1, 2, 4)])
    assert (line.label, len(line.points)) == ("io.read", 3)


def test_numbers_that_never_meet_are_bars() -> None:
    series, bars = arrange([measured(1.0, threads=1, note="a"), measured(1.0, threads=1, note="b")])
    assert series == []
    assert len(bars) == 2


@pytest.mark.parametrize(
    ("name", "size", "family_name"),
    [
        ("miss.line4k.host", {"line_bytes": 4096}, "miss.line.host"),
        ("latency.first512.hbm.p5800x", {"line_bytes": 512}, "latency.first.hbm.p5800x"),
        ("io.512.hbm.onequeue", {"block_bytes": 512}, "io.hbm.onequeue"),
        ("table5.3.512.read", {"block_bytes": 512}, "table5.3.read"),
        ("io.64k.write", {"block_bytes": 65536}, "io.write"),
        ("hit.linear", {"line_bytes": 512}, "hit.linear"),
        ("io.512.hbm", {}, "io.512.hbm"),
    ],
)
def test_a_family_has_no_size_in_its_name(name: str, size: dict[str, int], family_name: str) -> None:
    assert family(measured(1.0, name, **size)) == family_name


def test_sizes_of_lines_are_one_line_of_latencies() -> None:
    measurements = [
        measured(float(n), f"latency.{what}{text}.hbm", line_bytes=n)
        for what in ("first", "whole")
        for n, text in ((512, "512"), (1024, "1k"), (8192, "8k"))
    ]
    series, bars = arrange(measurements)
    assert [(line.label, line.axis, len(line.points)) for line in series] == [
        ("latency.first.hbm", "line_bytes", 3),
        ("latency.whole.hbm", "line_bytes", 3),
    ]
    assert bars == []


def test_one_size_keeps_its_id_over_what_else_was_varied() -> None:
    (line,), _ = arrange([measured(1.0, "io.512.hbm", block_bytes=512, threads=n) for n in (1, 2, 4)])
    assert (line.label, line.axis) == ("io.512.hbm", "threads")


def test_two_sizes_over_drives_are_two_lines() -> None:
    series, _ = arrange(
        [
            measured(1.0, f"io.{text}.hbm", block_bytes=n, drives=d)
            for n, text in ((512, "512"), (4096, "4k"))
            for d in (1, 2, 4)
        ]
    )
    assert [line.label for line in series] == ["io.hbm, block bytes 512", "io.hbm, block bytes 4096"]
    assert {line.axis for line in series} == {"drives"}


def test_the_newest_of_what_was_measured_twice_counts() -> None:
    measurements = [measured(1.0, threads=1), measured(2.0, threads=2), measured(3.0, threads=1)]
    assert [m.value for m in newest(measurements)] == [3.0, 2.0]


def test_varying_parameters_are_those_within_one_id() -> None:
    assert varying_params([measured(1.0, a=1, b=1), measured(1.0, "other", a=2, b=1)]) == []
    assert varying_params([measured(1.0, a=1, b=1), measured(1.0, a=2, b=1)]) == ["a"]
    assert varying_params([measured(1.0, a=1), measured(1.0)]) == ["a"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.04491, "0.0449"), (66509, "66,509"), (1358211, "1.36 M"), (2e9, "2 G")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_axes_of_a_wide_range_are_logarithmic() -> None:
    wide = [measured(n / 10, threads=n, executor="cuda") for n in (32, 64, 1024)]
    narrow = [measured(1.0 + n / 10, "io.drives", drives=n) for n in (1, 2, 4)]
    wide_panel, narrow_panel = plot.figure_of([*wide, *narrow]).axes
    assert (wide_panel.get_xscale(), wide_panel.get_yscale()) == ("log", "log")
    assert (narrow_panel.get_xscale(), narrow_panel.get_yscale()) == ("linear", "linear")
    assert [t.get_text() for t in narrow_panel.get_xticklabels()] == ["1", "2", "4"]
    assert narrow_panel.get_ylim()[0] == 0


def test_lines_of_512_bytes_to_8_kib_do_not_crowd_the_axis() -> None:
    (panel,) = plot.figure_of([measured(1.0, line_bytes=512 << k) for k in range(5)]).axes
    assert panel.get_xscale() == "log"


def test_bytes_on_an_axis_are_written_as_such() -> None:
    (panel,) = plot.figure_of([measured(1.0, block_bytes=n) for n in (512, 4096, 65536)]).axes
    assert panel.get_xlabel() == "block (bytes)"
    assert panel.get_ylabel() == "GB/s"
    assert [t.get_text() for t in panel.get_xticklabels()] == ["512 B", "4 KiB", "64 KiB"]


def test_bars_have_a_panel_for_each_unit_and_name_the_baseline() -> None:
    other = Measurement.of(
        fakes.make_line(id="bfs", unit="s", baseline=None, baseline_value=None, ratio=None)
    )
    rate, time = plot.figure_of([measured(1.0), other]).axes
    legend = rate.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["Penstock", "a hose"]
    assert (rate.get_xlabel(), time.get_xlabel()) == ("GB/s", "s")
    assert time.get_legend() is None


def test_bars_too_short_to_be_seen_become_dots() -> None:
    (panel,) = plot.figure_of([measured(0.01, "a"), measured(100.0, "b")]).axes
    assert panel.get_xscale() == "log"


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_every_format_is_written(tmp_path: Path, ending: str) -> None:
    mixed = [measured(0.0), measured(5.0, "a"), *(measured(1.0, "io.drives", drives=n) for n in (1, 100))]
    image = tmp_path / "new" / f"all{ending}"
    plot.draw(mixed, image)
    assert image.stat().st_size > 1000

from __future__ import annotations

from typing import Any

import fakes
import pytest
from penstock.cli import graph_report
from penstock.doctor import Row
from rich.console import Console


def text_of(table: Any) -> str:
    console = Console(width=160, record=True, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"bytes_asked": 0, "bytes_moved": 0, "amplification": 0.0}, "no edge was read"),
        ({"bytes_moved": 0, "amplification": 0.0}, "without moving a byte"),
        ({"amplification": 4.0}, "all edges fit the cache"),
        ({"amplification": 0.5, "edge_bytes": 1 << 20}, "stayed in the cache"),
        ({"amplification": 4.0, "edge_bytes": 1 << 20}, "whole 4.0 KiB line"),
    ],
)
def test_amplification_is_explained(changes: dict[str, Any], part: str) -> None:
    assert part in graph_report.explain_amplification(fakes.make_result(**changes))


@pytest.mark.parametrize(
    ("verified", "part"), [(None, "not asked for"), (True, "yes"), (False, "no: the result is wrong")]
)
def test_the_verdict_is_told(verified: bool | None, part: str) -> None:
    assert part in text_of(graph_report.graph_table(fakes.make_result(verified=verified)))


def test_retries_and_errors_are_told_when_there_are_some() -> None:
    assert "retries" not in text_of(graph_report.graph_table(fakes.make_result()))
    assert "7, 2" in text_of(graph_report.graph_table(fakes.make_result(retries=7, errors=2)))


def test_brackets_in_names_are_no_markup() -> None:
    places = graph_report.NamedPlaces("[red]x[/]", [("[b]y", "3")])
    text = text_of(graph_report.graph_table(fakes.make_result(graph="a[b]c"), places))
    assert "[red]x[/]" in text
    assert "[b]y (3)" in text
    assert "a[b]c" in text


def test_doctor_summary_groups_by_state() -> None:
    rows = [Row("a", "ok", "", ""), Row("b", "missing", "", ""), Row("c", "ok", "", "")]
    assert graph_report.doctor_summary(rows) == "ok: a, c; missing: b"
    assert "a" in text_of(graph_report.doctor_table(rows))

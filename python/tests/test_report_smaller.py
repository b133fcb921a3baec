"""What stands in for a measurement that is not there: a smaller graph, the seconds of single lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from penstock.report import papers
from penstock.report.papers.rows import Point, Term
from penstock.report.papers.terms import RunIndex

TERM = {"id": "graph.cold.bfs.kron:24.auto", "over": {"id": "graph.hbm.bfs.kron:24.auto"}}


def line(id: str, value: float, **more: Any) -> dict[str, Any]:
    return {"id": id, "value": value, "unit": "s", "machine": {"name": "M"}, **more}


def read(tmp_path: Path, *given: dict[str, Any]) -> list[papers.RunLine]:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in given))
    return papers.read_run_files([path])


def searches(scale: int, cold: float, hbm: float) -> list[dict[str, Any]]:
    return [
        line(f"graph.cold.bfs.kron:{scale}.auto", cold),
        line(f"graph.hbm.bfs.kron:{scale}.auto", hbm),
    ]


POINT = Point("time", None, (Term.of(TERM, "here"),), unit="x", better="lower")


def test_the_figures_own_graph_comes_first(tmp_path: Path) -> None:
    index = RunIndex(read(tmp_path, *searches(24, 6, 2), *searches(22, 8, 2)))
    found = index.point_or_smaller(POINT)
    assert found is not None
    assert (found.value, found.instead) == (3, "")


def test_the_largest_smaller_graph_that_has_all_lines_stands_in(tmp_path: Path) -> None:
    lines = [line("graph.cold.bfs.kron:22.auto", 9), *searches(20, 8, 2), *searches(16, 5, 1)]
    index = RunIndex(read(tmp_path, *lines))
    found = index.point_or_smaller(POINT)
    assert found is not None
    assert (found.value, found.instead) == (4, "kron:20")
    assert index.point(POINT) is None


def test_a_larger_graph_is_none_that_stands_in(tmp_path: Path) -> None:
    assert RunIndex(read(tmp_path, *searches(26, 6, 2))).point_or_smaller(POINT) is None


def test_a_cpu_has_no_registers_of_a_gpu(tmp_path: Path) -> None:
    counted, none = read(tmp_path, line("a", 1.0, registers=32), line("a", 1.0, registers=0))
    assert (counted.field("registers"), none.field("registers")) == (32, None)


@pytest.mark.parametrize(
    ("run", "seconds", "commands"),
    [
        ({"params": {"command": "measure"}}, 7.0, ["measure"]),
        ({"params": {"command": "measure"}, "machine": {"name": "N"}}, 2.0, []),
        ({"params": {"command": "another"}}, 2.0, []),
    ],
)
def test_seconds_of_a_command_are_those_of_its_run_on_the_machine_of_the_lines(
    run: dict[str, Any], seconds: float, commands: list[str], tmp_path: Path
) -> None:
    shown = line("fig5.6.read", 5e6, params={"drives": "1", "threads": "16384"}, command="measure")
    shown["details"] = {"wall_seconds": 2.0}
    lines = read(tmp_path, shown, line("report.run", 9.0, **run), line("report.run", 7.0, **run))
    (listed,) = papers.listing(papers.load_papers(), lines, ["dissertation.fig5.6"])
    assert (listed.seconds, list(listed.commands)) == (seconds, commands)
    assert listed.took.startswith("7.00 s on M: measure" if commands else "2.00 s for 1 of its 1")


def test_the_page_names_other_commands_than_the_figures_own(tmp_path: Path) -> None:
    known = papers.load_papers()
    own = next(f.command for paper in known for f in paper.figures if f.key == "dissertation.fig5.6")
    for command in ("penstock bench io --smaller", own):
        where = {"drives": "1", "threads": "16384"}
        lines = read(tmp_path, line("fig5.6.read", 5e6, params=where, command=command))
        text = papers.page(papers.evaluate(known, [], lines, ["dissertation.fig5.6"]))
        assert ("<dt>Measured by</dt><dd><code>penstock bench io --smaller</code>" in text) == (
            command != own
        )
        assert ("<dt>Sizes</dt>" in text) == (command != own)
        assert "<dt>Again</dt>" in text

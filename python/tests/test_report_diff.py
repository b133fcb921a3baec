"""Two sets of result lines side by side, and the rank test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from penstock.cli import main as cli
from penstock.report.comparing import Comparison, compare
from penstock.report.papers import read_run_files


def line(id: str, value: float, unit: str = "s", **more: Any) -> dict[str, Any]:
    return {"id": id, "value": value, "unit": unit, **more}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def compared(tmp_path: Path, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> Comparison:
    paths = [write(tmp_path / name, *lines) for name, lines in (("a.jsonl", first), ("b.jsonl", second))]
    return compare(*(read_run_files([path]) for path in paths))


def test_the_newest_lines_of_equal_parameters_are_compared(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        [
            line("x", 9.0, date="2026-01-01"),
            line("x", 2.0, date="2026-01-02"),
            line("x", 5.0, params={"n": 1}),
        ],
        [line("x", 3.0), line("x", 5.0, params={"n": 2}), line("y", 1.0)],
    )
    (difference,) = found.differences
    assert (difference.first, difference.second, difference.ratio) == (2.0, 3.0, 1.5)
    assert (found.only_first, found.only_second) == (0, 1)


def test_parameters_of_the_machine_may_differ_and_are_named(tmp_path: Path) -> None:
    first = line("x", 2.0, params={"threads": 8, "n": 1})
    (difference,) = compared(tmp_path, [first], [line("x", 3.0, params={"threads": 16, "n": 1})]).differences
    assert difference.differing == {"threads": ("8", "16")}
    assert compared(tmp_path, [first], [line("x", 3.0, params={"threads": 8, "n": 2})]).differences == []


def test_repeats_are_tested_by_their_ranks(tmp_path: Path) -> None:
    low, high = [1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4]
    (apart,) = compared(tmp_path, [line("x", 1.2, values=low)], [line("x", 2.2, values=high)]).differences
    assert apart.p == pytest.approx(2 / 252)  # 5 of 10 ranks, both tails
    assert apart.changed is True
    assert apart.faster == "first"
    (same,) = compared(tmp_path, [line("x", 1.2, values=low)], [line("x", 1.2, values=low)]).differences
    assert same.changed is False
    (single,) = compared(tmp_path, [line("x", 1.2)], [line("x", 2.2)]).differences
    assert (single.p, single.changed, single.faster) == (None, None, "")


def test_a_repeat_that_is_no_number_is_no_sample(tmp_path: Path) -> None:
    nan = float("nan")
    first, second = line("x", 1.0, values=[1.0, nan, 1.1]), line("x", 2.0, values=[nan, nan])
    (difference,) = compared(tmp_path, [first], [second]).differences
    assert (difference.first_samples, difference.second_samples) == (2, 1)
    assert (difference.p, difference.changed, difference.ratio) == (None, None, 2.0)


def test_repeats_that_are_all_alike_did_not_change(tmp_path: Path) -> None:
    same = line("x", 1.0, values=[1.0, 1.0, 1.0])
    (difference,) = compared(tmp_path, [same], [same]).differences
    assert (difference.p, difference.changed) == (1.0, False)


def test_more_is_faster_in_a_rate_and_neither_in_a_share(tmp_path: Path) -> None:
    low, high = [1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4]
    for unit, faster in (("GB/s", "second"), ("us a line", "first"), ("of reads", "")):
        sets = [line("x", 1.2, unit, values=low)], [line("x", 2.2, unit, values=high)]
        assert compared(tmp_path, *sets).differences[0].faster == faster


def test_lines_of_one_machine_are_samples_and_those_of_another_are_not(tmp_path: Path) -> None:
    first = [line("x", v, machine={"name": name}) for v, name in ((9.0, "N"), (1.0, "M"), (2.0, "M"))]
    (difference,) = compared(tmp_path, first, [line("x", 3.0)]).differences
    assert (difference.first_samples, difference.second_samples) == (2, 1)


def test_what_changed_comes_first_then_the_size_of_the_change(tmp_path: Path) -> None:
    low, high = [1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4]
    first = [line("small", 1.0), line("large", 1.0), line("sure", 1.2, values=low)]
    second = [line("small", 1.1), line("large", 0.1), line("sure", 2.2, values=high)]
    assert [d.id for d in compared(tmp_path, first, second).differences] == ["sure", "large", "small"]


def test_the_command_prints_a_table_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(write(tmp_path / f"{name}.jsonl", line("x", v))) for name, v in (("a", 2.0), ("b", 3.0))]
    assert cli.main(["report", "diff", *paths]) == 0
    out = capsys.readouterr().out
    assert "1.5" in out
    assert "1 in both, 0 with repeats" in out
    assert cli.main(["report", "diff", *paths, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"][0]["ratio"] == 1.5


def test_sets_without_a_common_measurement_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(write(tmp_path / f"{name}.jsonl", line(name, 1.0))) for name in ("a", "b")]
    assert cli.main(["report", "diff", *paths]) == cli.REFUSED
    assert "they have no measurement in common" in capsys.readouterr().err

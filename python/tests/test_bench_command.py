"""`penstock bench` and `penstock plot`, above a stand-in for the compiled part."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fakes
import penstock
import pytest
from penstock import bench
from penstock.cli import main as cli


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeNative:
    fake = fakes.FakeNative()
    monkeypatch.setitem(sys.modules, "penstock._native", fake)
    monkeypatch.setattr(penstock, "_native", fake, raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    return fake


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The sentence with which a command is refused."""
    assert cli.main(list(arguments)) == cli.REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    return err


def write_results(path: Path, *lines: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.mark.parametrize("arguments", [["bench"], ["bench", "--list"]])
def test_topics_and_their_options_are_listed(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    for word in ("flow", "water through a pipe", "--pipe-bytes --executor", "--server-sms", "leak"):
        assert word in out


def test_a_topic_has_an_option_for_each_of_the_registry(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "flow", "--help"]) == 0
    out = capsys.readouterr().out
    for word in ("--pipe-bytes VALUE", "its width", "--executor VALUE", "--json", "--output", "--plot"):
        assert word in out


def test_only_the_options_that_are_given_reach_the_compiled_part(native: fakes.FakeNative) -> None:
    assert cli.main(["bench", "flow", "--pipe-bytes", "4096"]) == 0
    assert native.asked == {"topic": "flow", "options": {"pipe_bytes": "4096"}}
    assert cli.main(["bench", "flow", "--server-sms", "8"]) == 0
    assert native.asked == {"topic": "flow", "options": {"server-sms": "8"}}


def test_the_table_has_ours_and_the_baseline(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str]
) -> None:
    native.measurements = [fakes.make_line(), fakes.make_line(id="flow.bare", baseline=None, ratio=None)]
    assert cli.main(["bench", "flow"]) == 0
    out, err = capsys.readouterr()
    for word in ("flow.wide", "6 GB/s", "a hose", "8 GB/s", "0.75", "2.5 %", "132", "1,056", "40"):
        assert word in out
    assert "local bytes" not in out
    assert "H200 in a rack, NVIDIA H200, executor cuda" in out
    assert "directory direct: 2.0 GiB for a TiB of data, 1.0 MiB of metadata here" in out
    assert err == ""


def test_columns_come_where_they_tell_something(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str]
) -> None:
    spilled = fakes.make_line(details={"local_bytes": 24}, params={"threads": "64"})
    native.measurements = [fakes.make_line(params={"threads": "32"}), spilled]
    assert cli.main(["bench", "flow"]) == 0
    header, *_ = (line for line in capsys.readouterr().out.splitlines() if "baseline" in line)
    assert header.split()[:3] == ["id", "threads", "value"]
    assert "local bytes" in header


def test_json_lines_are_what_was_measured(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    native.measurements = [fakes.make_line(), fakes.make_line(id="flow.narrow", value=1.5)]
    file = tmp_path / "new" / "flow.jsonl"
    assert cli.main(["bench", "flow", "--json", "--output", str(file)]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [json.loads(line) for line in file.read_text().splitlines()] == printed
    assert cli.main(["bench", "flow", "--output", str(file)]) == 0
    kept = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(each["details"].pop("wall_seconds") >= 0 for each in kept)
    assert kept == native.measurements * 2
    assert [m.id for m in bench.read_lines(file)] == ["flow.wide", "flow.narrow"] * 2


def test_what_was_measured_before_a_failure_is_kept(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    native.problem = penstock.Error("measure hits: 3 threads read wrong elements")
    file = tmp_path / "flow.jsonl"
    assert "3 threads" in refusal(capsys, "bench", "flow", "--output", str(file))
    assert [m.id for m in bench.read_lines(file)] == ["flow.wide"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["bench", "flood"], "bench flood: there is no such topic: choose one of flow, leak"),
        (["bench", "flow", "--frames", "1"], "No such option"),
        (["bench", "flow", "--pipe-bytes"], "requires an argument"),
        (["bench", "flow", "--plot", "x.bmp"], "plot x.bmp: choose a name that ends with .png, .svg or .pdf"),
        (["bench", "flow", "--output", "/dev/null/x"], "/dev/null"),
        (["plot"], "Missing argument"),
        (["plot", "x.jsonl", "x.bmp"], "choose a name that ends with .png, .svg or .pdf"),
        (["plot", "/nowhere/x.jsonl", "x.png"], "/nowhere/x.jsonl: No such file"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    assert part in refusal(capsys, *arguments)
    assert native.asked == {}


@pytest.mark.parametrize(
    "problem",
    [
        ValueError("measure pipe_bytes=x: it is no whole number: give one such as 1"),
        penstock.Error("measure hits: 3 threads read wrong elements"),
    ],
)
def test_what_a_topic_refuses_is_told_in_one_sentence(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], problem: Exception
) -> None:
    native.problem = problem
    assert str(problem) in refusal(capsys, "bench", "flow")


def test_interrupted(native: fakes.FakeNative, capsys: pytest.CaptureFixture[str]) -> None:
    native.problem = KeyboardInterrupt()
    assert cli.main(["bench", "flow"]) == cli.INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


def test_a_missing_compiled_part_leaves_the_plots(
    native: fakes.FakeNative,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setitem(sys.modules, "penstock._native", None)
    monkeypatch.delattr(penstock, "_native")
    assert "reinstall" in refusal(capsys, "bench", "flow")
    file = write_results(tmp_path / "flow.jsonl", fakes.make_line())
    assert cli.main(["plot", file, str(tmp_path / "flow.svg")]) == 0


def test_results_are_plotted_after_a_run_and_from_a_file(native: fakes.FakeNative, tmp_path: Path) -> None:
    file, image = tmp_path / "flow.jsonl", tmp_path / "new" / "flow.svg"
    assert cli.main(["bench", "flow", "--output", str(file), "--plot", str(image)]) == 0
    assert "flow.wide" in image.read_text()
    image.unlink()
    assert cli.main(["plot", str(file), str(file), str(image)]) == 0
    assert "flow.wide" in image.read_text()


def test_plot_takes_what_is_asked_for(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = [fakes.make_line(), fakes.make_line(id="leak.slow"), fakes.make_line(value=7.0)]
    file, image = write_results(tmp_path / "flow.jsonl", *lines), tmp_path / "flow.svg"
    assert cli.main(["plot", "--only", "flow", file, str(image)]) == 0
    assert "1 measurement:" in capsys.readouterr().out
    text = image.read_text()
    assert "leak.slow" not in text
    assert ">7  (" in text
    assert "no measurement with 'flood'" in refusal(capsys, "plot", "--only", "flood", file, str(image))


def test_without_matplotlib_nothing_is_measured(
    native: fakes.FakeNative,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    image = str(tmp_path / "flow.png")
    assert "pip install 'penstock[plot]'" in refusal(capsys, "bench", "flow", "--plot", image)
    assert native.asked == {}
    assert "pip install 'penstock[plot]'" in refusal(capsys, "plot", "flow.jsonl", image)


def test_run_gives_measurements(native: fakes.FakeNative) -> None:
    seen: list[tuple[str, int, int]] = []
    told: list[bench.Measurement] = []
    (found,) = bench.run(
        "flow", {"pipe_bytes": 64}, progress=lambda *step: seen.append(step), found=told.append
    )
    assert told == [found]
    assert (found.id, found.value, found.ratio, found.registers) == ("flow.wide", 6.0, 0.75, 40)
    assert seen == [("flow.wide", 0, 1)]
    assert native.asked["options"] == {"pipe_bytes": "64"}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "line 2: it is no JSON"),
        ("[1]", "line 2: it is no JSON object"),
        ("{}", "line 2: it has no id and no value and no unit"),
        ('{"id": "a", "value": null, "unit": "s"}', "line 2: it has no value"),
        ('{"id": "a", "value": NaN, "unit": "s"}', "line 2: its value is nan"),
        ('{"id": "a", "value": "", "unit": "s"}', "line 2: its field value is ''"),
        ('{"id": "a", "value": 1, "unit": "s", "machine": ["a"]}', r"line 2: its field machine is \['a'\]"),
        ('{"id": "a", "value": 1, "unit": "s", "ratio": {}}', "line 2: its field ratio is {}"),
    ],
)
def test_a_line_that_is_no_measurement_is_refused(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(fakes.make_line()) + "\n" + text + "\n")
    with pytest.raises(ValueError, match=part):
        bench.read_lines(file)


def test_lines_with_all_repeats_or_a_named_machine_are_read(tmp_path: Path) -> None:
    every = {
        "id": "a",
        "unit": "s",
        "median": 2.0,
        "values": [1.0, 2.0, 3.0],
        "baseline": 4.0,
        "machine": "one",
    }
    named = {
        "id": "b",
        "unit": "s",
        "value": 1,
        "baseline": "another",
        "baseline_value": 3,
        "machine": {"name": "two"},
    }
    first, second = bench.read_lines(Path(write_results(tmp_path / "r.jsonl", every, named)))
    assert (first.value, first.baseline, first.baseline_value, first.ran_on) == (2.0, None, 4.0, "one")
    assert (second.value, second.baseline, second.baseline_value, second.ran_on) == (1.0, "another", 3, "two")

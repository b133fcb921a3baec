"""`penstock report --quick`, above a stand-in for the compiled part."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import fakes
import penstock
import pytest
from penstock import bench
from penstock.cli import main as cli
from penstock.cli.ended import EndedError
from penstock.errors import Error
from penstock.report import quick


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeNative:
    fake = fakes.FakeNative()
    monkeypatch.setitem(sys.modules, "penstock._native", fake)
    monkeypatch.setattr(penstock, "_native", fake, raising=False)
    fake.measurements = [
        fakes.make_line(id="hit.linear.direct", value=3.0, unit="GB/s", params={"executor": "cpu"})
    ]
    return fake


def test_what_is_measured_is_kept_and_reported(
    native: fakes.FakeNative, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "r.html"
    assert cli.main(["report", "--quick", "-o", str(page)]) == 0
    steps = quick.steps_of("cpu")
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == len(steps)
    err = capsys.readouterr().err
    assert err.count("1 measurements, each answer checked") == len(steps)
    article = page.read_text().partition('id="dissertation.fig5.11"')[2].partition("</article>")[0]
    assert "no GPU took part" in article
    assert "An H200 instead" not in article
    figures = {
        f["key"]: f for p in json.loads((tmp_path / "r.json").read_text())["papers"] for f in p["figures"]
    }
    assert figures["dissertation.fig5.11"]["points"][0]["ours"] == 3.0


def test_a_step_that_fails_is_named_and_makes_the_command_fail(
    native: fakes.FakeNative, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    native.problem = Error("bench: an element was read wrong")
    assert cli.main(["report", "--quick", "-o", str(tmp_path / "r.html")]) == cli.REFUSED
    err = capsys.readouterr().err
    assert "an element was read wrong" in err
    assert "8 of its steps failed" in err
    assert (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (KeyboardInterrupt(), cli.INTERRUPTED, "penstock: interrupted\n"),
        (EndedError(15), 128 + 15, "1 measurements, each answer checked\n"),
    ],
)
def test_an_interrupt_ends_the_steps_and_what_was_measured_is_reported(
    native: fakes.FakeNative,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    status: int,
    said: str,
) -> None:
    run, begun = bench.run, []

    def interrupted(topic: str, *arguments: Any, **options: Any) -> Any:
        begun.append(topic)
        if len(begun) == 3:
            raise raised
        return run(topic, *arguments, **options)

    monkeypatch.setattr(bench, "run", interrupted)
    assert cli.main(["report", "--quick", "-o", str(tmp_path / "r.html")]) == status
    assert len(begun) == 3
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2
    assert "hit.linear.direct" in (tmp_path / "r.html").read_text()
    assert capsys.readouterr().err.endswith(said)


def test_an_interrupt_before_anything_is_measured_writes_no_page(
    native: fakes.FakeNative, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "run", interrupted)
    assert cli.main(["report", "--quick", "-o", str(tmp_path / "r.html")]) == cli.INTERRUPTED
    assert not (tmp_path / "r.html").exists()


def test_results_that_cannot_be_written_end_the_steps(
    native: fakes.FakeNative,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: Any) -> None:
        raise Error("write r.jsonl: No space left on device: make room, or choose another file")

    monkeypatch.setattr(quick, "append_lines", full)
    outcomes = list(quick.run_steps(quick.steps_of("cpu"), tmp_path / "r.jsonl"))
    assert [(outcome.measurements, outcome.problem[:12]) for outcome in outcomes] == [(0, "write r.json")]
    assert cli.main(["report", "--quick", "-o", str(tmp_path / "r.html")]) == cli.REFUSED
    assert "1 of its steps failed" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_lines_for_which_there_is_no_room_leave_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    measurement = bench.Measurement.of(fakes.make_line())
    bench.append_lines([measurement], path)
    written = path.read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(written) + 9, before[1]))
    try:
        with pytest.raises(Error, match=rf"write {path}: File too large: make room, or choose another file"):
            bench.append_lines([measurement], path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == written


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--only", "Figure 99"], "report --only Figure 99: no figure has that in its name"),
        (["-o", "r.json"], "the JSON beside it has that name"),
        (["-o", "missing/r.html"], "there is no folder missing"),
    ],
)
def test_nothing_is_measured_for_a_page_that_cannot_be(
    words: list[str],
    part: str,
    native: fakes.FakeNative,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "--quick", *words]) == cli.REFUSED
    err = capsys.readouterr().err
    assert part in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_no_step_begins_when_the_time_is_over(native: fakes.FakeNative, tmp_path: Path) -> None:
    times = iter([0.0, 0.0, 20.0, 30.0, 90.0])
    steps = [quick.Step("flow", {"n": "1"}), quick.Step("flow", {"n": "2"})]
    outcomes = list(quick.run_steps(steps, tmp_path / "r.jsonl", limit_s=60, clock=lambda: next(times)))
    assert [outcome.measurements for outcome in outcomes] == [1, 0]
    assert outcomes[1].problem == "not begun: 60 s were over"
    assert native.asked["options"] == {"n": "1"}


def test_a_step_that_runs_too_long_is_stopped_and_what_it_measured_is_kept(
    native: fakes.FakeNative, tmp_path: Path
) -> None:
    times = iter([0.0, 1.0, 50.0, 52.0, 60.0, 130.0])
    steps = [quick.Step("flow", {"n": "1"}), quick.Step("flow", {"n": "2"})]
    results = tmp_path / "r.jsonl"
    outcomes = list(quick.run_steps(steps, results, limit_s=100, end_s=120, clock=lambda: next(times, 131.0)))
    assert [outcome.problem for outcome in outcomes] == ["", "stopped: 120 s were over"]
    assert [outcome.measurements for outcome in outcomes] == [1, 0]


def test_results_and_quick_do_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(tmp_path), "--quick"]) == cli.REFUSED
    assert "it makes its results" in capsys.readouterr().err


@pytest.mark.parametrize("executor", ["cpu", "cuda"])
def test_steps_are_topics_with_their_options(executor: str) -> None:
    pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
    known = {topic.name: topic.options for topic in bench.topics()}
    for step in quick.steps_of(executor):
        assert set(step.options) <= set(known[step.topic]), step.command

"""`penstock report --run`: the commands of figures, and what becomes of the lines that they write."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import fakes
import penstock
import pytest
from penstock import bench
from penstock.cli import main as cli
from penstock.errors import Error
from penstock.report import measuring_process, papers, running
from penstock.report.measuring_process import MeasuringProcess
from penstock.report.papers.run_files import RUN

MAKES = """
import json, pathlib, sys
to = sys.argv[sys.argv.index("--results") + 1] if "--results" in sys.argv else sys.argv[1] + "/a.jsonl"
line = json.loads(pathlib.Path("line.json").read_text())
with open(to, "a") as out:
    for value in (1.0, 2.0):
        out.write(json.dumps({**line, "value": value}) + "\\n")
        out.flush()
pathlib.Path("begun").touch()
if "--deaf" in sys.argv:
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "--fails" in sys.argv:
    sys.exit("make: one of three was wrong")
if "--waits" in sys.argv:
    import time
    time.sleep(60)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "make.py").write_text(MAKES)
    (folder / "line.json").write_text(json.dumps(fakes.make_line(id="hit.linear.direct", unit="GB/s")))
    monkeypatch.setattr(running, "executor_here", lambda: "cpu")
    return folder


def test_lines_are_kept_of_commands_that_end_and_of_those_that_fail(tree: Path, tmp_path: Path) -> None:
    commands = [
        "python make.py --results some.jsonl",
        "penstock bench hit --executor cuda --output hit.jsonl",
        "python make.py --results some.jsonl --fails",
        "python make.py OUT",
        "python -c 'pass' --results none.jsonl",
        "no-such-program OUT",
        "python -c 'import no_such_package' OUT",
    ]
    reported: list[tuple[str, int, int]] = []
    results = tmp_path / "r.jsonl"
    outcomes = list(running.run_commands(commands, results, tree, lambda *words: reported.append(words)))
    assert [(each.measurements, each.problem, each.failed) for each in outcomes] == [
        (2, "", False),
        (0, "it needs a GPU", False),
        (2, "make: one of three was wrong", True),
        (2, "", False),
        (0, "it wrote no result line", True),
        (0, "no-such-program: No such file or directory", True),
        (0, "No module named 'no_such_package'", False),
    ]
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line["value"] for line in lines if line["id"] != RUN] == [1.0, 2.0] * 3
    runs = [line for line in lines if line["id"] == RUN]
    assert [line["params"]["command"] for line in runs] == [commands[0], commands[3]]
    assert [line["value"] for line in runs] == [pytest.approx(outcomes[k].seconds, abs=0.5) for k in (0, 3)]
    assert reported == [(command, number, 7) for number, command in enumerate(commands)]
    assert sorted(path.name for path in tree.iterdir()) == ["begun", "line.json", "make.py"]


def test_an_interrupt_keeps_what_was_written(tree: Path, tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from penstock.report import running
running.executor_here = lambda: "cpu"
command = "python make.py --results a.jsonl --waits"
outcomes = running.run_commands([command], Path(sys.argv[1]), Path(sys.argv[2]))
try:
    list(outcomes)
except KeyboardInterrupt:
    sys.exit(7)
"""
    results = tmp_path / "r.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(results), str(tree)], env=environment, start_new_session=True
    )
    until = time.monotonic() + 30
    while not (tree / "begun").exists() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    assert child.wait(30) == 7
    assert len(results.read_text().splitlines()) == 2


def test_interrupts_wait_until_a_process_that_starts_is_known() -> None:
    done = []

    def start() -> None:
        with measuring_process.interrupts_deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_commands_are_those_of_the_figures_that_are_wanted() -> None:
    known = papers.load_papers()
    chosen = running.commands_of(papers.listing(known, [], ["bam.table2", "bam.fig4"]))
    assert chosen
    assert len(set(chosen)) == len(chosen)
    everything = running.commands_of(papers.listing(known, []))
    assert set(chosen) < set(everything)
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--run", "--quick"], "report --quick --run: each measures its own: give one of them"),
        (["--list", "--quick"], "report --list --quick: --list measures nothing: give one of them"),
        (["--run", "lines.jsonl"], "report --run: it makes its results: leave RESULTS out"),
        (["--run", "--only", "Figure 99"], "report --only Figure 99: no figure has that in its name"),
    ],
)
def test_what_cannot_be_run_is_refused(
    words: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", *words, "-o", str(tmp_path / "r.html")]) == cli.REFUSED
    assert part in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_page_of_what_was_run(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock.cli import report

    monkeypatch.setattr(report, "source_tree", lambda: tree)
    monkeypatch.setattr(report, "commands_of", lambda _: ["python make.py --results a.jsonl"])
    assert cli.main(["report", "--run", "-o", str(tmp_path / "r.html")]) == 0
    assert "make.py --results a.jsonl: 2 measurements" in capsys.readouterr().err
    assert (tmp_path / "r.html").exists()
    monkeypatch.setattr(report, "commands_of", lambda _: ["python make.py --executor cuda"])
    assert cli.main(["report", "--run", "-o", str(tmp_path / "s.html")]) == cli.REFUSED
    assert "report --run: nothing could be measured here: see above" in capsys.readouterr().err
    assert not (tmp_path / "s.html").exists()


def test_programs_of_the_source_tree_are_left_out_where_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(penstock, "__file__", str(tmp_path / "a/b/penstock/__init__.py"))
    monkeypatch.chdir(tmp_path)
    assert running.source_tree() is None
    (outcome,) = running.run_commands(["python benchmarks/gather.py --results a.jsonl"], tmp_path / "r", None)
    assert outcome.problem == "benchmarks/gather.py is not here: it is in Penstock's source tree"
    assert not outcome.failed


def test_no_command_begins_when_the_time_is_over(tree: Path, tmp_path: Path) -> None:
    limits = running.Limits(begin_s=-1)
    (outcome,) = running.run_commands(
        ["python make.py --results a.jsonl"], tmp_path / "r.jsonl", tree, limits=limits
    )
    assert (outcome.problem, outcome.failed) == ("not begun: -1 s were over", False)
    assert not (tree / "begun").exists()


@pytest.mark.parametrize("option", ["--waits", "--waits --deaf"])
def test_a_command_that_runs_too_long_is_ended_and_what_it_measured_is_kept(
    option: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        measuring_process, "ENDINGS", tuple((number, 0.3) for number, _ in measuring_process.ENDINGS)
    )
    results = tmp_path / "r.jsonl"
    (outcome,) = running.run_commands(
        [f"python make.py --results a.jsonl {option}"], results, tree, limits=running.Limits(end_s=2)
    )
    assert (outcome.measurements, outcome.problem) == (2, "stopped: 2 s were over")
    assert outcome.seconds < 30
    assert RUN not in results.read_text()


def test_lines_are_kept_as_they_come(tree: Path, tmp_path: Path) -> None:
    with_both = MeasuringProcess("python make.py --results a.jsonl --waits", tmp_path, tree, dict(os.environ))
    found = with_both.measurements(time.monotonic() + 60)
    assert [next(found).value, next(found).value] == [1.0, 2.0]
    assert not with_both.stopped
    with_both.end()
    assert list(found) == []


def test_a_line_that_is_no_result_is_named_and_the_others_are_kept(tree: Path, tmp_path: Path) -> None:
    (tree / "make.py").write_text(MAKES.replace("(1.0, 2.0)", '("no number", 2.0)'))
    results = tmp_path / "r.jsonl"
    (outcome,) = running.run_commands(["python make.py --results a.jsonl"], results, tree)
    assert outcome.failed
    assert "line 1 of a.jsonl is no result: its field value is 'no number'" in outcome.problem
    assert [json.loads(line)["value"] for line in results.read_text().splitlines()] == [2.0]


def test_results_that_cannot_be_written_end_the_commands(tree: Path, tmp_path: Path) -> None:
    commands = ["python make.py --results a.jsonl"] * 2
    results = tmp_path / "line.jsonl/r.jsonl"
    results.parent.touch()
    outcomes = list(running.run_commands(commands, results, tree))
    assert [(each.measurements, each.failed) for each in outcomes] == [(0, True)]
    assert outcomes[0].problem == f"write {results}: File exists: make room, or choose another file"


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

"""`penstock report --run`: the commands of figures, and what becomes of the lines that they write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fakes
import penstock
import pytest
from penstock.cli import main as cli
from penstock.errors import Error
from penstock.report import papers, running

MAKES = """
import json, pathlib, sys
to = sys.argv[sys.argv.index("--results") + 1] if "--results" in sys.argv else sys.argv[1] + "/a.jsonl"
line = json.loads(pathlib.Path("line.json").read_text())
with open(to, "a") as out:
    for value in (1.0, 2.0):
        out.write(json.dumps({**line, "value": value}) + "\\n")
        out.flush()
pathlib.Path("begun").touch()
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
    ]
    reported: list[tuple[str, int, int]] = []
    results = tmp_path / "r.jsonl"
    outcomes = list(running.run_commands(commands, results, tree, lambda *words: reported.append(words)))
    assert [(each.measurements, each.problem) for each in outcomes] == [
        (2, ""),
        (0, "it needs a GPU"),
        (2, "make: one of three was wrong"),
        (2, ""),
        (0, "it wrote no result line"),
        (0, "no-such-program: No such file or directory"),
    ]
    assert [json.loads(line)["value"] for line in results.read_text().splitlines()] == [1.0, 2.0] * 3
    assert reported == [(command, number, 6) for number, command in enumerate(commands)]
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


def test_without_the_source_tree_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(penstock, "__file__", str(tmp_path / "a/b/penstock/__init__.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Error, match="run it in Penstock's source tree"):
        running.source_tree()

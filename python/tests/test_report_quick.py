"""`penstock report --quick`: real commands of small sizes, and the page that they make."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import penstock
import pytest
from penstock.cli import main as cli
from penstock.report import quick

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

HIT = (
    "penstock bench hit --mib 1 --line 4096 --directory direct --patterns line --repeats 1 --executor cpu "
    "--output hit.jsonl"
)
SEARCH = (
    "python benchmarks/graph_algorithms.py --results graph.jsonl --executor cpu --graph kron:8 --weighted "
    "--trials 1 --media p5800x --drives 4 --only bfs --placements host,cold "
    "--strategies merged_aligned,auto --note .p5800x4"
)
WRONG = "penstock bench hit --mib 1 --patterns sideways --executor cpu --output hit.jsonl"
LACKING = "python -c 'import no_such_package' --results none.jsonl"
WAITS = "python -c 'import time; time.sleep(60)' --results none.jsonl"
BENCHMARKS = (Path(__file__).parents[2] / "benchmarks/harness").is_dir()


def use(monkeypatch: pytest.MonkeyPatch, *commands: str) -> None:
    monkeypatch.setattr(quick, "quick_commands", lambda _: list(commands))
    monkeypatch.delenv("PENSTOCK_MACHINE", raising=False)


def commands_that_run() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return found


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.skipif(not BENCHMARKS, reason="the benchmarks are not here")
def test_what_is_measured_is_kept_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, HIT, SEARCH, LACKING)
    page = tmp_path / "r.html"
    assert cli.main(["report", "--quick", "-o", str(page)]) == 0
    assert "No module named 'no_such_package'\n" in capsys.readouterr().err
    lines = lines_of(tmp_path / "r.jsonl")
    measured = [line for line in lines if line["id"] != "report.run"]
    assert {line["command"] for line in measured} == {HIT, SEARCH}
    runs = [line for line in lines if line["id"] == "report.run"]
    assert [line["params"] for line in runs] == [{"command": HIT}, {"command": SEARCH}]
    written = json.loads((tmp_path / "r.json").read_text())
    figures = {figure["key"]: figure for paper in written["papers"] for figure in paper["figures"]}
    hit = next(line for line in measured if line["id"] == "hit.line4k.validated.direct")
    assert figures["bam.fig6"]["points"][0]["ours"] == pytest.approx(hit["value"])
    point = figures["bam.fig7"]["points"][0]
    assert (point["instead"], point["lines"][0]["command"]) == ("kron:8", SEARCH)
    article = page.read_text().partition('id="bam.fig7"')[2].partition("</article>")[0]
    assert "over the target, of kron:8" in article
    assert "no GPU took part" in article
    assert "kron:8 --weighted" in article.partition("Measured by")[2]
    assert [machine["name"] for machine in written["machines"]] == [f"{os.cpu_count()} CPU threads"]


def test_a_list_has_the_seconds_of_the_commands_with_their_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, HIT)
    monkeypatch.delenv("PENSTOCK_COMMIT", raising=False)
    assert cli.main(["report", "--quick", "-o", str(tmp_path / "r.html")]) == 0
    (run,) = (line for line in lines_of(tmp_path / "r.jsonl") if line["id"] == "report.run")
    here = ["git", "-C", str(Path(__file__).parents[2]), "rev-parse", "HEAD"]
    head = subprocess.run(here, capture_output=True, text=True, check=False).stdout
    assert not head or head.startswith(str(run["commit"]).removesuffix("-dirty"))
    capsys.readouterr()
    words = ["report", "--list", str(tmp_path / "r.jsonl"), "--only", "dissertation.fig6.6"]
    assert cli.main([*words, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["seconds"], listed["commands"]) == (run["value"], [HIT])
    assert cli.main(words) == 0
    assert f" on {os.cpu_count()} CPU threads: {HIT}" in capsys.readouterr().out


def test_a_command_that_fails_is_named_and_the_others_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, WRONG, HIT)
    assert cli.main(["report", "--quick", "-o", str(tmp_path / "r.html")]) == cli.REFUSED
    err = capsys.readouterr().err
    assert "sideways" in err
    assert "1 of its steps failed" in err
    assert "hit.line4k.validated.direct" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, cli.INTERRUPTED), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_an_interrupt_ends_the_commands_and_what_was_measured_is_reported(
    tmp_path: Path, number: int, status: int
) -> None:
    program = (
        "import sys; from penstock.cli import main; from penstock.report import quick; "
        f"quick.quick_commands = lambda _: [{HIT!r}, {WAITS!r}]; "
        "sys.argv = ['penstock', 'report', '--quick', '-o', 'r.html']; sys.exit(main.program())"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
    }
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stderr is not None
    assert "8 measurements" in child.stderr.readline()
    os.kill(child.pid, number)
    assert child.wait(60) == status
    child.stderr.close()
    assert "hit.line4k.validated.direct" in (tmp_path / "r.html").read_text()
    assert list(scratch.iterdir()) == []
    assert [each for each in commands_that_run() if str(scratch) in each] == []


def test_where_nothing_is_measured_there_is_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, LACKING)
    assert cli.main(["report", "--quick", "-o", str(tmp_path / "r.html")]) == cli.REFUSED
    assert "report --quick: nothing could be measured here: see above" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, HIT)
    assert cli.main(["report", "--quick", *words]) == cli.REFUSED
    err = capsys.readouterr().err
    assert part in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_results_and_quick_do_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(tmp_path), "--quick"]) == cli.REFUSED
    assert "it makes its results" in capsys.readouterr().err


def test_time_for_the_last_command_is_left() -> None:
    assert quick.LIMITS.begin_s < quick.LIMITS.end_s < 540

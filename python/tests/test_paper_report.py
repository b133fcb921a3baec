"""The papers' figures beside result lines: what is selected, and that no number comes from elsewhere."""

from __future__ import annotations

import json
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from penstock.cli import main as cli
from penstock.report import papers
from penstock.report.papers import evaluation, rows
from penstock.report.papers.rows import Point, Term
from penstock.report.papers.run_files import RunLine
from penstock.report.papers.terms import RunIndex

TREE = Path(__file__).parents[2]
RESULTS = TREE / "benchmarks/results"
MACHINE = {"name": "M"}

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are not beside the package")


@pytest.fixture(scope="module")
def lines() -> list[RunLine]:
    return papers.read_run_files([RESULTS])


@pytest.fixture(scope="module")
def report(lines: list[RunLine]) -> dict[str, Any]:
    known = papers.load_papers()
    return papers.evaluate(known, papers.load_answers(known), lines)


def figures_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [figure for paper in report["papers"] for figure in paper["figures"]]


def points_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [point for figure in figures_of(report) for point in figure["points"]]


def line(id: str, value: float, **more: Any) -> dict[str, Any]:
    return {"id": id, "value": value, "unit": "s", "machine": MACHINE, "verified": True, **more}


def index_of(tmp_path: Path, *given: dict[str, Any]) -> RunIndex:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in given))
    return RunIndex(papers.read_run_files([path]))


def term(**facts: Any) -> Term:
    return Term.of(facts, "here")


def value_of(index: RunIndex, **facts: Any) -> float:
    found = index.term(term(**facts))
    assert found is not None
    return found.value


class Elements(HTMLParser):
    """What a page has of the elements that the tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.ours: list[tuple[float, str]] = []
        self.tags: set[str] = set()
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "data":
            self.ours.append((float(given["value"]), given["data-lines"]))
        self.outside += [given[name] for name in ("src", "srcset") if name in given]


def test_sixty_figures_and_tables_are_there_and_most_are_measured(report: dict[str, Any]) -> None:
    counts = report["counts"]
    assert counts["figures"] >= 60
    assert counts["measured"] + counts["partly"] >= 45
    without = {figure["key"] for figure in figures_of(report) if figure["state"] == "no line"}
    assert without == set()
    assert len({figure["key"] for figure in figures_of(report)}) == counts["figures"]
    assert len(report["answers"]) == 10


def test_a_figure_says_how_to_run_it_or_why_not() -> None:
    for paper in papers.load_papers():
        for figure in paper.figures:
            assert [figure.command, figure.needs, figure.not_yet, figure.unmeasured].count("") == 3, (
                figure.key
            )
            assert all(point.ours or point.why_not for point in figure.points if figure.command)


def test_most_figures_run_on_one_gpu_without_a_drive(report: dict[str, Any]) -> None:
    several = {"zerocopy.fig4.12"}  # which compares GPUs
    on_one = [f for f in figures_of(report) if f["command"] and not f["needs"] and f["key"] not in several]
    assert len(on_one) >= 45
    assert sum(f["state"] in ("measured", "partly") for f in on_one) >= 45


def test_every_number_of_ours_comes_from_the_lines_that_it_names(
    report: dict[str, Any], lines: list[RunLine]
) -> None:
    text = {f"{each.file}:{each.number}" for each in lines}
    shown = Elements(papers.page(report)).ours
    assert {value for value, _ in shown} == {p["ours"] for p in points_of(report) if p["ours"] is not None}
    for _, named in shown:
        assert named
        assert set(named.split(" ")) <= text


def test_a_number_of_one_line_is_what_the_file_has(report: dict[str, Any]) -> None:
    terms = {
        (figure.key, position): point.ours[0]
        for paper in papers.load_papers()
        for figure in paper.figures
        for position, point in enumerate(figure.points)
        if len(point.ours) == 1
        and (point.ours[0].over, point.ours[0].minus, point.ours[0].per_dollar) == (None, None, None)
    }
    checked = 0
    for figure in figures_of(report):
        for position, point in enumerate(figure["points"]):
            selected = terms.get((figure["key"], position))
            if selected is None or point["ours"] is None:
                continue
            source = point["lines"][0]
            found = json.loads((RESULTS / source["file"]).read_text().splitlines()[source["line"] - 1])
            assert found["id"] == source["id"] == selected.id
            for name in selected.take.split("."):
                found = found[name]
            assert point["ours"] == pytest.approx(found * selected.scale, rel=1e-12)
            checked += 1
    assert checked > 60


def test_without_their_lines_no_figure_has_a_number(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(line("something.else", 3.0)) + "\n")
    known = papers.load_papers()
    empty = papers.evaluate(known, papers.load_answers(known), papers.read_run_files([path]))
    assert Elements(papers.page(empty)).ours == []
    assert {point["ratio"] for point in points_of(empty)} == {None}


def test_a_number_typed_into_the_data_is_refused() -> None:
    facts = {"key": "fig1", "name": "Figure 1", "where": "", "title": "", "unit": "s"}
    with pytest.raises(ValueError, match=r"bam.fig1: ours is a selection of a result line, not 3.2"):
        rows._figure("bam", {**facts, "points": [{"label": "a", "ours": 3.2}]})
    with pytest.raises(ValueError, match="there is no value in a term"):
        rows._figure("bam", {**facts, "points": [{"label": "a", "ours": {"id": "x", "value": 3.2}}]})


def test_the_page_is_whole_and_the_same_each_time(report: dict[str, Any], lines: list[RunLine]) -> None:
    text = papers.page(report)
    known = papers.load_papers()
    assert text == papers.page(papers.evaluate(known, papers.load_answers(known), lines))
    page = Elements(text)
    assert len(text.encode()) < 3 << 20
    assert not page.tags & {"script", "iframe", "img"}
    assert page.outside == []
    assert not re.search(r"@import|url\(", text)
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert text.count("<em>not yet</em>") == report["counts"]["not yet"] > 0
    assert "nan" not in text.lower().replace("nand", "")


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ({"name": "H200, PCIe Gen5 x16", "device": "NVIDIA H200 (132 SMs)"}, "H200, PCIe Gen5 x16"),
        ({"name": "2x NVIDIA H200, PCIe Gen5 x16"}, "H200, PCIe Gen5 x16"),
        ({"name": "NVIDIA H100 80GB HBM3, PCIe Gen5 x16"}, "H100, PCIe Gen5 x16"),
        ({"name": "PCIe Gen5 x16", "device": "NVIDIA H200 (16 of 132 SMs)"}, "H200, PCIe Gen5 x16"),
        ({"name": "unnamed", "device": "NVIDIA H200"}, "H200"),
        ({"name": "", "device": "2 CPU threads"}, "2 CPU threads"),
        ({}, "a machine without a name"),
    ],
)
def test_a_machine_has_one_name_however_benchmarks_spell_it(
    tmp_path: Path, machine: dict[str, str], name: str
) -> None:
    (found,) = index_of(tmp_path, line("a", 1.0, machine=machine)).by_id["a"]
    assert found.machine == name


def test_a_machine_is_described_where_lines_do(tmp_path: Path) -> None:
    facts = {"name": "M", "device": "2 CPU threads", "cpu": "a CPU", "cores": "2", "memory": "2097152 kB"}
    index = index_of(tmp_path, line("a", 1.0), line("a", 2.0, machine=facts))
    (machine,) = evaluation.machines(index.by_id["a"])
    assert (machine["lines"], machine["host"]) == (2, "2 CPU threads, a CPU, 2 cores, 2.0 GiB of memory")


def test_bytes_are_those_of_a_line_or_of_its_graph(tmp_path: Path) -> None:
    stated, storage, place = (
        index_of(tmp_path, line(id, 1.0, **more)).by_id[id][0]
        for id, more in (
            ("a", {"bytes": {"hbm": 4}}),
            ("graph.cold.bfs", {"details": {"bytes_moved": 8, "sector_bytes": 3}}),
            ("graph.pinned.bfs", {"details": {"bytes_moved": 0, "sector_bytes": 3}}),
        )
    )
    assert [evaluation._bytes(each) for each in (stated, storage, place)] == [
        {"hbm": 4},
        {"storage": 8},
        {"pinned": 3},
    ]


def test_a_question_of_whether_has_yes_or_no_by_the_value(report: dict[str, Any]) -> None:
    figures = {figure["key"]: figure for figure in figures_of(report)}
    shown = re.findall(r"(Yes|No|Even), <data", papers.page(report))
    asked = [answer for answer in report["answers"] if answer["yes"]]
    values = [figures[answer["figure"]]["points"][answer["point"]]["ours"] for answer in asked]
    for said, answer, ours in zip(shown, asked, values, strict=True):
        even = 0.953 < ours < 1.05
        assert said == ("Even" if even else "Yes" if (ours > 1) == (answer["yes"] == "above") else "No")
    assert len(asked) == sum(answer["question"].startswith("Do") for answer in report["answers"])


def test_a_figure_of_several_values_has_a_plot(report: dict[str, Any]) -> None:
    parts = re.findall(r'<article id="([^"]+)".*?</article>', papers.page(report), re.S)
    with_plot = {key for key in parts if 'class="plot"' in article(report, key)}
    for figure in figures_of(report):
        units = [point["unit"] for point in figure["points"] if point["ours"] is not None]
        if len(units) > len(set(units)):
            assert figure["key"] in with_plot, figure["key"]


def article(report: dict[str, Any], key: str) -> str:
    return papers.page(report).partition(f'<article id="{key}"')[2].partition("</article>")[0]


def test_what_a_cpu_counts_of_a_gpus_requests_says_how_it_differs(report: dict[str, Any]) -> None:
    counted = article(report, "zerocopy.fig2.6")
    assert "ids of 8 bytes" in counted
    assert "no GPU took part" not in counted


def test_the_newest_line_counts_and_where_selects(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        line("a", 3.0, date="2026-02-01"),
        line("a", 2.0, date="2026-01-01"),
        line("a", 5.0, date="2026-01-01", params={"drives": 4}),
    )
    assert value_of(index, id="a") == 3.0
    assert value_of(index, id="a", where={"drives": "4"}) == 5.0
    assert index.term(term(id="a", where={"drives": "5"})) is None
    assert index.term(term(id="b")) is None


def test_highest_and_lowest_are_of_the_newest_commit(tmp_path: Path) -> None:
    values = [(9.0, "old"), (1.0, "new"), (3.0, "new"), (2.0, "new")]
    index = index_of(tmp_path, *(line("a", value, commit=commit) for value, commit in values))
    assert value_of(index, id="a", pick="highest") == 3.0
    assert value_of(index, id="a", pick="lowest") == 1.0


def test_lines_that_are_compared_are_of_one_machine_and_one_commit_where_there_is_one(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        line("base", 2.0, commit="c1"),
        line("base", 4.0, commit="c2"),
        line("base", 7.0, machine={"name": "N"}),
        line("a", 8.0, commit="c1"),
        line("a", 70.0, machine={"name": "O"}),
    )
    assert value_of(index, id="a", over={"id": "base"}) == 4.0
    assert value_of(index, id="a", minus={"id": "base"}, scale=100) == 600.0


def test_runs_over_one_medium_are_compared_with_runs_over_it(
    report: dict[str, Any], lines: list[RunLine]
) -> None:
    media = {f"{each.file}:{each.number}": each.field("details.media") for each in lines}
    for point in points_of(report):
        cold = [each for each in point["lines"] if each["id"].startswith("graph.cold.")]
        found = {media[f"{each['file']}:{each['line']}"]: each["id"] for each in cold}
        assert len(found) < 2 or all(medium in id for medium, id in found.items()), point["label"]


def test_several_terms_are_their_geometric_mean(tmp_path: Path) -> None:
    index = index_of(tmp_path, line("a", 2.0), line("b", 8.0))
    found = index.point(Point("", None, (term(id="a"), term(id="b")), "s", "higher"))
    assert found is not None
    assert found.value == pytest.approx(4.0)
    assert index.point(Point("", None, (term(id="a"), term(id="c")), "s", "higher")) is None


def test_performance_per_dollar_is_the_speed_times_the_price(tmp_path: Path) -> None:
    index = index_of(tmp_path, line("a", 2.0, values=[1.0, 2.0]))
    assert value_of(index, id="a", per_dollar="980pro") == pytest.approx(2.0 * 11.13 / 0.51)


def test_a_ratio_is_of_one_commit_where_one_has_both(tmp_path: Path) -> None:
    given = [line("a", 6.0, commit="1"), line("b", 3.0, commit="1"), line("a", 20.0, commit="2")]
    assert value_of(index_of(tmp_path, *given), id="a", over={"id": "b"}) == 2.0
    assert value_of(index_of(tmp_path, *given[1:]), id="a", over={"id": "b"}) == 20.0 / 3.0


def test_repeats_give_an_interval(tmp_path: Path) -> None:
    index = index_of(tmp_path, line("a", 2.0, values=[1.0, 2.0, 4.0]), line("b", 1.0))
    found = index.term(term(id="a", scale=10))
    assert found is not None
    assert (found.lowest, found.highest) == (10.0, 40.0)
    ratio = index.term(term(id="a", over={"id": "b"}))
    assert ratio is not None
    assert ratio.lowest is None


@pytest.mark.parametrize(
    ("paper", "ours", "better", "ratio"),
    [
        (2.0, 4.0, "higher", 2.0),
        (2.0, 4.0, "lower", 0.5),
        ((2.0, 3.0), 2.5, "higher", 1.0),
        ((2.0, 3.0), 6.0, "higher", 2.0),
        ((2.0, 3.0), 1.0, "lower", 2.0),
        (None, 4.0, "higher", None),
        (2.0, 4.0, "neither", None),
    ],
)
def test_above_one_is_better(paper: Any, ours: float, better: str, ratio: float | None) -> None:
    assert evaluation._ratio(Point("", paper, (), "s", better), ours) == ratio


def test_a_line_that_was_not_verified_is_shown_as_such(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, line("a", 1.0, verified=False), line("b", 1.0), {"id": "c", "value": 1, "unit": "s"}
    )
    verdicts = [found.verified for id in "abc" if (found := index.term(term(id=id)))]
    assert verdicts == [False, True, None]


def test_the_command_writes_the_page_and_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "out.html"
    assert cli.main(["report", str(RESULTS), "--only", "Figure 5.6", "-o", str(page)]) == 0
    assert "1 figures and tables" in capsys.readouterr().out
    written = json.loads(page.with_suffix(".json").read_text())
    assert [figure["key"] for figure in figures_of(written)] == ["dissertation.fig5.6"]
    assert "fig5.6.read" in page.read_text()


def test_the_command_lists_figures_with_what_runs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "--list"]) == 0
    out = capsys.readouterr().out
    assert "not recorded" in out
    for word in ("dissertation.fig5.9", "penstock bench io", "needs an Optane drive", "not yet:"):
        assert word in out


def test_a_list_has_the_seconds_and_bytes_of_the_lines_that_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs.jsonl"
    where = {"drives": "1", "threads": "16384"}
    shown = line("fig5.6.read", 5e6, params=where, details={"wall_seconds": 12.0, "file_bytes": 1 << 20})
    other = line("fig5.6.read", 5e6, params={"drives": "9"}, details={"wall_seconds": 99.0})
    runs.write_text("".join(json.dumps(each) + "\n" for each in (other, shown)))
    words = ["report", "--list", str(runs), "--only", "dissertation.fig5.6"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    for part in (
        "penstock bench io --procedure fig5.6",
        "writes    fig5.6.read",
        "12.00 s for 1 of its 1",
        "1.0 MiB",
    ):
        assert part in out
    assert cli.main([*words, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["seconds"], listed["disk_bytes"], listed["ids"]) == (12.0, 1 << 20, ["fig5.6.read"])


def test_the_page_begins_with_the_losses_worst_first(report: dict[str, Any]) -> None:
    text = papers.page(report)
    shown = re.findall(r'<b class="worse">([^<]+)</b><span>([^<]+)<', text.partition('id="losses"')[2])
    worst = evaluation.ratios(report)[:10]
    assert [label for _, label in shown] == [escape(point["label"]) for _, _, point in worst]
    assert text.index('id="answers"') < text.index('id="losses"') < text.index('id="all"')


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["report", "nowhere.jsonl"], "read nowhere.jsonl: there is no such file or folder"),
        (["report"], "there is no benchmarks/results here"),
        (["report", str(RESULTS), "--only", "Figure 99"], "no figure has that in its name"),
        (["report", str(RESULTS), "-o", "r.json"], "the JSON beside it has that name"),
        (["report", str(RESULTS / "h200/bfs.jsonl"), "-o", str(RESULTS / "h200")], "is a directory"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    arguments: list[str],
    part: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == cli.REFUSED
    err = capsys.readouterr().err
    assert part in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b"\xff\xfe", "line 1: it is no JSON"),
        (b'{"id": "a", "value": 1', "line 1: it is no JSON"),
        (b'{"id": "a", "value": 1e999, "unit": "s"}', "line 1: its value is inf"),
        (b'{"id": "a", "value": 1, "unit": "s", "repeats": "x"}', "line 1: its field repeats is 'x'"),
        (b'{"id": "a", "value": 1, "unit": "s", "bytes": 7}', "line 1: its field bytes is 7"),
        (b'{"id": "a", "value": 1, "unit": "s", "bytes": {"hbm": "x"}}', "its bytes are no numbers"),
        (
            b'{"id": "a", "value": 1, "unit": "s", "values": ["x"]}',
            "the values of its repeats are no numbers",
        ),
    ],
)
def test_a_file_that_holds_no_results_is_refused_by_its_line(
    text: bytes, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(text + b"\n")
    assert cli.main(["report", str(path), "-o", str(tmp_path / "r.html")]) == cli.REFUSED
    err = capsys.readouterr().err
    assert f"read {path}, line 1" in err
    assert part in err
    assert err.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").mkdir()
    assert cli.main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == cli.REFUSED
    assert f"read {tmp_path / 'a.jsonl'}: Is a directory" in capsys.readouterr().err


def test_a_page_in_no_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = Path(__file__).parents[2] / "benchmarks" / "results"
    page = tmp_path / "missing" / "page.html"
    assert cli.main(["report", str(results), "-o", str(page)]) == cli.REFUSED
    assert f"there is no folder {page.parent}: make it, or name another" in capsys.readouterr().err
    assert not page.parent.exists()

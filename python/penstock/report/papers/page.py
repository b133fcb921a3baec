"""The report as one HTML page: no script, no network, its style and plots inside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

from penstock.report.figures import number
from penstock.report.papers import plots
from penstock.report.papers.evaluation import LEVEL, ratios
from penstock.sizes import format_bytes

STATES = {
    "measured": "measured",
    "partly": "partly measured",
    "needs": "cannot run here",
    "not yet": "not yet",
    "unmeasured": "nothing to measure",
    "no line": "no result line",
}
VERDICTS = {"better": "▲ better", "level": "= level", "worse": "▼ worse"}
CHECKED = {True: "yes", False: "wrong", None: "not stated"}
OTHER_SIZES = "those of the commands that measured this; what differs is stated for the figure's own"
ON_CPU = "the CPU executor: no GPU took part, and a few cores stand beside the paper's GPU"
LOSSES = 10
MUTED = '<span class="muted">'
HEADINGS = ("What", "Paper", "Penstock", "Ratio", "Repeats", "Bytes", "Verified")
METHOD = (
    "Ratios are Penstock over the paper, turned so that above 1 is better, whatever the unit; within 5 % is "
    "level. The machines differ from the papers': each figure says how. Every number of ours is taken from a "
    "result line, which the figure names with its machine and commit; the newest line counts. A value is the "
    "median of its repeats, the spread their largest less their smallest over it. Drives are modelled at "
    "the papers' rates: level says there that nothing above them costs any. Verified: the run compared its "
    "output with a reference."
)


def page(evaluated: dict[str, Any]) -> str:
    """The same bytes for the same dictionary."""
    style = (resources.files(__package__) / "data" / "page.css").read_text(encoding="utf-8")
    body = "\n".join(
        [
            _header(evaluated),
            _answers(evaluated),
            _losses(evaluated),
            _overview(evaluated),
            *map(_paper, evaluated["papers"]),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>Penstock beside its papers</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _header(evaluated: dict[str, Any]) -> str:
    machines = "".join(
        f"<li><b>{escape(machine['name'])}</b>"
        f"<span>{_count(machine['lines'], 'result line')}{_dates(machine)}</span>"
        f"<small>{escape(machine['host'])}</small></li>"
        for machine in evaluated["machines"]
    )
    links = "".join(
        f'<a href="#{escape(paper["key"])}">{escape(_short_title(paper["title"]))}</a>'
        for paper in evaluated["papers"]
    )
    return (
        "<header><h1>Penstock beside its papers</h1>"
        f'<p class="lead">{_summary(evaluated["counts"])}</p>'
        f'<ul class="machines">{machines}</ul><nav>{links}</nav></header>'
    )


def _summary(counts: dict[str, int]) -> str:
    shown = counts["measured"] + counts["partly"]
    text = (
        f"{_count(counts['figures'], 'figure or table', 'figures and tables')}, {shown} with numbers of ours."
    )
    values = counts["better"] + counts["level"] + counts["worse"]
    return (
        f"{text} Of {_count(values, 'value')} that can be compared, {counts['better']} are better than the "
        f"paper's, {counts['level']} level and {counts['worse']} worse."
    )


def _dates(machine: dict[str, Any]) -> str:
    first, last = machine["first"], machine["last"]
    if not last:
        return ""
    return f", {first}" if first == last else f", {first} to {last}"


def _answers(evaluated: dict[str, Any]) -> str:
    figures = {figure["key"]: figure for paper in evaluated["papers"] for figure in paper["figures"]}
    cards = [_card(answer, figures[answer["figure"]]) for answer in evaluated["answers"]]
    if not cards:
        return ""
    title = "Ten answers" if len(cards) == 10 else "Answers"
    return (
        f'<section aria-labelledby="answers"><h2 id="answers">{title}</h2>'
        f'<ol class="cards">{"".join(cards)}</ol></section>'
    )


def _card(answer: dict[str, Any], figure: dict[str, Any]) -> str:
    point = figure["points"][answer["point"]]
    value = '<p class="big none">no line</p>'
    if point["ours"] is not None:
        value = f'<p class="big">{_yes(answer["yes"], point["ours"])}{_ours(point)}</p>'
    verdict = f'<b class="{point["verdict"]}">{VERDICTS[point["verdict"]]}</b>' if point["verdict"] else ""
    where = f", {_machine(point['lines'][0])}" if point["lines"] else ""
    return (
        f'<li><a href="#{escape(figure["key"])}"><h3>{escape(answer["question"])}</h3>{value}'
        f"<p>{escape(figure['title'])}: {_label(point)}{where}</p>"
        f"<p>paper {_paper_value(point)} {verdict}</p></a></li>"
    )


def _yes(yes: str, ours: float) -> str:
    if not yes:
        return ""
    if 1 / LEVEL < ours < LEVEL:
        return "Even, "
    return "Yes, " if (ours > 1) == (yes == "above") else "No, "


def _losses(evaluated: dict[str, Any]) -> str:
    """The worst ratios, as plain as the answers."""
    worst = [each for each in ratios(evaluated) if each[2]["verdict"] == "worse"][:LOSSES]
    if not worst:
        return ""
    rows = "".join(
        f'<li><a href="#{escape(figure["key"])}"><b class="worse">{number(ratio)}</b>'
        f"<span>{_label(point)}<small>{_named(figure)}</small></span>"
        f"<span>{_ours(point)}<small>paper {_paper_value(point)}</small></span></a></li>"
        for ratio, figure, point in worst
    )
    return (
        '<section aria-labelledby="losses"><h2 id="losses">Where the papers are ahead, worst first</h2>'
        '<p class="method">Penstock over the paper. What differs in the machine or the setting stands with '
        "each figure.</p>"
        f'<ol class="losses">{rows}</ol></section>'
    )


def _label(point: dict[str, Any]) -> str:
    """With the graph, where it is a smaller one than the figure's."""
    return escape(f"{point['label']}, of {point['instead']}" if point["instead"] else point["label"])


def _named(figure: dict[str, Any]) -> str:
    return escape(f"{figure['name']}: {figure['title']}")


def _overview(evaluated: dict[str, Any]) -> str:
    found = ratios(evaluated)
    if not found:
        return ""
    return (
        '<section aria-labelledby="all"><h2 id="all">All values at once</h2>'
        f'<div class="scroll">{plots.overview(found)}</div>'
        '<p class="ends"><span>worse than the paper</span><span>better than the paper</span></p>'
        f'<p class="method">{METHOD}</p></section>'
    )


def _paper(paper: dict[str, Any]) -> str:
    figures = "\n".join(map(_figure, paper["figures"]))
    return (
        f'<section id="{escape(paper["key"])}"><h2>{escape(paper["title"])}</h2>'
        f'<p class="method">The paper measured on: {escape(paper["machine"])}.</p>\n{figures}</section>'
    )


def _figure(figure: dict[str, Any]) -> str:
    state = figure["state"]
    parts = [
        f'<article id="{escape(figure["key"])}" class="{state.replace(" ", "-")}">'
        f"<h3><span>{escape(figure['name'])}</span>{escape(figure['title'])}<em>{STATES[state]}</em></h3>",
        _table(figure["points"]) if figure["points"] else "",
        plots.line_plot(figure["plot"], figure["points"])
        if "plot" in figure
        else plots.pair_plots(figure["points"]),
        _notes(figure),
        _sources(figure["points"]),
        "</article>",
    ]
    return "".join(parts)


def _table(points: Sequence[dict[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, points))}</tbody></table>"


def _row(point: dict[str, Any]) -> str:
    label = f'<th scope="row">{_label(point)}</th>'
    paper = f'<td data-name="Paper">{_paper_value(point)}</td>'
    if point["ours"] is None:
        why = escape(point["why_not"]) or "—"
        return f'<tr class="without">{label}{paper}<td data-name="Penstock" colspan="5">{why}</td></tr>'
    return (
        f"<tr>{label}{paper}"
        f'<td data-name="Penstock">{_ours(point)}<small>{_machine(point["lines"][0])}</small></td>'
        f"{_cell('Ratio', 'ratio', _ratio(point))}{_cell('Repeats', '', _repeats(point))}"
        f"{_cell('Bytes', '', _bytes(point))}"
        f'<td data-name="Verified">{CHECKED[point["verified"]]}</td></tr>'
    )


def _cell(name: str, kind: str, text: str) -> str:
    """A phone, where each cell is a line, leaves out those that state nothing."""
    kinds = f"{kind} nothing".strip() if text.startswith(MUTED) else kind
    return f'<td data-name="{name}" class="{kinds}">{text}</td>'


def _machine(source: dict[str, Any]) -> str:
    """In a word or two, as there is little room."""
    if source["executor"] == "cpu":
        return "CPU executor"
    name = str(source["machine"]).split(",")[0].removeprefix("NVIDIA ")
    return escape(" ".join(name.split()[:2]))


def _ours(point: dict[str, Any]) -> str:
    """The number as a machine reads it, too, with the lines that it is from."""
    lines = " ".join(f"{source['file']}:{source['line']}" for source in point["lines"])
    return (
        f'<data class="ours" value="{point["ours"]!r}" data-lines="{escape(lines)}">'
        f"{number(point['ours'])}{_unit(point['unit'])}</data>"
    )


def _paper_value(point: dict[str, Any]) -> str:
    paper = point["paper"]
    if paper is None:
        return f"{MUTED}not in the text</span>"
    text = "–".join(number(value) for value in paper) if isinstance(paper, list) else number(paper)
    return f"{text}{_unit(point['unit'])}"


def _unit(unit: str) -> str:
    return {"x": " ×", "us": " µs", "": ""}.get(unit, f" {escape(unit)}")


def _ratio(point: dict[str, Any]) -> str:
    if point["ratio"] is None:
        return f"{MUTED}—</span>"
    return (
        f"{plots.ratio_bar(point['ratio'], point['verdict'])}<b>{number(point['ratio'])}</b> "
        f'<span class="{point["verdict"]}">{VERDICTS[point["verdict"]]}</span>'
    )


def _repeats(point: dict[str, Any]) -> str:
    repeats = point["repeats"]
    if not repeats:
        return f"{MUTED}not stated</span>"
    if repeats == 1:
        return "1"
    text = f"{repeats}"
    if point["lowest"] is not None:
        return f"{text}, {number(point['lowest'])} to {number(point['highest'])}"
    if point["spread"] is None:
        return text
    spread = _whole(f"{100 * point['spread']:.1f} %")
    return f"{text}, spread {spread}"


def _bytes(point: dict[str, Any]) -> str:
    """A line for each tier."""
    tiers = (f"{escape(tier)} {_whole(format_bytes(count))}" for tier, count in point["bytes"].items())
    return "<br>".join(tiers) or f"{MUTED}not stated</span>"


def _whole(text: str) -> str:
    """Without a place to break the line."""
    return text.replace(" ", "&nbsp;")


def _notes(figure: dict[str, Any]) -> str:
    sources = [source for point in figure["points"] for source in point["lines"]]
    executors = {source["executor"] for source in sources}
    commands = dict.fromkeys(source["command"] for source in sources if source["command"])
    others = [command for command in commands if command not in figure["command"].split(" && ")]
    if "--executor cpu" in figure["command"]:
        executors = set()  # The command is of a GPU's work that a CPU counts.
    notes = [
        ("Ran on", ON_CPU if "cpu" in executors else ""),
        # It says how a GPU's run differs.
        ("Differs", "" if executors == {"cpu"} else escape(figure["differs"])),
        ("Chosen", escape(figure["choice"])),
        ("Needs", _code_marks(figure["needs"])),
        ("Not yet", _code_marks(figure["not_yet"])),
        ("Why", _code_marks(figure["unmeasured"])),
        ("Sizes", OTHER_SIZES if others else ""),
        ("Measured by", _commands(" && ".join(others))),
        ("Again", _commands(figure["command"])),
        ("Where", escape(figure["where"])),
    ]
    items = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in notes if text)
    return f"<dl>{items}</dl>"


def _sources(points: Sequence[dict[str, Any]]) -> str:
    rows = [_source(source) for point in points for source in point["lines"]]
    unique = list(dict.fromkeys(rows))
    if not unique:
        return ""
    summary = f"<summary>{_count(len(unique), 'result line')}</summary>"
    return f"<details>{summary}<ul>{''.join(unique)}</ul></details>"


def _source(source: dict[str, Any]) -> str:
    parts = [source["machine"], source["commit"] and f"commit {source['commit']}", source["date"]]
    values = " · ".join(escape(part) for part in parts if part)
    where = f"{source['file']}:{source['line']}"
    return f"<li><code>{escape(source['id'])}</code> {values} <span>{escape(where)}</span></li>"


def _commands(text: str) -> str:
    """Each on a line of its own."""
    return "<br>".join(f"<code>{escape(each)}</code>" for each in text.split(" && ") if each)


def _code_marks(text: str) -> str:
    """`x` as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if index % 2 else piece for index, piece in enumerate(pieces))


def _short_title(title: str) -> str:
    """Before the colon, or the name in brackets where the title is long."""
    head = title.split(":")[0]
    if len(head) <= 40:
        return head
    return head.rpartition("(")[2].rstrip(")") or head[:40]


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"

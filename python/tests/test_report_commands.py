"""The commands that `penstock report` lists and those of --quick: each parses, and writes the lines that
figures select."""

from __future__ import annotations

import argparse
import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from penstock.cli.bench import TopicGroup
from penstock.cli.main import penstock
from penstock.report import papers, quick
from penstock.report.papers.rows import Term
from penstock.report.papers.terms import over_graph, scales_of

TREE = Path(__file__).parents[2]
LISTED = [each for each in papers.listing(papers.load_papers(), []) if each.command]
COMMANDS = [(each.key, command) for each in LISTED for command in each.command.split(" && ")]
QUICK = {executor: quick.quick_commands(executor) for executor in ("cpu", "cuda")}
EVERY = [*COMMANDS, *(("quick", command) for commands in QUICK.values() for command in commands)]
LAUNCHERS = {"python": 1, "torchrun": 3}
"""Words before the program."""
LISTS = ("patterns", "procedure", "preset", "directory", "media", "executor")
"""Options of topics whose help has each value."""

pytestmark = pytest.mark.skipif(not (TREE / "benchmarks").is_dir(), reason="the benchmarks are not here")


class ParsedError(Exception):
    """Ends a program behind its parser."""


def of_benchmarks() -> list[str]:
    return sorted({command for _, command in EVERY if command.split()[0] in LAUNCHERS})


def program_of(command: str) -> tuple[Path, list[str]]:
    words = command.split()
    at = LAUNCHERS[words[0]]
    return TREE / words[at], [word.strip("'") for word in words[at + 1 :]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("command", of_benchmarks())
def test_a_program_takes_the_options_of_its_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, words = program_of(command)
    assert program.is_file()
    for module in set(re.findall(r"^(?:import|from) (torch|torch_geometric)", program.read_text(), re.M)):
        pytest.importorskip(module)
    pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(*arguments: Any) -> None:
        parse(*arguments)
        raise ParsedError

    monkeypatch.syspath_prepend(str(program.parent))
    monkeypatch.setattr(sys, "argv", [str(program), *words])
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    with pytest.raises(ParsedError):
        runpy.run_path(str(program), run_name="__main__")


def test_topics_take_the_options_of_their_commands() -> None:
    pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
    from penstock import bench

    helps = {topic.name: topic.options for topic in bench.topics()}
    checked = 0
    for key, command in EVERY:
        words = command.split()
        if words[0] != "penstock":
            continue
        if words[1] != "bench":
            penstock.commands[words[1]].make_context(words[1], words[2:])
            continue
        topic = TopicGroup().get_command(click.Context(click.Group()), words[2])
        assert topic is not None, key
        topic.make_context(words[2], words[3:])
        for option, value in zip(words[3::2], words[4::2], strict=True):
            named = option.removeprefix("--")
            if named in LISTS:
                known = re.findall(r"[\w.]+", helps[words[2]][named])
                assert set(value.split(",")) <= set(known), (key, option)
        checked += 1
    assert checked > 20


def test_scripts_have_the_mode_of_their_command() -> None:
    scripts = [command.split() for _, command in COMMANDS if command.startswith("scripts/")]
    assert scripts
    for name, out, mode in scripts:
        subprocess.run(["bash", "-n", str(TREE / name)], check=True)
        assert out == "OUT"
        assert re.search(rf"OUT \[[^]]*\b{mode}\b", (TREE / name).read_text())


def test_commands_write_result_lines() -> None:
    for key, command in EVERY:
        assert re.search(r"--(results|output) \w+\.jsonl|^scripts/gpu_check OUT", command), key


def test_commands_name_nothing_that_a_reader_has_to_find() -> None:
    for key, command in EVERY:
        capitals = [word for word in command.split() if word.isupper() and word.isalpha()]
        assert capitals in ([], ["OUT"]), key


def written(command: str) -> set[str]:
    """Beginnings of the ids that a command writes."""
    words = command.split()
    options = {name: value.strip("'") for name, value in itertools.pairwise(words) if name.startswith("--")}
    if words[0] == "penstock" and words[1] != "bench":
        return {"write."}
    if words[0] == "penstock":
        return {f"{options.get('--procedure', words[2])}."}
    if words[0].startswith("scripts/"):
        return {"write."}
    if "graph_algorithms.py" in command:
        return ids_of_graphs(options)
    program, _ = program_of(command)
    text = program.read_text()
    parts = re.findall(r"^(?:from|import) (gnn_\w+|array_bench)", text, re.M)
    text += "".join((program.parent / f"{part}.py").read_text() for part in parts)
    return set(re.findall(r'f?"([a-z]+\.)[\w{.]', text))


def ids_of_graphs(options: dict[str, str]) -> set[str]:
    """By benchmarks/graph_algorithms.py, of whose ids these options are parts."""
    given = {"--only": "bfs,cc,pagerank,sssp", "--strategies": "", **options}
    parts = (given[name].split(",") for name in ("--placements", "--only", "--strategies"))
    graph = f"{given['--graph']}:{given['--variant']}" if "--variant" in given else given["--graph"]
    note = given.get("--note", "")
    return {
        f"graph.{placement}.{algorithm}.{graph}.{strategy}{note if strategy else ''}"
        for placement, algorithm, strategy in itertools.product(*parts)
    }


@pytest.mark.parametrize("listed", LISTED, ids=lambda listed: listed.key)
def test_commands_write_the_lines_that_their_figure_selects(listed: papers.Listed) -> None:
    begins = set().union(*map(written, listed.command.split(" && ")))
    missing = [id for id in listed.ids if not any(matches(id, begin) for begin in begins)]
    assert missing == []


def matches(id: str, begin: str) -> bool:
    return id.startswith(begin) if begin.endswith(".") else id == begin


def answered(executor: str) -> set[str]:
    """Figures of which --quick writes a point's lines, over the figure's graph or a smaller one."""
    begins = set().union(*map(written, QUICK[executor]))
    scales = {scale for id in begins for scale in scales_of(id)}

    def has(term: Term) -> bool:
        own = any(matches(term.id, begin) for begin in begins)
        return own and all(has(part) for part in (term.over, term.minus) if part is not None)

    return {
        figure.key
        for paper in papers.load_papers()
        for figure in paper.figures
        for point in figure.points
        if point.ours and any(all(has(over_graph(t, scale)) for t in point.ours) for scale in scales)
    }


def test_quick_answers_the_questions_and_most_figures_on_one_gpu() -> None:
    found = answered("cuda")
    assert {answer.figure for answer in papers.load_answers(papers.load_papers())} <= found
    assert len(found) >= 60
    assert len(answered("cpu")) >= 35

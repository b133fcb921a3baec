from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import fakes
import numpy as np
import penstock
import pytest
from penstock import doctor
from penstock.cli import main as cli
from penstock.cli import vertex_names
from penstock.cli.progress_bar import progress_bar


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeNative:
    """The command with a stand-in for the compiled part, and one graph whatever is asked for."""
    fake = fakes.FakeNative()
    fakes.use_folder(monkeypatch, fakes.FakeFolder(Path("/data/tiny")))
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


def test_options_reach_the_compiled_part(native: fakes.FakeNative) -> None:
    sizes = "--source gcc --cache 1MiB --line 512 --directory set --threads 3 --queue-depth 8"
    options = f"{sizes} --executor cpu --engine pread --direct --verify --strategy tiled(64) --trials 2"
    assert cli.main(["bfs", "tiny", *options.split()]) == 0
    asked = dict(native.asked)
    assert Path(asked.pop("path")).name == "tiny"
    assert asked == {
        "source": 1,
        "cache": 1 << 20,
        "line": 512,
        "directory": "set",
        "executor": "cpu",
        "engine": "pread",
        "direct": True,
        "threads": 3,
        "queue_depth": 8,
        "verify": True,
        "placement": "storage",
        "strategy": "tiled(64)",
        "ablate": "nothing",
        "queues": 0,
        "media": "file",
        "drives": 1,
        "media_place": "hbm",
        "layout": "striped",
        "server_sms": 0,
        "trials": 2,
        "sources": "gap",
        "level_traffic": False,
    }


def test_defaults(native: fakes.FakeNative) -> None:
    assert cli.main(["bfs", "tiny"]) == 0
    defaults = (native.asked["source"], native.asked["cache"], native.asked["line"])
    assert defaults == (-1, 16 << 20, 4096)
    assert native.asked["directory"] == "auto"


def test_the_table_names_what_was_counted(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bfs", "tiny", "--verify"]) == 0
    out, err = capsys.readouterr()
    for word in (
        "vertices reached",
        "levels",
        "edges traversed",
        "direct; 2.0 GiB for a TiB of edges",
        "TEPS",
        "hits",
        "misses",
        "fills",
        "bytes asked",
    ):
        assert word in out
    for word in ("bytes moved", "8.0 KiB, ", "512.00:", "cpu (2 threads)", "io_uring", "verified"):
        assert word in out
    assert "2 (bash)" in out
    assert "libc6 (3), gcc (1)" in out
    assert err == ""


def test_json_is_one_object_with_everything(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bfs", "tiny", "--json", "--verify"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verified"] is True
    assert set(data) == {f.name for f in dataclasses.fields(penstock.BfsResult)} - {"parents", "folder"}
    assert data["level_sizes"] == [1, 2]


def test_a_wrong_result_is_told_and_ends_with_1(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str]
) -> None:
    native.answer = {"verified": False, "violation": "vertex 3 has parent 7, which is no vertex"}
    sentence = r"penstock: verify (tiny|debian|urand:16): vertex 3 has parent 7, which is no vertex\n"
    for arguments in (["bfs", "tiny", "--verify"], ["bfs", "tiny", "--json", "--verify"], ["demo"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(arguments)
        assert stopped.value.code == cli.WRONG_RESULT
        out, err = capsys.readouterr()
        assert re.fullmatch(sentence, err)
        if "--json" in arguments:
            assert json.loads(out)["violation"] in sentence
        else:
            assert out.count("no: the result is wrong") == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["bfs"], "Missing argument 'GRAPH'"),
        (["bfs", ""], "no such graph"),
        (["bfs", "tiny", "--cache", "many"], "write it as 16MiB"),
        (["bfs", "tiny", "--line", "-4"], "write it as 16MiB"),
        (["bfs", "tiny", "--executor", "tpu"], "'tpu' is not one of"),
        (["bfs", "tiny", "--engine", "aio"], "'aio' is not one of"),
        (["bfs", "tiny", "--threads", "-1"], "threads -1: it must be 0 or more"),
        (["bfs", "tiny", "--threads", "3000000000"], "threads 3000000000: it must be 1024 or less"),
        (["bfs", "tiny", "--cache", "99999999TiB"], "size 99999999TiB: more bytes than can be addressed"),
        (["bfs", "tiny", "--queue-depth", "0"], "queue_depth 0: it must be 2 or more"),
        (["bfs", "tiny", "--source", "x"], "source 'x': no vertex has this name"),
        (["bfs", "tiny", "--source", "1"], "source '1': no vertex has this name"),
        (["bfs", "tiny", "--frames"], "No such option"),
        (["flood"], "No such command 'flood'"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    assert part in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    ("problem", "part"),
    [
        (
            ValueError("cache 4096: the groups in flight pin more:\nask for a larger one"),
            "more: ask for a larger one",
        ),
        (
            penstock.Error("read /x: Input/output error: check the disk", errno.EIO),
            "read /x: Input/output error",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "/cache/x"), "/cache/x: No space left on device"),
        (PermissionError("no"), "no"),
        (MemoryError(), "ask for a smaller cache"),
    ],
)
def test_what_the_machine_refuses_is_told_in_one_sentence(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], problem: BaseException, part: str
) -> None:
    native.problem = problem
    assert part in refusal(capsys, "bfs", "tiny")


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), click.Abort()])
def test_interrupted(
    native: fakes.FakeNative, capsys: pytest.CaptureFixture[str], problem: BaseException
) -> None:
    native.problem = problem
    assert cli.main(["bfs", "tiny"]) == cli.INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["version", "model"])
def test_a_reader_that_has_gone_is_no_wrong_result(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run([sys.executable, "-m", "penstock", command], stdout=writing)
    finally:
        os.close(writing)
    assert ended.returncode == 128 + signal.SIGPIPE


def test_a_missing_compiled_part_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], native: fakes.FakeNative
) -> None:
    monkeypatch.setitem(sys.modules, "penstock._native", None)
    monkeypatch.delattr(penstock, "_native")
    assert "reinstall" in refusal(capsys, "bfs", "tiny")
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == f"penstock {penstock.__version__} (its compiled part is missing)\n"


def test_progress_is_reported_by_part(native: fakes.FakeNative) -> None:
    seen: list[tuple[str, int, int]] = []
    penstock.bfs("tiny", progress=lambda what, done, total: seen.append((what, done, total)))
    assert seen == [("prepare", 3, 3), ("level 1", 1, 2)]


def test_progress_bar_only_on_a_terminal(native: fakes.FakeNative, monkeypatch: pytest.MonkeyPatch) -> None:
    with progress_bar() as progress:
        assert progress is None
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar() as progress:
        assert progress is not None
        progress("prepare", 2, 2)
        progress("level 1", 1, 2)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["bfs", "--help"], ["doctor", "-h"], ["demo", "--help"], ["plot", "--help"], ["version"]],
)
def test_help_and_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out


def test_help_lists_each_option_once_under_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pagerank", "--help"]) == 0
    text = capsys.readouterr().out.partition("\nOptions:")[2]
    headings = re.findall(r"^(\w.*):$", text, re.M)
    assert len(headings) == len(set(headings)) == 4
    for option in cli.penstock.commands["pagerank"].params:
        if isinstance(option, click.Option):
            assert len(re.findall(rf"^  {option.opts[0]}(?![\w-])", text, re.M)) == 1, option.opts
    own, after = text.split("How a file is read:")
    assert "--damping" in own
    assert "--columns" in after.split("Where edges lie")[0]


def test_help_lists_each_command_under_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in cli.penstock.commands:
        assert len(re.findall(rf"^  {name} ", text, re.M)) == 1, name
    assert text.index("\n  bfs ") < text.index("Drives:") < text.index("\n  nvme ")


def test_completion_offers_options_and_their_values() -> None:
    from click.shell_completion import BashComplete

    def completions(words: list[str], begun: str) -> list[str]:
        complete = BashComplete(cli.penstock, {}, "penstock", "_PENSTOCK_COMPLETE")
        return [item.value for item in complete.get_completions(words, begun)]

    assert completions(["bfs"], "--plac") == ["--placement"]
    assert completions(["bfs", "--placement"], "st") == ["storage"]


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == cli.REFUSED
    out, err = capsys.readouterr()
    assert "bfs" in out + err


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in rows] == list(doctor.PROBES)
    assert cli.main(["doctor"]) == 0
    assert "io_uring" in capsys.readouterr().out


@pytest.mark.parametrize("lists", ["ok", "missing"])
def test_demo_searches_two_graphs_and_verifies_both(
    native: fakes.FakeNative,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lists: doctor.State,
) -> None:
    row = doctor.Row("package lists", lists, "found", "gives")
    monkeypatch.setattr(doctor, "examine", lambda machine: [row])
    assert cli.main(["demo"]) == 0
    out = capsys.readouterr().out
    first = "debian" if lists == "ok" else "urand:16"
    assert f"$ penstock bfs {first} --cache 256KiB --verify" in out
    assert "$ penstock bfs kron:20 --cache 16MiB --verify" in out
    assert ("stands in" in out) == (lists == "missing")
    assert "Try next:" in out


def test_names_of_the_most_reached(native: fakes.FakeNative) -> None:
    places = vertex_names.named_places(fakes.make_result())
    assert places is not None
    assert (places.source, places.most) == ("bash", [("libc6", "3"), ("gcc", "1")])


def test_no_names_where_a_graph_has_none(native: fakes.FakeNative, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.use_folder(monkeypatch, fakes.FakeFolder(Path("/data/tiny"), names=None))
    assert vertex_names.named_places(fakes.make_result()) is None
    fakes.use_folder(monkeypatch, fakes.FakeFolder(Path("/data/tiny")))
    assert vertex_names.named_places(fakes.make_result(edges=vertex_names.MOST_EDGES + 1)) is None


def test_a_graph_that_is_open_already_is_searched_as_it_is(native: fakes.FakeNative) -> None:
    folder: Any = fakes.FakeFolder(Path("/data/open"))
    assert penstock.bfs(folder).graph == "/data/open"
    assert native.asked["path"] == "/data/open"


def test_error_keeps_its_errno_through_a_copy() -> None:
    import pickle

    problem = penstock.Error("read /x: failed: check the disk", errno.EIO)
    copy = pickle.loads(pickle.dumps(problem))
    assert (str(copy), copy.errno, type(copy)) == (str(problem), errno.EIO, penstock.Error)
    assert isinstance(copy, OSError)


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        (
            {"cache": "99999999TiB"},
            ValueError,
            "cache 99999999TiB: more bytes than can be addressed: give a smaller size",
        ),
        (
            {"line": 1 << 63},
            ValueError,
            f"line {1 << 63}: more bytes than can be addressed: give a smaller size",
        ),
        ({"cache": 1.5}, TypeError, "cache 1.5: give a number of bytes, or text such as 16MiB"),
        ({"threads": 1 << 31}, ValueError, "threads 2147483648: it must be 1024 or less"),
        ({"queue_depth": 1 << 70}, ValueError, f"queue_depth {1 << 70}: it must be 2147483647 or less"),
        ({"threads": 1.0}, TypeError, "threads 1.0: it is no whole number: give an int"),
        ({"queue_depth": "8"}, TypeError, "queue_depth '8': it is no whole number: give an int"),
        ({"source": True}, TypeError, "source True: it is no whole number: give an int"),
        ({"source": np.False_}, TypeError, f"source {np.False_!r}: it is no whole number: give an int"),
    ],
)
def test_what_the_compiled_part_cannot_take_is_refused_before_it(
    native: fakes.FakeNative, change: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as refused:
        penstock.bfs("tiny", **change)
    assert str(refused.value) == sentence
    assert native.asked == {}


def test_integers_of_numpy_are_numbers(native: fakes.FakeNative) -> None:
    numbers = {"source": np.int32(1), "threads": np.uint8(3), "queue_depth": np.int64(8)}
    penstock.bfs("tiny", cache=np.int64(1 << 20), line=np.uint32(512), **numbers)
    asked = [native.asked[k] for k in ("source", "threads", "queue_depth", "cache", "line")]
    assert asked == [1, 3, 8, 1 << 20, 512]
    assert {type(number) for number in asked} == {int}


@pytest.mark.parametrize(
    "change", [{"executor": "tpu"}, {"engine": "aio"}, {"directory": "tpu"}, {"cache": "x"}, {"line": -1}]
)
def test_bad_arguments_are_value_errors_before_any_work(
    native: fakes.FakeNative, change: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"tpu|aio|x|-1"):
        penstock.bfs("tiny", **change)
    assert native.asked == {}

"""What the commands over graphs print, which options they refuse, and how signals end them."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.cli import main as cli
from penstock.graph import bfs, cc, pagerank, sssp, write_folder

EDGES = "# SNAP\n0\t1\n1\t2\n2 1\n0 1\n"


@pytest.fixture(name="place")
def fixture_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command tells as JSON."""
    assert cli.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_convert_and_info_tell_what_there_is(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.el").write_text(EDGES)
    made = run(capsys, "graph", "convert", "a.el", "g", "--undirected", "--memory", "1GiB")
    assert made == run(capsys, "graph", "info", "g")
    expected = {
        "path": "g", "source": "a.el", "reading": "4 rows: source column 0, target column 1, no weight",
        "vertices": 3, "edges": 4, "directed": False, "edge_dtype": "int32",
        "weight_dtype": None, "names": False, "edge_bytes": 16, "offset_bytes": 32, "mean_degree": 4 / 3,
        "largest_degree": 2, "without_edges": 0,
    }  # fmt: skip
    assert made == expected
    assert run(capsys, "graph", "convert", "kron:6", "k", "--weighted", "--simple")["weight_dtype"] == "int32"
    assert cli.main(["graph", "info", "k"]) == 0
    assert "weights int32" in capsys.readouterr().out
    assert cli.main(["graph", "convert", "a.el", "small", "--memory", "1MiB"]) == cli.REFUSED
    assert "a memory limit of 1 MiB is too small" in capsys.readouterr().err
    assert not Path("small").exists()


def test_output_of_each_algorithm(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = np.array([0.1, 2, 4], np.float32)
    write_folder("g", 4, [0, 1, 3], [1, 2, 3], weights=weights, names=["a", "b", "c,d", "e"])
    write_folder("plain", 4, [0, 1, 3], [1, 2, 3], weights=weights)
    for name, header, rows in (
        ("bfs", "parent", [["a", "a"], ["b", "a"], ["c,d", "b"], ["e", ""]]),
        ("cc", "label", [["a", "a"], ["b", "a"], ["c,d", "a"], ["e", "e"]]),
        (
            "sssp",
            "distance",
            [
                ["a", "0.0"],
                ["b", repr(float(weights[0]))],
                ["c,d", repr(float(weights[0]) + 2)],
                ["e", "inf"],
            ],
        ),
    ):
        source = [] if name == "cc" else ["--source", "a"]
        run(capsys, name, "g", *source, "--output", "out.csv")
        with Path("out.csv").open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file)) == [["vertex", header], *rows]
    run(capsys, "bfs", "plain", "--source", "1", "--output", "out.csv")
    assert Path("out.csv").read_text() == "vertex,parent\n0,-1\n1,1\n2,1\n3,-1\n"
    run(capsys, "pagerank", "plain", "--dtype", "float64", "--output", "out.npy")
    assert np.array_equal(np.load("out.npy"), np.asarray(pagerank("plain", dtype="float64").ranks))
    assert not [p for p in place.iterdir() if p.name.startswith(".")]
    Path("g.npy").mkdir()
    for bad, part in (
        ("out.txt", "written as .npy or .csv"),
        ("g/graph.json/out.npy", "is no folder"),
        ("g.npy", "it is a folder"),
    ):
        assert cli.main(["bfs", "g", "--output", bad]) == cli.REFUSED
        assert part in capsys.readouterr().err
    assert cli.main(["bfs", "g", "--breakdown", "--output", "out.npy"]) == cli.REFUSED
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("--drives 4", "drives 4: it is of modelled drives"),
        ("--layout replicated", "layout replicated: it is of modelled drives"),
        ("--server-sms 3", "server_sms 3: it is of modelled drives"),
        ("--placement host --direct", "direct: it is of storage"),
        ("--placement host --queues 2", "queues 2: it is of storage"),
        ("--placement host --ablate cache", "ablate cache: it is of a cache"),
        ("--media p5800x --direct", "direct: it is of files, and the drives are modelled"),
        (
            "--media p5800x --layout replicated",
            "layout replicated: one drive has all of the graph either way",
        ),
        ("--media p5800x --media-place host --executor cpu", "media_place host: without a GPU"),
        ("--placement host --cache 1MiB", "cache 1048576: it is of a cache, and placement host has none"),
        ("--placement pinned --line 4KiB", "line 4096: it is of a cache, and placement pinned has none"),
        ("--placement host --directory set", "directory set: it is of a cache"),
        ("--placement host --queue-depth 8", "queue_depth 8: it is of storage"),
        ("--placement host-cached --engine pread", "engine pread: it is of storage"),
        ("--placement host-cached --ablate read-ahead", "ablate read-ahead: nothing is read ahead"),
        ("--sources bam --source 1", "sources bam: none is drawn beside source 1: leave one out"),
        ("--undirected --incoming --placement host", "incoming: undirected edges lie both ways already"),
        ("--incoming --placement host", "incoming: the graph is undirected"),
        ("--incoming", "incoming: a search uses incoming edges where lists are read in place"),
        ("--incoming --placement host --strategy merged", "incoming: a search uses incoming edges where"),
        ("--undirected", "undirected: it is of a graph that is converted, and this one is a generator"),
    ],
)
def test_options_that_would_change_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], options: str, part: str
) -> None:
    assert cli.main(["bfs", "kron:4", *options.split()]) == cli.REFUSED
    said = capsys.readouterr().err
    assert said.startswith(f"penstock: bfs kron:4: {part}")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: cc("kron:4", sources="bam"), "cc kron:4: sources bam: cc has no source"),
        (lambda: cc("kron:4", incoming=True), "cc kron:4: incoming: cc does not use lists of incoming"),
        (lambda: sssp("kron:4", incoming=True), "sssp kron:4: incoming: sssp does not use lists of"),
        (
            lambda: pagerank("kron:4", weighted=True, incoming=True),
            "incoming: lists of incoming edges have no",
        ),
        (lambda: pagerank("kron:4", sources="emogi"), "sources emogi: pagerank has no source"),
        (
            lambda: bfs("kron:4", placement="host", level_traffic=True, executor="cpu"),
            "level_traffic: nothing",
        ),
        (lambda: bfs("kron:4", placement="host", cache="16MiB"), "cache 16MiB: it is of a cache"),
        (
            lambda: bfs("g", memory="1GiB"),
            "bfs g: memory 1GiB: it is of a graph that is converted, .* a folder",
        ),
    ],
)
def test_each_algorithm_refuses_what_would_change_nothing(
    place: Path, call: Callable[[], Any], part: str
) -> None:
    write_folder("g", 2, [0], [1])
    with pytest.raises(ValueError, match=part):
        call()


def test_plots_of_what_a_cpu_reads_in_place_have_no_traffic(place: Path) -> None:
    assert cli.moves_bytes(placement="storage", executor="cpu", trials=1)
    assert not cli.moves_bytes(placement="host", executor="cpu", trials=1)
    assert cli.moves_bytes(placement="host", executor="cuda")


def test_a_source_without_edges_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder("g", 2, [0], [1])
    assert cli.main(["bfs", "g", "--source", "1"]) == 0
    assert "1: no edge leaves it" in capsys.readouterr().out


def test_json_has_no_infinity(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder("g", 2, [0], [1], weights=[1.5])
    assert run(capsys, "sssp", "g", "--source", "0", "--delta", "inf")["delta"] is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_program_and_leaves_nothing(place: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "penstock", "graph", "convert", "kron:22", "g", "--threads", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not any(p.name.startswith(".g.tmp") for p in place.iterdir()):
            time.sleep(0.005)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said.splitlines()[-1] == f"penstock: ended by {number.name}"
    assert list(place.iterdir()) == []


def test_remarks_are_sentences(place: Path) -> None:
    Path("a.bel.col").write_bytes(np.array([4, 0], "<u8").tobytes() + np.array([0, 1, 4], "<u8").tobytes())
    Path("a.bel.dst").write_bytes(np.array([4, 0, 1, 0, 0, 1], "<u8").tobytes())
    program = [sys.executable, "-m", "penstock", "bfs", "a.bel", "--source", "0"]
    printed = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stderr
    assert printed.startswith("penstock: read a.bel.col: its header says 4 offsets")
    assert printed.splitlines()[1] == "penstock: read a.bel: 4 edges in lists of neighbours, no weights"
    assert printed.count("\n") == 2


def test_ctrl_c_while_it_is_loaded_is_no_traceback(place: Path) -> None:
    program = textwrap.dedent("""
        import sys, time
        import penstock.__main__

        class Slow:
            def find_spec(self, name, path, target=None):
                if name == "penstock.cli.main":
                    print("up", flush=True)
                    time.sleep(60)

        sys.meta_path.insert(0, Slow())
        sys.exit(penstock.__main__.program())
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program, "graph", "info", "kron:20"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1]
    assert (process.returncode, told.strip()) == (130, "penstock: interrupted")

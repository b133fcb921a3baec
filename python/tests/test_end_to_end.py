"""Whole searches, through the compiled part: what the command does on a user's machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import bench, machine
from penstock.cli import main as cli

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

LINE = 4096


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


def search(cache_dir: Path, graph: str, **options: Any) -> penstock.BfsResult:
    """A verified search whose counts agree with each other."""
    result = penstock.bfs(graph, cache_dir=cache_dir, executor="cpu", verify=True, **options)
    assert result.verified is True
    assert result.levels == len(result.level_sizes)
    assert result.reached == sum(result.level_sizes) <= result.vertices
    assert result.bytes_moved <= result.fills * result.line_bytes
    assert result.errors == 0
    return result


def write_edges(path: Path, edges: str) -> str:
    path.write_text(edges)
    return str(path)


@pytest.mark.parametrize("graph", ["kron:12", "urand:12"])
def test_a_generated_graph_through_a_cache_of_a_few_lines(cache_dir: Path, graph: str) -> None:
    result = search(cache_dir, graph, cache=16 * LINE, threads=1)
    assert result.frames == 16
    assert result.evictions > 0
    assert result.bytes_moved > result.cache_bytes


def test_the_packages_of_this_machine_through_a_cache_of_a_few_lines(cache_dir: Path) -> None:
    if not any("_Packages" in name for name in machine.Machine().listing("/var/lib/apt/lists")):
        pytest.skip("no package lists on this machine")
    assert search(cache_dir, "debian", cache=16 * LINE, threads=1).reached > 1


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "pread"},
        {"direct": True},
        {"engine": "pread", "direct": True},
        {"line": 512},
        {"line": "64K", "cache": "4MiB"},
        {"threads": 4},
        {"queue_depth": 2},
        {"source": 0},
    ],
    ids=str,
)
def test_every_way_to_read_gives_the_same_search(cache_dir: Path, options: dict[str, Any]) -> None:
    source = options.pop("source", 0)
    result = search(cache_dir, "urand:10", **{"cache": "64KiB", **options}, source=source)
    expected = search(cache_dir, "urand:10", source=source)
    assert result.level_sizes == expected.level_sizes


def test_a_file_is_converted_once_and_numpy_opens_it(cache_dir: Path, tmp_path: Path) -> None:
    file = write_edges(tmp_path / "path.el", "0 1\n1 2\n2 3\n4 0\n")
    result = search(cache_dir, file, source=0)
    assert (result.reached, result.levels, result.level_sizes) == (4, 4, [1, 1, 1, 1])
    assert np.load(Path(result.path) / "edges.npy").tolist() == [1, 2, 3, 0]
    assert search(cache_dir, result.path, source=4).reached == 5


def test_the_drawn_source_has_edges_and_is_the_same_each_time(cache_dir: Path, tmp_path: Path) -> None:
    file = write_edges(tmp_path / "one.el", "7 3\n")
    assert [search(cache_dir, file).source for _ in range(2)] == [7, 7]


def test_the_command_tells_the_same_as_data(
    cache_dir: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = write_edges(tmp_path / "two.el", "0 1\n1 0\n")
    assert cli.main(["bfs", file, "--verify", "--json", "--cache-dir", str(cache_dir)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["verified"], data["reached"], data["edges_traversed"]) == (True, 2, 2)


def truncate(folder: Path) -> None:
    edges = folder / "edges.npy"
    edges.write_bytes(edges.read_bytes()[:-4])


def wrong_magic(folder: Path) -> None:
    edges = folder / "edges.npy"
    edges.write_bytes(b"x" + edges.read_bytes()[1:])


def wrong_type(folder: Path) -> None:
    np.save(folder / "edges.npy", np.array([1.0, 2.0, 0.0]))


def backwards(folder: Path) -> None:
    np.save(folder / "offsets.npy", np.array([0, 2, 1, 3], dtype=np.uint64))


def out_of_range(folder: Path) -> None:
    np.save(folder / "edges.npy", np.array([1, 2, 9], dtype=np.int32))


def missing(folder: Path) -> None:
    (folder / "edges.npy").unlink()


def other_count(folder: Path) -> None:
    facts = folder / "graph.json"
    facts.write_text(facts.read_text().replace('"edges": 3', '"edges": 4'))


@pytest.mark.parametrize(
    "damage", [truncate, wrong_magic, wrong_type, backwards, out_of_range, missing, other_count]
)
def test_a_damaged_graph_is_refused_in_one_sentence(
    cache_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Any
) -> None:
    file = write_edges(tmp_path / "ring.el", "0 1\n1 2\n2 0\n")
    folder = Path(search(cache_dir, file).path)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    damage(copy)
    assert cli.main(["bfs", str(copy), "--executor", "cpu"]) == cli.REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("penstock: ")
    assert str(copy) in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--cache", "4KiB", "--line", "4KiB"],
        ["--line", "3000"],
        ["--line", "256"],
        ["--line", "1MiB"],
        ["--source", "99999"],
        ["--cache", "0"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_in_one_sentence(
    cache_dir: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    arguments = ["bfs", "urand:8", "--executor", "cpu", "--cache-dir", str(cache_dir), *options]
    assert cli.main(arguments) == cli.REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1


def test_cuda_without_a_gpu_is_refused(cache_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from penstock import _native

    if _native.cuda_usable()[0]:
        pytest.skip("this machine has a GPU")
    assert cli.main(["bfs", "urand:8", "--executor", "cuda", "--cache-dir", str(cache_dir)]) == cli.REFUSED
    assert "cuda" in capsys.readouterr().err.lower()


def test_progress_can_stop_a_search(cache_dir: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("level"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.bfs("urand:10", cache_dir=cache_dir, executor="cpu", progress=stop)
    assert search(cache_dir, "urand:10").verified


SMALL = {"executor": "cpu", "mib": "8", "patterns": "linear", "repeats": "1"}


def test_a_small_benchmark_of_hits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = [word for name, value in SMALL.items() for word in (f"--{name}", value)]
    file, image = tmp_path / "hit.jsonl", tmp_path / "hit.svg"
    assert cli.main(["bench", "hit", *options, "--output", str(file), "--plot", str(image)]) == 0
    out, err = capsys.readouterr()
    assert "hit.linear" in out
    assert "plain array" in out
    assert "for a TiB of data" in out
    assert err == ""
    measured = bench.read_lines(file)
    assert {m.line["verified"] for m in measured} == {True}
    assert all(m.value > 0 and m.params["bytes"] == str(8 << 20) for m in measured)
    assert "hit.linear" in image.read_text()


def test_no_topic_has_an_option_that_all_topics_have() -> None:
    from penstock.cli.bench import topic_command

    for topic in bench.topics():
        assert topic.what
        flags = [flag for option in topic_command(topic).params for flag in option.opts]
        assert len(flags) == len(set(flags))


@pytest.mark.parametrize(
    "options", [{"mib": "x"}, {"line": "3000"}, {"patterns": "flood"}, {"flood": "1"}], ids=str
)
def test_what_cannot_be_measured_is_a_value_error(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"\w+: "):
        bench.run("hit", {**SMALL, **options})
    with pytest.raises(ValueError, match=r"choose one of .*hit"):
        bench.run("flood")


def test_progress_can_stop_a_benchmark() -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("hit."):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.run("hit", SMALL, progress=stop)
    assert bench.run("hit", SMALL)

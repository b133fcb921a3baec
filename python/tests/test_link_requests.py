"""Requests over a link: counts by hand, a slow reference, and what the command prints."""

from __future__ import annotations

import ctypes
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.cli import main as cli
from penstock.graph import bfs, cc, link, link_lists, link_requests, pagerank, sssp, write_folder
from penstock.graph.link_counters import CountersMissing, LinkCounters
from penstock.report.papers import read_run_files

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


def numbers(*values: int) -> link_lists.Numbers:
    return np.array(values, np.int64)


def by_warps(*lists: tuple[int, int], item: int = 4, aligned: bool = True) -> dict[int, int]:
    begin, end = (numbers(*side) for side in zip(*lists, strict=True))
    return link.requests_of_warps(begin, end, item, aligned=aligned)


def by_threads(*lists: tuple[int, int], item: int = 4) -> dict[int, int]:
    """Lists of vertices 0, 1, ... that are read in one round."""
    begin, end = (numbers(*side) for side in zip(*lists, strict=True))
    return link.requests_of_threads(begin, end, np.zeros_like(begin), np.arange(len(begin)), item)


@pytest.mark.parametrize(
    ("lists", "aligned", "expected"),
    [
        # One line of 32 items of 4 bytes.
        ([(0, 32)], False, (0, 0, 0, 1)),
        # Off by a sector, as in the dissertation's Figure 2.4 (c): each step has 96 and 32 bytes.
        ([(8, 72)], False, (2, 0, 2, 0)),
        # The same list from the line before: 24 items, 32 items, 8 items.
        ([(8, 72)], True, (1, 0, 1, 1)),
        # Off by one item: sectors 0 to 3, 4; then 5 to 7 (4 was read), 8.
        ([(1, 65)], False, (2, 0, 1, 1)),
        ([(1, 65)], True, (1, 0, 0, 2)),
        # Short lists: a sector; two on both sides of a line's end; none.
        ([(3, 5), (30, 34), (7, 7)], True, (3, 0, 0, 0)),
        ([(3, 5), (30, 34), (7, 7)], False, (3, 0, 0, 0)),
        # 10 items from item 4 on: bytes 16 to 56, two sectors.
        ([(4, 14)], True, (0, 1, 0, 0)),
    ],
)
def test_warps_by_hand(lists: list[tuple[int, int]], aligned: bool, expected: tuple[int, ...]) -> None:
    assert tuple(by_warps(*lists, aligned=aligned).values()) == expected


def test_items_of_eight_bytes_have_two_lines_a_step() -> None:
    assert by_warps((0, 32), item=8) == {32: 0, 64: 0, 96: 0, 128: 2}
    assert by_warps((4, 36), item=8, aligned=False) == {32: 1, 64: 0, 96: 1, 128: 1}


def test_threads_by_hand() -> None:
    # Lists of a line each: in step 8 k each thread asks for its sector k, far from the others'.
    assert by_threads((0, 32), (32, 64), (64, 96)) == {32: 12, 64: 0, 96: 0, 128: 0}
    # Lists of a sector each, side by side: in step 0 four threads ask for one line together.
    assert by_threads((0, 8), (8, 16), (16, 24), (24, 32)) == {32: 0, 64: 0, 96: 0, 128: 1}
    # One sector for two threads in one step is asked for once.
    assert by_threads((0, 4), (4, 8)) == {32: 1, 64: 0, 96: 0, 128: 0}
    # Sectors 0 and 2 of a line are two requests.
    assert by_threads((0, 8), (16, 24)) == {32: 2, 64: 0, 96: 0, 128: 0}


def test_warps_and_rounds_are_kept_apart() -> None:
    begin, end = numbers(0, 8), numbers(8, 16)
    together = link.requests_of_threads(begin, end, numbers(0, 0), numbers(0, 1), 4)
    assert together == {32: 0, 64: 1, 96: 0, 128: 0}
    for rounds, vertices in ((numbers(0, 1), numbers(0, 1)), (numbers(0, 0), numbers(31, 32))):
        assert link.requests_of_threads(begin, end, rounds, vertices, 4) == {32: 2, 64: 0, 96: 0, 128: 0}


def slow_requests(offsets: list[int], levels: list[int], item: int, strategy: str) -> dict[int, int]:
    """Lane by lane and step by step."""
    found: Counter[int] = Counter()
    groups: dict[tuple[int, int], list[int]] = {}
    for v, level in enumerate(levels):
        if level >= 0:
            groups.setdefault((level, v // 32 if strategy == "thread" else v), []).append(v)
    for vertices in groups.values():
        read: set[tuple[int, int]] = set()
        if strategy == "thread":
            longest = max(offsets[v + 1] - offsets[v] for v in vertices)
            steps = [
                [(v, offsets[v] + k) for v in vertices if offsets[v] + k < offsets[v + 1]]
                for k in range(longest)
            ]
        else:
            (v,) = vertices
            origin = offsets[v] - (offsets[v] % 32 if strategy == "merged_aligned" else 0)
            steps = [
                [(0, i) for i in range(at, at + 32) if offsets[v] <= i < offsets[v + 1]]
                for at in range(origin, offsets[v + 1], 32)
            ]
        for step in steps:
            asked = {(reader, i * item // 32) for reader, i in step} - read
            read |= asked
            run = 0
            sectors = {sector for _, sector in asked}
            for sector in sorted(sectors):
                run += 1
                if sector + 1 not in sectors or sector % 4 == 3:
                    found[32 * run] += 1
                    run = 0
    return {size: found[size] for size in link.SIZES}


@pytest.mark.parametrize("strategy", ["thread", "merged", "merged_aligned"])
@pytest.mark.parametrize("id_bytes", [4, 8])
def test_a_search_asks_for_what_its_lanes_read(
    strategy: str, id_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_lists, "PIECE", 100)
    random = np.random.default_rng(7)
    vertices = 300
    degrees = np.where(random.random(vertices) < 0.1, random.integers(50, 200, vertices), 5)
    offsets = np.concatenate(([0], np.cumsum(degrees)))
    edges: Any = random.integers(0, vertices, int(offsets[-1]))
    graph = write_folder(tmp_path / "g", vertices, np.repeat(np.arange(vertices), degrees), edges)
    result = bfs(graph, source=0, placement="host", executor="cpu", strategy=strategy)
    found = link_requests(result, id_bytes)
    levels = link_lists.levels_of(np.asarray(result.parents), 0)
    expected = slow_requests(graph.offsets().tolist(), levels.tolist(), id_bytes, strategy)
    assert found.counts == expected
    assert found.edge_bytes == result.edges_traversed * id_bytes
    assert Counter(levels[levels >= 0].tolist()) == dict(enumerate(result.level_sizes))


@pytest.mark.parametrize("strategy", ["thread", "merged", "merged_aligned"])
def test_components_and_ranks_read_all_lists(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    how: Any = {"placement": "host", "executor": "cpu", "strategy": strategy}
    components, ranks = cc("kron:8", **how), pagerank("kron:8", iterations=3, tolerance=0, **how)
    offsets = components.folder.offsets().tolist()
    expected = slow_requests(offsets, [0] * components.vertices, 4, strategy)
    assert link_requests(components).counts == expected
    assert link_requests(ranks).counts == {size: 3 * count for size, count in expected.items()}
    assert link_requests(ranks).edge_bytes == 4 * ranks.edges_traversed == 12 * ranks.edges


def slow_tiles(offsets: list[int], rounds: list[set[int]], item: int) -> dict[int, int]:
    """Line by line: the sectors of it that lists of a round have, in runs."""
    found: Counter[int] = Counter()
    for vertices in rounds:
        sectors = {edge * item // 32 for v in vertices for edge in range(offsets[v], offsets[v + 1])}
        run = 0
        for sector in sorted(sectors):
            run += 1
            if sector + 1 not in sectors or sector % 4 == 3:
                found[32 * run] += 1
                run = 0
    return {size: found[size] for size in link.SIZES}


@pytest.mark.parametrize("strategy", ["tiled", "tiled_frontier"])
@pytest.mark.parametrize("id_bytes", [4, 8])
def test_tiles_are_read_where_a_round_wants_some_of_them(
    strategy: str, id_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    result = bfs("kron:9", placement="host", executor="cpu", strategy=strategy)
    levels = link_lists.levels_of(np.asarray(result.parents), result.source)
    rounds = [set(np.flatnonzero(levels == level).tolist()) for level in range(len(result.level_sizes))]
    found = link_requests(result, id_bytes)
    assert found.counts == slow_tiles(result.folder.offsets().tolist(), rounds, id_bytes)
    assert found.edge_bytes == result.edges_traversed * id_bytes


def test_tiles_without_lists_ask_for_nothing() -> None:
    assert link.requests_of_tiles(numbers(), numbers(), numbers(), 4) == dict.fromkeys(link.SIZES, 0)
    assert link.requests_of_tiles(numbers(3), numbers(3), numbers(0), 4) == dict.fromkeys(link.SIZES, 0)


def test_lists_that_share_a_sector_ask_for_it_once_in_a_round() -> None:
    lists = numbers(0, 3, 8), numbers(3, 8, 40)
    assert link.requests_of_tiles(*lists, numbers(0, 0, 0), 4) == {32: 1, 64: 0, 96: 0, 128: 1}
    assert link.requests_of_tiles(*lists, numbers(0, 1, 0), 4) == {32: 2, 64: 0, 96: 0, 128: 1}


def test_a_round_that_pulls_reads_lists_up_to_a_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.setattr(link_lists, "PIECE", 100)
    result = bfs("kron:10", placement="host", executor="cpu")
    assert "pull" in result.level_strategies
    # A group of the CPU has one lane, which stops at the edge itself.
    monkeypatch.setattr(link_lists, "PULL_WIDTH", 1)
    assert sum(lists.edges for lists in link_lists.lists_of(result)) == result.edges_traversed
    monkeypatch.setattr(link_lists, "PULL_WIDTH", 8)
    for lists in link_lists.lists_of(result):
        whole = np.asarray(result.folder.offsets())[lists.vertices + 1].astype(np.int64)
        assert lists.how != "pull" or ((lists.end % 8 == 0) | (lists.end == whole)).all()


def test_shortest_paths_read_the_lists_of_each_round_and_their_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    how: Any = {"placement": "host", "executor": "cpu", "round_vertices": True}
    result = sssp("kron:8", strategy="frontier", **how)
    assert len(result.round_vertices) == sum(result.level_sizes)
    assert int(result.round_vertices[0]) == result.source
    found = link_requests(result)
    assert found.edge_bytes == 8 * result.edges_traversed
    assert not found.at_most
    offsets = result.folder.offsets().tolist()
    # Each list by itself: what one list asks for, edges and weights.
    expected: Counter[int] = Counter()
    for v in result.round_vertices.tolist():
        levels = [0 if each == v else -1 for each in range(result.vertices)]
        expected.update(slow_requests(offsets, levels, 4, "merged_aligned"))
    assert found.counts == {size: 2 * expected[size] for size in link.SIZES}
    tiled = link_requests(sssp("kron:8", strategy="tiled", **how))
    assert tiled.as_dict()["at_most"] is True


def test_ids_have_four_bytes_or_eight(tmp_path: Path) -> None:
    graph = write_folder(tmp_path / "g", 2, [0], [1])
    result = bfs(graph, source=0, placement="host", executor="cpu", strategy="merged")
    with pytest.raises(ValueError, match="ids of 3 bytes: they have 4 or 8"):
        link_requests(result, 3)


def test_runs_that_read_something_else_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "made"))
    write_folder(tmp_path / "g", 3, [0, 0, 1], [1, 2, 2], weights=[1, 2, 3])
    how: Any = {"placement": "host", "executor": "cpu"}
    aligned: Any = {**how, "strategy": "merged_aligned"}
    found = [
        (pagerank(tmp_path / "g", **aligned), "it reads other lists than all of the graph's"),
        (cc("kron:10", **how), "trace cc with another strategy than auto"),
        (sssp(tmp_path / "g", source=0, **aligned), "search with round_vertices=True"),
        (
            sssp(tmp_path / "g", source=0, round_vertices=True, parents=True, **aligned),
            "parents read more lists: leave them out",
        ),
    ]
    for result, part in found:
        with pytest.raises(ValueError, match=part):
            link_requests(result)
    with pytest.raises(TypeError, match="round_vertices 1: give True or False"):
        sssp(tmp_path / "g", source=0, round_vertices=1, **how)  # type: ignore[arg-type]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are not beside the package")
@pytest.mark.parametrize(("id_bytes", "graph"), [("4", "kron:22"), ("8", "kron:22:int64")])
def test_aligned_lists_take_the_sectors_that_warps_of_a_gpu_counted(id_bytes: str, graph: str) -> None:
    lines = read_run_files([RESULTS])
    counted = {
        line.field("details.sector_bytes")
        for line in lines
        if line.measurement.id == f"graph.host.bfs.{graph}.merged_aligned"
    }
    (found,) = (
        line.field("bytes.host")
        for line in lines
        if line.measurement.id == "link.bfs.kron:22.merged_aligned" and line.condition("id_bytes") == id_bytes
    )
    assert counted == {found}


def test_the_command_prints_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    words = ["bfs", "kron:8", "--placement", "host", "--executor", "cpu", "--trace", "link"]
    assert cli.main([*words, "--strategy", "merged_aligned"]) == 0
    out = capsys.readouterr().out
    assert "Requests over the link" in out
    assert "128 B" in out
    assert "no GPU took part" in out
    assert cli.main([*words, "--strategy", "merged_aligned", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["link"]
    assert sum(printed["counts"].values()) == printed["requests"] > 0
    assert printed["received_bytes"] is None


def test_a_trace_has_a_placement_and_a_strategy_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    assert cli.main(["bfs", "kron:8", "--executor", "cpu", "--trace", "link", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["placement"], found["strategy"]) == ("host", "merged_aligned")
    assert cli.main(["sssp", "kron:8", "--executor", "cpu", "--trace", "link", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["link"]["edge_bytes"] > 0
    assert cli.main(["sssp", "kron:8", "--executor", "cpu", "--trace", "link", "--parents"]) == cli.REFUSED
    assert "--parents reads more lists than a trace has" in capsys.readouterr().err
    assert cli.main(["bfs", "missing.el", "--trace", "link"]) == cli.REFUSED
    assert "open missing.el: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--placement", "storage"], "placement storage does not read edges over the link"),
        (["--placement", "host", "--strategy", "merged", "--breakdown"], "--trace are of one run"),
    ],
)
def test_what_has_no_trace_is_refused(more: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bfs", "kron:8", "--trace", "link", *more]) == cli.REFUSED
    assert part in capsys.readouterr().err


def test_a_machine_without_counters_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", _none)
    with pytest.raises(CountersMissing, match=r"libnvidia-ml\.so\.1 is not installed"):
        LinkCounters()


def _none(name: str) -> None:
    raise OSError(name)

"""Graphs whose nodes are numbered by score, against a plain renumbering."""

from __future__ import annotations

import errno
import itertools
import json
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from broken_inputs import check_sentence
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.gnn import data
from penstock.sampling import Graph
from penstock.tiering import ranking, reordering, score, workers
from penstock.tiering.reordering import original, places, reorder

Values = np.ndarray[Any, Any]
PARTS = ("pointers", "neighbors", "weights", "features", "labels", "train", "valid", "test", "order")


def lists_of(pointers: Values, neighbors: Values) -> list[list[int]]:
    return [neighbors[a:b].tolist() for a, b in itertools.pairwise(pointers)]


def write(folder: Path, **parts: Values) -> Path:
    folder.mkdir()
    for name, values in parts.items():
        np.save(folder / f"{name}.npy", values)
    return folder


def load(folder: Path) -> dict[str, Values]:
    return {name: np.load(path) for name in PARTS if (path := folder / f"{name}.npy").exists()}


def graph_parts(seed: int, nodes: int, edges: int, ids: Any = np.int32) -> dict[str, Values]:
    """All that a folder may have; many nodes have no edges, some have many."""
    random = np.random.default_rng(seed)
    targets = np.sort((nodes * random.random(edges) ** 2).astype(np.int64)) if nodes else np.zeros(0, int)
    pointers = np.searchsorted(targets, np.arange(nodes + 1)).astype(np.int64)
    shuffled = random.permutation(nodes)
    return {
        "pointers": pointers,
        "neighbors": random.integers(0, max(nodes, 1), len(targets)).astype(ids),
        "weights": random.random(len(targets)).astype(np.float32),
        "features": random.random((nodes, 3)).astype(np.float16),
        "labels": random.integers(-1, 5, nodes),
        "train": shuffled[: nodes // 2],
        "valid": shuffled[nodes // 2 : nodes // 2 + 1],
        "test": shuffled[nodes // 2 + 1 :],
    }


def renumbered(parts: dict[str, Values], scores: Values) -> dict[str, Values]:
    """What `reorder` should write."""
    order = np.array(sorted(range(len(scores)), key=lambda v: (-scores[v].item(), v)), np.int64)
    new = {int(old): place for place, old in enumerate(order)}
    lists = lists_of(parts["pointers"], parts["neighbors"])
    moved = [[new[u] for u in lists[v]] for v in order]
    found = {
        "order": order,
        "pointers": np.cumsum([0, *map(len, moved)]).astype(np.int64),
        "neighbors": np.array([u for each in moved for u in each], parts["neighbors"].dtype),
    }
    if "weights" in parts:
        of_lists = np.split(parts["weights"], parts["pointers"][1:-1]) if len(order) else []
        found["weights"] = np.concatenate([np.zeros(0, np.float32), *(of_lists[v] for v in order)])
    for name in ("features", "labels"):
        if name in parts:
            found[name] = parts[name][order]
    for name in ("train", "valid", "test"):
        if name in parts:
            found[name] = np.array([new[int(v)] for v in parts[name]], np.int64)
    return found


def check_same(folder: Path, wanted: dict[str, Values]) -> None:
    found = load(folder)
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


SCORES = st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.uint8, np.int8])


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1 << 30), nodes=st.integers(0, 60), edges=st.integers(0, 200),
    distinct=st.integers(1, 90), kind=SCORES, ids=st.sampled_from([np.int32, np.int64]),
    block=st.integers(1, 40), sample=st.integers(2, 64), threads=st.integers(1, 4),
    left_out=st.sets(st.sampled_from(PARTS[2:-1])),
)  # fmt: skip
def test_equals_a_plain_renumbering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, nodes: int, edges: int, distinct: int,
    kind: Any, ids: Any, block: int, sample: int, threads: int, left_out: set[str],
) -> None:  # fmt: skip
    parts = {
        name: values for name, values in graph_parts(seed, nodes, edges, ids).items() if name not in left_out
    }
    drawn = np.random.default_rng(seed + 1).integers(0, distinct, nodes)
    scores = (drawn / 8 - 3 if np.dtype(kind).kind == "f" else drawn).astype(kind)
    for name in ("in", "out"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    folder = write(tmp_path / "in", **parts)
    with monkeypatch.context() as patch:
        patch.setattr(workers, "_MAX_BLOCK", block)
        patch.setattr(ranking, "_SAMPLE", sample)
        made = reorder(folder, scores, tmp_path / "out", threads=threads)
    assert (made.nodes, made.edges) == (nodes, len(parts["neighbors"]))
    check_same(made.folder, renumbered(parts, scores))


@pytest.mark.parametrize("scores", [[-(2**63), 2**63 - 1, 0], [0.0, -0.0, 0.0], [1e308, -1e308, 5e-324]])
def test_scores_at_the_ends_of_their_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: list[Any]
) -> None:
    monkeypatch.setattr(ranking, "_SAMPLE", 2)
    values = np.array(scores * 5)
    parts: dict[str, Values] = {
        "pointers": np.zeros(len(values) + 1, np.int64), "neighbors": np.zeros(0, np.int32),
    }  # fmt: skip
    made = reorder(write(tmp_path / "in", **parts), values, tmp_path / "out", threads=2)
    check_same(made.folder, renumbered(parts, values))


def test_edges_mapped_back_are_the_edges_before(tmp_path: Path) -> None:
    parts = graph_parts(3, 500, 6000)
    scores = np.random.default_rng(4).random(500)
    made = reorder(write(tmp_path / "in", **parts), scores, tmp_path / "out")
    after, order = load(made.folder), np.load(made.order)
    assert (np.diff(scores[order]) <= 0).all()
    old = lists_of(parts["pointers"], parts["neighbors"])
    new = lists_of(after["pointers"], original(order, after["neighbors"]))
    assert [old[v] for v in order] == new
    np.testing.assert_array_equal(original(made.order, after["train"]), parts["train"])
    np.testing.assert_array_equal(places(made.order)[parts["test"]], after["test"])
    np.testing.assert_array_equal(order[places(order)], np.arange(500))
    with pytest.raises(IndexError, match="node 500: it is no node"):
        original(order, [0, 500])
    with pytest.raises(TypeError, match="give integers"):
        original(order, [0.5])


def test_a_drawn_dataset_stays_a_dataset(tmp_path: Path) -> None:
    before = data.generate(tmp_path / "drawn", nodes=4000, average_degree=7, width=5, classes=3)
    made = reorder(before, score(Graph.open(before.folder), "degree"), tmp_path / "hot first")
    after = data.open(made, verify=True)
    assert (after.name, after.nodes, after.edges, after.width) == ("hot first", 4000, 28000, 5)
    assert after.source == "generated like papers100M, reordered by score"
    counts = np.bincount(after.load("neighbors"), minlength=4000)
    assert (np.diff(counts) <= 0).all()
    order = np.load(made.order)
    features = [np.load(each.features) for each in (before, after)]
    np.testing.assert_array_equal(features[1], features[0][order])
    with Graph.open(made) as graph:
        assert (graph.nodes, graph.edges) == (4000, 28000)


def test_ids_of_a_tensor(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    parts = {"pointers": np.array([0, 1, 1]), "neighbors": np.array([1], np.int32)}
    made = reorder(write(tmp_path / "in", **parts), torch.tensor([0.25, 0.5]), tmp_path / "out")
    assert original(made.order, torch.tensor([[0], [1]])).tolist() == [[1], [0]]


def test_threads_and_memory_change_nothing(tmp_path: Path) -> None:
    nodes = 150_000
    folder = write(tmp_path / "in", **graph_parts(5, nodes, 900_000))
    random = np.random.default_rng(6)
    scores = np.where(random.random(nodes) < 0.3, 0.5, random.random(nodes).round(4))
    made = [
        reorder(folder, scores, tmp_path / f"out-{k}" / "same", memory=memory, threads=threads)
        for k, (memory, threads) in enumerate([("1GiB", 1), ("1MiB", 8), ("3MiB", 3), ("64MiB", 4)])
    ]
    first, *others = [contents(each.folder) for each in made]
    assert all(each == first for each in others)
    order = np.load(made[0].order)
    np.testing.assert_array_equal(order, np.lexsort((np.arange(nodes), -scores)))


def test_files_larger_than_the_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reordering, "free_memory", lambda: 0)
    parts = graph_parts(12, 300, 2000)
    made = reorder(write(tmp_path / "in", **parts), np.arange(300), tmp_path / "out")
    check_same(made.folder, renumbered(parts, np.arange(300)))


def test_a_list_longer_than_a_block(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    pointers = np.array([0, 3, 70_003, 70_003, 70_010])
    parts = {"pointers": pointers, "neighbors": random.integers(0, 4, 70_010)}
    made = reorder(write(tmp_path / "in", **parts), np.array([1, 2, 3, 4]), tmp_path / "out", memory="1MiB")
    check_same(made.folder, renumbered(parts, np.array([1, 2, 3, 4])))


def test_progress_ends_at_all_of_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", **graph_parts(8, 3000, 20_000))
    seen: dict[str, list[tuple[int, int]]] = {}
    owner = threading.get_ident()

    def progress(what: str, done: int, total: int) -> None:
        assert threading.get_ident() == owner
        seen.setdefault(what, []).append((done, total))

    reorder(folder, np.arange(3000), tmp_path / "out", memory="1MiB", threads=2, progress=progress)
    assert {"ranking nodes", "moving edges", "moving features", "moving labels"} <= seen.keys()
    for steps in seen.values():
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]


def nothing_but(folder: Path, *names: str) -> bool:
    return {path.name for path in folder.iterdir()} == set(names)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path / "in", **graph_parts(9, 50, 300))


Damage = Callable[[Path], object]


def save(name: str, values: Any) -> Damage:
    return lambda folder: np.save(folder / f"{name}.npy", np.array(values))


def changed(name: str, place: int, value: int) -> Damage:
    def change(folder: Path) -> None:
        values = np.load(folder / f"{name}.npy")
        values[place] = value
        np.save(folder / f"{name}.npy", values)

    return change


def linked(folder: Path) -> None:
    (folder / "labels.npy").unlink()
    (folder / "labels.npy").symlink_to("/none/here.npy")


def cut(folder: Path) -> None:
    path = folder / "neighbors.npy"
    path.write_bytes(path.read_bytes()[:-5])


DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "missing": (lambda f: (f / "neighbors.npy").unlink(), "neighbors.npy", "there is no such file"),
    "cut": (cut, "neighbors.npy", ""),
    "text": (lambda f: (f / "pointers.npy").write_text("no"), "pointers.npy", "it is no .npy file"),
    "no pointer": (save("pointers", np.zeros(0, np.int64)), "pointers.npy", "it has no element"),
    "floats": (save("neighbors", np.zeros(300)), "neighbors.npy", "not a list of int32 or int64"),
    "first": (changed("pointers", 0, 1), "pointers.npy", "it begins with 1, not 0"),
    "falls": (changed("pointers", 9, 1 << 62), "pointers.npy", "pointer 10 decreases"),
    "last": (changed("pointers", 50, 301), "pointers.npy", "it ends at 301, and there are 300 neighbors"),
    "large": (changed("neighbors", 7, 50), "neighbors.npy", "it has 50, and node ids are 0 to 49"),
    "negative": (changed("neighbors", 7, -1), "neighbors.npy", "it has -1, and node ids are 0 to 49"),
    "split": (changed("train", 2, 50), "train.npy", "it has 50, and node ids are 0 to 49"),
    "rows": (save("features", np.zeros((49, 2))), "features.npy", "it has shape (49, 2), and there are 50"),
    "weights": (save("weights", np.zeros(3)), "weights.npy", "it has 3 numbers, and there are 300"),
    "link": (linked, "labels.npy", "it links to /none/here.npy"),
    "facts": (lambda f: (f / "dataset.json").write_text("{"), "dataset.json", "it is damaged"),
    "nodes": (
        lambda f: (f / "dataset.json").write_text(json.dumps({"nodes": 51})), "dataset.json",
        "its nodes are 51",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_one_sentence(tmp_path: Path, small: Path, name: str) -> None:
    damage, file, text = DAMAGES[name]
    damage(small)
    with pytest.raises((ValueError, OSError)) as caught:
        reorder(small, np.zeros(50), tmp_path / "out")
    check_sentence(caught.value, str(small / file))
    assert text in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError) == (name in ("missing", "link"))
    assert nothing_but(tmp_path, "in")


def test_arguments_that_cannot_be(tmp_path: Path, small: Path) -> None:
    out = tmp_path / "out"
    wrong: list[tuple[Any, type[Exception], str]] = [
        (
            {"scores": np.zeros(49)},
            ValueError,
            f"reorder: 49 scores: {small} has 50 nodes: give one for each",
        ),
        ({"scores": np.zeros((50, 1))}, TypeError, "give a number for each node"),
        ({"scores": np.full(50, np.nan)}, ValueError, "give a finite one for each node"),
        ({"scores": np.zeros(50, bool)}, TypeError, "give a number for each node"),
        ({"memory": "1KiB"}, ValueError, "memory 1.0 KiB: it is too small: give 1MiB or more"),
        ({"threads": -1}, ValueError, "threads -1"),
        ({"progress": 3}, TypeError, "progress 3"),
        ({"to": 3}, TypeError, "reorder to 3: it is no path"),
        ({"folder": 3}, TypeError, "reorder 3: it is no path"),
        ({"to": small}, ValueError, f"reorder to {small}: it exists and is not empty: name a new folder"),
    ]
    for change, kind, text in wrong:
        given: dict[str, Any] = {"folder": small, "scores": np.zeros(50), "to": out, **change}
        with pytest.raises(kind) as caught:
            reorder(given.pop("folder"), given.pop("scores"), given.pop("to"), **given)
        assert text in str(caught.value)
        assert nothing_but(tmp_path, "in")
    assert "order" not in load(small)


def test_no_room_is_one_sentence(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
        with pytest.raises(penstock.Error) as caught:
            reorder(small, np.zeros(50), tmp_path / "out")
    check_sentence(caught.value, str(tmp_path / "out"), "reorder to")
    assert caught.value.errno == errno.ENOSPC
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4800, before[1]))
    try:
        with pytest.raises(penstock.Error) as caught:
            reorder(small, np.zeros(50), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    check_sentence(caught.value, str(tmp_path / "out"), "reorder to")
    assert nothing_but(tmp_path, "in")


def test_a_file_that_is_cut_short_meanwhile(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", **graph_parts(10, 20_000, 200_000))

    def progress(what: str, done: int, total: int) -> None:
        if what == "writing pointers" and done == total:
            with (folder / "neighbors.npy").open("r+b") as file:
                file.truncate(4096)

    with pytest.raises(penstock.Error, match=r"reorder .*cut short") as caught:
        reorder(folder, np.arange(20_000), tmp_path / "out", progress=progress)
    check_sentence(caught.value, str(folder), "reorder")
    assert nothing_but(tmp_path, "in")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("step", ["ranking nodes", "numbering nodes", "moving edges", "moving features"])
def test_what_progress_raises_ends_it(tmp_path: Path, kind: type[BaseException], step: str) -> None:
    folder = write(tmp_path / "in", **graph_parts(11, 30_000, 200_000))
    threads = threading.active_count()

    def progress(what: str, done: int, total: int) -> None:
        if what == step:
            raise kind("stop")

    with pytest.raises(kind, match="stop"):
        reorder(folder, np.arange(30_000), tmp_path / "out", memory="2MiB", threads=2, progress=progress)
    assert nothing_but(tmp_path, "in")
    assert threading.active_count() == threads


def test_an_os_error_of_progress_stays_as_it_is(tmp_path: Path, small: Path) -> None:
    raised = BrokenPipeError(errno.EPIPE, "Broken pipe")

    def progress(what: str, done: int, total: int) -> None:
        raise raised

    with pytest.raises(BrokenPipeError) as caught:
        reorder(small, np.zeros(50), tmp_path / "out", progress=progress)
    assert caught.value is raised
    assert nothing_but(tmp_path, "in")


PROGRAM = """
import sys, time
import numpy as np
from penstock.tiering.reordering import reorder

def progress(what, done, total):
    if what == "moving edges":
        print(what, flush=True)
        time.sleep(60)

reorder(sys.argv[1], np.arange(50), sys.argv[2], threads=2, progress=progress)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_run_leaves_no_folder(tmp_path: Path, small: Path, number: signal.Signals) -> None:
    out = tmp_path / "out [1]"
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, small, out], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert run.stdout is not None
    assert run.stdout.readline() == b"moving edges\n"
    drafts = [path for path in tmp_path.iterdir() if path != small]
    assert [path.name.startswith(".out [1]-") for path in drafts] == [True]
    if number == signal.SIGKILL:
        reorder(small, np.arange(50), out)  # beside a run that is alive: its draft stays
        assert (drafts[0] / "draft" / "neighbors.npy").exists()
        shutil.rmtree(out)
    run.send_signal(number)
    run.communicate(timeout=20)
    assert not out.exists()
    if number == signal.SIGINT:
        assert nothing_but(tmp_path, "in")
    reorder(small, np.arange(50), out)
    assert nothing_but(tmp_path, "in", "out [1]")

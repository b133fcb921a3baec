"""penstock.gnn.data: what is drawn, what folders are checked for, and what readers convert."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import penstock
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.gnn import data as gnn_data
from penstock.gnn.data import csc, npy
from penstock.gnn.data.edges import MemoryEdges
from penstock.gnn.data.permutations import Permutation

Array = npt.NDArray[Any]
FILES = ("pointers", "neighbors", "features", "labels", "train", "valid", "test")


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.npy").read_bytes() for name in FILES}


def is_one_sentence(text: str) -> bool:
    return "\n" not in text and ". " not in text and not text.endswith(".") and text.count(": ") >= 2


def in_lists(folder: Path) -> list[list[int]]:
    """Sources of the edges into each node."""
    found = gnn_data.open(folder, verify=True)
    pointers, neighbors = found.load("pointers"), found.load("neighbors")
    return [neighbors[a:b].tolist() for a, b in pairwise(pointers)]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> gnn_data.Dataset:
    folder = tmp_path_factory.mktemp("drawn") / "papers"
    return gnn_data.generate(folder, nodes=40_000, classes=20, seed=3)


# What is drawn.


def test_the_shape_is_that_of_the_paper_at_its_scale(tmp_path: Path) -> None:
    found = gnn_data.generate(tmp_path / "g", like="mag240m", scale=1e-5)
    assert (found.nodes, found.width, found.dtype, found.classes) == (1218, 768, "float16", 153)
    assert found.edges == pytest.approx(1218 * 1_297_748_926 / 121_751_666, abs=1)
    assert found.source == "generated like mag240m"
    assert np.load(found.features, mmap_mode="r").shape == (1218, 768)
    assert gnn_data.open(found.folder, verify=True) == found


def test_every_shape_can_be_drawn(tmp_path: Path) -> None:
    for name, shape in gnn_data.SHAPES.items():
        found = gnn_data.generate(tmp_path / name, like=name, nodes=500, width=4)
        assert found.classes == shape.classes
        assert gnn_data.open(found.folder, verify=True).edges == 500 * shape.edges // shape.nodes


def test_files_do_not_depend_on_threads_and_memory(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"nodes": 50_000, "width": 8, "classes": 10, "average_degree": 20}
    one = gnn_data.generate(tmp_path / "a", threads=1, memory="64MiB", **arguments)
    many = gnn_data.generate(tmp_path / "b", threads=3, memory="1GiB", **arguments)
    other = gnn_data.generate(tmp_path / "c", seed=2, **arguments)
    assert contents(one.folder) == contents(many.folder)
    assert all(
        a != b for a, b in zip(contents(one.folder).values(), contents(other.folder).values(), strict=True)
    )


def test_headers_leave_rows_aligned(drawn: gnn_data.Dataset) -> None:
    assert npy.read_npy(drawn.features).offset == 4096
    assert {path.name for path in drawn.folder.iterdir()} == {f"{n}.npy" for n in FILES} | {"dataset.json"}


def test_degrees_and_popularity_are_skewed_and_scattered(drawn: gnn_data.Dataset) -> None:
    degrees = np.diff(drawn.load("pointers"))
    popularity = np.bincount(drawn.load("neighbors"), minlength=drawn.nodes)
    hot = np.sort(popularity)[::-1][: drawn.nodes // 100].sum() / drawn.edges
    assert hot == pytest.approx(0.32, abs=0.03)  # as in papers100M: Min's dissertation, section 4.4.2
    assert degrees.max() > 30 * degrees.mean() > 30 * degrees.min() > 0
    # A power law: the share of nodes above a degree falls by a constant factor as it doubles.
    above = [(degrees > degree).mean() for degree in (20, 40, 80, 160)]
    factors = [b / a for a, b in pairwise(above)]
    assert all(0.2 < factor < 0.45 for factor in factors), factors
    middle = np.median(np.argsort(popularity)[-400:])
    assert 0.3 * drawn.nodes < middle < 0.7 * drawn.nodes
    assert abs(np.corrcoef(degrees, np.arange(drawn.nodes))[0, 1]) < 0.05


@pytest.mark.parametrize("homophily", [0.0, 0.4, 0.7, 1.0])
def test_homophily_is_the_one_asked_for(tmp_path: Path, homophily: float) -> None:
    found = gnn_data.generate(tmp_path / "g", nodes=20_000, width=2, classes=5, homophily=homophily)
    labels = found.load("labels")
    targets = np.repeat(np.arange(found.nodes), np.diff(found.load("pointers")))
    same = labels[found.load("neighbors")] == labels[targets]
    chance = np.square(np.bincount(labels) / found.nodes).sum()
    assert same.mean() == pytest.approx(max(homophily, chance), abs=0.01)
    assert not (found.load("neighbors") == targets).any()


def test_features_averaged_over_neighbours_classify_better(drawn: gnn_data.Dataset) -> None:
    features, labels = np.load(drawn.features), drawn.load("labels")
    pointers, neighbors = drawn.load("pointers"), drawn.load("neighbors")
    centroids = np.stack([features[labels == each].mean(0) for each in range(drawn.classes)])
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    some = np.random.default_rng(1).choice(drawn.nodes, 2000, replace=False)
    alone = ((features[some] @ centroids.T).argmax(1) == labels[some]).mean()
    sums = np.stack([features[v] + features[neighbors[pointers[v] : pointers[v + 1]]].sum(0) for v in some])
    averaged = ((sums @ centroids.T).argmax(1) == labels[some]).mean()
    assert 0.4 < alone < 0.6
    assert averaged > alone + 0.25


def test_splits_are_disjoint_and_as_large_as_asked(tmp_path: Path) -> None:
    found = gnn_data.generate(tmp_path / "g", nodes=9000, width=2, classes=3, splits=(0.5, 0.1, 0.4))
    parts = [found.load(name) for name in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [4500, 900, 3600]
    assert sorted(np.concatenate(parts)) == list(range(9000))


def test_small_graphs_can_be_drawn(tmp_path: Path) -> None:
    one = gnn_data.generate(tmp_path / "one", nodes=1, classes=1, width=1, average_degree=3)
    assert in_lists(one.folder) == [[0, 0, 0]]
    none = gnn_data.generate(tmp_path / "none", nodes=7, classes=7, width=3, average_degree=0)
    assert in_lists(none.folder) == [[]] * 7
    assert sorted(none.load("labels")) == list(range(7))


@given(st.integers(1, 5000), st.integers(0, 99))
def test_permutations_are_bijections(count: int, seed: int) -> None:
    order = Permutation(count, np.random.default_rng(seed))
    numbers = np.arange(count)
    assert sorted(order.forward(numbers)) == numbers.tolist()
    assert (order.inverse(order.forward(numbers)) == numbers).all()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"like": "papers"}, "there is no such shape"),
        ({"nodes": 10}, "172 classes"),
        ({"nodes": 10, "scale": 0.1}, "give one of both"),
        ({"scale": 0}, "above 0"),
        ({"nodes": 500, "dtype": "int8"}, "float32 or float16"),
        ({"nodes": 500, "homophily": 2}, "from 0 to 1"),
        ({"nodes": 500, "splits": (0.5, 0.4, 0.3)}, "above 1"),
        ({"nodes": 500, "memory": "1KiB"}, "a block takes"),
        ({"nodes": 500, "average_degree": -1}, "from 0"),
        ({"nodes": 500, "classes": 5000}, "4096 or less"),
    ],
)
def test_bad_arguments_are_one_sentence(tmp_path: Path, arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(ValueError, match=part) as caught:
        gnn_data.generate(tmp_path / "g", **arguments)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


# Runs that end early.


def interrupt(what: str, done: int, total: int) -> None:
    if what == "drawing features":
        raise KeyboardInterrupt


def test_an_interrupt_removes_what_was_written(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        gnn_data.generate(tmp_path / "g", nodes=20_000, progress=interrupt)
    assert not list(tmp_path.iterdir())


def test_a_killed_run_leaves_nothing_that_opens(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\nfrom penstock.gnn import data\n"
        "def die(what, done, total):\n"
        "    if what == 'drawing features': os.kill(os.getpid(), signal.SIGKILL)\n"
        "data.generate(sys.argv[1], nodes=2000, progress=die)\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "g")],
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert run.returncode == -signal.SIGKILL
    left = [*tmp_path.iterdir(), tmp_path / "g"]
    assert len(left) == 2
    for folder in left:
        with pytest.raises(FileNotFoundError):
            gnn_data.open(folder)
    assert gnn_data.generate(tmp_path / "g", nodes=2000).nodes == 2000


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(penstock.Error, match="No space left on device: make room") as caught:
        gnn_data.generate(tmp_path / "g", nodes=2000)
    assert is_one_sentence(str(caught.value))
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


def test_what_cannot_fit_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error, match=r"TiB, and .* are free") as caught:
        gnn_data.generate(tmp_path / "g", scale=1000)
    assert caught.value.errno == errno.ENOSPC


def test_a_folder_that_is_not_empty_stays(tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    assert gnn_data.generate(tmp_path / "g", nodes=500).nodes == 500
    with pytest.raises(ValueError, match="not empty: name a new folder"):
        gnn_data.generate(tmp_path / "g", nodes=500)
    assert gnn_data.open(tmp_path / "g").nodes == 500


# Checks of folders.


def rewritten(name: str, change: Callable[[Array], Array]) -> Callable[[Path], None]:
    return lambda folder: np.save(folder / f"{name}.npy", change(np.load(folder / f"{name}.npy")))


def with_value(place: int, value: int) -> Callable[[Array], Array]:
    def change(values: Array) -> Array:
        values[place] = value
        return values

    return change


def cut(folder: Path) -> None:
    os.truncate(folder / "features.npy", 5000)


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def with_facts(**changed: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        facts = json.loads((folder / "dataset.json").read_text())
        (folder / "dataset.json").write_text(json.dumps({**facts, **changed}))

    return change


@pytest.mark.parametrize(
    ("damage", "kind", "part"),
    [
        (without("features.npy"), FileNotFoundError, "features.npy: there is no such file"),
        (without("dataset.json"), FileNotFoundError, "there is no dataset.json in it: make one"),
        (rewritten("features", lambda a: a[:-1]), ValueError, "999 rows, and there are 1000 nodes"),
        (rewritten("features", lambda a: a.astype(float)), ValueError, "float64 of shape"),
        (rewritten("features", np.asfortranarray), ValueError, "stored by columns"),
        (cut, ValueError, "it has 5000 bytes, not the"),
        (rewritten("pointers", with_value(5, 0)), ValueError, "pointer 5 decreases"),
        (rewritten("pointers", with_value(-1, 99_999)), ValueError, "it ends at 99999"),
        (rewritten("pointers", with_value(0, 1)), ValueError, "begins with 1"),
        (rewritten("labels", lambda a: a[:9]), ValueError, r"shape \(9,\)"),
        (rewritten("labels", with_value(7, 8)), ValueError, "it has 8, and labels are -1 to 7"),
        (rewritten("neighbors", with_value(7, -2)), ValueError, "it has -2, and node ids"),
        (rewritten("neighbors", lambda a: a.astype(np.int64)), ValueError, "not int32"),
        (rewritten("train", with_value(0, 1000)), ValueError, "train.npy: it has 1000"),
        (rewritten("test", lambda a: a.astype(float)), ValueError, "not a list of node ids"),
        (lambda folder: (folder / "valid.npy").write_bytes(b"x" * 99), ValueError, "no .npy file"),
        (lambda folder: (folder / "dataset.json").write_text("{"), ValueError, "is damaged"),
        (with_facts(format=2), ValueError, "its format is 2"),
        (with_facts(nodes="9"), ValueError, "its nodes is '9'"),
        (with_facts(dtype="int8"), ValueError, "its dtype is int8"),
    ],
)
def test_damage_is_one_sentence(
    tmp_path: Path, damage: Callable[[Path], None], kind: type[Exception], part: str
) -> None:
    found = gnn_data.generate(tmp_path / "g", nodes=1000, classes=8, width=6)
    damage(found.folder)
    with pytest.raises(kind, match=part) as caught:
        gnn_data.open(found.folder, verify=True)
    assert is_one_sentence(str(caught.value)), caught.value


# From edges in any order to columns.


@given(
    st.integers(1, 40).flatmap(
        lambda nodes: st.tuples(
            st.just(nodes),
            st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=120),
        )
    ),
    st.booleans(),
    st.sampled_from([96, 512, 1 << 20]),
)
def test_columns_are_those_of_a_sort(
    graph: tuple[int, list[tuple[int, int]]], undirected: bool, memory: int
) -> None:
    nodes, edges = graph
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    expected: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for source, target in edges:
        expected[target].append(source)
        if undirected and source != target:
            expected[source].append(target)
    with tempfile.TemporaryDirectory() as folder:
        given_edges = MemoryEdges("pairs", pairs[:, 0], pairs[:, 1])
        conversion = csc.Conversion(
            Path(folder), given_edges, nodes, undirected=undirected, memory=memory, progress=None
        )
        assert conversion.run() == sum(map(len, expected.values()))
        pointers, neighbors = (np.load(Path(folder) / f"{name}.npy") for name in ("pointers", "neighbors"))
        assert len(list(Path(folder).iterdir())) == 2
    for node, sources in expected.items():
        assert neighbors[pointers[node] : pointers[node + 1]].tolist() == sorted(sources)


def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        penstock.Error, match=r"^read .*/x+: File name too long: check the file and its drive$"
    ):
        npy.read_npy(tmp_path / ("x" * 300))

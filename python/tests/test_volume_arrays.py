"""Arrays on volumes, read where they lie, on files as members."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from places import DEVICES

native = pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

LAYOUTS = [("single", 1, 65536), ("striped", 3, 16384), ("striped", 2, 4096), ("replicated", 2, 65536)]
SMALL: dict[str, Any] = {"cache": "1MiB", "line": 512}


def made(folder: Path, layout: str = "striped", count: int = 3, stripe: int = 16384) -> list[str]:
    """The members of an empty volume."""
    paths = [str(folder / f"m{k}.img") for k in range(count)]
    native.volume_create(paths, layout, stripe, 2**23, False, False)
    return paths


def put(members: list[str], name: str, values: Any, folder: Path, ending: str = ".npy") -> str:
    """Imports an array. Returns what it is called, its members in another order."""
    file = folder / f"{name}{ending}"
    np.save(file, values) if ending == ".npy" else values.tofile(file)
    native.volume_import(members, name, str(file))
    return f"volume:{name}@{','.join(reversed(members))}"


def table_of(rows: int = 12_000, width: int = 33) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).random((rows, width)).astype(np.float32)


def host(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize(("layout", "count", "stripe"), LAYOUTS)
def test_rows_are_those_of_the_file(
    layout: str, count: int, stripe: int, direct: bool, device: str, tmp_path: Path
) -> None:
    values = table_of()
    members = made(tmp_path, layout, count, stripe)
    put(members, "before", np.arange(5000), tmp_path)
    name = put(members, "features", values, tmp_path)
    with penstock.open(name, device=device, direct=direct, **SMALL) as array:
        assert (array.placement, array.shape, array.writable) == ("storage", values.shape, False)
        rows = np.random.default_rng(2).integers(0, len(values), 500)
        assert np.array_equal(host(array[rows]), values[rows])
        assert np.array_equal(host(array[:]), values)
        assert np.array_equal(host(array[-7:, 3:5]), values[-7:, 3:5])
        assert array.stats()["bytes_moved"] > 0
        assert array.bytes_by_tier()["storage"] == array.stats()["bytes_moved"]


@pytest.mark.parametrize("device", DEVICES)
def test_raw_files_and_files_of_graphs_are_arrays(device: str, tmp_path: Path) -> None:
    from penstock import graph

    members = made(tmp_path)
    values = table_of(700, 5)
    name = put(members, "raw", values, tmp_path, ".bin")
    with penstock.open(name, dtype="float32", shape=(699, 5), offset=20, device=device, **SMALL) as array:
        assert np.array_equal(host(array[:]), values[1:])
    folder = graph.resolve("urand:8:4", cache_dir=tmp_path / "cache")
    native.volume_import(members, "social", str(folder.path))
    with penstock.open(f"volume:social/edges.npy@{','.join(members)}", device=device, **SMALL) as edges:
        assert np.array_equal(host(edges[:]), folder.edge_array())


@pytest.mark.parametrize("device", DEVICES)
def test_rows_are_kept_next_to_the_kernels(device: str, tmp_path: Path) -> None:
    values = table_of()
    name = put(made(tmp_path), "features", values, tmp_path)
    scores = np.arange(len(values))
    with penstock.open(
        name, placement="tiered", scores=scores, hot=0.5, below="storage", device=device, **SMALL
    ) as array:
        assert array.kept_rows == len(values) // 2
        moved = array.stats()["bytes_moved"]
        hot = np.arange(9000, 12_000)
        assert np.array_equal(host(array[hot]), values[hot])
        assert array.stats()["bytes_moved"] == moved


def test_names_are_good_in_other_folders_and_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = table_of(100)
    monkeypatch.chdir(tmp_path)
    members = made(Path())
    name = put(members, "features", values, Path())
    with penstock.open(name, device="cpu", **SMALL) as array:
        kept = pickle.dumps(array)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with pickle.loads(kept) as again:
            assert np.array_equal(host(again[5:9]), values[5:9])


def test_plans_say_what_is_left_on_the_volume(tmp_path: Path) -> None:
    values = table_of()
    name = put(made(tmp_path), "features", values, tmp_path)
    plan = penstock.plan(name, device="cpu", cache="1MiB")
    assert (plan.placement, plan.storage_bytes, plan.host_bytes) == ("storage", values.nbytes, 2**20)


def test_nobody_changes_a_volume_while_an_array_is_open(tmp_path: Path) -> None:
    members = made(tmp_path)
    name = put(members, "features", table_of(), tmp_path)
    array = penstock.open(name, device="cpu", **SMALL)
    with pytest.raises(penstock.Error, match="another program has this volume open: wait until it has ended"):
        native.volume_remove(members, "features")
    array.close()
    with pytest.raises(ValueError, match=r"it is closed: open it again$"):
        array[0]
    native.volume_remove(members, "features")
    with pytest.raises(ValueError, match=r"^open volume:features@.*: the volume is empty: import something$"):
        penstock.open(name, device="cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_an_array_that_is_closed_while_it_is_read_gives_the_volume_back(device: str, tmp_path: Path) -> None:
    values = table_of()
    members = made(tmp_path)
    array = penstock.open(put(members, "features", values, tmp_path), device=device, **SMALL)
    found, closed = [], []

    under_way = threading.Event()

    def read() -> None:
        try:
            while True:
                found.append(np.array_equal(host(array[1000:3000]), values[1000:3000]))
                under_way.set()
        except ValueError as problem:
            closed.append(str(problem))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for each in threads:
        each.start()
    assert under_way.wait(60)
    array.close()
    for each in threads:
        each.join()
    assert all(found)
    assert len(closed) == 3
    assert all(each.endswith(": it is closed: open it again") for each in closed)
    native.volume_remove(members, "features")


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ("features@", {"writable": True}, "stays as it was imported: export it to store into it"),
        ("features@", {"placement": "host"}, r"through a cache: choose placement storage \(or that as below"),
        ("features@", {"placement": "host-cached"}, "through a cache: choose placement storage"),
        ("features@", {"line": 32768}, "stripes of 16384 bytes"),
        ("features@", {"shape": (3,)}, "its header says shape and offset: leave them out"),
        ("features@", {"name": "x"}, "it holds one array without a name: leave name out"),
        ("features@", {"dtype": "float64"}, "float64 has 8; leave dtype out"),
        ("raw@", {}, "a raw file does not say what it holds: give dtype"),
        ("raw@", {"dtype": "float32", "shape": 10**9}, "and the file has 12000: correct the layout"),
        ("social@", {}, r"it is a folder of 3 files: name one, such as volume:social/edges.npy@"),
        ("social/x@", {}, "social has no file x: name one of its files"),
        ("none@", {}, "the volume has none: it has features, raw, social"),
        ("@", {}, "the entry has no name: write volume:NAME@MEMBER,MEMBER"),
        ("features/x@", {}, "features has no file x: name one of its files"),
        ("features@,", {}, "a member has no name: write volume:NAME@MEMBER,MEMBER"),
    ],
)  # fmt: skip
def test_what_cannot_be_opened_is_refused_in_one_sentence(
    change: str, options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    from penstock import graph

    members = made(tmp_path)
    put(members, "features", table_of(), tmp_path)
    put(members, "raw", table_of(600, 5), tmp_path, ".bin")
    folder = graph.resolve("urand:8:4", cache_dir=tmp_path / "cache")
    native.volume_import(members, "social", str(folder.path))
    with pytest.raises((ValueError, TypeError), match=sentence) as raised:
        penstock.open(f"volume:{change}{','.join(members)}", device="cpu", **options)
    assert str(raised.value).startswith("open volume:")
    assert len(str(raised.value).splitlines()) == 1


def test_volumes_that_are_degraded_are_refused(tmp_path: Path) -> None:
    values = table_of()
    members = made(tmp_path)
    put(members, "features", values, tmp_path)
    name = "volume:features@"
    with pytest.raises(
        ValueError, match=r"^open volume:features@.*these are missing: 2: attach and name them"
    ):
        penstock.open(name + ",".join(members[:2]), device="cpu")
    with pytest.raises(FileNotFoundError, match=r"^open volume:features@.*none: No such file or directory"):
        penstock.open(name + ",".join([*members[:2], str(tmp_path / "none")]), device="cpu")
    with pytest.raises(ValueError, match="no members are named: write volume:NAME@MEMBER,MEMBER"):
        penstock.open("volume:features", device="cpu")
    os.truncate(members[1], 2**20 + 4096)
    with pytest.raises(ValueError, match=r"m1.img: it has 1052672 bytes, .* it was cut short; bring a copy"):
        penstock.open(name + ",".join(members), device="cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_a_member_that_is_cut_short_while_it_is_read_is_named(device: str, tmp_path: Path) -> None:
    members = made(tmp_path)
    name = put(members, "features", table_of(), tmp_path)
    with penstock.open(name, device=device, **SMALL) as array:
        os.truncate(members[1], 2**20)
        with pytest.raises(
            penstock.Error,
            match=r"^read .*m1.img: it has 1048576 bytes, and its volume needs 8388608 of it: it was cut",
        ):
            host(array[:])

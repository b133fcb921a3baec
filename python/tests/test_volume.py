"""`penstock volume`, as compiled, on files as members."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from penstock.cli import main as cli

native = pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    assert cli.main(["volume", *map(str, arguments)]) == 0
    return capsys.readouterr()


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence with which a command is refused."""
    assert cli.main(["volume", *map(str, arguments)]) == cli.REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("penstock: ")
    return err.strip()


def wrong(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    """What is told by a command that finds something wrong."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["volume", *map(str, arguments)])
    assert ended.value.code == cli.WRONG_RESULT
    return capsys.readouterr()


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    return json.loads(run(capsys, *arguments, "--json")[0])


@pytest.fixture
def members(tmp_path: Path) -> list[Path]:
    """Of a striped volume."""
    paths = [tmp_path / f"m{k}.img" for k in range(3)]
    native.volume_create([str(path) for path in paths], "striped", 16384, 2**23, False, False)
    return paths


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_arrays_come_back_byte_for_byte(
    members: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    array = np.random.default_rng(1).random((1000, 128)).astype(np.float32)
    np.save(tmp_path / "a.npy", array)
    _, err = run(capsys, "import", *members, "features", tmp_path / "a.npy")
    assert err.startswith("imported features: 500.1 KiB in ")
    run(capsys, "export", *reversed(members), "features", tmp_path / "b.npy")
    assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "a.npy").read_bytes()
    assert np.array_equal(np.load(tmp_path / "b.npy"), array)


def test_graphs_come_back_as_folders(
    members: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock import graph

    made = graph.resolve("urand:8:4", cache_dir=tmp_path / "cache")
    run(capsys, "import", *members, "social", made.path)
    run(capsys, "export", *members, "social", tmp_path / "again")
    assert graph.open_folder(tmp_path / "again", validate_edges=True).edges == made.edges
    assert sorted(p.name for p in (tmp_path / "again").iterdir()) == sorted(
        p.name for p in made.path.iterdir()
    )
    for each in made.path.iterdir():
        assert (tmp_path / "again" / each.name).read_bytes() == each.read_bytes()
    (entry,) = told(capsys, "list", *members)
    assert (entry["name"], entry["kind"]) == ("social", "graph")
    assert [part["name"] for part in entry["files"]] == ["edges.npy", "graph.json", "offsets.npy"]
    out, _ = run(capsys, "list", *members)
    assert f"256 vertices, {made.edges:,} edges" in out


@pytest.mark.parametrize(
    ("layout", "count", "stripe"),
    [("single", 1, 65536), ("striped", 3, 16384), ("striped", 2, 4096), ("replicated", 2, 65536)],
)
def test_graphs_are_searched_where_they_lie(layout: str, count: int, stripe: int, tmp_path: Path) -> None:
    import penstock
    from penstock import graph

    made = graph.resolve("kron:10:8", weighted=True, cache_dir=tmp_path / "cache")
    paths = [str(tmp_path / f"m{k}.img") for k in range(count)]
    native.volume_create(paths, layout, stripe, 2**23, False, False)
    native.volume_import(paths, "social", str(made.path))
    spec = f"volume:social@{','.join(reversed(paths))}"
    found = penstock.bfs(spec, source=3, cache="64KiB", executor="cpu", verify=True)
    expected = penstock.bfs(made.path, source=3, cache="64KiB", executor="cpu")
    assert found.verified
    assert (found.reached, found.levels, found.edges) == (expected.reached, expected.levels, made.edges)
    assert found.bytes_moved > 0
    assert found.media == "file"
    paths_found = graph.sssp(spec, source=3, parents=True, cache="128KiB", executor="cpu", verify=True)
    assert paths_found.verified, paths_found.violation
    ranks = graph.pagerank(spec, weighted=True, cache="128KiB", executor="cpu", verify=True)
    assert (ranks.verified, ranks.weights) == (True, "used")
    in_folder = graph.pagerank(made, weighted=True, executor="cpu")
    np.testing.assert_allclose(np.asarray(ranks.ranks), np.asarray(in_folder.ranks), rtol=1e-4)
    assert graph.cc(spec, cache="64KiB", executor="cpu", verify=True).verified
    opened = graph.resolve(spec)
    assert (opened.vertices, opened.names) == (made.vertices, None)
    assert opened.verify_bfs(3, np.asarray(found.parents)) == ""
    for array, call in (
        ("offsets", opened.offsets),
        ("edges", opened.edge_array),
        ("weights", opened.weight_array),
    ):
        with pytest.raises(ValueError, match=rf"map {array}.npy of volume:social@.*: export it$"):
            call()


def test_bad_weights_on_volumes_are_refused_before_a_search(members: list[Path], tmp_path: Path) -> None:
    from penstock import graph

    weights = np.array([1, 2, -4], np.int32)
    made = graph.write_folder(tmp_path / "g", 5, [0, 1, 3], [1, 2, 4], weights=weights)
    names = [str(path) for path in members]
    native.volume_import(names, "bad", str(made.path))
    spec = f"volume:bad@{','.join(names)}"
    for source in (0, 2):  # which do not reach it
        with pytest.raises(ValueError, match=r"search volume:bad@.*: the weight of edge 2, 3 -> 4, is -4"):
            graph.sssp(spec, source=source, executor="cpu")
    with pytest.raises(ValueError, match="the weight of edge 2, 3 -> 4, is -4"):
        graph.pagerank(spec, weighted=True, executor="cpu")
    assert graph.pagerank(spec, executor="cpu").weights == "left out"


def test_graphs_on_volumes_are_refused_what_they_cannot(
    members: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock import graph

    made = graph.resolve("urand:8:4", cache_dir=tmp_path / "cache")
    (tmp_path / "data").write_bytes(b"x")
    names = [str(path) for path in members]
    native.volume_import(names, "social", str(made.path))
    native.volume_import(names, "data", str(tmp_path / "data"))
    spec = f"volume:social@{','.join(names)}"

    def told(*arguments: str) -> str:
        assert cli.main(["bfs", *arguments, "--executor", "cpu"]) == cli.REFUSED
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        return err

    assert "choose placement storage, or export it" in told(spec, "--placement", "host")
    assert "choose placement storage, or export it" in told(spec, "--media", "p5800x")
    assert "write volume:NAME@MEMBER,MEMBER" in told("volume:social")
    assert "data is no graph" in told(spec.replace("social@", "data@"))
    assert "the volume has none: it has data, social" in told(spec.replace("social@", "none@"))
    assert "these are missing: 2" in told(f"volume:social@{names[0]},{names[1]}")
    assert "stripes of 16384 bytes" in told(spec, "--line", "32KiB")


def test_list_and_info_tell_what_there_is(
    members: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "list", *members)[0] == "The volume is empty.\n"
    np.save(tmp_path / "a.npy", np.zeros((3, 5), np.int16))
    (tmp_path / "notes").write_bytes(b"hello")
    run(capsys, "import", *members, "small", tmp_path / "a.npy")
    run(capsys, "import", *members, "notes", tmp_path / "notes")
    notes, small = told(capsys, "list", *members)
    assert (notes["kind"], notes["bytes"], notes["dtype"]) == ("file", 5, None)
    assert (small["kind"], small["dtype"], small["shape"]) == ("array", "int16", [3, 5])
    assert "int16 (3, 5)" in run(capsys, "list", *members)[0]
    facts = told(capsys, "info", members[2], members[0], members[1])
    assert (facts["layout"], facts["stripe_bytes"], facts["generation"]) == ("striped", 16384, 3)
    assert facts["members"] == [str(path) for path in members]
    assert facts["bytes"] == 3 * 7 * 2**20
    assert facts["bytes"] - facts["free_bytes"] == 5 * 4096
    assert [entry["name"] for entry in facts["entries"]] == ["notes", "small"]
    table = run(capsys, "info", *members)[0]
    assert facts["id"] in table
    assert "striped, stripes of 16.0 KiB" in table


def test_verify_says_which_chunk_of_which_member(
    members: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 1000)
    run(capsys, "import", *members, "data", tmp_path / "data")
    assert told(capsys, "verify", *members)["problems"] == 0
    with members[1].open("r+b") as file:
        file.seek(2**20 + 5)
        file.write(b"!")
    out, err = wrong(capsys, "verify", *members)
    assert out == f"member 1 ({members[1]}), byte 1,048,576, 16,384 bytes: data: is not what was written\n"
    assert err.endswith("1 wrong\n")
    sentence = refusal(capsys, "export", *members, "data", tmp_path / "out")
    assert "its bytes are not those that were written" in sentence
    assert not (tmp_path / "out").exists()


def test_members_that_are_missing_foreign_or_none_are_refused(
    members: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.img"
    run(capsys, "create", other, "--size", "2MiB")
    assert "these are missing: 1: attach and name" in refusal(capsys, "list", members[0], members[2])
    assert "name the members of one volume" in refusal(capsys, "list", *members[:2], other)
    assert "it is named twice" in refusal(capsys, "list", members[0], members[0])
    assert "No such file" in refusal(capsys, "list", tmp_path / "none")
    (tmp_path / "plain").write_bytes(b"x" * 2**21)
    assert "it is no member of a volume" in refusal(capsys, "list", tmp_path / "plain")
    assert "it is neither a file nor a block device" in refusal(capsys, "list", tmp_path)


def test_imports_and_exports_that_cannot_be_are_refused(
    members: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").write_bytes(b"x")
    run(capsys, "import", *members, "data", tmp_path / "data")
    before = [path.read_bytes() for path in members]
    assert "has it already" in refusal(capsys, "import", *members, "data", tmp_path / "data")
    assert "a name has no slash" in refusal(capsys, "import", *members, "a/b", tmp_path / "data")
    assert "No such file" in refusal(capsys, "import", *members, "new", tmp_path / "none")
    assert "the volume has none: it has data" in refusal(capsys, "export", *members, "none", tmp_path / "out")
    assert "it exists" in refusal(capsys, "export", *members, "data", tmp_path / "data")
    (tmp_path / "large").write_bytes(bytes(2**25))
    assert "bytes in one piece" in refusal(capsys, "import", *members, "large", tmp_path / "large")
    assert [path.read_bytes() for path in members] == before
    run(capsys, "export", *members, "data", tmp_path / "large", "--replace")
    assert (tmp_path / "large").read_bytes() == b"x"
    run(capsys, "remove", *members, "data")
    assert told(capsys, "list", *members) == []
    assert "the volume is empty" in refusal(capsys, "remove", *members, "data")


def test_create_asks_before_it_overwrites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(b"something".ljust(2**21))
    before = disk.read_bytes()
    assert cli.main(["volume", "create", str(disk)]) == cli.REFUSED
    assert "nobody is there to be asked: --yes-overwrite" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(click, "confirm", lambda *_, **__: False)
    assert cli.main(["volume", "create", str(disk)]) == cli.REFUSED
    assert f"{disk}: 2.0 MiB, not empty, are overwritten." in capsys.readouterr().err
    assert disk.read_bytes() == before
    monkeypatch.setattr(click, "confirm", lambda *_, **__: True)
    out, _ = run(capsys, "create", disk)
    assert out.startswith("made single volume ")
    assert "it holds member 0 of volume" in refusal(capsys, "create", disk)
    run(capsys, "create", disk, "--yes-overwrite")


def test_create_refuses_what_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(2**20))
    assert "needs 1114112 at least: name a larger one" in refusal(capsys, "create", small)
    assert "a single volume has one" in refusal(
        capsys, "create", tmp_path / "a", tmp_path / "b", "--layout", "single", "--size", "4MiB"
    )
    assert "choose a power of two" in refusal(
        capsys, "create", tmp_path / "a", "--stripe", "5000", "--size", "4MiB"
    )
    assert "No such file" in refusal(capsys, "create", tmp_path / "a")
    assert not (tmp_path / "a").exists()
    assert small.read_bytes() == bytes(2**20)


def test_replicas_serve_what_one_of_them_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.img", tmp_path / "b.img"]
    facts = told(capsys, "create", *paths, "--layout", "replicated", "--size", "4MiB")
    assert (facts["layout"], facts["stripe_bytes"]) == ("replicated", None)
    (tmp_path / "data").write_bytes(bytes(range(256)) * 2000)
    run(capsys, "import", *paths, "data", tmp_path / "data")
    with paths[0].open("r+b") as file:
        file.seek(2**20 + 100)
        file.write(b"!!!")
    run(capsys, "export", *paths, "data", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "data").read_bytes()
    (finding,) = json.loads(wrong(capsys, "verify", *paths, "--json")[0])["findings"]
    assert (finding["member"], finding["offset"], finding["file"]) == (0, 2**20, "data")


def test_exports_to_the_standard_output(
    members: list[Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").write_bytes(b"hello, world\n")
    run(capfd, "import", *members, "data", tmp_path / "data")
    assert run(capfd, "export", *members, "data", "-")[0] == "hello, world\n"


def test_a_drive_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "0000:ff:1f.7" in refusal(capsys, "list", "0000:ff:1f.7/3")

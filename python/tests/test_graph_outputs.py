"""Files that the commands over graphs write: never over an input, and whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import penstock
import pytest
from broken_inputs import check_sentence
from penstock.cli import main as cli
from penstock.graph import bfs, write_folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path


@contextmanager
def limited() -> Iterator[None]:
    """No file may grow beyond 4 KiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def digests() -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path().rglob("*")
        if path.is_file() and path.parts[0] != "cache"
    }


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The sentence; no file has changed and nothing is computed."""
    before = digests()
    assert cli.main(list(arguments)) == cli.REFUSED
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert digests() == before
    return err.removeprefix("penstock: ").rstrip("\n")


@pytest.mark.parametrize("command", ["bfs", "cc", "pagerank", "sssp"])
@pytest.mark.parametrize("name", ["edges.npy", "offsets.npy", "weights.npy", "incoming/edges.npy"])
def test_a_file_of_the_graph_folder_is_not_written(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder("gg", 3, [0, 1], [1, 2])
    Path("gg", "incoming").mkdir(exist_ok=True)
    said = refused(capsys, command, "gg", "--output", f"gg/{name}")
    assert said == f"--output gg/{name}: it is {Path(name).name} of the input gg: name another file"


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_nor_by_a_link(link: object, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder("gg", 3, [0, 1], [1, 2])
    link("gg/edges.npy" if link is os.link else Path("gg/edges.npy").absolute(), "out.npy")  # type: ignore[operator]
    os.symlink("gg", "same")  # noqa: PTH211
    for graph, output in (("gg", "out.npy"), ("gg", "same/edges.npy"), ("same", "gg/edges.npy")):
        said = refused(capsys, "bfs", graph, "--output", output)
        assert said == f"--output {output}: it is edges.npy of the input {graph}: name another file"


def test_nor_is_the_input_or_one_of_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("in.csv").write_text("src,dst\na,b\n")
    Path("in.png").write_text("0 1\n")
    Path("parts").mkdir()
    for part in ("1", "2"):
        Path(f"parts/{part}.csv").write_text(f"src,dst\na,b{part}\n")
    for graph, option, path, what in (
        ("in.csv", "--output", "in.csv", "it is the input"),
        ("in.csv", "--output", "./in.csv", "it is the input"),
        ("parts", "--output", "parts/2.csv", "it is 2.csv of the input parts"),
        ("parts/*.csv", "--output", "parts/1.csv", "it is 1.csv of the input parts/*.csv"),
        ("in.png", "--plot", "in.png", "it is the input"),
    ):
        more = ["--format", "el"] if graph == "in.png" else []
        said = refused(capsys, "cc", graph, *more, option, path)
        assert said == f"{option} {Path(path)}: {what}: name another file"


def test_a_new_file_beside_them_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder("gg", 3, [0, 1], [1, 2])
    for _ in range(2):
        assert cli.main(["bfs", "gg", "--source", "0", "--output", "gg/found.npy"]) == 0
    assert np.load("gg/found.npy").tolist() == [0, 0, 1]
    assert folder.edge_array().tolist() == [1, 2]


def test_other_commands_do_not_write_over_what_they_read(capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        np.save(f"{name}.npy", np.ones(4))
    Path("found.svg").write_text("{}\n")
    for arguments in (
        ["reduce", "a.npy", "--output", "a.npy"],
        ["vectoradd", "a.npy", "b.npy", "c.npy", "--output", "b.npy"],
        ["vectoradd", "a.npy", "b.npy", "c.npy", "--output", "c.npy"],
        ["plot", "found.svg", "found.svg"],
    ):
        assert "it is the input" in refused(capsys, *arguments)


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_an_image_for_which_there_is_no_room_is_not_begun(
    ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    write_folder("gg", 3, [0, 1], [1, 2])
    Path(f"a{ending}").write_text("before")
    with limited():
        assert cli.main(["bfs", "gg", "--source", "0", "--plot", f"a{ending}"]) == cli.REFUSED
    said = capsys.readouterr().err.removeprefix("penstock: ").rstrip("\n")
    check_sentence(penstock.Error(said, errno.EFBIG), f"a{ending}", "plot")
    assert os.strerror(errno.EFBIG) in said
    assert Path(f"a{ending}").read_text() == "before"
    assert not list(Path().glob(".a*"))


def test_what_matplotlib_raises_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = pytest.importorskip("matplotlib.figure")

    def savefig(*_: object, **__: object) -> None:
        raise RuntimeError("no font\nat all.")

    monkeypatch.setattr(figure.Figure, "savefig", savefig)
    write_folder("gg", 3, [0, 1], [1, 2])
    assert cli.main(["bfs", "gg", "--source", "0", "--plot", "a.svg"]) == cli.REFUSED
    assert capsys.readouterr().err == ("penstock: plot a.svg: no font at all: choose another kind of file\n")


@pytest.mark.parametrize("ending", [".npy", ".csv"])
def test_a_result_for_which_there_is_no_room_gives_the_reason(
    ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = np.arange(1200)
    write_folder("gg", 1201, ends, ends + 1)
    with limited():
        assert cli.main(["bfs", "gg", "--source", "0", "--output", f"a{ending}"]) == cli.REFUSED
    said = capsys.readouterr().err.removeprefix("penstock: ").rstrip("\n")
    assert said == f"write a{ending}: {os.strerror(errno.EFBIG)}: make room, or choose another folder"
    assert not list(Path().glob("*a.*"))


def test_results_are_as_numpy_reads_them(capsys: pytest.CaptureFixture[str]) -> None:
    ends = np.arange(70000)
    write_folder("gg", 70001, ends, ends + 1, weights=np.ones(70000, np.float32))
    assert cli.main(["bfs", "gg", "--source", "0", "--output", "a.npy"]) == 0
    assert np.array_equal(np.load("a.npy"), np.asarray(bfs("gg", source=0).parents))
    assert cli.main(["sssp", "gg", "--source", "0", "--parents", "--output", "b.npy"]) == 0
    found = np.load("b.npy")
    assert found["distances"].tolist() == list(range(70001))
    assert found["predecessors"].tolist() == [0, *range(70000)]


def test_a_vertex_is_personalized_once(capsys: pytest.CaptureFixture[str]) -> None:
    write_folder("gg", 3, [0, 1], [1, 2], names=["a", "b=2", "c"])
    for given in (["a", "a=3"], ["a=1", "b=2=1", "a=1"]):
        options = [part for value in given for part in ("--personalize", value)]
        said = refused(capsys, "pagerank", "gg", *options)
        assert said == f"--personalize {given[-1]}: vertex a is given twice: give each vertex once"


def test_nor_twice_by_name_and_number() -> None:
    write_folder("gg", 3, [0, 1], [1, 2], names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"^rank gg: personalization of vertex 0: it is given twice: give"):
        penstock.graph.pagerank("gg", personalization={"a": 1, 0: 3})


def test_a_link_stays_a_link_and_a_pipe_a_pipe(place: Path) -> None:
    """What replaced a file took the place of a device, too."""
    write_folder("gg", 8, from_=np.arange(8), to=(np.arange(8) + 1) % 8)
    (place / "there").mkdir()
    (place / "link.npy").symlink_to(place / "there" / "result.npy")
    for _ in range(2):
        assert cli.main(["bfs", "gg", "--source", "0", "--output", "link.npy"]) == 0
    assert (place / "link.npy").is_symlink()
    assert [each.name for each in (place / "there").iterdir()] == ["result.npy"]
    os.mkfifo("pipe.csv")
    took: list[str] = []
    reader = threading.Thread(target=lambda: took.append(Path("pipe.csv").read_text()))
    reader.start()
    assert cli.main(["bfs", "gg", "--source", "0", "--output", "pipe.csv"]) == 0
    reader.join(60)
    assert Path("pipe.csv").is_fifo()
    assert cli.main(["bfs", "gg", "--source", "0", "--output", "a.csv"]) == 0
    assert took == [Path("a.csv").read_text()]
    assert not list(place.glob(".*"))

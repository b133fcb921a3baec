"""penstock.collages, `penstock collage` and `penstock collage-dataset`."""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("PIL", reason="Pillow is not installed")

from penstock import Error, collages, lsh
from penstock.cli.main import main
from PIL import Image

Executor = Literal["cpu", "cuda"]
Pixels = npt.NDArray[np.uint8]
FILES = ["collage.json", "lsh.index", "records", "tiles"]


def noise(rows: int, columns: int, seed: int = 1) -> Pixels:
    """Blocks of 32 x 32, each about a colour of its own."""
    draw = np.random.default_rng(seed)
    colours = draw.integers(20, 236, size=(-(-rows // 32), -(-columns // 32), 3))
    wide = np.repeat(np.repeat(colours, 32, axis=0), 32, axis=1)[:rows, :columns]
    return np.asarray(wide + draw.integers(-20, 20, size=wide.shape), np.uint8)


def save(pixels: Pixels, path: Path, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Three pictures, one of them in a folder, with 24, 6 and 1 whole blocks at their own size."""
    folder = tmp_path / "pictures"
    save(noise(128, 192, 1), folder / "a.png")
    save(noise(64, 96, 2), folder / "deep" / "b.PNG")
    save(noise(32, 32, 3), folder / "c.bmp")
    return folder


@pytest.fixture
def dataset(pictures: Path, tmp_path: Path) -> collages.Dataset:
    return collages.make_dataset(pictures, tmp_path / "tiles", tables=4, executor="cpu")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def histograms(blocks: Pixels) -> npt.NDArray[np.float32]:
    """Of blocks of shape (n, 32, 32, 3)."""
    counted = [[np.bincount(block[..., c].ravel(), minlength=256) for c in range(3)] for block in blocks]
    return np.asarray(counted, np.float32).reshape(len(blocks), 768)


def blocks_of(pixels: Pixels) -> Pixels:
    rows, columns = pixels.shape[0] // 32, pixels.shape[1] // 32
    split = pixels[: rows * 32, : columns * 32].reshape(rows, 32, columns, 32, 3)
    return np.asarray(split.swapaxes(1, 2).reshape(-1, 32, 32, 3))


def test_a_dataset_has_the_blocks_of_all_pictures_at_each_scale(dataset: collages.Dataset) -> None:
    # Scales 1, 2, 4 of 128 x 192, 64 x 96 (3 : 2 both) and 32 x 32.
    assert dataset.records == 2 * (1 + 2 * 3 + 4 * 6) + 1 + 4 + 16
    assert (dataset.pictures, dataset.skipped, dataset.synthetic) == (3, (), False)
    assert names_in(dataset.folder) == FILES
    assert collages.Dataset.open(dataset.folder) == dataset


def test_records_are_the_histograms_of_the_tiles(dataset: collages.Dataset) -> None:
    tiles = dataset.tiles(np.arange(dataset.records))
    records = np.fromfile(dataset.folder / "records", np.float32).reshape(dataset.records, 1024)
    np.testing.assert_array_equal(records[:, :768], histograms(tiles))
    assert not records[:, 768:].any()


def test_a_picture_of_the_dataset_is_its_own_collage(
    pictures: Path, dataset: collages.Dataset, executor: Executor
) -> None:
    made = collages.collage(pictures / "a.png", dataset, executor=executor)
    np.testing.assert_array_equal(made.pixels, noise(128, 192, 1))
    assert (made.distances == 0).all()
    assert made.executor == executor


def test_blocks_get_the_nearest_of_their_candidates(dataset: collages.Dataset, executor: Executor) -> None:
    picture = noise(96, 64, 7)
    made = collages.collage(picture, dataset, executor=executor)
    assert made.ids.shape == made.distances.shape == (3, 2)
    mine = histograms(blocks_of(picture))
    theirs = histograms(dataset.tiles(made.ids.ravel()))
    np.testing.assert_allclose(made.distances.ravel(), np.linalg.norm(mine - theirs, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(blocks_of(made.pixels), dataset.tiles(made.ids.ravel()))
    assert made.candidates >= made.ids.size


def test_threads_change_no_collage(dataset: collages.Dataset) -> None:
    first, second = (
        collages.collage(noise(64, 64, 8), dataset, threads=threads, executor="cpu") for threads in (1, 8)
    )
    np.testing.assert_array_equal(first.ids, second.ids)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 5000), (33, 31)])
def test_pictures_are_enlarged_to_whole_blocks(dataset: collages.Dataset, rows: int, columns: int) -> None:
    made = collages.collage(noise(rows, columns), dataset, executor="cpu")
    assert made.pixels.shape == (-(-rows // 32) * 32, -(-columns // 32) * 32, 3)


def test_elongated_pictures_are_skipped(pictures: Path, tmp_path: Path) -> None:
    save(noise(3, 5000), pictures / "long.png")
    save(noise(64, 1), pictures / "thin.png")
    made = collages.make_dataset(pictures, tmp_path / "new", scales=[1], tables=1, executor="cpu")
    assert made.pictures == 4
    assert len(made.skipped) == 1
    assert "long.png: cut 5000 x 3 pixels" in made.skipped[0]


def test_what_cannot_be_read_is_skipped_with_the_reason(pictures: Path, tmp_path: Path) -> None:
    png = (pictures / "a.png").read_bytes()
    (pictures / "cut.png").write_bytes(png[: len(png) // 2])
    (pictures / "empty.jpg").write_bytes(b"")
    (pictures / "text.gif").write_text("no picture")
    (pictures / os.fsdecode(b"two\nlines\xff.png")).write_bytes(png[:40])
    (pictures / "broken.png").symlink_to("nowhere")
    (pictures / "folder.png").mkdir()
    os.mkfifo(pictures / "pipe.png")
    (pictures / ".hidden.png").write_bytes(png)
    made = collages.make_dataset(pictures, tmp_path / "new", scales=[1], tables=1, executor="cpu")
    assert made.pictures == 3
    assert len(made.skipped) == 5
    assert all(reason.isprintable() for reason in made.skipped)
    assert "two\\nlines\\udcff.png" in " ".join(made.skipped)


def test_names_of_pictures_may_have_any_bytes(tmp_path: Path) -> None:
    save(noise(32, 32), tmp_path / "pictures" / os.fsdecode(b"two\nlines\xff.png"))
    made = collages.make_dataset(tmp_path / "pictures", tmp_path / "new", tables=1, executor="cpu")
    assert (made.pictures, made.skipped) == (1, ())


def transparent(path: Path) -> None:
    pixels = np.zeros((32, 32, 4), np.uint8)
    pixels[..., 0] = 255
    Image.fromarray(pixels).save(path)


def palette(path: Path) -> None:
    Image.new("P", (32, 32)).save(path, transparency=0)


def animated(path: Path) -> None:
    frames = [Image.new("RGB", (32, 32), "white"), Image.new("RGB", (32, 32), "red")]
    frames[0].save(path.with_suffix(".gif"), save_all=True, append_images=frames[1:])


def deep(path: Path) -> None:
    Image.fromarray(np.full((32, 32), 0xFF80, np.uint16)).save(path)


def rotated(path: Path) -> None:
    exif = Image.Exif()
    exif[0x112] = 6
    pixels = np.full((32, 64, 3), 255, np.uint8)
    Image.fromarray(pixels).save(path, exif=exif)


@pytest.mark.parametrize("make", [transparent, palette, animated, deep, rotated])
def test_pictures_are_read_as_viewers_show_them(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """All of them are white."""
    (tmp_path / "pictures").mkdir()
    make(tmp_path / "pictures" / "white.png")
    made = collages.make_dataset(
        tmp_path / "pictures", tmp_path / "new", scales=[1], tables=1, executor="cpu"
    )
    assert made.records == (2 if make is rotated else 1)
    assert (made.tiles([0]) == 255).all()
    (path,) = (tmp_path / "pictures").iterdir()
    shown = collages.collage(path, made, executor="cpu")
    assert shown.ids.shape == ((2, 1) if make is rotated else (1, 1))
    assert (shown.distances == 0).all()


@pytest.mark.parametrize("scales", [(), (0,), (65,), (1.5,), 3, "12"])
def test_scales_that_are_none_are_refused(pictures: Path, tmp_path: Path, scales: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="scales"):
        collages.make_dataset(pictures, tmp_path / "new", scales=scales)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("none", "No such file"), ("empty", "there is no PNG"), ("file", "Not a directory")],
)
def test_folders_without_pictures_change_no_dataset(
    dataset: collages.Dataset, tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    before = contents(dataset.folder)
    with pytest.raises(ValueError, match=sentence):
        collages.make_dataset(tmp_path / name, dataset.folder, executor="cpu")
    assert contents(dataset.folder) == before


def test_unreadable_pictures_change_no_dataset(dataset: collages.Dataset, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_text("no picture")
    before = contents(dataset.folder)
    with pytest.raises(ValueError, match="none of 1 can be read"):
        collages.make_dataset(tmp_path / "bad", dataset.folder, executor="cpu")
    assert contents(dataset.folder) == before


@pytest.mark.parametrize("stage", ["cutting pictures", "sampling records", "hashing records"])
def test_a_build_that_is_stopped_leaves_the_old_dataset(
    pictures: Path, dataset: collages.Dataset, tmp_path: Path, stage: str
) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what == stage:
            raise KeyboardInterrupt

    before = contents(dataset.folder)
    for folder in (dataset.folder, tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt):
            collages.make_dataset(pictures, folder, scales=[1], executor="cpu", progress=stop)
    assert contents(dataset.folder) == before
    assert not (tmp_path / "new").exists()


def test_a_dataset_is_replaced_by_one_of_another_kind(dataset: collages.Dataset, pictures: Path) -> None:
    collages.make_synthetic_dataset(dataset.folder, 50, tables=1, executor="cpu")
    assert names_in(dataset.folder) == ["collage.json", "lsh.index", "records"]
    collages.make_dataset(pictures, dataset.folder, tables=1, executor="cpu")
    assert names_in(dataset.folder) == FILES


@pytest.mark.parametrize("name", ["records", "tiles", "lsh.index"])
def test_files_that_are_no_datasets_are_not_replaced(pictures: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    with pytest.raises(ValueError, match=f"{name} is there and no collage.json"):
        collages.make_dataset(pictures, tmp_path / "mine", executor="cpu")
    assert contents(tmp_path / "mine") == {name: b"mine"}


def test_two_builds_at_once_leave_one_whole_dataset(pictures: Path, tmp_path: Path) -> None:
    def make(scale: int) -> None:
        collages.make_dataset(pictures, tmp_path / "new", scales=[scale], tables=2, executor="cpu")

    builders = [threading.Thread(target=make, args=(scale,)) for scale in (1, 2, 3, 4)]
    for each in builders:
        each.start()
    for each in builders:
        each.join()
    assert names_in(tmp_path / "new") == FILES
    found = collages.Dataset.open(tmp_path / "new")
    with lsh.Index(tmp_path / "new", executor="cpu") as index:
        assert len(index) == found.records
    records = np.fromfile(found.folder / "records", np.float32).reshape(-1, 1024)
    np.testing.assert_array_equal(records[:, :768], histograms(found.tiles(np.arange(found.records))))


def describe(folder: Path, **facts: Any) -> None:
    path = folder / "collage.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def other_index(folder: Path) -> None:
    lsh.build(folder.parent / "other", np.ones((5, 768)), tables=1, executor="cpu")
    (folder.parent / "other" / "lsh.index").replace(folder / "lsh.index")


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "no description": lambda folder: (folder / "collage.json").unlink(),
    "no JSON": lambda folder: (folder / "collage.json").write_bytes(b"\xff{"),
    "a list": lambda folder: (folder / "collage.json").write_text("[]"),
    "no facts": lambda folder: (folder / "collage.json").write_text("{}"),
    "another version": lambda folder: describe(folder, version=2),
    "other records": lambda folder: describe(folder, records=7),
    "infinite records": lambda folder: describe(folder, records=float("inf")),
    "records of text": lambda folder: describe(folder, records="many"),
    "records shortened": lambda folder: os.truncate(folder / "records", 4096),
    "tiles shortened": lambda folder: os.truncate(folder / "tiles", 3072),
    "no tiles": lambda folder: (folder / "tiles").unlink(),
    "no index": lambda folder: (folder / "lsh.index").unlink(),
    "index shortened": lambda folder: os.truncate(folder / "lsh.index", 8192),
    "index of other records": other_index,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_datasets_are_refused(dataset: collages.Dataset, damage: str) -> None:
    DAMAGE[damage](dataset.folder)
    with pytest.raises((OSError, ValueError), match=r"again|make it with|build it first"):
        collages.collage(noise(32, 32), dataset.folder, executor="cpu")


def test_histograms_that_are_no_numbers_are_refused(dataset: collages.Dataset) -> None:
    for record in range(dataset.records):
        with (dataset.folder / "records").open("r+b") as file:
            file.seek(4096 * record)
            file.write(struct.pack("<f", float("nan")))
    with pytest.raises(OSError, match="histograms that are no numbers"):
        collages.collage(noise(32, 32), dataset, executor="cpu")


@pytest.mark.parametrize(
    "picture", [7, None, np.zeros((3, 3)), np.zeros((0, 5, 3), np.uint8), np.zeros((5, 5, 4), np.uint8)]
)
def test_what_is_no_picture_is_refused(dataset: collages.Dataset, picture: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="picture"):
        collages.collage(picture, dataset, executor="cpu")


def test_a_picture_that_maps_a_cut_file_is_refused(dataset: collages.Dataset, tmp_path: Path) -> None:
    """The end of the process else: SIGBUS."""
    np.save(tmp_path / "pixels.npy", noise(320, 320))
    picture = np.load(tmp_path / "pixels.npy", mmap_mode="r")
    os.truncate(tmp_path / "pixels.npy", 5000)
    with pytest.raises(Error, match="an argument maps a file that was cut short"):
        collages.collage(picture, dataset, executor="cpu")


def test_a_pipe_is_not_waited_for(dataset: collages.Dataset, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(OSError, match=r"pipe\.png: it is no file: name a PNG"):
        collages.collage(tmp_path / "pipe.png", dataset, executor="cpu")


@pytest.mark.filterwarnings("error")
def test_pictures_of_many_pixels_are_read_or_refused_for_that(
    dataset: collages.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(noise(32, 32), tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # Pillow warns of more, and refuses twice as many
    assert collages.collage(tmp_path / "large.png", dataset, executor="cpu").pixels.shape == (32, 32, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(OSError, match=r"large\.png: it has more than 1,000 pixels: make it smaller"):
        collages.collage(tmp_path / "large.png", dataset, executor="cpu")


def test_synthetic_datasets_follow_from_the_seed(tmp_path: Path, executor: Executor) -> None:
    made = [
        collages.make_synthetic_dataset(
            tmp_path / str(k), 300, seed=seed, threads=1 + k, tables=8, executor="cpu"
        )
        for k, seed in enumerate((5, 5, 6))
    ]
    first, second, third = ((each.folder / "records").read_bytes() for each in made)
    assert first == second != third
    counts = np.frombuffer(first, np.float32).reshape(300, 1024)[:, :768].reshape(300, 3, 256)
    assert (counts.sum(axis=2) == 1024).all()
    np.testing.assert_array_equal(histograms(made[0].tiles(np.arange(300))), counts.reshape(300, 768))
    shown = collages.collage(collages.synthetic_picture(64, 96), made[0], executor=executor)
    assert shown.pixels.shape == (96, 64, 3)


@pytest.mark.parametrize("options", [{"records": 0}, {"records": 1 << 32}, {"records": 5, "seed": -1}])
def test_synthetic_datasets_that_cannot_be_are_refused(tmp_path: Path, options: Any) -> None:
    with pytest.raises(ValueError, match="it must be"):
        collages.make_synthetic_dataset(tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_saving_replaces_a_picture_only_by_a_whole_one(dataset: collages.Dataset, tmp_path: Path) -> None:
    made = collages.collage(noise(64, 64), dataset, executor="cpu")
    made.save(tmp_path / "new" / "out.png")
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "new" / "out.png")), made.pixels)
    (tmp_path / "out.txt").write_text("mine")
    with pytest.raises(OSError, match="choose another kind of file"):
        made.save(tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "mine"


def test_commands_make_a_dataset_and_a_collage(
    pictures: Path, tmp_path: Path, executor: Executor, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures / "bad.png").write_text("no picture")
    tiles, out = str(tmp_path / "new"), tmp_path / "out.png"
    assert main(["collage-dataset", str(pictures), tiles, "--tables", "4", "--executor", executor]) == 0
    printed = capsys.readouterr()
    assert "83 records, of 3 pictures" in printed.out
    assert "bad.png: it is no picture" in printed.err
    picture = str(pictures / "a.png")
    assert main(["collage", picture, "--dataset", tiles, "-o", str(out), "--executor", executor]) == 0
    assert "24 (6 x 4)" in capsys.readouterr().out
    np.testing.assert_array_equal(np.asarray(Image.open(out)), noise(128, 192, 1))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["collage", "{0}/a.png", "--dataset", "{1}", "-o", "{0}/x.txt"], "written as .png, .jpg or .webp"),
        (["collage", "{0}/a.png", "--dataset", "{1}", "-o", "{0}/a.png/x.png"], "is no folder"),
        (["collage", "{0}/none.png", "--dataset", "{1}", "-o", "x.png"], "No such file"),
        (
            ["collage", "{0}/a.png", "--dataset", "{0}", "-o", "x.png"],
            "make it with penstock collage-dataset",
        ),
        (
            ["collage", "{0}/a.png", "--dataset", "{1}", "-o", "x.png", "--max-candidates", "3"],
            "must be 64 or more",
        ),
        (
            ["collage", "{0}/a.png", "--dataset", "{1}", "-o", "x.png", "--cache", "1KiB"],
            "make the cache larger",
        ),
        (["collage-dataset", "{0}"], "give PICTURES and FOLDER"),
        (["collage-dataset", "{0}", "{1}", "--scale", "0"], "scales 0"),
        (["collage-dataset", "{0}", "{0}/a.png"], "File exists"),
        (["collage-dataset", "--synthetic", "0", "{1}"], "records 0"),
        (["collage-dataset", "--synthetic", "5", "{1}", "--seed", "-1"], "seed -1"),
    ],
)
def test_commands_refuse_in_one_sentence(
    pictures: Path,
    dataset: collages.Dataset,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(dataset.folder)
    assert main([argument.format(pictures, dataset.folder) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert contents(dataset.folder) == before
    assert not (tmp_path / "x.png").exists()

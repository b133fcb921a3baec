"""Datasets of small pictures: their histograms, the index over these, and the pictures themselves.

A folder with the files `records` (a histogram of 768 float32 numbers in each 4096 bytes), `lsh.index`,
`tiles` (32 x 32 x 3 bytes each; a synthetic dataset has none) and `collage.json`, which is written last.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex, TypedDict

import numpy as np

from penstock.callbacks import Progress
from penstock.checks import checked_count
from penstock.collages.pictures import BLOCK, Pixels, open_picture, picture_paths, pillow, tiles_of
from penstock.errors import Error
from penstock.graph.options import Executor
from penstock.lsh.building import RECORDS, build
from penstock.native import load_native
from penstock.options import Choice, Count, Size, checked, show_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

BINS = 768
RECORD_BYTES = 4096
TILE_BYTES = BLOCK * BLOCK * 3
TILES = "tiles"
DESCRIPTION = "collage.json"
VERSION = 1
AT_ONCE = 4096  # tiles
MOST_RECORDS = (1 << 32) - 1


class DatasetOptions(TypedDict, total=False):
    """What datasets are made with."""

    tables: Annotated[SupportsIndex, Count(32, least=1, most=256)]
    executor: Annotated[Executor, Choice("auto")]
    memory: Annotated[SupportsIndex | str | None, Size(unless="4GiB")]
    threads: Annotated[SupportsIndex, Count(most=1024)]


@dataclass(frozen=True)
class Dataset:
    """A dataset that is complete."""

    folder: Path
    records: int
    synthetic: bool
    pictures: int
    """That the tiles are of; 0 of a synthetic one."""
    skipped: tuple[str, ...] = ()
    """Pictures that could not be read, with the reason; of a dataset that was just made."""

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Dataset:
        """Read the description of a dataset.

        Raises:
            penstock.Error: Where there is none, or its files are not those that it describes.
        """
        path = Path(folder)
        try:
            facts = json.loads((path / DESCRIPTION).read_text())
            found = cls(path, int(facts["records"]), bool(facts["synthetic"]), int(facts["pictures"]))
            version = facts["version"]
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise Error(
                f"open dataset {path}: {DESCRIPTION}: {reason}: make it with penstock collage-dataset",
                error.errno or 0,
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise Error(f"open dataset {path}: {DESCRIPTION} is damaged: make it again", 0) from error
        if version != VERSION:
            raise Error(f"open dataset {path}: it is of another version: make it again", 0)
        sizes = {RECORDS: found.records * RECORD_BYTES}
        if not found.synthetic:
            sizes[TILES] = found.records * TILE_BYTES
        for name, expected in sizes.items():
            size = (path / name).stat().st_size if (path / name).exists() else 0
            if size != expected:
                raise Error(
                    f"open dataset {path}: {name} has {size} bytes instead of {expected}: make it again", 0
                )
        return found

    def tiles(self, ids: Any) -> Pixels:
        """The pictures of records, shape (n, 32, 32, 3); a synthetic dataset's are drawn from its records."""
        numbers = np.asarray(ids, np.int64)
        if self.synthetic:
            records = np.memmap(
                self.folder / RECORDS, np.float32, "r", shape=(self.records, RECORD_BYTES // 4)
            )
            unique, places = np.unique(numbers, return_inverse=True)
            drawn = np.stack([_drawn(records[k, :BINS], int(k)) for k in unique])
            return np.asarray(drawn[places.reshape(numbers.shape)])
        tiles = np.memmap(self.folder / TILES, np.uint8, "r", shape=(self.records, BLOCK, BLOCK, 3))
        return np.asarray(tiles[numbers])


def _drawn(histogram: Any, seed: int) -> Pixels:
    """Pixels with these counts, in an order that follows from the seed."""
    counts = histogram.reshape(3, 256).astype(np.int64)
    channels = [np.repeat(np.arange(256, dtype=np.uint8), count)[: BLOCK * BLOCK] for count in counts]
    padded = [np.pad(channel, (0, BLOCK * BLOCK - len(channel)), mode="edge") for channel in channels]
    order = np.random.default_rng(seed).permutation(BLOCK * BLOCK)
    return np.stack(padded, axis=-1)[order].reshape(BLOCK, BLOCK, 3)


@show_options(DatasetOptions)
def make_dataset(
    pictures: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    scales: tuple[int, ...] = (1, 2, 4),
    progress: Progress | None = None,
    **options: Unpack[DatasetOptions],
) -> Dataset:
    """Make a dataset of the crops of all pictures below a folder.

    Each picture is reduced until its shorter side has as many blocks of 32 pixels as each scale says, and cut
    into them.

    Args:
        pictures: Where they are; PNG, JPEG, WebP, GIF, BMP and TIFF files are found by their names.
        folder: Gets the dataset; made where it does not exist. A dataset that is there is replaced.
        scales: Blocks along the shorter side.
        progress: Called with what is done, how far it is, and of how much.
        tables: Hash tables of the index.
        executor: "cpu", "cuda", or "auto".
        memory: Of the host, for tables that are built at once.
        threads: Of the host, and of the CPU executor; 0: one for each core.

    Returns:
        What was made, with the pictures that could not be read.

    Raises:
        ValueError, TypeError: For a bad argument, or a folder without pictures.
        penstock.Error: For what cannot be written.
    """
    given = checked(DatasetOptions, options)
    sizes = tuple(checked_count("scales", scale, 1, 64) for scale in scales)
    if not sizes:
        raise ValueError("scales (): give one or more")
    pillow()
    paths = list(picture_paths(Path(pictures)))
    if not paths:
        raise ValueError(f"pictures {os.fspath(pictures)}: there is no PNG, JPEG or WebP file below it")
    target = _emptied(folder)
    skipped: list[str] = []
    records = 0
    with (target / RECORDS).open("wb") as histograms, (target / TILES).open("wb") as tiles:
        waiting: list[Pixels] = []
        for number, path in enumerate(paths):
            if progress is not None:
                progress("cutting pictures", number, len(paths))
            try:
                waiting.append(tiles_of(open_picture(path), sizes))
            except Error as error:
                skipped.append(str(error))
            if sum(map(len, waiting)) >= AT_ONCE or (waiting and number == len(paths) - 1):
                records += _append(np.concatenate(waiting), histograms, tiles, given)
                waiting = []
        if waiting:
            records += _append(np.concatenate(waiting), histograms, tiles, given)
    if records == 0:
        raise ValueError(f"pictures {os.fspath(pictures)}: none of {len(paths)} can be read: {skipped[0]}")
    return _finished(target, records, False, len(paths) - len(skipped), tuple(skipped), given, progress)


@show_options(DatasetOptions)
def make_synthetic_dataset(
    folder: str | os.PathLike[str],
    records: SupportsIndex,
    *,
    seed: int = 1,
    progress: Progress | None = None,
    **options: Unpack[DatasetOptions],
) -> Dataset:
    """Make a dataset of drawn histograms, for measurements.

    They are of a few thousand materials, of which few are frequent.

    Args:
        folder: Gets the dataset, 4 KiB and 8 * tables bytes for each record.
        records: How many; the paper has 10 million.
        seed: Of the draws.
        progress: Called with what is done, how far it is, and of how much.
        tables: Hash tables of the index.
        executor: "cpu", "cuda", or "auto".
        memory: Of the host, for tables that are built at once.
        threads: Of the host, and of the CPU executor; 0: one for each core.

    Returns:
        What was made.

    Raises:
        ValueError, TypeError: For a bad argument.
        penstock.Error: For what cannot be written.
    """
    given = checked(DatasetOptions, options)
    count = checked_count("records", records, 1, MOST_RECORDS)
    target = _emptied(folder)
    load_native().lsh_synthetic_histograms(str(target / RECORDS), count, seed, given["threads"], progress)
    return _finished(target, count, True, 0, (), given, progress)


def synthetic_picture(width: int, height: int, *, seed: int = 1) -> Any:
    """Draw a picture of the materials that synthetic datasets are of, a PIL image."""
    for name, side in (("width", width), ("height", height)):
        checked_count(name, side, 1, 1 << 16)
    pixels = load_native().lsh_synthetic_picture(height, width, seed)
    return pillow().fromarray(pixels.reshape(height, width, 3))


def _emptied(folder: str | os.PathLike[str]) -> Path:
    """The folder, without a dataset: what is made there is none until its description is written."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name in (DESCRIPTION, "lsh.index", RECORDS, TILES):
        (target / name).unlink(missing_ok=True)
    return target


def _append(tiles: Pixels, histograms: Any, pixels: Any, given: dict[str, Any]) -> int:
    # Blocks side by side are rows of one tall picture.
    tall = np.ascontiguousarray(tiles.reshape(-1, BLOCK, 3))
    counted = load_native().lsh_histograms(tall, "cpu", given["threads"])
    records = np.zeros((len(tiles), RECORD_BYTES // 4), np.float32)
    records[:, :BINS] = counted
    records.tofile(histograms)
    np.ascontiguousarray(tiles).tofile(pixels)
    return len(tiles)


def _finished(
    folder: Path,
    records: int,
    synthetic: bool,
    pictures: int,
    skipped: tuple[str, ...],
    given: dict[str, Any],
    progress: Progress | None,
) -> Dataset:
    build(folder, dimensions=BINS, record_bytes=RECORD_BYTES, progress=progress, **given)
    facts = {"version": VERSION, "records": records, "synthetic": synthetic, "pictures": pictures}
    draft = folder / f".{DESCRIPTION}"
    draft.write_text(json.dumps(facts) + "\n")
    draft.replace(folder / DESCRIPTION)
    return Dataset(folder, records, synthetic, pictures, skipped)

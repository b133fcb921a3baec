"""Datasets of small pictures: their histograms, the index over these, and the pictures themselves.

A folder with the files `records` (a histogram of 768 float32 numbers in each 4096 bytes), `lsh.index`,
`tiles` (32 x 32 x 3 bytes each; a synthetic dataset has none) and `collage.json`. They are made in a folder
`.collage-*.part` of it and take their places when all are complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex, TypedDict

import numpy as np

from penstock.callbacks import Progress
from penstock.checks import checked_count
from penstock.collages.pictures import BLOCK, Pixels, open_picture, picture_paths, pillow, printable, tiles_of
from penstock.errors import Error
from penstock.graph.options import Executor
from penstock.lsh.folders import folder_text, one_writer
from penstock.lsh.making import INDEX, RECORDS, build
from penstock.native import load_native
from penstock.options import Choice, Count, Size, checked, show_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock.lsh.index import IndexFacts

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
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
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

    def check(self, index: IndexFacts) -> None:
        """Raises penstock.Error for an index of other records."""
        if (index.records, index.dimensions, index.record_bytes) != (self.records, BINS, RECORD_BYTES):
            raise Error(f"open dataset {self.folder}: {INDEX} is of other records: make it again", 0)

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
    counts = np.nan_to_num(histogram.reshape(3, 256)).clip(0, BLOCK * BLOCK).astype(np.int64)
    channels = [np.repeat(np.arange(256, dtype=np.uint8), count)[: BLOCK * BLOCK] for count in counts]
    padded = [np.resize(channel, BLOCK * BLOCK) for channel in channels]  # zeros where there are none
    order = np.random.default_rng(seed).permutation(BLOCK * BLOCK)
    return np.stack(padded, axis=-1)[order].reshape(BLOCK, BLOCK, 3)


@show_options(DatasetOptions)
def make_dataset(
    pictures: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    scales: Sequence[int] = (1, 2, 4),
    progress: Progress | None = None,
    **options: Unpack[DatasetOptions],
) -> Dataset:
    """Make a dataset of the crops of all pictures below a folder.

    Each picture is resized so that its shorter side has as many blocks of 32 pixels as each scale says, and
    cut into them.

    Args:
        pictures: Where they are; PNG, JPEG, WebP, GIF, BMP and TIFF files are found by their names. One that
            is more than 64 times as long as wide is skipped.
        folder: Gets the dataset; made where it does not exist. A dataset that is there is replaced when all
            of the new one is complete.
        scales: Blocks along the shorter side, 1 to 64.
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
    sizes = _checked_scales(scales)
    pillow()
    skipped: list[str] = []
    paths = list(picture_paths(Path(pictures), lambda error: skipped.append(_reason(error, pictures))))
    if not paths:
        why = skipped[0] if skipped else "there is no PNG, JPEG or WebP file below it"
        raise ValueError(f"pictures {printable(pictures)}: {why}")
    with _draft(folder) as draft:
        records, read = 0, 0
        with (draft / RECORDS).open("wb") as histograms, (draft / TILES).open("wb") as tiles:
            waiting: list[Pixels] = []
            for number, path in enumerate(paths):
                if progress is not None:
                    progress("cutting pictures", number, len(paths))
                try:
                    waiting.append(_tiles_at(path, sizes))
                    read += 1
                except Error as error:
                    skipped.append(str(error))
                if sum(map(len, waiting)) >= AT_ONCE:
                    records += _append(waiting, histograms, tiles, given)
                    waiting = []
            records += _append(waiting, histograms, tiles, given)
        if records == 0:
            raise ValueError(
                f"pictures {printable(pictures)}: none of {len(paths)} can be read: {skipped[-1]}"
            )
        made = Dataset(Path(folder), records, False, read, tuple(skipped))
        _finish(draft, made, given, progress)
    return made


def _checked_scales(scales: Sequence[int]) -> tuple[int, ...]:
    if isinstance(scales, (str, bytes)) or not isinstance(scales, Sequence):
        raise TypeError(f"scales {scales!r}: give a list of whole numbers")
    if not scales:
        raise ValueError("scales (): give one or more")
    return tuple(checked_count("scales", scale, 1, 64) for scale in scales)


def _reason(error: OSError, pictures: str | os.PathLike[str]) -> str:
    """Of a folder that cannot be listed."""
    reason = os.strerror(error.errno or 0)
    return reason if error.filename == os.fspath(pictures) else f"list {printable(error.filename)}: {reason}"


def _tiles_at(path: Path, sizes: tuple[int, ...]) -> Pixels:
    picture = open_picture(path)
    try:
        return tiles_of(picture, sizes)
    except Error as error:
        raise Error(f"{printable(path)}: {error}", 0) from None


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
    seed = checked_count("seed", seed, 0)
    with _draft(folder) as draft:
        load_native().lsh_synthetic_histograms(str(draft / RECORDS), count, seed, given["threads"], progress)
        made = Dataset(Path(folder), count, True, 0)
        _finish(draft, made, given, progress)
    return made


def synthetic_picture(width: int, height: int, *, seed: int = 1) -> Any:
    """Draw a picture of the materials that synthetic datasets are of, a PIL image."""
    for name, side in (("width", width), ("height", height)):
        checked_count(name, side, 1, 1 << 16)
    pixels = load_native().lsh_synthetic_picture(height, width, checked_count("seed", seed, 0))
    return pillow().fromarray(pixels.reshape(height, width, 3))


@contextlib.contextmanager
def _draft(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder whose files become the dataset of `folder` after the block; nothing is left of it otherwise.

    Raises:
        ValueError: Where files of these names are no dataset's.
        penstock.Error: Where it cannot be written.
    """
    target = Path(folder_text(folder))
    with one_writer(target):  # another builder's files have no description while they are moved
        _refuse_others_files(target)
    is_new = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".collage-", suffix=".part", dir=target) as draft:
            yield Path(draft)
            _move(Path(draft), target)
    except BaseException as error:
        if is_new:
            with contextlib.suppress(OSError):
                target.rmdir()
        if isinstance(error, OSError) and not isinstance(error, Error):
            code = error.errno or 0
            remedy = "make room, or choose another folder"
            raise Error(f"make dataset {target}: {os.strerror(code)}: {remedy}", code) from error
        raise


def _refuse_others_files(target: Path) -> None:
    if os.path.lexists(target / DESCRIPTION):
        return
    for name in (RECORDS, INDEX, TILES):
        if os.path.lexists(target / name):
            raise ValueError(
                f"folder {target}: {name} is there and no {DESCRIPTION}: remove it, or choose another folder"
            )


def _move(draft: Path, target: Path) -> None:
    """The description goes first and comes last, so that a reader finds a dataset that is whole, or none."""
    with one_writer(target):
        for name in (DESCRIPTION, RECORDS, INDEX, TILES):
            (target / name).unlink(missing_ok=True)
        for name in (RECORDS, INDEX, TILES, DESCRIPTION):
            if (draft / name).exists():
                (draft / name).replace(target / name)


def _append(waiting: list[Pixels], histograms: Any, pixels: Any, given: dict[str, Any]) -> int:
    if not waiting:
        return 0
    tiles = np.concatenate(waiting)
    # Blocks side by side are rows of one tall picture.
    tall = np.ascontiguousarray(tiles.reshape(-1, BLOCK, 3))
    counted = load_native().lsh_histograms(tall, "cpu", given["threads"])
    records = np.zeros((len(tiles), RECORD_BYTES // 4), np.float32)
    records[:, :BINS] = counted
    histograms.write(records.data)  # tofile() has no errno
    pixels.write(tall.data)
    return len(tiles)


def _finish(draft: Path, made: Dataset, given: dict[str, Any], progress: Progress | None) -> None:
    build(draft, dimensions=BINS, record_bytes=RECORD_BYTES, progress=progress, **given)
    facts = {
        "version": VERSION,
        "records": made.records,
        "synthetic": made.synthetic,
        "pictures": made.pictures,
    }
    (draft / DESCRIPTION).write_text(json.dumps(facts) + "\n")

"""Collages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex, TypedDict

import numpy as np
import numpy.typing as npt

from penstock.arguments import reading
from penstock.callbacks import Progress
from penstock.collages.dataset import Dataset
from penstock.collages.pictures import BLOCK, Pixels, blocks_of, in_rgb, open_picture, pillow
from penstock.errors import Error
from penstock.graph.options import Executor
from penstock.lsh.index import Index
from penstock.native import load_native
from penstock.options import Choice, Count, Size, checked, show_options
from penstock.report.whole_files import written_whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

FALLBACK = 64
"""Records that a block is compared with whose buckets are empty."""
ROWS_AT_ONCE = 16


class CollageOptions(TypedDict, total=False):
    """What `collage` takes."""

    executor: Annotated[Executor, Choice("auto")]
    cache: Annotated[SupportsIndex | str | None, Size(least=1)]
    line: Annotated[SupportsIndex | str | None, Size(unless="4KiB", least=1)]
    threads: Annotated[SupportsIndex, Count(most=1024)]
    max_candidates: Annotated[SupportsIndex, Count(1024, least=FALLBACK, most=1 << 20)]


@dataclass(frozen=True)
class Collage:
    """A collage, and what it took."""

    pixels: Pixels
    """Shape (rows, columns, 3): red, green, blue."""
    ids: npt.NDArray[np.int64]
    """Shape (rows / 32, columns / 32): the dataset's record in each block."""
    distances: npt.NDArray[np.float32]
    """Euclidean, of the histograms, in the same shape."""
    candidates: int
    """Records that were compared, all blocks together."""
    cut: int
    """Blocks with more candidates than `max_candidates`."""
    hits: int
    """Accesses to records and buckets whose line was in the cache."""
    misses: int
    bytes_moved: int
    """To the cache."""
    seconds: float
    """Of the search, without pictures."""
    executor: str
    device: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture; the ending of the name says how. What was there stays until all is written.

        Raises:
            penstock.Error: Where it cannot be written.
        """
        image = pillow().fromarray(self.pixels)
        with written_whole("write", Path(path), ValueError) as beside:
            image.save(beside)


@show_options(CollageOptions)
def collage(
    picture: Any,
    dataset: Dataset | str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **options: Unpack[CollageOptions],
) -> Collage:
    """Replace each block of a picture by the nearest picture of a dataset (SYSTOR 2016, section 2.4).

    Near is what has a similar colour histogram.

    Args:
        picture: A path, a PIL image, or an array of shape (rows, columns, 3), uint8. It is enlarged to whole
            blocks of 32 x 32; what is transparent lies on white.
        dataset: That `make_dataset` has made, or its folder.
        progress: Called with what is done, how far it is, and of how much.
        executor: "cpu", "cuda", or "auto".
        cache: Bytes for records and buckets; None takes 256 MiB, on a GPU 2 GiB.
        line: How much of a file comes at once.
        threads: Of the CPU executor; 0: one for each core.
        max_candidates: Of a block.

    Returns:
        The picture, and the record in each block.

    Raises:
        ValueError, TypeError: For a bad argument.
        penstock.Error: For what cannot be read.
    """
    given = checked(CollageOptions, options)
    found = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
    with reading("make a collage", picture):
        pixels = np.ascontiguousarray(_pixels(picture))
        histograms = load_native().lsh_histograms(pixels, given["executor"], given["threads"])
    rows, columns = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    with Index(found.folder, fallback=FALLBACK, **given) as index:
        found.check(index.facts)
        nearest = index.query(histograms, progress=progress)
        cost = index.inspect()
    ids = nearest.ids.reshape(rows, columns)
    if (ids < 0).any():
        raise Error(f"read dataset {found.folder}: it has histograms that are no numbers: make it again", 0)
    made = np.empty_like(pixels)
    for first in range(0, rows, ROWS_AT_ONCE):
        if progress is not None:
            progress("placing pictures", first, rows)
        tiles = found.tiles(ids[first : first + ROWS_AT_ONCE])
        made[first * BLOCK : (first + len(tiles)) * BLOCK] = tiles.swapaxes(1, 2).reshape(
            -1, columns * BLOCK, 3
        )
    return Collage(
        made,
        ids,
        nearest.distances.reshape(rows, columns),
        nearest.candidates,
        nearest.cut,
        cost["hits"],
        cost["misses"],
        cost["bytes_moved"],
        nearest.seconds,
        cost["executor"],
        cost["device"],
    )


def _pixels(picture: Any) -> Pixels:
    if isinstance(picture, (str, os.PathLike)):
        picture = open_picture(picture)
    elif isinstance(picture, np.ndarray):
        if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or 0 in picture.shape:
            raise ValueError(
                f"picture of shape {picture.shape}, {picture.dtype}: give (rows, columns, 3), uint8"
            )
        picture = pillow().fromarray(np.ascontiguousarray(picture))
    elif not isinstance(picture, pillow().Image):
        raise TypeError(f"picture {type(picture).__name__}: give a path, a PIL image or an array")
    return blocks_of(in_rgb(picture))

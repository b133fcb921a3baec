"""Pictures, as Pillow has them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import Error

BLOCK = 32
"""Pixels along a side of a block."""
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
Pixels = npt.NDArray[np.uint8]


def pillow() -> Any:
    """Pillow's module Image. Raises penstock.Error where it is not installed."""
    try:
        from PIL import Image
    except ImportError:
        raise Error("read pictures: Pillow is not installed: pip install 'penstock[images]'", 0) from None
    return Image


def open_picture(path: str | os.PathLike[str]) -> Any:
    """A picture in RGB, upright.

    Raises:
        penstock.Error: One sentence for what is no picture or cannot be read.
    """
    image = pillow()
    from PIL import ImageOps

    try:
        with warnings.catch_warnings(), image.open(path) as opened:
            warnings.simplefilter("ignore")  # of details, such as EXIF
            return ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        number = error.errno if isinstance(error, OSError) and error.errno else 0
        reason = os.strerror(number) if number else "it is no picture that Pillow reads, or it is damaged"
        raise Error(f"open {os.fspath(path)}: {reason}: name a PNG, JPEG or WebP file", number) from error


def blocks_of(picture: Any) -> Pixels:
    """The pixels of a picture, enlarged to whole blocks: shape (rows, columns, 3), multiples of BLOCK."""
    width, height = (-(-side // BLOCK) * BLOCK for side in picture.size)
    if (width, height) != picture.size:
        picture = picture.resize((width, height), pillow().Resampling.BICUBIC)
    return np.asarray(picture)


def tiles_of(picture: Any, scales: tuple[int, ...]) -> Pixels:
    """Crops of a picture, shape (n, BLOCK, BLOCK, 3).

    For each scale s all whole blocks of the picture, reduced so that its shorter side has s blocks.
    """
    found = []
    for scale in scales:
        short = min(picture.size)
        width, height = (max(BLOCK, round(side * scale * BLOCK / short)) for side in picture.size)
        pixels = np.asarray(picture.resize((width, height), pillow().Resampling.BOX))
        rows, columns = height // BLOCK, width // BLOCK
        whole = pixels[: rows * BLOCK, : columns * BLOCK]
        split = whole.reshape(rows, BLOCK, columns, BLOCK, 3).swapaxes(1, 2)
        found.append(split.reshape(-1, BLOCK, BLOCK, 3))
    return np.concatenate(found)


def picture_paths(folder: Path) -> Iterator[Path]:
    """Files below a folder that are named as pictures, in the order of their names, without hidden ones."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(path) / name

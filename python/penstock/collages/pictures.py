"""Pictures, as Pillow has them."""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import Error

BLOCK = 32
"""Pixels along a side of a block."""
MOST_ELONGATED = 64
"""Of a picture that is cut: its longer side over its shorter one."""
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
    """A picture in RGB, upright, the first frame of an animated one. What is transparent lies on white.

    Raises:
        penstock.Error: One sentence for what is no picture or cannot be read.
    """
    image = pillow()
    from PIL import ImageOps

    if _is_special(Path(path)):  # a pipe would be waited for
        raise Error(f"open {printable(path)}: it is no file: name a PNG, JPEG or WebP file", errno.ENODEV)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of details, such as EXIF, and of many pixels
            with image.open(path) as opened:
                return in_rgb(ImageOps.exif_transpose(opened))
    except image.DecompressionBombError as error:
        limit = f"it has more than {2 * image.MAX_IMAGE_PIXELS:,} pixels"
        raise Error(f"open {printable(path)}: {limit}: make it smaller", 0) from error
    except Exception as error:  # Pillow's decoders raise many kinds
        number = error.errno if isinstance(error, OSError) and error.errno else 0
        reason = os.strerror(number) if number else "it is no picture that Pillow reads, or it is damaged"
        raise Error(f"open {printable(path)}: {reason}: name a PNG, JPEG or WebP file", number) from error


def printable(path: str | os.PathLike[str]) -> str:
    """The name of a file on one line, in characters that every terminal takes."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)


def in_rgb(picture: Any) -> Any:
    """A PIL image in RGB, what is transparent on white, 16 bits as the upper 8."""
    if picture.mode.startswith("I"):
        values = np.asarray(picture).astype(np.int64) >> 8
        picture = pillow().fromarray(values.clip(0, 255).astype(np.uint8))
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    return pillow().alpha_composite(pillow().new("RGBA", layer.size, "white"), layer).convert("RGB")


def blocks_of(picture: Any) -> Pixels:
    """The pixels of a picture, enlarged to whole blocks: shape (rows, columns, 3), multiples of BLOCK."""
    width, height = (-(-side // BLOCK) * BLOCK for side in picture.size)
    if (width, height) != picture.size:
        picture = picture.resize((width, height), pillow().Resampling.BICUBIC)
    return np.asarray(picture)


def tiles_of(picture: Any, scales: tuple[int, ...]) -> Pixels:
    """Crops of a picture, shape (n, BLOCK, BLOCK, 3).

    For each scale s all whole blocks of the picture, resized so that its shorter side has s blocks.

    Raises:
        penstock.Error: For a picture that would become a long row of equal blocks.
    """
    if max(picture.size) > MOST_ELONGATED * min(picture.size):
        width, height = picture.size
        limit = f"its longer side is more than {MOST_ELONGATED} times its shorter one"
        raise Error(f"cut {width} x {height} pixels: {limit}: crop it", 0)
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


def picture_paths(folder: Path, unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    """Files below a folder that are named as pictures, in the order of their names, without hidden ones.

    Pipes, devices and links to folders are left out; `unreadable` gets the errors of folders.
    """
    for path, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                found = Path(path) / name
                if not _is_special(found):
                    yield found


def _is_special(path: Path) -> bool:
    """Whether it is no file; where that is unknown, `open_picture` reports why."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False

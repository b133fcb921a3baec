"""Arrays to try things on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penstock.callbacks import Progress
from penstock.sizes import format_bytes

DTYPES = ("float64", "float32", "int64", "int32", "uint64", "uint32")
DATA_OFFSET = 4096  # of a header: lines of up to 4 KiB then start where lines of the file do
PIECE_BYTES = 8 << 20
WIDTH = 1024


def generate_array(
    path: str | os.PathLike[str],
    size: int,
    *,
    dtype: str = "float64",
    width: int | None = None,
    raw: bool = False,
    seed: int = 1,
    progress: Progress | None = None,
) -> None:
    """Write `size` bytes of random numbers: .npy, or with `raw` without a header.

    width: columns of a matrix; None: one dimension. Less than a whole row is left out.
    Floating point lies in [0, 1); integers have three digits. The same arguments make the same file.
    Raises ValueError where the file exists or nothing would be in it. A file appears when it is whole.
    """
    target = Path(path)
    if dtype not in DTYPES:
        raise ValueError(
            f"generate {target}: dtype {dtype} is not supported: choose one of {', '.join(DTYPES)}"
        )
    kind = np.dtype(dtype)
    shape = _shape(target, size // kind.itemsize, width, kind)
    if target.exists():
        raise ValueError(
            f"generate {target}: it exists: leave --generate out to use it, or name another file"
        )
    count = int(np.prod(shape, dtype=np.int64))
    free = shutil.disk_usage(target.absolute().parent).free if target.absolute().parent.is_dir() else None
    nbytes = count * kind.itemsize
    if free is not None and nbytes > free:
        raise ValueError(
            f"generate {target}: it takes {format_bytes(nbytes)}, and {format_bytes(free)} are free: ask for "
            "less, or name a file on another device"
        )
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    random = np.random.default_rng(seed)
    try:
        with draft.open("xb") as file:
            if not raw:
                file.write(_header(kind, shape))
            for done in range(0, count, PIECE_BYTES // kind.itemsize):
                if progress is not None:
                    progress(f"generating {target.name}", done, count)
                _draw(random, min(PIECE_BYTES // kind.itemsize, count - done), kind).tofile(file)
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)


def _shape(path: Path, count: int, width: int | None, kind: np.dtype[np.generic]) -> tuple[int, ...]:
    shape = (count,) if width is None else (count // width if width > 0 else 0, width)
    if 0 in shape:
        what = f"{kind}" if width is None else f"row of {width} {kind}"
        raise ValueError(f"generate {path}: so few bytes hold no {what}: ask for more")
    return shape


def _draw(random: np.random.Generator, count: int, kind: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    if kind.kind == "f":
        return random.random(count, dtype=np.float64 if kind.itemsize == 8 else np.float32)
    return random.integers(0 if kind.kind == "u" else -999, 1000, count).astype(kind)


def _header(kind: np.dtype[np.generic], shape: tuple[int, ...]) -> bytes:
    """Of a .npy file of version 1, padded with spaces."""
    fields = f"{{'descr': '{kind.str}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    start = b"\x93NUMPY\x01\x00" + (DATA_OFFSET - 10).to_bytes(2, "little")
    return start + fields.ljust(DATA_OFFSET - 11) + b"\n"

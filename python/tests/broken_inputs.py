"""Files of every format that arrays lie in, how they get damaged, and what an error about one looks like."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock

TYPES = (
    ValueError, TypeError, MemoryError, FileNotFoundError, FileExistsError, IsADirectoryError,
    NotADirectoryError, PermissionError, penstock.Error,
)  # fmt: skip
SECOND_SENTENCE = re.compile(r"[.!?]\s+[A-Z]")
MAX_BYTES = 420  # of a sentence, without the path

Maker = Callable[[Path], tuple[Path, dict[str, Any]]]


def numbers() -> np.ndarray[Any, Any]:
    return np.arange(1200, dtype=np.float32).reshape(300, 4)


def check_sentence(problem: BaseException, path: str, operation: str = "open") -> None:
    """One sentence in one line: operation, the user's own path, what is wrong, what to do."""
    text = str(problem)
    assert type(problem) in TYPES, f"{type(problem)}: {text}"
    assert text.isprintable(), repr(text)
    begin = f"{operation} {path}: "
    assert text.startswith(begin), text
    rest = text[len(begin) :]
    assert len(rest) <= MAX_BYTES, f"{len(rest)} characters: {text}"
    assert SECOND_SENTENCE.search(rest) is None, text
    assert re.search(r"[:;] \S", rest), f"it does not say what to do: {text}"
    assert not rest.removesuffix("...").endswith((".", ":", " ", ",")) or rest.endswith(", ..."), text
    assert "std::" not in rest, text
    assert "Traceback" not in rest, text


def _npy(folder: Path) -> tuple[Path, dict[str, Any]]:
    np.save(folder / "a.npy", numbers())
    return folder / "a.npy", {}


def _npz(folder: Path) -> tuple[Path, dict[str, Any]]:
    np.savez(folder / "a.npz", one=numbers(), two=np.arange(9))
    return folder / "a.npz", {"name": "one"}


def _npz_packed(folder: Path) -> tuple[Path, dict[str, Any]]:
    np.savez_compressed(folder / "p.npz", one=numbers())
    return folder / "p.npz", {}


def _raw(folder: Path) -> tuple[Path, dict[str, Any]]:
    numbers().tofile(folder / "a.bin")
    return folder / "a.bin", {"dtype": "float32", "shape": (300, 4)}


def _safetensors(folder: Path) -> tuple[Path, dict[str, Any]]:
    from safetensors.numpy import save_file

    save_file({"one": numbers(), "two": np.arange(9)}, folder / "a.safetensors")
    return folder / "a.safetensors", {"name": "one"}


def _index(folder: Path) -> tuple[Path, dict[str, Any]]:
    from safetensors.numpy import save_file

    save_file({"one": numbers()}, folder / "model-00001.safetensors")
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": {"one": "model-00001.safetensors"}}))
    return path, {"name": "one"}


def arrow(path: Path, *, stream: bool = False, compression: str | None = None, batches: int = 1) -> None:
    import pyarrow as pa

    rows = numbers()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 4)
    table = pa.table({"n": np.arange(300), "v": lists, "s": ["x"] * 300})
    how = pa.ipc.IpcWriteOptions(compression=compression)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema, options=how) as writer:
        writer.write_table(table, max_chunksize=300 // batches)


def _arrow_maker(name: str, **options: Any) -> Maker:
    def make(folder: Path) -> tuple[Path, dict[str, Any]]:
        arrow(folder / name, **options)
        return folder / name, {"name": "v"}

    return make


def _parquet(folder: Path) -> tuple[Path, dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"n": numbers().ravel()}), folder / "a.parquet")
    return folder / "a.parquet", {"name": "n"}


def _hdf5_maker(name: str, **options: Any) -> Maker:
    def make(folder: Path) -> tuple[Path, dict[str, Any]]:
        import h5py

        with h5py.File(folder / name, "w") as file:
            file.create_dataset("group/v", data=numbers(), **options)
        return folder / name, {"name": "group/v"}

    return make


def _zarr_maker(name: str, **options: Any) -> Maker:
    def make(folder: Path) -> tuple[Path, dict[str, Any]]:
        import zarr

        shutil.rmtree(folder / name, ignore_errors=True)
        array = zarr.create_array(folder / name, shape=(300, 4), dtype="f4", **options)
        array[:] = numbers()
        return folder / name, {}

    return make


MAKERS: dict[str, tuple[str | None, Maker]] = {
    "npy": (None, _npy),
    "npz": (None, _npz),
    "npz-packed": (None, _npz_packed),
    "raw": (None, _raw),
    "safetensors": ("safetensors", _safetensors),
    "index": ("safetensors", _index),
    "arrow": ("pyarrow", _arrow_maker("a.arrow")),
    "arrow-batches": ("pyarrow", _arrow_maker("b.arrow", batches=3)),
    "arrow-zstd": ("pyarrow", _arrow_maker("z.feather", compression="zstd")),
    "stream": ("pyarrow", _arrow_maker("a.arrows", stream=True)),
    "stream-lz4": ("pyarrow", _arrow_maker("z.arrows", stream=True, compression="lz4", batches=3)),
    "parquet": ("pyarrow", _parquet),
    "hdf5": ("h5py", _hdf5_maker("a.h5")),
    "hdf5-chunks": ("h5py", _hdf5_maker("c.h5", chunks=(100, 4))),
    "hdf5-gzip": ("h5py", _hdf5_maker("z.h5", chunks=(100, 4), compression="gzip")),
    "zarr": ("zarr", _zarr_maker("a.zarr", chunks=(300, 4), compressors=None)),
    "zarr-packed": ("zarr", _zarr_maker("z.zarr", chunks=(100, 4))),
    "zarr-2": ("zarr", _zarr_maker("b.zarr", chunks=(300, 4), compressors=None, zarr_format=2)),
}
"""What each needs, and how it is written: the file, and what `open` takes besides."""

_ABSURD = (
    b"0", b"-1", b"4294967296", b"18446744073709551616", b"1e400", b"NaN", b"null", b"[]", b"{}", b"\"\"",
    b"true", b"'", b"\"\\ud800\"", b"9" * 5000, b"[" * 3000,
)  # fmt: skip


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content of a file after one to three accidents; most are near its ends, where headers are."""
    for _ in range(chance.randint(1, 3)):
        content = chance.choice((_cut, _flipped, _overwritten, _inserted, _renumbered))(content, chance)
    return content


def _place(content: bytes, chance: random.Random) -> int:
    near = min(len(content), 300)
    where = chance.random()
    if where < 0.5:
        return chance.randint(0, near)
    return len(content) - chance.randint(0, near) if where < 0.8 else chance.randint(0, len(content))


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        if changed:
            changed[min(_place(content, chance), len(changed) - 1)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _overwritten(content: bytes, chance: random.Random) -> bytes:
    at, count = _place(content, chance), chance.choice((1, 4, 8, 40))
    filled = chance.choice((bytes(count), b"\xff" * count, chance.randbytes(count)))
    return content[:at] + filled + content[at + count :]


def _inserted(content: bytes, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + chance.randbytes(chance.choice((1, 8, 64))) + content[at:]


def _renumbered(content: bytes, chance: random.Random) -> bytes:
    """A number, or a word, of a textual header, in another's place."""
    found = list(re.finditer(rb"\d+|\"[\w./-]+\"|'[\w<>|]+'", content[:4096]))
    if not found:
        return content
    word = chance.choice(found)
    return content[: word.start()] + chance.choice(_ABSURD) + content[word.end() :]

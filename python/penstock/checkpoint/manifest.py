"""Where the checkpoints of a folder are, and what the manifest of one says of its files."""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.nn.generations import Mark, is_mark

_NAME = re.compile(r"checkpoint-(\d{8,})")
STATE = "state.pt"
_VERSION = 2


@dataclass(frozen=True)
class Written:
    """What a manifest says of the bytes of a file."""

    nbytes: int
    crc32: int | None  # None: they were not read when they were saved


@dataclass(frozen=True)
class Saved:
    """What a manifest says of one file of numbers."""

    table: str  # the module's name in the model
    kept: str | None  # of an optimizer, its name in states; None: the table itself
    optimizer: str | None
    file: str
    shape: tuple[int, ...]
    dtype: str
    generation: Mark | None
    written: Written = Written(0, None)  # not yet


@dataclass(frozen=True)
class Manifest:
    state: Written
    parts: list[Saved]


# Where checkpoints are


def numbers(folder: str | os.PathLike[str]) -> list[int]:
    """The checkpoints in a folder, oldest first; none where there is no such folder."""
    where = Path(os.fsdecode(folder))
    if not where.is_dir():
        return []
    found = [_NAME.fullmatch(path.name) for path in where.iterdir() if path.is_dir()]
    return sorted(int(match[1]) for match in found if match)


def path_of(folder: Path, number: int) -> Path:
    return folder / f"checkpoint-{number:08}"


# The file


def write_manifest(checkpoint: Path, manifest: Manifest) -> None:
    """Writes it, and puts it on the device for good."""
    parts = [asdict(part) for part in manifest.parts]
    content = {"version": _VERSION, "state": asdict(manifest.state), "parts": parts}
    with (checkpoint / "manifest.json").open("w") as file:
        json.dump({**content, "crc32": _checksum_of_json(content)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def read_manifest(checkpoint: Path) -> Manifest:
    path = checkpoint / "manifest.json"
    try:
        content = json.loads(path.read_bytes())
        known = content.pop("crc32") == _checksum_of_json(content) and content["version"] == _VERSION
        parts = [_part(one) for one in content["parts"]] if known else []
        manifest = Manifest(Written(**content["state"]), parts)
    except FileNotFoundError:
        raise missing(checkpoint, path.name) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        known = False
    if not known or not all(_is_sound(part) for part in manifest.parts):
        raise ValueError(
            f"load {path}: it is no manifest of this version of Penstock, or was damaged: load another "
            "checkpoint, by its number"
        )
    return manifest


def _part(given: dict[str, Any]) -> Saved:
    known = {"shape": tuple(given["shape"]), "written": Written(**given["written"])}
    return Saved(**{**given, **known})


def missing(checkpoint: Path, name: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"load {checkpoint / name}: it is missing, and the checkpoint is not whole: load another, by its "
        "number"
    )


def _is_sound(part: Saved) -> bool:
    plain = re.fullmatch(r"\d+\.npy", part.file) is not None
    return plain and (part.generation is None or is_mark(part.generation))


def _checksum_of_json(content: dict[str, Any]) -> int:
    """Of all that it says, however it is written."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())

"""What lies on a volume, by what users call it: volume:NAME@MEMBER,MEMBER, or volume:NAME/FILE@MEMBER,..."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.native import load_native

if TYPE_CHECKING:
    from penstock._native import VolumeFile

VOLUME = "volume:"
FIXED = "what is on a volume stays as it was imported: export it to store into it"


def is_volume(name: str) -> bool:
    return name.startswith(VOLUME)


def entry_of(name: str) -> str:
    return name.removeprefix(VOLUME).partition("@")[0].partition("/")[0]


def members_of(name: str) -> list[str]:
    return name.partition("@")[2].split(",")


def absolute(path: str) -> str:
    """The same from any folder: of a file its whole path, of a name on a volume with those of its members.

    Raises ValueError for a name that lacks a part.
    """
    return load_native().volume_absolute(path) if is_volume(path) else str(Path(path).absolute())


def file_in(name: str, file: str) -> str:
    """What a file of the folder `name` on a volume is called."""
    entry, at, members = name.partition("@")
    return f"{entry}/{file}{at}{members}"


def open_files(name: str) -> dict[str, VolumeFile]:
    """The files of what lies on a volume, by their names in its folder; an empty one of what is one file.

    They keep the volume open, which nobody can change meanwhile. Raises ValueError for a name that the volume
    has not, and members that are not those of one volume; penstock.Error for what cannot be read.
    """
    files: dict[str, VolumeFile] = load_native().volume_open([name])[0]
    return files


def open_file(name: str) -> VolumeFile:
    """One file. Raises as open_files, and ValueError for a folder."""
    return open_each([name])[name]


def open_each(names: Sequence[str]) -> dict[str, VolumeFile]:
    """Of files their names and them; those of one volume share it. Raises as open_file."""
    return {
        name: _only(name, files)
        for name, files in zip(names, load_native().volume_open(list(names)), strict=True)
    }


def _only(name: str, files: dict[str, VolumeFile]) -> VolumeFile:
    if "" not in files:
        some = next(iter(files))
        raise ValueError(
            f"open {name}: it is a folder of {len(files)} files: name one, such as {file_in(name, some)}"
        )
    return files[""]

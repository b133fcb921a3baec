"""Formats of graph files by their names, and what else a user may call a graph."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Error

from .unpacking import READERS

NATIVE = ("el", "wel", "gr", "graph", "sg", "wsg", "bel", "bcsr", "bwcsr")
TABLES = ("parquet", "csv", "tsv")
FORMATS = (*NATIVE, "mtx", "npz", *TABLES)
SUFFIXES = {
    **{f".{name}": name for name in FORMATS},
    ".txt": "el",
    ".edgelist": "el",
    ".pq": "parquet",
}
"""What the ends of names say. Those of PACKABLE may be packed besides."""
PACKABLE = tuple(name for name in FORMATS if name not in ("bel", "parquet", "npz"))
UNPACKED_FIRST = tuple(name for name in NATIVE if name != "bel")
"""Of these, those whose readers do not unpack by themselves."""
FAMILY = (".bel.col", ".bel.dst", ".bel.val")
"""One graph in several files: any of them, or what their names have in common, is its name."""

GENERATORS = ("kron:", "urand:", "social:")

REMEDY = (
    f"give a graph folder, volume:NAME@MEMBERS, a file ({', '.join(SUFFIXES)}; .el.gz and the like), "
    "a folder or a pattern of parts of a table, "
    f"{', '.join(name + 'SCALE' for name in GENERATORS)} or debian"
)


@dataclass(frozen=True)
class Input:
    """The files of a graph: one, a family, or parts of a table. packed: it is to be unpacked first."""

    kind: str
    files: tuple[Path, ...]
    packed: bool = False


def input_of(path: Path, format: str | None) -> Input:
    """Raises penstock.Error where a file is missing, ValueError where its format is not known."""
    if path.name.lower().endswith(FAMILY):
        path = path.with_suffix("")
    if not os.path.lexists(path) and glob.has_magic(str(path)):
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207, of any root
        return _parts(str(path), found, format)
    kind, packed = kind_of(path.name.lower(), format)
    files = _family(path) if kind == "bel" else [path]
    for file in files:
        if not os.path.lexists(file):
            remedy = "a .bel graph is a .bel.col and a .bel.dst file" if kind == "bel" else REMEDY
            raise Error(f"open {file}: no such file or graph: {remedy}", errno.ENOENT)
    if kind is None and packed:
        raise ValueError(f"open {path}: this kind of file is not read packed like that: unpack it")
    if kind is None:
        raise ValueError(f"open {path}: no known kind of graph file: give its format, or {REMEDY}")
    return Input(kind, tuple(files), packed)


def parts_in(folder: Path, format: str | None) -> Input | None:
    """The parts of a table in a folder, and in folders below it that are called like partitions (year=2024);
    None where there are none. Names that begin with a dot or _ are of what programs that write parts leave
    beside them.
    """
    found = [
        each
        for each in _files_in(folder)
        if format is not None or kind_of(each.name.lower(), None)[0] in TABLES
    ]
    return _parts(str(folder), found, format) if found else None


def _files_in(folder: Path) -> list[Path]:
    found: list[Path] = []
    try:
        inside = sorted(each for each in folder.iterdir() if not each.name.startswith((".", "_")))
    except OSError as error:
        code = error.errno or 0
        sentence = f"open {folder}: {os.strerror(code)}: check the path and its permissions"
        raise Error(sentence, code) from error
    for each in inside:
        if each.is_dir():
            found += _files_in(each) if "=" in each.name else []
        elif each.is_file():
            found.append(each)
    return found


def _parts(called: str, files: Sequence[Path], format: str | None) -> Input:
    files = [file for file in files if not file.is_dir()]
    if not files:
        raise Error(f"open {called}: no file has a name like that: correct the pattern", errno.ENOENT)
    found = [kind_of(file.name.lower(), format) for file in files]
    if len(files) == 1:
        return input_of(files[0], format)
    kinds = {kind for kind, _ in found}
    if len(kinds) > 1 or not kinds <= set(TABLES):
        odd = next(
            f for f, (kind, _) in zip(files, found, strict=True) if kind not in TABLES or kind != found[0][0]
        )
        raise ValueError(
            f"open {called}: {odd}: several files are read together where all are parts of one table "
            f"(all {', '.join('.' + name for name in TABLES)}): name one of them, or give their format"
        )
    return Input(str(found[0][0]), tuple(files))


def kind_of(name: str, format: str | None) -> tuple[str | None, bool]:
    """The format of a file, None where nothing says it, and whether it is to be unpacked first."""
    packed = name.endswith(tuple(READERS))
    inner = name.rpartition(".")[0] if packed else name
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if inner.endswith(s)), "")
    kind = format or SUFFIXES.get(suffix)
    if packed and kind not in PACKABLE:
        return None, True
    return kind, packed and kind in UNPACKED_FIRST


def _family(path: Path) -> list[Path]:
    """The files of X.bel; that of the weights only if there is one."""
    offsets, targets, weights = (path.with_name(path.name + suffix) for suffix in (".col", ".dst", ".val"))
    return [offsets, targets, *([weights] if os.path.lexists(weights) else [])]

"""Plans of the folders of generated graphs, of packages and of files."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from penstock.errors import Error

from . import debian, sparse, tables, text_tables
from ._binding import StepProgress, native
from .kinds import NATIVE, TABLES, Input
from .making import Making, Plan, write_graph
from .reading import ALL, OF_TABLES, Reading
from .unpacking import unpacked

FORMAT = 2
"""Part of the cache key of a generated graph: raised when generation changes, so that old folders are made
again."""
FORMAT_OF_FILES = 3
"""The same of what is converted."""


def plan_generated(text: str, making: Making, weighted: bool) -> Plan:
    name = native.graph_normalise_generator(text)

    def make(target: str) -> None:
        native.graph_generate(target, name, seed=1, weighted=weighted, **making.limits(making.progress))

    return Plan(text, f"{name.replace(':', '-')}{'-weighted' if weighted else ''}-v{FORMAT}", make)


def plan_debian(text: str, making: Making) -> Plan:
    lists = debian.package_lists()
    fields = debian.ALL if text == "debian" else debian.STRONG

    def make(target: str) -> None:
        graph, names = debian.read_debian(lists, fields)
        source = f"{', '.join(fields)} in {', '.join(path.name for path in lists)}"
        write_graph(target, dataclasses.replace(graph, names=names), making, source)

    return Plan(text, f"{text.replace(':', '-')}{making.suffix}-{_key(lists, text, making.reading)}", make)


def plan_files(called: str, given: Input, making: Making) -> Plan:
    kind, files = given.kind, given.files
    family = kind == "bel"
    names = ALL if kind in ("el", "wel", "csv", "tsv") else OF_TABLES if kind == "parquet" else ()
    making.reading.allow(called, names, f".{kind} files")
    name = str(files[0].with_suffix("")) if family else called

    def make(target: str) -> None:
        if kind not in NATIVE:
            write_graph(target, _read(called, given, making.reading), making, called)
        elif given.packed:
            sparse.check_readable(str(files[0]))
            named = _with_columns(making, kind, called, files[0])
            with unpacked(files[0], Path(target).absolute().parent, making.progress) as (plain, progress):
                _convert(target, plain, kind, name, named, progress)
        else:
            named = _with_columns(making, kind, called, files[0])
            _convert(target, name if family else str(files[0]), kind, name, named, making.progress)

    stem = re.sub(r"[^A-Za-z0-9._-]", "_", Path(name).name or "parts")[:100].lstrip(".")
    return Plan(called, f"{stem}{making.suffix}-{_key(files, kind, making.reading)}", make)


def _with_columns(making: Making, kind: str, called: str, file: Path) -> Making:
    """With the columns that the header of a list of edges names, where the user names none."""
    reading = making.reading
    if kind not in ("el", "wel") or not reading.header or reading.columns:
        return making
    sparse.check_readable(str(file))
    places = text_tables.places_by_header(called, str(file), reading.delimiter)
    return dataclasses.replace(making, reading=dataclasses.replace(reading, columns=tuple(places)))


def _convert(
    target: str, file: str, kind: str, name: str, making: Making, progress: StepProgress | None
) -> None:
    reading = making.reading
    renumber = "sparse" if reading.renumber is None else "always" if reading.renumber else "never"
    remark = native.graph_convert(
        target, file, format=kind, name=name, undirected=making.undirected, simple=making.simple,
        columns=[str(column) for column in reading.columns], separator=reading.delimiter or "",
        header=bool(reading.header), first_id=reading.first_id or 0, renumber=renumber,
        **making.limits(progress),
    )  # fmt: skip
    if remark:
        warnings.warn(remark, stacklevel=2)


def _read(called: str, given: Input, reading: Reading) -> sparse.CoordinateGraph:
    paths = [str(file) for file in given.files]
    if given.kind == "parquet":
        return tables.read_parquet(called, paths, reading)
    if given.kind in TABLES:
        delimiter = reading.delimiter or ("\t" if given.kind == "tsv" else ",")
        return text_tables.read_text(called, paths, delimiter, reading)
    return sparse.read_npz(paths[0]) if given.kind == "npz" else sparse.read_mtx(paths[0])


def _key(paths: Iterable[Path], kind: str, reading: Reading) -> str:
    """Changes when one of the files does, and with what they are taken for and how they are read.

    Raises penstock.Error when one cannot be looked at.
    """
    digest = hashlib.sha256(f"format {FORMAT_OF_FILES} {kind} {reading.key}".encode())
    for path in paths:
        try:
            about = path.stat()
        except OSError as error:
            code = error.errno or 0
            sentence = f"open {path}: {os.strerror(code)}: check the path and its permissions"
            raise Error(sentence, code) from error
        # What copies keep of times, they do not keep of these.
        state = f"\0{about.st_size}\0{about.st_mtime_ns}\0{about.st_ctime_ns}\0{about.st_ino}\0"
        digest.update(os.fsencode(path.resolve()) + state.encode())
    return digest.hexdigest()[:16]

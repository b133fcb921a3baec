"""What a user calls a graph, turned into a folder: opened as it is, or made once and kept in a cache."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from penstock.checks import checked_count
from penstock.errors import Error

from . import debian, kinds, memory, sparse, tables, text_tables
from ._binding import StepProgress, native
from .folder import VOLUME, GraphFolder, build_folder, memory_limit, open_folder
from .kinds import FORMATS, GENERATORS, NATIVE, REMEDY, TABLES, Input
from .notices import announce
from .reading import ALL, OF_TABLES, Columns, Reading, checked_reading
from .unpacking import unpacked

FORMAT = 2
"""Part of the cache key of a generated graph: raised when generation changes, so that old folders are made
again."""
FORMAT_OF_FILES = 3
"""The same of what is converted."""


@dataclass(frozen=True)
class _Making:
    """How a folder is made."""

    threads: int
    memory: int
    progress: StepProgress | None
    undirected: bool
    simple: bool
    reading: Reading
    of: str = ""
    """What errors say is converted, where the folder is the cache's."""

    def limits(self, progress: StepProgress | None) -> _Limits:
        return _Limits(threads=self.threads, memory=self.memory, of=self.of, progress=progress)

    @property
    def suffix(self) -> str:
        """Of a name in the cache: what is not as it is without options."""
        return f"{'-undirected' if self.undirected else ''}{'-simple' if self.simple else ''}"


class _Limits(TypedDict):
    """What all functions of the compiled part take."""

    threads: int
    memory: int
    of: str
    progress: StepProgress | None


@dataclass(frozen=True)
class _Plan:
    """How a folder is made of what a user named, and what it is called in the cache. Of a graph in memory,
    name is
    empty: its folder goes with it."""

    called: str
    name: str
    make: Callable[[str], object]
    labels: tuple[Hashable, ...] | None = None


def default_cache_dir() -> Path:
    """$PENSTOCK_CACHE if it is set, else ~/.cache/penstock/graphs ($XDG_CACHE_HOME is respected)."""
    if chosen := os.environ.get("PENSTOCK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "graphs"


GraphLike = Any
"""What resolve() takes: text or a path; a GraphFolder; or a graph in memory."""


def resolve(
    spec: GraphLike,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: StepProgress | None = None,
    threads: int | None = None,
    weighted: bool = False,
    undirected: bool = False,
    simple: bool = False,
    format: str | None = None,
    columns: Columns = None,
    delimiter: str | None = None,
    header: bool | None = None,
    first_id: int | None = None,
    renumber: bool | None = None,
    memory: int | str | None = None,
) -> GraphFolder:
    """Find or make the graph folder for `spec`.

    spec: a graph folder, or one that is open; volume:NAME@MEMBER,... for a graph on a volume; a file whose
        name says its format (docs/GRAPHS.md has them all, and what is in each), or a folder or a pattern such
        as "part-*.parquet" of parts of a table; kron:SCALE[:DEGREE], urand:SCALE[:DEGREE] or
        social:SCALE[:DEGREE]; debian, or debian:depends without Recommends and Suggests. Or a graph in
        memory: an edge_index (NumPy array or tensor of integers, shape (2, edges), or a pair of arrays; a
        third one has weights), a PyG Data, a sparse matrix of SciPy, a graph of NetworkX, a DataFrame
        (pandas, polars, pyarrow, ...). Its folder lies in `cache_dir` as long as the result does.
    cache_dir: where made folders are kept; default_cache_dir() unless given.
    progress: called with (done, total); what it raises, and Ctrl-C, stop the work and leave nothing behind.
    threads: for the conversion; 0 or None: all processors. The result does not depend on it.
    weighted: give generated graphs weights. Files keep the weights that they have.
    undirected: take each edge both ways, and of equal ones one, that with the least weight.
    simple: drop loops, and of equal edges all but the one with the least weight.
    format: of a file, whatever its name ends in: "el", "wel", "gr", "graph" (METIS), "mtx", "npz", "sg",
        "wsg", "bel", "bcsr", "bwcsr", "parquet", "csv" or "tsv".
    columns: which columns are source, target and perhaps weight: names, or numbers from 0, in a sequence or
        as text "src,dst,cost". Of tables and DataFrames, and of .el, .txt and .wel files, whose lines may
        have more fields then. Unless given, columns are taken by names that say what they are, else by place;
        what is not known is refused. Indexes and columns without names are not taken unless they are named
        here.
    delimiter: the character between fields of text: "," (.csv), tab (.tsv), blanks (.el, .wel) unless given.
    header: whether the first line of text names the columns. Unless given, a table's first line is one where
        it has names of ends or other lines have numbers where it has none; .el and .wel files have none.
    first_id: 0 or 1, the id of vertex 0: integer ids are numbers from there.
    renumber: whether vertices are only the ids that there are, numbered in ascending order, with their ids as
        names. Unless given, so in tables, and in .el and .wel files where the range of ids is more than 1024
        and than eight times the number of edges. False: all integers up to the highest id are vertices.
    memory: limit of what making the graph takes, in bytes or as "2GiB": 8 bytes for each vertex (16 from a
        binary file), 8 MiB for each thread, and the more edges the rest holds, 8 bytes each, 12 with a
        weight, the less often all are gone over. Unless given an eighth of the free memory is for edges.
        Tables, .mtx, .npz and debian are held whole besides that.
    Raises ValueError for what cannot be a graph, TypeError for what is none of these, penstock.Error when the
    machine refuses (FileNotFoundError, PermissionError); one sentence each. What was taken as what is in the
    result's `reading`, and logged ("penstock.graph", INFO).
    """
    reading = checked_reading(columns, delimiter, header, first_id, renumber)
    making = _making(threads, memory, progress, undirected, simple, reading)
    found = _found_or_planned(spec, dataclasses.replace(making, of=_called(spec)), weighted, format)
    if isinstance(found, GraphFolder):
        if simple or (undirected and found.directed):
            raise ValueError(
                f"open {found.path}: a graph that is converted already is taken as it is: make another one "
                f"of it (penstock graph convert), or leave undirected and simple out"
            )
        return found
    return _cached(_cache(cache_dir), found)


def _cache(given: str | os.PathLike[str] | None) -> Path:
    if given is not None and not os.fspath(given):
        raise ValueError("cache_dir '': it has no name: name a folder, or leave it out")
    return default_cache_dir() if given is None else Path(given)


def convert(
    spec: GraphLike,
    folder: str | os.PathLike[str],
    *,
    progress: StepProgress | None = None,
    threads: int | None = None,
    weighted: bool = False,
    undirected: bool = False,
    simple: bool = False,
    format: str | None = None,
    columns: Columns = None,
    delimiter: str | None = None,
    header: bool | None = None,
    first_id: int | None = None,
    renumber: bool | None = None,
    memory: int | str | None = None,
) -> GraphFolder:
    """Make the graph folder `folder`, all at once or not at all, of what resolve() takes; also of another
    folder, whose names and weights it keeps. Parameters and errors: those of resolve(); ValueError also when
    `folder` exists.
    """
    reading = checked_reading(columns, delimiter, header, first_id, renumber)
    making = _making(threads, memory, progress, undirected, simple, reading)
    called = _called(spec)
    if weighted and not called.startswith(GENERATORS):
        raise ValueError(
            f"convert {called}: weights are drawn for generated graphs alone: leave weighted out"
        )
    target = os.fspath(folder)
    if not target:
        raise ValueError(f"convert {called}: there is no name for the folder: give one")
    found = _found_or_planned(spec, making, weighted, format)
    if isinstance(found, GraphFolder):
        if found.on_volume:
            raise ValueError(f"convert {found.path}: it lies on a volume: export it (penstock volume export)")
        native.graph_convert(
            target, str(found.path), format="folder", undirected=undirected, simple=simple,
            **making.limits(progress),
        )  # fmt: skip
    else:
        found.make(target)
    made = dataclasses.replace(
        open_folder(target), labels=None if isinstance(found, GraphFolder) else found.labels
    )
    announce(called, made)
    return made


def _called(spec: GraphLike) -> str:
    if isinstance(spec, GraphFolder):
        return spec.called or str(spec.path)
    return (
        str(spec)
        if isinstance(spec, (str, bytes, os.PathLike))
        else memory.name_of(spec) or type(spec).__name__
    )


def _making(
    threads: int | None,
    memory: int | str | None,
    progress: StepProgress | None,
    undirected: bool,
    simple: bool,
    reading: Reading,
) -> _Making:
    count = 0 if threads is None else checked_count("threads", threads, 0)
    return _Making(count, memory_limit(memory), progress, undirected, simple, reading)


def _found_or_planned(
    spec: GraphLike, making: _Making, weighted: bool, format: str | None
) -> GraphFolder | _Plan:
    if isinstance(spec, GraphFolder):
        _check_no_file(making.reading, str(spec.path), format)
        return spec
    if not isinstance(spec, (str, bytes, os.PathLike)):
        return _in_memory(spec, making, format)
    text = os.fspath(spec)
    if isinstance(text, bytes):
        raise TypeError(f"open {text!r}: bytes are no path here: give text")
    _check_utf8(text)
    if format is not None and format not in FORMATS:
        raise ValueError(
            f"open {text}: format {format!r}: there is no such: choose one of {', '.join(FORMATS)}"
        )
    generated, packages = text.startswith(GENERATORS), text in ("debian", "debian:depends")
    if generated or packages or text.startswith(VOLUME):
        _check_no_file(making.reading, text, format)
    if generated:
        return _generated(text, making, weighted)
    if packages:
        return _debian(text, making)
    if text.startswith(VOLUME):
        return dataclasses.replace(open_folder(text), called=text)
    if not text:
        raise _no_folder("''")
    path = Path(text)
    try:
        inside = path.is_dir()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise Error(f"open {text}: {error.strerror}: check the path", error.errno or 0) from error
    return _of_folder(path, making, format) if inside else _converted(path, making, format)


def _check_no_file(reading: Reading, called: str, format: str | None) -> None:
    if format is not None:
        raise ValueError(f"open {called}: it is no file, so it has no format: leave format out")
    reading.allow(called, (), "what is no file")


def _in_memory(given: Any, making: _Making, format: str | None) -> _Plan:
    called = memory.name_of(given)
    if called is None:
        raise TypeError(
            f"open {type(given).__name__}: it is no graph: give a path, a graph that is open, an edge_index "
            "of shape (2, edges), a sparse matrix, a graph of NetworkX or a DataFrame"
        )
    if format is not None:
        raise ValueError(f"open {called}: it is no file, so it has no format: leave format out")
    graph, labels = memory.graph_of(given, called, making.reading)
    return _Plan(called, "", lambda target: _write(target, graph, making, called), labels)


def _of_folder(path: Path, making: _Making, format: str | None) -> GraphFolder | _Plan:
    """A graph folder, or one with parts of a table."""
    if not os.path.lexists(path / "graph.json") and (format is None or format in TABLES):
        parts = kinds.parts_in(path, format)
        if parts is not None:
            return _from_files(str(path), parts, making)
    _check_no_file(making.reading, str(path), format)
    return dataclasses.replace(_opened(path), called=str(path))


def _check_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"open {os.fsencode(text)!r}: its name is no UTF-8: rename it") from None
    if "\0" in text or (not text.isprintable() and not os.path.lexists(text)):
        raise Error(f"open {text!r}: there is no such file: correct its name", errno.ENOENT)


def _opened(path: Path) -> GraphFolder:
    try:
        return open_folder(path)
    except Error as error:
        if error.errno != errno.ENOENT or os.path.lexists(path / "graph.json"):
            raise
        raise _no_folder(str(path)) from error


def _no_folder(name: str) -> Error:
    sentence = f"open {name}: no graph folder (there is no graph.json in it): {REMEDY}"
    return Error(sentence, errno.ENOENT)


def _generated(text: str, making: _Making, weighted: bool) -> _Plan:
    name = native.graph_normalise_generator(text)

    def make(target: str) -> None:
        native.graph_generate(target, name, seed=1, weighted=weighted, **making.limits(making.progress))

    return _Plan(text, f"{name.replace(':', '-')}{'-weighted' if weighted else ''}-v{FORMAT}", make)


def _debian(text: str, making: _Making) -> _Plan:
    lists = debian.package_lists()
    fields = debian.ALL if text == "debian" else debian.STRONG

    def make(target: str) -> None:
        graph, names = debian.read_debian(lists, fields)
        source = f"{', '.join(fields)} in {', '.join(path.name for path in lists)}"
        _write(target, dataclasses.replace(graph, names=names), making, source)

    return _Plan(text, f"{text.replace(':', '-')}{making.suffix}-{_key(lists, text, making.reading)}", make)


def _converted(path: Path, making: _Making, format: str | None) -> _Plan:
    return _from_files(str(path), kinds.input_of(path, format), making)


def _from_files(called: str, given: Input, making: _Making) -> _Plan:
    kind, files = given.kind, given.files
    family = kind == "bel"
    names = ALL if kind in ("el", "wel", "csv", "tsv") else OF_TABLES if kind == "parquet" else ()
    making.reading.allow(called, names, f".{kind} files")
    name = str(files[0].with_suffix("")) if family else called

    def make(target: str) -> None:
        if kind not in NATIVE:
            _write(target, _read(called, given, making.reading), making, called)
        elif given.packed:
            sparse.check_readable(str(files[0]))
            named = _with_columns(making, kind, called, files[0])
            with unpacked(files[0], Path(target).absolute().parent, making.progress) as (plain, progress):
                _convert(target, plain, kind, name, named, progress)
        else:
            named = _with_columns(making, kind, called, files[0])
            _convert(target, name if family else str(files[0]), kind, name, named, making.progress)

    stem = re.sub(r"[^A-Za-z0-9._-]", "_", Path(name).name or "parts")[:100].lstrip(".")
    return _Plan(called, f"{stem}{making.suffix}-{_key(files, kind, making.reading)}", make)


def _with_columns(making: _Making, kind: str, called: str, file: Path) -> _Making:
    """With the columns that the header of a list of edges names, where the user names none."""
    reading = making.reading
    if kind not in ("el", "wel") or not reading.header or reading.columns:
        return making
    sparse.check_readable(str(file))
    places = text_tables.places_by_header(called, str(file), reading.delimiter)
    return dataclasses.replace(making, reading=dataclasses.replace(reading, columns=tuple(places)))


def _convert(
    target: str, file: str, kind: str, name: str, making: _Making, progress: StepProgress | None
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


def _write(target: str, graph: sparse.CoordinateGraph, making: _Making, source: str) -> None:
    build_folder(
        target,
        graph.vertices,
        graph.from_,
        graph.to,
        weights=graph.weights,
        names=graph.names,
        directed=graph.directed and not making.undirected,
        symmetrise=making.undirected or graph.symmetrise,
        unique=making.undirected,
        simple=making.simple,
        source=source,
        reading=graph.reading,
        **making.limits(making.progress),
    )


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


def _cached(cache: Path, plan: _Plan) -> GraphFolder:
    """Open what is kept, or make it.

    What is there but damaged is ours to replace: the cache holds nothing that cannot be made again.
    """
    if not plan.name:
        place, keeper = memory.keep_in(cache, plan.make)
        made = dataclasses.replace(open_folder(place), called=plan.called, labels=plan.labels, keeper=keeper)
        announce(plan.called, made)
        return made
    kept = cache / plan.name
    if kept.is_dir():
        try:
            return dataclasses.replace(open_folder(kept), called=plan.called)
        except (ValueError, Error) as error:
            if isinstance(error, Error) and error.errno != errno.ENOENT:
                raise
            shutil.rmtree(kept, ignore_errors=True)
    try:
        plan.make(str(kept))
    except ValueError:
        # Another process may have made it between our look and our start.
        if not kept.is_dir():
            raise
    made = dataclasses.replace(open_folder(kept), called=plan.called)
    announce(plan.called, made)
    return made

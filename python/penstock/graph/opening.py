"""What a user calls a graph, turned into a folder: opened as it is, or made once and kept in a cache."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.arguments import reading
from penstock.checks import checked_count
from penstock.errors import Error
from penstock.options import checked, show_options
from penstock.volume.names import is_volume

from . import kinds, memory
from ._binding import StepProgress, native
from .cache import cache_folder, opened_or_made
from .folder import GraphFolder, memory_limit, open_folder
from .kinds import FORMATS, GENERATORS, REMEDY, TABLES
from .making import Making, Plan, write_graph
from .notices import announce
from .options import READING, ResolveOptions
from .plans import plan_debian, plan_files, plan_generated
from .reading import Reading, checked_reading

if TYPE_CHECKING:
    from typing_extensions import Unpack

GraphLike = Any
"""What resolve() takes: text or a path; a GraphFolder; or a graph in memory."""


@show_options(ResolveOptions)
def resolve(
    spec: GraphLike,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: StepProgress | None = None,
    **options: Unpack[ResolveOptions],
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
    given = checked(ResolveOptions, options)
    making = _making(given, progress)
    found = _found_or_planned(
        spec, dataclasses.replace(making, of=_called(spec)), given["weighted"], given["format"]
    )
    if isinstance(found, GraphFolder):
        if making.simple or (making.undirected and found.directed):
            raise ValueError(
                f"open {found.path}: a graph that is converted already is taken as it is: make another one "
                f"of it (penstock graph convert), or leave undirected and simple out"
            )
        return found
    return opened_or_made(cache_folder(cache_dir), found)


@show_options(ResolveOptions)
def convert(
    spec: GraphLike,
    folder: str | os.PathLike[str],
    *,
    progress: StepProgress | None = None,
    **options: Unpack[ResolveOptions],
) -> GraphFolder:
    """Make the graph folder `folder`, all at once or not at all, of what resolve() takes; also of another
    folder, whose names and weights it keeps. Parameters and errors: those of resolve(); ValueError also when
    `folder` exists.
    """
    given = checked(ResolveOptions, options)
    making = _making(given, progress)
    called = _called(spec)
    if given["weighted"] and not called.startswith(GENERATORS):
        raise ValueError(
            f"convert {called}: weights are drawn for generated graphs alone: leave weighted out"
        )
    target = os.fspath(folder)
    if not target:
        raise ValueError(f"convert {called}: there is no name for the folder: give one")
    found = _found_or_planned(spec, making, given["weighted"], given["format"])
    if isinstance(found, GraphFolder):
        if found.on_volume:
            raise ValueError(f"convert {found.path}: it lies on a volume: export it (penstock volume export)")
        native.graph_convert(
            target, str(found.path), format="folder", undirected=making.undirected, simple=making.simple,
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


def _making(given: Mapping[str, Any], progress: StepProgress | None) -> Making:
    threads = 0 if given["threads"] is None else checked_count("threads", given["threads"], 0)
    reading = checked_reading(*(given[name] for name in READING))
    return Making(
        threads, memory_limit(given["memory"]), progress, given["undirected"], given["simple"], reading
    )


def _found_or_planned(
    spec: GraphLike, making: Making, weighted: bool, format: str | None
) -> GraphFolder | Plan:
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
    if generated or packages or is_volume(text):
        _check_no_file(making.reading, text, format)
    if generated:
        return plan_generated(text, making, weighted)
    if packages:
        return plan_debian(text, making)
    if is_volume(text):
        return dataclasses.replace(open_folder(text), called=text)
    if not text:
        raise _no_folder("''")
    path = Path(text)
    try:
        inside = path.is_dir()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise Error(f"open {text}: {error.strerror}: check the path", error.errno or 0) from error
    if inside:
        return _of_folder(path, making, format)
    return plan_files(str(path), kinds.input_of(path, format), making)


def _check_no_file(reading: Reading, called: str, format: str | None) -> None:
    if format is not None:
        raise ValueError(f"open {called}: it is no file, so it has no format: leave format out")
    reading.allow(called, (), "what is no file")


def _in_memory(given: Any, making: Making, format: str | None) -> Plan:
    called = memory.name_of(given)
    if called is None:
        raise TypeError(
            f"open {type(given).__name__}: it is no graph: give a path, a graph that is open, an edge_index "
            "of shape (2, edges), a sparse matrix, a graph of NetworkX or a DataFrame"
        )
    if format is not None:
        raise ValueError(f"open {called}: it is no file, so it has no format: leave format out")
    with reading(f"open {called}", given):
        graph, labels = memory.graph_of(given, called, making.reading)
    return Plan(called, "", lambda target: write_graph(target, graph, making, called), labels)


def _of_folder(path: Path, making: Making, format: str | None) -> GraphFolder | Plan:
    """A graph folder, or one with parts of a table."""
    if not os.path.lexists(path / "graph.json") and (format is None or format in TABLES):
        parts = kinds.parts_in(path, format)
        if parts is not None:
            return plan_files(str(path), parts, making)
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

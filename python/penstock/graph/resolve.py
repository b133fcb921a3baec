"""What a user calls a graph, turned into a folder: opened as it is, or made once and kept in a cache."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypedDict

from penstock.errors import Error

from . import debian, sparse, tables
from ._binding import Progress, native
from .folder import VOLUME, GraphFolder, memory_limit, open_folder, write_folder

FORMAT = 1
"""Part of every cache key: raised when conversion changes, so that old folders are made again."""

NATIVE = (".el", ".wel", ".gr", ".graph", ".sg", ".wsg", ".bel", ".bcsr", ".bwcsr")
TABLES = (".parquet", ".csv", ".csv.gz", ".tsv")
SUFFIXES = (*NATIVE, ".mtx", ".mtx.gz", ".mtx.bz2", ".npz", *TABLES)
FAMILY = (".bel.col", ".bel.dst", ".bel.val")
"""One graph in several files: any of them, or what their names have in common, is its name."""

GENERATORS = ("kron:", "urand:", "social:")

REMEDY = (
    f"give a graph folder, volume:NAME@MEMBERS, a file ({', '.join(SUFFIXES)}), "
    f"{', '.join(name + 'SCALE' for name in GENERATORS)} or debian"
)

Make = Callable[[str], object]


class _Making(TypedDict):
    """How a folder is made, as the compiled part takes it."""

    threads: int
    memory: int
    progress: Progress | None


def default_cache_dir() -> Path:
    """$PENSTOCK_CACHE if it is set, else ~/.cache/penstock/graphs ($XDG_CACHE_HOME is respected)."""
    if chosen := os.environ.get("PENSTOCK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "graphs"


def resolve(
    spec: str | os.PathLike[str],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    weighted: bool = False,
    memory: int | str | None = None,
) -> GraphFolder:
    """Find or make the graph folder for `spec`.

    spec: a graph folder; volume:NAME@MEMBER,... for a graph on a volume; a file whose name ends in one of
        SUFFIXES (docs/GRAPHS.md says what is in each); kron:SCALE[:DEGREE], urand:SCALE[:DEGREE] or
        social:SCALE[:DEGREE]; debian, or debian:depends without Recommends and Suggests.
    cache_dir: where made folders are kept; default_cache_dir() unless given.
    progress: called with (done, total); what it raises, and Ctrl-C, stop the work and leave nothing behind.
    threads: for the conversion; all processors unless given. The result does not depend on it.
    weighted: give generated graphs weights. Files keep the weights that they have.
    memory: limit of what making the graph takes, in bytes or as "2GiB": 8 bytes for each vertex (16 from a
        binary file), 8 MiB for each thread, and the more edges the rest holds, 8 bytes each, 12 with a
        weight, the less often all are gone over. Unless given an eighth of the free memory is for edges.
        Tables, .mtx, .npz and debian are held whole besides that.
    Raises ValueError for what cannot be a graph, penstock.Error when the machine refuses; one sentence each.
    """
    text = os.fspath(spec)
    if threads is not None and threads < 1:
        raise ValueError(f"convert {text}: {threads} threads: give at least 1")
    making = _Making(threads=threads or 0, memory=memory_limit(memory), progress=progress)
    cache = Path(cache_dir) if cache_dir is not None else default_cache_dir()
    if text.startswith(GENERATORS):
        return _generated(text, cache, making, weighted)
    if text in ("debian", "debian:depends"):
        return _debian(text, cache, making)
    if text.startswith(VOLUME):
        return open_folder(text)
    path = Path(text)
    if not text:
        raise _no_folder("''")
    if path.is_dir():
        return _opened(path)
    return _converted(path, cache, making)


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


def _generated(text: str, cache: Path, making: _Making, weighted: bool) -> GraphFolder:
    name = native.graph_normalise_generator(text)
    kept = cache / f"{name.replace(':', '-')}{'-weighted' if weighted else ''}-v{FORMAT}"

    def make(target: str) -> None:
        native.graph_generate(target, name, seed=1, weighted=weighted, **making)

    return _cached(kept, make)


def _debian(text: str, cache: Path, making: _Making) -> GraphFolder:
    lists = debian.package_lists()
    fields = debian.ALL if text == "debian" else debian.STRONG

    def make(target: str) -> None:
        graph, names = debian.read_debian(lists, fields)
        source = f"{', '.join(fields)} in {', '.join(path.name for path in lists)}"
        _write(target, graph, source, names, making)

    return _cached(cache / f"{text.replace(':', '-')}-{_key(lists)}", make)


def _converted(path: Path, cache: Path, making: _Making) -> GraphFolder:
    if path.name.lower().endswith(FAMILY):
        path = path.with_suffix("")
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.name.lower().endswith(s)), None)
    text = str(path)
    files = _family(path) if suffix == ".bel" else [path]
    for file in files:
        if not os.path.lexists(file):
            remedy = "a .bel graph is a .bel.col and a .bel.dst file" if suffix == ".bel" else REMEDY
            raise Error(f"open {file}: no such file or graph: {remedy}", errno.ENOENT)
    if suffix is None:
        raise ValueError(f"open {text}: no known kind of graph file: {REMEDY}")

    def make(target: str) -> None:
        if suffix in NATIVE:
            remark = native.graph_convert(target, text, format=suffix[1:], **making)
            if remark:
                warnings.warn(remark, stacklevel=2)
        elif suffix in TABLES:
            parquet = suffix == ".parquet"
            delimiter = "\t" if suffix == ".tsv" else ","
            table, names = tables.read_parquet(text) if parquet else tables.read_text(text, delimiter)
            _write(target, table, text, names, making)
        else:
            graph = sparse.read_npz(text) if suffix == ".npz" else sparse.read_mtx(text)
            _write(target, graph, text, None, making)

    stem = re.sub(r"[^A-Za-z0-9._-]", "_", path.name)[:100].lstrip(".")
    return _cached(cache / f"{stem}-{_key(files)}", make)


def _family(path: Path) -> list[Path]:
    """The files of X.bel; that of the weights only if there is one."""
    offsets, targets, weights = (path.with_name(path.name + suffix) for suffix in (".col", ".dst", ".val"))
    return [offsets, targets, *([weights] if os.path.lexists(weights) else [])]


def _write(
    target: str, graph: sparse.CoordinateGraph, source: str, names: list[str] | None, making: _Making
) -> None:
    write_folder(
        target,
        graph.vertices,
        graph.from_,
        graph.to,
        weights=graph.weights,
        names=names,
        directed=graph.directed,
        source=source,
        threads=making["threads"],
        memory=making["memory"] or None,
        progress=making["progress"],
    )


def _key(paths: Iterable[Path]) -> str:
    """Changes when one of the files does. Raises penstock.Error when one cannot be looked at."""
    digest = hashlib.sha256(f"format {FORMAT}".encode())
    for path in paths:
        try:
            about = path.stat()
        except OSError as error:
            code = error.errno or 0
            sentence = f"open {path}: {os.strerror(code)}: check the path and its permissions"
            raise Error(sentence, code) from error
        digest.update(os.fsencode(path.resolve()) + f"\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def _cached(kept: Path, make: Make) -> GraphFolder:
    """Open `kept`, or make it.

    What is there but damaged is ours to replace: the cache holds nothing that cannot be made again.
    """
    if kept.is_dir():
        try:
            return open_folder(kept)
        except (ValueError, Error) as error:
            if isinstance(error, Error) and error.errno != errno.ENOENT:
                raise
            shutil.rmtree(kept, ignore_errors=True)
    try:
        make(str(kept))
    except ValueError:
        # Another process may have made it between our look and our start.
        if not kept.is_dir():
            raise
    return open_folder(kept)

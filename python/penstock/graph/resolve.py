"""What a user calls a graph, turned into a folder: opened as it is, or made once and kept in a cache."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from penstock.breadth_first import checked_count
from penstock.errors import Error

from . import debian, sparse, tables
from ._binding import Progress, native
from .folder import VOLUME, GraphFolder, build_folder, memory_limit, open_folder
from .unpacking import READERS, unpacked

FORMAT = 1
"""Part of every cache key: raised when conversion changes, so that old folders are made again."""

NATIVE = ("el", "wel", "gr", "graph", "sg", "wsg", "bel", "bcsr", "bwcsr")
TABLES = ("parquet", "csv", "tsv")
FORMATS = (*NATIVE, "mtx", "npz", *TABLES)
SUFFIXES = {
    **{f".{name}": name for name in FORMATS},
    ".txt": "el",
    **{f".{name}{packed}": name for name in ("mtx", "csv", "tsv") for packed in (".gz", ".bz2")},
}
"""What the ends of names say. Those of PACKABLE may be packed besides."""
PACKABLE = tuple(name for name in NATIVE if name != "bel")
FAMILY = (".bel.col", ".bel.dst", ".bel.val")
"""One graph in several files: any of them, or what their names have in common, is its name."""

GENERATORS = ("kron:", "urand:", "social:")

REMEDY = (
    f"give a graph folder, volume:NAME@MEMBERS, a file ({', '.join(SUFFIXES)}; .el.gz and the like), "
    f"{', '.join(name + 'SCALE' for name in GENERATORS)} or debian"
)


@dataclass(frozen=True)
class _Making:
    """How a folder is made."""

    threads: int
    memory: int
    progress: Progress | None
    undirected: bool
    simple: bool

    def limits(self, progress: Progress | None) -> _Limits:
        return _Limits(threads=self.threads, memory=self.memory, progress=progress)

    @property
    def suffix(self) -> str:
        """Of a name in the cache: what is not as it is without options."""
        return f"{'-undirected' if self.undirected else ''}{'-simple' if self.simple else ''}"


class _Limits(TypedDict):
    """What all functions of the compiled part take."""

    threads: int
    memory: int
    progress: Progress | None


@dataclass(frozen=True)
class _Plan:
    """How a folder is made of what a user named, and what it is called in the cache."""

    name: str
    make: Callable[[str], object]


def default_cache_dir() -> Path:
    """$PENSTOCK_CACHE if it is set, else ~/.cache/penstock/graphs ($XDG_CACHE_HOME is respected)."""
    if chosen := os.environ.get("PENSTOCK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "graphs"


def resolve(
    spec: str | os.PathLike[str] | GraphFolder,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    weighted: bool = False,
    undirected: bool = False,
    simple: bool = False,
    format: str | None = None,
    memory: int | str | None = None,
) -> GraphFolder:
    """Find or make the graph folder for `spec`.

    spec: a graph folder, or one that is open; volume:NAME@MEMBER,... for a graph on a volume; a file whose
        name says its format (docs/GRAPHS.md has them all, and what is in each); kron:SCALE[:DEGREE],
        urand:SCALE[:DEGREE] or social:SCALE[:DEGREE]; debian, or debian:depends without Recommends and
        Suggests.
    cache_dir: where made folders are kept; default_cache_dir() unless given.
    progress: called with (done, total); what it raises, and Ctrl-C, stop the work and leave nothing behind.
    threads: for the conversion; 0 or None: all processors. The result does not depend on it.
    weighted: give generated graphs weights. Files keep the weights that they have.
    undirected: take each edge both ways, and of equal ones one, that with the least weight.
    simple: drop loops, and of equal edges all but the one with the least weight.
    format: of a file, whatever its name ends in: "el", "wel", "gr", "graph" (METIS), "mtx", "npz", "sg",
        "wsg", "bel", "bcsr", "bwcsr", "parquet", "csv" or "tsv".
    memory: limit of what making the graph takes, in bytes or as "2GiB": 8 bytes for each vertex (16 from a
        binary file), 8 MiB for each thread, and the more edges the rest holds, 8 bytes each, 12 with a
        weight, the less often all are gone over. Unless given an eighth of the free memory is for edges.
        Tables, .mtx, .npz and debian are held whole besides that.
    Raises ValueError for what cannot be a graph, penstock.Error when the machine refuses; one sentence each.
    """
    making = _making(threads, memory, progress, undirected, simple)
    found = _found_or_planned(spec, making, weighted, format)
    if isinstance(found, GraphFolder):
        if simple or (undirected and found.directed):
            raise ValueError(
                f"open {found.path}: a graph that is converted already is taken as it is: make another one "
                f"of it (penstock graph convert), or leave undirected and simple out"
            )
        return found
    return _cached(Path(cache_dir) if cache_dir is not None else default_cache_dir(), found)


def convert(
    spec: str | os.PathLike[str] | GraphFolder,
    folder: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    threads: int | None = None,
    weighted: bool = False,
    undirected: bool = False,
    simple: bool = False,
    format: str | None = None,
    memory: int | str | None = None,
) -> GraphFolder:
    """Make the graph folder `folder`, all at once or not at all, of what resolve() takes; also of another
    folder, whose names and weights it keeps. Parameters and errors: those of resolve(); ValueError also when
    `folder` exists.
    """
    making = _making(threads, memory, progress, undirected, simple)
    if weighted and not str(spec).startswith(GENERATORS):
        raise ValueError(f"convert {spec}: weights are drawn for generated graphs alone: leave weighted out")
    target = os.fspath(folder)
    if not target:
        raise ValueError(f"convert {spec}: there is no name for the folder: give one")
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
    return open_folder(target)


def _making(
    threads: int | None,
    memory: int | str | None,
    progress: Progress | None,
    undirected: bool,
    simple: bool,
) -> _Making:
    count = 0 if threads is None else checked_count("threads", threads, 0)
    return _Making(count, memory_limit(memory), progress, undirected, simple)


def _found_or_planned(
    spec: str | os.PathLike[str] | GraphFolder, making: _Making, weighted: bool, format: str | None
) -> GraphFolder | _Plan:
    if isinstance(spec, GraphFolder):
        if format is not None:
            raise ValueError(f"open {spec.path}: it is no file, so it has no format: leave format out")
        return spec
    text = os.fspath(spec)
    if isinstance(text, bytes):
        raise TypeError(f"open {text!r}: bytes are no path here: give text")
    _check_utf8(text)
    if format is not None and format not in FORMATS:
        raise ValueError(
            f"open {text}: format {format!r}: there is no such: choose one of {', '.join(FORMATS)}"
        )
    generated, packages = text.startswith(GENERATORS), text in ("debian", "debian:depends")
    if format is not None and (generated or packages or text.startswith(VOLUME) or Path(text).is_dir()):
        raise ValueError(f"open {text}: it is no file, so it has no format: leave format out")
    if generated:
        return _generated(text, making, weighted)
    if packages:
        return _debian(text, making)
    if text.startswith(VOLUME):
        return open_folder(text)
    if not text:
        raise _no_folder("''")
    path = Path(text)
    return _opened(path) if path.is_dir() else _converted(path, making, format)


def _check_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"open {os.fsencode(text)!r}: its name is no UTF-8: rename it") from None


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

    return _Plan(f"{name.replace(':', '-')}{'-weighted' if weighted else ''}-v{FORMAT}", make)


def _debian(text: str, making: _Making) -> _Plan:
    lists = debian.package_lists()
    fields = debian.ALL if text == "debian" else debian.STRONG

    def make(target: str) -> None:
        graph, names = debian.read_debian(lists, fields)
        source = f"{', '.join(fields)} in {', '.join(path.name for path in lists)}"
        _write(target, graph, names, making, source)

    return _Plan(f"{text.replace(':', '-')}{making.suffix}-{_key(lists, text)}", make)


def _converted(path: Path, making: _Making, format: str | None) -> _Plan:
    if path.name.lower().endswith(FAMILY):
        path = path.with_suffix("")
    kind, packed = _kind_of(path.name.lower(), format)
    files = _family(path) if kind == "bel" else [path]
    for file in files:
        if not os.path.lexists(file):
            remedy = "a .bel graph is a .bel.col and a .bel.dst file" if kind == "bel" else REMEDY
            raise Error(f"open {file}: no such file or graph: {remedy}", errno.ENOENT)
    if kind is None and packed:
        raise ValueError(f"open {path}: this kind of file is not read packed like that: unpack it")
    if kind is None:
        raise ValueError(f"open {path}: no known kind of graph file: give its format, or {REMEDY}")

    def make(target: str) -> None:
        if kind not in NATIVE:
            _write(target, *_read(str(path), kind), making, str(path))
        elif packed:
            sparse.check_readable(str(path))
            with unpacked(path, Path(target).absolute().parent, making.progress) as (plain, progress):
                _convert(target, plain, kind, str(path), making, progress)
        else:
            _convert(target, str(path), kind, str(path), making, making.progress)

    stem = re.sub(r"[^A-Za-z0-9._-]", "_", path.name)[:100].lstrip(".")
    return _Plan(f"{stem}{making.suffix}-{_key(files, kind)}", make)


def _kind_of(name: str, format: str | None) -> tuple[str | None, bool]:
    """The format of a file, None where nothing tells, and whether it is to be unpacked first."""
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), None)
    if suffix is not None:
        return format or SUFFIXES[suffix], False
    packed = name.endswith(tuple(READERS))
    inner = name.rpartition(".")[0] if packed else name
    suffix = next((s for s in SUFFIXES if inner.endswith(s)), "")
    kind = format or SUFFIXES.get(suffix)
    return (None if packed and kind not in PACKABLE else kind), packed


def _convert(
    target: str, file: str, kind: str, name: str, making: _Making, progress: Progress | None
) -> None:
    remark = native.graph_convert(
        target, file, format=kind, name=name, undirected=making.undirected, simple=making.simple,
        **making.limits(progress),
    )  # fmt: skip
    if remark:
        warnings.warn(remark, stacklevel=2)


def _read(path: str, kind: str) -> tables.NamedGraph:
    if kind == "parquet":
        return tables.read_parquet(path)
    if kind in TABLES:
        return tables.read_text(path, "\t" if kind == "tsv" else ",")
    return (sparse.read_npz(path) if kind == "npz" else sparse.read_mtx(path)), None


def _family(path: Path) -> list[Path]:
    """The files of X.bel; that of the weights only if there is one."""
    offsets, targets, weights = (path.with_name(path.name + suffix) for suffix in (".col", ".dst", ".val"))
    return [offsets, targets, *([weights] if os.path.lexists(weights) else [])]


def _write(
    target: str, graph: sparse.CoordinateGraph, names: list[str] | None, making: _Making, source: str
) -> None:
    build_folder(
        target,
        graph.vertices,
        graph.from_,
        graph.to,
        weights=graph.weights,
        names=names,
        directed=graph.directed and not making.undirected,
        symmetrise=making.undirected,
        unique=making.undirected,
        simple=making.simple,
        source=source,
        **making.limits(making.progress),
    )


def _key(paths: Iterable[Path], kind: str) -> str:
    """Changes when one of the files does, and with what they are taken for.

    Raises penstock.Error when one cannot be looked at.
    """
    digest = hashlib.sha256(f"format {FORMAT} {kind}".encode())
    for path in paths:
        try:
            about = path.stat()
        except OSError as error:
            code = error.errno or 0
            sentence = f"open {path}: {os.strerror(code)}: check the path and its permissions"
            raise Error(sentence, code) from error
        # What copies keep of times, they do not keep of these.
        told = f"\0{about.st_size}\0{about.st_mtime_ns}\0{about.st_ctime_ns}\0{about.st_ino}\0"
        digest.update(os.fsencode(path.resolve()) + told.encode())
    return digest.hexdigest()[:16]


def _cached(cache: Path, plan: _Plan) -> GraphFolder:
    """Open what is kept, or make it.

    What is there but damaged is ours to replace: the cache holds nothing that cannot be made again.
    """
    kept = cache / plan.name
    if kept.is_dir():
        try:
            return open_folder(kept)
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
    return open_folder(kept)

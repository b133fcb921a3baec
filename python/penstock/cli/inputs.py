"""Inputs of commands: names that are not there, and files that --output and --plot must not overwrite."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.volume.names import is_volume, members_of

OF_FOLDERS = ("graph.json", "offsets.npy", "edges.npy", "weights.npy", "names.txt")
INCOMING = "incoming"


@contextmanager
def names_refused() -> Iterator[None]:
    """Raises ValueError with the same sentence for a column or table that does not exist, and for a package
    that is not installed: str() of a KeyError puts quotes around it.
    """
    try:
        yield
    except (KeyError, ImportError) as problem:
        if not problem.args or " " not in str(problem.args[0]):
            raise  # no sentence: a defect of the program
        raise ValueError(str(problem.args[0])) from None


def refuse_inputs(option: str, path: Path | None, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Raises ValueError where `path` is one of `inputs`, or a member of a volume that one is on, also by a
    link. None is no path."""
    if path is not None and (found := next((each for each in inputs if _is_read(path, each)), None)):
        raise ValueError(f"{option} {path}: it is the input {os.fspath(found)}: name another file")


def refuse_files_of(option: str, path: Path | None, graph: str, format: str | None) -> None:
    """Raises ValueError where `path` is a file that `graph`, as the user calls it, is read from."""
    if path is not None and (
        found := next((each for each in files_of(graph, format) if _same(path, each)), None)
    ):
        what = "it is the input" if str(found) == graph else f"it is {found.name} of the input {graph}"
        raise ValueError(f"{option} {path}: {what}: name another file")


def files_of(graph: str, format: str | None) -> list[Path]:
    """The file; those of a graph folder, whether they exist or not; parts of a table; members of a volume."""
    # Here and not above: penstock.graph needs the compiled part.
    from penstock.graph.kinds import input_of, parts_in

    if is_volume(graph):
        return [Path(member) for member in members_of(graph)]
    path = Path(graph)
    try:
        if path.is_dir():
            parts = None if os.path.lexists(path / "graph.json") else parts_in(path, format)
            return _of_folder(path) if parts is None else list(parts.files)
        return list(input_of(path, format).files)
    except (ValueError, OSError):
        return [path]  # the command refuses it


def _of_folder(path: Path) -> list[Path]:
    names = [*OF_FOLDERS, _names_file(path / "graph.json")]
    return [folder / name for folder in (path, path / INCOMING) for name in names]


def _names_file(description: Path) -> str:
    try:
        return str(json.loads(description.read_text())["names"])
    except (OSError, ValueError, KeyError, TypeError):
        return "names.txt"


def _is_read(path: Path, each: str | os.PathLike[str]) -> bool:
    name = os.fspath(each)
    return any(_same(path, file) for file in (members_of(name) if is_volume(name) else [name]))


def _same(path: Path, other: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samefile(path, other)  # noqa: PTH121, a Path has no such function of two names
    except (OSError, ValueError):
        pass
    try:
        return path.resolve() == Path(other).resolve()
    except (OSError, ValueError, RuntimeError):
        return False

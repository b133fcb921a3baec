"""Error sentences: operation, the user's own path, what is wrong, what to do; one line each."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.errors import Error

if TYPE_CHECKING:
    from penstock.callbacks import Progress

_SECOND_SENTENCE = re.compile(r"[.;!?]\s+(?=[A-Z])")
_MAX_SHOWN = 80
_MAX_PROBLEM = 140
_MAX_SENTENCE = 360
_REMEDIES = {
    errno.ENOENT: "there is no such file: check the path",
    errno.ENOTDIR: "a part of its path is no directory: check the path",
    errno.EACCES: "this user may not read it, or not search its directories: give them the permission",
    errno.ELOOP: "its symbolic links lead to each other: correct them",
    errno.ENAMETOOLONG: "its name is longer than a file system takes: give a shorter one",
}
_OF_NEW_FILES = {
    errno.ENOENT: "there is no such directory: make it first",
    errno.EACCES: "this user may not write to its directory: give them the permission, or choose another",
    errno.EROFS: "its file system is read-only: choose another directory",
}


def shown(value: object) -> str:
    """A value in one short line: text as it is where it can be printed, all else as Python writes it."""
    try:
        text = value if isinstance(value, str) and value.isprintable() and value else repr(value)
    except Exception:  # numbers of more than 4300 digits, objects whose repr fails
        text = f"of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def shown_path(path: str) -> str:
    """The user's own path; with what cannot be printed, as Python writes it."""
    return path if path.isprintable() and path else ascii(path)


def line_of(problem: BaseException) -> str:
    """What another library's error says, in one short line."""
    lines = [" ".join(line.split()) for line in str(problem).splitlines() if line.strip()]
    text = _SECOND_SENTENCE.split(lines[0])[0].rstrip(" .:;,") if lines else ""
    text = "".join(c if c.isprintable() else "?" for c in text) or type(problem).__name__
    return text if len(text) <= _MAX_PROBLEM else text[: _MAX_PROBLEM - 3] + "..."


def _in_one_line(sentence: str) -> str:
    """A sentence of ours with what users gave in it, which may be long or have lines of its own."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(sentence.split()))
    half = _MAX_SENTENCE // 2
    return text if len(text) <= _MAX_SENTENCE else f"{text[:half]}...{text[-half:]}"


def system_error(sentence: str, code: int) -> OSError:
    """The class that Python has for this errno, FileNotFoundError for one; penstock.Error for all others."""
    kind = type(OSError(code, ""))
    if kind is OSError:
        return Error(sentence, code)
    problem = kind(sentence)
    problem.errno = code  # with a filename its text would be another
    return problem


class Watched:
    """A progress function of the user's. What it raises is theirs, and is not put into other words."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.raised: BaseException | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        try:
            self._progress(what, done, total)
        except BaseException as problem:
            self.raised = problem
            raise


def watched(progress: Any) -> Watched | None:
    """TypeError for what is no function."""
    if progress is None or isinstance(progress, Watched):
        return progress
    if not callable(progress):
        raise TypeError(f"progress {shown(progress)}: give a function of (what, done, total), or None")
    return Watched(progress)


@contextmanager
def naming(
    operation: str, path: str, *also: str, progress: Progress | None = None
) -> Iterator[Watched | None]:
    """Errors from inside begin with the operation and the path; those of `progress`, which is given back to
    be called, stay as they are. also: other names of the same file, such as that of its copy in the cache,
    which the user's path replaces."""
    seen = None
    try:
        seen = watched(progress)
        yield seen
    except (ValueError, TypeError, OSError, OverflowError, MemoryError) as problem:
        if seen is not None and seen.raised is problem:
            raise
        raise _named(problem, operation, path, also) from None


def _named(problem: Exception, operation: str, path: str, also: tuple[str, ...]) -> Exception:
    name, text = shown_path(path), str(problem)
    code = getattr(problem, "errno", None)
    if isinstance(problem, OSError) and code is not None and problem.strerror is not None:
        remedies = {**_REMEDIES, **_OF_NEW_FILES} if operation == "create" else _REMEDIES
        text = remedies.get(code) or f"{os.strerror(code)}: look at the device and the path"
        return system_error(f"{operation} {name}: {text}", code)
    for other in sorted(also, key=len, reverse=True):
        text = text.replace(other, name)
    text = text.removeprefix(f"open namespace {name}: ")
    if not text.partition(" ")[2].startswith(f"{name}:"):
        text = f"{operation} {name}: {_in_one_line(text)}"
    if isinstance(problem, Error):
        return Error(text, code or 0)
    if isinstance(problem, OSError):
        return system_error(text, code or 0)
    known = (TypeError, MemoryError, ValueError)
    return next((kind for kind in known if isinstance(problem, kind)), ValueError)(text)
